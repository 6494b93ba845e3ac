// Can every kind of fabric be written in YAML, read back the same, and does each mistake say where it is?
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/network/fabric/fabric.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

std::string cluster(const std::string& dimensions) {
  return "name: c\ndevice: gpu\ndimensions:\n" + dimensions;
}
/// One dimension; its keys start at line 4, column 6.
std::string one(const std::string& keys) { return cluster("  - {name: d, " + keys + "}\n"); }
const std::string kRates = ", bandwidth: 1 GB/s, latency: 1 us";

std::optional<FabricTemplate> read(const std::string& text, Diagnostics& diagnostics) {
  const auto node = parse(text, "f", diagnostics);
  const Node* device = nullptr;
  return node ? read_fabric(*node, "", diagnostics, &device) : std::nullopt;
}

FabricSpec good_fabric(const std::string& text) {
  Diagnostics diagnostics;
  const auto fabric = read(text, diagnostics);
  EXPECT_TRUE(fabric.has_value()) << text << diagnostics.to_string();
  return fabric ? fabric->fabric : FabricSpec();
}

Diagnostics bad_fabric(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(read(text, diagnostics).has_value()) << text;
  return diagnostics;
}

const std::map<std::string, std::string> kKinds = {
    {"ring", one("kind: ring, size: 5" + kRates)},
    {"mesh", one("kind: mesh, shape: [3, 4]" + kRates)},
    {"torus", one("kind: torus, shape: [3, 4, 2], bandwidth_per_gpu: 12 GB/s, latency: 1 us")},
    {"fully_connected", one("kind: fully_connected, size: 4, bandwidth_per_gpu: 300 GB/s, latency: 1 us")},
    {"switch", one("kind: switch, size: 8, in_network_reduction: true" + kRates)},
    {"king_mesh", one("kind: king_mesh, shape: [3, 4], scope: scale_out" + kRates)},
    {"hypercube", one("kind: hypercube, size: 16" + kRates)},
    {"fat_tree", one("kind: fat_tree, size: 18, levels: 2, radix: 8, oversubscription: 3, up_routing: ecmp, "
                     "uplink_bandwidth: 2 GB/s, uplink_latency: 2 us, in_network_reduction: true" +
                     kRates)},
    {"dragonfly", one("kind: dragonfly, size: 18, groups: 3, routers_per_group: 3, hosts_per_router: 2, "
                      "global_bandwidth: 2 GB/s, global_latency: 3 us" +
                      kRates)},
    {"custom",
     one("kind: custom, size: 3, switches: 1, links: [{between: [0, 3], bandwidth: 1 GB/s, latency: 1 us}, "
         "{between: [3, 1], bandwidth: 2 GB/s, latency: 0 us}, "
         "{from: 1, to: 2, bandwidth: 3 GB/s, latency: 3 us}, "
         "{from: 2, to: 0, bandwidth: 3 GB/s, latency: 3 us}]")}};

TEST(FabricYaml, EveryKindReadsBackTheSame) {
  for (const std::string_view kind : enum_names<DimensionKind>()) {
    SCOPED_TRACE(kind);
    const auto text = kKinds.find(std::string(kind));
    ASSERT_NE(text, kKinds.end());
    const FabricSpec first = good_fabric(text->second);
    const std::string written = emit(write(first)) + "device: gpu\n";
    const FabricSpec second = good_fabric(written);
    EXPECT_EQ(emit(write(second)) + "device: gpu\n", written);
    const network::Fabric a(first), b(second);
    ASSERT_EQ(a.links().size(), b.links().size());
    for (std::size_t i = 0; i < a.links().size(); ++i) {
      EXPECT_EQ(a.links()[i].destination, b.links()[i].destination);
      EXPECT_EQ(a.links()[i].bandwidth, b.links()[i].bandwidth);
      EXPECT_EQ(a.links()[i].latency, b.links()[i].latency);
    }
  }
}

