// Do reported bytes of experts, those that are simulated, those that placements are weighed by and a count of all
// choices agree?
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "engine/execution/program.h"
#include "engine/network/placement/placement.h"
#include "engine/simulate.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape {
namespace {

constexpr double kBandwidth = 100e9, kValueBytes = 2;

/// Members that a token meets in the mean: every way to choose k of them counts with its chance.
double members_met(const std::vector<double>& shares, std::int64_t k) {
  std::vector<std::size_t> chosen(static_cast<std::size_t>(k), 0);
  double mean = 0;
  for (;;) {
    double chance = 1;
    for (const std::size_t member : chosen) chance *= shares[member];
    mean += chance * static_cast<double>(std::set<std::size_t>(chosen.begin(), chosen.end()).size());
    std::size_t place = 0;
    while (place < chosen.size() && ++chosen[place] == shares.size()) chosen[place++] = 0;
    if (place == chosen.size()) return mean;
  }
}

struct Case {
  Setting setting;
  ParallelPlan plan;
  std::vector<double> shares;  ///< index: member of the expert group
  double chosen = 1;           ///< experts of a token
};

Case random_case(std::uint64_t seed, bool uneven) {
  test::ScenarioGenerator random(seed);
  Case c;
  const auto members = random.pick<std::int32_t>({2, 4, 8});
  c.setting.model = test::llama_of_experts(3, 4, 0);
  MixtureOfExperts& moe = *c.setting.model.moe;
  moe.experts = members * random.pick<std::int64_t>({1, 2});
  moe.top_k = std::min<std::int64_t>(moe.experts / 2, random.pick<std::int64_t>({1, 2, 4}));
  c.chosen = static_cast<double>(moe.top_k);
  c.setting.system.device = test::round_device();
  c.setting.system.fabric = test::crossbar(members, kBandwidth);
  c.setting.system.stack = test::plain_stack();
  c.plan = test::plan_of(1, 1, 1, members);
  c.plan.expert = members;
  c.shares.assign(static_cast<std::size_t>(members), 1.0 / members);
  if (!uneven) return c;
  double sum = 0;
  ExpertLoad& load = c.setting.workload.expert_load;
  load.distribution = LoadDistribution::histogram;
  for (std::int64_t expert = 0; expert < moe.experts; ++expert) {
    load.histogram.push_back(random.between(0.5, 1));
    sum += load.histogram.back();
  }
  const std::int64_t each = moe.experts / members;
  for (std::int64_t member = 0; member < members; ++member) {
    double& share = c.shares[static_cast<std::size_t>(member)] = 0;
    for (std::int64_t i = 0; i < each; ++i)
      share += load.histogram[static_cast<std::size_t>(member * each + i)] / sum;
  }
  return c;
}

/// Bytes that a rank sends in the mean in calls between ranks of experts, message by message.
double simulated_bytes(const execution::Programs& programs) {
  double sum = 0;
  for (std::int32_t rank = 0; rank < programs.ranks; ++rank) {
    for (const std::int32_t block :
         programs.sequences[static_cast<std::size_t>(programs.sequence_of[static_cast<std::size_t>(rank)])]) {
      const auto [begin, end] = programs.blocks[static_cast<std::size_t>(block)];
      for (std::int32_t i = begin; i < end; ++i) {
        const execution::Instruction& start = programs.instructions[static_cast<std::size_t>(i)];
        if (start.kind != execution::Instruction::Kind::start) continue;
        const auto call = static_cast<std::size_t>(start.what);
        const network::CollectiveOp op = programs.call_kinds[start.lane][call].op;
        if (!network::is_exchange(op) && op != network::CollectiveOp::all_to_all &&
            op != network::CollectiveOp::dispatch && op != network::CollectiveOp::combine)
          continue;
        const std::int32_t which = programs.communicator_of[programs.at(start.lane, rank)];
        const execution::Communicator& all = programs.communicators[static_cast<std::size_t>(which)];
        const execution::CallTraffic& traffic = all.calls[call];
        double bytes = 0;
        for (const execution::CallTraffic::Gate& gate : traffic.gates)
          for (std::int32_t m = 0; m < gate.messages; ++m)
            bytes += gate.times * traffic.messages[static_cast<std::size_t>(gate.first_message + m)].bytes;
        sum += start.repeats * bytes / static_cast<double>(all.ranks.size());
      }
    }
  }
  return sum / programs.ranks;
}

double weighed_bytes(const ParallelPlan& plan, const GroupBytes& bytes) {
  GroupBytes of_experts;
  of_experts[ParallelGroup::expert] = bytes[ParallelGroup::expert];
  double sum = 0;
  for (const network::TrafficClass& traffic : network::plan_demand(plan, of_experts))
    sum += traffic.bytes * static_cast<double>(traffic.flows.size());
  return sum / static_cast<double>(plan.gpus());
}

void expect_same(double bytes, double expected, const char* what) {
  EXPECT_NEAR(bytes / expected, 1, 1e-9) << what;
}

TEST(DispatchBytes, OfTrainingAreWhatTokensChoose) {
  for (std::uint64_t seed = 0; seed < test::seeds(16); ++seed) {
    for (const ExpertDispatcher dispatch : {ExpertDispatcher::library, ExpertDispatcher::kernels}) {
      for (const bool uneven : {false, true}) {
        SCOPED_TRACE(testing::Message() << seed << ' ' << name_of(dispatch) << (uneven ? " uneven" : ""));
        Case c = random_case(seed, uneven);
        const ExpertLoad load = c.setting.workload.expert_load;
        c.setting.workload = test::training(256, 2 * c.plan.data);
        c.setting.workload.expert_load = load;
        c.setting.system.stack.experts.dispatch = dispatch;
        Details details;
        details.want_programs = true;
        const Prediction out =
            Simulator(c.setting, {.time_infeasible = true, .mode = ExecutionMode::flattened})
                .run(c.plan, {}, &details);
        ASSERT_EQ(out.status, Status::ok) << name_of(out.reason);
        const double copies = dispatch == ExpertDispatcher::library
                                  ? c.chosen
                                  : members_met(c.shares, c.setting.model.moe->top_k);
        // Out and back, forward and backward, in two layers with experts, of two microbatches.
        const double expected =
            4 * 2 * 2 * (c.plan.data - 1.0) / c.plan.data * 256 * 1024 * kValueBytes * copies;
        expect_same(details.group_bytes[ParallelGroup::expert].value(), expected, "reported");
        expect_same(weighed_bytes(c.plan, details.group_bytes), expected, "weighed");
        expect_same(simulated_bytes(*details.programs), expected, "simulated");
        Details priced;
        Simulator(c.setting, {.time_infeasible = true}).run(c.plan, {}, &priced);
        expect_same(priced.group_bytes[ParallelGroup::expert].value(), expected, "priced");
      }
    }
  }
}

// Between nodes kernels send one copy for each node that a token meets.
TEST(DispatchBytes, BetweenNodesAreOneCopyForEach) {
  for (std::uint64_t seed = 0; seed < test::seeds(16); ++seed) {
    for (const bool uneven : {false, true}) {
      SCOPED_TRACE(testing::Message() << seed << (uneven ? " uneven" : ""));
      Case c = random_case(seed, uneven);
      const std::int64_t members = c.plan.data;
      if (members < 4) continue;
      c.setting.system.fabric = {
          "nodes",
          {test::dimension("inner", DimensionKind::switched, {members / 2}, kBandwidth),
           test::dimension("outer", DimensionKind::switched, {2}, kBandwidth)}};
      c.setting.system.fabric.dimensions.back().scope = LinkScope::scale_out;
      const ExpertLoad load = c.setting.workload.expert_load;
      c.setting.workload = test::training(256, 2 * members);
      c.setting.workload.expert_load = load;
      c.setting.system.stack.experts.dispatch = ExpertDispatcher::kernels;
      std::vector<double> nodes(2, 0);
      for (std::size_t i = 0; i < c.shares.size(); ++i) nodes[2 * i / c.shares.size()] += c.shares[i];
      Details details;
      const Prediction out = Simulator(c.setting, {.time_infeasible = true}).run(c.plan, {}, &details);
      ASSERT_EQ(out.status, Status::ok) << name_of(out.reason);
      const double expected = 4 * 2 * 2 * (c.plan.data - 1.0) / c.plan.data * 256 * 1024 * kValueBytes *
                              members_met(nodes, c.setting.model.moe->top_k);
      expect_same(details.group_bytes[ParallelGroup::expert].value(), expected, "reported");
      expect_same(weighed_bytes(c.plan, details.group_bytes), expected, "weighed");
    }
  }
}

// A server reads a prompt of 128 tokens and decodes 3 more: kernels send one copy for each rank, while all decode one
// for each expert. On a free crossbar what is sent takes bytes / bandwidth, priced or executed.
TEST(DispatchBytes, OfServersAreWhatTokensChoose) {
  for (std::uint64_t seed = 0; seed < test::seeds(8); ++seed) {
    for (const ServedDispatch dispatch :
         {ServedDispatch::all_gather, ServedDispatch::all_to_all, ServedDispatch::kernels}) {
      SCOPED_TRACE(testing::Message() << seed << ' ' << name_of(dispatch));
      Case c = random_case(seed, false);
      c.setting.workload = test::inference(128, 4, c.plan.data);
      c.setting.system.stack.serving.dispatch = dispatch;
      const double met = dispatch == ServedDispatch::all_gather
                             ? c.plan.data
                             : members_met(c.shares, c.setting.model.moe->top_k);
      const double decoded = dispatch == ServedDispatch::kernels ? c.chosen : met;
      const double expected =
          2 * 2 * (c.plan.data - 1.0) / c.plan.data * 1024 * kValueBytes * (128 * met + 3 * decoded);
      for (const ExecutionMode mode : {ExecutionMode::hierarchical, ExecutionMode::flattened}) {
        Details details;
        const Prediction out =
            Simulator(c.setting, {.time_infeasible = true, .mode = mode}).run(c.plan, {}, &details);
        ASSERT_EQ(out.status, Status::ok) << name_of(out.reason);
        expect_same(details.group_bytes[ParallelGroup::expert].value(), expected, "reported");
        expect_same(weighed_bytes(c.plan, details.group_bytes), expected, "weighed");
        expect_same(out.breakdown[TimeClass::expert_comm].value() * kBandwidth, expected, "simulated");
      }
    }
  }
}

}  // namespace
}  // namespace shardscape
