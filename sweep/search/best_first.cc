#include "sweep/search/best_first.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <queue>

#include "engine/base/check.h"
#include "sweep/search/answer.h"
#include "sweep/search/fault_race.h"
#include "sweep/search/floors.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

namespace {

using results::Fate;

constexpr double kNever = std::numeric_limits<double>::infinity();
/// Room for sums that are rounded in another order than those of predictions: some thousand roundings of 1e-16 each.
constexpr double kRounding = 1 - 1e-9;

/// A region that is not opened yet.
struct Node {
  enum class Kind : std::uint8_t { family, called, variant, raced };
  double cost = 0;    ///< floor
  double memory = 0;  ///< floor, bytes
  Kind kind = Kind::family;
  std::uint32_t family = 0;
  std::uint32_t choice = 0;  ///< of a family the microbatch, of a variant the free choice
  std::uint32_t variant = 0;
  std::uint32_t runner = 0;  ///< of a point that is raced under faults
  std::uint64_t number = 0;  ///< in the order of making

  [[nodiscard]] bool operator<(const Node& o) const {  // the queue takes the largest first
    return cost == o.cost ? number > o.number : cost > o.cost;
  }
};

class Search {
 public:
  Search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options)
      : job_(job),
        options_(options),
        objective_(*time_objective(*std::ranges::find_if(
            goal.objectives, [](const std::string& name) { return time_objective(name).has_value(); }))),
        front_(goal.front && goal.objectives.size() > 1),
        within_(goal.within),
        regions_(job.space()),
        floors_(job, regions_),
        answer_(objective_, goal) {
    if (objective_ == TimeObjective::expected_step_time) race_.emplace(*job.fault_draws());
  }

