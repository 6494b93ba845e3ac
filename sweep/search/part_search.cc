// The search of one part of a setting: a heap of regions by floor, of which the first is opened (a family, a variant, a
// point) or cut off; visits, executions and races of points; and what is kept for the next part.
#include "sweep/search/part_search.h"

#include <algorithm>
#include <numbers>
#include <numeric>
#include <utility>

#include "sweep/ranks/ranks.h"

namespace shardscape::sweep {

namespace {

using results::Fate;

/// A factor on floors that leaves room for sums rounded in another order: some thousand roundings of 1e-16 each.
constexpr double kRounding = 1 - 1e-9;
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();
/// The most evaluators that are kept for what they remember of their settings: some megabytes each.
constexpr std::size_t kMostKept = 16;

/// Lists what ranks send of a part once, for writing as well as for reading: visit(value).
template <class Found, class Visit>
void each_field(Found& found, const Visit& visit) {
  visit(found.counts);
  visit(found.least_left);
  visit(found.stopped);
  visit(found.given_up);
  visit(found.too_large);
  visit(found.draws);
  visit(found.visited);
}

}  // namespace

void append(const PartFound& found, std::string& text) {
  each_field(found, [&](const auto& value) { ranks::append_value(value, text); });
}

PartFound take_found(std::string_view& text) {
  PartFound found;
  each_field(found, [&](auto& value) { ranks::take_value(value, text); });
  return found;
}

/// A region that has not been opened yet.
struct PartSearch::Node {
  enum class Kind : std::uint8_t { family, called, variant, point, raced };
  double cost = 0;    ///< floor of its points' costs
  double memory = 0;  ///< floor of its points' memory in bytes
  Kind kind = Kind::family;
  std::uint32_t family = 0;
  std::uint32_t choice = 0;  ///< index: for a family in least_choices(), for a variant in choices()
  std::uint32_t variant = 0;
  /// For a raced point its place in the race; for another point its index in the variant.
  std::uint32_t runner = 0;
  std::uint64_t number = 0;  ///< counts nodes in the order in which they were made

  [[nodiscard]] bool operator<(const Node& o) const {  // heaps take the largest first
    return cost == o.cost ? number > o.number : cost > o.cost;
  }
};

struct PartSearch::Opened {
  Opened(const SearchFrame& frame, std::uint64_t at)
      : index(at),
        setting(frame.job.study().setting(at)),
        placement(frame.placement(at)),
        floor(setting, frame.networks, frame.job.study().mode),
        orders_apart(floor.order_decides_pairs()) {
    // Finds the factor from step times to costs: energy and money per token are in proportion to the time, rates to its
    // inverse.
    const Prediction at_one_second = floor.rates(frame.regions.families().front().plan, Seconds(1));
    const double least = frame.objective == TimeObjective::expected_step_time ? kLeastExpected : 1;
    per_second_ = kRounding * least * cost_of(frame.objective, value_of(frame.objective, at_one_second));
  }
  std::uint64_t index;
  Setting setting;
  PlacementChoice placement;
  PlanFloor floor;
  std::vector<std::uint32_t>
      order;          ///< families with their microbatches, sorted by floor; empty until it is needed
  bool orders_apart;  ///< whether points of one variant may differ in memory

  /// The cost of a step of `seconds` seconds, with room for rounding; 0 for a device without a peak (mfu).
  [[nodiscard]] double cost(double seconds) const {
    return seconds == kNever ? kNever : seconds * per_second_;
  }

