// The laws of the numbers of device, fabric and stack (tests/support/numbers.h) and of sick links where
// requests are served: nothing that gets worse makes a first token, the tokens after it or a whole request
// come earlier, on the mean or at a percentile, or lets more of them through.
//
// Where one replica both reads and decodes, requests are alike and who runs when depends on no duration
// (engine/serving/server.h): every latency is a sum of the same iterations' times, and all laws hold exactly
// at every load, as soon as the cost of every iteration obeys them. Only numbers that decide who is admitted
// have no law (kAdmission), and the capacity of the memory has none where it is short.
//
// More multiprocessors have more of a product's panels under way at once. Where L2 holds no longer what they
// share it is read again (engine/compute/gemm_traffic.h), which GemmProperty bounds for products alone; of
// what is served it is kSpilledPanels at most. Where L2 holds all operands their law is exact like the
// others.
//
// Pools run at their own pace: which request meets which in an iteration, and which caches share a link,
// hangs on when each is done. A faster piece may bring a prompt just too late for one iteration and so into a
// larger one later, or two caches onto one link (Graham 1969, "Bounds on multiprocessing timing anomalies"):
// at 4 to 24 requests single figures move against the law by more than any rounding. There the laws hold for
// one request at a time, which meets nobody, and for the iterations themselves at every load.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/numbers.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_inference {
namespace {

using test::Direction;
using test::NumberLaw;

constexpr double kServedRounding = 1e-9;
/// The largest of the settings below is 1.5e-6: one row of 2,048 fp32 numbers, read once more per wave beside
/// a head of 262 MB.
constexpr double kSpilledPanels = 1e-5;
constexpr std::string_view kMultiprocessors = "device.sm.count";
constexpr std::string_view kSpillingMultiprocessors = "device.sm.count where L2 is short";

struct Served {
  Setting setting;
  ParallelPlan plan;
};

/// Seconds of a prediction, each of which a worse number may only lengthen.
using Latencies = std::array<std::pair<std::string_view, double>, 11>;

Latencies latencies(const Prediction& p) {
  return {{{"TTFT", p.ttft.value()},
           {"TTFT p50", p.ttft_spread.p50.value()},
           {"TTFT p95", p.ttft_spread.p95.value()},
           {"ITL", p.itl.value()},
           {"ITL p50", p.itl_spread.p50.value()},
           {"ITL p95", p.itl_spread.p95.value()},
           {"e2e", p.e2e.value()},
           {"e2e p50", p.e2e_spread.p50.value()},
           {"e2e p95", p.e2e_spread.p95.value()},
           {"time per token", 1 / p.tokens_per_s_per_gpu},
           {"decode iteration", p.step_time.value()}}};
}

/// How far a figure moved against its law, relative to what it was.
struct ServedBreach {
  double by = 0;
  std::string where;
};

struct ServedTally {
  std::map<std::string, ServedBreach> worst;  ///< key: name of the number
  std::map<std::string, int> tried;
};

double breach_of(Direction direction, double before, double after) {
  if (before == 0 && after == 0) return 0;  // no token after the first
  if (direction == Direction::more_is_faster) return after / before - 1;
  if (direction == Direction::more_is_slower) return 1 - after / before;
  return std::abs(after / before - 1);
}

enum class Figures : std::uint8_t {
  all,
  iteration  ///< the decode iteration alone, which nobody waits for
};

void keep_worst(Direction direction, const Prediction& before, const Prediction& after, Figures figures,
                const std::string& where, ServedBreach& worst) {
  const Latencies a = latencies(before), b = latencies(after);
  for (std::size_t i = figures == Figures::iteration ? a.size() - 1 : 0; i < a.size(); ++i) {
    const double by = breach_of(direction, a[i].second, b[i].second);
    if (!(by <= worst.by)) worst = {by, std::string(a[i].first) + " of " + where};
  }
}

bool is_served(const Prediction& p) { return p.status == Status::ok || p.status == Status::memory; }

Prediction serve(const Served& s, ExecutionMode mode, const FaultSet& faults = {}) {
  SimulateOptions options;
  options.mode = mode;
  options.time_infeasible = true;
  options.collective_tolerance = kServedRounding;
  return Simulator(s.setting, options).run(s.plan, faults);
}

std::string describe_served(std::uint64_t seed, const Served& s) {
  const PrefillPool& pool = s.plan.prefill;
  return test::describe(seed, s.plan) + " prefill tp " + std::to_string(pool.tensor) + " pp " +
         std::to_string(pool.pipeline) + " dp " + std::to_string(pool.data) + " concurrency " +
         std::to_string(s.setting.workload.concurrency);
}

/// The name of a number without the name of its dimension.
std::string kind_of_number(const std::string& number) {
  return number.starts_with("fabric.") ? "fabric." + std::string(test::last_key(number)) : number;
}

/// Which way the number moves what is served.
const NumberLaw& serving_law(const test::GrownSetting& grown) {
  const NumberLaw* law = test::law_of(test::kServingLaws, grown.number);
  return law != nullptr ? *law : *grown.law;
}

/// Numbers that make room for more requests or take it away.
bool moves_memory(std::string_view number) {
  return number.starts_with("device.hbm.stacks") || number.starts_with("device.hbm.capacity") ||
         number.starts_with("stack.memory.") || number == "stack.serving.kv_block" ||
         number == "stack.serving.kv_share";
}

enum class Room : std::uint8_t {
  ample,  ///< for every request
  drawn   ///< as the generator draws it: requests may have to wait for room
};

struct Draw {
  ExecutionMode mode = ExecutionMode::hierarchical;
  Room room = Room::ample;
  Figures figures = Figures::all;
  bool pools = false;
  bool alone = false;   ///< one request at a time
  bool direct = false;  ///< a link for each pair of ranks
  std::uint64_t settings = 1;
  std::uint64_t in_turn = 1;  ///< so many changes are left out for each that is tried
};

/// Half of the ranks read prompts, the other half decodes.
ParallelPlan pooled_plan(const Setting& setting, test::ScenarioGenerator& draw) {
  Setting half = setting;
  half.system.fabric = test::crossbar(setting.system.fabric.size() / 2);
  const ParallelPlan reads = draw.plan(half);
  ParallelPlan plan = draw.plan(half);
  plan.prefill = {reads.tensor * reads.context, reads.pipeline, reads.data};
  return plan;
}

Served draw_served(const Draw& wanted, test::ScenarioGenerator& draw) {
  Served s{draw.setting(Phase::inference), {}};
  Setting& setting = s.setting;
  setting.workload.output_tokens = draw.pick<std::int64_t>({1, 2, 7, 64});
  setting.system.stack.serving.kv_transfer = draw.pick({KvTransfer::after_prefill, KvTransfer::per_layer});
  if (wanted.room == Room::ample) setting.system.device.hbm.capacity_per_stack = Bytes(1e14);
  if (wanted.alone) setting.workload.concurrency = 1;
  StackProfile::Communication& communication = setting.system.stack.communication;
  // 0 stands for rank_step, which more than 0 may be less than.
  if (communication.rank_step_scale_out == Seconds(0))
    communication.rank_step_scale_out = communication.rank_step;
  const std::int64_t ranks = setting.system.fabric.size();
  if (wanted.direct && ranks > 1) {
    setting.system.fabric.dimensions = {test::dimension("pairs", DimensionKind::fully_connected, {ranks},
                                                        draw.between(5e9, 300e9), draw.between(0, 5e-6))};
  }
  if (wanted.pools && ranks > 1) {
    s.plan = pooled_plan(setting, draw);
    return s;
  }
  s.plan = draw.plan(setting);
  if (wanted.alone) {  // one replica
    s.plan.tensor *= s.plan.data;
    s.plan.data = 1;
  }
  return s;
}

Setting with_room_in_l2(Setting setting) {
  setting.system.device.l2.capacity = Bytes(1e12);
  return setting;
}

void try_served(const Served& s, const Draw& wanted, std::uint64_t seed, std::uint64_t& changes,
                ServedTally& tally) {
  const Prediction before = serve(s, wanted.mode);
  if (!is_served(before)) return;
  test::ScenarioGenerator draw(seed + 90000);
  test::for_each_grown(s.setting, draw, [&](const test::GrownSetting& grown) {
    const NumberLaw& law = serving_law(grown);
    if (law.direction == Direction::none) return;
    if (wanted.room == Room::drawn && !wanted.alone && moves_memory(grown.number)) return;
    if (changes++ % (wanted.in_turn * test::size_of_case<std::uint64_t>(1, 7)) != 0) return;
    const auto follows = [&](const std::string& kind, const Prediction& less, const Prediction& more) {
      ASSERT_TRUE(is_served(more)) << kind << " " << describe_served(seed, s);
      ++tally.tried[kind];
      keep_worst(law.direction, less, more, wanted.figures, grown.number + " " + describe_served(seed, s),
                 tally.worst[kind]);
    };
    const Prediction after = serve({grown.setting, s.plan}, wanted.mode);
    if (grown.number != kMultiprocessors) return follows(kind_of_number(grown.number), before, after);
    follows(std::string(kSpillingMultiprocessors), before, after);
    follows(grown.number, serve({with_room_in_l2(s.setting), s.plan}, wanted.mode),
            serve({with_room_in_l2(grown.setting), s.plan}, wanted.mode));
  });
}

ServedTally try_loads(const Draw& wanted) {
  ServedTally tally;
  std::uint64_t changes = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(wanted.settings); ++seed) {
    test::ScenarioGenerator draw(seed + 70000);
    for (int i = 0; i < 2; ++i) try_served(draw_served(wanted, draw), wanted, seed, changes, tally);
  }
  return tally;
}

