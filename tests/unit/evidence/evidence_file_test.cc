// Does the evidence file read back, and say what is wrong with it?
#include "sweep/evidence/evidence_table.h"

#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"

namespace shardscape::evidence {
namespace {

Table two_cells() {
  Table table;
  Cell cell;
  cell.regime = {Phase::inference, "b200", PolicyName::fp4, "dense", "trt: \"llm\"", 1};
  cell.gpus_low = 1;
  cell.gpus_high = 8;
  cell.rows = 12;
  cell.plans = 5;
  cell.bias = -0.0125;
  cell.sigma = 0.11;
  table.cells = {cell, cell};
  table.cells[1].regime.phase = Phase::training;
  return table;
}

TEST(EvidenceFile, ReadsBack) {
  const Table table = two_cells();
  const std::string text = evidence_yaml(table);
  const auto again = parse_evidence(text, "evidence.yaml");
  ASSERT_TRUE(again.has_value()) << again.error().to_string();
  ASSERT_EQ(again->cells.size(), 2U);
  EXPECT_EQ(again->cells[0].regime.stack, "trt: \"llm\"");
  EXPECT_EQ(again->cells[1].sigma, 0.11);
  EXPECT_EQ(evidence_yaml(*again), text);
  const auto none = parse_evidence(evidence_yaml({}), "evidence.yaml");
  ASSERT_TRUE(none.has_value());
  EXPECT_TRUE(none->cells.empty());
}

TEST(EvidenceFile, DegreesThatAreNotToldSetNoLimit) {
  const auto most = [](const std::string& keys) {
    const auto table = parse_evidence(
        "regimes:\n  - {phase: training, device: gpu, precision: bf16, model_kind: dense, stack: soft, "
        "gpus_low: 1, gpus_high: 8, " +
            keys + "rows: 1, plans: 1, bias: 0, sigma: 0.1}\n",
        "evidence.yaml");
    EXPECT_TRUE(table.has_value()) << (table ? "" : table.error().to_string());
    return table->cells.at(0).most;
  };
  const Degrees told =
      most("tensor_most: 8, context_most: 2, pipeline_most: 4, expert_most: 16, expert_tensor_most: 3, ");
  const ParallelPlan plan{.tensor = 8, .context = 2, .pipeline = 4, .expert = 16, .expert_tensor = 3};
  EXPECT_EQ(most_of(degrees_of(plan), told), told);
  for (const PlanKey key :
       {PlanKey::tensor, PlanKey::context, PlanKey::pipeline, PlanKey::expert, PlanKey::expert_tensor}) {
    EXPECT_EQ(told[key], row_of(key).get(plan));
    EXPECT_EQ(most("")[key], kUntold);
  }
  EXPECT_EQ(most("tensor_most: 8, ")[PlanKey::expert_tensor], kUntold);
}

TEST(EvidenceFile, DamageIsLocated) {
  const auto problem = [](std::string text, const std::string& from, const std::string& to) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const auto table = parse_evidence(text, "evidence.yaml");
    return table ? "" : table.error().to_string();
  };
  const std::string good = evidence_yaml(two_cells());
  EXPECT_NE(problem(good, "sigma: 0.11", "sigma: 0").find("sigma: must be above 0"), std::string::npos);
  EXPECT_NE(problem(good, "fp4", "fp5").find("precision"), std::string::npos);
  EXPECT_NE(problem(good, "plans: 5", "plans: 50").find("must be 1 to rows"), std::string::npos);
  EXPECT_NE(problem(good, "rows: 12", "row: 12").find("rows"), std::string::npos);
  EXPECT_NE(problem(good, "regimes", "regime").find("evidence.yaml:5:1: regimes: missing"),
            std::string::npos);
  EXPECT_FALSE(parse_evidence("- a list\n", "evidence.yaml").has_value());
  EXPECT_FALSE(parse_evidence("regimes: [", "evidence.yaml").has_value());
  EXPECT_FALSE(read_evidence("/nowhere/evidence.yaml").has_value());
}

class FindEvidence : public test::TemporaryFolder {};

TEST_F(FindEvidence, TheFirstFolderThatHasOneWins) {
  write("a/models/x.yaml", "");
  const auto b = write("b/hw_presets/evidence.yaml", "regimes: []\n");
  write("c/hw_presets/evidence.yaml", "regimes: []\n");
  EXPECT_EQ(find_evidence(yaml::Catalog({root_ / "a", root_ / "b", root_ / "c"})), b);
  EXPECT_EQ(find_evidence(yaml::Catalog({root_ / "a"})), std::nullopt);
}

TEST(EvidenceFile, TheShippedOneIsSoundAndKnowsItsPresets) {
  const yaml::Catalog catalog({test::source_dir()});
  const auto file = find_evidence(catalog);
  ASSERT_TRUE(file.has_value());
  const auto table = read_evidence(*file);
  ASSERT_TRUE(table.has_value()) << table.error().to_string();
  EXPECT_FALSE(table->cells.empty());
  for (const Cell& cell : table->cells) {
    EXPECT_TRUE(catalog.find(yaml::PresetKind::device, cell.regime.device, {}).has_value())
        << cell.regime.device;
    EXPECT_TRUE(catalog.find(yaml::PresetKind::stack, cell.regime.stack, {}).has_value())
        << cell.regime.stack;
  }
}

}  // namespace
}  // namespace shardscape::evidence
