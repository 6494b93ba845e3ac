// Can a study's cluster use every kind of fabric dimension, alone and composed, written in the study and as a
// file of its own?
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

/// Dimensions are flow mappings without `scope` and rates, which the study adds.
struct ClusterCase {
  std::string name;
  int gpus = 8;
  std::vector<std::string> dimensions;
};

const std::string kCustomEdges =
    "[[0, 1], [1, 2], [2, 3], [3, 0], [0, 4], [1, 5], [2, 6], [3, 7], [4, 5], [5, 6], [6, 7], [7, 4]]";

std::string custom_cube(const std::string& rate) {
  std::string links;
  for (const json& edge : json::parse(kCustomEdges)) {
    links += (links.empty() ? "" : ", ");
    links += "{between: " + edge.dump() + ", bandwidth: " + rate + ", latency: 1 us}";
  }
  return "kind: custom, size: 8, links: [" + links + "]";
}

/// One cluster for each kind of dimension.
std::vector<ClusterCase> kinds() {
  return {
      {"ring", 8, {"kind: ring, size: 8"}},
      {"mesh", 8, {"kind: mesh, shape: [2, 4]"}},
      {"torus", 8, {"kind: torus, shape: [4, 2]"}},
      {"fully_connected", 8, {"kind: fully_connected, size: 8"}},
      {"switch", 8, {"kind: switch, size: 8"}},
      {"king_mesh", 8, {"kind: king_mesh, shape: [2, 4]"}},
      {"hypercube", 8, {"kind: hypercube, size: 8"}},
      {"fat_tree", 8, {"kind: fat_tree, size: 8, levels: 2, radix: 8, oversubscription: 3"}},
      {"dragonfly", 8, {"kind: dragonfly, size: 8, routers_per_group: 2, hosts_per_router: 2"}},
      {"custom", 8, {"kind: custom"}},
  };
}

std::vector<ClusterCase> compositions() {
  return {
      {"nodes on a torus", 16, {"kind: fully_connected, size: 4", "kind: torus, shape: [2, 2]"}},
      {"cubes on rails", 16, {"kind: custom", "kind: switch, size: 2, nics_per_node: 4"}},
      {"rings in a tree", 16, {"kind: ring, size: 4", "kind: fat_tree, size: 4, levels: 2, radix: 4"}},
      {"mesh, cube, switch",
       16,
       {"kind: mesh, shape: [2, 2]", "kind: hypercube, size: 2", "kind: switch, size: 2"}},
      {"switches on a dragonfly",
       32,
       {"kind: switch, size: 4", "kind: dragonfly, size: 8, routers_per_group: 2, hosts_per_router: 2"}},
      {"kings, pairs, open rails",
       16,
       {"kind: king_mesh, shape: [2, 2]", "kind: ring, size: 2",
        "kind: fat_tree, size: fill, levels: 3, radix: 4, up_routing: ecmp"}},
  };
}

class ClusterKindsTest : public ProgramTest {
 protected:
  static constexpr double kSlow = 20, kFast = 40;  // GB/s of the innermost dimension

  /// The cluster as YAML, `indent` further in.
  static std::string cluster(const ClusterCase& c, double rate, const std::string& indent) {
    std::string text =
        indent + "name: by hand\n" + indent + "device: a100-sxm-80gb\n" + indent + "dimensions:\n";
    for (std::size_t d = 0; d < c.dimensions.size(); ++d) {
      const std::string speed = std::to_string(rate / static_cast<double>(d + 1)) + " GB/s";
      const bool custom = c.dimensions[d] == "kind: custom";
      text += indent + "  - {name: d" + std::to_string(d) + ", scope: scale_up, ";
      text += custom ? custom_cube(speed) : c.dimensions[d] + ", latency: 1 us, bandwidth: " + speed;
      text += "}\n";
    }
    return text;
  }

  static std::string study(const ClusterCase& c, const std::string& cluster) {
    const bool open = c.dimensions.back().find("fill") != std::string::npos;
    return "study: kinds\nmodel: llama3.1-8b\ncluster:" + cluster +
           (open ? "gpus: " + std::to_string(c.gpus) + "\n" : "") +
           "stack: megatron-lm\n"
           "workload: {phase: training, sequence_length: 4096, global_batch: 32, precision: bf16}\n"
           "space: {tensor_parallel: [8, 4, 2], pipeline_parallel: [1, 2], data_parallel: fill,\n"
           "  sequence_parallel: [true], zero_stage: [1], recompute: [selective], rank_order: "
           "[dp-tp-cp-pp]}\n"
           "objectives: [step_time_s]\n";
  }

  json simulate(const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"simulate", "study.yaml", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.code == 0 ? json::parse(finished.out) : json();
  }

