// Does every first study parse as it stands, short and in full, for all models that come with the program?
#include "sweep/study/starter.h"

#include <gtest/gtest.h>

#include <sstream>

#include "engine/base/safe_text.h"
#include "sweep/study/load_study.h"
#include "sweep/yaml/load.h"
#include "tests/support/paths.h"

namespace shardscape::sweep {
namespace {

using yaml::Catalog;

/// Loaded once, as there are many models.
struct Machine {
  const char* name;
  std::int64_t gpus;
  yaml::Cluster cluster;
};

std::vector<Machine> machines(const Catalog& catalog) {
  std::vector<Machine> list = {{"dgx-h100", 8, {}},     {"dgx-h100", 1, {}},
                               {"gb200-nvl72", 72, {}}, {"dgx-1v", 16, {}},
                               {"dgx-a100", 2048, {}},  {"a100-torus2d-ring-64", 64, {}},
                               {"dgx-b200", 24, {}},    {"gb300-nvl72", 256, {}}};
  for (Machine& machine : list) machine.cluster = yaml::load_cluster(catalog, machine.name).value();
  return list;
}

void expect_short(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(character_count(line), 100U) << line;
}

TEST(Starter, StudiesOfAllModelsParse) {
  const Catalog catalog({test::source_dir()});
  const std::vector<Machine> all = machines(catalog);
  std::size_t next = 0;
  for (const Catalog::Entry& entry : catalog.list(yaml::PresetKind::model)) {
    const ModelSpec model = yaml::load_model(catalog, entry.name).value();
    for (const Phase phase : {Phase::training, Phase::inference}) {
      const Machine& machine = all[next++ % all.size()];
      const std::string text =
          starter_text({model, machine.cluster, machine.gpus, phase, entry.name, machine.name,
                        phase == Phase::training ? "megatron-core" : "vllm"});
      expect_short(text);
      const auto study = parse_study(text, "s.yaml", {}, catalog);
      ASSERT_TRUE(study.has_value()) << yaml::to_string(study.error().list().front()) << '\n' << text;
      EXPECT_EQ(study->model_name, model.name);
      EXPECT_EQ(study->gpus, machine.gpus);
      EXPECT_EQ(study->phase(), phase);
      const std::uint64_t points = study->design_space().size();
      EXPECT_GE(points, 1U) << text;
      EXPECT_LE(points, 20'000U) << text;
    }
    ++next;  // so that a machine meets both phases
  }
}

// What is commented out is right, too: without its '#' each line of a study parses.
TEST(Starter, CommentedLinesParse) {
  const Catalog catalog({test::source_dir()});
  const yaml::Cluster cluster = yaml::load_cluster(catalog, "dgx-h100").value();
  const ModelSpec model = yaml::load_model(catalog, "llama3.1-8b").value();
  std::size_t tried = 0;
  for (const char* stack : {"megatron-core", "torchtitan", "vllm"}) {
    const Phase phase = stack == std::string("vllm") ? Phase::inference : Phase::training;
    const std::string text = starter_text({model, cluster, 16, phase, "llama3.1-8b", "dgx-h100", stack});
    for (std::size_t at = text.find("# "); at != std::string::npos; at = text.find("\n# ", at + 1)) {
      std::string changed = text;
      const std::size_t mark = changed.find("# ", at), end = changed.find('\n', mark);
      const std::string line = changed.substr(mark + 2, end - mark - 2);
      if (line.find(": ") == std::string::npos || line.find("axes") != std::string::npos) continue;
      changed.erase(mark, 2);
      if (line.starts_with("promises"))
        changed.replace(changed.find("concurrency:"), 12, "request_rate: 2 /s #");
      const auto study = parse_study(changed, "s.yaml", {}, catalog);
      EXPECT_TRUE(study.has_value()) << yaml::to_string(study.error().list().front()) << '\n' << changed;
      ++tried;
    }
  }
  EXPECT_EQ(tried, 4U);  // of megatron-core one less: there the line of constraints is none of comments
}

TEST(Starter, AxesFitTheMachineAndTheModel) {
  const Catalog catalog({test::source_dir()});
  const auto study_of = [&](const char* model, const char* cluster, std::int64_t gpus, Phase phase) {
    const std::string text =
        starter_text({yaml::load_model(catalog, model).value(), yaml::load_cluster(catalog, cluster).value(),
                      gpus, phase, model, cluster, "megatron-core"});
    return parse_study(text, "s.yaml", {}, catalog).value();
  };
  using Degrees = std::vector<std::int32_t>;
  const Study dense = study_of("llama3.1-70b", "dgx-h100", 64, Phase::training);
  EXPECT_EQ(dense.space[PlanKey::tensor].values, (Degrees{1, 2, 4, 8}));        // a node
  EXPECT_EQ(dense.space[PlanKey::pipeline].values, (Degrees{1, 2, 4, 8, 16}));  // divide 80 layers
  EXPECT_TRUE(dense.space[PlanKey::data].fill);
  EXPECT_EQ(dense.workloads[0].global_batch % 64, 0);
  EXPECT_EQ(dense.space[PlanKey::context].values, (Degrees{1, 2}));  // 2,048 of 4,096 tokens on each
  const Study rack = study_of("kimi-k2", "gb200-nvl72", 72, Phase::inference);
  EXPECT_EQ(rack.space[PlanKey::expert].values, (Degrees{1, 4, 8, 24}));  // 24 divides 72 and 384
  // Two terabytes of weights in bf16 on groups of 24 GPUs of 186 GiB would leave no room.
  EXPECT_EQ(study_of("kimi-k2", "dgx-h100", 16, Phase::inference).workloads[0].precision, PolicyName::fp8);
  EXPECT_EQ(study_of("llama3.1-8b", "dgx-1v", 8, Phase::training).workloads[0].precision, PolicyName::fp16);
  EXPECT_LE(study_of("opt-1.3b", "dgx-a100", 8, Phase::training).workloads[0].sequence_length, 2050);
}

}  // namespace
}  // namespace shardscape::sweep
