// Does every enum's string table run there and back, without holes or duplicates?
#include "engine/base/enum_names.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

#include "engine/compute/gemm.h"
#include "engine/spec/device.h"
#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"
#include "engine/spec/precision.h"
#include "engine/spec/prediction.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"

namespace shardscape {
namespace {

template <class E>
class EnumTable : public testing::Test {};
using Enums = testing::Types<MlpKind, NormKind, NormPlace, QkNorm, PositionKind, PlanAxis, Recompute,
                             ScheduleKind, DimensionKind, LinkScope, Precision, AttentionKernel,
                             PartitionRule, Zero2Gradients, Phase, Status, Reason, Bound, Architecture>;
TYPED_TEST_SUITE(EnumTable, Enums);

TYPED_TEST(EnumTable, RoundTrip) {
  std::set<std::string_view> seen;
  const auto names = enum_names<TypeParam>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<TypeParam>(i);
    EXPECT_EQ(name_of(value), names[i]);
    EXPECT_EQ(parse_enum<TypeParam>(names[i]), value);
    EXPECT_FALSE(names[i].empty());
    EXPECT_TRUE(seen.insert(names[i]).second) << names[i];
  }
  EXPECT_EQ(name_of(static_cast<TypeParam>(names.size())), "?");
  EXPECT_EQ(parse_enum<TypeParam>("?"), std::nullopt);
  EXPECT_EQ(parse_enum<TypeParam>(""), std::nullopt);
}

// The last enumerator's name, so that a table cannot be shorter or shifted.
static_assert(name_of(Precision::fp4) == "fp4" && enum_names<Precision>().size() == kPrecisionCount);
static_assert(name_of(ScheduleKind::zero_bubble) == "zero_bubble");
static_assert(name_of(ScheduleKind::one_f_one_b) == "1f1b");
static_assert(name_of(PlanAxis::pipeline) == "pp" && enum_names<PlanAxis>().size() == kPlanAxes);
static_assert(name_of(DimensionKind::switched) == "switch");
static_assert(name_of(Status::unsupported) == "unsupported");
static_assert(name_of(Reason::schedule) == "schedule");
static_assert(name_of(Bound::link) == "link");
static_assert(name_of(Recompute::full) == "full");
static_assert(name_of(Zero2Gradients::last_microbatch) == "last_microbatch");

TEST(Precision, ElementSizes) {
  // 32, 32 (tf32 rounds fp32 storage), 16, 16, 8 and 4 bits.
  constexpr double kBits[] = {32, 32, 16, 16, 8, 4};
  for (std::size_t i = 0; i < kPrecisionCount; ++i) {
    EXPECT_EQ(8 * bytes_per_element(static_cast<Precision>(i)), kBits[i]);
  }
}

}  // namespace
}  // namespace shardscape
