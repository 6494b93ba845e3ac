// Lists the entries of a design space by nested loops over the degrees and the settings that depend on them, without
// duplicates, and converts between ids and plans.
#include "sweep/space/design_space.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "engine/base/check.h"
#include "engine/base/fields.h"

namespace shardscape::sweep {

namespace {

/// The axes with a degree > 1 from innermost to outermost, which is all that a rank order determines.
std::array<std::optional<PlanAxis>, kPlanAxes> layout(const ParallelPlan& plan, const RankOrder& order) {
  // A pool that prefills is laid out in the same order as the rest.
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

/// Whether two plans are the same, where orders that lay out ranks alike count as equal.
bool same_plan(const ParallelPlan& a, ParallelPlan b) {
  if (!same_layout(a, a.order, b.order)) return false;
  b.order = a.order;
  return a == b;
}

/// The rank orders that lay these degrees out differently; of those that lay them out alike the first in the study's
/// list.
std::vector<RankOrder> distinct_orders(const SpaceSpec& spec, const ParallelPlan& degrees) {
  std::vector<RankOrder> orders;
  for (const std::int32_t code : spec[PlanKey::order].values) {
    const RankOrder order = rank_order_of(code);
    const auto same = [&](const RankOrder& known) { return same_layout(degrees, known, order); };
    if (std::ranges::none_of(orders, same)) orders.push_back(order);
  }
  return orders;
}

/// An axis is listed if some plans fix its value: entries have its values where it is not fixed.
bool is_listed(const PlanAxisRow& row) { return is_setting(row) && row.fixed != nullptr; }

using Codes = std::array<std::int32_t, kPlanRows.size()>;

/// Plans with these degrees and each distinct combination of the listed axes, without rank orders; nothing where there
/// are more than kMostSettings.
std::optional<std::vector<ParallelPlan>> distinct_settings(const SpaceSpec& spec, const ParallelPlan& degrees,
                                                           Phase phase) {
  std::vector<ParallelPlan> plans = {degrees};
  for (const PlanAxisRow& row : kPlanRows) {
    if (!is_listed(row) || !applies(row.phases, phase)) continue;
    std::vector<ParallelPlan> more;
    for (const ParallelPlan& plan : plans) {
      if (row.fixed(plan)) {
        more.push_back(plan);
        continue;
      }
      for (const std::int32_t code : spec[row.key].values) {
        more.push_back(plan);
        row.set(more.back(), code);
      }
      if (more.size() > DesignSpace::kMostSettings) return std::nullopt;
    }
    plans = std::move(more);
  }
  std::unordered_set<Codes, FieldsHash> seen;
  seen.reserve(plans.size());
  std::erase_if(plans, [&](ParallelPlan& plan) {
    plan = canonical(plan, phase);
    Codes codes;
    for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = kPlanRows[i].get(plan);
    return !seen.insert(codes).second;
  });
  return plans;
}

/// As many entries as plans with the same degrees have, or more; at most one more than may be listed.
std::uint64_t most_of_degrees(const SpaceSpec& spec, Phase phase) {
  std::uint64_t most = spec[PlanKey::order].values.size();
  for (const PlanAxisRow& row : kPlanRows)
    if (is_listed(row) && applies(row.phases, phase) && most <= DesignSpace::kMostListedPlans)
      most *= spec[row.key].values.size();
  return std::min(most, DesignSpace::kMostListedPlans + 1);
}

/// The axis of listed entries that has most values, as text; degrees count only if `degrees`.
std::string longest_axis(const SpaceSpec& spec, Phase phase, bool degrees) {
  const PlanAxisRow* longest = nullptr;
  const auto values = [&](const PlanAxisRow& row) { return spec[row.key].values.size(); };
  for (const PlanAxisRow& row : kPlanRows) {
    const bool counts = is_setting(row) ? !is_free(row) : degrees;
    if (!counts || !applies(row.phases, phase)) continue;
    if (longest == nullptr || values(row) > values(*longest)) longest = &row;
  }
  return fmt::format("{}, which has {} values", longest->column, values(*longest));
}

}  // namespace

ParallelPlan canonical(ParallelPlan plan, Phase phase) {
  for (const PlanAxisRow& row : kPlanRows) {
    if (!applies(row.phases, phase) || (row.fixed != nullptr && row.fixed(plan))) row.set(plan, row.idle);
  }
  // Splitting experts over the tensor group is what a plan does that says nothing of experts.
  if (plan.expert == 1 && plan.expert_tensor == plan.tensor) plan.expert_tensor = 1;
  if (plan.virtual_stages == 1 && row_of(plan.schedule).chunks) plan.schedule = kPlainSchedule;
  return plan;
}

bool same_layout(const ParallelPlan& plan, const RankOrder& a, const RankOrder& b) {
  return layout(plan, a) == layout(plan, b);
}

DesignSpace::DesignSpace(const SpaceSpec& spec, const std::vector<std::int64_t>& gpus, Phase phase,
                         std::uint64_t settings)
    : phase_(phase), settings_(settings) {
  SHARDSCAPE_CHECK(!gpus.empty() && settings >= 1 && settings % gpus.size() == 0, gpus.size(), settings);
  for (const PlanAxisRow& row : kPlanRows) {
    if (!is_free(row) || !applies(row.phases, phase)) continue;
    free_axes_.push_back({&row, spec[row.key].values});
    free_ *= spec[row.key].values.size();
  }
  for (const Pass pass : {Pass::bound, Pass::count, Pass::list}) {
    if (pass == Pass::count && entries_ <= kMostListedPlans) continue;
    pass_ = pass;
    entries_ = tuples_ = 0;
    ends_.clear();
    for (const std::int64_t count : gpus) {
      SHARDSCAPE_CHECK(count >= 1, count);
      if (problem_.empty()) list_pools(spec, count);
      ends_.push_back(listed_.size());
    }
  }
  if (problem_.empty()) return;
  tuples_ = 0;
  listed_.clear();
  ends_.assign(gpus.size(), 0);
}

void DesignSpace::list_pools(const SpaceSpec& spec, std::int64_t gpus) {
  for (const std::int32_t pool : spec.prefill_gpus) {
    if (pool == 0) list_tuples(spec, gpus, {}, 0);
    if (pool == 0 || pool >= gpus) continue;
    for (const std::int32_t tensor : spec[PlanKey::prefill_tensor].values) {
      if (pool % tensor != 0) continue;
      for (const std::int32_t pipeline : spec[PlanKey::prefill_pipeline].values) {
        const std::int64_t replica = static_cast<std::int64_t>(tensor) * pipeline;
        if (pool % replica != 0) continue;
        for (const std::int32_t ffn : spec[PlanKey::ffn].values)
          list_tuples(spec, gpus - pool, {tensor, pipeline, static_cast<std::int32_t>(pool / replica)}, ffn);
      }
    }
  }
}

void DesignSpace::list_tuples(const SpaceSpec& spec, std::int64_t gpus, const PrefillPool& prefill,
                              std::int32_t ffn) {
  if (ffn >= gpus) return;
  ParallelPlan degrees;
  degrees.prefill = prefill;
  degrees.ffn = ffn;
  list_degrees(spec, 0, gpus - ffn, nullptr, degrees);
}

/// The loops from row `from` of the table on: every value of a degree that divides the `left` GPUs.
void DesignSpace::list_degrees(const SpaceSpec& spec, std::size_t from, std::int64_t left,
                               const PlanAxisRow* filling, ParallelPlan& degrees) {
  if (!problem_.empty() || entries_ > kMostListedPlans) return;
  while (from < kPlanRows.size() && kPlanRows[from].kind != AxisKind::degree) ++from;
  if (from == kPlanRows.size()) {
    if (filling == nullptr && left != 1) return;
    if (filling != nullptr) filling->set(degrees, static_cast<std::int32_t>(left));
    ++tuples_;
    return list_plans(spec, degrees);
  }
  const PlanAxisRow& row = kPlanRows[from];
  if (spec[row.key].fill)  // follows once the other degrees have their values
    return list_degrees(spec, from + 1, left, &row, degrees);
  for (const std::int32_t value : spec[row.key].values) {
    if (left % value != 0) continue;
    row.set(degrees, value);
    list_degrees(spec, from + 1, left / value, filling, degrees);
  }
}

void DesignSpace::list_plans(const SpaceSpec& spec, const ParallelPlan& degrees) {
  if (pass_ == Pass::bound) return void(entries_ += most_of_degrees(spec, phase_));
  const std::vector<RankOrder> orders = distinct_orders(spec, degrees);
  const auto plans = distinct_settings(spec, degrees, phase_);
  if (plans) entries_ += plans->size() * orders.size();
  if (!plans || entries_ > kMostListedPlans) {
    problem_ = fmt::format(
        "makes too many combinations of its axes, recompute and microbatch_size aside: {}; give fewer values "
        "of {}",
        plans ? fmt::format("more than {}", kMostListedPlans)
              : fmt::format("more than {} on one (tp, cp, pp, dp)", kMostSettings),
        longest_axis(spec, phase_, plans.has_value()));
    return;
  }
  if (pass_ == Pass::count) return;
  for (ParallelPlan plan : *plans) {
    for (const RankOrder& order : orders) {
      plan.order = order;
      listed_.push_back(plan);
    }
  }
}

PointIndex DesignSpace::point(std::uint64_t id) const {
  SHARDSCAPE_CHECK(id < size(), id, size());
  PointIndex index;
  std::size_t count = 0;
  while (id >= points_on(count).second) ++count;
  const std::uint64_t first = count == 0 ? 0 : ends_[count - 1], each = (ends_[count] - first) * free_;
  const std::uint64_t in_count = id - points_on(count).first, in_setting = in_count % each;
  index.setting = count * (settings_ / ends_.size()) + in_count / each;
  index.plan = listed_[first + in_setting / free_];
  std::uint64_t rest = in_setting % free_, block = free_;
  for (const FreeAxis& axis : free_axes_) {
    block /= axis.codes.size();
    axis.row->set(index.plan, axis.codes[rest / block]);
    rest %= block;
  }
  return index;
}

std::optional<std::uint64_t> DesignSpace::find(std::uint64_t setting, const ParallelPlan& plan) const {
  if (setting >= settings_) return std::nullopt;
  ParallelPlan entry = canonical(plan, phase_);
  std::uint64_t in_entry = 0;
  for (const FreeAxis& axis : free_axes_) {
    const auto code = std::ranges::find(axis.codes, axis.row->get(entry));
    if (code == axis.codes.end()) return std::nullopt;
    in_entry = in_entry * axis.codes.size() + static_cast<std::uint64_t>(code - axis.codes.begin());
    axis.row->set(entry, axis.row->idle);  // as it is in listed entries
  }
  const std::uint64_t of_count = settings_ / ends_.size();
  const std::size_t count = setting / of_count;
  const std::uint64_t first = count == 0 ? 0 : ends_[count - 1], end = ends_[count];
  std::uint64_t at = first;
  while (at < end && !same_plan(listed_[at], entry)) ++at;
  if (at == end) return std::nullopt;
  return points_on(count).first + (setting % of_count * (end - first) + at - first) * free_ + in_entry;
}

}  // namespace shardscape::sweep
