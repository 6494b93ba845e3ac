// THE table of plan axes: what a plan of the design space chooses. Studies, ids of points, `--point`,
// constraints, columns of results, JSON and the tables of the commands list the axes from here.
//
// Every value of an axis is a code: the number itself, 0 or 1 of a flag, the place of a choice among its
// names, rank_order_code() of an order.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "engine/spec/phase.h"
#include "engine/spec/plan.h"

namespace shardscape {

/// The axes of a plan, in the order of columns and of `--point`. In the ids of points, of any two axes that are no
/// degrees the one listed first varies more slowly.
enum class PlanKey : std::uint8_t {
  tensor,
  sequence_parallel,
  context,
  pipeline,
  data,
  expert,
  expert_tensor,
  zero_stage,
  recompute,
  microbatch,
  schedule,
  virtual_stages,
  prefill_tensor,
  prefill_pipeline,
  prefill_data,
  prefill_expert,
  prefill_expert_tensor,
  ffn,
  order
};

enum class AxisKind : std::uint8_t {
  degree,   ///< degree along an axis of PlanAxis; these multiply to the number of GPUs
  pool,     ///< degree of the pool that prefills; these multiply to the number of its GPUs
  integer,  ///< a number from `low` to `high`
  flag,
  choice,  ///< one of `names`
  order
};

struct PlanAxisRow {
  PlanKey key;
  std::string_view name;       ///< name in --point, constraints, JSON and headings
  const char* column;          ///< key of studies and tables of measurements, and column of results
  const char* meaning;         ///< description of the column
  const char* cell = nullptr;  ///< column of a table of measurements; null: it has none
  Phases phases;
  AxisKind kind;
  struct Code {
    std::int32_t (*get)(const ParallelPlan& plan);
    void (*set)(ParallelPlan& plan, std::int32_t code);
  } code;                 ///< field of a plan that holds the code
  std::int32_t idle = 1;  ///< the code at which the axis has no effect
  std::int32_t low = 1, high = std::numeric_limits<std::int32_t>::max();
  std::span<const std::string_view> names = {};  ///< names of the codes of a choice
  bool ordered = false;                          ///< the codes of the column are steps of one scale
  bool cell_due = true;                          ///< a table of measurements must have the column
  /// Tells the plans in which only the idle code is possible, whatever the study sets; null: there are none.
  bool (*fixed)(const ParallelPlan& plan) = nullptr;
  const char* fixed_where = "";  ///< describes those plans, in words of a study

