// Branch and bound over settings, in rounds of parts that threads and ranks share: the queue of settings, the exchange
// of results after each round, hints that are executed first, and the certificate.
#include "sweep/search/best_first.h"

#include <fmt/format.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <queue>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "engine/base/check.h"
#include "sweep/search/answer.h"
#include "sweep/search/floors.h"
#include "sweep/search/part_search.h"
#include "sweep/search/served_search.h"

namespace shardscape::sweep {

namespace {

using results::Fate;

/// If a study has fewer settings than this, each is cut into parts, so that there are about so many.
constexpr std::size_t kLeastParts = 32;
/// Most parts of a round; the first round has one part, and each has twice as many as the one before.
constexpr std::size_t kMostParts = 64;

/// Parts of the first round of executed steps: hints cut off most points by then, and one part would leave all threads
/// but one idle.
constexpr std::size_t kFirstParts = 8;

/// A setting that is not opened yet.
struct Waiting {
  double cost = 0;      ///< a lower bound of the cost of its points
  double capacity = 0;  ///< bytes of a device; among equal floors, plans fit the larger memory more often
  std::uint64_t setting = 0;
  bool sharp = false;

  [[nodiscard]] bool operator<(const Waiting& o) const {  // std::priority_queue takes the largest first
    if (cost != o.cost) return cost > o.cost;
    return capacity == o.capacity ? setting > o.setting : capacity < o.capacity;
  }
};

/// What a request to stop ends: the work of all ranks, or only this search, which is then part of another.
enum class Stops : std::uint8_t { everything, itself };

/// The progress of the search, for observers, updated from several threads.
class Watch {
 public:
  Watch(const SearchOptions& options, ranks::Ranks& ranks, Stops stops, TimeObjective objective,
        results::Better better, std::uint64_t points)
      : go_on_(options.go_on),
        may_visit_(options.may_visit),
        ranks_(ranks),
        stops_(stops),
        objective_(objective),
        better_(better) {
    progress_.points = points;
  }

  /// Adds `more`, which has been counted since the last call, and asks whether to go on.
  bool go_on(const results::FateCounts& more, double cost, const std::optional<BestPoint>& best) {
    if (ranks_.asked_to_stop()) stopped_ = true;
    if (stopped_ || !go_on_) return !stopped_;
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < more.size(); ++i) progress_.counts[i] += more[i];
    progress_.bound = cost_of(objective_, cost);  // cost_of() is its own inverse
    if (best && (!progress_.best || ranks_before(*best, *progress_.best, better_))) progress_.best = best;
    if (!stopped_ && !go_on_(progress_)) {
      stopped_ = true;
      if (stops_ == Stops::everything) ranks_.ask_to_stop();
    }
    return !stopped_;
  }
  /// Whether another point may be visited. Those that are being visited are not ended where not.
  bool may_visit() {
    const std::lock_guard lock(mutex_);
    refused_ = refused_ || (may_visit_ && !may_visit_());
    return !stopped_ && !refused_;
  }
  [[nodiscard]] bool refused() const { return refused_; }
  /// Sets the counts of all ranks together.
  void set_counts(const results::FateCounts& counts) {
    const std::lock_guard lock(mutex_);
    progress_.counts = counts;
  }
  void stop() { stopped_ = true; }
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  const std::function<bool(const SearchProgress&)>& go_on_;
  const std::function<bool()>& may_visit_;
  ranks::Ranks& ranks_;
  Stops stops_;
  TimeObjective objective_;
  results::Better better_;
  std::mutex mutex_;
  SearchProgress progress_;
  std::atomic<bool> stopped_{false}, refused_{false};
};

/// Hands out the numbers of a round's parts, each to one rank.
class Numbers {
 public:
  /// Every rank must make one at the same place. Numbers that were handed out in an earlier search do not count.
  explicit Numbers(ranks::Ranks& ranks) : ranks_(ranks) {
    ranks.gather("");  // after this no rank takes numbers of the search before
    const std::string first = ranks.broadcast(ranks.rank() == 0 ? std::to_string(ranks.take(0) + 1) : "");
    first_ = end_ = std::stoull(first);
  }
  /// Begins a round; every rank must call it for every round.
  void begin_round(std::size_t parts) {
    first_ = end_;
    end_ += parts;
  }
  /// The next part of the round for this rank; nothing where there are no more. May be called from any thread.
  std::optional<std::size_t> next() {
    const std::lock_guard lock(mutex_);
    if (!held_) held_ = ranks_.take(0);
    if (*held_ >= end_) return std::nullopt;  // belongs to a later round
    return static_cast<std::size_t>(*std::exchange(held_, std::nullopt) - first_);
  }

