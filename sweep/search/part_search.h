// The search of one setting, or of a part of it, starting from a known answer.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/runner/shared_networks.h"
#include "sweep/search/answer.h"
#include "sweep/search/best_first.h"
#include "sweep/search/executed_steps.h"
#include "sweep/search/fault_race.h"
#include "sweep/search/floors.h"
#include "sweep/search/regions.h"
#include "sweep/study/placement_axis.h"

namespace shardscape::sweep {

/// The cost of points that are no results.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// The data that all parts of a search read. Immutable.
struct SearchFrame {
  const SweepJob& job;
  const EvaluatorFactory& evaluator;
  TimeObjective objective;
  bool front = false;
  const Regions& regions;
  const FamilyFloors& floors;
  const SettingGroups& calls;                         ///< groups of settings with equal floors of calls
  std::shared_ptr<network::SharedNetworks> networks;  ///< networks whose prices are shared
  /// Groups of settings with equal executions, and the executions known; null in hierarchical mode.
  const SettingGroups* executions = nullptr;  ///< for ranks in plain order
  ExecutedSteps* executed = nullptr;
  std::function<bool(std::uint64_t id)> may_visit =
      {};  ///< whether a point may be visited; asked by any thread

  /// The number of the settings that share executions with this one.
  [[nodiscard]] std::size_t execution_group(std::uint64_t setting) const {
    return 2 * executions->of(setting) + (placement(setting) == PlacementChoice::plain ? 0 : 1);
  }
  [[nodiscard]] PlacementChoice placement(std::uint64_t setting) const {
    return placement_of(job.study(), setting / job.study().workloads.size());
  }
};

/// A part of a setting: of its families with their microbatches, sorted by floor, every `of`-th from number `index` on.
struct Part {
  std::uint64_t setting = 0;
  std::size_t index = 0, of = 1;
};

struct VisitedPoint {
  std::uint64_t id = 0;
  Prediction prediction;
  double value = 0;  ///< value of the objective, expected under faults where it is; NaN where it has none
};

/// The result of searching a part.
struct PartFound {
  results::FateCounts counts{};
  double least_left = kNever;  ///< least floor of all that a bound cut off, or that is open
  bool stopped = false;
  std::vector<VisitedPoint> visited;  ///< in the order of visits
  /// Executions given up as they take longer than the answer, counted under Fate::bound.
  std::uint64_t given_up = 0;
  /// Plans too large to execute (SimulateOptions::most_events), counted under Fate::open.
  std::uint64_t too_large = 0;
  RaceDraws draws;
};
/// Append a result to a text, and take one from the front of a text, to send results between ranks.
void append(const PartFound& found, std::string& text);
PartFound take_found(std::string_view& text);

/// Is told what has been counted, the best cost that the rest can reach, and the best points known; answers whether to
/// go on.
using AskPart = std::function<bool(const results::FateCounts&, double cost, const Answer&)>;

/// Searches parts one after the other, and keeps what makes the next one cheaper. Use one object per thread. Results
/// depend on the arguments alone.
class PartSearch {
 public:
  /// `frame` must outlive the object.
  explicit PartSearch(const SearchFrame& frame);
  ~PartSearch();
  PartSearch(const PartSearch&) = delete;
  PartSearch& operator=(const PartSearch&) = delete;

  /// Lower bounds of the cost of a setting's points: without the calls of layers, and with them.
  double floor_of(std::uint64_t setting);
  double sharp_floor_of(std::uint64_t setting);

  PartFound run(const Part& part, const Answer& known, const AskPart& ask);

  /// Evaluates so many results of a setting by their prices, spread over its plans; fewer where hardly any plan is one.
  std::vector<VisitedPoint> probe(std::uint64_t setting, std::size_t most);

  /// Executes a point, whose result is known from then on; nothing if `go_on`, which is asked meanwhile, ends it.
  std::optional<Prediction> execute(std::uint64_t id, const std::function<bool()>& go_on);

 private:
  struct Node;
  struct Opened;
  struct Kept;

  void open_setting(std::uint64_t setting);
  Evaluator& evaluator();
  std::optional<Prediction> execute(const ParallelPlan& plan, const StepWatch& watch);
  void execute(const Node& node);
  [[nodiscard]] bool is_slow(Seconds step, double memory) const;
  bool go_on(double cost);
  void begin(const Part& part);
  void open(const Node& node);
  void sharpen(Node node);
  void split(const Node& node);
  void visit(const Node& node);
  bool may_visit(std::uint64_t id);
  void evaluate(std::uint64_t id);
  void draw_on(Node node);
  [[nodiscard]] bool is_result(std::uint64_t id, const Prediction& prediction) const;
  void keep_visited(std::uint64_t id, const Prediction& prediction, double value);
  void push(Node node);
  void leave(double cost, std::uint64_t points, results::Fate fate);
  double called_floor(std::size_t family, const FreeChoice& choice);
  PassFloors passes_of(std::size_t family, const FreeChoice& choice);
  [[nodiscard]] std::uint64_t points_of(const Node& node) const;
  [[nodiscard]] ParallelPlan plan_of(const Node& variant, std::size_t entry) const;
  tl::expected<double, results::Fate> verdict_of(const ParallelPlan& plan);
  std::optional<double> memory_of(const Node& variant);

  const SearchFrame& frame_;
  CalledFloors called_;
  std::unique_ptr<Opened> setting_;  ///< the current setting
  std::vector<std::unique_ptr<Kept>> kept_;
  // The current part:
  std::optional<FaultRace> race_;  ///< used for expected times under faults
  std::optional<Answer> answer_;
  const AskPart* ask_ = nullptr;
  PartFound found_;
  std::vector<Node> queue_;  ///< kept as a heap
  std::uint64_t made_ = 0;
};

}  // namespace shardscape::sweep
