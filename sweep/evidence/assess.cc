// Estimates the error to expect of a prediction from the cells of evidence that are nearest to its regime: each
// difference of regime widens the spread that these cells have shown.
#include "sweep/evidence/assess.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/spec/plan_axes.h"

namespace shardscape::evidence {

namespace {

/// A cluster within this many doublings of a measured size counts as measured, or as near.
constexpr double kSameScale = 1, kNearScale = 3;

/// How many doublings the regime's GPUs lie outside the range of a cell; 0 inside of it.
double doublings(const Regime& regime, const Cell& cell) {
  const auto gpus = static_cast<double>(regime.gpus);
  return std::max({0.0, std::log2(gpus / static_cast<double>(cell.gpus_high)),
                   std::log2(static_cast<double>(cell.gpus_low) / gpus)});
}

struct Distance {
  double variance = 0;  ///< relative, squared: what all differences add
  double doublings = 0;
  /// Spread that each difference adds (relative), and which it is.
  std::vector<std::pair<double, EvidenceGap>> gaps;
};

Distance distance(const Regime& regime, const Cell& cell) {
  Distance far;
  const auto differ = [&](bool different, EvidenceGap gap, double spread) {
    if (!different) return;
    far.variance += spread * spread;
    far.gaps.emplace_back(spread, gap);
  };
  const Regime& known = cell.regime;
  const Widening& widening = kWidening[regime.phase];
  differ(known.device != regime.device, EvidenceGap::device,
         regime.typical ? std::max(kTypicalShares, widening.device) : widening.device);
  differ(known.precision != regime.precision, EvidenceGap::precision, widening.precision);
  differ(known.model_kind != regime.model_kind, EvidenceGap::model_kind, widening.model_kind);
  differ(known.stack != regime.stack, EvidenceGap::stack, widening.stack);
  far.doublings = doublings(regime, cell);
  const double spread = kDoubling * far.doublings;
  differ(far.doublings > kSameScale, EvidenceGap::scale, spread);
  if (far.doublings <= kSameScale) far.variance += spread * spread;
  return far;
}

/// The logarithm of a spread, and the plans that it rests on.
struct LogSpread {
  double log_sigma = 0, plans = 0;

