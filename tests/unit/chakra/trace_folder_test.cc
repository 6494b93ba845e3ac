// Do traces survive their files, do foreign ones read as the format says, and is every broken file told from
// a good one without a crash?
#include "sweep/chakra/trace_folder.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>

#include "engine/base/counter_rng.h"
#include "engine/timeline/replay.h"
#include "execution_trace.pb.h"
#include "tests/support/fabrics.h"

namespace shardscape::chakra {
namespace {

namespace fs = std::filesystem;
using ChakraProtoMsg::Node;

/// A message with its length before it, as other writers of the format do it.
void append(std::string& file, const google::protobuf::MessageLite& message) {
  google::protobuf::io::StringOutputStream stream(&file);
  google::protobuf::io::CodedOutputStream out(&stream);
  out.WriteVarint32(static_cast<std::uint32_t>(message.ByteSizeLong()));
  message.SerializeToCodedStream(&out);
}

Node node(std::uint64_t id, ChakraProtoMsg::NodeType type, const std::string& name) {
  Node n;
  n.set_id(id);
  n.set_type(type);
  n.set_name(name);
  return n;
}
ChakraProtoMsg::AttributeProto& attribute(Node& n, const char* name) {
  auto& a = *n.add_attr();
  a.set_name(name);
  return a;
}

class TraceFolderTest : public testing::Test {
 protected:
  TraceFolderTest() {
    std::string pattern = (fs::temp_directory_path() / "shardscape-chakra-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~TraceFolderTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  std::string read(const std::string& name) const {
    std::ifstream in(folder_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::string error() const {
    const auto loaded = load(folder_);
    return loaded ? "" : loaded.error();
  }

  /// Two ranks of a foreign trainer: 1,500 us of compute, an all_reduce of 4 MB in group "7" (whose ranks are
  /// listed as [0, 1]), then rank 0 sends 1 MB to rank 1. Ids are neither small nor in order.
  void write_foreign() const {
    write("groups.json", "{\"7\": [0, 1]}\n");
    for (std::int32_t rank = 0; rank < 2; ++rank) {
      std::string file;
      ChakraProtoMsg::GlobalMetadata metadata;
      metadata.set_version("0.0.4");
      append(file, metadata);
      Node compute = node(900, ChakraProtoMsg::COMP_NODE, "gemm");
      compute.set_duration_micros(1500);
      attribute(compute, "is_cpu_op").set_bool_val(false);
      append(file, compute);
      Node reduce = node(17, ChakraProtoMsg::COMM_COLL_NODE, "all_reduce");
      reduce.add_data_deps(900);
      attribute(reduce, "comm_type").set_int64_val(0);  // writers differ in the width of integers
      attribute(reduce, "comm_size").set_int64_val(4'000'000);
      attribute(reduce, "pg_name").set_string_val("7");
      append(file, reduce);
      Node send = node(3, rank == 0 ? ChakraProtoMsg::COMM_SEND_NODE : ChakraProtoMsg::COMM_RECV_NODE, "p2p");
      send.add_ctrl_deps(17);
      attribute(send, "comm_src").set_int32_val(0);
      attribute(send, "comm_dst").set_int32_val(1);
      attribute(send, "comm_tag").set_int32_val(42);
      attribute(send, "comm_size").set_uint64_val(1'000'000);
      append(file, send);
      write("job." + std::to_string(rank) + ".et", file);
    }
  }

  fs::path folder_;
};

TEST_F(TraceFolderTest, ForeignTraceHasItsClosedForm) {
  write_foreign();
  const auto loaded = load(folder_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error();
  // A ring of two at 1 GB/s, 1 us: 1.5 ms + 2 steps of 2 MB (2 ms + 1 us each) + 1 MB (1 ms + 1 us).
  const network::Fabric fabric =
      network::fabric_of({network::dimension_of("ring", DimensionKind::ring, {2})});
  const auto replay = timeline::replay(loaded->trace, fabric, {});
  ASSERT_TRUE(replay.has_value()) << located(replay.error(), *loaded);
  EXPECT_NEAR(replay->step_time, 1.5e-3 + 2 * (2e-3 + 1e-6) + 1e-3 + 1e-6, 1e-12);
}

TEST_F(TraceFolderTest, RoundTripIsExact) {
  timeline::ExecutionTrace original;
  original.groups = {{"pair", {1, 0}, {}}};
  original.ranks.resize(2);
  for (std::int32_t r = 0; r < 2; ++r) {
    timeline::RankTrace& rank = original.ranks[static_cast<std::size_t>(r)];
    timeline::TraceNode compute;
    compute.kind = timeline::NodeKind::compute;
    compute.name = "B3 block 2 qkv";
    compute.seconds = 1.23456789012345e-4;  // 123.456... us
    compute.host = r == 1;
    const auto first = rank.add(compute, {});
    timeline::TraceNode collective;
    collective.kind = timeline::NodeKind::collective;
    collective.collective = timeline::CollectiveKind::reduce_scatter;
    collective.bytes = 1e9;
    const auto second = rank.add(collective, std::vector<std::uint64_t>{first});
    timeline::TraceNode message;
    message.kind = r == 0 ? timeline::NodeKind::send : timeline::NodeKind::receive;
    message.peer = 1 - r;
    message.tag = 3;
    message.bytes = 12345;
    rank.add(message, std::vector<std::uint64_t>{first, second});
  }
  TraceWriter writer(folder_ / "out", original.groups, 2);
  for (std::int32_t r = 0; r < 2; ++r) writer.write_rank(r, original.ranks[static_cast<std::size_t>(r)]);
  const auto loaded = load(folder_ / "out");
  ASSERT_TRUE(loaded.has_value()) << loaded.error();
  EXPECT_EQ(loaded->trace.groups.front().ranks, original.groups.front().ranks);
  for (std::size_t r = 0; r < 2; ++r) {
    const timeline::RankTrace &a = original.ranks[r], &b = loaded->trace.ranks[r];
    ASSERT_EQ(b.nodes.size(), a.nodes.size());
    EXPECT_EQ(b.dependencies, a.dependencies);
    for (std::size_t n = 0; n < a.nodes.size(); ++n) {
      EXPECT_EQ(b.nodes[n].id, a.nodes[n].id);
      EXPECT_TRUE(b.nodes[n].name.ends_with(a.nodes[n].name));
      EXPECT_EQ(b.nodes[n].kind, a.nodes[n].kind);
      EXPECT_EQ(b.nodes[n].host, a.nodes[n].host);
      EXPECT_NEAR(b.nodes[n].seconds, a.nodes[n].seconds, 1e-18);
      EXPECT_EQ(b.nodes[n].bytes, a.nodes[n].bytes);
      EXPECT_EQ(b.nodes[n].peer, a.nodes[n].peer);
      EXPECT_EQ(b.nodes[n].tag, a.nodes[n].tag);
      EXPECT_EQ(b.nodes[n].collective, a.nodes[n].collective);
    }
  }
}

TEST_F(TraceFolderTest, WrittenNodesHaveWhatOtherSimulatorsRead) {
  timeline::RankTrace rank;
  timeline::TraceNode compute;
  compute.kind = timeline::NodeKind::compute;
  compute.seconds = 2.75e-6;
  rank.add(compute, {});
  TraceWriter(folder_, {}, 1).write_rank(0, rank);
  const std::string file = read("shardscape.0.et");
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(file.data()),
                                            static_cast<int>(file.size()));
  std::uint32_t length = 0;
  ASSERT_TRUE(in.ReadVarint32(&length));
  ASSERT_TRUE(in.Skip(static_cast<int>(length)));
  ASSERT_TRUE(in.ReadVarint32(&length));
  std::string bytes;
  ASSERT_TRUE(in.ReadString(&bytes, static_cast<int>(length)));
  Node n;
  ASSERT_TRUE(n.ParseFromString(bytes));
  EXPECT_EQ(n.type(), ChakraProtoMsg::COMP_NODE);
  EXPECT_EQ(n.duration_micros(), 3U);  // whole microseconds; the exact time is in the attribute
  bool found = false;
  for (const auto& a : n.attr()) {
    if (a.name() != "shardscape_duration_ns") continue;
    found = true;
    EXPECT_DOUBLE_EQ(a.double_val(), 2750);
  }
  EXPECT_TRUE(found);
}

TEST_F(TraceFolderTest, EveryTruncationIsTold) {
  write_foreign();
  const std::string whole = read("job.1.et");
  std::vector<std::size_t> boundaries;  // where a message ends: fewer nodes, but no broken file
  for (std::size_t at = 0; at < whole.size();) {
    google::protobuf::io::CodedInputStream in(reinterpret_cast<const std::uint8_t*>(whole.data()) + at,
                                              static_cast<int>(whole.size() - at));
    std::uint32_t length = 0;
    ASSERT_TRUE(in.ReadVarint32(&length));
    at += static_cast<std::size_t>(in.CurrentPosition()) + length;
    boundaries.push_back(at);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) {
    write("job.1.et", whole.substr(0, size));
    const std::string text = error();
    if (std::ranges::find(boundaries, size) != boundaries.end()) {
      EXPECT_EQ(text, "") << size;
    } else {
      EXPECT_NE(text.find("job.1.et"), std::string::npos) << size << ": " << text;
      EXPECT_NE(text.find(size == 0 ? "is empty" : "cut off"), std::string::npos) << size << ": " << text;
    }
  }
}

TEST_F(TraceFolderTest, CorruptedBytesNeverCrash) {
  write_foreign();
  const std::string whole = read("job.1.et");
  const network::Fabric fabric =
      network::fabric_of({network::dimension_of("ring", DimensionKind::ring, {2})});
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    CounterRng random(seed, 0);
    std::string broken = whole;
    for (std::uint64_t flips = 1 + random.below(4); flips > 0; --flips) {
      broken[random.below(broken.size())] = static_cast<char>(random.below(256));
    }
    write("job.1.et", broken);
    const auto loaded = load(folder_);
    if (!loaded) {
      EXPECT_FALSE(loaded.error().empty());
      continue;
    }
    const auto replay = timeline::replay(loaded->trace, fabric, {});
    if (!replay) {
      EXPECT_FALSE(located(replay.error(), *loaded).empty()) << "seed " << seed;
    }
  }
}

TEST_F(TraceFolderTest, HugeLengthsAreRefusedBeforeAnythingIsAllocated) {
  write_foreign();
  write("job.1.et", std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", 10));
  EXPECT_NE(error().find("says it has 18446744073709551615 bytes"), std::string::npos) << error();
  write("job.1.et", std::string(11, '\xFF'));
  EXPECT_NE(error().find("no length of a message"), std::string::npos) << error();
}

TEST_F(TraceFolderTest, ProblemsNameFileNodeAndRank) {
  write_foreign();
  const std::string good = read("job.1.et");
  const auto with = [&](const Node& n) {
    std::string file = good;
    append(file, n);
    write("job.1.et", file);
    return error();
  };
  const auto expect = [](const std::string& text, std::initializer_list<const char*> parts) {
    for (const char* part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << part << " not in " << text;
  };
  expect(with(node(5, static_cast<ChakraProtoMsg::NodeType>(12), "odd")),
         {"job.1.et: node 5 'odd' (rank 1): is of unknown type 12"});
  expect(with(node(5, ChakraProtoMsg::INVALID_NODE, "odd")), {"unknown type 0"});
  expect(with(node(6, ChakraProtoMsg::COMM_COLL_NODE, "ar")),
         {"node 6 'ar' (rank 1): ", "no attribute comm_type", "no attribute comm_size"});
  Node group = node(7, ChakraProtoMsg::COMM_COLL_NODE, "ar");
  attribute(group, "comm_type").set_uint64_val(0);
  attribute(group, "comm_size").set_int64_val(-5);
  attribute(group, "pg_name").set_string_val("8");
  expect(with(group), {"comm_size must be from 0 to 9007199254740992, not -5",
                       "names process group '8', which groups.json does not have"});
  Node wrong = node(8, ChakraProtoMsg::COMM_RECV_NODE, "p2p");
  attribute(wrong, "comm_src").set_int32_val(0);
  attribute(wrong, "comm_dst").set_int32_val(0);
  attribute(wrong, "comm_size").set_uint64_val(8);
  expect(with(wrong), {"comm_dst is rank 0, but this is the trace of rank 1"});

  // A receive without its send is found when the traces are linked.
  wrong.mutable_attr(1)->set_int32_val(1);
  with(wrong);
  const auto loaded = load(folder_);
  ASSERT_TRUE(loaded.has_value()) << loaded.error();
  const network::Fabric fabric =
      network::fabric_of({network::dimension_of("ring", DimensionKind::ring, {2})});
  const auto replay = timeline::replay(loaded->trace, fabric, {});
  ASSERT_FALSE(replay.has_value());
  expect(located(replay.error(), *loaded),
         {"job.1.et: node 8 'p2p' (rank 1): receives from rank 0 with tag 0, which sends it nothing"});
}

TEST_F(TraceFolderTest, FoldersThatAreNoTraces) {
  EXPECT_NE(error().find("has no traces"), std::string::npos) << error();
  write_foreign();
  fs::rename(folder_ / "job.1.et", folder_ / "job.2.et");
  EXPECT_NE(error().find("has a trace of rank 2, but none of rank 1"), std::string::npos) << error();
  fs::rename(folder_ / "job.2.et", folder_ / "other.1.et");
  EXPECT_NE(error().find("traces of several runs, 'job' and 'other'"), std::string::npos) << error();
  write_foreign();
  fs::remove(folder_ / "other.1.et");
  write("groups.json", "{\"7\": [0, \"x\"]}");
  EXPECT_NE(error().find("group '7': \"x\" is no rank"), std::string::npos) << error();
  write("groups.json", "{\"7\": [0, 1}");
  EXPECT_NE(error().find("groups.json:1:"), std::string::npos) << error();
  fs::remove(folder_ / "groups.json");
  EXPECT_NE(error().find("neither a comm_groups.json beside the traces"), std::string::npos) << error();
  EXPECT_NE(load(folder_ / "nowhere").error().find("cannot be read"), std::string::npos);
}

}  // namespace
}  // namespace shardscape::chakra
