// The search of one setting, or of a part of it, from an answer that is known.
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

/// The cost of what is no result.
inline constexpr double kNever = std::numeric_limits<double>::infinity();

/// What all parts of a search read. Immutable.
struct SearchFrame {
  const SweepJob& job;
  const EvaluatorFactory& evaluator;
  TimeObjective objective;
  bool front = false;
  const Regions& regions;
  const FamilyFloors& floors;
  const SettingGroups& calls;                         ///< by floors of calls
  std::shared_ptr<network::SharedNetworks> networks;  ///< of floors
  /// Of settings whose executions are one, and what is known of these; null in hierarchical mode.
  const SettingGroups* executions = nullptr;  ///< on their plain order of ranks
  ExecutedSteps* executed = nullptr;

  /// Of a setting: those whose executions are one have the same number.
  [[nodiscard]] std::size_t execution_group(std::uint64_t setting) const {
    return 2 * executions->of(setting) + (placement(setting) == PlacementChoice::plain ? 0 : 1);
  }
  [[nodiscard]] PlacementChoice placement(std::uint64_t setting) const {
    return placement_of(job.study(), setting / job.study().workloads.size());
  }
};

/// Of the families of a setting with their microbatches, by their floors, every `of`-th from the `index`-th on.
struct Part {
  std::uint64_t setting = 0;
  std::size_t index = 0, of = 1;
};

struct VisitedPoint {
  std::uint64_t id = 0;
  Prediction prediction;
  double value = 0;  ///< of the objective, under faults where it is one of them; NaN where it has none
};

/// What came of a part.
struct PartFound {
  results::FateCounts counts{};
  double least_left = kNever;  ///< floor of all that a bound cut off, or that is open
  bool stopped = false;
  std::vector<VisitedPoint> visited;  ///< in the order of visits
  std::uint64_t given_up = 0;   ///< executions that take longer than the answer: counted among Fate::bound
  std::uint64_t too_large = 0;  ///< to execute (SimulateOptions::most_events): among Fate::open
  RaceDraws draws;
};
/// For its way to another rank and back; appended to the text, and taken from its front.
void append(const PartFound& found, std::string& text);
PartFound take_found(std::string_view& text);

/// Says what has been counted, what the rest can reach at best (as a cost) and the best that is known; answers whether
/// to go on.
using AskPart = std::function<bool(const results::FateCounts&, double cost, const Answer&)>;

/// Searches parts, one after the other; keeps what makes the next one cheaper. One object per thread. What it finds
/// depends on its arguments alone.
class PartSearch {
 public:
  /// `frame` outlives the object.
  explicit PartSearch(const SearchFrame& frame);
  ~PartSearch();
  PartSearch(const PartSearch&) = delete;
  PartSearch& operator=(const PartSearch&) = delete;

  /// What no point of the setting costs less than: without the calls of layers, and with them.
  double floor_of(std::uint64_t setting);
  double sharp_floor_of(std::uint64_t setting);

  PartFound run(const Part& part, const Answer& known, const AskPart& ask);

  /// What executing a point says, known from then on; nothing where `go_on`, asked meanwhile, ends it.
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
  void evaluate(std::uint64_t id);
  void draw_on(Node node);
  void keep_visited(std::uint64_t id, const Prediction& prediction, double value);
  void push(Node node);
  void leave(double cost, std::uint64_t points, results::Fate fate);
  double called_floor(std::size_t family, std::int32_t microbatch);
  PassFloors passes_of(std::size_t family, const FreeChoice& choice);
  [[nodiscard]] std::uint64_t points_of(const Node& node) const;
  [[nodiscard]] ParallelPlan plan_of(const Node& variant) const;
  [[nodiscard]] ParallelPlan plan_of(const Node& variant, std::size_t entry) const;
  tl::expected<double, results::Fate> verdict_of(const ParallelPlan& plan);
  std::optional<double> memory_of(const Node& variant);

  const SearchFrame& frame_;
  CalledFloors called_;
  std::unique_ptr<Opened> setting_;  ///< the one at hand
  std::vector<std::unique_ptr<Kept>> kept_;
  // The part at hand.
  std::optional<FaultRace> race_;  ///< of points with one expected time each
  std::optional<Answer> answer_;
  const AskPart* ask_ = nullptr;
  PartFound found_;
  std::vector<Node> queue_;  ///< a heap
  std::uint64_t made_ = 0;
};

}  // namespace shardscape::sweep