 private:
  ranks::Ranks& ranks_;
  std::mutex mutex_;
  std::uint64_t first_ = 0, end_ = 0;
  std::optional<std::uint64_t> held_;
};

using Found = std::vector<std::optional<PartFound>>;  // by number of the part in the round

std::string to_text(const Found& found) {
  std::string text;
  for (std::uint64_t part = 0; part < found.size(); ++part) {
    if (!found[part]) continue;
    ranks::append_value(part, text);
    append(*found[part], text);
  }
  return text;
}

void add_from(std::string_view text, Found& found) {
  while (!text.empty()) {
    std::uint64_t part = 0;
    ranks::take_value(part, text);
    found[part] = take_found(text);
  }
}

TimeObjective objective_of(const SearchGoal& goal) {
  for (const std::string& name : goal.objectives) {
    if (const auto objective = time_objective(name)) return *objective;
  }
  SHARDSCAPE_CHECK(false, goal.objectives.size());
  return TimeObjective::step_time;
}

class Search {
 public:
  /// `numbers`: the ranks' single sequence of numbers, shared by all of their searches.
  Search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options, ranks::Ranks& ranks,
         Numbers& numbers, Stops stops = Stops::everything)
      : job_(job),
        goal_(goal),
        options_(options),
        threads_(options.threads),
        ranks_(ranks),
        objective_(objective_of(goal)),
        within_(goal.within),
        answer_(objective_, goal),
        watch_(options, ranks, stops, objective_, answer_.better(), job.space().size()),
        regions_(job.space()),
        floors_(job, regions_, options.threads, [this] { return watch_.go_on({}, 0, std::nullopt); }),
        calls_(job.study(), FloorKind::calls),
        executions_(job.study(), FloorKind::points),
        frame_{job,
               options.evaluator,
               objective_,
               goal.front && goal.objectives.size() > 1,
               regions_,
               floors_,
               calls_,
               shared_networks(),
               executes() ? &executions_ : nullptr,
               executes() ? &executed_ : nullptr,
               [this](std::uint64_t id) { return hints_.contains(id) || watch_.may_visit(); }},
        searches_([this] { return std::make_unique<PartSearch>(frame_); }),
        numbers_(numbers) {}

  SearchOutcome run() {
    share({}, {});  // tells whether some rank was stopped before it knew its floors
    if (executes() && !frame_.front) execute_hints();
    fill_queue();
    std::size_t most = executes() ? kFirstParts : 1;
    while (!watch_.stopped()) {
      const std::vector<Part> round = next_round(most);
      if (round.empty()) break;
      share(round, search(round));
      most = std::min(2 * most, kMostParts);
    }
    if (ranks_.rank() != 0) return {};
    if (!opened_ && !queue_.empty()) opened_ = queue_.top().setting;
    leave_rest();
    if (watch_.stopped() && answer_.entries().empty()) probe();
    return outcome();
  }

 private:
  PartSearch& own() { return *searches_.local(); }
  [[nodiscard]] bool executes() const { return job_.study().mode == ExecutionMode::flattened; }

