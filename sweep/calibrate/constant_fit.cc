// Fits constants in rounds: fit, judge what is identified, give up the rest, and fit again, with s adapted to the
// remaining errors.
#include "sweep/calibrate/constant_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sweep/calibrate/fit.h"
#include "sweep/calibrate/identify.h"

namespace shardscape::calibrate {

ConstantFit::ConstantFit(FitActsOn sort, std::vector<const Constant*> all, Candidate base, Progress progress)
    : base_(std::move(base)), progress_(std::move(progress)) {
  report_.sort = sort;
  for (const Constant* constant : all) {
    State state{constant, constant->get(base_)};
    if (state.prior == 0) {
      state.free = false;
      state.why = "0 in the profile: the mechanism is off; --start gives it a value to start from";
    }
    states_.push_back(std::move(state));
  }
}

std::vector<std::size_t> ConstantFit::free() const {
  std::vector<std::size_t> list;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].free) list.push_back(i);
  }
  return list;
}

void ConstantFit::apply(const std::vector<double>& values, Candidate& candidate) const {
  const std::vector<std::size_t> moving = free();
  for (std::size_t j = 0; j < moving.size(); ++j) states_[moving[j]].constant->set(candidate, values[j]);
}

std::vector<double> ConstantFit::values() const {
  std::vector<double> list;
  for (const std::size_t i : free())
    list.push_back(states_[i].constant->value_at(states_[i].u, states_[i].prior));
  return list;
}

FitProblem ConstantFit::problem(const Dataset& data, const std::string& what) const {
  FitProblem problem;
  problem.rows = data.size();
  problem.typical_error = typical_error_;
  const std::vector<std::size_t> moving = free();
  for (const std::size_t i : moving) {
    const State& state = states_[i];
    const double most = report_.few ? kFewWidths : HUGE_VAL;
    problem.low.push_back(std::max(-most, state.constant->u_of(state.constant->low, state.prior)));
    problem.high.push_back(std::min(most, state.constant->u_of(state.constant->high, state.prior)));
    problem.start.push_back(state.u);
  }
  problem.residuals = [this, &data, moving](const std::vector<std::vector<double>>& points) {
    std::vector<Candidate> candidates;
    for (const std::vector<double>& point : points) {
      Candidate& candidate = candidates.emplace_back(base_);
      for (std::size_t j = 0; j < moving.size(); ++j) {
        const State& state = states_[moving[j]];
        state.constant->set(candidate, state.constant->value_at(point[j], state.prior));
      }
    }
    return data.residuals(candidates);
  };
  if (progress_) problem.progress = [this, what](const FitProgress& progress) { progress_(what, progress); };
  return problem;
}

/// Why the judgement of moving[which] gives it up.
std::string ConstantFit::why_not(const std::vector<std::size_t>& moving, std::size_t which,
                                 const Judgement& judgement) const {
  const State& state = states_[moving[which]];
  const Constant& constant = *state.constant;
  switch (judgement.verdict) {
    case Verdict::identified:
      break;
    case Verdict::silent:
      return "the rows say less about it than its prior";
    case Verdict::at_bound: {
      const double value = constant.value_at(state.u, state.prior);
      if (report_.few && value > constant.low && value < constant.high)
        return fmt::format("{} measurements are too few to move it by {:.0f} widths of its prior",
                           report_.measurements, kFewWidths);
      const bool high = value > 0.5 * (constant.low + constant.high);
      return fmt::format("the fit ran into the {} end of its range, {}", high ? "upper" : "lower",
                         format_value(constant, high ? constant.high : constant.low));
    }
    case Verdict::tied:
      return fmt::format("seen only together with {} (correlation {:.2f})",
                         states_[moving[judgement.with]].constant->path, judgement.correlation);
  }
  return "";
}

/// Gives up the free constant whose standard error is the largest share of it, where that is more than kMostError.
bool ConstantFit::give_up_vaguest() {
  constexpr double kMostError = 0.5;
  State* vaguest = nullptr;
  double most = kMostError;
  for (const std::size_t i : free()) {
    State& state = states_[i];
    const double value = state.constant->value_at(state.u, state.prior);
    const double share = value > 0 ? state.deviation * state.constant->slope(value) / value : 0;
    if (share > most) vaguest = &state, most = share;
  }
  if (vaguest == nullptr) return false;
  vaguest->give_up(fmt::format("its standard error would be {:.0f} % of it", 100 * most));
  return true;
}

