// The `data:` section of a run's configuration: which token files are read and how they blend.
//
// A plain value, local to a rank and equal on all of them. validate() looks at the values alone;
// the files themselves are checked when TrainingData and ValidationData open them.
#pragma once

#include <string>
#include <vector>

#include "data/files/token_format.h"
#include "tensor/error.h"

namespace redspine {

struct DataFileConfig {
  std::string path;     // a file, a Megatron prefix, or a glob of them, read in name order
  double weight = 1.0;  // share of the samples, relative to the other entries; validation: ignored
};

struct DataConfig {
  std::vector<DataFileConfig> train = {};       // blended by weight
  std::vector<DataFileConfig> validation = {};  // read once from beginning to end; may be empty
  TokenFormat format = TokenFormat::automatic;  // of all files above
  std::string tokenizer = {};  // what made the token ids: empty or "bytes" for bytes, else a file

  /// Adds what is wrong with this section, under full keys ("data.train[0].weight").
  void validate(ConfigProblems& problems) const;
};

}  // namespace redspine
