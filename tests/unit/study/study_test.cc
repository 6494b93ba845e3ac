// Are studies read as they are documented: references, workloads, axes, constraints, columns, overrides, defaults and
// problems?
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "sweep/study/overrides.h"
#include "tests/support/paths.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

namespace fs = std::filesystem;

TEST(Study, DefaultsAreFilledIn) {
  const Study study = good(training(""));
  EXPECT_EQ(study.title, "unit");
  EXPECT_EQ(study.model_name, "tiny");
  EXPECT_EQ(study.cluster_name, "pod");
  EXPECT_EQ(study.stack_name, "soft");
  EXPECT_EQ(study.gpus, 16);
  ASSERT_EQ(study.systems.size(), 1U);
  EXPECT_EQ(study.systems[0].fabric.size(), 16);
  ASSERT_EQ(study.workloads.size(), 1U);
  EXPECT_EQ(study.workloads[0].precision, PolicyName::bf16);
  EXPECT_TRUE(study.space[PlanKey::data].fill);
  EXPECT_EQ(study.space[PlanKey::tensor].values, Degrees{1});
  EXPECT_EQ(study.objectives, (std::vector<std::string>{"step_time_s", "memory_peak_bytes"}));
  EXPECT_EQ(study.mode, ExecutionMode::hierarchical);
  EXPECT_EQ(good(training("mode: flattened\n")).mode, ExecutionMode::flattened);
  EXPECT_EQ(good(inference("")).objectives, (std::vector<std::string>{"e2e_s", "memory_peak_bytes"}));
  EXPECT_EQ(good(replaced(training(""), "study: unit\n", "")).title, "s");
}

TEST(Study, ReferencesAreDue) {
  EXPECT_TRUE(reports(bad("gpus: 4\n"), "s.yaml:1:1: model", "missing"));
  EXPECT_TRUE(reports(bad("model: [a]\n"), "s.yaml:1:8: model", "name or the path"));
  EXPECT_TRUE(reports(bad("model: nowhere\n"), "s.yaml:1:8: model", "unknown model \"nowhere\""));
  EXPECT_TRUE(reports(bad("model: ./nowhere.yaml\n"), "s.yaml:1:8: model", "no such file"));
  EXPECT_TRUE(reports(bad(training("trials: {kind: soft_link}\n")), "s.yaml:31:1: trials", "unknown key"));
  EXPECT_TRUE(reports(bad(replaced(training(""), "layers: 8", "layers: zero")), "s.yaml:3:11: model.layers",
                      "integer"));
  EXPECT_TRUE(reports(bad(replaced(training(""), "2 us\n    power", "2\n    power")),
                      "s.yaml:18:21: cluster.device.kernel_latency", "bare number"));
  EXPECT_TRUE(reports(bad("[]"), "s.yaml:1:1", "must be a map"));
}

TEST(Study, GpusMustFitTheCluster) {
  EXPECT_TRUE(reports(bad(replaced(training(""), "gpus: 16\n", "")), "s.yaml:11:3: gpus", "any size"));
  EXPECT_TRUE(
      reports(bad(replaced(training(""), "gpus: 16", "gpus: 18")), "s.yaml:28:7: gpus", "units of 4"));
  EXPECT_TRUE(reports(bad(replaced(training(""), "gpus: 16", "gpus: 0")), "s.yaml:28:7: gpus", "from 1"));
  const std::string closed = replaced(training(""), "size: fill", "size: 2");
  EXPECT_TRUE(reports(bad(closed), "s.yaml:28:7: gpus", "exactly 8"));
  EXPECT_EQ(good(replaced(closed, "gpus: 16\n", "")).gpus, 8);
}

TEST(Study, LearnedPositionsBoundTheSequence) {
  const std::string text = replaced(training(""), "position: rotary", "max_positions: 500");
  EXPECT_TRUE(
      reports(bad(text), "s.yaml:30:46: workload.sequence_length", "more than the 500 learned positions"));
}

