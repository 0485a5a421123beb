// The `data:` section of a run's configuration: which token files are read and how they blend.
//
// A plain value, local to a rank and equal on all of them. validate() looks at the values alone;
// the files themselves are checked when TrainingData and ValidationData open them.
#pragma once

#include <string>
#include <vector>

#include "tensor/error.h"

namespace redspine {

/// How token ids lie in a file; token_file.h describes each.
enum class TokenFormat {
  automatic,  // megatron where PATH.bin and PATH.idx exist, llmc where the file has its magic
  megatron,   // a .bin and .idx pair, named by their common prefix
  llmc,       // llm.c's .bin: a header of 1024 bytes, then u16 or u32
  raw_u16,    // nothing but little-endian 16-bit ids
  raw_u32,    // nothing but little-endian 32-bit ids
};

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
  void validate(Mistakes& mistakes) const;
};

}  // namespace redspine
