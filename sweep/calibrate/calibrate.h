// Fits the constants of a stack profile (and of a device) to measurements, and says what that is worth.
//
// Times and memory are fitted apart: no constant acts on both. Each fit runs in rounds: fit all constants
// that are free, judge what the data say about each (identify.h), give up those they cannot identify (back to
// the profile's own value) and fit the others again, until all that move are identified. A constant that is 0
// in the profile stands for a mechanism the software does not have and stays 0, unless a start value is
// given.
//
// Beside the constants, s (fit.h) is fitted: what the model typically errs by on these rows.
//
// Errors are stated before and after, and by cross-validation: rows fall into folds by a hash of their id, those of
// public tables by their plan or shape group (validate::EvaluatedRow::kin), which never is split, or every model is a
// fold of its own, whatever number of layers it is cut to (`-l7`); each fold is predicted with the constants that the
// other folds give. Which constants move is settled once, on all rows of the fit. Rows that are held out take part in
// nothing but their own error table.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tl/expected.hpp>
#include <utility>
#include <vector>

#include "sweep/calibrate/constants.h"
#include "sweep/calibrate/dataset.h"
#include "sweep/calibrate/fit.h"
#include "sweep/validate/evaluation.h"
#include "sweep/validate/presets.h"

namespace shardscape::calibrate {

inline constexpr std::size_t kFewMeasurements = 10, kFewPerConstant = 3;
inline constexpr double kFewWidths = 2;

enum class FoldsBy : std::uint8_t { plan, model };

struct CalibrateProgress {
  std::string what;  ///< "time, round 1", "memory, fold 3 of 5"
  FitProgress fit;
};

struct CalibrateOptions {
  std::string stack;  ///< name of a preset, or a path
  /// Fit the constants of this device as well; GEMM rows that name no device are also of it.
  std::optional<std::string> device;
  bool device_alone = false;  ///< keep the stack, which collectives need, as it is
  RowSelection rows;
  std::vector<const Constant*> only;                      ///< fit only these; empty: all
  std::vector<const Constant*> keep;                      ///< do not fit these
  std::vector<std::pair<const Constant*, double>> start;  ///< start values in place of the profile's own
  std::optional<validate::HoldOut> hold_out;
  int folds = 5;  ///< number of folds; below 2: no cross-validation
  /// With folds by model there are as many as models, if there are at least two; rows of kernels keep their shape
  /// groups.
  FoldsBy folds_by = FoldsBy::plan;
  bool reference = false;
  std::function<void(const CalibrateProgress&)> progress;  ///< may be empty
};

struct ConstantResult {
  const Constant* constant = nullptr;
  double before = 0;  ///< value in the profile
  double prior = 0;   ///< centre of the prior: `before`, or the start value given
  double after = 0;   ///< rounded to three significant digits; the prior where it was not identified
  std::optional<double> standard_error;  ///< error of `after`; nothing where it was not identified
  bool identified = false;
  std::string why;  ///< why it was not identified
};

/// Errors of one file; evaluations have the selected rows.
struct FileReport {
  std::string file;
  std::size_t rows = 0, fitted_rows = 0;
  validate::Evaluation before, after;  ///< evaluations of the rows that were fitted
  /// Evaluates the same rows, each predicted by a fit to the other folds.
  std::optional<validate::Evaluation> cross_validated;
  std::optional<validate::Evaluation> held_out_before, held_out_after;
};

/// Results of one of the two fits.
struct FitReport {
  FitActsOn sort = FitActsOn::time;
  std::size_t measurements = 0;
  /// Whether there are too few to say how much the model errs by: below kFewMeasurements, and below kFewPerConstant for
  /// each constant that may move. Then s stays at kLargestError, constants stay within kFewWidths of their priors, and
  /// the worst error does not grow: they go only such a share of the way to the optimum, in halves.
  bool few = false;
  double share = 1;
  double typical_error = 0;                          ///< the final s of fit.h
  double objective_before = 0, objective_after = 0;  ///< objective with that s, before and after
  int rounds = 0, iterations = 0;
  std::size_t evaluations = 0;  ///< number of predictions of all rows, without cross-validation
  bool converged = true;
};

struct Calibration {
  Candidate before, after;                ///< `before`: as in the files
  std::vector<ConstantResult> constants;  ///< all constants of the table that concern what is fitted
  std::vector<FitReport> fits;
  std::vector<FileReport> files;
  std::vector<validate::TableProblem> left_out;  ///< rows of impossible plans
};

/// The name of a row's model without its number of layers: "llama3.1-405b" for "llama3.1-405b-l7".
std::string whole_model(const std::string& name);

/// The class, 0 .. folds - 1, that a row with this id belongs to; independent of which rows are held out.
int fold_of(std::string_view id, int folds);

/// Calibrates. Problems, reported all at once: unknown presets, tables and cells that cannot be read, no selected rows,
/// start values outside their range.
tl::expected<Calibration, std::vector<validate::TableProblem>> calibrate(
    const std::vector<validate::Table>& tables, validate::Presets& presets, const CalibrateOptions& options);

}  // namespace shardscape::calibrate
