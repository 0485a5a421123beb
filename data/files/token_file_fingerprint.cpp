// TokenFile::fingerprint() and TokenFile::identity().
#include <fmt/format.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "data/files/token_file.h"
#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::int64_t kBlockBytes = std::int64_t{1} << 20;
constexpr std::int64_t kNumBlocks = 64;

class ContentHash {
 public:
  ContentHash() : state_(XXH3_createState()), block_(static_cast<std::size_t>(kBlockBytes)) {
    XXH3_128bits_reset(state_.get());
  }

  void add(const File& file, std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const auto count = static_cast<std::size_t>(std::min(end - begin, kBlockBytes));
      file.read_at(begin, std::span(block_).first(count));
      XXH3_128bits_update(state_.get(), block_.data(), count);
      begin += static_cast<std::int64_t>(count);
    }
  }

  std::string text() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
  std::vector<std::byte> block_;
};

std::string identity_of(const File& file) {
  struct stat status = {};
  if (fstat(file.descriptor(), &status) != 0) {
    throw Error(fmt::format("{}: cannot be examined: {}", file.path(), std::strerror(errno)));
  }
  return fmt::format("{} {} {}.{:09}", status.st_ino, status.st_size, status.st_mtim.tv_sec,
                     status.st_mtim.tv_nsec);
}

}  // namespace

std::optional<File> TokenFile::open_index() const {
  if (format() != TokenFormat::megatron) return std::nullopt;
  return File::open(path().substr(0, path().size() - 4) + ".idx", key_);  // for ".bin"
}

FileFingerprint TokenFile::fingerprint() const {
  ContentHash hash;
  if (const std::optional<File> index = open_index()) hash.add(*index, 0, index->size());
  const std::int64_t size = file_.size();
  if (size <= kNumBlocks * kBlockBytes) {
    hash.add(file_, 0, size);
  } else {
    for (std::int64_t block = 0; block < kNumBlocks; ++block) {
      const std::int64_t begin = (size - kBlockBytes) * block / (kNumBlocks - 1);
      hash.add(file_, begin, begin + kBlockBytes);
    }
  }
  return {.path = path(), .num_bytes = size, .hash = hash.text()};
}

std::string TokenFile::identity() const {
  std::string identity = path() + ' ' + identity_of(file_);
  if (const std::optional<File> index = open_index()) identity += ' ' + identity_of(*index);
  return identity;
}

}  // namespace redspine
