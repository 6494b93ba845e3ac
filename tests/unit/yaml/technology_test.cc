// Are technology presets those of their sources, and are files of technologies, bases and built devices read with
// located problems?
#include "sweep/yaml/specs.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sweep/technology/build_device.h"
#include "sweep/yaml/load.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

namespace fs = std::filesystem;

Catalog repository() { return Catalog({fs::path(test::source_dir())}); }

template <class T>
T loaded_well(const tl::expected<T, Diagnostics>& loaded) {
  EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().to_string());
  return loaded.value_or(T());
}

class TechnologyFiles : public test::TemporaryFolder {
 protected:
  /// The repository's presets below those of the test.
  [[nodiscard]] Catalog catalog() const { return Catalog({root_, fs::path(test::source_dir())}); }
};

// The statements of the foundry (TSMC technology pages and symposia) and of the IRDS, node over node:
// density, clock at equal power, power at equal clock. Cells in um2 from the IEDM papers that the files name.
TEST(TechnologyPresets, LogicNodesAreThoseOfTheirSources) {
  struct Row {
    const char *name, *older;
    double density, clock, power, cell;
  };
  for (const Row& row :
       {Row{"n12", "n16", 1.2, 1.10, 0.75, 0.07}, Row{"n10", "n16", 2.0, 1.15, 0.65, 0.042},
        Row{"n7", "n10", 1.6, 1.20, 0.60, 0.027}, Row{"n5", "n7", 1.8, 1.15, 0.70, 0.021},
        Row{"n3", "n5", 1.6, 1.18, 0.66, 0.021}, Row{"n2", "n3", 1.15, 1.15, 0.70, 0.0175},
        Row{"a14", "n2", 1.2, 1.15, 0.70, 0.016}, Row{"a10", "a14", 1 / 0.7, 1.10, 0.80, 0.0146}}) {
    const technology::LogicNode node = loaded_well(load_logic(repository(), row.name));
    ASSERT_NE(node.relative_to, nullptr) << row.name;
    EXPECT_EQ(node.relative_to->name, row.older);
    EXPECT_NEAR(node.step.density, row.density, 0.002) << row.name;
    EXPECT_DOUBLE_EQ(node.step.clock_at_equal_power, row.clock) << row.name;
    EXPECT_DOUBLE_EQ(node.step.power_at_equal_clock, row.power) << row.name;
    EXPECT_NEAR(node.sram_cell.value(), row.cell * 1e-12, 1e-18) << row.name;
    EXPECT_EQ(node.root().name, "n16") << row.name;
  }
}

// V100 has 21.1 billion transistors on 815 mm2, A100 54.2 on 826, H100 80 on 814 (data sheets). Chips mix
// logic with memory and interfaces, so they gain less than logic alone.
TEST(TechnologyPresets, DensityFollowsTheChipsThatWereBuilt) {
  const double v100 = 21.1 / 815, a100 = 54.2 / 826, h100 = 80.0 / 814;
  const auto n12 = loaded_well(load_logic(repository(), "n12")),
             n7 = loaded_well(load_logic(repository(), "n7")),
             n5 = loaded_well(load_logic(repository(), "n5"));
  const double to_n7 = (n7.total() / n12.total()).density, to_n5 = (n5.total() / n7.total()).density;
  EXPECT_NEAR(to_n7, 2 * 1.6 / 1.2, 1e-12);
  EXPECT_NEAR(a100 / v100, to_n7, 0.1 * to_n7);
  EXPECT_LT(h100 / a100, to_n5);
  EXPECT_GT(h100 / a100, n7.sram_cell.value() / n5.sram_cell.value());
}

// Pins times rate per pin of the JEDEC standards: bits to bytes by hand.
TEST(TechnologyPresets, MemoriesAreThoseOfTheirStandards) {
  struct Row {
    const char* name;
    double pins, gbit, gib;
  };
  for (const Row& row : {Row{"gddr6", 32, 16, 2}, Row{"lpddr5x", 64, 8.533, 16}, Row{"hbm2", 1024, 2.4, 8},
                         Row{"hbm2e", 1024, 3.2, 16}, Row{"hbm3", 1024, 6.4, 16}, Row{"hbm3e", 1024, 9.2, 24},
                         Row{"hbm4", 2048, 8, 36}}) {
    const technology::MemoryTechnology memory = loaded_well(load_memory(repository(), row.name));
    EXPECT_NEAR(memory.bandwidth_per_stack.value(), row.pins * row.gbit * 1e9 / 8, 1) << row.name;
    EXPECT_DOUBLE_EQ(memory.capacity_per_stack.value(), row.gib * 1024 * 1024 * 1024) << row.name;
    EXPECT_GT(memory.energy.value(), 1e-12) << row.name;
    EXPECT_LT(memory.energy.value(), 10e-12) << row.name;
  }
}

TEST(TechnologyPresets, NetworksAreEightLanes) {
  double lane = 100e9;
  for (const char* name : {"ndr-x8", "xdr-x8", "gdr-x8", "ldr-x8"}) {
    EXPECT_DOUBLE_EQ(loaded_well(load_network(repository(), name)).bandwidth.value(), lane) << name;
    lane *= 2;  // eight lanes of 100 Gb/s are 100 GB/s; every generation doubles
  }
}

