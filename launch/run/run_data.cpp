#include "launch/run/run_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <sstream>

#include "launch/job/agree.h"
#include "parallel/group/failure.h"
#include "trainer/checkpoint/data_changes.h"

namespace redspine {
namespace {

/// The ranks that see the same files on a file system that they share, or on one host.
ProcessGroup sharers(const ProcessGroup& world, const std::vector<const TokenFile*>& files) {
  std::string identity;
  for (const TokenFile* file : files) identity += file->identity() + '\n';
  identity = std::to_string(std::hash<std::string>()(identity));
  const std::vector<std::string> identities = world.all_gather(identity);
  const auto first = std::find(identities.begin(), identities.end(), identity);
  return world.split(static_cast<int>(first - identities.begin()));
}

}  // namespace

std::vector<FileFingerprint> agree_on_files(const ProcessGroup& world,
                                            const std::vector<const TokenFile*>& files) {
  std::string lengths;
  for (const TokenFile* file : files) {
    lengths += fmt::format("{}: {} tokens\n", file->path(), file->num_tokens());
  }
  reject_unequal(world, "data", lengths);
  const ProcessGroup group = sharers(world, files);
  std::string mine;
  for (auto i = static_cast<std::size_t>(group.rank()); i < files.size();
       i += static_cast<std::size_t>(group.size())) {
    const FileFingerprint fingerprint = files[i]->fingerprint();
    mine += fmt::format("{} {} {}\n", i, fingerprint.num_bytes, fingerprint.hash);
  }
  std::vector<FileFingerprint> fingerprints(files.size());
  for (const std::string& part : group.all_gather(mine)) {
    std::istringstream text(part);
    FileFingerprint fingerprint;
    for (std::size_t i = 0; text >> i >> fingerprint.num_bytes >> fingerprint.hash;) {
      fingerprint.path = files[i]->path();
      fingerprints[i] = fingerprint;
    }
  }
  std::string lines;
  for (const FileFingerprint& file : fingerprints) {
    lines += fmt::format("{}: {} bytes, hash {}\n", file.path, file.num_bytes, file.hash);
  }
  reject_unequal(world, "data", lines);
  return fingerprints;
}

DataFingerprint agree_on_data(const ProcessGroup& world, const RunData& data) {
  std::vector<const TokenFile*> files = data.training.files();
  const auto num_training = static_cast<std::ptrdiff_t>(files.size());
  if (data.validation) {
    for (const TokenFile* file : data.validation->files()) files.push_back(file);
  }
  const std::vector<FileFingerprint> all = agree_on_files(world, files);
  return {.training = {all.begin(), all.begin() + num_training},
          .validation = {all.begin() + num_training, all.end()}};
}

std::string describe_unused_tokens(const TrainingData& data) {
  constexpr std::size_t kMaxLines = 10;
  const std::vector<UnusedTokens> unused = data.unused_tokens();
  std::string lines;
  std::int64_t num_more = 0;
  for (std::size_t i = 0; i < unused.size(); ++i) {
    const auto& [file, count] = unused[i];
    if (i < kMaxLines) {
      lines += fmt::format("data.train: {}: the last {} of {} tokens are in no sample\n",
                           file.path(), count, file.num_tokens());
    } else {
      num_more += count;
    }
  }
  if (num_more > 0) {
    lines += fmt::format("data.train: nor are the last tokens of {} more files, {} in all\n",
                         unused.size() - kMaxLines, num_more);
  }
  return lines;
}

void log_data_changes(const ProcessGroup& world, const DataFingerprint& before,
                      const DataFingerprint& after) {
  if (world.rank() != 0) return;
  for (const std::string& line : changed_data(before, after))
    log_from_rank(world, "warning: " + line);
}

}  // namespace redspine
