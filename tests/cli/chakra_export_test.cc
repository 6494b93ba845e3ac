// Do exports of real plans read by Chakra's published schema, and are they what a simulator can run?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cli/program_under_test.h"
#include "tests/support/chakra_wire.h"

namespace shardscape::cli {
namespace {

using chakra_wire::Held;
using nlohmann::json;

struct ExportedPlan {
  const char* point;
  const char* mode;
};

/// For the names of the tests.
void PrintTo(const ExportedPlan& plan, std::ostream* out) { *out << plan.mode << ' ' << plan.point; }

constexpr int kRanks = 8;

/// llama3.1-8b on 8 A100s, 32 sequences of 4,096 tokens (kSmallStudy).
class ChakraExportTest : public ProgramTest, public testing::WithParamInterface<ExportedPlan> {
 protected:
  void SetUp() override {
    std::string study = kSmallStudy;
    study.replace(study.find("space:\n"), 7, "space:\n  context_parallel: [1, 2]\n");
    write("study.yaml", study);
    const Finished finished = run({"simulate", "study.yaml", "--point", GetParam().point, "--mode",
                                   GetParam().mode, "--chakra", "traces"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    for (int r = 0; r < kRanks; ++r) {
      const std::string name = "shardscape." + std::to_string(r) + ".et";
      ranks_.push_back(chakra_wire::read_trace((work() / "traces" / name).string()));
    }
    groups_ = json::parse(read_file(work() / "traces" / "comm_groups.json"));
  }
  template <class Visit>
  void each_node(Visit visit) const {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const chakra_wire::Node& node : ranks_[r].nodes) visit(static_cast<int>(r), node);
    }
  }