void expect_served_lawfully(const ServedTally& tally, std::size_t numbers) {
  for (const auto& [number, tried] : tally.tried) {
    const ServedBreach& worst = tally.worst.at(number);
    const double band = number == kSpillingMultiprocessors ? kSpilledPanels : kServedRounding;
    EXPECT_LE(worst.by, band) << number << ": " << worst.where << ", one of " << tried;
  }
  if (test::kSeedDivisor > 1) return;
  EXPECT_GE(tally.tried.size(), numbers);
  for (const auto& [number, tried] : tally.tried) EXPECT_GE(tried, 3) << number;
}

TEST(ServingLaws, EveryLoadFollowsEveryNumberWhereThereIsRoom) {
  expect_served_lawfully(try_loads({.settings = 80}), 50);
}

TEST(ServingLaws, EveryLoadFollowsEveryNumberWhereRequestsWaitForRoom) {
  expect_served_lawfully(try_loads({.room = Room::drawn, .settings = 80}), 45);
}

TEST(ServingLaws, OneRequestFollowsEveryNumber) {
  expect_served_lawfully(try_loads({.room = Room::drawn, .alone = true, .settings = 80}), 50);
}

TEST(ServingLaws, OneRequestFollowsEveryNumberThroughPools) {
  expect_served_lawfully(try_loads({.room = Room::drawn, .pools = true, .alone = true, .settings = 80}), 50);
}

