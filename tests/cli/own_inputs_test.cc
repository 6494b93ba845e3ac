// Does the program say what it makes of models, devices and clusters that users bring along?
#include <cmath>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kDevice =
    "name: mine\n"
    "sm: {count: 132, clock: 1.83 GHz, tensor_flops_per_clock: {bf16: 4096}, vector_flops_per_clock: 256,\n"
    "     registers: 256 KiB, sram: 228 KiB, sram_bytes_per_clock: 128}\n"
    "l2: {capacity: 50 MiB, bytes_per_clock: 5120}\n"
    "hbm: {stacks: 5, capacity_per_stack: 16 GiB, bandwidth: 3350 GB/s}\n"
    "kernel_latency: 3 us\n";
constexpr const char* kShares =
    "sustained: {tensor: 0.62, hbm: 0.8, l2: 0.65}\n"
    "attention: {forward: 0.35, backward: 0.3}\n";

/// What products of the H100 draw of its power, and the kernels for them.
constexpr const char* kEnergies =
    "architecture: hopper\n"
    "energy: {idle_watts: 100, flop_pj: 0.872, fp8: 0.5, fp4: 0.25, byte_pj: 28, burst_watts: 949}\n"
    "products: {latency: 2.6 us, step: 96.7 ns, reduction: 2.15 us, output: 1.03, port: 64}\n"
    "power: 700 W\n";

std::string cluster_of(const std::string& device) {
  return "name: pod\ndevice: " + device +
         "\ndimensions:\n"
         "  - {name: nvlink, kind: switch, size: 8, bandwidth: 450 GB/s, latency: 1 us}\n";
}

std::string study_of(const std::string& model, const std::string& cluster) {
  return "model: " + model + "\ncluster: " + cluster +
         "\nstack: megatron-lm\n"
         "workload: {phase: training, sequence_length: 4096, global_batch: 8, precision: bf16}\n"
         "space: {tensor_parallel: [8], data_parallel: [1]}\n";
}

class OwnInputsTest : public ProgramTest {
 protected:
  double step_time(const std::string& study, const std::string& set = "gpus=8") {
    const Finished finished = run({"simulate", study, "--json", "--set", set});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).value("step_time_s", std::nan(""));
  }
};

TEST_F(OwnInputsTest, SharesOfPeaksThatADeviceLeavesOutAreNamed) {
  write("mine.yaml", kDevice);
  write("pod.yaml", cluster_of("mine.yaml"));
  write("study.yaml", study_of("llama3.1-8b", "pod.yaml"));
  const std::string warning =
      "warning: mine.yaml:1:1: device mine does not say sustained.tensor, sustained.hbm, sustained.l2, "
      "attention.forward, attention.backward: taken as 1, 100 % of its peaks, which kernels don't reach; the "
      "devices that come with the program have sustained.tensor 0.622 to 0.87, ";
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"check", "study.yaml"}, {"simulate", "study.yaml"}, {"sweep", "study.yaml", "-o", "out.h5"}}) {
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(contains(finished.err, warning)) << finished.err;
  }
  const auto assumptions = [&](const char* file) {
    return results::ResultReader(work() / file).attributes().at("assumptions");
  };
  EXPECT_TRUE(contains(assumptions("out.h5"), warning.substr(9))) << assumptions("out.h5");
  const Finished shown = run({"top", "out.h5"});
  EXPECT_TRUE(contains(shown.out, "assumed: " + warning.substr(9))) << shown.out;
  ASSERT_EQ(run({"report", "out.h5", "-o", "out.html"}).code, 0);
  EXPECT_TRUE(contains(read_file(work() / "out.html"), "does not say sustained.tensor"));

  // Values that the device states, or that an axis sets, are not warned about.
  write("mine.yaml", std::string(kDevice) + kShares);
  const Finished whole = run({"sweep", "study.yaml", "-o", "whole.h5"});
  EXPECT_FALSE(contains(whole.err, "warning")) << whole.err;
  EXPECT_FALSE(contains(assumptions("whole.h5"), "does not say"));
  EXPECT_TRUE(assumptions("whole.h5").starts_with("gradients of weights ")) << assumptions("whole.h5");
  write("mine.yaml", std::string(kDevice) + "sustained: {tensor: 0.62, hbm: 0.8}\n");
  const Finished part = run({"check", "study.yaml", "--set",
                             "hardware={device.sustained.l2: [0.6, 0.7], device.attention.forward: 0.4}"});
  EXPECT_TRUE(contains(part.err, "does not say attention.backward:")) << part.err;
}

