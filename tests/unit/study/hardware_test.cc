// Do the axes beside the plans come out as written: hardware, variants, technologies, placements?
#include <gtest/gtest.h>

#include <filesystem>

#include "sweep/study/placement_axis.h"
#include "tests/support/paths.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

namespace fs = std::filesystem;

TEST(Hardware, ProductOfSystems) {
  const Study study =
      good(training("hardware:\n"
                    "  device.hbm.bandwidth: [2 TB/s, 4 TB/s, 8 TB/s]\n"
                    "  fabric.rail-a.bandwidth: [\"400 Gb/s\", 25 GB/s]\n"
                    "  stack.attention: [naive, flash]\n"
                    "  stack.communication.pipeline_async: [true, false]\n"
                    "  device.sm.tensor_flops_per_clock.fp8: 2048\n"));
  ASSERT_EQ(study.hardware.size(), 5U);
  EXPECT_EQ(study.hardware[0].column, "device_hbm_bandwidth_bytes_per_s");
  EXPECT_EQ(study.hardware[0].unit, "byte s-1");
  EXPECT_EQ(study.hardware[0].values, (std::vector<double>{2e12, 4e12, 8e12}));
  EXPECT_EQ(study.hardware[0].labels[1], "4 TB/s");
  EXPECT_EQ(study.hardware[1].column, "fabric_rail_a_bandwidth_bytes_per_s");
  EXPECT_EQ(study.hardware[1].values, (std::vector<double>{50e9, 25e9}));
  EXPECT_EQ(study.hardware[2].column, "stack_attention");
  EXPECT_EQ(study.hardware[2].unit, "1");
  EXPECT_EQ(study.hardware[2].choices,
            (std::vector<std::string>{"naive", "flash", "flash_alibi", "flash3", "cudnn", "trtllm"}));
  EXPECT_EQ(study.hardware[2].values, (std::vector<double>{0, 1}));
  EXPECT_EQ(study.hardware[3].values, (std::vector<double>{1, 0}));
  ASSERT_EQ(study.systems.size(), 24U);
  for (std::size_t i = 0; i < study.systems.size(); ++i) {
    const System& system = study.systems[i];
    EXPECT_EQ(system.device.hbm_peak().value(), study.hardware[0].values[i / 8]);
    EXPECT_EQ(system.fabric.dimensions[1].bandwidth.value(), study.hardware[1].values[i / 4 % 2]);
    EXPECT_EQ(system.stack.attention, i / 2 % 2 == 0 ? AttentionKernel::naive : AttentionKernel::flash);
    EXPECT_EQ(system.stack.communication.pipeline_async, i % 2 == 0);
    EXPECT_TRUE(system.device.supports(Precision::fp8));
    EXPECT_EQ(system.device.hbm.capacity_per_stack.value(), 16.0 * (1 << 30));
    EXPECT_EQ(system.fabric.dimensions[0].bandwidth.value(), 300e9);
  }
}

TEST(Hardware, StacksAndTotalsCombine) {
  const Study study = good(training("hardware: {device.hbm.stacks: [4, 8], device.hbm.bandwidth: 4 TB/s}\n"));
  ASSERT_EQ(study.systems.size(), 2U);
  EXPECT_EQ(study.systems[1].device.hbm.bandwidth_per_stack.value(), 0.5e12);
  EXPECT_EQ(study.systems[1].device.memory_capacity().value(), 128.0 * (1 << 30));
}

