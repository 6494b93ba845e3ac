// Do the regions that a search cuts a space into hold the plans of the space? Held against the ids of random spaces of
// all axes that training has.
#include "sweep/search/regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/model/layer_key.h"
#include "engine/spec/plan_axes.h"
#include "tests/support/seeds.h"

namespace shardscape::sweep {
namespace {

/// One or two of the axis's codes, in random order.
std::vector<std::int32_t> random_codes(CounterRng& random, const PlanAxisRow& row) {
  const std::int32_t low = row.kind == AxisKind::choice || row.kind == AxisKind::order ? 0 : row.low;
  const std::int32_t last = row.kind == AxisKind::choice  ? static_cast<std::int32_t>(row.names.size()) - 1
                            : row.kind == AxisKind::order ? kRankOrders - 1
                                                          : std::min(row.high, low + 5);
  const auto draw = [&] {
    return low + static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(last - low + 1)));
  };
  std::vector<std::int32_t> codes = {draw(), draw()};
  if (codes[0] == codes[1]) codes.pop_back();
  return codes;
}

TEST(SearchProperty, RegionsHoldThePlanOfEveryId) {
  std::uint64_t several = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(60); ++seed) {
    SCOPED_TRACE(seed);
    CounterRng random(seed, 0);
    SpaceSpec spec;
    for (const PlanAxisRow& row : kPlanRows)
      if (applies(row.phases, Phase::training)) spec[row.key] = {false, random_codes(random, row)};
    spec[PlanKey::data] = {true, {}};
    const DesignSpace space(spec, 24, Phase::training, 2);
    const Regions regions(space);
    std::vector<char> seen(space.plans(), 0);
    std::map<std::size_t, model::LayerKey> layers;  // by Family::key
    for (const Family& family : regions.families()) {
      std::uint64_t listed = 0;
      const model::LayerKey key = model::layer_key(family.plan, 1);
      ASSERT_EQ(layers.try_emplace(family.key, key).first->second, key);
      for (const Variant& variant : family.variants) {
        for (std::size_t entry = 0; entry < variant.listed.size(); ++entry, ++listed) {
          for (std::size_t choice = 0; choice < regions.choices().size(); ++choice) {
            const std::uint64_t id = regions.id(0, variant.listed[entry], choice);
            const ParallelPlan plan = space.point(id).plan;
            ASSERT_EQ(regions.plan(family, variant, entry, choice), plan);
            ASSERT_EQ(seen[id]++, 0) << id;
            // What floors of a family rest on: layers, stages and replicas of all of its plans are alike.
            ASSERT_EQ(model::layer_key(plan, 1), key);
            ASSERT_EQ(plan.pipeline, family.plan.pipeline);
            ASSERT_EQ(plan.data, family.plan.data);
            ASSERT_EQ(space.point(regions.id(1, variant.listed[entry], choice)).plan, plan);
          }
        }
      }
      ASSERT_EQ(listed, family.listed);
      several += family.variants.size() > 1 ? 1 : 0;
    }
    ASSERT_EQ(std::ranges::count(seen, 1), std::ssize(seen));
  }
  if (test::all_seeds()) {
    EXPECT_GT(several, 100U);  // the generator does exercise the claim
  }
}

}  // namespace
}  // namespace shardscape::sweep