  SearchOutcome run() {
    const std::vector<double> floors = setting_floors();
    std::vector<std::uint64_t> order(floors.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::uint64_t setting) { return floors[setting]; });
    for (const std::uint64_t setting : order) {
      if (!stopped_ && !answer_.cuts(floors[setting], 0)) {
        search_setting(setting);
      } else {
        leave(floors[setting], plans_, stopped_ ? Fate::open : Fate::bound);
      }
    }
    return outcome();
  }

 private:
  std::uint64_t& count(Fate fate) { return counts_[static_cast<std::size_t>(fate)]; }

  /// So many points of a region whose floor is `cost` are not looked at.
  void leave(double cost, std::uint64_t points, Fate fate) {
    if (points == 0) return;
    count(fate) += points;
    least_left_ = std::min(least_left_, cost);
  }

  /// Turns step times into costs: rates are in proportion to their inverse.
  void scale_costs(std::uint64_t index) {
    const Setting setting = job_.study().setting(index);
    const Prediction at_one_second = PlanFloor(setting).rates(regions_.families().front().plan, Seconds(1));
    const double least = race_ ? kLeastExpected : 1;
    per_second_ = kRounding * least * cost_of(objective_, value_of(objective_, at_one_second));
  }

  std::vector<double> setting_floors() {
    std::vector<double> costs;
    for (std::uint64_t setting = 0; setting < job_.space().settings(); ++setting) {
      stopped_ = stopped_ || (options_.go_on && !options_.go_on(progress(0)));
      if (stopped_) {
        costs.push_back(0);
        continue;
      }
      scale_costs(setting);
      costs.push_back(per_second_ * std::ranges::min(floors_.steps(setting)));
    }
    return costs;
  }

  /// Choices of the free axes with this microbatch.
  std::uint64_t choices_of(std::size_t microbatch) const {
    return static_cast<std::uint64_t>(
        std::ranges::count(regions_.choices(), regions_.microbatches()[microbatch], &FreeChoice::microbatch));
  }
  std::uint64_t points_of(const Node& node) const {
    const Family& family = regions_.families()[node.family];
    if (node.kind == Node::Kind::raced) return 1;
    if (node.kind == Node::Kind::variant) return family.variants[node.variant].listed.size();
    return family.listed * choices_of(node.choice);
  }

  void push(Node node) {
    if (answer_.cuts(node.cost, node.memory)) return leave(node.cost, points_of(node), Fate::bound);
    node.number = made_++;
    queue_.push(node);
  }

  void search_setting(std::uint64_t index) {
    setting_ = std::make_unique<Setting>(job_.study().setting(index));
    index_ = index;
    placement_ = placement_of(job_.study(), index / job_.study().workloads.size());
    floor_ = std::make_unique<PlanFloor>(*setting_);
    evaluator_ = options_.evaluator(*setting_, placement_);
    scale_costs(index);
    const std::vector<double>& steps = floors_.steps(index);
    const std::size_t microbatches = regions_.microbatches().size();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const Node node{steps[i] * per_second_, 0, Node::Kind::family,
                      static_cast<std::uint32_t>(i / microbatches),
                      static_cast<std::uint32_t>(i % microbatches)};
      node.cost == kNever ? leave(kNever, points_of(node), Fate::rule) : push(node);
    }
    while (!queue_.empty()) {
      const Node node = queue_.top();
      queue_.pop();
      stopped_ = stopped_ || (options_.go_on && !options_.go_on(progress(node.cost)));
      if (stopped_ || answer_.cuts(node.cost, node.memory)) {
        leave(node.cost, points_of(node), stopped_ ? Fate::open : Fate::bound);
      } else {
        open(node);
      }
    }
    if (race_) race_->clear();
    evaluator_.reset();  // before the setting they refer to
    floor_.reset();
  }

  void open(const Node& node) {
    switch (node.kind) {
      case Node::Kind::family:
        return placement_ == PlacementChoice::plain ? sharpen(node) : split(node);
      case Node::Kind::called:
        return split(node);
      case Node::Kind::variant:
        return visit(node);
      case Node::Kind::raced:
        return draw_on(node);
    }
  }

  /// The passes of a family with their calls; ranks that are placed anew may make them shorter.
  PassFloors passes_of(const Family& family, const ParallelPlan& plan) {
    return placement_ == PlacementChoice::plain ? floor_->with_calls(plan, family.orders)
                                                : floor_->without_calls(plan);
  }

  void sharpen(Node node) {
    const Family& family = regions_.families()[node.family];
    const std::int32_t microbatch = regions_.microbatches()[node.choice];
    const FreeChoice choice{regions_.least_recompute(), microbatch};
    const PassFloors passes = passes_of(family, with_choice(family.plan, choice));
    double least = kNever;
    for (const std::size_t variant : family.schedules) {
      least = std::min(least, floor_->least(with_choice(family.variants[variant].plan, choice), passes));
    }
    node.cost = std::max(node.cost, least * per_second_);
    node.kind = Node::Kind::called;
    push(node);
  }

  void split(const Node& node) {
    const Family& family = regions_.families()[node.family];
    const std::int32_t microbatch = regions_.microbatches()[node.choice];
    for (std::uint32_t c = 0; c < regions_.choices().size(); ++c) {
      const FreeChoice& choice = regions_.choices()[c];
      if (choice.microbatch != microbatch) continue;
      const PassFloors passes = passes_of(family, with_choice(family.plan, choice));
      for (std::uint32_t v = 0; v < family.variants.size(); ++v) {
        const ParallelPlan plan = with_choice(family.variants[v].plan, choice);
        Node variant{floor_->least(plan, passes) * per_second_, 0, Node::Kind::variant, node.family, c, v};
        if (variant.cost == kNever) {
          leave(kNever, points_of(variant), Fate::rule);
        } else if (!front_) {
          push(variant);
        } else if (const auto memory = memory_of(variant)) {
          variant.memory = *memory;
          push(variant);
        }
      }
    }
  }

  ParallelPlan plan_of(const Node& variant) const {
    const FreeChoice& choice = regions_.choices()[variant.choice];
    return with_choice(regions_.families()[variant.family].variants[variant.variant].plan, choice);
  }

  /// The peak memory of a variant; nothing, and its points are counted, where none of them is a result.
  std::optional<double> memory_of(const Node& variant) {
    const ParallelPlan plan = plan_of(variant);
    Fate fate = Fate::constraint;
    if (job_.admits(plan, job_.workload(index_))) {
      const Prediction verdict = evaluator_->judge(plan);
      if (verdict.status == Status::ok) return verdict.memory_peak.value();
      fate = verdict.status == Status::memory ? Fate::memory : Fate::rule;
    }
    leave(kNever, points_of(variant), fate);
    return std::nullopt;
  }

  void visit(const Node& node) {
    if (!front_ && !memory_of(node)) return;
    const Variant& variant = regions_.families()[node.family].variants[node.variant];
    for (const std::uint64_t listed : variant.listed) {
      const std::uint64_t id = regions_.id(index_, listed, node.choice);
      if (race_) {
        Node raced = node;
        raced.kind = Node::Kind::raced;
        raced.runner = race_->join(id);
        push(raced);
      } else {
        keep_visited(id);
        answer_.offer(id, evaluator_->evaluate(job_.space().point(id).plan));
      }
    }
  }

  void keep_visited(std::uint64_t id) {
    visited_.push_back(id);
    ++count(Fate::visited);
  }

  /// Some samples more of a point that faults may still let into the answer.
  void draw_on(Node node) {
    const std::uint64_t id = race_->point(node.runner);
    const Prediction healthy = evaluator_->evaluate(job_.space().point(id).plan);
    if (healthy.status != Status::ok) return keep_visited(id);
    const double least = kRounding * kLeastExpected * healthy.step_time.value();
    if (least > node.cost && answer_.cuts(least, node.memory)) return leave(least, 1, Fate::bound);
    const FaultRace::Standing now = race_->draw_on(node.runner, healthy, *evaluator_);
    if (now.finished) {
      keep_visited(id);
      answer_.offer(id, healthy, now.seconds);
    } else {
      node.cost = std::max(node.cost, kRounding * now.seconds);
      push(node);
    }
  }

  [[nodiscard]] double value_at(double cost) const { return cost_of(objective_, cost); }  // its own inverse

  SearchProgress progress(double cost) {
    return {job_.space().size(), counts_, value_at(cost), answer_.first()};
  }

  SearchOutcome outcome() {
    SearchOutcome outcome;
    std::ranges::sort(visited_);
    outcome.visited = std::move(visited_);
    outcome.best = answer_.best();
    if (race_) outcome.draws = {race_->draws_made(), race_->drawn_points()};
    outcome.info.counts = counts_;
    outcome.info.complete = !stopped_;
    outcome.info.within = within_;
    outcome.info.bound =
        least_left_ == kNever ? std::numeric_limits<double>::quiet_NaN() : value_at(least_left_);
    return outcome;
  }

  const SweepJob& job_;
  const SearchOptions& options_;
  TimeObjective objective_;
  bool front_;
  double within_;
  Regions regions_;
  FamilyFloors floors_;
  Answer answer_;
  std::optional<FaultRace> race_;  ///< of points with one expected time each
  std::uint64_t plans_ = job_.space().plans();
  double per_second_ = 1;  ///< cost of a second, rounding included
  std::priority_queue<Node> queue_;
  std::uint64_t made_ = 0;
  std::vector<std::uint64_t> visited_;
  results::FateCounts counts_{};
  double least_left_ = kNever;  ///< floor of all that a bound cut off, or that is open
  bool stopped_ = false;
  // The setting at hand.
  std::uint64_t index_ = 0;
  PlacementChoice placement_ = PlacementChoice::plain;
  std::unique_ptr<Setting> setting_;
  std::unique_ptr<PlanFloor> floor_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace

