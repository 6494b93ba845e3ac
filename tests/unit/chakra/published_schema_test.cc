// Do written traces read by the published schema, with the types that Chakra's feeder asks for?
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sweep/chakra/trace_folder.h"
#include "tests/support/chakra_wire.h"
#include "tests/support/temporary_folder.h"

namespace shardscape::chakra {
namespace {

using chakra_wire::Held;
using timeline::NodeKind;
using timeline::TraceNode;

class PublishedSchema : public test::TemporaryFolder {
 protected:
  /// Such nodes as the trace of rank 1 of 4.
  [[nodiscard]] chakra_wire::Trace written(std::vector<TraceNode> nodes) const {
    const std::vector<timeline::ProcessGroup> groups = {{"tensor 0", {0, 1}, {}}, {"tensor 1", {2, 3}, {}}};
    timeline::RankTrace rank;
    for (TraceNode& node : nodes) rank.add(std::move(node), {});
    TraceWriter(root_, groups, 2).write_rank(1, rank);
    return chakra_wire::read_trace((root_ / "shardscape.1.et").string());
  }
};

TraceNode host(double seconds) {
  TraceNode node = timeline::compute_node("launches", seconds);
  node.host = true;
  return node;
}

TEST_F(PublishedSchema, MetadataSayWhichSchema) {
  const chakra_wire::Trace trace = written({});
  EXPECT_EQ(trace.version, "0.0.4");
  EXPECT_EQ(trace.attributes.at("schema").text, "1.1.1-chakra.0.0.4");
}

TEST_F(PublishedSchema, ComputeIsTimedAndHasItsWork) {
  const Work work{Flops(3e12), Bytes(5e9)};
  const chakra_wire::Trace trace =
      written({timeline::compute_node("qkv", 2.75e-6, work), timeline::compute_node("tiny", 1e-8),
               host(1.4e-6), timeline::compute_node("nothing", 0)});
  ASSERT_EQ(trace.nodes.size(), 4U);
  const chakra_wire::Node& kernel = trace.nodes[0];
  EXPECT_EQ(kernel.type, chakra_wire::kComputeNode);
  EXPECT_EQ(kernel.name, "COMP_NODE qkv");
  EXPECT_EQ(kernel.held("is_cpu_op"), Held::bool_val);
  EXPECT_EQ(kernel.as(Held::bool_val, "is_cpu_op"), 0);
  EXPECT_EQ(kernel.as(Held::int64_val, "num_ops"), 3e12);
  EXPECT_EQ(kernel.as(Held::uint64_val, "tensor_size"), 5e9);
  EXPECT_EQ(kernel.duration_micros, 3U);  // rounded
  EXPECT_DOUBLE_EQ(kernel.as(Held::double_val, "shardscape_duration_ns"), 2750);
  // What takes time at all takes a microsecond; 0 means that there is nothing to do.
  EXPECT_EQ(trace.nodes[1].duration_micros, 1U);
  EXPECT_EQ(trace.nodes[2].duration_micros, 1U);
  EXPECT_EQ(trace.nodes[2].as(Held::bool_val, "is_cpu_op"), 1);
  EXPECT_EQ(trace.nodes[3].duration_micros, 0U);
  for (const chakra_wire::Node& node : trace.nodes) {  // a roofline divides one by the other
    EXPECT_GE(node.as(Held::int64_val, "num_ops"), 1);
    EXPECT_GE(node.as(Held::uint64_val, "tensor_size"), 1);
  }
}

TEST_F(PublishedSchema, CommunicationHasItsTypesAndIntegerGroups) {
  TraceNode gather;
  gather.name = "block 0 qkv";
  gather.kind = NodeKind::collective;
  gather.collective = timeline::CollectiveKind::all_gather;
  gather.bytes = 6e9;
  gather.group = 0;
  const chakra_wire::Trace trace =
      written({gather, timeline::message_node(NodeKind::send, "activation 3", 2, 7, 1e6),
               timeline::message_node(NodeKind::receive, "gradient 3", 2, 8, 1e6)});
  ASSERT_EQ(trace.nodes.size(), 3U);
  const chakra_wire::Node& collective = trace.nodes[0];
  EXPECT_EQ(collective.type, chakra_wire::kCollectiveNode);
  EXPECT_EQ(collective.name, "COMM_COLL_NODE block 0 qkv");
  EXPECT_EQ(collective.held("comm_type"), Held::int64_val);
  EXPECT_EQ(collective.as(Held::int64_val, "comm_type"), 2);
  EXPECT_EQ(collective.as(Held::int64_val, "comm_size"), 6e9);
  EXPECT_EQ(collective.text("pg_name"), "1");  // 0 is all ranks
  EXPECT_EQ(collective.text("shardscape_group"), "tensor 0");
  EXPECT_EQ(collective.text("involved_dim"), std::string("\x0A\x02\x01\x01", 4));  // BoolList of two
  const chakra_wire::Node &send = trace.nodes[1], &receive = trace.nodes[2];
  EXPECT_EQ(send.type, chakra_wire::kSendNode);
  EXPECT_EQ(send.name, "COMM_SEND_NODE activation 3");
  EXPECT_EQ(send.as(Held::int32_val, "comm_src"), 1);
  EXPECT_EQ(send.as(Held::int32_val, "comm_dst"), 2);
  EXPECT_EQ(send.as(Held::int32_val, "comm_tag"), 7);
  EXPECT_EQ(send.as(Held::int64_val, "comm_size"), 1e6);
  EXPECT_EQ(receive.type, chakra_wire::kReceiveNode);
  EXPECT_EQ(receive.name, "COMM_RECV_NODE gradient 3");
  EXPECT_EQ(receive.as(Held::int32_val, "comm_src"), 2);
  EXPECT_EQ(receive.as(Held::int32_val, "comm_dst"), 1);
  for (const chakra_wire::Node& node : trace.nodes) EXPECT_EQ(node.held("is_cpu_op"), Held::bool_val);

  std::ifstream file(root_ / "comm_groups.json");
  const nlohmann::json groups = nlohmann::json::parse(file);
  EXPECT_EQ(groups, nlohmann::json::parse(R"({"1": [0, 1], "2": [2, 3]})"));
}

}  // namespace
}  // namespace shardscape::chakra
