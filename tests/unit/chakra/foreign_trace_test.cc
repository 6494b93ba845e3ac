// Are traces of other tools read as these mean them: their groups, their copies of collectives, their memory?
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "engine/timeline/replay.h"
#include "execution_trace.pb.h"
#include "sweep/chakra/trace_folder.h"
#include "tests/support/fabrics.h"
#include "tests/support/temporary_folder.h"

namespace shardscape::chakra {
namespace {

using ChakraProtoMsg::Node;

Node foreign_node(std::uint64_t id, ChakraProtoMsg::NodeType type, const std::string& name,
                  std::vector<std::uint64_t> on = {}) {
  Node n;
  n.set_id(id);
  n.set_type(type);
  n.set_name(name);
  for (const std::uint64_t other : on) n.add_ctrl_deps(other);
  return n;
}
ChakraProtoMsg::AttributeProto& attribute_of(Node& n, const char* name) {
  auto& a = *n.add_attr();
  a.set_name(name);
  return a;
}
Node all_reduce_of(std::uint64_t id, const char* group, std::vector<std::uint64_t> on = {}) {
  Node n =
      foreign_node(id, ChakraProtoMsg::COMM_COLL_NODE, "ncclDevKernel_AllReduce_Sum_bf16", std::move(on));
  attribute_of(n, "is_cpu_op").set_bool_val(false);
  attribute_of(n, "comm_type").set_int64_val(0);
  attribute_of(n, "comm_size").set_int64_val(4'000'000);
  attribute_of(n, "pg_name").set_string_val(group);
  return n;
}
/// PyTorch's observer: groups as text within the text of a list.
Node observed_groups(std::uint64_t id, const std::string& list) {
  Node n = foreign_node(id, ChakraProtoMsg::METADATA_NODE, "## process_group:init ##");
  n.mutable_inputs()->set_values("['" + list + "']");
  return n;
}
Node host_operator(std::uint64_t id, const std::string& name, std::vector<std::uint64_t> on = {}) {
  const bool call = name.starts_with("c10d::") || name.starts_with("nccl:");
  Node n = foreign_node(id, call ? ChakraProtoMsg::COMM_COLL_NODE : ChakraProtoMsg::COMP_NODE, name,
                        std::move(on));
  attribute_of(n, "is_cpu_op").set_bool_val(true);
  n.set_duration_micros(100);
  return n;
}

class ForeignTraceTest : public test::TemporaryFolder {
 protected:
  void write_rank(std::int32_t rank, const std::vector<Node>& nodes) const {
    std::string bytes;
    {
      google::protobuf::io::StringOutputStream stream(&bytes);
      google::protobuf::io::CodedOutputStream out(&stream);
      const auto append = [&](const google::protobuf::MessageLite& message) {
        out.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
        message.SerializeToCodedStream(&out);
      };
      append(ChakraProtoMsg::GlobalMetadata());
      for (const Node& node : nodes) append(node);
    }
    write("job." + std::to_string(rank) + ".et", bytes);
  }
  void write_ranks(std::int32_t ranks, const std::vector<Node>& nodes) const {
    for (std::int32_t r = 0; r < ranks; ++r) write_rank(r, nodes);
  }
  void write_groups(const std::string& text) const { write("comm_groups.json", text); }
  [[nodiscard]] std::string error() const {
    const auto loaded = load(root_);
    return loaded ? "" : loaded.error();
  }
  /// Time of the trace on a ring with links of 1 GB/s and 1 us.
  [[nodiscard]] double time_on_ring(std::int64_t size) const {
    const auto loaded = load(root_);
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error());
    if (!loaded) return 0;
    const network::Fabric fabric =
        network::fabric_of({network::dimension_of("ring", DimensionKind::ring, {size})});
    const auto replay = timeline::replay(loaded->trace, fabric, {});
    EXPECT_TRUE(replay.has_value()) << (replay ? "" : located(replay.error(), *loaded));
    return replay ? replay->step_time : 0;
  }
  /// An all-reduce of 4 MB round n ranks: 2 (n - 1) steps of 4 MB / n.
  static double round(double n) { return 2 * (n - 1) * (4e6 / n / 1e9 + 1e-6); }
};

TEST_F(ForeignTraceTest, GroupZeroIsTheWorldUnlessItIsDefined) {
  write_ranks(4, {all_reduce_of(1, "0")});
  EXPECT_NEAR(time_on_ring(4), round(4), 1e-9);
  write_groups(R"({"1": [0, 1]})");  // says nothing of 0
  EXPECT_NEAR(time_on_ring(4), round(4), 1e-9);
  write_groups(R"({"0": [0, 1]})");
  write_rank(2, {});
  write_rank(3, {});
  EXPECT_NEAR(time_on_ring(4), round(2), 1e-9);
}

TEST_F(ForeignTraceTest, GroupsWithWordsForNamesAndUnsignedSizesAreRead) {
  // Traces as earlier versions of this program wrote them, where ring passes have tag -1.
  write_groups(R"({"tensor 0": [0, 1], "tensor 1": [2, 3]})");
  for (std::int32_t r = 0; r < 4; ++r) {
    Node reduce = foreign_node(0, ChakraProtoMsg::COMM_COLL_NODE, "F0 block 0 out_proj");
    attribute_of(reduce, "is_cpu_op").set_bool_val(false);
    attribute_of(reduce, "comm_type").set_uint64_val(0);
    attribute_of(reduce, "comm_size").set_uint64_val(4'000'000);
    attribute_of(reduce, "pg_name").set_string_val(r < 2 ? "tensor 0" : "tensor 1");
    std::vector<Node> nodes = {reduce};
    if (r < 2) {
      nodes.push_back(foreign_node(
          1, r == 0 ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE, "block 0 kv", {0}));
      attribute_of(nodes.back(), "comm_src").set_int32_val(0);
      attribute_of(nodes.back(), "comm_dst").set_int32_val(1);
      attribute_of(nodes.back(), "comm_tag").set_int32_val(-1);
      attribute_of(nodes.back(), "comm_size").set_uint64_val(1'000'000);
    }
    write_rank(r, nodes);
  }
  EXPECT_NEAR(time_on_ring(4), round(2) + 1e-3 + 1e-6, 1e-9);
}

TEST_F(ForeignTraceTest, GroupsOfMetadataNodes) {
  const std::string list = R"([{"pg_name": "0", "pg_desc": "default_pg", "ranks": [], "group_size": 4},)"
                           R"( {"pg_name": "3", "ranks": [0, 1]}, {"pg_name": "4", "ranks": [2, 3]}])";
  // Defined behind its use, too, and with quotes that a converter escaped.
  std::string escaped;
  for (const char c : list) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  for (const std::string& text : {list, escaped}) {
    for (std::int32_t r = 0; r < 4; ++r) {
      write_rank(r, {all_reduce_of(5, r < 2 ? "3" : "4"), observed_groups(1, text)});
    }
    EXPECT_NEAR(time_on_ring(4), round(2), 1e-9);
  }
  write_ranks(4, {observed_groups(1, list), all_reduce_of(5, "0")});
  EXPECT_NEAR(time_on_ring(4), round(4), 1e-9);
  // The ranks may also be a list among the attributes.
  Node own = foreign_node(1, ChakraProtoMsg::METADATA_NODE, "group");
  attribute_of(own, "pg_name").set_string_val("tp");
  auto& ranks = *attribute_of(own, "ranks").mutable_int64_list();
  for (const int rank : {0, 1, 2, 3}) ranks.add_values(rank);
  write_ranks(4, {own, all_reduce_of(5, "tp")});
  EXPECT_NEAR(time_on_ring(4), round(4), 1e-9);
}

TEST_F(ForeignTraceTest, GroupsThatNodesDefineBadly) {
  const auto expect = [&](const std::string& part) {
    EXPECT_NE(error().find(part), std::string::npos) << part << " not in " << error();
  };
  write_ranks(2, {observed_groups(1, R"([{"pg_name": "3", "ranks": [0]}])"), all_reduce_of(5, "4")});
  expect(
      "job.0.et: node 5 'ncclDevKernel_AllReduce_Sum_bf16' (rank 0): names process group '4', which no node");
  write_ranks(2, {observed_groups(1, R"([{"pg_name": "3", "ranks": [0, -1]}])")});
  expect("lists a process group without a string pg_name and a list of ranks");
  write_ranks(2, {observed_groups(1, "nothing")});
  expect("node 1 '## process_group:init ##' (rank 0): should list process groups in its input values");
  write_rank(0, {observed_groups(1, R"([{"pg_name": "3", "ranks": [0, 1]}])")});
  write_rank(1, {observed_groups(1, R"([{"pg_name": "3", "ranks": [1, 0]}])")});
  expect("job.1.et: node 1 '## process_group:init ##' (rank 1): gives process group '3' other ranks");
  write_ranks(2, {all_reduce_of(5, "4")});
  expect("names process group '4', and neither a comm_groups.json beside the traces nor a node says");
}

TEST_F(ForeignTraceTest, CallsOfTheHostStartTheKernelsBehindThem) {
  // c10d::allreduce_ > record_param_comms > nccl:all_reduce > kernel: 100 us each on the host, one
  // all-reduce.
  write_ranks(2, {host_operator(1, "c10d::allreduce_"), host_operator(2, "record_param_comms", {1}),
                  host_operator(3, "nccl:all_reduce", {2}), all_reduce_of(4, "0", {3})});
  EXPECT_NEAR(time_on_ring(2), 3e-4 + round(2), 1e-9);
}

TEST_F(ForeignTraceTest, CallsWithoutKernelsAreRefused) {
  // The kernel belongs to the first call; that the second comes before another one's doesn't link them.
  write_ranks(2, {host_operator(1, "nccl:all_reduce"), all_reduce_of(2, "0", {1}),
                  host_operator(3, "c10d::broadcast_", {1}), host_operator(4, "aten::add", {3}),
                  all_reduce_of(5, "0", {4})});
  const std::string text = error();
  EXPECT_NE(text.find("job.1.et: node 3 'c10d::broadcast_' (rank 1): is a collective of the host, and no "
                      "kernel of the device depends on it"),
            std::string::npos)
      << text;
  EXPECT_EQ(text.find("node 1 "), std::string::npos) << text;
}

TEST_F(ForeignTraceTest, MemoryNodesMoveTheirBytes) {
  Node memory_load = foreign_node(1, ChakraProtoMsg::MEM_LOAD_NODE, "weights");
  attribute_of(memory_load, "tensor_size").set_uint64_val(3'000'000);
  Node memory_store = foreign_node(2, ChakraProtoMsg::MEM_STORE_NODE, "gradients", {1});
  attribute_of(memory_store, "tensor_size").set_uint64_val(1'000'000);
  write_ranks(1, {memory_load, memory_store});
  auto loaded = load(root_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error();
  DeviceSpec device;
  device.hbm.stacks = 1;
  device.hbm.bandwidth_per_stack = BytesPerSecond(1e9);
  EXPECT_EQ(timeline::estimate_durations(loaded->trace, device), 2);
  const network::Fabric fabric =
      network::fabric_of({network::dimension_of("ring", DimensionKind::ring, {2})});
  const auto replay = timeline::replay(loaded->trace, fabric, {});
  ASSERT_TRUE(replay.has_value());
  EXPECT_NEAR(replay->step_time, 4e-3, 1e-12);  // one after the other at 1 GB/s

  write_ranks(1, {foreign_node(1, ChakraProtoMsg::MEM_LOAD_NODE, "weights")});
  EXPECT_NE(error().find("node 1 'weights' (rank 0): says neither how much is moved (tensor_size) nor"),
            std::string::npos)
      << error();
}

}  // namespace
}  // namespace shardscape::chakra