std::string why_unbounded(const SweepJob& job, const SearchGoal& goal) {
  const Study& study = job.study();
  if (study.phase() != Phase::training) return "serving has none";
  if (study.mode != ExecutionMode::hierarchical) return "the flattened mode has none";
  const std::size_t used = goal.front ? goal.objectives.size() : 1;
  for (std::size_t i = 0; i < used; ++i) {
    if (time_objective(goal.objectives[i]) != TimeObjective::expected_step_time) continue;
    if (const std::string why = why_no_race(study.faults); !why.empty()) return why;
  }
  std::size_t times = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const bool time = time_objective(goal.objectives[i]).has_value();
    times += time ? 1 : 0;
    if (!time && (!goal.front || goal.objectives[i] != "memory_peak_bytes"))
      return goal.objectives[i] + " has none";
  }
  if (times == 0) return "memory_peak_bytes has none";
  if (times > 1 || used > 2)
    return "a front has them over one of step_time_s, expected_step_time_s, tokens_per_s_per_gpu and mfu "
           "beside "
           "memory_peak_bytes";
  return "";
}

SearchOutcome search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options) {
  SHARDSCAPE_CHECK(why_unbounded(job, goal).empty(), goal.objectives.size());
  SHARDSCAPE_CHECK(job.space().size() > 0, job.space().size());
  return Search(job, goal, options).run();
}

}  // namespace shardscape::sweep
