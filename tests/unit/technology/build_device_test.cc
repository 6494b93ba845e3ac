// Do devices of other technologies come out as worked out by hand, and do they keep their budgets of area and power?
#include "sweep/technology/build_device.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>

#include "tests/support/a100.h"

namespace shardscape::technology {
namespace {

SquareMetres mm2(double value) { return SquareMetres(value * 1e-6); }

std::shared_ptr<const LogicNode> old_node() {
  LogicNode node;
  node.name = "old";
  node.step = {2, 1.2, 0.6};
  node.sram_cell = SquareMetres(1e-12);
  return std::make_shared<const LogicNode>(node);
}

/// Twice as dense, 25 % faster or half the power; its SRAM cell stays as it is.
LogicNode new_node(double density = 2) {
  LogicNode node;
  node.name = "new";
  node.relative_to = old_node();
  node.step = {density, 1.25, 0.5};
  node.sram_cell = SquareMetres(1e-12);
  return node;
}

/// 20 GB/s and 5 W per stack, of which two fit along 20 mm.
MemoryTechnology dram() {
  return {"dram", Bytes(1e9), BytesPerSecond(20e9), JoulesPerBit(5 / (20e9 * 8)), Metres(0.010)};
}

/// 1000 mm2 and 410 W, 10 W of which go into two stacks; 100 SMs at 1 GHz.
Floorplan plan() {
  Floorplan p;
  p.name = "plan";
  p.device = "gpu";
  p.logic = *old_node();
  p.memory = dram();
  p.area = mm2(1000);
  p.sm_share = 0.5;
  p.l2_share = 0.2;
  p.l2_sram_share = 0.5;
  p.memory_edge = Metres(0.020);
  p.power = Watts(410);
  p.least_clock = Hertz(0.5e9);
  p.most_clock = Hertz(1.5e9);
  return p;
}

DeviceSpec gpu() {
  DeviceSpec device = test::a100();
  device.name = "gpu";
  device.sm.count = 100;
  device.sm.clock = Hertz(1e9);
  device.l2.capacity = Bytes(10e6);
  device.l2.bytes_per_clock = 1000;
  device.hbm.stacks = 2;
  return device;
}

BuiltDevice built(const Choice& choice, const Floorplan& floorplan = plan()) {
  const auto result = build_device(gpu(), floorplan, choice);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().list().front().message);
  return result.value_or(BuiltDevice());
}

std::string problem_of(const Choice& choice) {
  const auto result = build_device(gpu(), plan(), choice);
  EXPECT_FALSE(result.has_value());
  return result ? "" : result.error().list().front().field + ": " + result.error().list().front().message;
}

TEST(BuildDevice, NothingChangedGivesTheReferenceItself) {
  const BuiltDevice same = built({});
  EXPECT_EQ(same.device.sm.count, 100);
  EXPECT_DOUBLE_EQ(same.device.sm.clock.value(), 1e9);
  EXPECT_DOUBLE_EQ(same.device.l2.capacity.value(), 10e6);
  EXPECT_EQ(same.device.hbm.stacks, 2);
  EXPECT_DOUBLE_EQ(same.device.hbm_peak().value(), gpu().hbm_peak().value());
  EXPECT_NEAR(same.area.value(), mm2(1000).value(), 1e-15);
  EXPECT_DOUBLE_EQ(same.power().value(), 410);
  EXPECT_EQ(same.device.name, "gpu");
  // Stating the device's own budgets changes nothing, either.
  Choice budgets;
  budgets.area = mm2(1000);
  budgets.power = Watts(410);
  budgets.logic = *old_node();
  EXPECT_EQ(built(budgets).device.sm.count, 100);
  EXPECT_NEAR(built(budgets).device.sm.clock.value(), 1e9, 1);
}

// One SM takes 10 mm2 * (0.5/2 + 0.2*(0.5/2 + 0.5*1)) = 4 mm2; beside 300 mm2 of interfaces 175 of them fit.
// At 1 GHz they draw 175 * 4 W * 0.5 = 350 W of the 400 W that the die has, so the clock rises by
// (400/350)^(1/k), where 1.25^k = 1/0.5.
TEST(BuildDevice, ANewNodeByHand) {
  Choice choice;
  choice.logic = new_node();
  const BuiltDevice device = built(choice);
  EXPECT_NEAR(device.sm_area.value(), mm2(4).value(), 1e-18);
  EXPECT_EQ(device.device.sm.count, 175);
  const double k = std::log(2) / std::log(1.25);
  EXPECT_NEAR(device.device.sm.clock.value(), 1e9 * std::pow(400.0 / 350, 1 / k), 1);
  EXPECT_DOUBLE_EQ(device.device.l2.capacity.value(), 17.5e6);
  EXPECT_DOUBLE_EQ(device.device.l2.bytes_per_clock, 1750);
  EXPECT_NEAR(device.die_power.value(), 400, 1e-9);
  EXPECT_EQ(device.device.name, "gpu+new");
}

// The same circuit: at its old power it has the clock, at its old clock the power that the node states.
TEST(BuildDevice, BothPointsOfTheStatementHold) {
  Choice choice;
  choice.logic = new_node(1);
  EXPECT_NEAR(built(choice).device.sm.clock.value(), 1.25e9, 1);
  choice.power = Watts(10 + 0.5 * 400);
  EXPECT_NEAR(built(choice).device.sm.clock.value(), 1e9, 1);
}

TEST(BuildDevice, OlderNodesUndoWhatNewerOnesGain) {
  Floorplan newer = plan();
  newer.logic = new_node(1);
  Choice choice;
  choice.logic = *old_node();
  choice.logic->step = {2, 1.25, 0.5};  // the same power law
  EXPECT_NEAR(built(choice, newer).device.sm.clock.value(), 0.8e9, 1);
}

// Stacks: a die of four times the area has twice the edge. Network: 2 * 50 GB/s * 8 * 1 nJ/b = 800 W.
TEST(BuildDevice, MemoryFollowsTheEdgeAndNetworksDrawPower) {
  Choice choice;
  choice.area = mm2(4000);
  choice.memory = dram();
  choice.memory->edge = Metres(0.015);
  EXPECT_EQ(built(choice).device.hbm.stacks, 2);  // 40 mm / 15 mm
  EXPECT_DOUBLE_EQ(built(choice).device.hbm_peak().value(), 40e9);
  EXPECT_DOUBLE_EQ(built(choice).device.memory_capacity().value(), 2e9);
  choice.memory->edge = Metres(0.010);
  EXPECT_EQ(built(choice).device.hbm.stacks, 4);
  choice.network = NetworkTechnology{"wire", BytesPerSecond(50e9), JoulesPerBit(1e-9)};
  EXPECT_DOUBLE_EQ(built(choice).network_power.value(), 800);
  EXPECT_EQ(built(choice).device.name, "gpu+dram+wire");
}

// At the least clock, half the reference's, an SM draws 4 W * 0.5^k; k = ln(1/0.6) / ln 1.2 of the old node.
TEST(BuildDevice, SmsAreLeftOutWhereEvenTheLeastClockDrawsTooMuch) {
  const double sm = 4 * std::pow(0.5, std::log(1 / 0.6) / std::log(1.2));
  Choice choice;
  choice.power = Watts(10 + 40.5 * sm);
  const BuiltDevice device = built(choice);
  EXPECT_TRUE(device.power_limited);
  EXPECT_EQ(device.device.sm.count, 40);
  EXPECT_LE(device.power().value(), choice.power->value());
}

TEST(BuildDevice, BudgetsHoldExactlyForAnyOfThem) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> area(400, 3000), power(60, 3000), density(0.5, 4);
  for (int i = 0; i < 500; ++i) {
    Choice choice;
    choice.logic = new_node(density(random));
    choice.area = mm2(area(random));
    choice.power = Watts(power(random));
    SCOPED_TRACE("seed 7, case " + std::to_string(i));
    const BuiltDevice device = built(choice);
    const double used = device.area.value(), budget = choice.area->value();
    EXPECT_LE(used, budget * (1 + 1e-9));
    EXPECT_LE(device.power().value(), choice.power->value() * (1 + 1e-9));
    if (!device.power_limited) {
      EXPECT_GT(used + device.sm_area.value(), budget);
    }
    const double most = 1.5e9 * 1.25;
    EXPECT_LE(device.device.sm.clock.value(), most);
    if (!device.power_limited && device.device.sm.clock.value() < most) {
      EXPECT_NEAR(device.power().value(), choice.power->value(), 1e-9 * choice.power->value());
    }
    Choice larger = choice;
    larger.area = SquareMetres(budget * 1.1);
    if (!built(larger).power_limited) {  // else the stacks along the longer edge took the power of SMs
      EXPECT_GE(built(larger).device.sm.count, device.device.sm.count);
    }
    larger = choice;
    larger.power = Watts(choice.power->value() * 1.1);
    EXPECT_GE(built(larger).device.tensor_peak(Precision::bf16), device.device.tensor_peak(Precision::bf16));
  }
}

TEST(BuildDevice, BudgetsThatAreTooSmallAreProblems) {
  Choice choice;
  choice.power = Watts(10.1);
  EXPECT_NE(problem_of(choice).find("power: is too small: 10 W of memory and 0 W of network"),
            std::string::npos)
      << problem_of(choice);
  choice = {};
  choice.area = mm2(80);
  EXPECT_NE(problem_of(choice).find("area: is too small: its edge has no room"), std::string::npos);
  choice.memory = dram();
  choice.memory->edge = Metres(0.0001);
  EXPECT_NE(problem_of(choice).find("area: is too small: its interfaces leave no room"), std::string::npos);
  choice = {};
  choice.logic = LogicNode{"foreign", nullptr, {2, 1.2, 0.6}, SquareMetres(1e-12)};
  EXPECT_NE(problem_of(choice).find("logic: node foreign and old of gpu go back to different nodes"),
            std::string::npos);
}

}  // namespace
}  // namespace shardscape::technology