TEST(FabricYaml, KeysMeanWhatTheySay) {
  const DimensionSpec tree = good_fabric(kKinds.at("fat_tree")).dimensions[0];
  EXPECT_EQ(tree.fat_tree.oversubscription, 3);
  EXPECT_EQ(tree.fat_tree.up_routing, UpRouting::ecmp);
  EXPECT_EQ(tree.fat_tree.uplink_bandwidth->value(), 2e9);
  EXPECT_TRUE(tree.in_network_reduction);
  const DimensionSpec torus = good_fabric(kKinds.at("torus")).dimensions[0];
  EXPECT_EQ(torus.basis, BandwidthBasis::gpu);
  EXPECT_EQ(torus.bandwidth.value(), 12e9);
  const DimensionSpec custom = good_fabric(kKinds.at("custom")).dimensions[0];
  ASSERT_EQ(custom.custom.links.size(), 4U);
  EXPECT_FALSE(custom.custom.links[1].one_way);
  EXPECT_TRUE(custom.custom.links[2].one_way);
  EXPECT_EQ(custom.custom.links[2].b, 2);
  const FabricSpec nodes = good_fabric(
      cluster("  - {name: node, kind: switch, size: 8, bandwidth: 9 GB/s, latency: 1 us}\n"
              "  - {name: rail, kind: fat_tree, size: fill, levels: 3, radix: 8, nics_per_node: 4, "
              "rails: 2, bandwidth: 1 GB/s, "
              "latency: 1 us}\n"));
  EXPECT_EQ(nodes.dimensions[1].nics_per_node, 4);
  EXPECT_EQ(nodes.dimensions[1].rails, 2);
}

TEST(FabricYaml, KeysOfOtherKindsHaveNoEffect) {
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, radix: 8" + kRates)),
                      "f:4:43: dimensions[0].radix", "has no effect on a ring, only on a fat_tree"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, groups: 8" + kRates)),
                      "f:4:44: dimensions[0].groups", "only on a dragonfly"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, links: []" + kRates)),
                      "f:4:43: dimensions[0].links", "only on a custom"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, nics_per_node: 1" + kRates)),
                      "f:4:51: dimensions[0].nics_per_node", "only on a switch or a fat_tree"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: switch, size: 4, rails: 1" + kRates)),
                      "f:4:45: dimensions[0].rails", "has no effect on a switch"));
  EXPECT_TRUE(
      reports(bad_fabric(one("kind: fat_tree, size: 4, levels: 1, radix: 4, up_routing: ecmp" + kRates)),
              "f:4:73: dimensions[0].up_routing", "one level"));
  const Diagnostics custom =
      bad_fabric(one("kind: custom, size: 2, bandwidth: 1 GB/s, links: [{between: [0, 1], bandwidth: 1 GB/s, "
                     "latency: 1 us}]"));
  EXPECT_TRUE(reports(custom, "f:4:49: dimensions[0].bandwidth", "whose links have their own"));
  EXPECT_EQ(custom.size(), 1U);
}

TEST(FabricYaml, OneSlipInTheKindIsOneProblem) {
  const Diagnostics found = bad_fabric(one("kind: fat_tre, size: 4, levels: 1, radix: 4" + kRates));
  EXPECT_TRUE(reports(found, "f:4:21: dimensions[0].kind", "did you mean \"fat_tree\"?"));
  EXPECT_EQ(found.size(), 1U) << found.to_string();
}

TEST(FabricYaml, ProblemsAreLocated) {
  EXPECT_TRUE(reports(bad_fabric(one("kind: hypercube, size: 12" + kRates)), "f:4:38: dimensions[0].shape",
                      "power of two"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, latency: 1 us")), "f:4:5: dimensions[0].bandwidth",
                      "give bandwidth or bandwidth_per_gpu"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: ring, size: 4, bandwidth_per_gpu: 1 GB/s" + kRates)),
                      "f:4:55: dimensions[0].bandwidth_per_gpu", "given twice"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: mesh, shape: [4], bandwidth_per_gpu: 1 GB/s, latency: 1 us")),
                      "f:4:58: dimensions[0].bandwidth_per_gpu", "per link"));
  for (const char* rate : {"0 GB/s", "-1 GB/s", "nan GB/s"}) {
    const Diagnostics found =
        bad_fabric(one(std::string("kind: ring, size: 4, latency: 1 us, bandwidth: ") + rate));
    EXPECT_TRUE(reports(found, "f:4:62: dimensions[0].bandwidth", "")) << rate;
  }
  EXPECT_TRUE(reports(bad_fabric(one("kind: fat_tree, size: 4, radix: 4" + kRates)),
                      "f:4:5: dimensions[0].levels", "missing"));
  EXPECT_TRUE(reports(bad_fabric(one("kind: fat_tree, size: 40, levels: 2, radix: 4" + kRates)),
                      "f:4:37: dimensions[0].shape", "40 endpoints"));
  EXPECT_TRUE(reports(
      bad_fabric(one("kind: dragonfly, size: 13, routers_per_group: 3, hosts_per_router: 2" + kRates)),
      "f:4:38: dimensions[0].shape", "3 routers with 2 hosts"));
}

