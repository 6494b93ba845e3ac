#include "sweep/space/design_space.h"

#include <algorithm>
#include <array>
#include <functional>

#include "engine/base/check.h"

namespace shardscape::sweep {

namespace {

/// The axes of degree > 1 from innermost to outermost: all that a rank order decides.
std::array<std::optional<PlanAxis>, kPlanAxes> layout(const ParallelPlan& plan, const RankOrder& order) {
  // A pool that prefills is laid out in the same order.
  const auto in_pool = [&](PlanAxis axis) {
    return (axis == PlanAxis::tensor && plan.prefill.tensor > 1) ||
           (axis == PlanAxis::pipeline && plan.prefill.pipeline > 1) ||
           (axis == PlanAxis::data && plan.prefill.data > 1);
  };
  std::array<std::optional<PlanAxis>, kPlanAxes> axes;
  std::size_t used = 0;
  for (const PlanAxis axis : order) {
    if (plan.degree(axis) > 1 || in_pool(axis)) axes[used++] = axis;
  }
  return axes;
}

/// Same plan up to the order's degree-1 axes; the order of `a` and `b` counts as their layout.
bool same_plan(const ParallelPlan& a, ParallelPlan b) {
  if (!same_layout(a, a.order, b.order)) return false;
  b.order = a.order;
  return a == b;
}

/// One loop of the nest: calls `next` for every value of the axis that divides what is left of the GPUs.
void for_each_degree(const DegreeAxis& axis, std::int64_t left, std::int32_t& degree,
                     const std::function<void(std::int64_t)>& next) {
  if (axis.fill) return next(left);  // takes its value once the others have theirs
  for (const std::int32_t value : axis.values) {
    if (left % value != 0) continue;
    degree = value;
    next(left / value);
  }
}

/// The rank orders that lay these degrees out differently, the first listed of each kind.
std::vector<RankOrder> distinct_orders(const SpaceSpec& spec, const ParallelPlan& degrees) {
  std::vector<RankOrder> orders;
  for (const RankOrder& order : spec.rank_order) {
    const auto same = [&](const RankOrder& known) { return same_layout(degrees, known, order); };
    if (std::ranges::none_of(orders, same)) orders.push_back(order);
  }
  return orders;
}

/// `degrees` with each distinct schedule and number of virtual stages.
std::vector<ParallelPlan> distinct_schedules(const SpaceSpec& spec, const ParallelPlan& degrees,
                                             Phase phase) {
  std::vector<ParallelPlan> plans;
  for (const ScheduleKind schedule : spec.schedule) {
    for (const std::int32_t virtual_stages : spec.virtual_stages) {
      ParallelPlan plan = degrees;
      plan.schedule = schedule;
      plan.virtual_stages = virtual_stages;
      plan = canonical(plan, phase);
      if (std::ranges::find(plans, plan) == plans.end()) plans.push_back(plan);
    }
  }
  return plans;
}

}  // namespace

ParallelPlan canonical(ParallelPlan plan, Phase phase) {
  const bool training = phase == Phase::training;
  if (!training || plan.tensor == 1) plan.sequence_parallel = false;
  if (!training || plan.data * plan.context == 1) plan.zero_stage = 0;
  if (!training || plan.pipeline == 1) plan.schedule = ScheduleKind::one_f_one_b;
  if (plan.schedule != ScheduleKind::interleaved) plan.virtual_stages = 1;
  if (plan.virtual_stages == 1 && plan.schedule == ScheduleKind::interleaved) {
    plan.schedule = ScheduleKind::one_f_one_b;
  }
  if (training || !plan.disaggregated()) plan.prefill = {};
  if (!training) {
    plan.recompute = Recompute::none;
    plan.microbatch = 1;
  }
  return plan;
}

bool same_layout(const ParallelPlan& plan, const RankOrder& a, const RankOrder& b) {
  return layout(plan, a) == layout(plan, b);
}

DesignSpace::DesignSpace(const SpaceSpec& spec, std::int64_t gpus, Phase phase, std::uint64_t settings)
    : phase_(phase), settings_(settings) {
  SHARDSCAPE_CHECK(gpus >= 1 && settings >= 1, gpus, settings);
  const bool training = phase == Phase::training;
  recompute_ = training ? spec.recompute : std::vector{Recompute::none};
  microbatch_ = training ? spec.microbatch : std::vector<std::int32_t>{1};
  list_pools(spec, gpus);
}

void DesignSpace::list_pools(const SpaceSpec& spec, std::int64_t gpus) {
  for (const std::int32_t pool : spec.prefill_gpus) {
    if (pool == 0) list_tuples(spec, gpus, {});
    if (pool == 0 || pool >= gpus) continue;
    for (const std::int32_t tensor : spec.prefill_tensor) {
      for (const std::int32_t pipeline : spec.prefill_pipeline) {
        const std::int64_t replica = static_cast<std::int64_t>(tensor) * pipeline;
        if (pool % replica == 0)
          list_tuples(spec, gpus - pool, {tensor, pipeline, static_cast<std::int32_t>(pool / replica)});
      }
    }
  }
}

void DesignSpace::list_tuples(const SpaceSpec& spec, std::int64_t gpus, const PrefillPool& prefill) {
  ParallelPlan degrees;
  degrees.prefill = prefill;
  std::int32_t* const filling = spec.tensor.fill     ? &degrees.tensor
                                : spec.context.fill  ? &degrees.context
                                : spec.pipeline.fill ? &degrees.pipeline
                                : spec.data.fill     ? &degrees.data
                                                     : nullptr;
  const auto finish = [&](std::int64_t left) {
    if (filling == nullptr && left != 1) return;
    if (filling != nullptr) *filling = static_cast<std::int32_t>(left);
    ++tuples_;
    list_plans(spec, degrees);
  };
  for_each_degree(spec.tensor, gpus, degrees.tensor, [&](std::int64_t after_tensor) {
    for_each_degree(spec.context, after_tensor, degrees.context, [&](std::int64_t after_context) {
      for_each_degree(spec.pipeline, after_context, degrees.pipeline, [&](std::int64_t after_pipeline) {
        for_each_degree(spec.data, after_pipeline, degrees.data, finish);
      });
    });
  });
}

void DesignSpace::list_plans(const SpaceSpec& spec, const ParallelPlan& degrees) {
  const std::vector<RankOrder> orders = distinct_orders(spec, degrees);
  const std::vector<ParallelPlan> schedules = distinct_schedules(spec, degrees, phase_);
  const bool training = phase_ == Phase::training;
  const bool sequence = training && degrees.tensor > 1;
  const bool zero = training && (degrees.data > 1 || degrees.context > 1);
  for (const bool sequence_parallel : sequence ? spec.sequence_parallel : std::vector{false}) {
    for (const std::int32_t zero_stage : zero ? spec.zero_stage : std::vector<std::int32_t>{0}) {
      for (ParallelPlan plan : schedules) {
        plan.sequence_parallel = sequence_parallel;
        plan.zero_stage = zero_stage;
        for (const RankOrder& order : orders) {
          plan.order = order;
          listed_.push_back(plan);
        }
      }
    }
  }
}

PointIndex DesignSpace::point(std::uint64_t id) const {
  SHARDSCAPE_CHECK(id < size(), id, size());
  PointIndex index;
  index.setting = id / plans();
  const std::uint64_t in_setting = id % plans();
  index.plan = listed_[in_setting / free()];
  const std::uint64_t in_entry = in_setting % free();
  if (phase_ == Phase::training) {
    index.plan.recompute = recompute_[in_entry / microbatch_.size()];
    index.plan.microbatch = microbatch_[in_entry % microbatch_.size()];
  }
  return index;
}

std::optional<std::uint64_t> DesignSpace::find(std::uint64_t setting, const ParallelPlan& plan) const {
  if (setting >= settings_) return std::nullopt;
  ParallelPlan entry = canonical(plan, phase_);
  const auto recompute = std::ranges::find(recompute_, entry.recompute);
  const auto microbatch = std::ranges::find(microbatch_, entry.microbatch);
  entry.recompute = Recompute::none;  // as the listed entries have them
  entry.microbatch = 1;
  const auto listed =
      std::ranges::find_if(listed_, [&](const ParallelPlan& p) { return same_plan(p, entry); });
  if (recompute == recompute_.end() || microbatch == microbatch_.end() || listed == listed_.end()) {
    return std::nullopt;
  }
  const auto digit = [](const auto& list, auto at) { return static_cast<std::uint64_t>(at - list.begin()); };
  const std::uint64_t in_entry =
      digit(recompute_, recompute) * microbatch_.size() + digit(microbatch_, microbatch);
  return setting * plans() + digit(listed_, listed) * free() + in_entry;
}

}  // namespace shardscape::sweep
