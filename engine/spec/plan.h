// How one model is laid over the devices: the point of the design space.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/enum_names.h"
#include "engine/spec/schedule_kind.h"

namespace shardscape {

enum class PlanAxis : std::uint8_t { tensor, context, data, pipeline };
SHARDSCAPE_ENUM_NAMES(PlanAxis, "tp", "cp", "dp", "pp");
inline constexpr std::size_t kPlanAxes = enum_names<PlanAxis>().size();

/// What backward computes again.
///   none       nothing: every activation is kept
///   selective  the parts of a block that the stack names (StackProfile::selective_recompute); where it names none, the
///              attention core
///   full       whole blocks: only the input of each is kept
enum class Recompute : std::uint8_t { none, selective, full };

/// Axes from innermost (stride 1) to outermost.
using RankOrder = std::array<PlanAxis, kPlanAxes>;
inline constexpr RankOrder kDefaultRankOrder = enum_values<PlanAxis>();

/// The order as text, such as "tp-cp-dp-pp".
std::string to_string(const RankOrder& order);
/// The order that a text names; nothing unless the text names each axis exactly once.
std::optional<RankOrder> parse_rank_order(std::string_view text);

/// Codes number the kRankOrders orders lexicographically (by PlanAxis): "tp-cp-dp-pp" is 0.
std::int32_t rank_order_code(const RankOrder& order);
RankOrder rank_order_of(std::int32_t code);
inline constexpr std::int32_t kRankOrders = [] {
  std::int32_t count = 1;
  for (std::size_t axes = 2; axes <= kPlanAxes; ++axes) count *= static_cast<std::int32_t>(axes);
  return count;
}();

/// Replicas that read prompts and nothing else (disaggregated serving), on the first ranks of the machine.
struct PrefillPool {
  std::int32_t tensor = 1;
  std::int32_t pipeline = 1;
  std::int32_t data = 0;  ///< replicas; 0: there is no such pool
  /// Degrees of experts, as in ParallelPlan, within the ranks of this pool.
  std::int32_t expert = 1, expert_tensor = 1;
  std::int32_t redundant_experts = 0;  ///< as in ParallelPlan, of this pool
  [[nodiscard]] std::int64_t gpus() const { return static_cast<std::int64_t>(tensor) * pipeline * data; }
  friend bool operator==(const PrefillPool&, const PrefillPool&) = default;
};

struct ParallelPlan {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t data = 1;
  std::int32_t pipeline = 1;
  /// Norms and dropouts are sharded over the tensor group (Korthikanti et al. 2022).
  bool sequence_parallel = false;
  std::int32_t zero_stage = 0;  ///< 0..3; shards over data * context ranks
  Recompute recompute = Recompute::none;
  std::int32_t microbatch = 1;  ///< samples per microbatch
  ScheduleKind schedule = kPlainSchedule;
  std::int32_t virtual_stages = 1;  ///< model chunks per stage; > 1 only where the schedule has chunks
  RankOrder order = kDefaultRankOrder;
  /// Ranks over which the experts of a layer are dealt, and over which each of them is split. They lie folded in
  /// the ranks of the other axes (spec/parallel_groups.h) and multiply no GPUs. Both 1: experts are split over
  /// the tensor group as all else.
  std::int32_t expert = 1;
  std::int32_t expert_tensor = 1;
  PrefillPool prefill = {};  ///< inference; the degrees above are then those of the pool that decodes
  /// GPUs of the pool that decodes which hold nothing but experts (step/serving/ffn_split.h), behind those that the
  /// degrees make; 0: all that decode do both. Only beside a pool that prefills.
  std::int32_t ffn = 0;
  /// Copies of experts beyond one of each, dealt with them. Not an axis: with_replicas() takes it from the stack.
  std::int32_t redundant_experts = 0;

  [[nodiscard]] const std::int32_t& degree(PlanAxis axis) const {
    switch (axis) {
      case PlanAxis::tensor:
        return tensor;
      case PlanAxis::context:
        return context;
      case PlanAxis::data:
        return data;
      case PlanAxis::pipeline:
        break;
    }
    return pipeline;
  }
  std::int32_t& degree(PlanAxis axis) { return const_cast<std::int32_t&>(std::as_const(*this).degree(axis)); }
  [[nodiscard]] std::int64_t gpus() const {
    static_assert(kPlanAxes == 4, "every degree is a factor");
    return stage_ranks() * pipeline + prefill.gpus() + ffn;
  }
  /// Number of ranks of one pipeline stage, without the pool that prefills.
  [[nodiscard]] std::int64_t stage_ranks() const {
    return static_cast<std::int64_t>(tensor) * context * data;
  }
  /// Whether microbatches enter at both ends: every part of the model lies on a stage and on its mirror, as far from
  /// the other end. Never with a single stage.
  [[nodiscard]] bool both_ways() const { return row_of(schedule).both_ways && pipeline > 1; }
  /// Whether stages hold several chunks, which a microbatch meets one after the other.
  [[nodiscard]] bool chunked() const { return row_of(schedule).chunks && virtual_stages > 1; }
  [[nodiscard]] bool folds_experts() const { return expert > 1 || expert_tensor > 1; }
  [[nodiscard]] bool disaggregated() const { return prefill.data > 0; }
  friend bool operator==(const ParallelPlan&, const ParallelPlan&) = default;
};

/// The plan of one pool of a disaggregated plan, as if it were alone.
ParallelPlan prefill_plan(const ParallelPlan& plan);
ParallelPlan decode_plan(const ParallelPlan& plan);

}  // namespace shardscape