  /// Executions take thousands of times as long as prices, and most plans with the best prices execute well. So the
  /// points that a search by prices finds are executed first: their times then cut off slower points from the start.
  /// The ranks share them.
  void execute_hints() {
    const std::vector<std::uint64_t> best = seek_hints();
    const auto ranks = static_cast<std::size_t>(ranks_.size()),
               rank = static_cast<std::size_t>(ranks_.rank());
    std::vector<std::optional<VisitedPoint>> executed(best.size());
    results::FateCounts one{};
    one[static_cast<std::size_t>(Fate::visited)] = 1;
    const auto execute = [&](std::size_t i) {
      if (i % ranks != rank || !watch_.may_visit()) return;
      const auto prediction = own().execute(best[i], [this] { return watch_.go_on({}, 0, std::nullopt); });
      if (!prediction) return;
      executed[i] = {best[i], *prediction, 0};
      std::optional<BestPoint> found;
      if (prediction->status == Status::ok) found = {value_of(objective_, *prediction), best[i]};
      watch_.go_on(one, 0, found);
    };
    if (threads_ > 1) {
      tbb::parallel_for(std::size_t{0}, executed.size(), execute, tbb::simple_partitioner());
    } else {
      for (std::size_t i = 0; i < executed.size(); ++i) execute(i);
    }
    Found found(ranks);
    PartFound& mine = found[rank].emplace();
    mine.stopped = watch_.stopped() || watch_.refused();
    for (const std::optional<VisitedPoint>& point : executed)
      if (point) mine.visited.push_back(*point);
    std::string text;
    for (const std::string& of_rank : ranks_.gather(to_text(found))) text += of_rank;
    text = ranks_.broadcast(text);
    add_from(text, found);
    for (const std::optional<PartFound>& of_rank : found) {
      if (of_rank->stopped) watch_.stop();
      for (const VisitedPoint& hint : of_rank->visited) take_hint(hint);
    }
  }

  /// The points with the best prices, found by all ranks together.
  std::vector<std::uint64_t> seek_hints() {
    Study priced = job_.study();
    priced.mode = ExecutionMode::hierarchical;
    const SweepJob job(priced, job_);
    SearchOptions options;
    options.evaluator = options_.hints;
    options.probes = false;
    options.threads = threads_;
    options.go_on = [this](const SearchProgress&) {
      return watch_.go_on({}, 0, std::nullopt) && (!options_.seek_hints || options_.seek_hints());
    };
    SearchGoal goal = goal_;
    goal.count = std::min(goal.count, kMostHints);
    std::vector<std::uint64_t> ids;
    for (const BestPoint& point : Search(job, goal, options, ranks_, numbers_, Stops::itself).run().best)
      ids.push_back(point.point_id);
    return of_rank_0(ids);
  }

  void take_hint(const VisitedPoint& hint) {
    const PointIndex point = job_.space().point(hint.id);
    const Setting setting = job_.study().setting(point.setting);
    executed_.of(
        frame_.execution_group(point.setting), executed_plan(point.plan, setting.system.stack),
        [](Seconds) { return true; }, [&](const StepWatch&) { return hint.prediction; });
    hints_.emplace(hint.id, hint);
    if (job_.judged(point.setting, point.plan, hint.prediction).status != Status::ok) return;
    answer_.offer_hint(hint.id, hint.prediction, value_of(objective_, hint.prediction));
  }

  /// Looks at some points of a search that was stopped before it had found any, so that it has an answer all the same;
  /// not where that takes executions or samples of faults.
  void probe() {
    constexpr std::size_t kProbes = 16;
    if (!options_.probes || !opened_ || executes() || objective_ == TimeObjective::expected_step_time) return;
    for (const VisitedPoint& point : own().probe(*opened_, kProbes)) {
      answer_.offer_hint(point.id, point.prediction, point.value);
      hints_.emplace(point.id, point);
    }
  }

  /// Counts a hint that has a time as visited, even if its region was cut off by the answer.
  void count_hints() {
    std::unordered_set<std::uint64_t> known(ids_.begin(), ids_.end());
    for (const VisitedPoint& visited : visited_) known.insert(visited.id);
    for (const auto& [id, hint] : hints_) {
      if (hint.prediction.status != Status::ok || !known.insert(id).second) continue;
      const Fate left = counts_[static_cast<std::size_t>(Fate::bound)] > 0 ? Fate::bound : Fate::open;
      --counts_[static_cast<std::size_t>(left)];
      ++counts_[static_cast<std::size_t>(Fate::visited)];
      visited_.push_back(hint);
    }
  }

