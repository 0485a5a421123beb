#include "trainer/checkpoint/sight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "data/io/file.h"
#include "data/io/folders.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/manifest.h"

namespace redspine {
namespace {

// What a rank sees of something: a line that describes it, and a hash of the rest. Empty: nothing.
using Sights = std::vector<std::string>;  // [rank]

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::vector<std::string> names_of(const ProcessGroup& world) {
  std::vector<std::string> names = world.all_gather(ProcessGroup::host_name());
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    names[rank] = fmt::format("rank {} @ {}", rank, names[rank]);
  }
  return names;
}

// Which rank sees `what` differently, or nothing. Who sees nothing is the one to be named.
std::string difference(const Sights& sights, const std::string& what, const ProcessGroup& world) {
  if (std::adjacent_find(sights.begin(), sights.end(), std::not_equal_to<>()) == sights.end()) {
    return "";
  }
  const std::vector<std::string> names = names_of(world);
  const auto name_of = [&](Sights::const_iterator sight) {
    return names[static_cast<std::size_t>(sight - sights.begin())];
  };
  const auto blind = std::find(sights.begin(), sights.end(), "");
  if (blind != sights.end()) {
    const auto seeing = std::find_if(sights.begin(), sights.end(),
                                     [](const std::string& sight) { return !sight.empty(); });
    return fmt::format("{} does not see {}, but {} does", name_of(blind), what, name_of(seeing));
  }
  const auto other = std::find_if(sights.begin(), sights.end(), [&](const std::string& sight) {
    return sight != sights.front();
  });
  return fmt::format("{} sees another {} ({}) than {} ({})", name_of(other), what,
                     first_line(*other), names.front(), first_line(sights.front()));
}

constexpr const char* kRule = "all ranks must see the same files, and nothing was changed";

std::string sight_of_directory(const std::string& directory) {
  std::string list;
  std::size_t num_files = 0;
  std::int64_t num_bytes = 0;
  try {
    for (const std::string& name : names_in(directory)) {
      const std::string path = fmt::format("{}/{}", directory, name);
      struct stat status = {};
      if (::stat(path.c_str(), &status) != 0) {
        list += fmt::format("{}: {}\n", name, std::strerror(errno));
        continue;
      }
      ++num_files;
      num_bytes += status.st_size;
      list += fmt::format("{} {}\n", name, status.st_size);
      if (name == kManifestName || name == "config.json") list += hash_text(read_text(path));
    }
  } catch (const std::exception& error) {
    list += error.what();  // says it better where the directory is used
  }
  if (list.empty()) return "";
  return fmt::format("{} files of {} bytes\n{}", num_files, num_bytes, hash_text(list));
}

// Opened, since file systems may remember for a while what is there no more, or not yet.
std::string sight_of_step(const CheckpointStore& store, std::int64_t step) {
  const std::string path = store.path_of(step);
  try {
    return fmt::format("{} bytes of manifest.json",
                       File::open(path + "/" + kManifestName, "").size());
  } catch (const std::exception&) {
    std::error_code ignored;
    return std::filesystem::exists(path, ignored) ? "without manifest.json" : "";
  }
}

// The steps that any rank sees.
std::vector<std::int64_t> all_steps(const CheckpointStore& store, const ProcessGroup& world) {
  std::string mine;
  std::string failure;
  try {
    mine = fmt::format("{}", fmt::join(store.steps(), " "));
  } catch (const std::exception& error) {
    failure = error.what();
  }
  const std::vector<std::string> failures = world.all_gather(failure);
  for (std::size_t rank = 0; rank < failures.size(); ++rank) {
    if (failures[rank].empty()) continue;
    throw ConfigError("checkpoint.resume",
                      fmt::format("{}: {}", names_of(world)[rank], failures[rank]));
  }
  std::set<std::int64_t> steps;
  for (const std::string& text : world.all_gather(mine)) {
    std::istringstream stream(text);
    for (std::int64_t step = 0; stream >> step;) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

}  // namespace

void check_same_directory(const std::string& directory, const std::string& key,
                          const ProcessGroup& world) {
  const std::string found =
      difference(world.all_gather(sight_of_directory(directory)), directory, world);
  if (!found.empty()) throw ConfigError(key, fmt::format("{}; {}", found, kRule));
}

std::vector<std::int64_t> agreed_steps(const CheckpointStore& store, const ProcessGroup& world) {
  std::vector<std::int64_t> steps = all_steps(store, world);
  std::string mine;
  for (const std::int64_t step : steps) mine += sight_of_step(store, step) + '\n';
  std::vector<std::istringstream> lines;
  for (const std::string& text : world.all_gather(mine)) lines.emplace_back(text);
  std::string found;  // of the newest step
  for (const std::int64_t step : steps) {
    Sights sights(lines.size());
    for (std::size_t rank = 0; rank < lines.size(); ++rank) std::getline(lines[rank], sights[rank]);
    const std::string here = difference(sights, store.path_of(step), world);
    if (!here.empty()) found = here;
  }
  if (!found.empty()) throw ConfigError("checkpoint.resume", fmt::format("{}; {}", found, kRule));
  return steps;
}

void check_shared_folder(const CheckpointStore& store, const ProcessGroup& world) {
  if (world.size() == 1) return;
  const std::string folder = store.partial_path_of(0);
  const auto mark_of = [&](int rank) { return fmt::format("{}/rank-{}", folder, rank); };
  const auto attempt = [&](const auto& action) {
    std::string failure;
    try {
      action();
    } catch (const std::exception& error) {
      failure = error.what();
    }
    return world.all_gather(failure);
  };
  const bool is_first = world.rank() == 0;
  std::vector<std::string> failures = attempt([&] {
    if (is_first) store.begin(0);
  });
  if (failures.front().empty()) {
    failures = attempt([&] { File::create(mark_of(world.rank())); });
    // What is written elsewhere, into a folder of the same name, is a failure as well.
    std::string unseen;
    for (int rank = 0; is_first && rank < world.size(); ++rank) {
      if (!std::filesystem::exists(mark_of(rank))) unseen += fmt::format("{} ", rank);
    }
    std::istringstream ranks(world.all_gather(unseen).front());
    for (std::size_t rank = 0; ranks >> rank;) {
      if (failures[rank].empty()) failures[rank] = mark_of(static_cast<int>(rank)) + ": is unseen";
    }
    attempt([&] {
      if (is_first) remove_folder(folder);  // else the next start does
    });
  }
  const auto failed = std::find_if(failures.begin(), failures.end(),
                                   [](const std::string& text) { return !text.empty(); });
  if (failed == failures.end()) return;
  const std::vector<std::string> names = names_of(world);
  const auto rank = static_cast<std::size_t>(failed - failures.begin());
  throw ConfigError(
      "run.output_dir",
      fmt::format("{} cannot save where {} does, in {}: {}; all ranks must see that folder",
                  names[rank], names.front(), store.folder(), *failed));
}

}  // namespace redspine