TEST(Hardware, ProblemsStandAtTheStudysOwnLine) {
  const auto with = [](const std::string& hardware) {
    return bad(training("hardware:\n  " + hardware + "\n"));
  };
  EXPECT_TRUE(reports(with("device.hbm.bandwith: 2 TB/s"), "s.yaml:32:3: hardware.device.hbm.bandwith",
                      "did you mean \"device.hbm.bandwidth\"?"));
  EXPECT_TRUE(reports(with("fabric.rail.latency: 2 us"), "s.yaml:32:3: hardware.fabric.rail.latency",
                      "did you mean \"fabric.rail-a.latency\"?"));
  EXPECT_TRUE(reports(with("device.hbm.bandwidth: [2 TB/s, 3]"),
                      "s.yaml:32:34: hardware.device.hbm.bandwidth", "bare number"));
  EXPECT_TRUE(reports(with("device.hbm.bandwidth: 3 GB"), "s.yaml:32:25: hardware.device.hbm.bandwidth",
                      "an amount of data"));
  EXPECT_TRUE(reports(with("device.hbm.stacks: [4, 0]"), "s.yaml:32:26: hardware.device.hbm.stacks",
                      "must be from 1 to 1e+06, not 0"));
  EXPECT_TRUE(reports(with("fabric.rail-a.bandwidth: 0 GB/s"),
                      "s.yaml:32:28: hardware.fabric.rail-a.bandwidth",
                      "must be from 1 B/s to 1e+18 B/s, not 0 B/s"));
  EXPECT_TRUE(reports(with("stack.attention: flush"), "s.yaml:32:20: hardware.stack.attention", "\"flash\""));
  EXPECT_TRUE(reports(with("device.die.area_mm2: 800"), "s.yaml:32:3: hardware.device.die.area_mm2",
                      "has no effect"));
  EXPECT_TRUE(reports(with("device.name: x"), "s.yaml:32:3: hardware.device.name", "has no effect"));
  EXPECT_TRUE(reports(with("stack.memory.fragmentation: 0.5"),
                      "s.yaml:32:31: hardware.stack.memory.fragmentation", ""));
  EXPECT_TRUE(
      reports(with("device.hbm.bandwidth: {a: 1}"), "s.yaml:32:25: hardware.device.hbm.bandwidth", "a map"));
  EXPECT_TRUE(reports(with("7"), "s.yaml:32:3: hardware", "must be a map"));
}

// What-ifs obey the ranges of files: a size of 0 stood for `fill` and divided by zero, a share of 1e-320 has
// no inverse.
TEST(Hardware, RangesHoldForAxesAndVariants) {
  const auto with = [](const std::string& hardware) {
    return bad(training("hardware:\n  " + hardware + "\n"));
  };
  for (const char* size : {"0", "-8", "2000000000"}) {
    EXPECT_TRUE(reports(with("fabric.nvswitch.size: [" + std::string(size) + "]"),
                        "s.yaml:32:26: hardware.fabric.nvswitch.size", "from 1 to 1073741824"));
    EXPECT_TRUE(reports(with("v: {a: {fabric.nvswitch.size: " + std::string(size) + "}}"),
                        "s.yaml:32:33: hardware.v.a.fabric.nvswitch.size", "from 1 to 1073741824"));
  }
  EXPECT_TRUE(reports(with("device.sustained.hbm: [1e-320]"), "s.yaml:32:26: hardware.device.sustained.hbm",
                      "must be from 1e-06 to 1, not 1e-320"));
  EXPECT_TRUE(reports(with("stack.communication.call: [1e300 s]"),
                      "s.yaml:32:30: hardware.stack.communication.call", "must be from 1e-15 s to 1e+09 s"));
  EXPECT_TRUE(reports(with("fabric.rail-a.latency: [1e10 s]"), "s.yaml:32:27: hardware.fabric.rail-a.latency",
                      "must be from 1e-15 s to 1e+09 s"));
}

TEST(Hardware, IdenticalSystemsAndConflictsAreProblems) {
  EXPECT_TRUE(reports(bad(training("hardware: {device.hbm.bandwidth: [2 TB/s, 2000 GB/s]}\n")),
                      "s.yaml:31:43: hardware.device.hbm.bandwidth",
                      "2000 GB/s gives the same system as 2 TB/s"));
  EXPECT_TRUE(reports(bad(training("hardware: {fabric.nvswitch.latency: [1 us, 1000 ns]}\n")),
                      "s.yaml:31:44: hardware.fabric.nvswitch.latency", "same system"));
  EXPECT_TRUE(reports(
      bad(training("hardware:\n  device.hbm.bandwidth: 2 TB/s\n  device.hbm.bandwidth_per_stack: 1 TB/s\n")),
      "s.yaml:33:3: hardware.device.hbm.bandwidth_per_stack", "same part"));
  EXPECT_TRUE(reports(bad(training("hardware:\n  device.l2.capacity: 2 MiB\n  device.l2.capacity: 3 MiB\n")),
                      "s.yaml:33:3: hardware.device.l2.capacity", "duplicate key"));
}

