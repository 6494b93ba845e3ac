#include "sweep/search/fault_race.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardscape::sweep {

namespace {

/// The smallest share that any fault of a draw leaves.
double least_share(const FaultDraw& draw) {
  double least = 1;
  for (const LinkFault& fault : draw.set.links) least = std::min(least, fault.derate);
  for (const DeviceFault& fault : draw.set.devices) least = std::min(least, fault.least_share());
  return least;
}

}  // namespace

std::string why_no_race(const std::optional<FaultStudy>& faults) {
  if (!faults) return "expected_step_time_s has none without faults";
  const bool soft =
      std::ranges::all_of(faults->kinds, [](const WeightedKind& k) { return row_of(k.kind).derates; });
  return soft ? "" : "expected_step_time_s has none under dead links, whose detours may be faster";
}

FaultRace::FaultRace(const FaultDraws& draws) : draws_(draws), order_(draws.draws().size()) {
  std::iota(order_.begin(), order_.end(), 0);
  if (draws.study().target_ci) return;  // the stopping rule reads samples in the study's order
  const auto worse = [&](std::size_t a, std::size_t b) {
    return least_share(draws.draws()[a]) < least_share(draws.draws()[b]);
  };
  std::ranges::stable_sort(order_, worse);
}

std::uint32_t FaultRace::join(std::uint64_t point_id) {
  runners_.push_back({point_id, {}, StoppingRule(draws_.study().target_ci)});
  return static_cast<std::uint32_t>(runners_.size() - 1);
}

FaultRace::Standing FaultRace::draw_on(std::uint32_t index, const Prediction& healthy, Evaluator& evaluator) {
  Runner& runner = runners_[index];
  const std::size_t before = runner.slowdowns.size();
  if (before == 0) ++drawn_points_;
  const std::size_t until = std::min(order_.size(), std::max(kFirstDraws, 2 * before));
  while (runner.slowdowns.size() < until && !runner.enough) {
    const FaultDraw& draw = draws_.draws()[order_[runner.slowdowns.size()]];
    runner.slowdowns.push_back(time_under(draw, healthy, Phase::training, evaluator).slowdown);
    runner.enough = runner.rule.add(runner.slowdowns.back());
    ++made_;
  }
  const Standing now = standing(runner, healthy.step_time);
  if (now.finished) runner.slowdowns = {};
  return now;
}

FaultRace::Standing FaultRace::standing(const Runner& runner, Seconds healthy) const {
  const std::size_t drawn = runner.slowdowns.size();
  if (runner.enough || drawn == order_.size()) {
    std::vector<SampleOutcome> outcomes(drawn);
    for (std::size_t i = 0; i < drawn; ++i) outcomes[order_[i]].slowdown = runner.slowdowns[i];
    return {.seconds = summarise(outcomes).expected(healthy.value()), .finished = true};
  }
  double sum = 0;
  std::size_t reached = order_.size();
  for (const double slowdown : runner.slowdowns) {
    if (std::isnan(slowdown)) {
      --reached;
    } else {
      sum += slowdown;
    }
  }
  sum -= kCollectiveTolerance * static_cast<double>(order_.size() - drawn);
  return {.seconds = healthy.value() * (1 + sum / static_cast<double>(reached))};
}

}  // namespace shardscape::sweep
