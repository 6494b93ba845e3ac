#include "sweep/space/constraint.h"

#include <array>
#include <cmath>

#include "engine/base/check.h"
#include "engine/spec/plan_axes.h"

namespace shardscape::sweep {

namespace {

// The plan's axes and a few names that follow from plan and workload.
constexpr std::size_t kMostNames = kPlanRows.size() + 7;

struct Name {
  ExpressionName name;
  /// A plan axis (`row`), or a value computed from plan and workload (`value`).
  const PlanAxisRow* row = nullptr;
  double (*value)(const ParallelPlan& plan, const WorkloadSpec& workload) = nullptr;
};

double whole_microbatches(const ParallelPlan& plan, const WorkloadSpec& workload) {
  const double samples = static_cast<double>(plan.data) * plan.microbatch;
  return std::floor(static_cast<double>(workload.global_batch) / samples);
}

const std::vector<Name>& table() {
  static const std::vector<Name> kTable = [] {
    std::vector<Name> names;
    const auto add_axis = [&](const PlanAxisRow& row) {
      const NameKind kind = row.kind == AxisKind::choice ? NameKind::choice
                            : row.kind == AxisKind::flag ? NameKind::truth
                                                         : NameKind::number;
      names.push_back({{std::string(row.name), kind, {row.names.begin(), row.names.end()}}, &row});
      if (row.column != row.name) names.back().name.also = {row.column};
    };
    const auto add_axes = [&](AxisKind kind, AxisKind other) {
      for (const PlanAxisRow& row : kPlanRows) {
        if (row.kind == kind || row.kind == other) add_axis(row);
      }
    };
    using Plan = const ParallelPlan&;
    using Load = const WorkloadSpec&;
    const auto add = [&](const char* name, double (*value)(Plan, Load)) {
      names.push_back({{name}, nullptr, value});
    };
    for (const PlanAxis axis : enum_values<PlanAxis>()) add_axis(row_of(axis));
    add_axes(AxisKind::flag, AxisKind::integer);
    add("gpus", [](Plan p, Load) { return static_cast<double>(p.gpus()); });
    add("microbatches", whole_microbatches);
    add_axes(AxisKind::choice, AxisKind::choice);
    add("sequence_length", [](Plan, Load w) { return static_cast<double>(w.sequence_length); });
    add("global_batch", [](Plan, Load w) { return static_cast<double>(w.global_batch); });
    add("concurrency", [](Plan, Load w) { return static_cast<double>(w.concurrency); });
    for (const char* name : {"request_rate", "request_rate_per_s"})  // as the study and as results name it
      names.push_back({{name, NameKind::number, {}, true}, nullptr, [](Plan, Load w) {
                         return w.load ? w.load->request_rate : 0;
                       }});
    add_axes(AxisKind::pool, AxisKind::pool);
    add("prefill_gpus", [](Plan p, Load) { return static_cast<double>(p.prefill.gpus()); });
    return names;
  }();
  return kTable;
}

}  // namespace

std::span<const ExpressionName> constraint_names() {
  static const std::vector<ExpressionName> kNames = [] {
    std::vector<ExpressionName> names;
    for (const Name& entry : table()) names.push_back(entry.name), names.back().unit = "1";
    return names;
  }();
  return kNames;
}

tl::expected<Constraint, ExpressionError> Constraint::parse(std::string_view text) {
  auto expression = Expression::parse(text, constraint_names());
  if (!expression) return tl::unexpected(std::move(expression.error()));
  return Constraint(*std::move(expression));
}

bool Constraint::holds(const ParallelPlan& plan, const WorkloadSpec& workload) const {
  std::array<double, kMostNames> values;
  SHARDSCAPE_CHECK(table().size() <= values.size(), table().size());
  for (const std::size_t index : expression_.references()) {
    const Name& name = table()[index];
    values[index] = name.row != nullptr ? name.row->get(plan) : name.value(plan, workload);
  }
  return expression_.holds(values);
}

std::vector<std::string_view> Constraint::names() const {
  std::vector<std::string_view> names;
  for (const std::size_t index : expression_.references()) names.emplace_back(table()[index].name.name);
  return names;
}

}  // namespace shardscape::sweep
