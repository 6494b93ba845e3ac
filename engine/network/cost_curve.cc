#include "engine/network/cost_curve.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

constexpr double kSliceBytes = 512 * 1024;
constexpr double kMostChunks = 32;

double sum_of(const std::vector<CostCurve::Stage>& stages, double bytes) {
  double sum = 0;
  for (const CostCurve::Stage& stage : stages) sum += stage.at(bytes);
  return sum;
}

double simulate(Pattern& pattern, double bytes, PricedNetwork& network) {
  pattern.bytes = bytes;
  pattern.chunks = chunks_of(pattern.operation, pattern.algorithm, bytes);
  for (PointToPoint& send : pattern.sends) send.bytes = bytes;
  const std::optional<double> time = network.simulate(pattern);
  SHARDSCAPE_CHECK(time.has_value(), bytes);
  return *time;
}

double time_of(CostCurve::Contended& part, double bytes, PricedNetwork& network, double tolerance) {
  if (!part.upper.empty()) {
    const double upper = sum_of(part.upper, bytes);
    if (part.messages > kMostSimulatedMessages) return upper;
    if (upper <= sum_of(part.lower, bytes) * (1 + tolerance)) return upper;
  }
  if (!part.split) return simulate(part.pattern, bytes, network);
  if (part.classes.empty()) part.classes = part.split();
  double longest = 0;
  for (Pattern& pattern : part.classes) longest = std::max(longest, simulate(pattern, bytes, network));
  return longest;
}

}  // namespace

std::int32_t chunks_of(Operation operation, Algorithm algorithm, double bytes) {
  if (!takes_chunks(operation, algorithm)) return 1;
  const double slices = std::clamp(std::ceil(bytes / kSliceBytes), 1.0, kMostChunks);
  return static_cast<std::int32_t>(std::bit_ceil(static_cast<std::uint32_t>(slices)));
}

double CostCurve::Stage::at(double bytes) const {
  double longest = 0;
  for (const AffineCost& line : lines) longest = std::max(longest, line.at(share * bytes));
  for (const RingTime& ring : rings) longest = std::max(longest, ring.at(share * bytes));
  return longest;
}

void CostCurve::simplify() {
  if (!contended.empty() || cut_off) return;
  AffineCost sum;
  for (const Stage& stage : stages) {
    if (stage.lines.size() != 1 || !stage.rings.empty()) return;
    sum.latency += stage.lines.front().latency;
    sum.seconds_per_byte += stage.share * stage.lines.front().seconds_per_byte;
  }
  affine_ = sum;
}

double CostCurve::at(double bytes, PricedNetwork& network, double tolerance) {
  if (affine_) return affine_->at(bytes);
  double time = sum_of(stages, bytes);
  for (Contended& part : contended) {
    if (!part.upper.empty() && sum_of(part.upper, bytes) <= time) continue;
    time = std::max(time, time_of(part, bytes, network, tolerance));
  }
  return time;
}

double CostCurve::at_least(double bytes) const {
  double time = sum_of(stages, bytes);
  for (const Contended& part : contended) time = std::max(time, sum_of(part.lower, bytes));
  return time;
}

}  // namespace shardscape::network
