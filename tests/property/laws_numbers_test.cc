// The laws of the numbers of device, fabric and stack (tests/support/numbers.h), each number alone, in both
// modes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/prediction_fields.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_numbers {
namespace {

using test::Direction;
using test::NumberLaw;

constexpr double kRounding = 1e-9;

/// A faster piece moves messages in time and may bring those of different groups into each other's way, executed or
/// priced (step/training/contention.h): to share links evenly is no optimal schedule (Graham 1969, "Bounds on
/// multiprocessing timing anomalies"). Of 4,000 changes on shared links 11 numbers do so, by 1.1 % of the step at most.
constexpr double kSharedLinksBand = 0.02;

/// The gather of updated weights hides behind its stage's own forward. Where other stages set the pace of a
/// pipeline, a host that launches later lengthens that forward, hides more of the gather and moves nothing
/// else: by about 0.01 % of the step.
constexpr double kGatherBand = 1e-3;

/// How far a step moved against the law, relative; with what it takes to see it again.
struct Breach {
  double by = 0;
  std::string where;
};
struct Tally {
  std::uint64_t changes = 0;
  /// The worst of whole steps, where the cost of shared links is counted apart.
  Breach contended;
  std::map<std::string, Breach> worst;  ///< key: name of the number
  std::map<std::string, int> tried;
};

double against(const NumberLaw& law, double before, double after) {
  if (law.direction == Direction::more_is_faster) return after / before - 1;
  if (law.direction == Direction::more_is_slower) return 1 - after / before;
  return std::abs(after / before - 1);
}

/// The number's name without that of the dimension.
std::string kind_of(const std::string& number) {
  return number.starts_with("fabric.") ? "fabric." + std::string(test::last_key(number)) : number;
}

bool has_step(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

Prediction predict(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode) {
  SimulateOptions options;
  options.mode = mode;
  options.time_infeasible = true;
  options.collective_tolerance = kRounding;
  return Simulator(setting, options).run(plan);
}

Setting in_one_bucket(Setting setting) {
  setting.system.stack.communication.bucket = Bytes(1e18);
  setting.system.stack.communication.zero_bucket = Bytes(0);
  return setting;
}

void try_numbers(const Setting& setting, const ParallelPlan& plan, ExecutionMode mode, std::uint64_t seed,
                 std::uint64_t in_turn, Tally& tally) {
  const Prediction healthy = predict(setting, plan, mode);
  if (!has_step(healthy)) return;
  test::ScenarioGenerator draw(seed + 90000);
  test::for_each_grown(setting, draw, [&](const test::GrownSetting& grown) {
    if (tally.changes++ % in_turn != 0) return;
    // Larger gradients fill more buckets, of which the last, which never hides, is smaller.
    const bool buckets = grown.number == "stack.state.gradient_comm_bytes";
    const Prediction before = buckets ? predict(in_one_bucket(setting), plan, mode) : healthy;
    const Prediction after = predict(buckets ? in_one_bucket(grown.setting) : grown.setting, plan, mode);
    ASSERT_TRUE(has_step(after)) << grown.number << " " << test::describe(seed, plan);
    const double whole = against(*grown.law, before.step_time.value(), after.step_time.value());
    if (before.contention + after.contention > Seconds(0) && whole > tally.contended.by)
      tally.contended = {whole, grown.number + " " + test::describe(seed, plan)};
    double by = against(*grown.law, test::uncontended(before), test::uncontended(after));
    const bool gathers = setting.system.stack.communication.gather_overlap > 0 && plan.pipeline > 1;
    if (gathers && mode == ExecutionMode::hierarchical && grown.number == "stack.host.forward_layer" &&
        by <= kGatherBand)
      by = 0;
    ++tally.tried[kind_of(grown.number)];
    Breach& worst = tally.worst[kind_of(grown.number)];
    if (by > worst.by) worst = {by, grown.number + " " + test::describe(seed, plan)};
  });
}

/// How the ranks of random machines are connected.
enum class Links : std::uint8_t {
  any,   ///< as the generator draws it: rings, tori, switches of several dimensions
  pairs  ///< one for each pair of ranks: axes without a common pair of ranks never meet
};

Tally try_settings(ExecutionMode mode, Links links, std::uint64_t settings, std::uint64_t in_turn) {
  Tally tally;
  for (std::uint64_t seed = 1; seed <= test::seeds(settings); ++seed) {
    test::ScenarioGenerator draw(seed + 50000);
    Setting setting = draw.setting(Phase::training);
    setting.model.layers = std::min<std::int64_t>(setting.model.layers, 8);
    setting.workload.global_batch = std::min<std::int64_t>(setting.workload.global_batch, 64);
    StackProfile::Communication& communication = setting.system.stack.communication;
    // 0 stands for rank_step, which more than 0 may be less than.
    if (communication.rank_step_scale_out == Seconds(0))
      communication.rank_step_scale_out = communication.rank_step;
    const std::int64_t ranks = setting.system.fabric.size();
    if (links == Links::pairs && ranks > 1) {
      setting.system.fabric.dimensions = {test::dimension("pairs", DimensionKind::fully_connected, {ranks},
                                                          draw.between(5e9, 300e9), draw.between(0, 5e-6))};
    }
    for (int i = 0; i < 3; ++i) {
      ParallelPlan plan = draw.plan(setting);
      if (links == Links::pairs) {  // gradients and keys of context ranks would share their links
        plan.data *= plan.context;
        plan.context = 1;
      }
      try_numbers(setting, plan, mode, seed, in_turn, tally);
    }
  }
  return tally;
}

void expect_lawful(const Tally& tally, double band) {
  EXPECT_LE(tally.contended.by, kSharedLinksBand) << tally.contended.where;
  for (const auto& [number, tried] : tally.tried) {
    const Breach& worst = tally.worst.at(number);
    EXPECT_LE(worst.by, band) << worst.where << ", one of " << tried;
  }
  // device, stack and fabric: each number that a setting has, so often that it matters.
  if (test::kSeedDivisor > 1) return;
  EXPECT_GE(tally.tried.size(), 55U);
  for (const auto& [number, tried] : tally.tried) EXPECT_GE(tried, 3) << number;
}

TEST(NumberLaws, HierarchicalStepsFollowEveryNumber) {
  expect_lawful(try_settings(ExecutionMode::hierarchical, Links::any, 80, 1), kRounding);
}

TEST(NumberLaws, ExecutedStepsFollowEveryNumberWhereNothingContends) {
  Tally tally = try_settings(ExecutionMode::flattened, Links::pairs, 24, 7);
  // What is hidden of a call is a call of its own, and a call may be cheaper by another algorithm than its
  // two parts: of calls that outlast the operator beside them more overlap may hide less.
  constexpr double kSecondCall = 0.01;
  Breach& overlap = tally.worst["stack.communication.tensor_overlap"];
  EXPECT_LE(overlap.by, kSecondCall) << overlap.where;
  overlap = {};
  expect_lawful(tally, kRounding);
}

TEST(NumberLaws, ExecutedStepsOnSharedLinksFollowEveryNumberWithinABand) {
  expect_lawful(try_settings(ExecutionMode::flattened, Links::any, 24, 7), kSharedLinksBand);
}

bool is_numeric(const yaml::Leaf& leaf) {
  return leaf.type == yaml::Leaf::Type::integer || leaf.type == yaml::Leaf::Type::number ||
         leaf.type == yaml::Leaf::Type::quantity;
}

/// One law for each number, none for what is no number (any more).
void expect_all(const std::vector<yaml::Leaf>& leaves, std::span<const NumberLaw> laws) {
  std::size_t numbers = 0;
  for (const yaml::Leaf& leaf : leaves) {
    if (!is_numeric(leaf)) continue;
    ++numbers;
    const std::string path = leaf.path.substr(leaf.path.find('.') + 1);
    const NumberLaw* law = test::law_of(laws, path);
    ASSERT_NE(law, nullptr) << leaf.path << " has no law in tests/support/numbers.h";
    EXPECT_EQ(law->direction == Direction::none, !law->why.empty()) << leaf.path;
  }
  EXPECT_EQ(numbers, laws.size());
}

TEST(NumberLaws, EveryNumberHasItsLaw) {
  expect_all(yaml::device_leaves("device"), test::kDeviceLaws);
  expect_all(yaml::stack_leaves("stack"), test::kStackLaws);
  // A fabric's numbers are those that it is written with: all kinds with all that they may have.
  FabricSpec fabric{"all", {}};
  for (std::size_t kind = 0; kind < enum_names<DimensionKind>().size(); ++kind) {
    DimensionSpec d = test::dimension("d" + std::to_string(kind), static_cast<DimensionKind>(kind), {4}, 1e9);
    if (d.shaped()) d.shape = {2, 2};
    d.basis = kind % 2 == 0 ? BandwidthBasis::gpu : BandwidthBasis::link;
    if (d.kind == DimensionKind::fat_tree || d.kind == DimensionKind::switched) d.nics_per_node = 1;
    if (d.kind == DimensionKind::fat_tree) d.rails = 1;
    if (d.kind == DimensionKind::switched) d.gpus_per_tray = 2;
    d.fat_tree = {2, 4, 1, UpRouting::destination, BytesPerSecond(1e9), Seconds(1e-6)};
    d.dragonfly = {2, 1, 2, BytesPerSecond(1e9), Seconds(1e-6)};
    d.custom.links = {{0, 1, false, BytesPerSecond(1e9), Seconds(1e-6)},
                      {1, 2, true, BytesPerSecond(1e9), Seconds(1e-6)}};
    fabric.dimensions.push_back(d);
  }
  yaml::Node tree = yaml::write(fabric);
  std::vector<test::Number> numbers;
  test::list_numbers(tree, "", numbers);
  std::set<std::string_view> met;
  for (const test::Number& number : numbers) {
    const NumberLaw* law = test::law_of(test::kFabricLaws, test::last_key(number.path));
    ASSERT_NE(law, nullptr) << number.path << " has no law in tests/support/numbers.h";
    met.insert(law->path);
  }
  EXPECT_EQ(met.size(), std::size(test::kFabricLaws));
}

}  // namespace
}  // namespace shardscape::laws_numbers
