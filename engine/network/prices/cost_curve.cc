// A curve of lines alone is kept as one line where it is one; others are evaluated stage by stage, and their
// contended parts by bounds first and, where these are too far apart, by one simulation, whose time is kept for its
// bytes. Calls in a row save what the recursion of rings says that the next one need not wait for.
#include "engine/network/prices/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

constexpr double kSliceBytes = 512 * 1024;
constexpr double kMostChunks = 32;
constexpr double kHopRounding = 1e-12;  ///< relative, of sums over a ring's hops

double sum_of(const std::vector<CostCurve::Stage>& stages, double bytes) {
  double sum = 0;
  for (const CostCurve::Stage& stage : stages) sum += stage.at(bytes);
  return sum;
}

double simulate(Pattern pattern, double bytes, PricedNetwork& network) {
  pattern.bytes = bytes;
  pattern.chunks = chunks_of(pattern.operation, pattern.algorithm, bytes);
  for (PointToPoint& send : pattern.sends) send.bytes = bytes;
  const std::optional<double> time = network.simulate(pattern);
  SHARDSCAPE_CHECK(time.has_value(), bytes);
  return *time;
}

/// Simulates one round, and returns its lines.
CostCurve::Stage drained(const Pattern& pattern, PricedNetwork& network) {
  Pattern unit = pattern;
  unit.bytes = 1;
  for (PointToPoint& send : unit.sends) send.bytes = 1;
  const auto drains = network.drains(unit);
  SHARDSCAPE_CHECK(drains.has_value(), name_of(pattern.algorithm));
  CostCurve::Stage stage;
  for (const PricedNetwork::Drain& drain : *drains) stage.lines.push_back({drain.latency, drain.seconds});
  stage.lines = upper_envelope(std::move(stage.lines));
  return stage;
}

/// The parts as one line, if they are one.
std::optional<AffineCost> one_line(const CurveParts& parts) {
  if (!parts.contended.empty() || parts.cut_off) return std::nullopt;
  AffineCost sum;
  for (const CurveParts::Stage& stage : parts.stages) {
    if (stage.lines.size() != 1 || !stage.rings.empty()) return std::nullopt;
    sum.latency += stage.lines.front().latency;
    sum.seconds_per_byte += stage.share * stage.lines.front().seconds_per_byte;
  }
  return sum;
}

}  // namespace

std::vector<AffineCost> upper_envelope(std::vector<AffineCost> lines) {
  std::ranges::sort(lines, [](const AffineCost& a, const AffineCost& b) {
    return a.latency != b.latency ? a.latency > b.latency : a.seconds_per_byte > b.seconds_per_byte;
  });
  std::vector<AffineCost> hull;
  for (const AffineCost& line : lines) {
    if (!hull.empty() && line.seconds_per_byte <= hull.back().seconds_per_byte) continue;
    // Whether b is nowhere above the larger of a and `line`.
    const auto below = [&](const AffineCost& a, const AffineCost& b) {
      return (line.latency - a.latency) * (b.seconds_per_byte - a.seconds_per_byte) >=
             (b.latency - a.latency) * (line.seconds_per_byte - a.seconds_per_byte);
    };
    while (hull.size() > 1 && below(hull[hull.size() - 2], hull.back())) hull.pop_back();
    hull.push_back(line);
  }
  return hull;
}

std::int32_t chunks_of(Operation operation, Algorithm algorithm, double bytes) {
  if (!takes_chunks(operation, algorithm)) return 1;
  const double slices = std::clamp(std::ceil(bytes / kSliceBytes), 1.0, kMostChunks);
  return static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(slices)));
}

double CurveParts::Stage::at(double bytes) const {
  double longest = 0;
  for (const AffineCost& line : lines) longest = std::max(longest, line.at(share * bytes));
  for (const RingTime& ring : rings) longest = std::max(longest, ring.at(share * bytes));
  return longest;
}

CostCurve::CostCurve(CurveParts parts) : affine_(one_line(parts)) {
  parts.links.shrink_to_fit();
  parts_ = std::make_shared<const CurveParts>(std::move(parts));
}

double CostCurve::at(double bytes, PricedNetwork& network, double tolerance) {
  if (affine_) return affine_->at(bytes);
  double time = sum_of(parts_->stages, bytes);
  for (std::size_t i = 0; i < parts_->contended.size(); ++i) {
    const CurveParts::Contended& part = parts_->contended[i];
    const double upper = sum_of(part.upper, bytes);
    if (!part.upper.empty() && upper <= time) continue;
    const auto meets = [&](const std::vector<Stage>& lower, double within) {
      return upper <= sum_of(lower, bytes) * (1 + within);
    };
    const bool bounded =
        !part.upper.empty() && (part.messages > kMostSimulatedMessages || meets(part.lower, tolerance) ||
                                meets(part.in_turn, kHopRounding));
    time = std::max(time, bounded ? upper : simulated(i, bytes, network));
  }
  return time;
}

