// Does an assessment follow from the cells as worked by hand, and widen with distance?
#include "sweep/evidence/assess.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace shardscape::evidence {
namespace {

const Regime kHome = {Phase::training, "gpu", PolicyName::bf16, "dense", "soft", 32};

Cell measured_cell(double sigma, std::int64_t plans, const std::string& device = "gpu") {
  Cell cell;
  cell.regime = kHome;
  cell.regime.device = device;
  cell.gpus_low = 8;
  cell.gpus_high = 64;
  cell.rows = 2 * plans;
  cell.plans = plans;
  cell.sigma = sigma;
  return cell;
}

TEST(Assess, OneCellSpeaksForItself) {
  const Table table{{measured_cell(0.05, 4)}};
  const Finding found = assess(&table, kHome);
  EXPECT_NEAR(found.assessment.expected_error, 0.05, 1e-12);
  EXPECT_EQ(found.assessment.evidence, Evidence::measured);
  EXPECT_EQ(found.assessment.gap, EvidenceGap::none);
  EXPECT_EQ(reason(found, kHome), "8 rows of 4 plans on gpu, bf16, dense, soft, 8 to 64 GPUs");
}

constexpr Widening kSpread = kWidening[Phase::training];

TEST(Assess, EachDifferenceAddsItsSpread) {
  const Table table{{measured_cell(0.05, 4)}};
  const auto expect = [&](Regime regime, double spread, Evidence evidence, EvidenceGap gap) {
    const Assessment found = assess(&table, regime).assessment;
    EXPECT_NEAR(found.expected_error, std::hypot(0.05, spread), 1e-12) << name_of(gap);
    EXPECT_EQ(found.evidence, evidence) << name_of(gap);
    EXPECT_EQ(found.gap, gap);
  };
  Regime other = kHome;
  other.device = "";
  expect(other, kSpread.device, Evidence::near, EvidenceGap::device);
  other.stack = "fresh";
  expect(other, std::hypot(kSpread.device, kSpread.stack), Evidence::extrapolated, EvidenceGap::stack);
  other = kHome;
  other.precision = PolicyName::fp8;
  expect(other, kSpread.precision, Evidence::near, EvidenceGap::precision);
  other = kHome;
  other.model_kind = "experts";
  expect(other, kSpread.model_kind, Evidence::near, EvidenceGap::model_kind);
  // 4 is one doubling below 8, 2 two; 128 is one beyond 64, 1024 four, and no row has so many.
  for (const auto& [gpus, steps, evidence, gap] :
       {std::tuple{4, 1.0, Evidence::measured, EvidenceGap::none},
        std::tuple{2, 2.0, Evidence::near, EvidenceGap::scale},
        std::tuple{128, 1.0, Evidence::extrapolated, EvidenceGap::scale},
        std::tuple{1024, 4.0, Evidence::extrapolated, EvidenceGap::scale}}) {
    other = kHome;
    other.gpus = gpus;
    expect(other, steps * kDoubling, evidence, gap);
  }
}

TEST(Assess, SizesBetweenThoseOfOtherRowsAreNear) {
  // Of the same but for the precision there are rows of 1,024 GPUs, so that 256 lie within what was measured.
  Table table{{measured_cell(0.05, 4), measured_cell(0.05, 4)}};
  table.cells[1].regime.precision = PolicyName::fp8;
  table.cells[1].gpus_low = table.cells[1].gpus_high = 1024;
  Regime other = kHome;
  other.gpus = 256;
  EXPECT_EQ(assess(&table, other).assessment.evidence, Evidence::near);
  other.gpus = 128;
  EXPECT_EQ(assess(&table, other).assessment.evidence, Evidence::measured);
}

// Of another device, or of another stack, there may be rows of ten thousand GPUs: of this one there are none beyond 64.
TEST(Assess, MoreGpusThanAnyRowOfTheDeviceOrStackAreNeverNear) {
  for (const bool device : {true, false}) {
    Table table{{measured_cell(0.05, 4), measured_cell(0.05, 4)}};
    Regime& large = table.cells[1].regime;
    (device ? large.device : large.stack) = "other";
    table.cells[1].gpus_high = 16384;
    for (const std::int64_t gpus : {64, 65, 128, 512, 16384}) {
      Regime regime = kHome;
      regime.gpus = gpus;
      const Finding found = assess(&table, regime);
      EXPECT_EQ(found.assessment.evidence, gpus == 64 ? Evidence::measured : Evidence::extrapolated) << gpus;
      EXPECT_EQ(std::ranges::count(found.gaps, EvidenceGap::scale), gpus == 64 ? 0 : 1) << gpus;
    }
    // Of a device without any row its stack says what was measured.
    Regime fresh = kHome;
    fresh.device = "fresh";
    EXPECT_EQ(assess(&table, fresh).assessment.evidence, Evidence::near);
    fresh.gpus = 128;
    EXPECT_EQ(assess(&table, fresh).assessment.evidence, device ? Evidence::near : Evidence::extrapolated);
  }
}

TEST(Assess, OfADeviceAtItsPeaksNothingIsKnown) {
  const Table table{{measured_cell(0.05, 4)}};
  Regime invented = kHome;
  invented.device = "dream";
  EXPECT_EQ(assess(&table, invented).assessment.evidence, Evidence::near);
  invented.sustained = false;
  const Assessment found = assess(&table, invented).assessment;
  EXPECT_TRUE(std::isnan(found.expected_error));
  EXPECT_EQ(found.evidence, Evidence::none);
  EXPECT_EQ(found.gap, EvidenceGap::device);
  invented.device = "gpu";  // it was measured, whatever it says
  EXPECT_EQ(assess(&table, invented).assessment.evidence, Evidence::measured);
}

// sqrt(0.05^2 + 0.25^2): times may be a quarter off where a data sheet is all that is known of the device.
TEST(Assess, OfADeviceByItsDataSheetAQuarterIsToBeExpected) {
  const Table table{{measured_cell(0.05, 4)}};
  Regime chip = kHome;
  chip.device = "chip";
  const double known = assess(&table, chip).assessment.expected_error;
  chip.typical = true;
  const Assessment found = assess(&table, chip).assessment;
  EXPECT_NEAR(found.expected_error, std::sqrt(known * known - kSpread.device * kSpread.device + 0.25 * 0.25),
              1e-12);
  EXPECT_EQ(found.gap, EvidenceGap::device);
  chip.device = "gpu";
  EXPECT_LT(assess(&table, chip).assessment.expected_error, known);  // it was measured
}

TEST(Assess, OfLargerDegreesThanAnyRowHadNothingIsKnown) {
  // Rows of tp 8 in one cell, of pp 16 in another: each is measured, though not together.
  Table table{{measured_cell(0.05, 4), measured_cell(0.05, 4, "gpu-2")}};
  table.cells[0].most =
      degrees_of({.tensor = 8, .context = 2, .pipeline = 4, .expert = 1, .expert_tensor = 4});
  table.cells[1].most =
      degrees_of({.tensor = 4, .context = 1, .pipeline = 16, .expert = 8, .expert_tensor = 1});
  const Finding finding = assess(&table, kHome);
  ParallelPlan plan{.tensor = 8, .context = 2, .pipeline = 16, .expert = 8, .expert_tensor = 4};
  EXPECT_EQ(assess_plan(finding, plan).evidence, Evidence::measured);
  EXPECT_EQ(larger_degree(finding, plan), "");
  for (std::int32_t ParallelPlan::*degree :
       {&ParallelPlan::tensor, &ParallelPlan::context, &ParallelPlan::pipeline, &ParallelPlan::expert,
        &ParallelPlan::expert_tensor}) {
    ParallelPlan larger = plan;
    larger.*degree *= 2;
    EXPECT_NE(larger_degree(finding, larger), "");
    const Assessment found = assess_plan(finding, larger);
    EXPECT_TRUE(std::isnan(found.expected_error));
    EXPECT_EQ(found.evidence, Evidence::none);
    EXPECT_EQ(found.gap, EvidenceGap::degrees);
  }
  ParallelPlan apart = plan;
  apart.data =
      1024;  // replicas are no degree that evidence holds plans by, but GPUs of experts alone were never measured
  EXPECT_EQ(larger_degree(finding, apart), "");
  apart.ffn = 4;
  EXPECT_EQ(larger_degree(finding, apart), "no rows of ffn=4, 0 at most");
  plan.tensor = 16;
  EXPECT_EQ(larger_degree(finding, plan), "no rows of tp=16, 8 at most");
  // What another stack has done is no evidence of this one; of a stack without rows all others are.
  table.cells[1].regime.stack = "other";
  plan.tensor = plan.pipeline = 8;
  EXPECT_EQ(larger_degree(assess(&table, kHome), plan), "no rows of pp=8, 4 at most");
  Regime fresh = kHome;
  fresh.stack = "fresh";
  EXPECT_EQ(larger_degree(assess(&table, fresh), plan), "");
  table.cells[1].regime.stack = "soft";
  plan.tensor = 16;
  table.cells[0].most[PlanKey::tensor] = kUntold;  // a table that does not say sets no limit
  EXPECT_EQ(assess_plan(assess(&table, kHome), plan).evidence, Evidence::measured);
}

TEST(Assess, FewPlansLeanOnTheOthersOfTheirStackAndThatOnThePhase) {
  // Logarithms to base 4 over 0.04: own 0 with 2 plans, 1 with 6 of the same stack, 2 with 8 of another one. The phase:
  // (6 + 16) / 16 = 11/8. The stack: of its own 6 / 8 = 3/4, with the phase as one plan (8 * 3/4 + 11/8) / 9 = 59/72.
  // The cell: (2 * 0 + 59/72) / 3. Training alone counts.
  Table table{{measured_cell(0.04, 2), measured_cell(0.16, 6, "gpu-2"), measured_cell(0.64, 8, "gpu-2")}};
  table.cells[2].regime.stack = "other";
  Cell serving = measured_cell(0.9, 100);
  serving.regime.phase = Phase::inference;
  table.cells.push_back(serving);
  constexpr double kOwn = 59.0 / 72 / 3;
  EXPECT_NEAR(assess(&table, kHome).assessment.expected_error, 0.04 * std::pow(4, kOwn), 1e-12);
  // A device of neither: both of the stack are as near, and weigh as their plans.
  constexpr double kOther = (6 * 1 + 59.0 / 72) / 7;
  Regime third = kHome;
  third.device = "gpu-3";
  const Finding found = assess(&table, third);
  EXPECT_NEAR(found.assessment.expected_error,
              std::hypot(0.04 * std::pow(4, (2 * kOwn + 6 * kOther) / 8), kSpread.device), 1e-12);
  EXPECT_EQ(found.plans, 8);
  EXPECT_TRUE(
      reason(found, third).starts_with("no rows of this device (gpu-3); nearest are 16 rows of 8 plans"));
}

TEST(Assess, APolicyWithTwoNamesGoesByOne) {
  EXPECT_EQ(own_name(PolicyName::fp4), own_name(PolicyName::nvfp4));
  for (const PolicyName name : {PolicyName::bf16, PolicyName::fp8, PolicyName::mxfp8})
    EXPECT_EQ(own_name(name), name);
}

TEST(Assess, NoCellIsBelowTheNoiseOfMeasurements) {
  const Table table{{measured_cell(0.001, 50)}};
  EXPECT_DOUBLE_EQ(assess(&table, kHome).assessment.expected_error, kNoise);
}

TEST(Assess, WithoutEvidenceItSaysSo) {
  const Finding none = assess(nullptr, kHome);
  EXPECT_TRUE(std::isnan(none.assessment.expected_error));
  EXPECT_EQ(none.assessment.evidence, Evidence::none);
  EXPECT_EQ(none.assessment.gap, EvidenceGap::file);
  EXPECT_EQ(reason(none, kHome), "no preset folder has an evidence file");
  const Table table{{measured_cell(0.05, 4)}};
  Regime serving = kHome;
  serving.phase = Phase::inference;
  const Finding other = assess(&table, serving);
  EXPECT_EQ(other.assessment.evidence, Evidence::extrapolated);
  EXPECT_EQ(other.assessment.gap, EvidenceGap::phase);
  EXPECT_GT(other.assessment.expected_error, kWidening[Phase::inference].stack);
  EXPECT_EQ(reason(other, serving), "no rows of inference");
}

}  // namespace
}  // namespace shardscape::evidence