TEST(HardwareVariants, MoveSettingsAndPartsTogether) {
  const Study study =
      good(training(std::string("hardware:\n"
                                "  variant:\n"
                                "    base: {}\n"
                                "    A: {device.l2.capacity: 10 MiB, fabric.nvswitch.size: 8}\n"
                                "    B: {fabric.nvl.bandwidth: 1.8 TB/s, cluster: ") +
                    kOther + "}\n  stack.attention: [naive, flash]\n"));
  ASSERT_EQ(study.hardware.size(), 2U);
  const HardwareAxis& axis = study.hardware[0];
  EXPECT_EQ(axis.path, "variant");
  EXPECT_EQ(axis.column, "variant");
  EXPECT_EQ(axis.unit, "1");
  EXPECT_EQ(axis.choices, (std::vector<std::string>{"base", "A", "B"}));
  EXPECT_EQ(axis.labels, axis.choices);
  EXPECT_EQ(axis.values, (std::vector<double>{0, 1, 2}));
  ASSERT_EQ(study.systems.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const System& system = study.systems[i];
    const std::size_t variant = i / 2;
    EXPECT_EQ(system.stack.attention, i % 2 == 0 ? AttentionKernel::naive : AttentionKernel::flash);
    EXPECT_EQ(system.device.name, variant == 2 ? "gpu2" : "gpu");
    EXPECT_EQ(system.device.l2.capacity.value(), (variant == 0   ? 4.0
                                                  : variant == 1 ? 10.0
                                                                 : 8.0) *
                                                     (1 << 20));
    EXPECT_EQ(system.fabric.size(), 16);
    EXPECT_EQ(system.fabric.dimensions[0].shape[0], variant == 0 ? 4 : 8);
    EXPECT_EQ(system.fabric.dimensions[0].bandwidth.value(), variant == 2 ? 1.8e12 : 300e9);
  }
}