// The floor plan and its device tell the same story, so rebuilding the A100 gives the A100.
TEST(TechnologyPresets, TheFloorPlanGivesItsOwnDeviceBack) {
  const DeviceSpec a100 = loaded_well(load_device(repository(), "a100-sxm-80gb"));
  const technology::Floorplan plan = loaded_well(load_floorplan(repository(), "ga100"));
  EXPECT_EQ(plan.device, a100.name);
  EXPECT_DOUBLE_EQ(plan.area.value() * 1e6, a100.die.area_mm2);
  EXPECT_DOUBLE_EQ(plan.power.value(), a100.power.value());
  technology::Choice choice;
  choice.power = plan.power;
  const auto built = technology::build_device(a100, plan, choice);
  ASSERT_TRUE(built.has_value());
  EXPECT_EQ(built->device.sm.count, 108);
  EXPECT_EQ(built->device.hbm.stacks, 5);
  EXPECT_NEAR(built->device.sm.clock.value(), 1.41e9, 1);
}

TEST(TechnologyPresets, WrittenInFullTheyReadBackEqual) {
  const auto parsed = [](const std::string& text, const auto& read) {
    Diagnostics diagnostics;
    const auto node = parse(text, "f", diagnostics);
    const auto spec = read(*node, diagnostics);
    EXPECT_TRUE(spec.has_value()) << diagnostics.to_string();
    return spec ? to_yaml(*spec) : std::string();
  };
  const LogicReference load_older = [&](const Node& node, const std::string&) {
    Diagnostics diagnostics;
    const auto root = read_logic(node, "", diagnostics, {});
    return root ? std::make_shared<const technology::LogicNode>(*root) : nullptr;
  };
  const std::string logic = to_yaml(loaded_well(load_logic(repository(), "n12")));
  EXPECT_EQ(parsed(logic, [&](const Node& n, Diagnostics& d) { return read_logic(n, "", d, load_older); }),
            logic);
  const std::string memory = to_yaml(loaded_well(load_memory(repository(), "hbm4")));
  EXPECT_EQ(parsed(memory, [](const Node& n, Diagnostics& d) { return read_memory(n, "", d); }), memory);
  const std::string network = to_yaml(loaded_well(load_network(repository(), "xdr-x8")));
  EXPECT_EQ(parsed(network, [](const Node& n, Diagnostics& d) { return read_network(n, "", d); }), network);
}

TEST_F(TechnologyFiles, ProblemsAreLocated) {
  const std::string file = write("hw_presets/technology/logic/x.yaml",
                                 "name: x\nrelative_to: n4\ndensity: 0\nclock_at_equal_power: 0.9\n"
                                 "power_at_equal_clock: 1.2\nsram_cell: 0.02\nvolts: 1\n")
                               .string();
  const Diagnostics logic = load_logic(catalog(), "x").error();
  EXPECT_TRUE(reports(logic, file + ":2:14: relative_to", "unknown logic node \"n4\"; did you mean"));
  EXPECT_TRUE(
      reports(logic, file + ":6:12: sram_cell", "is a bare number where a unit is due; write an area"));
  EXPECT_TRUE(reports(logic, file + ":7:1: volts", "unknown key"));

  const std::string steps =
      write("hw_presets/technology/logic/y.yaml",
            "name: y\ndensity: 0\nclock_at_equal_power: 0.9\npower_at_equal_clock: 1.2\n"
            "sram_cell: 0.02 um2\n")
          .string();
  const Diagnostics ranges = load_logic(catalog(), "y").error();
  EXPECT_TRUE(reports(ranges, steps + ":2:10: density", "must be from 1e-09 to 1e+09"));
  EXPECT_TRUE(reports(ranges, steps + ":3:23: clock_at_equal_power", "must be above 1 and at most 1000"));
  EXPECT_TRUE(reports(ranges, steps + ":4:23: power_at_equal_clock", "must be from 0.001 to below 1"));

  const std::string dram = write("hw_presets/technology/memory/z.yaml",
                                 "name: z\ncapacity_per_stack: 8 GB/s\nbandwidth_per_stack: 0 GB/s\n"
                                 "energy: 4 pJ\n")
                               .string();
  const Diagnostics memory = load_memory(catalog(), "z").error();
  EXPECT_TRUE(
      reports(memory, dram + ":2:21: capacity_per_stack", "is a bandwidth; an amount of data is due"));
  EXPECT_TRUE(reports(memory, dram + ":3:22: bandwidth_per_stack", "must be from 1 B/s"));
  EXPECT_TRUE(reports(memory, dram + ":4:9: energy", "unknown unit \"pJ\""));
  EXPECT_TRUE(reports(memory, dram + ":1:1: edge", "missing"));

  const std::string wire =
      write("hw_presets/technology/network/w.yaml", "name: w\nbandwidth: 100 GB\nenergy: -1 pJ/b\n").string();
  const Diagnostics network = load_network(catalog(), "w").error();
  EXPECT_TRUE(reports(network, wire + ":2:12: bandwidth", "is an amount of data"));
  EXPECT_TRUE(reports(network, wire + ":3:9: energy", "must be from 1e-18 J/b"));
}

