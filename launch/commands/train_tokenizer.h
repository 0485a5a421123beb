// `redspine tokenize --train-bpe`: a tokenizer.json from text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/documents/input_reader.h"

namespace redspine {

struct TokenizerTraining {
  InputOptions input;
  std::int64_t vocab_size;  // bpe_trainer.h
  std::string path;         // of the tokenizer.json; folders are made
  int num_threads;
  /// Files that are written with the tokenizer later. Meanwhile nobody else may, lest another
  /// tokenizer takes the place of theirs.
  std::vector<std::string> reserved = {};
};

/// Trains, saves, and prints a line on the result. ConfigError for what the user can mend.
void train_tokenizer(const TokenizerTraining& training);

}  // namespace redspine