  [[nodiscard]] constexpr std::int32_t get(const ParallelPlan& plan) const { return code.get(plan); }
  constexpr void set(ParallelPlan& plan, std::int32_t value) const { code.set(plan, value); }
};

namespace detail {
template <auto Member>
inline constexpr PlanAxisRow::Code of_plan = {
    [](const ParallelPlan& plan) { return static_cast<std::int32_t>(plan.*Member); },
    [](ParallelPlan& plan, std::int32_t code) {
      plan.*Member = static_cast<std::remove_cvref_t<decltype(plan.*Member)>>(code);
    }};
template <auto Member>
inline constexpr PlanAxisRow::Code of_pool = {
    [](const ParallelPlan& plan) { return plan.prefill.*Member; },
    [](ParallelPlan& plan, std::int32_t code) { plan.prefill.*Member = code; }};
inline bool no_pool(const ParallelPlan& plan) { return !plan.disaggregated(); }
inline constexpr const char* kNoPool = "without prefill_gpus";
/// Where no group of the plan's own ranks can deal experts.
inline bool lone_rank(const ParallelPlan& plan) { return plan.stage_ranks() == 1 || plan.ffn > 0; }
}  // namespace detail
inline constexpr const char* kLoneRanks =
    "beyond 1 where tensor_parallel, context_parallel and data_parallel are only 1, or with ffn_gpus";

inline constexpr auto kPlanRows = std::to_array<PlanAxisRow>({
    {.key = PlanKey::tensor,
     .name = name_of(PlanAxis::tensor),
     .column = "tensor_parallel",
     .meaning = "tensor-parallel degree",
     .cell = "tp; blank: 1",
     .phases = Phases::both,
     .kind = AxisKind::degree,
     .code = detail::of_plan<&ParallelPlan::tensor>},
    {.key = PlanKey::sequence_parallel,
     .name = "sp",
     .column = "sequence_parallel",
     .meaning = "true where norms and dropouts are sharded over the tensor group",
     .cell = "0 or 1; blank: 0; no effect where tp is 1",
     .phases = Phases::training,
     .kind = AxisKind::flag,
     .code = detail::of_plan<&ParallelPlan::sequence_parallel>,
     .idle = 0,
     .low = 0,
     .high = 1,
     .fixed = [](const ParallelPlan& plan) { return plan.tensor == 1; },
     .fixed_where = "where tensor_parallel is only 1"},
    {.key = PlanKey::context,
     .name = name_of(PlanAxis::context),
     .column = "context_parallel",
     .meaning = "context-parallel degree",
     .cell = "cp; blank: 1",
     .phases = Phases::both,
     .kind = AxisKind::degree,
     .code = detail::of_plan<&ParallelPlan::context>},
    {.key = PlanKey::pipeline,
     .name = name_of(PlanAxis::pipeline),
     .column = "pipeline_parallel",
     .meaning = "pipeline-parallel degree (stages)",
     .cell = "pp; blank: 1",
     .phases = Phases::both,
     .kind = AxisKind::degree,
     .code = detail::of_plan<&ParallelPlan::pipeline>},
    {.key = PlanKey::data,
     .name = name_of(PlanAxis::data),
     .column = "data_parallel",
     .meaning = "data-parallel degree (replicas)",
     .cell = "dp; blank: gpus / (tp * cp * pp)",
     .phases = Phases::both,
     .kind = AxisKind::degree,
     .code = detail::of_plan<&ParallelPlan::data>},
    {.key = PlanKey::expert,
     .name = "ep",
     .column = "expert_parallel",
     .meaning =
         "expert-parallel degree: ranks of the other axes over which the experts of a layer are dealt; "
         "1 beside etp = 1: the tensor group splits them",
     .cell = "ep; blank: 1",
     .phases = Phases::both,
     .kind = AxisKind::integer,
     .code = detail::of_plan<&ParallelPlan::expert>,
     .cell_due = false,
     .fixed = detail::lone_rank,
     .fixed_where = kLoneRanks},
    {.key = PlanKey::expert_tensor,
     .name = "etp",
     .column = "expert_tensor_parallel",
     .meaning = "expert-tensor-parallel degree: ranks of the other axes over which each expert is split",
     .cell = "etp; blank: 1",
     .phases = Phases::both,
     .kind = AxisKind::integer,
     .code = detail::of_plan<&ParallelPlan::expert_tensor>,
     .cell_due = false,
     .fixed = detail::lone_rank,
     .fixed_where = kLoneRanks},
    {.key = PlanKey::zero_stage,
     .name = "zero",
     .column = "zero_stage",
     .meaning = "ZeRO stage: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights sharded over data and "
                "context parallel ranks",
     .cell = "0 .. 3; blank: 0",
     .phases = Phases::training,
     .kind = AxisKind::integer,
     .code = detail::of_plan<&ParallelPlan::zero_stage>,
     .idle = 0,
     .low = 0,
     .high = 3,
     .ordered = true,
     .fixed = [](const ParallelPlan& plan) { return plan.data * plan.context == 1; },
     .fixed_where = "beyond 0 where data_parallel and context_parallel are only 1"},
    {.key = PlanKey::recompute,
     .name = "recompute",
     .column = "recompute",
     .meaning = "activation recomputation",
     .cell = "none, selective or full; blank: none",
     .phases = Phases::training,
     .kind = AxisKind::choice,
     .code = detail::of_plan<&ParallelPlan::recompute>,
     .idle = static_cast<std::int32_t>(Recompute::none),
     .names = enum_names<Recompute>(),
     .ordered = true},
    {.key = PlanKey::microbatch,
     .name = "mbs",
     .column = "microbatch_size",
     .meaning = "samples per microbatch",
     .cell = "samples; blank: global_batch / (dp * num_microbatches), else 1",
     .phases = Phases::training,
     .kind = AxisKind::integer,
     .code = detail::of_plan<&ParallelPlan::microbatch>},
    {.key = PlanKey::schedule,
     .name = "schedule",
     .column = "schedule",
     .meaning = "pipeline schedule",
     .cell = "name of a pipeline schedule; blank: 1f1b",
     .phases = Phases::training,
     .kind = AxisKind::choice,
     .code = detail::of_plan<&ParallelPlan::schedule>,
     .idle = static_cast<std::int32_t>(kPlainSchedule),
     .names = enum_names<ScheduleKind>(),
     .fixed = [](const ParallelPlan& plan) { return plan.pipeline == 1; },
     .fixed_where = "where pipeline_parallel is only 1; leave it out or set 1f1b"},
    {.key = PlanKey::virtual_stages,
     .name = "vpp",
     .column = "virtual_stages",
     .meaning = "model chunks per pipeline stage",
     .cell = "model chunks per stage; blank: 1",
     .phases = Phases::training,
     .kind = AxisKind::integer,
     .code = detail::of_plan<&ParallelPlan::virtual_stages>,
     .fixed = [](const ParallelPlan& plan) { return !row_of(plan.schedule).chunks; },
     .fixed_where = "without interleaved in schedule"},
    {.key = PlanKey::prefill_tensor,
     .name = "prefill_tp",
     .column = "prefill_tensor_parallel",
     .meaning = "tensor-parallel degree of the pool that prefills; 1 where there is none",
     .phases = Phases::inference,
     .kind = AxisKind::pool,
     .code = detail::of_pool<&PrefillPool::tensor>,
     .fixed = detail::no_pool},
    {.key = PlanKey::prefill_pipeline,
     .name = "prefill_pp",
     .column = "prefill_pipeline_parallel",
     .meaning = "pipeline-parallel degree of the pool that prefills; 1 where there is none",
     .phases = Phases::inference,
     .kind = AxisKind::pool,
     .code = detail::of_pool<&PrefillPool::pipeline>,
     .fixed = detail::no_pool},
    {.key = PlanKey::prefill_data,
     .name = "prefill_dp",
     .column = "prefill_data_parallel",
     .meaning = "replicas of the pool that prefills (the other degrees are then those of the pool that "
                "decodes); 0 where there is none",
     .phases = Phases::inference,
     .kind = AxisKind::pool,
     .code = detail::of_pool<&PrefillPool::data>,
     .idle = 0,
     .low = 0,
     .fixed = detail::no_pool},
    {.key = PlanKey::prefill_expert,
     .name = "prefill_ep",
     .column = "prefill_expert_parallel",
     .meaning = "expert-parallel degree of the pool that prefills; 1 where there is none",
     .phases = Phases::inference,
     .kind = AxisKind::integer,
     .code = detail::of_pool<&PrefillPool::expert>,
     .cell_due = false,
     .fixed = detail::no_pool,
     .fixed_where = detail::kNoPool},
    {.key = PlanKey::prefill_expert_tensor,
     .name = "prefill_etp",
     .column = "prefill_expert_tensor_parallel",
     .meaning = "expert-tensor-parallel degree of the pool that prefills; 1 where there is none",
     .phases = Phases::inference,
     .kind = AxisKind::integer,
     .code = detail::of_pool<&PrefillPool::expert_tensor>,
     .cell_due = false,
     .fixed = detail::no_pool,
     .fixed_where = detail::kNoPool},
    {.key = PlanKey::ffn,
     .name = "ffn",
     .column = "ffn_gpus",
     .meaning = "GPUs of the pool that decodes which hold nothing but experts; 0: all do both",
     .phases = Phases::inference,
     .kind = AxisKind::pool,
     .code = detail::of_plan<&ParallelPlan::ffn>,
     .idle = 0,
     .low = 0,
     .fixed = detail::no_pool},
    {.key = PlanKey::order,
     .name = "order",
     .column = "rank_order",
     .meaning = "order in which plan axes are laid over the fabric, innermost first",
     .cell = "innermost axis first; blank: tp-cp-dp-pp",
     .phases = Phases::both,
     .kind = AxisKind::order,
     .code = {[](const ParallelPlan& plan) { return rank_order_code(plan.order); },
              [](ParallelPlan& plan, std::int32_t code) { plan.order = rank_order_of(code); }},
     .idle = 0,
     .cell_due = false},
});
constexpr auto list_of_names(PlanKey /*value*/) { return names_of_table(kPlanRows, &PlanAxisRow::key); }

constexpr const PlanAxisRow& row_of(PlanKey key) { return kPlanRows[static_cast<std::size_t>(key)]; }
/// The table row of a degree.
constexpr const PlanAxisRow& row_of(PlanAxis axis) {
  std::size_t at = 0;
  while (kPlanRows[at].name != name_of(axis)) ++at;
  return kPlanRows[at];
}
/// Whether the axis is neither a degree nor the order of the degrees.
constexpr bool is_setting(const PlanAxisRow& row) {
  return row.kind == AxisKind::integer || row.kind == AxisKind::flag || row.kind == AxisKind::choice;
}
/// Whether every value of the axis is possible in every plan.
constexpr bool is_free(const PlanAxisRow& row) { return is_setting(row) && row.fixed == nullptr; }
/// Whether the axis is one of experts; lists leave those out where all plans have the idle value.
constexpr bool is_of_experts(const PlanAxisRow& row) {
  return row.key == PlanKey::expert || row.key == PlanKey::expert_tensor ||
         row.key == PlanKey::prefill_expert || row.key == PlanKey::prefill_expert_tensor ||
         row.key == PlanKey::ffn;
}
/// Whether the axis belongs to the pool that prefills; plans without one don't mention it.
constexpr bool is_of_prefill(const PlanAxisRow& row) {
  return row.kind == AxisKind::pool || row.key == PlanKey::prefill_expert ||
         row.key == PlanKey::prefill_expert_tensor;
}
/// The table row of a column of results; null where no axis has that column.
const PlanAxisRow* find_plan_column(std::string_view column);

/// A code as text: "8", "1" for a flag, "selective", "tp-cp-dp-pp".
std::string code_text(const PlanAxisRow& row, std::int32_t code);
/// The code that a text stands for, on an axis that is a choice or the order; nothing where it is no name of it.
std::optional<std::int32_t> parse_code(const PlanAxisRow& row, std::string_view text);

/// The names of the degrees in the order of the table, joined by `between`: "tp*cp*pp*dp".
std::string degree_names(std::string_view between);
/// The names of the axes that an order arranges, in the default order: "tp, cp, dp and pp".
std::string order_names(std::string_view before_last = " and ");

/// Codes of choices and orders, as a space lists them.
template <class E>
std::vector<std::int32_t> codes_of(std::initializer_list<E> values) {
  std::vector<std::int32_t> codes;
  for (const E& value : values) {
    if constexpr (std::is_same_v<E, RankOrder>) {
      codes.push_back(rank_order_code(value));
    } else {
      codes.push_back(static_cast<std::int32_t>(value));
    }
  }
  return codes;
}

}  // namespace shardscape
