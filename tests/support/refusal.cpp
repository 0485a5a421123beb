#include "tests/support/refusal.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <ostream>

namespace redspine::testing {
namespace {

constexpr double kMaxSeconds = 10.0;
// A rank with its libraries and nothing else takes about 20 MB.
constexpr std::int64_t kMaxBytes = 100'000'000;

std::string rank_tag(int rank) {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return fmt::format("[rank {} @ {}] ", rank, host);
}

/// All there is in the scene, but for the job's output.
std::vector<std::string> contents(const Scene& scene) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           scene.folder(), std::filesystem::directory_options::skip_permission_denied)) {
    const std::string name = entry.path().lexically_relative(scene.folder()).string();
    if (name != "stdout" && name != "stderr") names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::string name_of(const ::testing::TestParamInfo<BadCase>& info) { return info.param.name; }

std::ostream& operator<<(std::ostream& out, const BadCase& bad_case) {
  return out << bad_case.name;
}

bool matches(std::string_view text, std::string_view pattern) {
  std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return text == pattern;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  text.remove_prefix(star);
  pattern.remove_prefix(star + 1);
  while ((star = pattern.find('*')) != std::string_view::npos) {
    const std::size_t at = text.find(pattern.substr(0, star));
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + star);
    pattern.remove_prefix(star + 1);
  }
  return text.ends_with(pattern);
}

void expect_told_by(int rank, const std::vector<std::string>& lines, const Ended& ended) {
  EXPECT_EQ(ended.exit_code, 2);
  EXPECT_LT(ended.seconds, kMaxSeconds);
  EXPECT_TRUE(ended.left_behind.empty()) << fmt::format("{}", ended.left_behind);
  const std::vector<std::string> told_lines = told(ended);
  bool is_as_expected = told_lines.size() == lines.size();
  for (std::size_t i = 0; is_as_expected && i < lines.size(); ++i) {
    is_as_expected = matches(told_lines[i], rank_tag(rank) + lines[i]);
  }
  EXPECT_TRUE(is_as_expected) << fmt::format("read\n  {}\nexpected from rank {}\n  {}",
                                             fmt::join(told_lines, "\n  "), rank,
                                             fmt::join(lines, "\n  "));
}

void expect_rejected(const BadCase& bad_case) {
  const Scene scene;
  bad_case.make(scene);
  const std::vector<std::string> before = contents(scene);
  for (const int num_ranks : bad_case.ranks) {
    SCOPED_TRACE(fmt::format("on {} ranks", num_ranks));
    // An mpirun whose job failed would sleep for a second before it ends.
    const std::string command =
        unprivileged("env OMPI_MCA_odls_base_sigkill_timeout=0 " +
                     Scene::on_ranks(num_ranks, Scene::train(bad_case.words)));
    Ended ended = scene.run(command);
    // A busy machine stalls any job now and then; one that really waits does so again.
    if (ended.seconds >= kMaxSeconds) ended = scene.run(command);
    expect_told_by(0, bad_case.lines, ended);
    EXPECT_LT(ended.peak_bytes, kMaxBytes);
    EXPECT_EQ(ended.output, "");
    EXPECT_EQ(contents(scene), before);
  }
}

}  // namespace redspine::testing