/// Fits the free constants with s as large as the remaining errors. s is found by fitting again with the errors of the
/// fit before; it may end within a factor of kEnough of its fixed point.
Fit ConstantFit::settle(const Dataset& data) {
  constexpr double kEnough = 1.25;
  constexpr int kMostSteps = 5;
  for (int step = 1;; ++step) {
    const std::string what(name_of(report_.sort));
    const Fit found = fit(problem(data, fmt::format("{}, round {}", what, ++report_.rounds)));
    report_.iterations += found.iterations;
    report_.evaluations += found.evaluations;
    const std::vector<std::size_t> moving = free();
    for (std::size_t j = 0; j < moving.size(); ++j) states_[moving[j]].u = found.point[j];
    const double due = report_.few ? kLargestError : std::clamp(found.error, kSmallestError, kLargestError);
    const bool settled = due < kEnough * typical_error_ && typical_error_ < kEnough * due;
    if (settled || step == kMostSteps) return found;
    typical_error_ = due;
  }
}

/// The candidate so far on the way from the priors to the optimum.
Candidate ConstantFit::at(double share) const {
  Candidate candidate = base_;
  for (const std::size_t i : free())
    states_[i].constant->set(candidate,
                             states_[i].constant->value_at(share * states_[i].u, states_[i].prior));
  return candidate;
}

/// Goes back towards the priors until the worst error is no worse than with these. The loss forgives single large
/// errors, and among few measurements nothing says that the large one is the wrong one.
void ConstantFit::hold_back(const Dataset& data) {
  constexpr double kLeastShare = 1.0 / 64;
  const auto worst = [](const std::vector<double>& residuals) {
    double most = 0;
    for (const double residual : residuals) most = std::max(most, std::abs(std::expm1(residual)));
    return most;
  };
  const double before = worst(data.residuals({base_})[0]);
  double share = 1;
  while (share >= kLeastShare && worst(data.residuals({at(share)})[0]) > before) share /= 2;
  report_.share = share < kLeastShare ? 0 : share;
  for (const std::size_t i : free()) {
    State& state = states_[i];
    state.u *= report_.share;
    if (report_.share == 0) state.give_up("of so few measurements the worst error would grow");
  }
}

void ConstantFit::run(const Dataset& data) {
  report_.measurements = data.size();
  report_.few = data.size() < kFewMeasurements && data.size() < kFewPerConstant * free().size();
  for (;;) {
    const Fit found = settle(data);
    const std::vector<std::size_t> moving = free();
    const std::vector<double> errors =
        deviations(found.information, moving.size(), found.error / typical_error_);
    for (std::size_t j = 0; j < moving.size(); ++j) states_[moving[j]].deviation = errors[j];
    const FitProblem task = problem(data, "");
    const std::vector<Judgement> judgements = judge(found.information, found.point, task.low, task.high);
    const std::vector<std::size_t> given_up = to_give_up(judgements, found.point);
    for (const std::size_t j : given_up) states_[moving[j]].give_up(why_not(moving, j, judgements[j]));
    const bool many = data.size() >= kFewMeasurements;  // whose error says what a small constant is worth
    if (!given_up.empty() || (!many && give_up_vaguest())) continue;
    report_.typical_error = typical_error_;
    report_.converged = found.converged;
    report_.objective_before = loss_of(data.residuals({base_})[0], typical_error_);
    report_.objective_after = found.objective;
    if (report_.few) {
      hold_back(data);
      report_.objective_after = loss_of(data.residuals({at(1)})[0], typical_error_);
    }
    return;
  }
}

std::vector<double> ConstantFit::refit(const Dataset& data, const std::string& what) const {
  if (data.size() == 0 || free().empty()) return values();
  const Fit found = fit(problem(data, fmt::format("{}, {}", name_of(report_.sort), what)));
  std::vector<double> list;
  const std::vector<std::size_t> moving = free();
  for (std::size_t j = 0; j < moving.size(); ++j) {
    const State& state = states_[moving[j]];
    list.push_back(state.constant->value_at(found.point[j], state.prior));
  }
  return list;
}

std::vector<ConstantResult> ConstantFit::results() const {
  std::vector<ConstantResult> list;
  for (const State& state : states_) {
    ConstantResult& result = list.emplace_back();
    result.constant = state.constant;
    result.prior = state.prior;
    result.identified = state.free;
    result.why = state.why;
    result.after = state.free ? state.constant->value_at(state.u, state.prior) : state.prior;
    if (state.free) result.standard_error = state.deviation * state.constant->slope(result.after);
  }
  return list;
}

}  // namespace shardscape::calibrate