TEST(ServingLaws, IterationsOfPoolsFollowEveryNumberAtEveryLoad) {
  expect_served_lawfully(
      try_loads({.figures = Figures::iteration, .pools = true, .settings = 200, .in_turn = 29}), 45);
}

/// Three grades of one sick link, each worse than the one before.
ServedTally try_sick_links(const Draw& wanted) {
  ServedTally tally;
  for (std::uint64_t seed = 1; seed <= test::seeds(wanted.settings); ++seed) {
    test::ScenarioGenerator draw(seed + 80000);
    const Served s = draw_served(wanted, draw);
    const network::Fabric fabric(s.setting.system.fabric);
    if (fabric.links().empty()) continue;
    const auto link = static_cast<std::int32_t>(draw.below(fabric.links().size()));
    const double latency = draw.pick({0.0, 1e-6, 2e-5});
    Prediction before = serve(s, wanted.mode);
    for (int grade = 1; grade <= 3 && is_served(before); ++grade) {
      FaultSet faults;
      faults.links = {{link, 1 - 0.3 * grade + 0.1, grade * Seconds(latency), false}};
      const Prediction after = serve(s, wanted.mode, faults);
      const std::string kind = "grade " + std::to_string(grade);
      ++tally.tried[kind];
      keep_worst(Direction::more_is_slower, before, after, wanted.figures,
                 kind + " " + describe_served(seed, s), tally.worst[kind]);
      before = after;
    }
  }
  return tally;
}

TEST(ServingLaws, NoSickLinkHelps) { expect_served_lawfully(try_sick_links({.settings = 40}), 3); }

TEST(ServingLaws, NoSickLinkHelpsOneRequestThroughPools) {
  expect_served_lawfully(try_sick_links({.pools = true, .alone = true, .settings = 40}), 3);
}

TEST(ServingLaws, NoSickLinkHelpsIterationsOfPools) {
  expect_served_lawfully(try_sick_links({.figures = Figures::iteration, .pools = true, .settings = 40}), 3);
}

}  // namespace
}  // namespace shardscape::laws_inference
