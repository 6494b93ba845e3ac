// Does every enum's string table run there and back, without holes or duplicates?
#include "engine/base/enum_names.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <vector>

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

/// A table without the type of its enum: code for each of these types would take longer to compile than all else here.
struct EnumTable {
  std::span<const std::string_view> names;
  std::string_view (*name)(std::size_t value);
  std::optional<std::size_t> (*parse)(std::string_view name);
};
template <class E>
EnumTable table_of() {
  return {enum_names<E>(), [](std::size_t value) { return name_of(static_cast<E>(value)); },
          [](std::string_view name) -> std::optional<std::size_t> {
            const std::optional<E> value = parse_enum<E>(name);
            return value ? std::optional(static_cast<std::size_t>(*value)) : std::nullopt;
          }};
}
template <class... Enums>
std::vector<EnumTable> tables_of() {
  return {table_of<Enums>()...};
}

TEST(EnumTable, RoundTrip) {
  for (const EnumTable& table :
       tables_of<MlpKind, NormKind, NormPlace, QkNorm, PositionKind, PlanAxis, Recompute, ScheduleKind,
                 DimensionKind, LinkScope, Precision, AttentionKernel, PartitionRule, Zero2Gradients, Phase,
                 Status, Reason, Bound, Architecture>()) {
    ASSERT_FALSE(table.names.empty());
    SCOPED_TRACE(table.names.front());
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < table.names.size(); ++i) {
      EXPECT_EQ(table.name(i), table.names[i]);
      EXPECT_EQ(table.parse(table.names[i]), i);
      EXPECT_FALSE(table.names[i].empty());
      EXPECT_TRUE(seen.insert(table.names[i]).second) << table.names[i];
    }
    EXPECT_EQ(table.name(table.names.size()), "?");
    EXPECT_EQ(table.parse("?"), std::nullopt);
    EXPECT_EQ(table.parse(""), std::nullopt);
  }
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
