// The tensors of a model directory under their stored names, whichever files they lie in: one
// safetensors file, or several with an index. Opens ours and those of `transformers`. Local.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/checkpoint/format/safetensors.h"

namespace redspine {

class TensorFiles {
 public:
  struct Place {
    const SafetensorsFile* file;
    const SafetensorsEntry* entry;
  };

  /// The files DIRECTORY/STEM.safetensors or those that DIRECTORY/STEM.safetensors.index.json
  /// lists; stem is "model" or "optimizer". ConfigError where a file is missing or damaged, a
  /// tensor is in two files, or index and files disagree.
  static TensorFiles open(const std::string& directory, const std::string& stem);

  /// Goes by `names` where a file of `transformers` leaves out the name of the model around the
  /// blocks ("h.0.ln_1.weight" for "transformer.h.0.ln_1.weight"), and forgets what such files
  /// hold beside parameters: masks, frequencies, and the copy of a tied head.
  void adapt_to(const std::vector<std::string>& names);

  const std::string& directory() const { return directory_; }
  /// Every tensor by name.
  const std::map<std::string, Place, std::less<>>& tensors() const { return tensors_; }
  /// ConfigError that names the directory where there is none.
  const Place& at(std::string_view name) const;
  bool contains(std::string_view name) const { return tensors_.contains(name); }

  /// Elements [first, first + values.size()) as f32.
  void read(std::string_view name, std::int64_t first, std::span<float> values) const;

 private:
  std::string directory_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place, std::less<>> tensors_;
};

}  // namespace redspine
