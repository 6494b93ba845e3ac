// What measurements have shown of predictions: statistics of residuals by regime. No single measured row is kept here.
// The file of them is `hw_presets/evidence.yaml` of a preset folder, written by `validate --evidence`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/base/problems.h"
#include "engine/spec/model.h"
#include "engine/spec/phase.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/precision_policy.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

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

/// Where the file lies below a preset folder.
inline constexpr const char* kEvidenceFile = "hw_presets/evidence.yaml";

/// Finds the file in the first preset folder that has one; empty where none has.
std::optional<std::filesystem::path> find_evidence(const yaml::Catalog& catalog);

/// Reads the evidence. The error holds every problem of the file, with its place.
tl::expected<Table, yaml::Diagnostics> read_evidence(const std::filesystem::path& file);
/// Parses the evidence from text; `name` stands for the file in messages.
tl::expected<Table, yaml::Diagnostics> parse_evidence(const std::string& text, const std::string& name);

/// Writes a table as YAML text that reads back as an equal table.
std::string evidence_yaml(const Table& table);

/// The error of one measured row's prediction.
struct Residual {
  Regime regime;
  std::string plan;  ///< rows of one plan have the same text; empty: the row counts as a plan of its own
  double error = 0;  ///< predicted / measured - 1, above -1
  Degrees degrees = degrees_of({});  ///< degrees of the plan
};

/// One cell for each regime and band of GPUs (up to 8, 64, 512, and above) that has rows, in order of the phase,
/// device, precision, kind, stack and band. Every plan has the same weight, shared by its rows. Sigma is the
/// plain quantile of absolute errors at kOneSigma: that few plans say little about others is counted in by
/// assess() (kPriorPlans), and widened here as well it would hold 78 to 81 % of held-out rows. Figures are
/// rounded to four digits after the point. The order of the residuals has no effect.
Table summarise(std::span<const Residual> residuals);

/// The smallest value that at least a share `q` (0..1) of the weights does not exceed. `values` are (value,
/// weight), not empty, weights above 0.
double weighted_quantile(std::vector<std::pair<double, double>> values, double q);

}  // namespace shardscape::evidence