TEST(Study, WindowsMayBeShorterThanTheSequence) {
  const std::string text = "position: rotary\n  sliding_window: 100\n  window_pattern: LG";
  const Study study = good(replaced(training(""), "position: rotary", text));
  EXPECT_EQ(study.model.sliding_window, 100);
  EXPECT_EQ(study.model.window_pattern, "LG");
}

TEST(Study, TheModelMayBeANameWithChanges) {
  yaml::Diagnostics diagnostics;
  auto root = yaml::parse("model: tiny", "s.yaml", diagnostics);
  ASSERT_TRUE(root.has_value());
  apply_override(*root, "model.layers=12", diagnostics);
  apply_override(*root, "model.hidden=64", diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.to_string();
  const yaml::Node& model = *root->find("model");
  ASSERT_TRUE(model.is_map());
  EXPECT_EQ(model.find("base")->text, "tiny");
  EXPECT_EQ(model.find("layers")->text, "12");
  EXPECT_EQ(model.find("hidden")->text, "64");
}

TEST(Study, AChangeFindsAnAxisByEitherName) {
  yaml::Diagnostics diagnostics;
  auto root = yaml::parse("space: {tp: [1, 2], pipeline_parallel: 4}", "s.yaml", diagnostics);
  ASSERT_TRUE(root.has_value());
  apply_override(*root, "space.tp=8", diagnostics);
  apply_override(*root, "space.pp=2", diagnostics);
  EXPECT_TRUE(diagnostics.empty()) << diagnostics.to_string();
  const yaml::Node& space = *root->find("space");
  EXPECT_EQ(space.entries.size(), 2U);
  EXPECT_EQ(space.find("tensor_parallel")->text, "8");
  EXPECT_EQ(space.find("pipeline_parallel")->text, "2");
}

TEST(Study, ConstraintsObjectivesAndMode) {
  const Study study = good(training("constraints: [\"tp * cp <= 16\", pp <= 8]\nobjectives: mfu\n"));
  EXPECT_EQ(study.space.constraints, (std::vector<std::string>{"tp * cp <= 16", "pp <= 8"}));
  EXPECT_EQ(study.objectives, std::vector<std::string>{"mfu"});
  EXPECT_FALSE(bad(training("constraints: [\"tp * <= 16\"]\n")).empty());
  // The place is that of the offending token: column 15 is the quote, the '<' is five characters into the
  // text.
  EXPECT_TRUE(
      reports(bad(training("constraints: [\"tp * <= 16\"]\n")), "s.yaml:31:21: constraints", "tp * <= 16"));
  EXPECT_TRUE(reports(bad(training("constraints: [{tp: 3}]\n")), "s.yaml:31:15: constraints", "text"));
  EXPECT_TRUE(reports(bad(training("mode: layered\n")), "s.yaml:31:7: mode",
                      "known values: hierarchical, flattened, checked"));
  EXPECT_EQ(good(inference("mode: flattened\n")).mode, ExecutionMode::flattened);
  EXPECT_EQ(good(training("mode: checked\n")).mode, ExecutionMode::checked);
  EXPECT_TRUE(reports(bad(inference("mode: checked\n")), "s.yaml:31:7: mode", "checked is of training"));
  EXPECT_TRUE(reports(bad(training("objectives: [a, a]\n")), "s.yaml:31:17: objectives", "twice"));
  StudyOptions options;
  options.objective_columns = {"step_time_s", "memory_peak_bytes"};
  EXPECT_TRUE(reports(bad(training("objectives: [step_tim_s]\n"), options), "s.yaml:31:14: objectives",
                      "did you mean \"step_time_s\"?"));
}

TEST(Study, ColumnsToStore) {
  EXPECT_FALSE(good(training("")).stored_columns);
  EXPECT_FALSE(good(training("")).resolved_yaml.find("store:") != std::string::npos);
  StudyOptions options;
  options.fixed_columns = {"tensor_parallel", "mfu"};
  const std::string text = "hardware: {device.hbm.capacity: [80 GiB, 96 GiB]}\n";
  const Study study = good(training(text + "store: {columns: [mfu, device_hbm_capacity_bytes]}\n"), options);
  EXPECT_EQ(study.stored_columns, (std::vector<std::string>{"mfu", "device_hbm_capacity_bytes"}));
  EXPECT_NE(study.resolved_yaml.find("store:\n  columns: [mfu, device_hbm_capacity_bytes]"),
            std::string::npos)
      << study.resolved_yaml;
  EXPECT_EQ(good(training("store: {columns: mfu}\n"), options).stored_columns,
            std::vector<std::string>{"mfu"});
  EXPECT_TRUE(reports(bad(training("store: {columns: [device_hbm_capacity_bytes]}\n"), options),
                      "s.yaml:31:19: store.columns", "unknown column \"device_hbm_capacity_bytes\""));
}

TEST(Study, RowsToStore) {
  using results::RowChoice;
  StudyOptions options;
  options.objective_columns = {"step_time_s", "memory_peak_bytes", "mfu"};
  const auto stored = [&](const std::string& rows) {
    return good(training("store: {rows: " + rows + "}\n"), options).stored_rows;
  };
  const std::vector<std::string> objectives = {"step_time_s", "memory_peak_bytes"};
  EXPECT_TRUE(good(training("")).stored_rows.all());
  EXPECT_TRUE(stored("all").all());
  EXPECT_EQ(stored("feasible"), (results::StoredRows{RowChoice::feasible, 0, {}}));
  EXPECT_EQ(stored("top 1000"), (results::StoredRows{RowChoice::top, 1000, {}}));
  EXPECT_EQ(stored("'top  7'"), (results::StoredRows{RowChoice::top, 7, {}}));
  EXPECT_EQ(stored("{top: 10000000}"), (results::StoredRows{RowChoice::top, 10'000'000, {}}));
  EXPECT_EQ(stored("pareto"), (results::StoredRows{RowChoice::pareto, 0, objectives}));
  EXPECT_EQ(stored("{pareto: [mfu, memory_peak_bytes]}"),
            (results::StoredRows{RowChoice::pareto, 0, {"mfu", "memory_peak_bytes"}}));
  // Written out in full, and only where it says something.
  const auto resolved = [&](const std::string& store) {
    return good(training(store), options).resolved_yaml;
  };
  EXPECT_EQ(resolved("store: {rows: all}\n"), resolved(""));
  EXPECT_NE(resolved("store: {rows: pareto}\n").find("rows:\n    pareto: [step_time_s, memory_peak_bytes]"),
            std::string::npos)
      << resolved("store: {rows: pareto}\n");
  EXPECT_NE(resolved("store: {rows: top 5}\n").find("rows:\n    top: 5"), std::string::npos);
  options.overrides = {"store.rows=top 12"};
  EXPECT_EQ(good(training(""), options).stored_rows.count, 12U);
}

TEST(Study, LayersLieAsThePipelineLayoutSays) {
  const auto with = [](const std::string& layout, const std::string& space = "pipeline_parallel: [2]") {
    return training("pipeline_layout: " + layout + "\nspace: {" + space + "}\n");
  };
  const auto stack = [](const std::string& text) { return good(text).systems[0].stack; };
  EXPECT_EQ(stack(training("")).pipeline_layout, "");
  EXPECT_EQ(stack(with("uneven")).partition, PartitionRule::uneven);
  EXPECT_EQ(stack(with("Et*3|t*5,L")).pipeline_layout, "Et*3|t*5,L");
  const std::string chunks = "pipeline_parallel: [1, 2], schedule: [1f1b, interleaved], virtual_stages: [2]";
  EXPECT_EQ(stack(with("Et*3|t|t|t*3L", chunks)).pipeline_layout, "Et*3|t|t|t*3L");
  EXPECT_EQ(stack(with("Et*3|t|t|t*3L", "pipeline_parallel: fill, data_parallel: [1]")).pipeline_layout,
            "Et*3|t|t|t*3L");
  const auto wrong = [&](const std::string& text, const std::string& why) {
    EXPECT_TRUE(reports(bad(text), "s.yaml:31:18: pipeline_layout", why));
  };
  wrong(with("evenly"), "neither a rule (uniform, balanced, with_ends, uneven) nor a layout such as");
  wrong(with("t*3|t*5,L"), "no E: the first stage begins with the embedding");
  wrong(with("Et*3|t*4L"), "has 7 layers (t), but tiny has 8");
  wrong(with("Et*3|t*5mL"), "has 1 modules of further tokens (m), but tiny has 0");
  wrong(with("Et*3|t|t|t*3L"),
        "has 4 stages (one more than it has |), but no plan has pipeline_parallel * virtual_stages = 4");
  wrong(with("[uneven]"), "the name of a rule, or a layout");
  EXPECT_TRUE(reports(bad(inference("pipeline_layout: uneven\n")), "s.yaml:31:18: pipeline_layout",
                      "has no effect in inference"));
}

// A file of nothing but mistakes is answered in a page, and its millionth unknown key costs nothing: reading ends at
// the first problem that is not kept.
TEST(Study, ProblemsWithoutEndEnd) {
  const auto keys = [](const std::string& indent) {
    std::string text;
    for (int i = 0; i < 600; ++i) text += indent + "key_" + std::to_string(i) + ": 1\n";
    return text;
  };
  for (const std::string& text :
       {training(keys("")), training("space:\n" + keys("  ")), training("hardware:\n" + keys("  device.")),
        training("faults:\n  kind: hard_link\n" + keys("  "))}) {
    const yaml::Diagnostics found = bad(text);
    EXPECT_GT(found.size(), 200U);
    EXPECT_EQ(found.list().size(), 200U);
    EXPECT_TRUE(found.to_string().ends_with("\nand further problems\n"));
  }
  EXPECT_EQ(bad(training(keys(""))).size(), 201U);
  std::string values;
  for (int i = 1; i <= 5000; ++i) values += (i == 1 ? "" : ", ") + std::to_string(i);
  EXPECT_TRUE(reports(bad(training("space: {microbatch_size: [" + values + "]}\n")),
                      "s.yaml:31:26: space.microbatch_size", "at most 4096 may be listed"));
}

TEST(Study, ProblemsOfAllPartsComeTogether) {
  std::string text = training("space: {tensor_paralel: 2}\nmode: x\nmode: y\n");
  text = replaced(text, "layers: 8", "layers: -1");
  text = replaced(text, "bucket: 25 MB", "bucket: 25");
  text = replaced(text, "global_batch: 32", "global_batch: 0");
  const yaml::Diagnostics found = bad(text);
  EXPECT_TRUE(reports(found, "s.yaml:3:11: model.layers", "must be from 1 to 1e+05"));
  EXPECT_TRUE(reports(found, "s.yaml:25:27: stack.communication.bucket", "bare number"));
  EXPECT_TRUE(reports(found, "s.yaml:30:65: workload.global_batch", "from 1"));
  EXPECT_TRUE(reports(found, "s.yaml:31:9: space.tensor_paralel", "did you mean \"tensor_parallel\"?"));
  EXPECT_TRUE(reports(found, "s.yaml:32:7: mode", "unknown value"));
  EXPECT_TRUE(reports(found, "s.yaml:33:1: mode", "duplicate key"));
  EXPECT_EQ(found.size(), 6U) << found.to_string();
}

TEST(Workload, ListsMultiplyInFileOrder) {
  const Study study = good(inference(""));
  ASSERT_EQ(study.workloads.size(), 4U);
  EXPECT_EQ(study.workloads[1].output_tokens, 10);
  EXPECT_EQ(study.workloads[1].concurrency, 8);
  EXPECT_EQ(study.workloads[2].output_tokens, 20);
  EXPECT_EQ(study.workloads[2].concurrency, 1);
  EXPECT_EQ(study.phase(), Phase::inference);
  const std::string swapped =
      std::string(kModel) + kSystem +
      "workload: {phase: inference, prompt_tokens: 1, concurrency: [1, 8], output_tokens: [10, 20]}\n";
  EXPECT_EQ(good(swapped).workloads[1].output_tokens, 20);
}

TEST(Workload, KeysOfTheOtherPhaseHaveNoEffect) {
  const auto with = [](const std::string& workload) {
    return bad(std::string(kModel) + kSystem + "workload: " + workload + "\n");
  };
  EXPECT_TRUE(reports(with("{phase: training, sequence_length: 1, global_batch: 1, concurrency: 2}"),
                      "s.yaml:30:66: workload.concurrency", "no effect in training"));
  EXPECT_TRUE(reports(with("{phase: inference, sequence_length: 1}"),
                      "s.yaml:30:30: workload.sequence_length", "no effect in inference"));
  EXPECT_TRUE(reports(with("{phase: inference}"), "s.yaml:30:11: workload.prompt_tokens", "missing"));
  EXPECT_TRUE(reports(with("{sequence_length: 1}"), "s.yaml:30:11: workload.phase", "missing"));
  EXPECT_TRUE(reports(with("{phase: trainig}"), "s.yaml:30:19: workload.phase", "\"training\""));
  EXPECT_TRUE(reports(with("{phase: training, sequence_length: [4, 4], global_batch: []}"),
                      "s.yaml:30:50: workload.sequence_length", "twice"));
  EXPECT_TRUE(reports(with("{phase: training, sequence_length: 1, global_batch: []}"),
                      "s.yaml:30:63: workload.global_batch", "empty"));
  EXPECT_TRUE(reports(with("7"), "s.yaml:30:11: workload", "must be a map"));
}

TEST(Workload, ProductIsCapped) {
  std::string list = "[1";
  for (int i = 2; i <= 400; ++i) list += ", " + std::to_string(i);
  list += ']';
  const std::string text = std::string(kModel) + kSystem +
                           "workload: {phase: training, sequence_length: " + list +
                           ", global_batch: " + list + "}\n";
  EXPECT_TRUE(reports(bad(text), "s.yaml:30:11: workload", "more than 100000"));
}

TEST(Overrides, SetReplacesAndAdds) {
  StudyOptions options;
  options.overrides = {"workload.global_batch=[64, 128]", "space.tensor_parallel=[4,8]", "gpus=32",
                       "hardware.device.hbm.bandwidth=[1 TB/s, 2 TB/s]", "study=renamed"};
  const Study study = good(training(""), options);
  EXPECT_EQ(study.workloads.size(), 2U);
  EXPECT_EQ(study.workloads[1].global_batch, 128);
  EXPECT_EQ(study.space[PlanKey::tensor].values, (Degrees{4, 8}));
  EXPECT_EQ(study.gpus, 32);
  EXPECT_EQ(study.systems.size(), 2U);
  EXPECT_EQ(study.title, "renamed");
}

TEST(Overrides, ProblemsAreThoseOfTheSetting) {
  const auto with = [](const std::string& setting) {
    StudyOptions options;
    options.overrides = {setting};
    return bad(training(""), options);
  };
  EXPECT_TRUE(reports(with("model.layer=2"), "--set model.layer=2: model.layer", "unknown key"));
  EXPECT_TRUE(reports(with("gpus=x"), "--set gpus=x: gpus", "integer"));
  EXPECT_TRUE(reports(with("space.tensor_paralel=2"), "--set space.tensor_paralel=2: space.tensor_paralel",
                      "\"tensor_parallel\""));
  EXPECT_TRUE(reports(with("hardware.device.hbm.x=2"), "--set hardware.device.hbm.x=2: hardware.device.hbm.x",
                      "unknown path"));
  EXPECT_TRUE(reports(with("gpus"), "--set gpus", "KEY=VALUE"));
  EXPECT_TRUE(reports(with("gpus="), "--set gpus=", "KEY=VALUE"));
  EXPECT_TRUE(reports(with("gpus=[1"), "--set gpus=[1: gpus", "not valid YAML"));
  EXPECT_TRUE(reports(with("study.x=1"), "--set study.x=1: study.x", "no map"));
  EXPECT_TRUE(reports(with("a..b=1"), "--set a..b=1: a..b", "empty part"));
}

TEST(Resolved, ParsesBackToAnEqualStudy) {
  const std::vector<std::string> texts = {
      training(""),
      inference("space: {tensor_parallel: [1, 2, 4]}\n"),
      replaced(training(""), "gpus: 16", "gpus: 1"),
      replaced(training(""), "gpus: 16", "gpus: 4"),
      training(
          "space: {tensor_parallel: powers_of_two, sequence_parallel: [true, false], zero_stage: [0, 2], "
          "schedule: [1f1b, interleaved], pipeline_parallel: [1, 2], rank_order: [dp-tp-cp-pp]}\n"
          "hardware: {device.hbm.bandwidth: [1.1 TB/s, \"2.2 TB/s\"], stack.attention: [naive, flash], "
          "device.sm.sram_bytes_per_clock: [64, 128]}\n"
          "constraints: [\"tp <= 4 or pp == 1\"]\nobjectives: [memory_peak_bytes]\n"),
      training("placement: [optimised]\n"),
      training(std::string("placement: [plain, optimised]\nhardware: {cluster: [") + kOther +
               "], variant: {base: {}, A: {device.l2.capacity: 9 MiB, stack: {name: x, communication: "
               "{bucket: 1 MB}}}}}\n"),
  };
  for (const std::string& text : texts) {
    const Study first = good(text);
    const Study second = good(first.resolved_yaml);
    EXPECT_EQ(second.resolved_yaml, first.resolved_yaml);
    EXPECT_EQ(second.title, first.title);
    EXPECT_EQ(second.gpus, first.gpus);
    EXPECT_EQ(second.space[PlanKey::tensor].values, first.space[PlanKey::tensor].values);
    EXPECT_EQ(second.space[PlanKey::data].fill, first.space[PlanKey::data].fill);
    EXPECT_EQ(second.space.constraints, first.space.constraints);
    EXPECT_EQ(second.objectives, first.objectives);
    ASSERT_EQ(second.setting_count(), first.setting_count());
    for (std::size_t i = 0; i < first.systems.size(); ++i) {
      EXPECT_EQ(second.systems[i].device.hbm_peak(), first.systems[i].device.hbm_peak());
      EXPECT_EQ(second.systems[i].fabric.size(), first.systems[i].fabric.size());
      EXPECT_EQ(second.systems[i].stack.attention, first.systems[i].stack.attention);
    }
    for (std::size_t i = 0; i < first.hardware.size(); ++i) {
      EXPECT_EQ(second.hardware[i].values, first.hardware[i].values);
      EXPECT_EQ(second.hardware[i].labels, first.hardware[i].labels);
    }
  }
}

class StudyFiles : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directories(root_); }
  void TearDown() override { fs::remove_all(root_.parent_path()); }
  const fs::path root_ =
      fs::path(::testing::TempDir()) / ("study-" + std::to_string(getpid())) / "study-files";
};

