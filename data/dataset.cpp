#include "data/dataset.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cassert>
#include <utility>

#include "tensor/error.h"

namespace redspine {
namespace {

constexpr std::int64_t kScanLimit = std::int64_t{64} << 20;  // bytes of ids checked at the start

void add_all(ConfigProblems& problems, const ConfigError& error) {
  for (const ConfigProblem& problem : error.problems()) problems.add(problem.key, problem.text);
}

/// Opens the files of data.train or data.validation, [entry][file], with all problems collected.
std::vector<std::vector<TokenFile>> open_entries(const std::vector<DataFileConfig>& configs,
                                                 TokenFormat format, const std::string& key) {
  ConfigProblems problems;
  std::vector<std::vector<TokenFile>> entries(configs.size());
  for (std::size_t e = 0; e < configs.size(); ++e) {
    const std::string path_key = fmt::format("{}[{}].path", key, e);
    try {
      for (const std::string& path : find_token_files(configs[e].path, format, path_key)) {
        try {
          entries[e].push_back(TokenFile::open(path, format, path_key));
        } catch (const TooManyFiles&) {
          throw;  // as all that follow would
        } catch (const ConfigError& error) {
          add_all(problems, error);
        }
      }
    } catch (const TooManyFiles&) {
      throw;
    } catch (const ConfigError& error) {
      add_all(problems, error);
    }
  }
  problems.throw_if_any();
  return entries;
}

/// Reads all ids of those files that fit into what is left of the scan limit.
void scan(const std::vector<std::vector<TokenFile>>& entries, std::int64_t vocab_size) {
  ConfigProblems problems;
  std::int64_t num_bytes_left = kScanLimit;
  std::vector<std::int32_t> block(std::size_t{1} << 16);
  for (const std::vector<TokenFile>& entry : entries) {
    for (const TokenFile& file : entry) {
      if (file.num_bytes() > num_bytes_left) continue;
      num_bytes_left -= file.num_bytes();
      try {
        for (std::int64_t offset = 0; offset < file.num_tokens();) {
          const std::int64_t count =
              std::min(static_cast<std::int64_t>(block.size()), file.num_tokens() - offset);
          file.read(offset, std::span(block).first(static_cast<std::size_t>(count)), vocab_size);
          offset += count;
        }
      } catch (const ConfigError& error) {
        add_all(problems, error);
      }
    }
  }
  problems.throw_if_any();
}

std::int64_t num_samples_of(const TokenFile& file, std::int64_t sequence_length) {
  return (file.num_tokens() - 1) / sequence_length;
}

/// What a blend of these entries samples from; an entry without a single sample is a problem.
std::vector<SampleSource> sources_of(const std::vector<std::vector<TokenFile>>& entries,
                                     const DataConfig& config, std::int64_t sequence_length) {
  ConfigProblems problems;
  std::vector<SampleSource> sources;
  for (std::size_t e = 0; e < entries.size(); ++e) {
    SampleSource& source = sources.emplace_back(SampleSource{config.train[e].weight, {}});
    std::int64_t longest = 0;
    for (const TokenFile& file : entries[e]) {
      source.num_windows.push_back(num_samples_of(file, sequence_length));
      longest = std::max(longest, file.num_tokens());
    }
    if (longest < sequence_length + 1) {
      problems.add(fmt::format("data.train[{}].path", e),
                   fmt::format("{}: has {} tokens{}; one sample of batch.sequence_length {} needs "
                               "{}",
                               config.train[e].path, longest,
                               entries[e].size() == 1 ? "" : " in its longest file",
                               sequence_length, sequence_length + 1));
    }
  }
  problems.throw_if_any();
  return sources;
}

}  // namespace

TrainingData::TrainingData(const DataConfig& config, const TrainingDataOptions& options)
    : sequence_length_(options.sequence_length),
      vocab_size_(options.vocab_size),
      entries_(open_entries(config.train, config.format, "data.train")),
      sampler_(sources_of(entries_, config, options.sequence_length), options.seed) {
  if (num_samples() < options.global_batch_size) {
    throw ConfigError(
        "data.train",
        fmt::format("has {} samples of {} tokens; one step of batch.global_batch_size needs {}, "
                    "that is, {} tokens of one file",
                    num_samples(), sequence_length_ + 1, options.global_batch_size,
                    options.global_batch_size * sequence_length_ + 1));
  }
  scan(entries_, vocab_size_);
}

std::vector<const TokenFile*> TrainingData::files() const {
  std::vector<const TokenFile*> files;
  for (const std::vector<TokenFile>& entry : entries_) {
    for (const TokenFile& file : entry) files.push_back(&file);
  }
  return files;
}

std::vector<UnusedTokens> TrainingData::unused_tokens() const {
  std::vector<UnusedTokens> unused;
  for (const TokenFile* file : files()) {
    const std::int64_t num_samples = num_samples_of(*file, sequence_length_);
    const std::int64_t num_used = num_samples == 0 ? 0 : num_samples * sequence_length_ + 1;
    if (num_used < file->num_tokens()) unused.push_back({*file, file->num_tokens() - num_used});
  }
  return unused;
}

void TrainingData::fill(std::int64_t sample_begin, std::int64_t count,
                        std::span<std::int32_t> tokens) {
  const auto row_size = static_cast<std::size_t>(sequence_length_ + 1);
  assert(tokens.size() == static_cast<std::size_t>(count) * row_size);
  sampler_.seek(sample_begin);
  for (std::size_t row = 0; row < static_cast<std::size_t>(count); ++row) {
    const SampleOrigin origin = next_origin();
    origin.file.read(origin.token, tokens.subspan(row * row_size, row_size), vocab_size_);
  }
}

SampleOrigin TrainingData::origin_of(std::int64_t sample) {
  sampler_.seek(sample);
  return next_origin();
}

SampleOrigin TrainingData::next_origin() {
  const SampleLocation at = sampler_.next();
  return {entries_[static_cast<std::size_t>(at.entry)][static_cast<std::size_t>(at.file)],
          at.window * sequence_length_};
}

ValidationData::ValidationData(const DataConfig& config, std::int64_t sequence_length,
                               std::int64_t vocab_size)
    : sequence_length_(sequence_length), vocab_size_(vocab_size) {
  std::vector<std::vector<TokenFile>> entries =
      open_entries(config.validation, config.format, "data.validation");
  scan(entries, vocab_size);
  std::int64_t num_windows = 0;
  for (std::vector<TokenFile>& entry : entries) {
    for (TokenFile& file : entry) {
      const std::int64_t num_targets = file.num_tokens() - 1;
      num_tokens_ += num_targets;
      num_windows += (num_targets + sequence_length - 1) / sequence_length;
      window_ends_.push_back(num_windows);
      files_.push_back(std::move(file));
    }
  }
  if (!files_.empty() && num_tokens_ == 0) {
    throw ConfigError("data.validation", "no file has more than 1 token; a target needs 2");
  }
}

std::vector<const TokenFile*> ValidationData::files() const {
  std::vector<const TokenFile*> files;
  for (const TokenFile& file : files_) files.push_back(&file);
  return files;
}

void ValidationData::fill(std::int64_t window_begin, std::int64_t count,
                          std::span<std::int32_t> tokens, std::span<std::int32_t> targets) const {
  const auto length = static_cast<std::size_t>(sequence_length_);
  assert(window_begin >= 0 && window_begin + count <= num_windows());
  assert(tokens.size() == static_cast<std::size_t>(count) * length);
  assert(targets.size() == tokens.size());
  std::vector<std::int32_t> window(length + 1);
  for (std::int64_t w = window_begin; w < window_begin + count; ++w) {
    const auto end = std::upper_bound(window_ends_.begin(), window_ends_.end(), w);
    const std::int64_t first_of_file = end == window_ends_.begin() ? 0 : *(end - 1);
    const TokenFile& file = files_[static_cast<std::size_t>(end - window_ends_.begin())];
    const std::int64_t offset = (w - first_of_file) * sequence_length_;
    const std::int64_t num_targets = std::min(sequence_length_, file.num_tokens() - 1 - offset);
    const auto num_read = static_cast<std::size_t>(num_targets) + 1;
    file.read(offset, std::span(window).first(num_read), vocab_size_);

    const std::size_t row = static_cast<std::size_t>(w - window_begin) * length;
    std::fill_n(tokens.begin() + static_cast<std::ptrdiff_t>(row), length, 0);
    std::fill_n(targets.begin() + static_cast<std::ptrdiff_t>(row), length, -1);
    std::copy_n(window.begin(), num_read - 1, tokens.begin() + static_cast<std::ptrdiff_t>(row));
    std::copy_n(window.begin() + 1, num_read - 1,
                targets.begin() + static_cast<std::ptrdiff_t>(row));
  }
}

std::uint64_t sample_hash(std::span<const std::int32_t> tokens) {
  return XXH3_64bits(tokens.data(), tokens.size_bytes());
}

}  // namespace redspine
