#include "trainer/checkpoint/verify.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "data/io/folders.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/manifest.h"
#include "trainer/checkpoint/format/model_json.h"
#include "trainer/checkpoint/format/safetensors.h"
#include "trainer/checkpoint/state_digests.h"
#include "trainer/checkpoint/stored_digest.h"

namespace redspine {
namespace {

constexpr std::int64_t kBytesAtOnce = std::int64_t{4} << 20;

bool is_safetensors(const std::string& name) { return name.ends_with(".safetensors"); }

// Goes through a checkpoint and collects what is wrong with the part that is its own.
class Verifier {
 public:
  Verifier(std::string directory, Verification verification, VerifyShare share,
           const KeepGoing& keep_going)
      : directory_(std::move(directory)),
        verification_(verification),
        share_(share),
        keep_going_(keep_going) {}

  std::vector<std::string> run() {
    try {
      if (verification_ == Verification::from_medium) forget_files();
      const Manifest manifest = read_manifest(directory_);
      read_digests();
      for (const auto& [name, file] : manifest.files) {
        if (verification_ == Verification::model && name.starts_with("optimizer")) continue;
        check_file(directory_ + "/" + name, file);
      }
      // One that came later would lead to other files.
      for (const char* index :
           {"model.safetensors.index.json", "optimizer.safetensors.index.json"}) {
        const std::string path = fmt::format("{}/{}", directory_, index);
        if (manifest.files.contains(index) || ::access(path.c_str(), F_OK) != 0) continue;
        problems_.push_back(path + ": is not in the manifest");
      }
      // Where the files differ from what was written, that says it all.
      if (problems_.empty()) problems_ = std::move(digest_problems_);
    } catch (const std::exception& error) {
      problems_.emplace_back(error.what());
    }
    return std::move(problems_);
  }

 private:
  // Before any of them is opened: headers are read by that.
  void forget_files() const {
    for (const std::string& name : names_in(directory_)) forget_file(directory_ + "/" + name);
  }

  // What training.json says, by which each tensor is judged again: hashes tell that a tensor is as
  // it was written, its digest that it is what the training had.
  void read_digests() {
    if (verification_ == Verification::sizes) return;
    if (::access((directory_ + "/training.json").c_str(), F_OK) != 0) return;
    try {
      recorded_ = read_training_record(directory_).digests;
      if (!recorded_) return;
      tensors_ = StoredTensors(read_model_config(directory_));
      StateDigests sums;
      for (const auto& [name, digest] : recorded_->tensors) {
        const NamedTensor* named = tensors_.find(name);
        if (named != nullptr) total_of(sums, named->part) += digest;
      }
      for (const StatePart part : kStateParts) {
        if (total_of(sums, part) == total_of(*recorded_, part)) continue;
        digest_problems_.push_back(fmt::format(
            "{}/training.json: the digest {} is not the sum of those of its tensors, {}",
            directory_, total_of(*recorded_, part).text(), total_of(sums, part).text()));
      }
    } catch (const std::exception& error) {
      recorded_.reset();
      digest_problems_.emplace_back(error.what());
    }
  }

  void check_file(const std::string& path, const ManifestFile& expected) {
    struct stat status = {};
    if (::stat(path.c_str(), &status) != 0) {
      problems_.push_back(fmt::format("{}: {}", path, std::strerror(errno)));
      return;
    }
    if (status.st_size != expected.bytes) {
      problems_.push_back(fmt::format("{}: has {} bytes; the manifest says {}", path,
                                      status.st_size, expected.bytes));
      return;
    }
    try {
      if (is_safetensors(path)) {
        check_tensors(SafetensorsFile::open(path), expected);
      } else if (hash_text(read_text(path)) != expected.hash) {
        problems_.push_back(path + ": differs from what was written");
      }
    } catch (const std::exception& error) {
      problems_.emplace_back(error.what());
    }
  }

  void check_tensors(const SafetensorsFile& file, const ManifestFile& expected) {
    if (hash_text(file.header_bytes()) != expected.hash) {
      problems_.push_back(file.path() + ": the header differs from what was written");
      return;
    }
    if (verification_ == Verification::sizes) return;
    for (const SafetensorsEntry& entry : file.header().entries) {
      if (!is_mine(entry.bytes())) continue;
      if (!goes_on(keep_going_)) return;
      const auto hash = expected.tensors.find(entry.name);
      if (hash == expected.tensors.end()) {
        problems_.push_back(
            fmt::format("{}: tensor {}: is not in the manifest", file.path(), entry.name));
      } else {
        check_tensor(file, entry, hash->second);
      }
    }
  }