TEST_F(TechnologyFiles, CirclesOfNodesEnd) {
  const auto node = [](const std::string& name, const std::string& older) {
    return "name: " + name + "\nrelative_to: " + older +
           "\ndensity: 2\nclock_at_equal_power: 1.2\npower_at_equal_clock: 0.6\nsram_cell: 0.02 um2\n";
  };
  write("hw_presets/technology/logic/a.yaml", node("a", "b"));
  const std::string b = write("hw_presets/technology/logic/b.yaml", node("b", "a")).string();
  EXPECT_TRUE(reports(load_logic(catalog(), "a").error(), b + ":2:14: relative_to", "goes in a circle"));
}

TEST_F(TechnologyFiles, ADeviceSaysWhatDiffersFromItsBase) {
  write("hw_presets/devices/first.yaml",
        "base: a100-sxm-80gb\nname: first\nsm: {count: 100}\nl2: {capacity: 30 MiB}\n");
  write("hw_presets/devices/second.yaml", "base: first\nname: second\nsm: {clock: 1 GHz}\n");
  DevicePreset expected = loaded_well(load_device(catalog(), "a100-sxm-80gb"));
  expected.name = "second";
  expected.sm.count = 100;
  expected.sm.clock = Hertz{1e9};
  expected.l2.capacity = Bytes{30 * 1024 * 1024};
  EXPECT_EQ(to_yaml(loaded_well(load_device(catalog(), "second"))), to_yaml(expected));
}

TEST_F(TechnologyFiles, AClusterSaysWhatDiffersFromItsBase) {
  write("hw_presets/clusters/ours.yaml", "base: dgx-h100\nname: ours\ndevice: h200-sxm-141gb\n");
  Cluster expected = loaded_well(load_cluster(catalog(), "dgx-h100"));
  expected.device = loaded_well(load_device(catalog(), "h200-sxm-141gb"));
  expected.fabric.fabric.name = "ours";
  EXPECT_EQ(to_yaml(loaded_well(load_cluster(catalog(), "ours"))), to_yaml(expected));
}

TEST_F(TechnologyFiles, FloorPlansMustLeaveRoom) {
  const std::string file = write("hw_presets/technology/floorplans/f.yaml",
                                 "name: f\ndevice: a100-sxm-80gb\nlogic: n7\nmemory: hbm2e\narea: 826 "
                                 "mm2\npower: 400 W\nsm_share: 0.8\n"
                                 "l2_share: 0.3\nsm_sram_share: 1.2\nl2_sram_share: 0.5\nmemory_edge: 9 mm\n"
                                 "clock: {least: 2 GHz, most: 1 GHz}\n")
                               .string();
  const Diagnostics plan = load_floorplan(catalog(), "f").error();
  EXPECT_TRUE(reports(plan, file + ":8:11: l2_share", "leaves no area for interfaces"));
  EXPECT_TRUE(reports(plan, file + ":9:16: sm_sram_share", "is a share of the area"));
  EXPECT_TRUE(reports(plan, file + ":11:14: memory_edge", "must hold one stack of hbm2e"));
}

TEST_F(TechnologyFiles, ADeviceIsBuiltInPlace) {
  write("d.yaml",
        "technology: {base: a100-sxm-80gb, logic: n5, memory: hbm3, power: 500 W, area: 826 mm2}\n");
  const DeviceSpec device = loaded_well(load_device(catalog(), "d.yaml", root_));
  EXPECT_EQ(device.name, "a100-sxm-80gb+n5+hbm3");
  EXPECT_GT(device.sm.count, 108);
  EXPECT_DOUBLE_EQ(device.hbm_peak().value(), 5 * 819.2e9);
  EXPECT_NEAR(device.power.value(), 500, 1e-6);

  const std::string bad = write("bad.yaml",
                                "technology:\n  base: a100-sxm-80gb\n  power: 60 W\n  areas: 1 mm2\n"
                                "sm: {count: 4}\n")
                              .string();
  const Diagnostics problems = load_device(catalog(), "bad.yaml", root_).error();
  EXPECT_TRUE(reports(problems, bad + ":4:3: technology.areas", "unknown key; did you mean \"area\""));
  EXPECT_TRUE(reports(problems, bad + ":5:1: sm", "unknown key"));
  const std::string small =
      write("small.yaml", "technology:\n  base: a100-sxm-80gb\n  power: 60 W\n").string();
  EXPECT_TRUE(reports(load_device(catalog(), "small.yaml", root_).error(), small + ":3:10: technology.power",
                      "is too small: 64 W of memory"));
  const std::string other = write("other.yaml", "technology:\n  base: h100-sxm-80gb\n  logic: n3\n").string();
  EXPECT_TRUE(
      reports(load_device(catalog(), "other.yaml", root_).error(), other + ":2:9: technology.base",
              "device h100-sxm-80gb has no floor plan to scale it by; devices with one: a100-sxm-80gb"));
}

}  // namespace
}  // namespace shardscape::yaml