TEST_F(StudyFiles, PathsStartAtTheStudysFolderAndSourcesAreVerbatim) {
  const std::string config =
      R"({"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 4, "vocab_size": 8,
                                 "num_attention_heads": 2, "intermediate_size": 8})";
  std::ofstream(root_ / "config.json") << config;
  const std::string text = std::string("model: config.json\n") + kSystem + kTraining;
  std::ofstream(root_ / "own.yaml") << text;
  const auto study = load_study(root_ / "own.yaml", yaml::Catalog());
  ASSERT_TRUE(study.has_value()) << study.error().to_string();
  EXPECT_EQ(study->model_name, "study-files");
  EXPECT_EQ(study->model.layers, 4);
  ASSERT_EQ(study->sources.size(), 2U);
  EXPECT_EQ(study->sources[0].name, "own.yaml");
  EXPECT_EQ(study->sources[0].text, text);
  EXPECT_EQ(study->sources[1].name, "models/config.json");
  EXPECT_EQ(study->sources[1].text, config);
}

TEST_F(StudyFiles, UnreadableFilesAreNamed) {
  const auto absent = load_study(root_ / "absent.yaml", yaml::Catalog());
  ASSERT_FALSE(absent.has_value());
  EXPECT_TRUE(reports(absent.error(), (root_ / "absent.yaml").string(), "cannot read"));
  const auto folder = load_study(root_, yaml::Catalog());
  ASSERT_FALSE(folder.has_value());
  EXPECT_TRUE(reports(folder.error(), root_.string(), "is a directory"));
}

