// Every layout holds the same model, each element counted once, whatever is held how often.
#include "trainer/digest/held_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/test_device.h"
#include "tests/support/training_case.h"

namespace redspine::testing {
namespace {

class HeldParts : public ::testing::Test {
 protected:
  HeldParts() {
    if (world().rank() == 0) write_training_tokens(folder_);
    world().barrier();
  }

  // action(parts, store, tensor_axis) for every model and for all tensor degrees of the world.
  template <class Action>
  void for_each_layout(const Action& action) const {
    for (const auto& stored : stored_models()) {
      for (int num_tensor = 1; num_tensor <= world().size(); num_tensor *= 2) {
        SCOPED_TRACE(stored.first + " on tensor ranks: " + std::to_string(num_tensor));
        const Config config =
            training_config(stored.second, folder_, world().size() / num_tensor, num_tensor);
        const auto device = make_test_device();
        RunData data(config);
        Trainer trainer(config, data, world(), *device);
        const ProcessGroup& axis = trainer.mesh().group(Axis::tensor);
        const ParameterStore& store = trainer.model().parameters();
        action(held_parts(store, axis), store, axis);
      }
    }
  }

  std::string folder_ = shared_temporary_directory();
};

TEST_F(HeldParts, OfARankAreAllThatItHolds) {
  for_each_layout([](const auto& parts, const ParameterStore& store, const ProcessGroup&) {
    std::map<std::size_t, std::int64_t> counts;
    for (const HeldPart& part : parts) {
      const Parameter& parameter = store.parameters()[part.parameter];
      const std::int64_t begin = parameter.offset + counts[part.parameter];
      EXPECT_EQ(part.begin, begin) << parameter.spec.name;
      counts[part.parameter] += part.count;
    }
    for (std::size_t p = 0; p < store.parameters().size(); ++p) {
      EXPECT_EQ(counts[p], store.parameters()[p].value.count()) << store.parameters()[p].spec.name;
    }
  });
}

TEST_F(HeldParts, AreOwnedOnceAndHeldAsOftenAsTheySay) {
  for_each_layout([](const auto& parts, const ParameterStore& store, const ProcessGroup& axis) {
    std::vector<double> owned(store.parameters().size());
    double surplus = 0.0;  // what is held, less what owners say is held
    bool is_any_shared = false;
    for (const HeldPart& part : parts) {
      const auto count = static_cast<double>(part.count);
      surplus += count;
      if (part.is_owned) {
        owned[part.parameter] += count;
        surplus -= part.num_holders * count;
      }
      is_any_shared = is_any_shared || part.num_holders > 1;
    }
    axis.all_reduce(owned, ReduceOp::sum);
    for (std::size_t p = 0; p < owned.size(); ++p) {
      EXPECT_EQ(owned[p], static_cast<double>(store.parameters()[p].spec.global_shape.count()));
    }
    EXPECT_EQ(axis.all_reduce(surplus, ReduceOp::sum), 0.0);
    EXPECT_EQ(is_any_shared, axis.size() > 1);
  });
}

TEST_F(HeldParts, OfAStoreThatIsNotSplitAreWholeParameters) {
  for_each_layout([](const auto& parts, const ParameterStore& store, const ProcessGroup& axis) {
    if (axis.size() > 1) return;
    const std::vector<HeldPart> alone = held_parts(store);
    EXPECT_EQ(alone.size(), parts.size());
    for (std::size_t i = 0; i < std::min(alone.size(), parts.size()); ++i) {
      EXPECT_EQ(alone[i].begin, parts[i].begin);
      EXPECT_EQ(alone[i].count, parts[i].count);
      EXPECT_EQ(alone[i].num_holders, 1);
    }
  });
}

}  // namespace
}  // namespace redspine::testing
