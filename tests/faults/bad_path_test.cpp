// Paths in the configuration that the system does not follow: into a folder that nobody may enter,
// over a link to itself, of a name that is too long.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/support/bad_paths.h"
#include "tests/support/refusal.h"

namespace redspine::testing {
namespace {

namespace fs = std::filesystem;

/// `part` of the configuration is replaced by `by`, with the path for {0}; so is `line`, which is
/// told, with the cause for {1}.
void expect_all_rejected(const char* part, const char* by, const char* line) {
  for (const BadPath& bad : bad_paths()) {
    SCOPED_TRACE(bad.cause);
    expect_rejected({.name = "",
                     .make =
                         [&](const Scene& scene) {
                           make_obstacles(scene.folder());
                           scene.edit(part, fmt::format(fmt::runtime(by), bad.path));
                         },
                     .lines = {fmt::format(fmt::runtime(line), bad.path, bad.cause)},
                     .ranks = {1, 2}});
  }
}

TEST(BadPath, OfTokenFilesIsRejectedAtItsKey) {
  expect_all_rejected("[{path: train.u16}]", "[{{path: {0}}}]",
                      "config.yaml:13:18: data.train[0].path: {0}: cannot be reached: {1}");
}

TEST(BadPath, OfAGlobIsRejectedAtItsKey) {
  expect_rejected(
      {.name = "",
       .make =
           [](const Scene& scene) {
             make_obstacles(scene.folder());
             scene.edit("path: validation.u16", "path: c*/*");
           },
       .lines = {"config.yaml:14:23: data.validation[0].path: c*/*: a folder on the way "
                 "cannot be listed: Permission denied"}});
}

TEST(BadPath, OfTheOutputIsRejectedAtItsKey) {
  expect_all_rejected("output_dir: runs", "output_dir: {0}",
                      "config.yaml:3:15: run.output_dir: cannot write {0}/run/*: {1}");
}

TEST(BadPath, OfACheckpointIsRejectedAtItsKey) {
  expect_all_rejected("train:\n  steps: 4", "checkpoint: {{resume: {0}}}\ntrain:\n  steps: 4",
                      "config.yaml:19:22: checkpoint.resume: {0}: {1}");
  expect_all_rejected("train:\n  steps: 4",
                      "checkpoint: {{initialize_from: {0}}}\ntrain:\n  steps: 4",
                      "config.yaml:19:31: checkpoint.initialize_from: {0}: {1}");
}

TEST(BadPath, OfTheConfigurationIsRejectedWithItsCause) {
  expect_rejected({.name = "",
                   .make =
                       [](const Scene& scene) {
                         make_obstacles(scene.folder());
                         fs::remove(scene.path("config.yaml"));
                         fs::create_symlink("closed/config.yaml", scene.path("config.yaml"));
                       },
                   .lines = {"config.yaml: cannot read the configuration: Permission denied"}});
}

TEST(BadPath, WithBytesThatAreNoTextIsRejectedBeforeTheFirstStep) {
  const auto expect = [](const char* part, const char* by, const char* line) {
    expect_rejected(
        {.name = "", .make = [=](const Scene& scene) { scene.edit(part, by); }, .lines = {line}});
  };
  expect("name: run", "name: caf\xe9",
         R"(config.yaml:2:9: run.name: read the text "caf\xe9": has the byte 0xe9 at 3, which is )"
         "no UTF-8; legal: text in UTF-8");
  expect("output_dir: runs", R"(output_dir: "a\0b")",
         R"(config.yaml:3:15: run.output_dir: read the quoted text "a\x00b": has a NUL at byte 1; )"
         "legal: text in UTF-8");
  expect_rejected({.name = "",
                   .make =
                       [](const Scene& scene) {
                         fs::rename(scene.path("train.u16"), scene.path("caf\xe9.u16"));
                         scene.edit("train: [{path: train.u16}]", "train: [{path: caf*.u16}]");
                       },
                   .lines = {R"(config.yaml:13:18: data.train[0].path: caf\xe9.u16: has the byte )"
                             "0xe9 at 3, which is no UTF-8"}});
}

}  // namespace
}  // namespace redspine::testing
