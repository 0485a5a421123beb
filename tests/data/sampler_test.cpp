#include "data/sampler.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace redspine {
namespace {

using Place = std::tuple<int, int, std::int64_t>;  // entry, file, window

std::vector<Place> places(Sampler& sampler, int count) {
  std::vector<Place> found;
  for (int i = 0; i < count; ++i) {
    const SampleLocation at = sampler.next();
    found.emplace_back(at.entry, at.file, at.window);
  }
  return found;
}

TEST(Sampler, VisitsEachSampleOfAnEpochOnce) {
  // Files without a window, at the beginning, between others and at the end, are never picked.
  Sampler sampler({{1.0, {0, 5, 0, 7, 1, 0}}}, 42);
  for (int epoch = 0; epoch < 5; ++epoch) {
    const std::vector<Place> epoch_places = places(sampler, 13);
    const std::set<Place> seen(epoch_places.begin(), epoch_places.end());
    EXPECT_EQ(seen.size(), 13u);
    for (const auto& [entry, file, window] : seen) {
      EXPECT_EQ(entry, 0);
      EXPECT_TRUE((file == 1 && window < 5) || (file == 3 && window < 7) ||
                  (file == 4 && window < 1));
      EXPECT_GE(window, 0);
    }
  }
}

TEST(Sampler, OrdersEachEpochAnew) {
  Sampler sampler({{1.0, {50}}}, 42);
  const std::vector<Place> first = places(sampler, 50);
  const std::vector<Place> second = places(sampler, 50);
  EXPECT_NE(first, second);
}

TEST(Sampler, DependsOnTheSeedAlone) {
  Sampler sampler({{1.0, {50}}, {2.0, {70}}}, 1);
  Sampler same({{1.0, {50}}, {2.0, {70}}}, 1);
  Sampler other({{1.0, {50}}, {2.0, {70}}}, 2);
  const std::vector<Place> expected = places(sampler, 300);
  EXPECT_EQ(places(same, 300), expected);
  EXPECT_NE(places(other, 300), expected);
}

TEST(Sampler, OrdersEqualEntriesDifferently) {
  Sampler sampler({{1.0, {40}}, {1.0, {40}}}, 9);
  std::map<int, std::vector<std::int64_t>> windows;
  for (const auto& [entry, file, window] : places(sampler, 80)) windows[entry].push_back(window);
  EXPECT_EQ(windows[0].size(), 40u);
  EXPECT_NE(windows[0], windows[1]);
}

TEST(Sampler, RunsThroughASmallEntryMoreOften) {
  // Entry 1 has a tenth of the windows and the same weight: ten epochs of it in one of entry 0.
  Sampler sampler({{1.0, {100}}, {1.0, {10}}}, 9);
  std::map<Place, int> counts;
  for (const Place& place : places(sampler, 200)) ++counts[place];
  EXPECT_EQ(counts.size(), 110u);
  for (const auto& [place, count] : counts) EXPECT_EQ(count, std::get<0>(place) == 0 ? 1 : 10);
}

TEST(Sampler, ContinuesAnywhereAsIfItHadWalked) {
  const std::vector<SampleSource> sources = {{0.37, {3, 4}}, {0.63, {11}}};
  Sampler walking(sources, 5);
  const std::vector<Place> all = places(walking, 500);
  for (const std::size_t start : {0u, 1u, 17u, 250u, 499u}) {
    Sampler resumed(sources, 5);
    resumed.seek(static_cast<std::int64_t>(start));
    const std::vector<Place> rest(all.begin() + static_cast<std::ptrdiff_t>(start), all.end());
    EXPECT_EQ(places(resumed, static_cast<int>(rest.size())), rest);
  }
}

}  // namespace
}  // namespace redspine