 private:
  double per_second_ = 1;
};

/// An evaluator with the setting that it evaluates.
struct PartSearch::Kept {
  Kept(const SearchFrame& frame, std::uint64_t at)
      : index(at),
        setting(frame.job.study().setting(at)),
        evaluator(frame.evaluator(setting, frame.placement(at))) {}
  std::uint64_t index;
  Setting setting;
  std::unique_ptr<Evaluator> evaluator;  ///< refers to `setting`
};

PartSearch::PartSearch(const SearchFrame& frame)
    : frame_(frame), called_(frame.regions, frame.calls, frame.networks, frame.job.study().mode) {}
PartSearch::~PartSearch() = default;

void PartSearch::open_setting(std::uint64_t setting) {
  if (!setting_ || setting_->index != setting) setting_ = std::make_unique<Opened>(frame_, setting);
}

/// The evaluator of the current setting: the one from before, if it is still kept.
Evaluator& PartSearch::evaluator() {
  const auto own =
      std::ranges::find_if(kept_, [&](const auto& kept) { return kept->index == setting_->index; });
  if (own != kept_.end()) return *(*own)->evaluator;
  if (kept_.size() == kMostKept) kept_.erase(kept_.begin());
  kept_.push_back(std::make_unique<Kept>(frame_, setting_->index));
  return *kept_.back()->evaluator;
}

// ---- floors of settings ----

double PartSearch::floor_of(std::uint64_t setting) {
  const std::vector<double>& steps = frame_.floors.steps(setting);
  if (steps.empty()) return 0;
  open_setting(setting);
  return setting_->cost(std::ranges::min(steps));
}

double PartSearch::sharp_floor_of(std::uint64_t setting) {
  const std::vector<double>& steps = frame_.floors.steps(setting);
  if (steps.empty() || frame_.placement(setting) != PlacementChoice::plain) return floor_of(setting);
  open_setting(setting);
  std::vector<std::size_t> order(steps.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto later = [&](std::size_t a, std::size_t b) {
    return steps[a] == steps[b] ? a > b : steps[a] > steps[b];
  };
  std::ranges::make_heap(order, later);
  const std::vector<FreeChoice>& choices = frame_.regions.least_choices();
  double least = kNever;
  while (!order.empty() && steps[order.front()] < least) {
    const std::size_t at = order.front();
    least =
        std::min(least, std::max(steps[at], called_floor(at / choices.size(), choices[at % choices.size()])));
    std::ranges::pop_heap(order, later);
    order.pop_back();
  }
  return setting_->cost(least);
}

/// The least seconds of a step of a family's plans, with the calls of their layers.
double PartSearch::called_floor(std::size_t family, const FreeChoice& choice) {
  const Family& of = frame_.regions.families()[family];
  const PassFloors passes = passes_of(family, choice);
  double least = kNever;
  for (const std::size_t variant : of.schedules)
    least = std::min(least, setting_->floor.least(with_choice(of.variants[variant].plan, choice), passes));
  return least;
}

/// Floors of a family's passes, with their calls unless ranks are placed anew, which may make calls shorter.
PassFloors PartSearch::passes_of(std::size_t family, const FreeChoice& choice) {
  if (setting_->placement == PlacementChoice::plain) return called_.of(setting_->index, family, choice).least;
  return setting_->floor.without_calls(with_choice(frame_.regions.families()[family].plan, choice));
}

// ---- the search ----

PartFound PartSearch::run(const Part& part, const Answer& known, const AskPart& ask) {
  open_setting(part.setting);
  answer_ = known;
  if (frame_.objective == TimeObjective::expected_step_time) race_.emplace(*frame_.job.fault_draws());
  found_ = {};
  made_ = 0;
  queue_.clear();
  ask_ = &ask;
  begin(part);
  while (!queue_.empty() && !found_.stopped) {
    std::pop_heap(queue_.begin(), queue_.end());
    const Node node = queue_.back();
    if (!go_on(node.cost)) break;
    queue_.pop_back();
    if (answer_->cuts(node.cost, node.memory)) {
      leave(node.cost, points_of(node), Fate::bound);
    } else {
      open(node);
    }
  }
  for (const Node& node : queue_) leave(node.cost, points_of(node), Fate::open);
  if (race_) found_.draws = {race_->draws_made(), race_->drawn_points()};
  return std::move(found_);
}

/// Asks whether to go on.
bool PartSearch::go_on(double cost) {
  found_.stopped = !(*ask_)(found_.counts, cost, *answer_);
  return !found_.stopped;
}

/// Asks whether to visit a point; the part ends where not.
bool PartSearch::may_visit(std::uint64_t id) {
  found_.stopped = found_.stopped || !frame_.may_visit(id);
  return !found_.stopped;
}

/// Counts points of a region with floor `cost` that are not looked at.
void PartSearch::leave(double cost, std::uint64_t points, Fate fate) {
  if (points == 0) return;
  found_.counts[static_cast<std::size_t>(fate)] += points;
  found_.least_left = std::min(found_.least_left, cost);
}

std::uint64_t PartSearch::points_of(const Node& node) const {
  const Family& family = frame_.regions.families()[node.family];
  if (node.kind == Node::Kind::raced || node.kind == Node::Kind::point) return 1;
  if (node.kind == Node::Kind::variant) return family.variants[node.variant].listed.size();
  return family.listed * frame_.regions.choices_with()[node.choice].size();
}

void PartSearch::push(Node node) {
  if (answer_->cuts(node.cost, node.memory)) return leave(node.cost, points_of(node), Fate::bound);
  node.number = made_++;
  queue_.push_back(node);
  std::push_heap(queue_.begin(), queue_.end());
}

void PartSearch::begin(const Part& part) {
  const std::vector<double>& steps = frame_.floors.steps(part.setting);
  const std::vector<FreeChoice>& choices = frame_.regions.least_choices();
  std::vector<std::uint32_t>& order = setting_->order;
  if (part.of > 1 && !steps.empty() && order.empty()) {
    order.resize(steps.size());
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t at) { return steps[at]; });
  }
  for (std::size_t i = part.index; i < frame_.regions.cells(); i += part.of) {
    const std::size_t at = order.empty() ? i : order[i];
    const double step = steps.empty() ? 0 : steps[at];
    const Node node{setting_->cost(step), 0, Node::Kind::family,
                    static_cast<std::uint32_t>(at / choices.size()),
                    static_cast<std::uint32_t>(at % choices.size())};
    node.cost == kNever ? leave(kNever, points_of(node), Fate::rule) : push(node);
  }
}