double CostCurve::simulated(std::size_t index, double bytes, PricedNetwork& network) {
  const CurveParts::Contended& part = parts_->contended[index];
  if (!part.one_round && !part.split) return simulate(part.pattern, bytes, network);
  simulated_.resize(parts_->contended.size());
  Simulated& known = simulated_[index];
  if (part.one_round) {
    if (!known.drained) known.drained = drained(part.pattern, network);
    return known.drained->at(bytes);
  }
  if (known.classes.empty()) known.classes = part.split(network);
  double longest = 0;
  for (const Pattern& pattern : known.classes) longest = std::max(longest, simulate(pattern, bytes, network));
  return longest;
}

double CurveParts::Stage::period(double bytes, double step, double gap, int passes) const {
  double longest = 0;
  for (const AffineCost& line : lines)
    longest = std::max(longest, gap + passes * (line.at(share * bytes) + steps * step));
  for (const RingTime& ring : rings)
    longest = std::max(longest, ring.period(share * bytes, step, gap, passes));
  return longest;
}

namespace {

using Stages = std::vector<CurveParts::Stage>;

/// Calls with the slow hops of one kind of ring each, on one line, as row_of_calls.h runs them.
struct Runs {
  std::vector<std::vector<RowStage>> rows;
  bool exact = false;  ///< they are all that there is: no two lines of a box are slow
};

/// The most kinds of slow rings that are run.
constexpr std::size_t kMostRows = 8;

using Kind = CurveParts::Stage::Kind;

/// The most frequent kind of rings whose hops are equal, of several the fastest.
const Kind* usual_kind(const std::vector<Kind>& kinds) {
  const Kind* usual = nullptr;
  for (const Kind& kind : kinds) {
    if (!kind.ring.of_equal_hops()) continue;
    const bool more = usual == nullptr || kind.number > usual->number ||
                      (kind.number == usual->number && kind.ring.at(1) < usual->ring.at(1));
    if (more) usual = &kind;
  }
  return usual;
}

/// The least time of a message among the hops of all kinds.
HopTime fastest_hop(const std::vector<Kind>& kinds, double bytes, double step) {
  HopTime fastest{std::numeric_limits<double>::infinity(), 0};
  for (const Kind& kind : kinds)
    for (const HopTime& hop : kind.ring.hop_times(bytes, step))
      if (hop.send + hop.arrive < fastest.send + fastest.arrive) fastest = hop;
  return fastest;
}

/// No rows where it is not known how many members a line has. Where no kind of rings has equal hops, the other lines
/// are as its fastest hop, so that a run takes no longer than its row.
Runs runs_of(const Stages& stages, double bytes, double step, bool one_way) {
  std::vector<RowStage> healthy;
  std::vector<const Kind*> usual;  // by stage; null: all lines are alike, or none has equal hops
  bool few_are_alike = false;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const CurveParts::Stage& stage = stages[i];
    const std::size_t mirrored = stages.size() - 1 - i, axis = one_way ? i : std::min(i, mirrored);
    const auto steps = static_cast<std::size_t>(stage.steps);
    const bool turns = !one_way && i == mirrored;
    RowStage& part = healthy.emplace_back(RowStage{axis, (turns ? steps / 2 : steps) + 1, steps, {}, {}});
    usual.push_back(usual_kind(stage.kinds));
    if (usual.back() != nullptr) {
      part.hop = usual.back()->ring.hop_times(stage.share * bytes, step).front();
    } else if (stage.lines.size() == 1 && stage.kinds.empty() && stage.rings.empty()) {
      const AffineCost& line = stage.lines.front();
      part.hop = {line.seconds_per_byte * stage.share * bytes / stage.steps,
                  line.latency / stage.steps + step};
    } else if (stage.kinds.empty()) {
      return {};
    } else if (stages.size() > 1) {
      part.hop = fastest_hop(stage.kinds, stage.share * bytes, step);
      few_are_alike = true;
    }
  }
  Runs runs;
  std::size_t slow_lines = 0;
  for (std::size_t i = 0; i < stages.size() && healthy[i].axis == i; ++i) {
    for (const Kind& kind : stages[i].kinds) {
      if (&kind == usual[i]) continue;
      if (runs.rows.size() == kMostRows) return {};
      slow_lines += kind.number;
      std::vector<RowStage>& row = runs.rows.emplace_back(healthy);
      for (std::size_t k = i; k < row.size(); ++k) {
        if (row[k].axis != i) continue;
        row[k].slow = kind.ring.hop_times(stages[k].share * bytes, step);
        if (stages.size() == 1) row[k].members = row[k].slow.size();
        if (row[k].members != row[k].slow.size()) return {};
      }
    }
  }
  if (runs.rows.empty()) runs.rows.push_back(healthy);  // nobody gets ahead
  runs.exact = stages.size() == 1 || (slow_lines <= 1 && !few_are_alike);
  return runs;
}