// A quarter, as the warning has it, in `simulate` of the study and of its result file.
TEST_F(OwnInputsTest, OfADeviceByItsDataSheetTheExpectedErrorIsThatOfTheWarning) {
  write("mine.yaml",
        "name: mine\npeak: {bf16: 990 TFLOP/s}\nmemory: 80 GB\nbandwidth: 3.3 TB/s\nlinks: 450 GB/s\n");
  write("pod.yaml", cluster_of("mine.yaml"));
  write("study.yaml", study_of("llama3.1-8b", "pod.yaml"));
  const auto error = [&](const char* from) {
    const Finished finished = run({"simulate", from, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).at("expected_error").get<double>();
  };
  EXPECT_GT(error("study.yaml"), 0.25);
  EXPECT_LT(error("study.yaml"), 0.35);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
  EXPECT_EQ(error("out.h5"), error("study.yaml"));
}

TEST_F(OwnInputsTest, ADeviceWithItsSharesIsThePreset) {
  // The H100's own figures written out: the step of dgx-h100's device, and clearly more than without shares.
  write("pod.yaml", cluster_of("mine.yaml"));
  write("preset.yaml", cluster_of("h100-sxm-80gb"));
  write("study.yaml", study_of("llama3.1-8b", "pod.yaml"));
  write("reference.yaml", study_of("llama3.1-8b", "preset.yaml"));
  write("mine.yaml", kDevice);
  const double bare = step_time("study.yaml");
  write("mine.yaml", std::string(kDevice) + kShares);
  EXPECT_GT(step_time("study.yaml"), 1.15 * bare);
  const std::string finer =
      "hardware={device.sm.tensor_efficiency: 0.978, device.sm.cluster: 2, device.sm.fragment.n: 256, "
      "device.sm.fragment.per_cta: 1}";
  write("mine.yaml", std::string(kDevice) + kShares + kEnergies);
  EXPECT_DOUBLE_EQ(step_time("study.yaml", finer), step_time("reference.yaml"));
}

TEST_F(OwnInputsTest, PresetsShowsFilesWithTheirDefaults) {
  write("mine.yaml", kDevice);
  write("pod.yaml", cluster_of("mine.yaml"));
  write("study.yaml", study_of("llama3.1-8b", "pod.yaml"));
  write("config.json",
        R"({"model_type": "gpt_neox", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 256, "vocab_size": 10})");
  const auto shown = [&](const std::string& file, const std::string& kind, const std::string& part) {
    const Finished finished = run({"presets", file});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(finished.out.starts_with("# " + kind + ", " + file + "\n")) << finished.out;
    EXPECT_TRUE(contains(finished.out, part)) << finished.out;
    return finished.out;
  };
  const std::string device = shown("mine.yaml", "device", "\n  load_latency_clocks: 800\n");
  EXPECT_TRUE(contains(device, "sustained:\n  tensor: 1\n  hbm: 1\n")) << device;
  shown("pod.yaml", "cluster", "\n    load_latency_clocks: 800\n");
  shown("config.json", "model", "\nparallel_residual: true\n");
  const Finished study = run({"presets", "study.yaml"});
  EXPECT_EQ(study.code, 2);
  EXPECT_TRUE(contains(study.err, "study.yaml: is a study; 'shardscape check study.yaml'")) << study.err;
  const Finished absent = run({"presets", "absent.yaml"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_TRUE(contains(absent.err, "no such file: absent.yaml")) << absent.err;
  write("odd.yaml", "colour: green\n");
  const Finished odd = run({"presets", "odd.yaml"});
  EXPECT_EQ(odd.code, 2);
  EXPECT_TRUE(contains(odd.err, "what it describes is not clear")) << odd.err;
  // Every kind of preset is recognised by its own file.
  for (const auto& [folder, name] : std::vector<std::pair<std::string, std::string>>{
           {"models", "model"},
           {"hw_presets/devices", "device"},
           {"hw_presets/clusters", "cluster"},
           {"hw_presets/stacks", "stack"},
           {"hw_presets/technology/logic", "logic node"},
           {"hw_presets/technology/memory", "memory technology"},
           {"hw_presets/technology/network", "network technology"},
           {"hw_presets/technology/floorplans", "floor plan"}}) {
    for (const auto& entry : fs::directory_iterator(fs::path(test::source_dir()) / folder)) {
      if (entry.path().extension() == ".yaml") shown(entry.path().string(), name, "name: ");
    }
  }
}

// Examples name them by their path in the project, which an installation does not have. A file of that name comes
// first.
TEST_F(OwnInputsTest, StudiesThatComeWithTheProgramAreFoundAnywhere) {
  const auto checked = [&](const char* file) {
    const std::string text = run({"check", file}).out;
    return text.substr(0, text.find("a sweep takes about"));
  };
  const std::string by_name = checked("llama3.1-70b-64xa100");
  EXPECT_TRUE(contains(by_name, "5,103")) << by_name;
  for (const char* file : {"llama3.1-70b-64xa100.yaml", "sweep/studies/llama3.1-70b-64xa100.yaml",
                           "./sweep/studies/llama3.1-70b-64xa100.yaml", "./llama3.1-70b-64xa100"})
    EXPECT_EQ(checked(file), by_name) << file;
  EXPECT_EQ(run({"check", "studies/llama3.1-70b-64xa100.yaml"}).code, 2);
  EXPECT_EQ(run({"check", "llama3.1-70b-64xa1000"}).code, 2);
  write("llama3.1-70b-64xa100", kSmallStudy);
  EXPECT_FALSE(contains(checked("llama3.1-70b-64xa100"), "5,103"));
}

TEST_F(OwnInputsTest, AStudyInPlaceOfResultsIsSaidToBeOne) {
  write("study.yaml", kSmallStudy);
  write("study.yml", kSmallStudy);
  for (const std::string file : {"study.yaml", "study.yml"}) {
    for (const std::vector<std::string>& words :
         std::vector<std::vector<std::string>>{{"top", file},
                                               {"sensitivity", file},
                                               {"export", file, "--csv", "-"},
                                               {"verify", file},
                                               {"merge", file, "-o", "whole.h5"},
                                               {"diff", file, file},
                                               {"report", file, "-o", "out.html"}}) {
      const Finished finished = run(words);
      EXPECT_EQ(finished.code, 2) << words.front() << finished.err;
      EXPECT_TRUE(contains(finished.err,
                           file + ": is a study, not what came of one: shardscape sweep " + file + " -o "))
          << words.front() << finished.err;
    }
  }
}

TEST_F(OwnInputsTest, MessagesSayWhatToPassInstead) {
  write("pod.yaml", cluster_of("[h100-sxm-80gb, a100-sxm-80gb]"));
  write("mixed.yaml", study_of("llama3.1-8b", "pod.yaml"));
  const Finished mixed = run({"check", "mixed.yaml"});
  EXPECT_EQ(mixed.code, 2);
  EXPECT_TRUE(contains(mixed.err,
                       "pod.yaml:2:9: device: a cluster has devices of one kind; clusters that mix kinds are "
                       "not modelled"))
      << mixed.err;
  EXPECT_TRUE(contains(mixed.err, "hardware: {device: [...]}")) << mixed.err;
  write("hub.yaml", study_of("nobody/Llama-3.1-8B", "dgx-h100"));
  const Finished hub = run({"check", "hub.yaml"});
  EXPECT_EQ(hub.code, 2);
  EXPECT_TRUE(contains(hub.err, "hub.yaml:1:8: model: no such file: nobody/Llama-3.1-8B")) << hub.err;
  EXPECT_TRUE(contains(hub.err, "names of a hub are not fetched")) << hub.err;
  EXPECT_TRUE(contains(hub.err, "or take llama3.1-8b")) << hub.err;
}

TEST_F(OwnInputsTest, ModelFilesMayRestOnOthers) {
  write("small.yaml", "base: llama3.1-8b\nlayers: 16\n");
  write("smaller.yaml", "base: small.yaml\nhidden: 2048\nhead_dim: 64\n");
  write("by_file.yaml", study_of("small.yaml", "dgx-h100") + "gpus: 8\n");
  write("inline.yaml", study_of("{base: llama3.1-8b, layers: 16}", "dgx-h100") + "gpus: 8\n");
  EXPECT_EQ(step_time("by_file.yaml"), step_time("inline.yaml"));
  const std::string shown = run({"presets", "./smaller.yaml"}).out;
  EXPECT_TRUE(contains(shown, "layers: 16") && contains(shown, "hidden: 2048")) << shown;
  write("a.yaml", "base: b.yaml\nlayers: 16\n");
  write("b.yaml", "base: a.yaml\nlayers: 17\n");
  const Finished circle = run({"presets", "./a.yaml"});
  EXPECT_EQ(circle.code, 2);
  EXPECT_TRUE(contains(circle.err, "goes in a circle")) << circle.err;
  for (int i = 0; i < 70; ++i)
    write("m" + std::to_string(i) + ".yaml", "base: m" + std::to_string(i + 1) + ".yaml\nlayers: 16\n");
  EXPECT_TRUE(contains(run({"presets", "./m0.yaml"}).err, "of a chain in which each rests on the next"));
}

// Links of a data sheet are the scale-up network's where the cluster leaves that open; elsewhere they are said to be
// idle.
TEST_F(OwnInputsTest, LinksOfADataSheetCountOrAreSaidNotTo) {
  const std::string sheet = "\npeak: {bf16: 990 TFLOP/s}\nmemory: 192 GB\nbandwidth: 5.3 TB/s\nlinks: ";
  std::string open = cluster_of("slow.yaml");
  open.erase(open.find(" bandwidth: 450 GB/s,"), 21);
  write("slow.yaml", "name: mine" + sheet + "100 GB/s\n");
  write("fast.yaml", "name: quick" + sheet + "2 TB/s\n");
  write("open_slow.yaml", open);
  std::string other = open;
  other.replace(other.find("slow.yaml"), 9, "fast.yaml");
  write("open_fast.yaml", other.replace(other.find("pod"), 3, "rack"));
  std::string stated = cluster_of("slow.yaml");
  write("stated.yaml", stated.replace(stated.find("450 GB/s"), 8, "100 GB/s"));
  for (const char* const cluster : {"open_slow", "open_fast", "stated"})
    write(std::string(cluster) + "_study.yaml", study_of("llama3.1-8b", std::string(cluster) + ".yaml"));
  EXPECT_EQ(step_time("open_slow_study.yaml"), step_time("stated_study.yaml"));
  EXPECT_LT(step_time("open_fast_study.yaml"), 0.8 * step_time("open_slow_study.yaml"));
  write("idle.yaml", study_of("llama3.1-8b", "{base: dgx-h100, device: fast.yaml}") + "gpus: 8\n");
  EXPECT_TRUE(contains(run({"check", "idle.yaml"}).err, "its links (2 TB/s) have no effect"));
  EXPECT_FALSE(contains(run({"check", "open_fast_study.yaml"}).err, "have no effect"));

  // Another device in the same cluster would leave its links behind; a cluster of its own takes them along.
  const auto with = [&](const char* study, const std::string& hardware) {
    return run({"check", study, "--set", "gpus=8", "--set", "hardware={" + hardware + "}"});
  };
  const Finished behind = with("open_slow_study.yaml", "device: [slow.yaml, fast.yaml]");
  EXPECT_EQ(behind.code, 2);
  EXPECT_TRUE(contains(behind.err,
                       "hardware: device quick has links of 2 TB/s, but cluster pod states no bandwidth and "
                       "keeps that of its own device's, 100 GB/s: state it in the cluster"))
      << behind.err;
  write("bare.yaml", "name: bare" + sheet.substr(0, sheet.find("\nlinks")) + '\n');
  const Finished none = with("open_slow_study.yaml", "device: [slow.yaml, bare.yaml]");
  EXPECT_TRUE(contains(none.err, "device bare states no links, but cluster pod states no bandwidth"))
      << none.err;
  // A cluster of the same name that states the same bandwidth is none of those whose links count.
  write("stated_fast.yaml", stated.replace(stated.find("slow.yaml"), 9, "fast.yaml"));
  const Finished same_name = with("open_slow_study.yaml", "cluster: [stated_fast.yaml]");
  EXPECT_EQ(same_name.code, 0) << same_name.err;
  EXPECT_TRUE(contains(same_name.err, "its links (2 TB/s) have no effect")) << same_name.err;
  for (const char* const hardware :
       {"cluster: [open_slow.yaml, open_fast.yaml]", "device.hbm.bandwidth: [4 TB/s, 5 TB/s]",
        "variant: {a: {device: fast.yaml, fabric.nvlink.bandwidth_per_gpu: 2 TB/s}}"}) {
    const Finished good = with("open_slow_study.yaml", hardware);
    EXPECT_EQ(good.code, 0) << good.err;
    EXPECT_FALSE(contains(good.err, "have no effect")) << good.err;
  }
  EXPECT_EQ(with("stated_study.yaml", "device: [slow.yaml, fast.yaml]").code, 0);
}

}  // namespace
}  // namespace shardscape::cli