  /// The mean of both, this one as if it were of `prior_plans` plans.
  [[nodiscard]] LogSpread behind(const LogSpread& own, double prior_plans) const {
    const double all = own.plans + prior_plans;
    return {(own.plans * own.log_sigma + prior_plans * log_sigma) / all, own.plans};
  }
};

/// The mean spread of the cells of a phase, of one stack or (null) of all, weighted by their plans. As a mean of
/// logarithms it is hardly moved by a single cell with wild rows.
LogSpread mean_spread(const Table& table, Phase phase, const std::string* stack) {
  LogSpread mean;
  for (const Cell& cell : table.cells) {
    if (cell.regime.phase != phase || (stack != nullptr && cell.regime.stack != *stack)) continue;
    const auto plans = static_cast<double>(cell.plans);
    mean.log_sigma += plans * std::log(cell.sigma);
    mean.plans += plans;
  }
  mean.log_sigma /= mean.plans;
  return mean;
}

/// Whether the regime has more GPUs than any row of its phase, of its device or of its stack. Of a device or stack
/// without rows none of its own is asked.
bool beyond_rows(const Table& table, const Regime& regime) {
  std::int64_t all = 0, device = 0, stack = 0;
  for (const Cell& cell : table.cells) {
    if (cell.regime.phase != regime.phase) continue;
    all = std::max(all, cell.gpus_high);
    if (cell.regime.device == regime.device) device = std::max(device, cell.gpus_high);
    if (cell.regime.stack == regime.stack) stack = std::max(stack, cell.gpus_high);
  }
  return std::ranges::any_of(std::array{all, device, stack},
                             [&](std::int64_t most) { return most > 0 && regime.gpus > most; });
}

/// Classifies a regime by its distance. `beyond`: see beyond_rows().
Evidence verdict(const Distance& far, bool beyond) {
  if (beyond) return Evidence::extrapolated;
  const auto other =
      std::ranges::count_if(far.gaps, [](const auto& gap) { return gap.second != EvidenceGap::scale; });
  if (other == 0 && far.doublings <= kSameScale) return Evidence::measured;
  return other <= 1 && far.doublings <= kNearScale ? Evidence::near : Evidence::extrapolated;
}

std::string words(const Regime& regime) {
  return fmt::format("{}, {}, {}, {}", regime.device, name_of(regime.precision), regime.model_kind,
                     regime.stack);
}

/// The finding for a phase without any rows: every difference adds its spread.
Finding unknown_phase(Phase phase) {
  const Widening& w = kWidening[phase];
  const double variance = w.device * w.device + w.precision * w.precision + w.model_kind * w.model_kind +
                          w.stack * w.stack + kNoise * kNoise;
  Finding finding;
  finding.assessment = {std::sqrt(variance), Evidence::extrapolated, EvidenceGap::phase};
  finding.gaps = {EvidenceGap::phase};
  return finding;
}

std::string plural(std::int64_t n, const char* word) {
  return fmt::format("{} {}{}", n, word, n == 1 ? "" : "s");
}

}  // namespace

Finding assess(const Table* table, const Regime& regime) {
  if (table == nullptr) {
    Finding finding;
    finding.assessment.gap = EvidenceGap::file;
    finding.gaps = {EvidenceGap::file};
    return finding;
  }
  std::vector<std::pair<const Cell*, Distance>> cells;
  Finding finding;
  const bool known_stack = std::ranges::any_of(table->cells, [&](const Cell& cell) {
    return cell.regime.phase == regime.phase && cell.regime.stack == regime.stack;
  });
  for (const Cell& cell : table->cells) {
    if (cell.regime.phase != regime.phase) continue;
    cells.emplace_back(&cell, distance(regime, cell));
    if (!known_stack || cell.regime.stack == regime.stack) finding.most = most_of(finding.most, cell.most);
  }
  if (cells.empty()) return unknown_phase(regime.phase);
  const auto variance = [](const auto& candidate) { return candidate.second.variance; };
  const double least = variance(*std::ranges::min_element(cells, {}, variance));
  constexpr double kEqual = 1e-12;
  std::erase_if(cells, [&](const auto& candidate) { return variance(candidate) > least + kEqual; });

  const LogSpread phase = mean_spread(*table, regime.phase, nullptr);
  double log_sigma = 0;
  finding.gpus_low = cells.front().first->gpus_low;
  for (const auto& [cell, far] : cells) {
    const auto plans = static_cast<double>(cell->plans);
    const LogSpread stack = phase.behind(mean_spread(*table, regime.phase, &cell->regime.stack), kPriorPlans);
    log_sigma += plans * stack.behind({std::log(cell->sigma), plans}, kPriorPlans).log_sigma;
    finding.rows += cell->rows;
    finding.plans += cell->plans;
    finding.gpus_low = std::min(finding.gpus_low, cell->gpus_low);
    finding.gpus_high = std::max(finding.gpus_high, cell->gpus_high);
  }
  const double sigma = std::max(kNoise, std::exp(log_sigma / static_cast<double>(finding.plans)));
  Distance far = cells.front().second;
  std::ranges::stable_sort(far.gaps, std::greater<>(), [](const auto& gap) { return gap.first; });
  for (const auto& [spread, gap] : far.gaps) finding.gaps.push_back(gap);
  const bool invented = !regime.sustained && cells.front().first->regime.device != regime.device;
  if (invented) {
    finding.assessment.gap = EvidenceGap::device;
  } else {
    const bool beyond = beyond_rows(*table, regime);
    const bool told = std::ranges::find(finding.gaps, EvidenceGap::scale) != finding.gaps.end();
    if (beyond && !told) finding.gaps.push_back(EvidenceGap::scale);
    finding.assessment = {std::sqrt(sigma * sigma + least), verdict(far, beyond),
                          finding.gaps.empty() ? EvidenceGap::none : finding.gaps.front()};
  }
  finding.nearest = words(cells.front().first->regime);
  return finding;
}

std::string larger_degree(const Finding& finding, const ParallelPlan& plan) {
  Degrees degrees = degrees_of(plan);
  degrees[PlanKey::ffn] = plan.ffn;  // measured of no plan
  for (const PlanAxisRow& row : kPlanRows) {
    const std::int32_t degree = degrees[row.key], most = row.key == PlanKey::ffn ? 0 : finding.most[row.key];
    if (degree > most) return fmt::format("no rows of {}={}, {} at most", row.name, degree, most);
  }
  return "";
}

Assessment assess_plan(const Finding& finding, const ParallelPlan& plan) {
  const bool known = finding.assessment.evidence != Evidence::none && finding.rows > 0;
  if (!known) return finding.assessment;
  // Nobody has published measurements of servers whose experts have GPUs of their own.
  if (plan.ffn == 0 && most_of(degrees_of(plan), finding.most) == finding.most) return finding.assessment;
  return {.gap = EvidenceGap::degrees};
}

std::string reason(const Finding& finding, const Regime& regime) {
  std::string missing;
  for (const EvidenceGap gap : finding.gaps) {
    std::string text;
    if (gap == EvidenceGap::file) return "no preset folder has an evidence file";
    if (gap == EvidenceGap::phase) return fmt::format("no rows of {}", name_of(regime.phase));
    if (gap == EvidenceGap::device)
      text = "this device" + (regime.device.empty() ? "" : " (" + regime.device + ")");
    if (gap == EvidenceGap::precision) text = name_of(regime.precision);
    if (gap == EvidenceGap::model_kind) text = regime.model_kind + " models";
    if (gap == EvidenceGap::stack)
      text = "this stack" + (regime.stack.empty() ? "" : " (" + regime.stack + ")");
    if (gap == EvidenceGap::scale) text = plural(regime.gpus, "GPU");
    missing += (missing.empty() ? "no rows of " : " with ") + text;
  }
  std::string rows = fmt::format("{} of {} on {}, {}", plural(finding.rows, "row"),
                                 plural(finding.plans, "plan"), finding.nearest, finding.gpus_low);
  if (finding.gpus_high > finding.gpus_low) rows += fmt::format(" to {}", finding.gpus_high);
  rows += finding.gpus_high > 1 ? " GPUs" : " GPU";
  return missing.empty() ? rows : missing + "; nearest are " + rows;
}

}  // namespace shardscape::evidence