  void fill_queue() {
    for (std::uint64_t setting = 0; setting < job_.space().settings(); ++setting) {
      const System& system = job_.study().systems[setting / job_.study().workloads.size()];
      queue_.push({own().floor_of(setting), system.device.memory_capacity().value(), setting});
    }
  }

  /// Counts points of settings with floor `cost` that are not looked at.
  void leave(double cost, std::uint64_t points, Fate fate) {
    counts_[static_cast<std::size_t>(fate)] += points;
    least_left_ = std::min(least_left_, cost);
  }

  std::vector<Part> next_round(std::size_t most) {
    const std::size_t families = regions_.families().size();
    const std::size_t wanted = (kLeastParts + job_.space().settings() - 1) / job_.space().settings();
    const std::size_t parts = std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, families));
    while (pending_.size() < most && !queue_.empty()) {
      Waiting next = queue_.top();
      queue_.pop();
      if (answer_.cuts(next.cost, 0)) {
        leave(next.cost, job_.space().plans(), Fate::bound);
      } else if (next.sharp) {
        opened_ = next.setting;
        for (std::size_t i = 0; i < parts; ++i) pending_.push_back({next.setting, i, parts});
      } else {
        next.cost = std::max(next.cost, own().sharp_floor_of(next.setting));
        next.sharp = true;
        queue_.push(next);
      }
    }
    const auto end = pending_.begin() + static_cast<std::ptrdiff_t>(std::min(most, pending_.size()));
    std::vector<Part> round(pending_.begin(), end);
    pending_.erase(pending_.begin(), end);
    return round;
  }

  PartFound search(const Part& part) {
    results::FateCounts told{};
    return own().run(part, answer_,
                     [&](const results::FateCounts& counts, double cost, const Answer& answer) {
                       results::FateCounts more = counts;
                       for (std::size_t i = 0; i < more.size(); ++i) more[i] -= told[i];
                       told = counts;
                       return watch_.go_on(more, cost, answer.first());
                     });
  }

  /// Searches this rank's share of a round.
  Found search(const std::vector<Part>& round) {
    Found found(round.size());
    numbers_.begin_round(round.size());
    const auto work = [&] {
      while (const auto part = numbers_.next()) found[*part] = search(round[*part]);
    };
    if (threads_ == 1) {
      work();
    } else {
      tbb::parallel_for(
          0, threads_, [&](int) { work(); }, tbb::simple_partitioner());
    }
    return found;
  }

  /// Joins what all ranks have found in a round: rank 0 gets everything, the others the answer.
  void share(const std::vector<Part>& round, Found found) {
    if (ranks_.size() == 1) return add(round, found);
    const char stopped = watch_.stopped() ? 1 : 0;
    const auto texts = ranks_.gather(stopped + to_text(found));
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (texts[rank].front() != 0) watch_.stop();
      if (rank != 0) add_from(std::string_view(texts[rank]).substr(1), found);
    }
    if (ranks_.rank() == 0) add(round, found);
    if (of_rank_0(watch_.stopped())) watch_.stop();
    std::vector<AnswerEntry> entries = of_rank_0(answer_.entries());
    if (ranks_.rank() != 0) answer_.replace(std::move(entries));
  }

  /// The value that rank 0 gives.
  template <class T>
  T of_rank_0(T value) {
    std::string text;
    if (ranks_.rank() == 0) ranks::append_value(value, text);
    text = ranks_.broadcast(text);
    std::string_view rest(text);
    ranks::take_value(value, rest);
    return value;
  }

  void add(const std::vector<Part>& round, const Found& found) {
    for (std::size_t part = 0; part < round.size(); ++part) add(*found[part]);
    watch_.set_counts(counts_);
  }

  void add(const PartFound& part) {
    for (std::size_t i = 0; i < counts_.size(); ++i) counts_[i] += part.counts[i];
    least_left_ = std::min(least_left_, part.least_left);
    if (part.stopped) watch_.stop();
    draws_.made += part.draws.made;
    draws_.points += part.draws.points;
    given_up_ += part.given_up;
    too_large_ += part.too_large;
    for (const VisitedPoint& visited : part.visited)
      answer_.offer(visited.id, visited.prediction, visited.value);
    visited_.insert(visited_.end(), part.visited.begin(), part.visited.end());
    if (visited_.size() <= kMostKeptPredictions && ids_.empty()) return;
    for (const VisitedPoint& visited : visited_) ids_.push_back(visited.id);
    visited_.clear();
  }

  /// Counts the regions that are left at the end, or at a stop.
  void leave_rest() {
    for (const Part& part : std::exchange(pending_, {})) add(search(part));
    for (; !queue_.empty(); queue_.pop()) {
      const double cost = queue_.top().cost;
      leave(cost, job_.space().plans(), watch_.stopped() ? Fate::open : Fate::bound);
    }
  }

  SearchOutcome outcome() {
    count_hints();
    SearchOutcome outcome;
    std::ranges::sort(visited_, {}, &VisitedPoint::id);
    for (const VisitedPoint& visited : visited_) {
      ids_.push_back(visited.id);
      outcome.predictions.push_back(visited.prediction);
    }
    if (ids_.size() > outcome.predictions.size()) outcome.predictions.clear();
    std::ranges::sort(ids_);
    outcome.visited = std::move(ids_);
    outcome.best = answer_.best();
    if (objective_ == TimeObjective::expected_step_time) outcome.draws = draws_;
    outcome.given_up = given_up_;
    outcome.too_large = too_large_;
    outcome.info.counts = counts_;
    outcome.info.complete = !watch_.stopped() && too_large_ == 0;
    outcome.info.within = within_;
    outcome.info.bound = least_left_ == kNever ? std::numeric_limits<double>::quiet_NaN()
                                               // cost_of() is its own inverse.
                                               : cost_of(objective_, least_left_);
    return outcome;
  }

  const SweepJob& job_;
  const SearchGoal& goal_;
  const SearchOptions& options_;
  int threads_;
  ranks::Ranks& ranks_;
  TimeObjective objective_;
  double within_;
  Answer answer_;
  Watch watch_;
  Regions regions_;
  FamilyFloors floors_;
  SettingGroups calls_, executions_;
  ExecutedSteps executed_;
  SearchFrame frame_;
  tbb::enumerable_thread_specific<std::unique_ptr<PartSearch>> searches_;
  Numbers& numbers_;
  std::priority_queue<Waiting> queue_;
  std::vector<Part> pending_;
  std::optional<std::uint64_t>
      opened_;  ///< the setting that parts were made of last, or the most promising one
  std::vector<VisitedPoint> visited_;
  std::map<std::uint64_t, VisitedPoint> hints_;
  std::vector<std::uint64_t> ids_;  ///< ids of visited points whose predictions are not kept
  RaceDraws draws_;
  std::uint64_t given_up_ = 0, too_large_ = 0;
  results::FateCounts counts_{};
  double least_left_ = kNever;  ///< least floor of all regions that a bound cut off or that are open
};