// Every study of the repository obeys its own format, and so does what it resolves to.
TEST(RepositoryStudies, AllLoadAndReadBack) {
  const fs::path source = test::source_dir();
  const yaml::Catalog catalog({source});
  for (const auto& file : fs::directory_iterator(source / "sweep/studies")) {
    if (file.path().extension() != ".yaml") continue;
    const auto study = load_study(file.path(), catalog);
    ASSERT_TRUE(study.has_value()) << study.error().to_string();
    const auto back = parse_study(study->resolved_yaml, "resolved.yaml", {}, yaml::Catalog());
    ASSERT_TRUE(back.has_value()) << file.path() << '\n' << back.error().to_string();
    EXPECT_EQ(back->resolved_yaml, study->resolved_yaml);
  }
}

/// The study's system with another list of dimensions and number of GPUs.
std::string on_fabric(const std::string& dimensions, int gpus, const std::string& rest = "") {
  std::string text = training(rest);
  const std::size_t begin = text.find("    - {name: nvswitch"), end = text.find("stack:\n");
  text.replace(begin, end - begin, dimensions);
  return replaced(text, "gpus: 16", "gpus: " + std::to_string(gpus));
}

TEST(StudyCluster, TakesEveryKindOfFabric) {
  const std::string rates = ", bandwidth: 10 GB/s, latency: 1 us}\n";
  const std::vector<std::pair<std::string, int>> fabrics = {
      {"    - {name: a, kind: ring, size: 4" + rates + "    - {name: b, kind: mesh, shape: [2, 2]" + rates,
       16},
      {"    - {name: a, kind: torus, shape: [2, 4]" + rates + "    - {name: b, kind: hypercube, size: fill" +
           rates,
       32},
      {"    - {name: a, kind: king_mesh, shape: [4, 4]" + rates, 16},
      {"    - {name: a, kind: fully_connected, size: 4, bandwidth_per_gpu: 300 GB/s, latency: 1 us}\n"
       "    - {name: b, kind: fat_tree, size: fill, levels: 3, radix: 4, nics_per_node: 2" +
           rates,
       32},
      {"    - {name: a, kind: switch, size: 4, in_network_reduction: true" + rates +
           "    - {name: b, kind: dragonfly, size: fill, routers_per_group: 2, hosts_per_router: 1" + rates,
       16},
      {"    - name: a\n      kind: custom\n      size: 2\n      switches: 1\n      links:\n"
       "        - {between: [0, 2]" +
           rates + "        - {between: [2, 1]" + rates,
       2}};
  for (const auto& [dimensions, gpus] : fabrics) {
    SCOPED_TRACE(dimensions);
    const Study study = good(on_fabric(dimensions, gpus));
    ASSERT_EQ(study.systems.size(), 1U);
    EXPECT_EQ(study.systems[0].fabric.size(), gpus);
    const Study again = good(study.resolved_yaml);
    EXPECT_EQ(again.resolved_yaml, study.resolved_yaml);
  }
}