  void check_tensor(const SafetensorsFile& file, const SafetensorsEntry& entry,
                    const std::string& expected_hash) {
    const NamedTensor* named = recorded_ ? tensors_.find(entry.name) : nullptr;
    const bool has_digest = named != nullptr && entry.type == ElementType::f32 &&
                            entry.shape == named->tensor->shape.dims();
    std::optional<StoredDigest> digest;
    if (has_digest) digest.emplace(*named->tensor, named->part);
    if (hash_of(file, entry, digest) != expected_hash) {
      problems_.push_back(
          fmt::format("{}: tensor {}: differs from what was written", file.path(), entry.name));
      return;
    }
    if (!digest) return;
    const auto recorded = recorded_->tensors.find(entry.name);
    if (recorded != recorded_->tensors.end() && recorded->second == digest->sum()) return;
    digest_problems_.push_back(fmt::format(
        "{}: tensor {}: its digest is {}; training.json says {}", file.path(), entry.name,
        digest->sum().text(),
        recorded == recorded_->tensors.end() ? "nothing of it" : recorded->second.text()));
  }

  // Gives the values to `digest` too, where there is one.
  std::string hash_of(const SafetensorsFile& file, const SafetensorsEntry& entry,
                      std::optional<StoredDigest>& digest) {
    ContentHash hash;
    for (std::int64_t offset = 0; offset < entry.bytes(); offset += kBytesAtOnce) {
      const std::int64_t count = std::min(kBytesAtOnce, entry.bytes() - offset);
      const auto bytes = std::span(buffer_).first(static_cast<std::size_t>(count));
      file.read_bytes(entry, offset, bytes);
      hash.add(bytes);
      if (digest) {
        constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));
        digest->add(offset / kFloatBytes, std::span(reinterpret_cast<const float*>(bytes.data()),
                                                    static_cast<std::size_t>(count / kFloatBytes)));
      }
      // Nobody reads it soon, and its memory serves the next bytes.
      if (verification_ == Verification::from_medium) file.forget_bytes(entry, offset, count);
    }
    return hash.text();
  }

  // Each tensor goes to the share that has had the fewest bytes so far.
  bool is_mine(std::int64_t bytes) {
    const auto least = std::min_element(bytes_of_share_.begin(), bytes_of_share_.end());
    *least += bytes;
    return least - bytes_of_share_.begin() == share_.index;
  }

  std::string directory_;
  Verification verification_;
  VerifyShare share_;
  const KeepGoing& keep_going_;
  std::vector<std::string> problems_;
  std::vector<std::string> digest_problems_;
  std::optional<StateDigests> recorded_;
  StoredTensors tensors_;
  std::vector<std::int64_t> bytes_of_share_ =
      std::vector<std::int64_t>(static_cast<std::size_t>(share_.count));
  std::vector<std::byte> buffer_ = std::vector<std::byte>(static_cast<std::size_t>(kBytesAtOnce));
};

// What a run wrote has a manifest when it is complete; what others wrote has none.
bool should_have_manifest(const std::string& directory) {
  return has_manifest(directory) || ::access((directory + "/training.json").c_str(), F_OK) == 0;
}

void throw_if_any(const std::vector<std::string>& found) {
  ConfigProblems problems;
  for (const std::string& problem : found) problems.add("", problem);
  problems.throw_if_any();
}

}  // namespace

std::vector<std::string> verify_checkpoint(const std::string& directory, Verification verification,
                                           VerifyShare share, const KeepGoing& keep_going) {
  return Verifier(directory, verification, share, keep_going).run();
}

std::vector<std::string> verify_checkpoint(const std::string& directory, Verification verification,
                                           const ProcessGroup& group, const KeepGoing& keep_going) {
  std::string mine;
  for (const std::string& problem : verify_checkpoint(
           directory, verification, {.index = group.rank(), .count = group.size()}, keep_going)) {
    mine += problem + '\n';
  }
  // Ranks find the same problems in headers and sizes.
  std::vector<std::string> problems;
  for (const std::string& text : group.all_gather(mine)) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      const std::string line = text.substr(begin, end - begin);
      if (std::find(problems.begin(), problems.end(), line) == problems.end()) {
        problems.push_back(line);
      }
      begin = end + 1;
    }
  }
  return problems;
}

bool check_as_written(const std::string& directory, Verification verification) {
  if (!should_have_manifest(directory)) return false;
  throw_if_any(verify_checkpoint(directory, verification));
  return true;
}

bool check_as_written(const std::string& directory, Verification verification,
                      const ProcessGroup& group, const KeepGoing& keep_going) {
  const double has_any = should_have_manifest(directory) ? 1.0 : 0.0;
  if (group.all_reduce(has_any, ReduceOp::max) == 0.0) return false;
  throw_if_any(verify_checkpoint(directory, verification, group, keep_going));
  return true;
}

}  // namespace redspine
