// Does a fit find the constants that made the times, leave out what is held out, and report what it has rounded?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sweep/calibrate/calibrate.h"
#include "sweep/calibrate/constant_fit.h"
#include "tests/support/synthetic_runs.h"

namespace shardscape::calibrate {
namespace {

const std::initializer_list<const char*> kSix = {"host.forward_layer",
                                                 "host.backward_layer",
                                                 "host.per_collective",
                                                 "host.step_fixed",
                                                 "communication.scale_out_fraction",
                                                 "zero_slice"};

TEST(CalibrateProperty, RecoversTheConstantsThatMadeTheTimes) {
  std::vector<Layout> runs = runs_in_nodes();
  for (const Layout& run : runs_across_nodes()) runs.push_back(run);
  CalibrateOptions options = options_of(some(kSix));
  for (const char* silent : {"host.decode_layer", "communication.context_overlap"}) {
    options.only.push_back(find_constant(silent));
  }
  // Wrong by a quarter to a half, each in its own direction.
  const std::vector<double> wrong = {1.4, 0.75, 0.7, 1.3, 1.5, 0.6};
  Candidate real{truth(), std::nullopt};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const Constant* const constant = options.only[i];
    options.start.emplace_back(constant, wrong[i] * constant->get(real));
  }
  const Calibration found = calibrated(measured(runs, truth()), options);
  for (const char* path : kSix) {
    const ConstantResult& result = result_of(found, path);
    EXPECT_TRUE(result.identified) << path << ": " << result.why;
    EXPECT_NEAR(result.after / result.constant->get(real), 1, 0.02) << path;
  }
  EXPECT_FALSE(result_of(found, "host.decode_layer").identified);
  EXPECT_EQ(found.after.stack.host.decode_layer, found.before.stack.host.decode_layer);
  EXPECT_FALSE(result_of(found, "communication.context_overlap").identified);
  const auto errors = validate::error_statistics(found.files[0].after.metrics[0].pairs);
  EXPECT_EQ(errors.n, runs.size());
  EXPECT_LT(errors.max, 0.02);
}

TEST(CalibrateProperty, HeldOutRowsTakeNoPart) {
  validate::Table table = measured(runs_in_nodes(), truth(), 0.1);
  CalibrateOptions options = options_of(some({"host.forward_layer", "host.backward_layer"}));
  options.hold_out = validate::HoldOut{1, 3};
  options.folds = 3;
  const Calibration found = calibrated(table, options);
  std::size_t held = 0;
  for (validate::TableRow& row : table.rows) {
    if (!validate::is_held_out(row.cells[0], *options.hold_out)) continue;
    ++held;
    row.cells[22] = "1000";
  }
  ASSERT_GT(held, 0U);
  const Calibration again = calibrated(table, options);
  for (std::size_t i = 0; i < found.constants.size(); ++i) {
    EXPECT_EQ(found.constants[i].after, again.constants[i].after);
    EXPECT_EQ(found.constants[i].standard_error, again.constants[i].standard_error);
  }
  const FileReport &a = found.files[0], &b = again.files[0];
  EXPECT_EQ(a.fitted_rows, a.rows - held);
  EXPECT_EQ(a.after.rows.size() + a.held_out_after->rows.size(), a.rows);
  EXPECT_EQ(a.cross_validated->predictions, b.cross_validated->predictions);
  EXPECT_EQ(a.after.predictions, b.after.predictions);
  EXPECT_NE(a.held_out_after->metrics[0].pairs[0].measured, b.held_out_after->metrics[0].pairs[0].measured);
}

TEST(CalibrateProperty, EachFoldIsPredictedByAFitToTheOthers) {
  constexpr int kFolds = 3;
  const validate::Table table = measured(runs_in_nodes(), truth(), 0.3);
  const auto moving = some({"host.backward_layer"});
  CalibrateOptions options = options_of(moving);
  options.folds = kFolds;
  const Calibration whole = calibrated(table, options);
  const validate::Evaluation& crossed = *whole.files[0].cross_validated;
  ASSERT_EQ(crossed.rows.size(), table.rows.size());
  std::set<int> folds;
  for (int fold = 0; fold < kFolds; ++fold) {
    validate::Table others = table;
    std::erase_if(others.rows,
                  [&](const validate::TableRow& row) { return fold_of(row.cells[0], kFolds) == fold; });
    CalibrateOptions alone = options_of(moving);
    const Calibration fit = calibrated(others, alone);
    validate::Presets presets = shipped_presets();
    presets.replace_stack("nanotron-a", fit.after.stack);
    const validate::Evaluation expected = validate::evaluate(table, presets, {});
    for (std::size_t i = 0; i < crossed.rows.size(); ++i) {
      if (fold_of(crossed.rows[i].id, kFolds) != fold) continue;
      folds.insert(fold);
      // The fit alone is rounded to three digits, and ends where it started from another point.
      EXPECT_NEAR(crossed.metrics[0].pairs[i].predicted / expected.metrics[0].pairs[i].predicted, 1, 3e-3);
    }
  }
  EXPECT_EQ(folds.size(), static_cast<std::size_t>(kFolds));
}

/// What a table's rows take by a fit to all of it that is then moved on to some rows of it.
validate::Evaluation moved_on(const validate::Table& table, const validate::Table& rows,
                              std::vector<const Constant*> moving) {
  validate::Presets presets = shipped_presets();
  const Candidate start{shipped("nanotron-a"), std::nullopt};
  const auto all = [](const std::string&) { return true; };
  const auto dataset = [&](const validate::Table& of) {
    validate::Table fitted = select_rows(of, validate::TableKind::plans, {.stacks = {"nanotron-a"}});
    return Dataset(std::vector<SourceTable>{{validate::TableKind::plans, std::move(fitted), {}}},
                   FitActsOn::time, presets, all);
  };
  install(presets, start);
  ConstantFit fit(FitActsOn::time, std::move(moving), start, {});
  fit.run(dataset(table));
  Candidate found = start;
  fit.apply(fit.refit(dataset(rows), "rows"), found);
  presets.replace_stack("nanotron-a", found.stack);
  return validate::evaluate(table, presets, {});
}

TEST(CalibrateProperty, EveryModelIsLeftOutInTurn) {
  EXPECT_EQ(whole_model("llama3.1-405b-l7"), "llama3.1-405b");
  EXPECT_EQ(whole_model("gpt-l"), "gpt-l");
  EXPECT_EQ(whole_model("gemma-large"), "gemma-large");
  // Half of the runs are of another model; cut to fewer layers it is still that model.
  std::vector<Layout> runs = runs_in_nodes();
  for (std::size_t i = 0; i < runs.size(); i += 2)
    runs[i].model = i % 4 == 0 ? "nanotron-3.6b" : "nanotron-3.6b-l16";
  const validate::Table table = measured(runs, truth(), 0.3);
  const auto moving = some({"host.backward_layer"});
  CalibrateOptions options = options_of(moving);
  options.folds = 5;
  options.folds_by = FoldsBy::model;
  const Calibration whole = calibrated(table, options);
  const validate::Evaluation& crossed = *whole.files[0].cross_validated;
  ASSERT_EQ(crossed.rows.size(), table.rows.size());
  std::vector<double> of_a_row;  // each fold's prediction of the first
  for (const bool larger : {false, true}) {
    const auto is_larger = [](const std::string& model) { return model.starts_with("nanotron-3.6b"); };
    validate::Table others = table;
    std::erase_if(others.rows,
                  [&](const validate::TableRow& row) { return is_larger(row.cells[2]) == larger; });
    ASSERT_EQ(others.rows.size(), table.rows.size() / 2);
    const validate::Evaluation expected = moved_on(table, others, moving);
    of_a_row.push_back(expected.metrics[0].pairs[0].predicted);
    for (std::size_t i = 0; i < crossed.rows.size(); ++i) {
      if (is_larger(crossed.rows[i].regime.model) != larger) continue;
      EXPECT_NEAR(crossed.metrics[0].pairs[i].predicted / expected.metrics[0].pairs[i].predicted, 1, 1e-9);
    }
  }
  // Which rows were left out shows.
  EXPECT_GT(std::abs(of_a_row[0] / of_a_row[1] - 1), 1e-6);
}

TEST(CalibrateProperty, TheReportIsOfTheRoundedValues) {
  CalibrateOptions options =
      options_of(some({"host.forward_layer", "host.backward_layer", "host.step_fixed"}));
  const validate::Table table = measured(runs_in_nodes(), truth(), 0.2);
  const Calibration found = calibrated(table, options);
  validate::Presets presets = shipped_presets();
  presets.replace_stack("nanotron-a", found.after.stack);
  const validate::Evaluation expected = validate::evaluate(table, presets, {});
  EXPECT_EQ(expected.predictions, found.files[0].after.predictions);
  for (const ConstantResult& result : found.constants) {
    EXPECT_EQ(result.after, result.constant->get(found.after)) << result.constant->path;
    EXPECT_DOUBLE_EQ(result.after,
                     parse_value(*result.constant, format_value(*result.constant, result.after)).value());
  }
}

/// The largest error of a report's step times.
double worst(const validate::Evaluation& evaluation) {
  double most = 0;
  for (const validate::Metric& metric : evaluation.metrics)
    for (const validate::Pair& pair : metric.pairs)
      if (metric.key == "step_time") most = std::max(most, std::abs(pair.predicted / pair.measured - 1));
  return most;
}

// A loss that forgives single large errors would give one row up for the others, and errors that are nearly zero after
// fitting three rows by a dozen constants say nothing of what the model errs by.
TEST(CalibrateProperty, OfThreeRowsTheWorstErrorDoesNotGrow) {
  struct Case {
    std::size_t rows[3];
    double factors[3];  // of the measured over what the profile predicts
  };
  constexpr Case kCases[] = {{{5, 3, 20}, {1.301, 0.855, 1.278}},  {{18, 5, 25}, {1.286, 1.244, 0.860}},
                             {{4, 22, 12}, {1.107, 1.156, 0.891}}, {{25, 14, 0}, {1.200, 0.779, 1.200}},
                             {{6, 15, 4}, {0.790, 1.086, 1.347}},  {{12, 14, 3}, {0.912, 1.118, 1.177}},
                             {{21, 28, 9}, {1.090, 0.826, 1.204}}, {{1, 11, 27}, {0.8, 0.85, 0.8}}};
  std::vector<Layout> runs = runs_in_nodes();
  for (const Layout& run : runs_across_nodes()) runs.push_back(run);
  std::size_t moved = 0;
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.rows[0]);
    validate::Table table =
        measured({runs[one.rows[0]], runs[one.rows[1]], runs[one.rows[2]]}, shipped("nanotron-a"));
    for (std::size_t row = 0; row < 3; ++row) {
      std::string& cell = table.rows[row].cells[22];
      cell = validate::cell(std::stod(cell) * one.factors[row]);
    }
    const Calibration found = calibrated(table, options_of({}));
    const FileReport& file = found.files[0];
    EXPECT_LE(worst(file.after), worst(file.before) + 1e-3);  // constants are rounded to three digits
    ASSERT_EQ(found.fits.size(), 1U);
    EXPECT_TRUE(found.fits[0].few);
    for (const ConstantResult& result : found.constants) {
      if (!result.identified) continue;
      ++moved;
      EXPECT_LE(std::abs(result.constant->u_of(result.after, result.prior)), kFewWidths + 1e-2)
          << result.constant->path;
    }
  }
  EXPECT_GT(moved, 0U);
}

TEST(CalibrateProperty, FewIsRelativeToWhatMayMove) {
  const std::vector<Layout> all = runs_in_nodes();
  const auto few = [&](std::size_t rows, const CalibrateOptions& options) {
    const validate::Table table =
        measured({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rows)}, truth());
    return calibrated(table, options).fits.at(0).few;
  };
  EXPECT_TRUE(few(9, options_of({})));
  EXPECT_FALSE(few(10, options_of({})));
  EXPECT_TRUE(few(2, options_of(some({"host.forward_layer"}))));
  EXPECT_FALSE(few(3, options_of(some({"host.forward_layer"}))));
}

}  // namespace
}  // namespace shardscape::calibrate