void PartSearch::open(const Node& node) {
  switch (node.kind) {
    case Node::Kind::family:
      return setting_->placement == PlacementChoice::plain ? sharpen(node) : split(node);
    case Node::Kind::called:
      return split(node);
    case Node::Kind::variant:
      return visit(node);
    case Node::Kind::point:
      return execute(node);
    case Node::Kind::raced:
      return draw_on(node);
  }
}

void PartSearch::sharpen(Node node) {
  const double called = called_floor(node.family, frame_.regions.least_choices()[node.choice]);
  node.cost = std::max(node.cost, setting_->cost(called));
  node.kind = Node::Kind::called;
  push(node);
}

void PartSearch::split(const Node& node) {
  const Family& family = frame_.regions.families()[node.family];
  const std::vector<FreeChoice>& choices = frame_.regions.choices();
  for (const std::uint32_t c : frame_.regions.choices_with()[node.choice]) {
    const PassFloors passes = passes_of(node.family, choices[c]);
    for (std::uint32_t v = 0; v < family.variants.size(); ++v) {
      const ParallelPlan plan = with_choice(family.variants[v].plan, choices[c]);
      Node variant{setting_->cost(setting_->floor.least_of_stage(plan, passes)),
                   0,
                   Node::Kind::variant,
                   node.family,
                   c,
                   v};
      if (variant.cost == kNever) {
        leave(kNever, points_of(variant), Fate::rule);
      } else if (!frame_.front) {
        push(variant);
      } else if (const auto memory = memory_of(variant)) {
        variant.memory = *memory;
        push(variant);
      }
    }
  }
}

/// The plan of one of the variant's points.
ParallelPlan PartSearch::plan_of(const Node& variant, std::size_t entry) const {
  const Family& family = frame_.regions.families()[variant.family];
  return frame_.regions.plan(family, family.variants[variant.variant], entry, variant.choice);
}

/// The peak memory of a plan in bytes, or the reason why it is no result.
tl::expected<double, Fate> PartSearch::verdict_of(const ParallelPlan& plan) {
  if (!frame_.job.admits(plan, frame_.job.workload(setting_->index))) return tl::unexpected(Fate::constraint);
  const Prediction verdict = evaluator().judge(plan);
  if (verdict.status == Status::ok) return verdict.memory_peak.value();
  return tl::unexpected(verdict.status == Status::memory ? Fate::memory : Fate::rule);
}

