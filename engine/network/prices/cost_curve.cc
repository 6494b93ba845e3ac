#include "engine/network/prices/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

constexpr double kSliceBytes = 512 * 1024;
constexpr double kMostChunks = 32;
constexpr double kRounding = 1e-12;  ///< relative, of sums over a ring's hops

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
                                meets(part.in_turn, kRounding));
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

std::optional<double> CostCurve::saved_in_row(double bytes, double now, double step, double gap,
                                              bool one_way) const {
  std::optional<double> least;
  const auto add = [&](const std::vector<Stage>& stages) {
    const bool rings = std::ranges::any_of(stages, [](const Stage& stage) { return !stage.rings.empty(); });
    if (stages.empty() || (!rings && !one_way)) return;
    double all = gap, longest = 0, spared = 0, call = gap + now;
    for (const Stage& stage : stages) {
      const double time = stage.at(bytes, step);
      all += time;
      call += time - stage.at(bytes);
    }
    for (std::size_t i = 0; i < stages.size(); ++i) {
      const std::size_t mirrored = stages.size() - 1 - i;
      if (!one_way && mirrored < i) break;
      const int passes = !one_way && mirrored > i ? 2 : 1;
      const double others = all - passes * stages[i].at(bytes, step);
      longest = std::max(longest, stages[i].period(bytes, step, gap, passes));
      spared += std::max(0.0, all - stages[i].period(bytes, step, others, passes));
    }
    // Stages that share links when members are late may take longer than each by itself; that is not saved.
    const double saved = std::min(call, all) - (one_way ? longest : std::max(longest, all - spared));
    least = std::min(least.value_or(saved), saved);
  };
  add(parts_->stages);
  for (const CurveParts::Contended& part : parts_->contended) add(part.upper);
  return least;
}

double CostCurve::at_least(double bytes) const {
  double time = sum_of(parts_->stages, bytes);
  for (const CurveParts::Contended& part : parts_->contended)
    time = std::max(time, sum_of(part.lower, bytes));
  return time;
}

}  // namespace shardscape::network