TEST(FabricYaml, ProblemsOfCustomLinksAreLocated) {
  const auto graph = [](const std::string& links) {
    return cluster("  - name: d\n    kind: custom\n    size: 3\n    links:\n" + links);
  };
  const std::string rates = ", bandwidth: 1 GB/s, latency: 1 us}\n";
  const std::string first = "      - {between: [0, 1]" + rates;
  EXPECT_TRUE(reports(bad_fabric(graph(first + "      - {between: [1, 7]" + rates)),
                      "f:9:9: dimensions[0].links[1]", "no vertex 7; they are 0 .. 2"));
  EXPECT_TRUE(
      reports(bad_fabric(graph(first)), "f:8:7: dimensions[0].links", "not connected: no way to vertex 2"));
  EXPECT_TRUE(reports(bad_fabric(graph(first + "      - {between: [1]" + rates)),
                      "f:9:19: dimensions[0].links[1].between", "two vertices"));
  EXPECT_TRUE(reports(bad_fabric(graph(first + "      - {from: 1" + rates)),
                      "f:9:9: dimensions[0].links[1].between", "from and to"));
  EXPECT_TRUE(reports(bad_fabric(graph(first + "      - {from: 1, to: x" + rates)),
                      "f:9:23: dimensions[0].links[1].to", "integer"));
  EXPECT_TRUE(
      reports(bad_fabric(graph(first + "      - {between: [1, 2], latency: 1 us, bandwidth: 0 GB/s}\n")),
              "f:9:53: dimensions[0].links[1].bandwidth", "from 1 B/s"));
  EXPECT_TRUE(reports(bad_fabric(graph(first + "      - {between: [1, 2], latency: 1 us}\n")),
                      "f:9:9: dimensions[0].links[1].bandwidth", "missing"));
}

TEST(FabricPresets, HaveTheirPublishedLinks) {
  const std::filesystem::path root = test::source_dir();
  const Catalog catalog({root});
  const auto fabric_of = [&](const char* name, std::int64_t gpus) {
    const auto loaded = load_cluster(catalog, name);
    EXPECT_TRUE(loaded.has_value()) << loaded.error().to_string();
    Problems problems;
    FabricSpec spec = loaded->fabric.instantiate(gpus, problems);
    EXPECT_TRUE(problems.empty());
    return network::Fabric(spec);
  };
  // DGX-1V: six NVLinks of 25 GB/s out of every GPU, and one 100 Gb/s adapter for two.
  const network::Fabric dgx1 = fabric_of("dgx-1v", 16);
  std::vector<double> out(16, 0), adapters(16, 0);
  for (const network::Link& l : dgx1.links()) {
    if (l.source >= 16) continue;
    (l.dimension == 0 ? out : adapters)[static_cast<std::size_t>(l.source)] += l.bandwidth.value();
  }
  EXPECT_EQ(out, std::vector<double>(16, 150e9));
  EXPECT_EQ(adapters, std::vector<double>(16, 12.5e9));
  EXPECT_EQ(dgx1.vertices(), 16 + 4 * (1 + 2));
  // A leaf of the A100 pod holds 20 nodes, one of the later ones 32; NVSwitch inside, then one rail per GPU. Packets go up
  // by any of a leaf's wires, so that those to all 20 (or 32) spine switches are one link to one vertex.
  const network::Fabric a100 = fabric_of("dgx-a100", 8 * 21);
  EXPECT_EQ(a100.vertices(), 168 + 21 + 8 * (2 + 1));
  EXPECT_EQ(a100.links().front().bandwidth.value(), 300e9);
  EXPECT_EQ(a100.links().back().bandwidth.value(), 20 * 25e9);
  const network::Fabric h100 = fabric_of("dgx-h100", 16384);
  EXPECT_EQ(h100.vertices(), 16384 + 2048 + 8 * (64 + 1));
  EXPECT_EQ(h100.links().front().bandwidth.value(), 450e9);
  EXPECT_EQ(h100.links().back().bandwidth.value(), 32 * 50e9);
  EXPECT_EQ(fabric_of("dgx-h100", 8 * 32).vertices(), 256 + 32 + 8);
}

}  // namespace
}  // namespace shardscape::yaml
