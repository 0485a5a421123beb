// The safetensors files that one rank writes of a checkpoint, with what its manifest says about
// them. Local.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/save_plan.h"

namespace redspine {

class RankFiles {
 public:
  /// Creates the files of `mine`, the tensors that this rank writes, in `folder`.
  RankFiles(const std::string& folder, const SavePlan& plan,
            const std::vector<PlannedTensor>& mine);

  /// All values of a tensor; tensors come in the order of `mine`.
  void write(const PlannedTensor& planned, std::span<const float> values);

  /// Syncs everything; the manifest's entries by file name.
  std::map<std::string, ManifestFile> finish();

 private:
  std::map<std::string, std::string> file_of_stem_;
  std::map<std::string, SafetensorsWriter> writers_;
  std::map<std::string, ManifestFile> files_;
};

}  // namespace redspine