  void check(const ClusterCase& c) {
    SCOPED_TRACE(c.name);
    write("study.yaml", study(c, "\n" + cluster(c, kSlow, "  ")));
    const json point = simulate();
    ASSERT_TRUE(point.is_object());
    const double step = point.at("step_time_s");
    EXPECT_GT(point.at("breakdown").at("tp_comm_s").get<double>(), 0);
    const json& tensor = point.at("placement").at("axes").at(0);
    EXPECT_EQ(tensor.at("axis"), "tp");
    EXPECT_GE(tensor.at("hops").get<int>(), 1);
    EXPECT_FALSE(tensor.at("dimensions").empty());

    // A study that names the cluster's file says the same.
    write("by_hand.yaml", cluster(c, kSlow, "") + "source: a test\n");
    write("study.yaml", study(c, " ./by_hand.yaml\n"));
    EXPECT_EQ(simulate(), point);

    const json plain = simulate({"--reference"});
    EXPECT_NEAR(plain.at("step_time_s").get<double>(), step, 1e-9 * step);

    // Half the bandwidth of its first link slows nothing down by more than everything at half.
    const double sick = simulate({"--fault", "0=0.5"}).at("step_time_s");
    EXPECT_GE(sick, step * (1 - 1e-9));
    write("study.yaml", study(c, "\n" + cluster(c, kSlow / 2, "  ")));
    const double halved = simulate().at("step_time_s");
    EXPECT_LE(sick, halved * (1 + 1e-9));
    write("study.yaml", study(c, "\n" + cluster(c, kFast, "  ")));
    EXPECT_LT(simulate().at("step_time_s").get<double>(), step);
    EXPECT_GT(halved, step);
  }
};

TEST_F(ClusterKindsTest, EveryKindAlone) {
  for (const ClusterCase& c : kinds()) check(c);
}

TEST_F(ClusterKindsTest, Compositions) {
  for (const ClusterCase& c : compositions()) check(c);
}

TEST_F(ClusterKindsTest, BadOnesAreRefused) {
  const std::string rates = ", latency: 1 us, bandwidth: 5 GB/s";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"kind: ring, size: 8, latency: 1 us, bandwidth: 0 GB/s", "bandwidth: must be from 1 B/s"},
      {"kind: ring, size: 8, latency: 1 us, bandwidth: -5 GB/s", "bandwidth: must be from 1 B/s"},
      {"kind: ring, size: 8, latency: 1 us, bandwidth: nan GB/s", "bandwidth: \"nan GB/s\" is no quantity"},
      {"kind: ring, size: 8, latency: -1 us, bandwidth: 5 GB/s", "latency: must be from 1e-15 s"},
      {"kind: ring, size: 8, latency: 1 us, bandwidth: 5", "bandwidth: "},
      {"kind: rign, size: 8" + rates, "kind: "},
      {"kind: ring, shape: [2, 4]" + rates, "shape: only mesh, torus and king_mesh"},
      {"kind: torus, size: 9, shape: [2, 4]" + rates, "shape: given twice"},
      {"kind: torus, shape: [2, -4]" + rates, "shape: must be an integer from 1"},
      {"kind: hypercube, size: 6" + rates, "the size of a hypercube is a power of two, not 6"},
      {"kind: dragonfly, size: 9, routers_per_group: 2, hosts_per_router: 2" + rates,
       "2 routers with 2 hosts"},
      {"kind: fat_tree, size: 800, levels: 1, radix: 8" + rates, "800 endpoints are more than the 8"},
      {"kind: ring, size: 8, radix: 4" + rates, "radix: "},
      {"kind: custom, size: 3, links: [{between: [0, 3], bandwidth: 5 GB/s, latency: 1 us}]",
       "links[0]: there is no vertex 3"},
      {"kind: custom, size: 3, links: [{between: [0, 1], bandwidth: 0 GB/s, latency: 1 us}]",
       "links[0].bandwidth: must be from 1 B/s"},
      {"kind: custom, size: 3, links: [{between: [0, 1], bandwidth: 5 GB/s, latency: 1 us}]",
       "links: the graph is not connected: no way to vertex 2"},
  };
  for (const auto& [dimension, says] : cases) {
    SCOPED_TRACE(dimension);
    const ClusterCase c{"", 8, {dimension}};
    write("study.yaml",
          study(c, "\n  name: x\n  device: a100-sxm-80gb\n  dimensions:\n    - {name: d, scope: scale_up, " +
                       dimension + "}\n"));
    for (const char* command : {"sweep", "simulate"}) {
      std::vector<std::string> words = {command, "study.yaml"};
      if (std::string(command) == "sweep") words.insert(words.end(), {"-o", "out.h5"});
      const Finished finished = run(words);
      EXPECT_EQ(finished.code, 2) << finished.err;
      EXPECT_TRUE(finished.err.starts_with("study.yaml:7:")) << finished.err;
      EXPECT_TRUE(contains(finished.err, "cluster.dimensions[0].")) << finished.err;
      EXPECT_TRUE(contains(finished.err, says)) << says << " not in\n" << finished.err;
      EXPECT_EQ(finished.out, "");
      EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
    }
  }
}

TEST_F(ClusterKindsTest, SweepsRunOnThem) {
  for (const std::vector<ClusterCase>& cases : {kinds(), compositions()}) {
    for (const ClusterCase& c : cases) {
      SCOPED_TRACE(c.name);
      write("study.yaml", study(c, "\n" + cluster(c, kSlow, "  ")));
      const Finished swept = run({"sweep", "study.yaml", "-o", "out.h5", "--force", "--progress", "none"});
      ASSERT_EQ(swept.code, 0) << swept.err;
      const Finished top = run({"top", "out.h5", "-n", "1", "--format", "json"});
      ASSERT_EQ(top.code, 0) << top.err;
      EXPECT_TRUE(contains(top.out, "step_time_s")) << top.out;
    }
  }
}

}  // namespace
}  // namespace shardscape::cli