TEST(StudyCluster, OpenTreeThatDoesNotFitIsAProblemOfGpus) {
  EXPECT_TRUE(
      reports(bad(on_fabric("    - {name: a, kind: switch, size: 4, bandwidth: 1 GB/s, latency: 1 us}\n"
                            "    - {name: b, kind: fat_tree, size: fill, levels: 2, radix: 4, "
                            "bandwidth: 1 GB/s, latency: 1 us}\n",
                            36)),
              "s.yaml:28:7: gpus", "9 endpoints are more than the 8"));
}

TEST(StudyCluster, WhatIfsFollowTheKeysOfTheCluster) {
  const std::string fabric =
      "    - {name: a, kind: ring, size: 16, bandwidth_per_gpu: 300 GB/s, latency: 1 us}\n";
  const Study study =
      good(on_fabric(fabric, 16, "hardware: {fabric.a.bandwidth_per_gpu: [100 GB/s, 200 GB/s]}\n"));
  ASSERT_EQ(study.systems.size(), 2U);
  EXPECT_EQ(study.systems[1].fabric.dimensions[0].bandwidth.value(), 200e9);
  EXPECT_EQ(bad(on_fabric(fabric, 16, "hardware: {fabric.a.bandwidth: [100 GB/s]}\n")).size(), 1U);
  // Rates that only a kind has are axes where a cluster has that kind, and a range is that of their row.
  const std::string tree =
      "    - {name: b, kind: fat_tree, size: 8, levels: 2, radix: 4, bandwidth: 1 GB/s, latency: 1 us}\n";
  const Study ups = good(on_fabric(tree, 8, "hardware: {fabric.b.uplink_latency: [2 us, 3 us]}\n"));
  ASSERT_EQ(ups.systems.size(), 2U);
  EXPECT_EQ(ups.systems[1].fabric.dimensions[0].fat_tree.uplink_latency, Seconds(3e-6));
  EXPECT_EQ(ups.hardware[0].unit, "s");
  EXPECT_TRUE(reports(bad(on_fabric(tree, 8, "hardware: {fabric.b.uplink_bandwidth: [0 GB/s]}\n")),
                      "s.yaml:30:40: hardware.fabric.b.uplink_bandwidth", "must be from 1 B/s to 1e+18 B/s"));
  EXPECT_EQ(bad(on_fabric(tree, 8, "hardware: {fabric.b.global_latency: [2 us]}\n")).size(), 1U);
}

