// Does a calibration find what made the measurements, and say what they cannot tell?
#include "sweep/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "sweep/calibrate/constant_fit.h"
#include "tests/support/seeds.h"
#include "tests/unit/calibrate/synthetic.h"

namespace shardscape::calibrate {
namespace {

/// The runs within a node; builds that are slow fit the first of them.
std::vector<Layout> few_runs() {
  std::vector<Layout> runs = runs_in_nodes();
  runs.resize(test::size_of_case(runs.size(), std::size_t{8}));
  return runs;
}

StackProfile shipped(const std::string& name) { return *shipped_presets().stack(name).value(); }

std::vector<const Constant*> some(std::initializer_list<const char*> paths) {
  std::vector<const Constant*> list;
  for (const char* path : paths) list.push_back(find_constant(path));
  return list;
}

CalibrateOptions options_of(std::vector<const Constant*> only) {
  CalibrateOptions options;
  options.stack = "nanotron-a";
  options.rows.stacks = {"nanotron-a"};
  options.only = std::move(only);
  options.folds = 0;
  return options;
}

Calibration calibrated(const validate::Table& table, const CalibrateOptions& options) {
  validate::Presets presets = shipped_presets();
  auto result = calibrate({table}, presets, options);
  if (!result) {
    for (const auto& problem : result.error()) ADD_FAILURE() << to_string(problem);
  }
  return *std::move(result);
}

/// A profile whose constants all show: host launch bound blocks, slow links.
StackProfile truth() {
  StackProfile stack = shipped("nanotron-a");
  stack.host.forward_layer = Seconds(2e-3);
  stack.host.backward_layer = Seconds(5e-3);
  stack.host.per_collective = Seconds(0.9e-3);
  stack.host.step_fixed = Seconds(120e-3);
  stack.communication.scale_out_fraction = 0.31;
  stack.zero_slice = Seconds(40e-6);
  return stack;
}

const std::initializer_list<const char*> kSix = {"host.forward_layer",
                                                 "host.backward_layer",
                                                 "host.per_collective",
                                                 "host.step_fixed",
                                                 "communication.scale_out_fraction",
                                                 "zero_slice"};

TEST(Calibrate, RecoversTheConstantsThatMadeTheTimes) {
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

TEST(Calibrate, OneNodeSaysNothingOfTheNetworkBetweenNodes) {
  const CalibrateOptions options = options_of(
      some({"host.forward_layer", "communication.scale_out_fraction", "communication.scale_out_scaling"}));
  const Calibration found = calibrated(measured(runs_in_nodes(), truth()), options);
  for (const char* path : {"communication.scale_out_fraction", "communication.scale_out_scaling"}) {
    const ConstantResult& result = result_of(found, path);
    EXPECT_FALSE(result.identified) << path;
    EXPECT_EQ(result.after, result.before) << path;
    EXPECT_FALSE(result.standard_error) << path;
    EXPECT_NE(result.why, "") << path;
  }
}

TEST(Calibrate, NothingLeavesItsPhysicalRange) {
  // A link at a twentieth of its rate is outside 0.1 .. 1.
  StackProfile broken = shipped("nanotron-a");
  broken.communication.scale_up_fraction = 0.05;
  CalibrateOptions options = options_of(some({"communication.scale_up_fraction"}));
  Candidate fast{broken, std::nullopt};  // hosts, so that links show
  for (const char* path :
       {"host.forward_layer", "host.backward_layer", "host.per_collective", "host.per_collective_rank"}) {
    options.start.emplace_back(find_constant(path), find_constant(path)->low);
    find_constant(path)->set(fast, find_constant(path)->low);
  }
  broken = fast.stack;
  const Calibration found = calibrated(measured(runs_in_nodes(), broken), options);
  const ConstantResult& fraction = result_of(found, "communication.scale_up_fraction");
  EXPECT_FALSE(fraction.identified);
  EXPECT_EQ(fraction.after, fraction.before);
  EXPECT_NE(fraction.why.find("lower end of its range, 0.1"), std::string::npos) << fraction.why;
  for (const ConstantResult& result : found.constants) {
    EXPECT_TRUE(result.after == 0 ||
                (result.after >= result.constant->low && result.after <= result.constant->high))
        << result.constant->path;
  }
}

TEST(Calibrate, WhatIsOffStaysOff) {
  ASSERT_EQ(shipped("megatron-lm").zero_slice.value(), 0);
  CalibrateOptions options = options_of(some({"zero_slice"}));
  options.stack = "megatron-lm";
  StackProfile slicing = shipped("megatron-lm");
  slicing.zero_slice = Seconds(0.4e-3);
  const validate::Table table = measured(runs_in_nodes(), slicing);
  const Calibration off = calibrated(table, options);
  EXPECT_EQ(result_of(off, "zero_slice").after, 0);
  EXPECT_FALSE(result_of(off, "zero_slice").identified);
  options.start.emplace_back(find_constant("zero_slice"), 0.3e-3);
  const Calibration on = calibrated(table, options);
  EXPECT_TRUE(result_of(on, "zero_slice").identified);
  EXPECT_NEAR(result_of(on, "zero_slice").after, 0.4e-3, 0.8e-5);
}

TEST(Calibrate, MemoryConstants) {
  StackProfile truth = shipped("nanotron-a");
  truth.memory.fragmentation = 1.3;
  truth.memory.workspace = Bytes(1.7e9);
  const Calibration found = calibrated(measured(runs_in_nodes(), truth, 0, true),
                                       options_of(some({"memory.fragmentation", "memory.workspace"})));
  EXPECT_NEAR(result_of(found, "memory.fragmentation").after, 1.3, 0.01);
  EXPECT_NEAR(result_of(found, "memory.workspace").after, 1.7e9, 0.05e9);
}

TEST(Calibrate, HeldOutRowsTakeNoPart) {
  validate::Table table = measured(few_runs(), truth(), 0.1);
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

TEST(Calibrate, EachFoldIsPredictedByAFitToTheOthers) {
  constexpr int kFolds = 3;
  const validate::Table table = measured(few_runs(), truth(), 0.3);
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
                   ActsOn::time, presets, all);
  };
  install(presets, start);
  ConstantFit fit(ActsOn::time, std::move(moving), start, {});
  fit.run(dataset(table));
  Candidate found = start;
  fit.apply(fit.refit(dataset(rows), "rows"), found);
  presets.replace_stack("nanotron-a", found.stack);
  return validate::evaluate(table, presets, {});
}

TEST(Calibrate, EveryModelIsLeftOutInTurn) {
  EXPECT_EQ(whole_model("llama3.1-405b-l7"), "llama3.1-405b");
  EXPECT_EQ(whole_model("gpt-l"), "gpt-l");
  EXPECT_EQ(whole_model("gemma-large"), "gemma-large");
  // Half of the runs are of another model; cut to fewer layers it is still that model.
  std::vector<Layout> runs = few_runs();
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

TEST(Calibrate, FoldsAreAFunctionOfTheId) {
  std::vector<int> counts(5), held(5);
  for (int i = 0; i < 3000; ++i) {
    const std::string id = "row-" + std::to_string(i);
    const int fold = fold_of(id, 5);
    ASSERT_TRUE(fold >= 0 && fold < 5);
    ASSERT_EQ(fold, fold_of(id, 5));
    ++counts[static_cast<std::size_t>(fold)];
    if (validate::is_held_out(id, {1, 5})) ++held[static_cast<std::size_t>(fold)];
  }
  // 600 and 120 on average; five binomial deviations are 110 and 53.
  for (int k = 0; k < 5; ++k) {
    EXPECT_NEAR(counts[static_cast<std::size_t>(k)], 600, 110);
    EXPECT_NEAR(held[static_cast<std::size_t>(k)], 120, 53);
  }
}

TEST(Calibrate, TheReportIsOfTheRoundedValues) {
  CalibrateOptions options =
      options_of(some({"host.forward_layer", "host.backward_layer", "host.step_fixed"}));
  const validate::Table table = measured(few_runs(), truth(), 0.2);
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

TEST(Calibrate, ProblemsAreCollected) {
  validate::Presets presets = shipped_presets();
  CalibrateOptions options = options_of({});
  options.stack = "nanotron-x";
  options.rows.stacks = {"nanotron-x"};
  options.device = "h100-sxm";
  const auto result = calibrate({measured(runs_in_nodes(), truth())}, presets, options);
  ASSERT_FALSE(result);
  std::string text;
  for (const auto& problem : result.error()) text += to_string(problem) + '\n';
  EXPECT_NE(text.find("nanotron-a (20 rows)"), std::string::npos) << text;
  EXPECT_NE(text.find("did you mean"), std::string::npos) << text;
  EXPECT_GE(result.error().size(), 3U) << text;
}

TEST(Calibrate, ImpossiblePlansAreLeftOut) {
  std::vector<Layout> runs = runs_in_nodes();
  validate::Table table = measured(runs, truth());
  validate::TableRow bad = table.rows[0];
  bad.line = 99;
  bad.cells[0] = "impossible";
  bad.cells[6] = "3";  // 32 heads do not divide by 3
  table.rows.push_back(bad);
  const Calibration found = calibrated(table, options_of(some({"host.forward_layer"})));
  ASSERT_EQ(found.left_out.size(), 1U);
  EXPECT_EQ(found.left_out[0].line, 99);
  EXPECT_EQ(found.files[0].rows, runs.size());
}

}  // namespace
}  // namespace shardscape::calibrate
