// What measurements have shown of predictions: sums of residuals by regime. No row of a table is in it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/problems.h"
#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "engine/spec/plan.h"
#include "engine/spec/precision_policy.h"

namespace shardscape::evidence {

/// What a prediction is one of. Texts are names of presets; empty: it is none of them.
struct Regime {
  Phase phase = Phase::training;
  std::string device;
  PolicyName precision = PolicyName::bf16;
  std::string model_kind;
  std::string stack;
  std::int64_t gpus = 1;
  /// Whether the device says which shares of its peaks it sustains. One that does not is predicted at its peaks,
  /// which no device that was measured has kept.
  bool sustained = true;
};

/// Degrees of a plan whose collectives grow with them. (Replicas grow with the GPUs, which Regime has.)
struct Degrees {
  std::int32_t tensor = 1, context = 1, pipeline = 1, expert = 1;
  friend bool operator==(const Degrees&, const Degrees&) = default;
};
/// Of a table that does not say which degrees its rows had.
inline constexpr std::int32_t kUntold = std::numeric_limits<std::int32_t>::max();
Degrees degrees_of(const ParallelPlan& plan);
/// The larger of each.
Degrees most_of(const Degrees& a, const Degrees& b);

/// "dense". Models of one kind have the same operators.
std::string model_kind(const ModelSpec& model);

/// The name that a policy goes by here where it has two.
constexpr PolicyName own_name(PolicyName name) { return name == PolicyName::fp4 ? PolicyName::nvfp4 : name; }

/// The measurements of one regime and of one band of sizes.
struct Cell {
  Regime regime;                                        ///< `gpus` means nothing here
  std::int64_t gpus_low = 1, gpus_high = 1;             ///< of the rows
  Degrees most = {kUntold, kUntold, kUntold, kUntold};  ///< the largest among the rows, each on its own
  std::int64_t rows = 0;
  std::int64_t plans = 0;  ///< distinct ones among them, 1..rows: rows of one plan err together
  double bias = 0;         ///< median of predicted / measured - 1
  double sigma = 0;  ///< the absolute error that 68.27 % of plans not yet seen should stay within, above 0
};

/// Share of a normal distribution within one standard deviation.
inline constexpr double kOneSigma = 0.6827;

struct Table {
  std::vector<Cell> cells;
  [[nodiscard]] Problems validate() const;
};

}  // namespace shardscape::evidence
