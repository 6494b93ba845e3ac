// Fits the constants of one sort (of time, or of memory) in rounds. Private to this folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sweep/calibrate/calibrate.h"

namespace shardscape::calibrate {

class ConstantFit {
 public:
  using Progress = std::function<void(const std::string& what, const FitProgress&)>;

  /// `all`: the constants that may move. Priors are at the values of `base`.
  ConstantFit(FitActsOn sort, std::vector<const Constant*> all, Candidate base, Progress progress);

  /// Fits in rounds until all constants that move are identified.
  void run(const Dataset& data);
  /// Fits the identified constants to other rows, starting where run() ended.
  [[nodiscard]] std::vector<double> refit(const Dataset& data, const std::string& what) const;
  /// Sets the constants that moved, to the values of run() or to those of refit().
  void apply(Candidate& candidate) const { apply(values(), candidate); }
  void apply(const std::vector<double>& values, Candidate& candidate) const;

  /// A result for each constant of `all`, not rounded.
  [[nodiscard]] std::vector<ConstantResult> results() const;
  [[nodiscard]] const FitReport& report() const { return report_; }

 private:
  struct State {
    const Constant* constant;
    double prior;
    double u = 0;
    double deviation = 0;
    bool free = true;
    std::string why = {};
    /// Goes back to the prior.
    void give_up(std::string reason) { free = false, u = 0, why = std::move(reason); }
  };
  [[nodiscard]] Fit settle(const Dataset& data);
  [[nodiscard]] Candidate at(double share) const;
  void hold_back(const Dataset& data);
  [[nodiscard]] std::vector<std::size_t> free() const;
  [[nodiscard]] FitProblem problem(const Dataset& data, const std::string& what) const;
  [[nodiscard]] std::vector<double> values() const;
  [[nodiscard]] std::string why_not(const std::vector<std::size_t>& moving, std::size_t which,
                                    const struct Judgement& judgement) const;
  bool give_up_vaguest();

  std::vector<State> states_;
  Candidate base_;
  Progress progress_;
  FitReport report_;
  double typical_error_ = kLargestError;
};

}  // namespace shardscape::calibrate
