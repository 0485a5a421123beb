// The fingerprint of a token file, by which a run that resumes, or another rank, recognises it.
// Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace redspine {

struct FileFingerprint {
  std::string path;            // of the file with the tokens
  std::int64_t num_bytes = 0;  // of that file
  /// xxh3-128 in hexadecimal of a Megatron pair's .idx, and of the file: 64 blocks of a MiB, evenly
  /// spaced from its beginning to its end; where that is all of it or more, the whole.
  std::string hash;

  bool operator==(const FileFingerprint&) const = default;
};

/// Of all files that a run reads, in the order in which it reads them. Empty: not known.
struct DataFingerprint {
  std::vector<FileFingerprint> training = {};
  std::vector<FileFingerprint> validation = {};

  bool operator==(const DataFingerprint&) const = default;
};

}  // namespace redspine
