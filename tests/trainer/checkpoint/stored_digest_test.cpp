// The digest of stored tensors is that of the parameters in them, in whatever order and orientation
// they lie and however they are read.
#include "trainer/checkpoint/stored_digest.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/support/random_tensor.h"
#include "tests/support/training_case.h"
#include "trainer/checkpoint/state_digests.h"

namespace redspine::testing {
namespace {

// A parameter of any values, in its own orientation.
std::vector<float> values_of(const StoredPart& part) {
  return random_values(part.shape.count(), static_cast<unsigned>(part.parameter.size()));
}

std::vector<float> stored_values(const StoredTensor& tensor) {
  std::vector<float> stored(static_cast<std::size_t>(tensor.shape.count()));
  for (const StoredPart& part : tensor.parts) {
    const Slab all{.parameter_shape = part.shape, .dim = 0, .range = {0, part.shape[0]}};
    copy_slab_to_stored(stored, values_of(part), tensor, region_of(tensor, part, all));
  }
  return stored;
}

TEST(StoredDigest, IsThatOfTheParametersInIt) {
  for (const auto& [name, model] : stored_models()) {
    for (const StoredTensor& tensor : stored_tensors(model)) {
      SCOPED_TRACE(name + ": " + tensor.name);
      const std::vector<float> stored = stored_values(tensor);
      for (const StatePart state : kStateParts) {
        Digest expected;
        for (const StoredPart& part : tensor.parts) {
          expected += digest_of(values_of(part), digest_key(state, part.parameter, part.shape), 0);
        }
        for (const std::size_t piece :
             {std::size_t{1}, std::size_t{7}, std::size_t{50}, std::size_t{1} << 20}) {
          StoredDigest digest(tensor, state);
          for (std::size_t first = 0; first < stored.size(); first += piece) {
            digest.add(static_cast<std::int64_t>(first),
                       std::span(stored).subspan(first, std::min(piece, stored.size() - first)));
          }
          EXPECT_EQ(digest.sum(), expected) << piece;
        }
      }
    }
  }
}

TEST(StoredDigest, OfAMomentIsNotThatOfTheWeights) {
  const StoredTensor tensor = stored_tensors(stored_models()[0].second).front();
  const std::vector<float> zeros(static_cast<std::size_t>(tensor.shape.count()));
  std::map<std::string, StatePart> digests;
  for (const StatePart state : kStateParts) {
    StoredDigest digest(tensor, state);
    digest.add(0, zeros);
    digests[digest.sum().text()] = state;
  }
  EXPECT_EQ(digests.size(), kStateParts.size());
}

TEST(StoredTensors, AreFoundByTheirNamesInTheFiles) {
  const ModelConfig model = stored_models()[0].second;
  const StoredTensors tensors(model);
  EXPECT_EQ(tensors.num_tensors(), stored_tensors(model).size());
  const NamedTensor* moment = tensors.find("exp_avg.transformer.wte.weight");
  ASSERT_NE(moment, nullptr);
  EXPECT_EQ(moment->part, StatePart::exp_avg);
  EXPECT_EQ(moment->tensor->name, "transformer.wte.weight");
  EXPECT_EQ(tensors.find("transformer.wte.weight")->part, StatePart::value);
  EXPECT_EQ(tensors.find("transformer.wte.bias"), nullptr);
}

}  // namespace
}  // namespace redspine::testing