TEST(HardwareVariants, WholePartsAreAnAxisUnderTheirNames) {
  const Study study = good(training(std::string("hardware: {cluster: [") + kOther +
                                    "], stack: [{name: a, communication: {bucket: 1 MB}}, "
                                    "{name: b, communication: {bucket: 1 MB}, attention: naive}], "
                                    "device.hbm.bandwidth: [1 TB/s, 2 TB/s]}\n"));
  EXPECT_EQ(study.hardware[0].labels, (std::vector<std::string>{"other"}));
  EXPECT_EQ(study.hardware[1].column, "stack");
  EXPECT_EQ(study.hardware[1].choices, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(study.systems.size(), 4U);
  EXPECT_EQ(study.systems[2].stack.name, "b");
  EXPECT_EQ(study.systems[3].device.name, "gpu2");
  EXPECT_EQ(study.systems[3].device.hbm_peak().value(), 2e12);
  EXPECT_EQ(study.systems[3].device.memory_capacity().value(), 128.0 * (1 << 30));
}

TEST(HardwareVariants, ProblemsAreLocated) {
  const auto with = [](const std::string& hardware) {
    return bad(training("hardware:\n  " + hardware + "\n"));
  };
  EXPECT_TRUE(reports(with("variant: {A: {device.l2.capacty: 1 MiB}}"),
                      "s.yaml:32:17: hardware.variant.A.device.l2.capacty",
                      "did you mean \"device.l2.capacity\"?"));
  EXPECT_TRUE(reports(with("variant: {A: {device.l2.capacity: 3}}"),
                      "s.yaml:32:37: hardware.variant.A.device.l2.capacity", "bare number"));
  EXPECT_TRUE(reports(with("variant: {A: {device.hbm.stacks: 0}}"),
                      "s.yaml:32:36: hardware.variant.A.device.hbm.stacks",
                      "must be from 1 to 1e+06, not 0"));
  EXPECT_TRUE(reports(with("variant: {A: 7}"), "s.yaml:32:16: hardware.variant.A", "must be a map"));
  EXPECT_TRUE(reports(with("variant: {base: {}, A: {}}"), "s.yaml:32:23: hardware.variant.A",
                      "A gives the same system as base"));
  EXPECT_TRUE(reports(with("variant: {A: {}, A: {}}"), "s.yaml:32:20: hardware.variant.A", "duplicate"));
  EXPECT_TRUE(reports(with("variant: {}"), "s.yaml:32:12: hardware.variant", "empty"));
  EXPECT_TRUE(reports(with("My-Variant: {A: {}}"), "s.yaml:32:3: hardware.My-Variant", "names a column"));
  EXPECT_TRUE(reports(with("variant: {A: {stack.serving.token_budget: 8}}"),
                      "s.yaml:32:17: hardware.variant.A.stack.serving.token_budget", "training"));
  EXPECT_TRUE(reports(with("variant: {A: {fabric.nvswitch.size: 3}}"),
                      "s.yaml:32:39: hardware.variant.A.fabric.nvswitch.size", "grows in units of 3"));
  EXPECT_TRUE(
      reports(with("variant: {A: {device: nowhere}}"), "s.yaml:32:25: hardware.variant.A.device", "nowhere"));
  EXPECT_TRUE(reports(with("variant: {A: {device.l2.capacity: 9 MiB}}\n  device.l2.capacity: 8 MiB"),
                      "s.yaml:33:3: hardware.device.l2.capacity", "is set by variant, too"));
  StudyOptions options;
  options.fixed_columns = {"status"};
  EXPECT_TRUE(reports(bad(training("hardware: {status: {A: {}}}\n"), options),
                      "s.yaml:31:12: hardware.status", "column"));
}

TEST(HardwareVariants, FaultsNeedTheSameLinksEverywhere) {
  const std::string faults = "faults: {kind: soft_link, samples: 2, derate: 0.5}\n";
  EXPECT_EQ(good(training("hardware: {variant: {a: {fabric.nvswitch.bandwidth: 1 GB/s}}}\n" + faults))
                .systems.size(),
            1U);
  EXPECT_TRUE(reports(bad(training("hardware: {variant: {a: {fabric.nvswitch.size: 8}}}\n" + faults)),
                      "s.yaml:32:9: faults", "same links"));
}

// A technology rebuilds the device, a network also sets the links into the scale-out dimension; settings by
// path go on top, and a variant may name technologies too.
TEST(HardwareTechnology, RebuildsTheDeviceAndTheNetwork) {
  const yaml::Catalog catalog({fs::path(test::source_dir())});
  const std::string head =
      "model: llama2-7b\ncluster: dgx-a100\ngpus: 16\nstack: megatron-lm\n" + std::string(kTraining);
  const auto study = parse_study(head +
                                     "hardware:\n"
                                     "  technology.logic: [n7, n5]\n"
                                     "  technology.network: [ndr-x8, xdr-x8]\n"
                                     "  technology.power: 500 W\n"
                                     "  device.l2.capacity: 64 MiB\n",
                                 "s.yaml", {}, catalog);
  ASSERT_TRUE(study.has_value()) << study.error().to_string();
  EXPECT_EQ(study->hardware[0].column, "technology_logic");
  EXPECT_EQ(study->hardware[0].choices, (std::vector<std::string>{"n7", "n5"}));
  EXPECT_EQ(study->hardware[2].column, "technology_power_w");
  EXPECT_EQ(study->hardware[2].values, std::vector<double>{500});
  ASSERT_EQ(study->systems.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const System& system = study->systems[i];
    EXPECT_EQ(system.device.name,
              std::string("a100-sxm-80gb+") + (i < 2 ? "n7" : "n5") + (i % 2 == 0 ? "+ndr-x8" : "+xdr-x8"));
    EXPECT_EQ(system.device.sm.count > 108, i >= 2);
    EXPECT_EQ(system.device.l2.capacity.value(), 64.0 * (1 << 20));
    EXPECT_NEAR(system.device.power.value(), 500, 1e-6);
    EXPECT_EQ(system.fabric.dimensions[0].bandwidth.value(), 300e9);
    EXPECT_EQ(system.fabric.dimensions[1].bandwidth.value(), i % 2 == 0 ? 100e9 : 200e9);
  }
  const Study back = good(study->resolved_yaml);  // the resolved study needs no presets
  EXPECT_EQ(back.resolved_yaml, study->resolved_yaml);
  EXPECT_EQ(back.systems[3].device.sm.clock.value(), study->systems[3].device.sm.clock.value());

  const auto variants = parse_study(head +
                                        "hardware:\n  built:\n    now: {}\n"
                                        "    next: {technology.logic: n5, technology.memory: hbm3}\n",
                                    "s.yaml", {}, catalog);
  ASSERT_TRUE(variants.has_value()) << variants.error().to_string();
  EXPECT_EQ(variants->systems[0].device.name, "a100-sxm-80gb");
  EXPECT_EQ(variants->systems[1].device.name, "a100-sxm-80gb+n5+hbm3");
}

TEST(Placement, IsTheFastestAxis) {
  const Study study =
      good(training("hardware: {device.l2.capacity: [5 MiB, 6 MiB]}\nplacement: [optimised, plain]\n"));
  ASSERT_EQ(study.hardware.size(), 2U);
  EXPECT_EQ(study.hardware[1].column, "placement");
  EXPECT_EQ(study.hardware[1].choices, (std::vector<std::string>{"plain", "optimised"}));
  EXPECT_EQ(study.hardware[1].values, (std::vector<double>{1, 0}));
  ASSERT_EQ(study.systems.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(study.systems[i].device.l2.capacity.value(), (i < 2 ? 5.0 : 6.0) * (1 << 20));
    EXPECT_EQ(placement_of(study, i), i % 2 == 0 ? PlacementChoice::optimised : PlacementChoice::plain);
  }
  EXPECT_EQ(placement_of(good(training("")), 0), PlacementChoice::plain);
}

TEST(Placement, ProblemsAreLocated) {
  EXPECT_TRUE(reports(bad(training("placement: optimized\n")), "s.yaml:31:12: placement", "\"optimised\""));
  EXPECT_TRUE(reports(bad(training("placement: [plain, plain]\n")), "s.yaml:31:20: placement", "twice"));
  EXPECT_TRUE(reports(bad(training("hardware: {placement: {a: {}}}\n")), "s.yaml:31:12: hardware.placement",
                      "column"));
}

TEST(Placement, HasNoPlaceForPools) {
  const std::string pools = "space: {prefill_gpus: [0, 8]}\n";
  const std::string why = "a pool that prefills";
  EXPECT_TRUE(
      reports(bad(inference(pools + "placement: [plain, optimised]\n")), "s.yaml:32:12: placement", why));
  EXPECT_EQ(good(inference(pools + "placement: plain\n")).systems.size(), 1U);
  EXPECT_EQ(good(inference("placement: [plain, optimised]\n")).systems.size(), 2U);
}

TEST(HardwareVariants, SetKeepsTheNamedOnes) {
  const std::string text = training(
      "hardware: {variant: {base: {}, A: {device.l2.capacity: 5 MiB}, B: {device.l2.capacity: 6 MiB}}}\n");
  StudyOptions options;
  options.overrides = {"hardware.variant=[B, base]"};
  EXPECT_EQ(good(text, options).hardware[0].labels, (std::vector<std::string>{"B", "base"}));
  options.overrides = {"hardware.variant=A"};
  EXPECT_EQ(good(text, options).systems[0].device.l2.capacity.value(), 5.0 * (1 << 20));
  options.overrides = {"hardware.variant=C"};
  EXPECT_TRUE(reports(bad(text, options), "--set hardware.variant=C: hardware.variant", "unknown variant"));
}

}  // namespace
}  // namespace shardscape::sweep