/// Whether the devices of all systems say what the objective is made of.
bool known_everywhere(const Study& study, TimeObjective objective) {
  return std::ranges::all_of(study.systems, [&](const System& system) {
    const DeviceSpec& device = system.device;
    if (objective == TimeObjective::energy) return device.power.value() > 0;
    return objective != TimeObjective::cost || device.price_per_hour > 0;
  });
}

}  // namespace

std::string why_unbounded(const SweepJob& job, const SearchGoal& goal) {
  const Study& study = job.study();
  if (study.phase() == Phase::inference) return why_no_load_floors(job, goal);
  if (study.mode == ExecutionMode::checked) return "the mode checked has none";
  if (study.gpu_counts.size() > 1) return "several numbers of gpus have none (--set gpus=N takes one)";
  for (const results::Limit& limit : study.limits) {
    const results::ColumnInfo* const column = job.columns().find(limit.column);
    if (column->group == results::ColumnGroup::faults || limit.column == "expected_error")
      return "a constraint on " + limit.column + " has none";
  }
  const bool executed = study.mode == ExecutionMode::flattened;
  const std::size_t used = goal.front ? goal.objectives.size() : 1;
  for (std::size_t i = 0; i < used; ++i) {
    if (time_objective(goal.objectives[i]) != TimeObjective::expected_step_time) continue;
    if (executed) return "the flattened mode has none of expected_step_time_s";
    if (const std::string why = why_no_race(study.faults); !why.empty()) return why;
  }
  std::size_t times = 0;
  for (std::size_t i = 0; i < used; ++i) {
    const bool time = time_objective(goal.objectives[i]).has_value();
    times += time ? 1 : 0;
    if (time && !known_everywhere(study, *time_objective(goal.objectives[i])))
      return goal.objectives[i] + " has none where a device says no power or no price_per_hour";
    if (!time && (!goal.front || goal.objectives[i] != "memory_peak_bytes"))
      return goal.objectives[i] + " has none";
  }
  if (times == 0) return "memory_peak_bytes has none";
  if (times > 1 || used > 2)
    return "a front has them over one of step_time_s, expected_step_time_s, energy_per_token_j, "
           "cost_per_million_tokens, tokens_per_s_per_gpu and mfu beside memory_peak_bytes";
  return "";
}

