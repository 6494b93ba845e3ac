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
// Errors are stated before and after, and by cross-validation: rows fall into folds by a hash of their id, or,
// in public tables, of their plan or shape group (validate::EvaluatedRow::kin), which is never split. Each fold
// is predicted with the constants that the other folds give. Which constants move is settled once,
// on all rows of the fit. Rows that are held out take part in nothing but their own error table.
#pragma once

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
#include "sweep/validate/hold_out.h"
#include "sweep/validate/presets.h"

namespace shardscape::calibrate {

struct CalibrateProgress {
  std::string what;  ///< "time, round 1", "memory, fold 3 of 5"
  FitProgress fit;
};

struct CalibrateOptions {
  std::string stack;                  ///< a preset or a path
  std::optional<std::string> device;  ///< fit its facts, too; also that of GEMM rows that name none
  bool device_alone = false;          ///< the stack, which collectives need, stays as it is
  RowSelection rows;
  std::vector<const Constant*> only;                      ///< fit these; empty: all
  std::vector<const Constant*> keep;                      ///< leave these alone
  std::vector<std::pair<const Constant*, double>> start;  ///< in place of the profile's own values
  std::optional<validate::HoldOut> hold_out;
  int folds = 5;  ///< below 2: no cross-validation
  bool reference = false;
  std::function<void(const CalibrateProgress&)> progress;  ///< may be empty
};

struct ConstantResult {
  const Constant* constant = nullptr;
  double before = 0;  ///< the profile's own
  double prior = 0;   ///< centre of its prior: `before`, or the start value given
  double after = 0;   ///< rounded to three significant digits; the prior where it was not identified
  std::optional<double> standard_error;  ///< of `after`; nothing where it was not identified
  bool identified = false;
  std::string why;  ///< it was not identified
};

/// Errors of one file; evaluations have the rows of the selection.
struct FileReport {
  std::string file;
  std::size_t rows = 0, fitted_rows = 0;
  validate::Evaluation before, after;                   ///< of the rows that were fitted
  std::optional<validate::Evaluation> cross_validated;  ///< of the same rows
  std::optional<validate::Evaluation> held_out_before, held_out_after;
};

/// One of the two fits.
struct FitReport {
  ActsOn sort = ActsOn::time;
  std::size_t measurements = 0;
  double typical_error = 0;                          ///< s of fit.h in the end
  double objective_before = 0, objective_after = 0;  ///< both with that
  int rounds = 0, iterations = 0;
  std::size_t evaluations = 0;  ///< predictions of all rows, cross-validation not counted
  bool converged = true;
};

struct Calibration {
  Candidate before, after;                ///< `before`: as on file
  std::vector<ConstantResult> constants;  ///< all of the table that concern what is fitted
  std::vector<FitReport> fits;
  std::vector<FileReport> files;
  std::vector<validate::TableProblem> left_out;  ///< rows of impossible plans
};

/// Which of `folds` classes of ids a row belongs to; unrelated to who is held out.
int fold_of(std::string_view id, int folds);

/// Problems: unknown presets, tables and cells that cannot be read, no rows of the selection, start values
/// outside their range; all at once.
tl::expected<Calibration, std::vector<validate::TableProblem>> calibrate(
    const std::vector<validate::Table>& tables, validate::Presets& presets, const CalibrateOptions& options);

}  // namespace shardscape::calibrate
