// Do the tables of plan axes and of classes of time name each of them once, and do their accessors reach what
// they name?
#include "engine/spec/plan_axes.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/spec/time_class.h"

namespace shardscape {
namespace {

TEST(PlanAxes, NamesAndColumnsAreDistinct) {
  std::set<std::string> names, columns;
  for (const PlanAxisRow& row : kPlanRows) {
    EXPECT_TRUE(names.insert(std::string(row.name)).second) << row.name;
    EXPECT_TRUE(columns.insert(row.column).second) << row.column;
    EXPECT_EQ(find_plan_column(row.column), &row);
  }
  EXPECT_EQ(find_plan_column("step_time_s"), nullptr);
}

// A plan that no axis has anything to do with has the idle code of each; a set code is read again, and leaves the
// others alone.
TEST(PlanAxes, SetReachesItsOwnAxisAndNoOther) {
  const ParallelPlan idle;
  for (const PlanAxisRow& row : kPlanRows) {
    EXPECT_EQ(row.get(idle), row.idle) << row.name;
    ParallelPlan plan = idle;
    const std::int32_t other = row.idle == 0 ? 1 : row.idle - 1;
    row.set(plan, other);
    for (const PlanAxisRow& read : kPlanRows)
      EXPECT_EQ(read.get(plan), &read == &row ? other : read.idle) << row.name << ' ' << read.name;
    row.set(plan, row.idle);
    EXPECT_EQ(plan, idle) << row.name;
  }
}

TEST(PlanAxes, ChoicesAndOrdersReadTheirOwnTexts) {
  EXPECT_EQ(code_text(row_of(PlanKey::recompute), 2), "full");
  EXPECT_EQ(parse_code(row_of(PlanKey::schedule), "zero_bubble"), 3);
  EXPECT_EQ(parse_code(row_of(PlanKey::schedule), "zero"), std::nullopt);
  EXPECT_EQ(code_text(row_of(PlanKey::order), 0), "tp-cp-dp-pp");
  EXPECT_EQ(parse_code(row_of(PlanKey::order), "pp-dp-cp-tp"), 23);
  EXPECT_EQ(parse_code(row_of(PlanKey::order), "pp-dp-cp"), std::nullopt);
  EXPECT_EQ(code_text(row_of(PlanKey::sequence_parallel), 1), "1");
}

TEST(PlanAxes, DegreesAreTheAxesOfRankOrders) {
  std::size_t degrees = 0;
  for (const PlanAxisRow& row : kPlanRows) degrees += row.kind == AxisKind::degree ? 1U : 0U;
  EXPECT_EQ(degrees, kPlanAxes);
  ParallelPlan plan;
  std::int32_t value = 2;
  for (const PlanAxis axis : enum_values<PlanAxis>()) {
    row_of(axis).set(plan, value);
    EXPECT_EQ(plan.degree(axis), value++) << name_of(axis);
  }
  EXPECT_EQ(plan.gpus(), 2 * 3 * 4 * 5);
  EXPECT_EQ(degree_names("*"), "tp*cp*pp*dp");
  EXPECT_EQ(order_names(), "tp, cp, dp and pp");
}

TEST(TimeClasses, OnlyGroupsOfExpertsShareOne) {
  std::set<TimeClass> classes;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    const bool shared = group == ParallelGroup::expert_tensor || group == ParallelGroup::expert_data;
    EXPECT_EQ(classes.insert(class_of(group)).second, !shared) << name_of(group);
  }
  EXPECT_EQ(class_of(ParallelGroup::expert_data), TimeClass::data_comm);
  EXPECT_TRUE(is_communication(TimeClass::context_comm));
  EXPECT_FALSE(is_communication(TimeClass::kv_transfer));
}

TEST(TimeClasses, TimesAddUpAndScaleClassByClass) {
  Breakdown a, b;
  a[TimeClass::compute] = Seconds(1);
  a[TimeClass::host] = Seconds(2);
  b[TimeClass::host] = Seconds(3);
  b[TimeClass::kv_transfer] = Seconds(4);
  a += 2 * b;
  EXPECT_EQ(a[TimeClass::compute], Seconds(1));
  EXPECT_EQ(a[TimeClass::host], Seconds(8));
  EXPECT_EQ(a.total(), Seconds(1 + 8 + 8));
}

}  // namespace
}  // namespace shardscape
