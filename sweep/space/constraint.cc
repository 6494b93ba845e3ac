#include "sweep/space/constraint.h"

#include <array>
#include <cmath>

namespace shardscape::sweep {

namespace {

enum Slot : std::size_t {
  kTp,
  kCp,
  kDp,
  kPp,
  kSp,
  kZero,
  kMbs,
  kVpp,
  kGpus,
  kMicrobatches,
  kRecompute,
  kSchedule,
  kSequenceLength,
  kGlobalBatch,
  kConcurrency,
  kPrefillTp,
  kPrefillPp,
  kPrefillDp,
  kPrefillGpus,
  kSlots
};

template <class E>
ExpressionName choice(std::string name) {
  ExpressionName entry{std::move(name), NameKind::choice, {}};
  for (const std::string_view value : enum_names<E>()) entry.choices.emplace_back(value);
  return entry;
}

const std::array<ExpressionName, kSlots>& table() {
  static const std::array<ExpressionName, kSlots> kTable = {{{"tp"},
                                                             {"cp"},
                                                             {"dp"},
                                                             {"pp"},
                                                             {"sp", NameKind::truth},
                                                             {"zero"},
                                                             {"mbs"},
                                                             {"vpp"},
                                                             {"gpus"},
                                                             {"microbatches"},
                                                             choice<Recompute>("recompute"),
                                                             choice<ScheduleKind>("schedule"),
                                                             {"sequence_length"},
                                                             {"global_batch"},
                                                             {"concurrency"},
                                                             {"prefill_tp"},
                                                             {"prefill_pp"},
                                                             {"prefill_dp"},
                                                             {"prefill_gpus"}}};
  return kTable;
}

double whole_microbatches(const ParallelPlan& plan, const WorkloadSpec& workload) {
  const double samples = static_cast<double>(plan.data) * plan.microbatch;
  return std::floor(static_cast<double>(workload.global_batch) / samples);
}

}  // namespace

std::span<const ExpressionName> constraint_names() { return table(); }

tl::expected<Constraint, ExpressionError> Constraint::parse(std::string_view text) {
  auto expression = Expression::parse(text, table());
  if (!expression) return tl::unexpected(std::move(expression.error()));
  return Constraint(*std::move(expression));
}

bool Constraint::holds(const ParallelPlan& plan, const WorkloadSpec& workload) const {
  std::array<double, kSlots> values;
  values[kTp] = plan.tensor;
  values[kCp] = plan.context;
  values[kDp] = plan.data;
  values[kPp] = plan.pipeline;
  values[kSp] = plan.sequence_parallel ? 1 : 0;
  values[kZero] = plan.zero_stage;
  values[kMbs] = plan.microbatch;
  values[kVpp] = plan.virtual_stages;
  values[kGpus] = static_cast<double>(plan.gpus());
  values[kMicrobatches] = whole_microbatches(plan, workload);
  values[kRecompute] = static_cast<double>(plan.recompute);
  values[kSchedule] = static_cast<double>(plan.schedule);
  values[kSequenceLength] = static_cast<double>(workload.sequence_length);
  values[kGlobalBatch] = static_cast<double>(workload.global_batch);
  values[kConcurrency] = static_cast<double>(workload.concurrency);
  values[kPrefillTp] = plan.prefill.tensor;
  values[kPrefillPp] = plan.prefill.pipeline;
  values[kPrefillDp] = plan.prefill.data;
  values[kPrefillGpus] = static_cast<double>(plan.prefill.gpus());
  return expression_.holds(values);
}

std::vector<std::string_view> Constraint::names() const {
  std::vector<std::string_view> names;
  for (const std::size_t index : expression_.references()) names.emplace_back(table()[index].name);
  return names;
}

}  // namespace shardscape::sweep
