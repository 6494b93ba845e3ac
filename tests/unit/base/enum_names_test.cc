#include "engine/base/enum_names.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/compute/gemm.h"
#include "engine/prediction.h"
#include "engine/spec/fabric.h"
#include "engine/spec/model.h"
#include "engine/spec/plan.h"
#include "engine/spec/precision.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"

namespace shardscape {
namespace {

template <class E>
class EnumTable : public testing::Test {};

using Enums =
    testing::Types<Status, Reason, Bound, DimensionKind, LinkScope, MlpKind, NormKind, PositionKind, PlanAxis,
                   Recompute, ScheduleKind, Precision, AttentionKernel, PartitionRule, Zero2Gradients, Phase>;
TYPED_TEST_SUITE(EnumTable, Enums);

TYPED_TEST(EnumTable, EveryNameParsesBackToItsValue) {
  const auto names = enum_names<TypeParam>();
  std::set<std::string_view> distinct;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto value = static_cast<TypeParam>(i);
    EXPECT_EQ(name_of(value), names[i]);
    ASSERT_TRUE(parse_enum<TypeParam>(names[i]).has_value()) << names[i];
    EXPECT_EQ(*parse_enum<TypeParam>(names[i]), value);
    EXPECT_TRUE(distinct.insert(names[i]).second) << "twice: " << names[i];
  }
  EXPECT_EQ(name_of(static_cast<TypeParam>(names.size())), "?");
  EXPECT_FALSE(parse_enum<TypeParam>("no such name").has_value());
  EXPECT_FALSE(parse_enum<TypeParam>("").has_value());
}

// The tables have one name per enumerator: the last enumerator has the last name.
static_assert(enum_names<Status>().size() == static_cast<std::size_t>(Status::unsupported) + 1);
static_assert(enum_names<Reason>().size() == static_cast<std::size_t>(Reason::schedule) + 1);
static_assert(enum_names<Bound>().size() == static_cast<std::size_t>(Bound::link) + 1);
static_assert(enum_names<Precision>().size() == kPrecisionCount);
static_assert(enum_names<PlanAxis>().size() == kPlanAxes);

TEST(EnumTable, NamesStandAtTheirEnumerators) {
  EXPECT_EQ(name_of(ScheduleKind::one_f_one_b), "1f1b");
  EXPECT_EQ(name_of(DimensionKind::switched), "switch");
  EXPECT_EQ(name_of(Precision::fp8), "fp8");
  EXPECT_EQ(name_of(Status::unreachable), "unreachable");
  EXPECT_EQ(name_of(Reason::batch_by_data), "batch_by_data");
  EXPECT_EQ(name_of(PlanAxis::pipeline), "pp");
}

}  // namespace
}  // namespace shardscape