/// The longest mean of the rows; empty where there are none, or where running them is not worth it.
std::optional<double> longest_of(const Runs& runs, const Gaps& gaps) {
  std::optional<double> longest;
  for (const std::vector<RowStage>& row : runs.rows) {
    if (messages_in_cycle(row, gaps) > kMostInCycle) return std::nullopt;
    longest = std::max(longest.value_or(0), mean_in_row(row, gaps));
  }
  return longest;
}

/// How much sooner a call follows another than in `all` seconds, told by the cycles of each stage alone.
double saved_by_stages(const Stages& stages, double bytes, const CostCurve::InRow& row, double all,
                       bool one_way) {
  double longest = 0, spared = 0;
  const double gap = mean_of(row.gaps);
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t mirrored = stages.size() - 1 - i;
    if (!one_way && mirrored < i) break;
    const int passes = !one_way && mirrored > i ? 2 : 1;
    const double others = all - passes * stages[i].at(bytes, row.step);
    longest = std::max(longest, stages[i].period(bytes, row.step, gap, passes));
    spared += std::max(0.0, all - stages[i].period(bytes, row.step, others, passes));
  }
  return one_way ? all - longest : std::min(all - longest, spared);
}

/// The most that rings save beside other groups of one stage, none of whose members gets ahead.
double saved_beside(const Stages& stages, double bytes, const CostCurve::InRow& row, double all) {
  if (stages.size() > 1) return all;
  double others = mean_of(row.gaps);
  for (const CurveParts::Stage& stage : stages) {
    double longest = 0;
    for (const AffineCost& line : stage.lines)
      longest = std::max(longest, line.at(stage.share * bytes) + stage.steps * row.step);
    others += longest;
  }
  return all - others;
}

}  // namespace

std::optional<double> CostCurve::saved_in_row(double bytes, const InRow& row, bool one_way) const {
  std::optional<double> least;
  const double added = std::max(0.0, row.now - row.healthy);
  const auto add = [&](const Stages& stages, bool contended) {
    const bool rings = std::ranges::any_of(
        stages, [](const Stage& stage) { return !stage.rings.empty() || stage.kinds.size() > 1; });
    if (stages.empty() || (!rings && !one_way)) return;
    double all = mean_of(row.gaps), call = all + row.now;
    for (const Stage& stage : stages) {
      const double time = stage.at(bytes, row.step);
      all += time;
      call += time - stage.at(bytes);
    }
    // Stages that share links when members are late may take longer than each by itself; that is not saved.
    const double kept = std::max(0.0, all - call);
    const double by_stages = saved_by_stages(stages, bytes, row, all, one_way) - kept;
    double limited = share_apart(row.gaps) * std::clamp(by_stages, 0.0, one_way ? added / 2 : added);
    // A ring of equal gaps is told by its cycles, and rings that share links change their pace.
    const bool equal = std::ranges::adjacent_find(row.gaps, std::ranges::not_equal_to()) == row.gaps.end(),
               told = stages.size() == 1 && (contended || equal);
    const Runs runs = told ? Runs() : runs_of(stages, bytes, row.step, one_way);
    if (const auto longest = longest_of(runs, row.gaps)) {
      const double saved = std::min(saved_beside(stages, bytes, row, all), all - *longest) - kept;
      // Several slow lines cost no less than each of them alone.
      limited = std::clamp(runs.exact ? saved : std::min(saved, limited), 0.0, added);
    }
    least = std::min(least.value_or(limited), limited);
  };
  add(parts_->stages, false);
  for (const CurveParts::Contended& part : parts_->contended) add(part.upper, true);
  return least;
}

double CostCurve::at_least(double bytes) const {
  double time = sum_of(parts_->stages, bytes);
  for (const CurveParts::Contended& part : parts_->contended)
    time = std::max(time, sum_of(part.lower, bytes));
  return time;
}

}  // namespace shardscape::network