std::string why_too_many_regions(const SweepJob& job) {
  if (job.study().phase() == Phase::inference) return "";
  const SpaceSpec& space = job.study().space;
  std::uint64_t families = job.space().tuples();
  const char* longest = "";
  std::size_t most = 0;
  for (const PlanAxisRow& row : kPlanRows) {
    if (!is_of_families(row)) continue;
    const std::size_t values = space[row.key].values.size();
    families *= values;
    if (values > most) longest = row.column;
    most = std::max(most, values);
  }
  if (families > kMostFamilies)
    return fmt::format(
        "its degrees make up to {} families of plans, and search keeps {} at most; fewer values of {}, or a "
        "sweep of a "
        "sample, take less",
        families, kMostFamilies, longest);
  const std::uint64_t microbatches = job.space().free_choices() / space[PlanKey::recompute].values.size();
  if (families * microbatches > kMostCells)
    return fmt::format(
        "its {} values of microbatch_size on up to {} families of degrees make {} regions, and search keeps "
        "{} at most; "
        "fewer values, or a sweep of a sample, take less",
        microbatches, families, families * microbatches, kMostCells);
  const std::uint64_t cells = families * microbatches;
  if (cells * job.space().settings() <= kMostFloors) return "";
  const std::uint64_t groups = SettingGroups(job.study(), FloorKind::steps).count();
  if (cells * groups > kMostFloors)
    return fmt::format(
        "its {} families of degrees and microbatches in {} settings of hardware and workload that differ in "
        "their steps "
        "make {} floors, and search keeps {} at most; fewer values, or a sweep of a sample, take less",
        cells, groups, cells * groups, kMostFloors);
  return "";
}

SearchOutcome search(const SweepJob& job, const SearchGoal& goal, const SearchOptions& options) {
  SHARDSCAPE_CHECK(why_unbounded(job, goal).empty(), goal.objectives.size());
  SHARDSCAPE_CHECK(job.space().size() > 0, job.space().size());
  SHARDSCAPE_CHECK(options.threads >= 1, options.threads);
  const std::unique_ptr<ranks::Ranks> alone = options.together == nullptr ? ranks::alone() : nullptr;
  ranks::Ranks& ranks = alone ? *alone : *options.together;
  const auto threads = static_cast<std::size_t>(options.threads);
  const tbb::global_control control(tbb::global_control::max_allowed_parallelism, threads);
  tbb::task_arena arena(options.threads);
  if (job.study().phase() == Phase::inference)
    return arena.execute([&] { return search_served(job, goal, options); });
  Numbers numbers(ranks);
  return arena.execute([&] { return Search(job, goal, options, ranks, numbers).run(); });
}

}  // namespace shardscape::sweep