// A path of the machine is one of `hardware:`, whether that is said or not.
TEST(Study, OverridesReachTheMachine) {
  const std::string named =
      replaced(training(""), kSystem, "cluster: dgx-h100\nstack: megatron-core\ngpus: 8\n");
  const auto with = [&](const std::string& setting) {
    StudyOptions options;
    options.overrides = {setting};
    return parse_study(named, "s.yaml", {}, yaml::Catalog({test::source_dir()}), options);
  };
  for (const char* key :
       {"stack.communication.tensor_overlap", "hardware.stack.communication.tensor_overlap"}) {
    const auto study = with(std::string(key) + "=0");
    ASSERT_TRUE(study.has_value()) << study.error().to_string();
    EXPECT_EQ(study->systems[0].stack.communication.tensor_overlap, 0);
  }
  EXPECT_EQ(with("device.hbm.bandwidth=2 TB/s")->systems[0].device.hbm_peak().value(), 2e12);
  EXPECT_EQ(with("device.hbm.bandwidth=[2 TB/s, 3 TB/s]")->systems.size(), 2U);
  EXPECT_TRUE(reports(with("stack.communication.tensor_overlp=0").error(),
                      "--set stack.communication.tensor_overlp=0: hardware.stack.communication.tensor_overlp",
                      "did you mean \"stack.communication.tensor_overlap\"?"));
  // A stack that the study has in full is changed in place.
  StudyOptions options;
  options.overrides = {"stack.communication.call=7 us"};
  const auto whole = parse_study(training(""), "s.yaml", {}, yaml::Catalog(), options);
  ASSERT_TRUE(whole.has_value()) << whole.error().to_string();
  EXPECT_EQ(whole->systems[0].stack.communication.call.value(), 7e-6);
  EXPECT_TRUE(whole->hardware.empty());
}

}  // namespace
}  // namespace shardscape::sweep
