#include "trainer/checkpoint/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "data/io/folders.h"
#include "tensor/error.h"
#include "trainer/checkpoint/format/manifest.h"

namespace redspine {
namespace {

constexpr std::string_view kPrefix = "step_";
constexpr std::size_t kNumDigits = 8;  // more where a step has more
constexpr std::string_view kAside = ".aside-";

bool exists(const std::string& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

/// The step of "step_00000500"; nothing for other names, also such as "step_500".
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view digits = name.substr(kPrefix.size());
  if (digits.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::int64_t step = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (failure != std::errc()) return std::nullopt;
  const bool is_our_spelling = fmt::format("{:0{}}", step, kNumDigits) == digits;
  return is_our_spelling ? std::optional(step) : std::nullopt;
}

/// What "step_00000500.aside-2" was, and which of that step it is; nothing for other names.
struct Aside {
  std::int64_t step;
  int number;
};

std::optional<Aside> aside_of(std::string_view name) {
  const std::size_t dot = std::min(name.find(kAside), name.size());
  const auto step = step_of(name.substr(0, dot));
  if (!step || dot == name.size()) return std::nullopt;
  const std::string_view digits = name.substr(dot + kAside.size());
  int number = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (failure != std::errc() || fmt::format("{}", number) != digits) return std::nullopt;
  return Aside{*step, number};
}

std::string absolute(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(path, failure);
  std::string text = failure ? path : canonical.string();
  while (text.size() > 1 && text.back() == '/') text.pop_back();
  return text;
}

}  // namespace

CheckpointStore::CheckpointStore(std::string folder, std::string run_id)
    : folder_(std::move(folder)), run_id_(std::move(run_id)) {}

std::vector<std::int64_t> CheckpointStore::steps() const {
  std::vector<std::int64_t> steps;
  for (const std::string& name : names_in(folder_)) {
    if (const auto step = step_of(name)) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::string CheckpointStore::path_of(std::int64_t step) const {
  return fmt::format("{}/{}{:0{}}", folder_, kPrefix, step, kNumDigits);
}

std::string CheckpointStore::partial_path_of(std::int64_t step) const {
  return fmt::format("{}.{}.partial", path_of(step), run_id_);
}

std::string CheckpointStore::begin(std::int64_t step) const {
  std::string path = partial_path_of(step);
  if (exists(path)) remove_folder(path);
  make_folder(path);
  return path;
}

void CheckpointStore::publish(std::int64_t step) const {
  if (exists(path_of(step))) set_aside(step);
  rename_path(partial_path_of(step), path_of(step));
  sync_folder(folder_);
}

std::string CheckpointStore::set_aside(std::int64_t step) const {
  const std::string path = path_of(step);
  int number = 1;
  while (exists(fmt::format("{}{}{}", path, kAside, number))) ++number;
  std::string target = fmt::format("{}{}{}", path, kAside, number);
  rename_path(path, target);
  return target;
}

std::optional<std::int64_t> CheckpointStore::newest_before(std::int64_t step) const {
  const std::vector<std::int64_t> all = steps();
  const auto end = std::lower_bound(all.begin(), all.end(), step);
  return end == all.begin() ? std::nullopt : std::optional(*std::prev(end));
}

std::vector<std::string> CheckpointStore::superseded(const TrainingProgress& newest,
                                                     const Retention& retention) const {
  if (retention.keep == 0) return {};
  std::vector<std::int64_t> ours;
  for (const std::int64_t step : steps()) {
    if (step <= newest.step && is_ours_alone(path_of(step))) ours.push_back(step);
  }
  // The newest may turn out to be beyond repair at its first step.
  const auto unproven = std::lower_bound(ours.begin(), ours.end(), newest.last_applied_step());
  const std::int64_t newest_good = unproven == ours.begin() ? newest.step : *std::prev(unproven);
  const std::size_t num_kept = std::min(static_cast<std::size_t>(retention.keep), ours.size());
  std::vector<std::string> paths;
  for (std::size_t i = 0; i + num_kept < ours.size(); ++i) {
    const std::int64_t step = ours[i];
    const bool stays = retention.keep_every > 0 && step % retention.keep_every == 0;
    if (!stays && step != newest.step && step != newest_good) paths.push_back(path_of(step));
  }
  for (std::string& path : superseded_asides(ours, retention.keep))
    paths.push_back(std::move(path));
  if (retention.resumed_from) {
    std::erase_if(paths, [resumed_from = absolute(*retention.resumed_from)](
                             const std::string& path) { return absolute(path) == resumed_from; });
  }
  return paths;
}

std::vector<std::string> CheckpointStore::superseded_asides(const std::vector<std::int64_t>& ours,
                                                            std::int64_t keep) const {
  const std::vector<std::string> names = names_in(folder_);
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const auto aside = aside_of(name);
    if (!aside) continue;
    const auto num_in_place = ours.end() - std::lower_bound(ours.begin(), ours.end(), aside->step);
    const auto num_aside =
        std::count_if(names.begin(), names.end(), [&aside](const std::string& other) {
          const auto newer = aside_of(other);
          return newer && newer->step == aside->step && newer->number > aside->number;
        });
    std::string path = folder_ + "/" + name;
    if (num_in_place + num_aside >= keep && is_ours_alone(path)) paths.push_back(std::move(path));
  }
  return paths;
}

void CheckpointStore::remove(const std::string& path) const {
  const std::string name = path.substr(path.rfind('/') + 1);
  const auto step = step_of(std::string_view(name).substr(0, name.find('.')));
  // Under the name of an unfinished save it is complete for nobody, however far deleting gets.
  const std::string partial = partial_path_of(*step);
  rename_path(path, partial);
  remove_folder(partial);
}

std::vector<std::string> CheckpointStore::remove_stale_partials() const {
  std::vector<std::string> removed;
  const std::string ending = fmt::format(".{}.partial", run_id_);
  for (const std::string& name : names_in(folder_)) {
    if (!name.ends_with(ending)) continue;
    if (!step_of(std::string_view(name).substr(0, name.size() - ending.size()))) continue;
    remove_folder(folder_ + "/" + name);
    removed.push_back(folder_ + "/" + name);
  }
  return removed;
}

bool CheckpointStore::is_ours_alone(const std::string& path) const {
  try {
    const Manifest manifest = read_manifest(path);
    if (read_training_record(path).run_id != run_id_) return false;
    const std::vector<std::string> names = names_in(path);
    return std::all_of(names.begin(), names.end(), [&manifest](const std::string& name) {
      return name == kManifestName || manifest.files.contains(name);
    });
  } catch (const std::exception&) {
    return false;  // incomplete or damaged: nobody knows whose it is
  }
}

}  // namespace redspine
