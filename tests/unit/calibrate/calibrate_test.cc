// Does a calibration find what made the measurements, and say what they cannot tell?
#include "sweep/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sweep/calibrate/constant_fit.h"
#include "tests/support/synthetic_runs.h"

namespace shardscape::calibrate {
namespace {

/// As many as a test needs that asks for no more than a few constants: a fit evaluates all rows dozens of times.
std::vector<Layout> some_runs_in_nodes() {
  const std::vector<Layout> all = runs_in_nodes();
  std::vector<Layout> some;
  for (std::size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  return some;
}

TEST(Calibrate, OneNodeSaysNothingOfTheNetworkBetweenNodes) {
  const CalibrateOptions options = options_of(
      some({"host.forward_layer", "communication.scale_out_fraction", "communication.scale_out_scaling"}));
  const Calibration found = calibrated(measured(some_runs_in_nodes(), truth()), options);
  for (const char* path : {"communication.scale_out_fraction", "communication.scale_out_scaling"}) {
    const ConstantResult& result = result_of(found, path);
    EXPECT_FALSE(result.identified) << path;
    EXPECT_EQ(result.after, result.before) << path;
    EXPECT_FALSE(result.standard_error) << path;
    EXPECT_EQ(result.why, "the rows say less about it than its prior") << path;
  }
}

TEST(Calibrate, NothingLeavesItsPhysicalRange) {
  // A link at a twentieth of its rate is outside 0.1 .. 1.
  yaml::StackPreset broken = shipped("nanotron-a");
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
  yaml::StackPreset slicing = shipped("megatron-lm");
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
  yaml::StackPreset truth = shipped("nanotron-a");
  truth.memory.fragmentation = 1.3;
  truth.memory.workspace = Bytes(1.7e9);
  const Calibration found = calibrated(measured(some_runs_in_nodes(), truth, 0, true),
                                       options_of(some({"memory.fragmentation", "memory.workspace"})));
  EXPECT_NEAR(result_of(found, "memory.fragmentation").after, 1.3, 0.01);
  EXPECT_NEAR(result_of(found, "memory.workspace").after, 1.7e9, 0.05e9);
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
  const std::vector<Layout> runs = some_runs_in_nodes();
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

// Of one constant; of all of them: tests/property.
TEST(Calibrate, FewIsRelativeToOneThatMayMove) {
  const std::vector<Layout> all = runs_in_nodes();
  const auto few = [&](std::size_t rows, const CalibrateOptions& options) {
    const validate::Table table =
        measured({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(rows)}, truth());
    return calibrated(table, options).fits.at(0).few;
  };
  EXPECT_TRUE(few(2, options_of(some({"host.forward_layer"}))));
  EXPECT_FALSE(few(3, options_of(some({"host.forward_layer"}))));
}

}  // namespace
}  // namespace shardscape::calibrate