/// The least peak memory of a variant's points in bytes; nothing where none of them is a result, and they are then
/// counted by reason.
std::optional<double> PartSearch::memory_of(const Node& variant) {
  const std::uint64_t points = points_of(variant);
  const std::uint64_t verdicts = setting_->orders_apart ? points : 1;
  results::FateCounts lost{};
  std::optional<double> least;
  for (std::uint64_t entry = 0; entry < verdicts; ++entry) {
    const auto verdict = verdict_of(plan_of(variant, entry));
    if (verdict) {
      least = std::min(least.value_or(kNever), *verdict);
    } else {
      lost[static_cast<std::size_t>(verdict.error())] += points / verdicts;
    }
  }
  if (least) return least;
  for (std::size_t fate = 0; fate < lost.size(); ++fate) leave(kNever, lost[fate], static_cast<Fate>(fate));
  return std::nullopt;
}

void PartSearch::visit(const Node& node) {
  if (!frame_.front && !memory_of(node)) return;
  const Family& family = frame_.regions.families()[node.family];
  const Variant& variant = family.variants[node.variant];
  const FreeChoice& choice = frame_.regions.choices()[node.choice];
  const bool plain = setting_->placement == PlacementChoice::plain;
  for (std::size_t i = 0; i < variant.listed.size(); ++i) {
    double floor = node.cost;
    if (plain) {
      const auto& orders = called_.of(setting_->index, node.family, choice);
      const PassFloors& passes = orders.by_calls[family.calls[variant.orders[i]]];
      floor = std::max(floor, setting_->cost(setting_->floor.of_point(plan_of(node, i), passes)));
      if (answer_->cuts(floor, node.memory)) {
        leave(floor, 1, Fate::bound);
        continue;
      }
    }
    if (setting_->orders_apart) {
      if (const auto verdict = verdict_of(plan_of(node, i)); !verdict) {
        leave(kNever, 1, verdict.error());
        continue;
      }
    }
    const std::uint64_t id = frame_.regions.id(setting_->index, variant.listed[i], node.choice);
    if (!race_ && frame_.executed == nullptr) {
      may_visit(id) ? evaluate(id) : leave(floor, 1, Fate::open);
      continue;
    }
    Node point = node;  // a point that takes long waits in the queue, for others may cut it off
    point.kind = race_ ? Node::Kind::raced : Node::Kind::point;
    point.runner = race_ ? race_->join(id) : static_cast<std::uint32_t>(i);
    if (!race_) point.cost = floor;
    push(point);
  }
}

std::optional<Prediction> PartSearch::execute(std::uint64_t id, const std::function<bool()>& go_on) {
  const PointIndex point = frame_.job.space().point(id);
  open_setting(point.setting);
  return execute(point.plan, [&](Seconds) { return go_on(); });
}

/// The multiples of the golden section of a number, modulo that number, lie far from each other.
std::vector<VisitedPoint> PartSearch::probe(std::uint64_t setting, std::size_t most) {
  constexpr std::uint64_t kMostLookedAt = 4096;
  open_setting(setting);
  const std::uint64_t plans = frame_.job.space().plans();
  std::uint64_t step = static_cast<std::uint64_t>(static_cast<double>(plans) / std::numbers::phi);
  while (std::gcd(++step, plans) > 1) {
  }
  std::vector<VisitedPoint> found;
  for (std::uint64_t i = 0; i < std::min(plans, kMostLookedAt) && found.size() < most; ++i) {
    const std::uint64_t id = setting * plans + i * step % plans;
    const ParallelPlan plan = frame_.job.space().point(id).plan;
    if (!verdict_of(plan)) continue;
    const Prediction prediction = evaluator().evaluate(plan);
    if (is_result(id, prediction)) found.push_back({id, prediction, value_of(frame_.objective, prediction)});
  }
  return found;
}

