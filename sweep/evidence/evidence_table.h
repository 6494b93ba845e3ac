// What measurements have shown of predictions: statistics of residuals by regime. No single measured row is kept here.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/problems.h"
#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/precision_policy.h"

namespace shardscape::evidence {

/// The conditions of a prediction. Texts are names of presets; empty: no preset applies.
struct Regime {
  Phase phase = Phase::training;
  std::string device;
  PolicyName precision = PolicyName::bf16;
  std::string model_kind;
  std::string stack;
  std::int64_t gpus = 1;
  /// Whether the device says which shares of its peaks it sustains. Otherwise predictions take the full peaks, which no
  /// measured device has reached.
  bool sustained = true;
  /// Whether some of these shares are not the device's own but typical of others, as of a device by its data sheet.
  bool typical = false;
};

/// Whether evidence holds plans by their degree along an axis: its collectives grow with it. (Replicas grow with the
/// GPUs, which Regime holds; servers are told apart by the pool that decodes.)
constexpr bool has_evidence(const PlanAxisRow& row) {
  return row.kind == AxisKind::degree ? row.key != PlanKey::data : is_of_experts(row) && !is_of_prefill(row);
}
/// The degrees of a plan along those axes; 0 for the others.
using Degrees = EnumArray<PlanKey, std::int32_t>;
Degrees degrees_of(const ParallelPlan& plan);
/// Degrees of tables that do not say which ones their rows had: none is larger.
inline constexpr std::int32_t kUntold = std::numeric_limits<std::int32_t>::max();
constexpr Degrees untold_degrees() {
  Degrees degrees;
  degrees.values.fill(kUntold);
  return degrees;
}
/// The key of the largest degree among the rows of a cell: "tensor_most".
std::string most_key(const PlanAxisRow& row);
/// The larger of each pair of degrees.
Degrees most_of(const Degrees& a, const Degrees& b);

/// The kind of a model, such as "dense". Models of one kind have the same operators.
std::string model_kind(const ModelSpec& model);

/// The one name that evidence uses for a policy that has two names.
constexpr PolicyName own_name(PolicyName name) { return name == PolicyName::fp4 ? PolicyName::nvfp4 : name; }

/// What the measurements of one regime and one band of cluster sizes have shown.
struct Cell {
  Regime regime;  ///< its `gpus` has no meaning here
  /// Smallest and largest number of GPUs among the rows.
  std::int64_t gpus_low = 1, gpus_high = 1;
  /// The largest degrees among the rows, each taken on its own.
  Degrees most = untold_degrees();
  std::int64_t rows = 0;
  std::int64_t plans = 0;  ///< distinct plans among the rows, 1..rows: rows of one plan err together
  double bias = 0;         ///< median of predicted / measured - 1 over the rows
  double sigma = 0;  ///< the absolute error that 68.27 % of plans not yet seen should stay within, above 0
};

/// Share of a normal distribution within one standard deviation.
inline constexpr double kOneSigma = 0.6827;

struct Table {
  std::vector<Cell> cells;
  [[nodiscard]] Problems validate() const;
};

}  // namespace shardscape::evidence