  std::vector<chakra_wire::Trace> ranks_;
  json groups_;
};

TEST_P(ChakraExportTest, GroupsAreIntegersThatHoldTheirRanks) {
  for (const auto& [name, list] : groups_.items()) {
    EXPECT_EQ(std::to_string(std::stoi(name)), name);
    EXPECT_GE(std::stoi(name), 1);  // ASTRA-sim takes 0 for all ranks
    EXPECT_GE(list.size(), 2U);
  }
  int collectives = 0;
  each_node([&](int rank, const chakra_wire::Node& node) {
    if (node.type != chakra_wire::kCollectiveNode) return;
    ++collectives;
    const json& members = groups_.at(node.text("pg_name"));
    EXPECT_NE(std::find(members.begin(), members.end(), rank), members.end());
    EXPECT_FALSE(node.text("shardscape_group").empty());
    EXPECT_GT(node.as(Held::int64_val, "comm_size"), 0);
    EXPECT_EQ(node.held("comm_type"), Held::int64_val);
  });
  EXPECT_GT(collectives, 0);
}

TEST_P(ChakraExportTest, NamesTellTheKindAndSurviveALog) {
  const std::map<std::uint64_t, std::string> kinds = {{chakra_wire::kComputeNode, "COMP_NODE"},
                                                      {chakra_wire::kSendNode, "COMM_SEND_NODE"},
                                                      {chakra_wire::kReceiveNode, "COMM_RECV_NODE"},
                                                      {chakra_wire::kCollectiveNode, "COMM_COLL_NODE"}};
  each_node([&](int, const chakra_wire::Node& node) {
    ASSERT_TRUE(node.name.starts_with(kinds.at(node.type))) << node.name;
    ASSERT_EQ(node.name.find_first_of(",=\n"), std::string::npos) << node.name;
  });
}

TEST_P(ChakraExportTest, MessagesMeetAndTagsAreNotNegative) {
  // Key: source, destination, tag; value: bytes of each message.
  std::map<std::tuple<double, double, double>, std::vector<double>> sent, received;
  each_node([&](int rank, const chakra_wire::Node& node) {
    const bool send = node.type == chakra_wire::kSendNode;
    if (!send && node.type != chakra_wire::kReceiveNode) return;
    for (const char* name : {"comm_src", "comm_dst", "comm_tag"}) EXPECT_EQ(node.held(name), Held::int32_val);
    const double from = node.as(Held::int32_val, "comm_src"), to = node.as(Held::int32_val, "comm_dst");
    const double tag = node.as(Held::int32_val, "comm_tag"), bytes = node.as(Held::int64_val, "comm_size");
    EXPECT_GE(tag, 0);
    EXPECT_EQ(send ? from : to, rank);
    EXPECT_GT(bytes, 0);
    (send ? sent : received)[{from, to, tag}].push_back(bytes);
  });
  EXPECT_FALSE(sent.empty());
  EXPECT_EQ(sent, received);
}

TEST_P(ChakraExportTest, DurationsAreRounded) {
  each_node([&](int, const chakra_wire::Node& node) {
    if (node.type != chakra_wire::kComputeNode) return;
    const double exact = node.as(Held::double_val, "shardscape_duration_ns") / 1e3;
    EXPECT_GT(exact, 0);
    EXPECT_GE(node.duration_micros, 1U);
    EXPECT_NEAR(static_cast<double>(node.duration_micros), std::max(1.0, exact), 0.5);
    EXPECT_EQ(node.held("is_cpu_op"), Held::bool_val);
  });
}

TEST_P(ChakraExportTest, WorkIsThatOfTheModelAndNoKernelIsFasterThanItsRoofline) {
  // A token meets every weight of the blocks' matrices and of the head in a product of 2 flops forward and 4
  // backward. Per layer: q and o h x h, k and v h x h/4 each, three of the MLP h x 14336.
  const double h = 4096, layers = 32, tokens = 32 * 4096.0;
  const double weights = layers * (2.5 * h * h + 3 * h * 14336) + 128256 * h;
  // The stack's attention is not fused: 4 flops per pair, head and dimension forward and 8 backward, the
  // pairs that the causal mask leaves out included.
  const double attention = 12 * layers * 32 * h * 4096.0 * 4096;
  const double products = 6 * weights * tokens + attention;

  constexpr double kPeak = 312e12, kMemory = 2.04e12;  // A100 80 GB, NVIDIA's data sheet
  double operations = 0, bytes = 0;
  each_node([&](int, const chakra_wire::Node& node) {
    if (node.type != chakra_wire::kComputeNode) return;
    const double ops = node.as(Held::int64_val, "num_ops"), moved = node.as(Held::uint64_val, "tensor_size");
    EXPECT_GE(ops, 1);
    EXPECT_GE(moved, 1);
    const double seconds = node.as(Held::double_val, "shardscape_duration_ns") * 1e-9;
    EXPECT_GE(seconds, std::max((ops - 1) / kPeak, (moved - 1) / kMemory)) << node.name;
    if (node.as(Held::bool_val, "is_cpu_op") == 1) return;
    operations += ops;
    bytes += moved;
  });
  // Softmax, norms, activations and the optimizer come on top: a percent or two.
  EXPECT_GE(operations, products);
  EXPECT_LE(operations, 1.03 * products);
  // Each microbatch reads all weights in bf16 forward and backward, and adds to the fp32 gradient of each.
  EXPECT_GE(bytes, 32 * (2 + 2 + 8) * weights);
}

TEST_P(ChakraExportTest, OurOwnReplayReadsThem) {
  const Finished simulated =
      run({"simulate", "study.yaml", "--point", GetParam().point, "--mode", GetParam().mode, "--json"});
  for (const char* order : {"id", "ready"}) {
    const Finished replayed = run(
        {"replay", "traces", "--cluster", "dgx-a100", "--stack", "megatron-lm", "--order", order, "--json"});
    ASSERT_EQ(replayed.code, 0) << replayed.err;
    const double step = json::parse(simulated.out).at("step_time_s");
    EXPECT_NEAR(json::parse(replayed.out).at("step_time_s").get<double>(), step, 0.05 * step);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Plans, ChakraExportTest,
    testing::Values(
        ExportedPlan{"tp=2,cp=2,pp=2,dp=1,mbs=1,recompute=none,zero=0,schedule=1f1b", "hierarchical"},
        ExportedPlan{"tp=2,cp=1,pp=2,dp=2,mbs=1,recompute=none,zero=1,schedule=interleaved,vpp=2",
                     "hierarchical"},
        ExportedPlan{"tp=2,cp=2,pp=2,dp=1,mbs=1,recompute=none,zero=0,schedule=zero_bubble", "flattened"},
        ExportedPlan{"tp=2,cp=1,pp=2,dp=2,mbs=1,recompute=none,zero=2,schedule=1f1b", "flattened"}));

}  // namespace
}  // namespace shardscape::cli