/// Executes a plan in the current setting. The watch is not told times where ranks are placed anew
/// (Evaluator::watch()).
std::optional<Prediction> PartSearch::execute(const ParallelPlan& plan, const StepWatch& watch) {
  const Prediction own = evaluator().judge(plan);
  if (own.status != Status::ok) return own;
  const auto run = [&](const StepWatch& asked) {
    evaluator().watch(asked);
    const Prediction executed = evaluator().evaluate(plan);
    evaluator().watch({});
    return executed;
  };
  const ParallelPlan one = executed_plan(plan, setting_->setting.system.stack);
  const std::optional<Prediction> executed =
      frame_.executed->of(frame_.execution_group(setting_->index), one, watch, run);
  return executed ? std::optional(ExecutedSteps::with_times(own, *executed)) : std::nullopt;
}

/// Whether a step that takes so long does not belong to the answer.
bool PartSearch::is_slow(Seconds step, double memory) const {
  return answer_->cuts(setting_->cost(step.value()), memory);
}

/// Executes a point until its clock shows that its step is too slow. A point whose whole time another part has found is
/// cut off by that time, so that what is visited does not depend on who was first.
void PartSearch::execute(const Node& node) {
  const std::uint64_t listed =
      frame_.regions.families()[node.family].variants[node.variant].listed[node.runner];
  const std::uint64_t id = frame_.regions.id(setting_->index, listed, node.choice);
  if (!may_visit(id)) return queue_.push_back(node);
  bool slow = false;
  const auto executed = execute(frame_.job.space().point(id).plan, [&](Seconds at_least) {
    slow = is_slow(at_least, node.memory);
    return !slow && go_on(node.cost);
  });
  if (!executed && !slow) {  // stopped by go_on()
    queue_.push_back(node);
    return;
  }
  if (executed && executed->status == Status::out_of_range) {
    ++found_.too_large;
    return leave(node.cost, 1, Fate::open);
  }
  if (executed && executed->status == Status::ok && setting_->placement == PlacementChoice::plain)
    slow = is_slow(executed->step_time, node.memory);
  if (slow) {
    ++found_.given_up;
    return leave(std::max(node.cost, answer_->limit(node.memory)), 1, Fate::bound);
  }
  keep_visited(id, *executed, value_of(frame_.objective, *executed));
}

void PartSearch::evaluate(std::uint64_t id) {
  const Prediction prediction = evaluator().evaluate(frame_.job.space().point(id).plan);
  keep_visited(id, prediction, value_of(frame_.objective, prediction));
}

/// Draws more samples of a point that may still enter the answer under faults.
void PartSearch::draw_on(Node node) {
  const std::uint64_t id = race_->point(node.runner);
  const Prediction healthy = evaluator().evaluate(frame_.job.space().point(id).plan);
  const auto finish = [&](double value) {
    may_visit(id) ? keep_visited(id, healthy, value) : queue_.push_back(node);
  };
  if (!is_result(id, healthy)) return finish(kNoValue);
  const double least = kRounding * kLeastExpected * healthy.step_time.value();
  if (least > node.cost && answer_->cuts(least, node.memory)) return leave(least, 1, Fate::bound);
  const FaultRace::Standing now = race_->draw_on(node.runner, healthy, evaluator());
  if (now.finished) return finish(now.seconds);
  node.cost = std::max(node.cost, kRounding * now.seconds);
  push(node);
}

/// Whether a point is feasible and misses nothing that the study asks for.
bool PartSearch::is_result(std::uint64_t id, const Prediction& prediction) const {
  if (prediction.status != Status::ok || frame_.job.limits().limits().empty())
    return prediction.status == Status::ok;
  const PointIndex point = frame_.job.space().point(id);
  return frame_.job.judged(point.setting, point.plan, prediction).status == Status::ok;
}

/// `value` is left out of the answer where the point is no result.
void PartSearch::keep_visited(std::uint64_t id, const Prediction& prediction, double value) {
  if (!is_result(id, prediction)) value = kNoValue;
  found_.visited.push_back({id, prediction, value});
  answer_->offer(id, prediction, value);
  ++found_.counts[static_cast<std::size_t>(Fate::visited)];
}

}  // namespace shardscape::sweep
