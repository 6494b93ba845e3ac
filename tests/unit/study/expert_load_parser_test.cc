// Are loads of experts read as written, and refused where they mean nothing?
#include "sweep/study/expert_load_parser.h"

#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

/// A study of a model with four experts, two of them for each token, with that load; it stands on line 33.
std::string with_load(const std::string& load, const std::string& experts = "") {
  const std::string moe =
      "  moe: {experts: 4, top_k: 2, expert_ffn_hidden: 512, first_dense_layers: 1" + experts + "}\n";
  return std::string(kModel) + moe + kSystem +
         "workload:\n  {phase: training, sequence_length: 512, global_batch: 32,\n   expert_load: " + load +
         "}\n";
}

TEST(ExpertLoads, AreAWorkloadAxis) {
  const Study study =
      good(with_load("[balanced, {distribution: power_law, exponent: 1.2}, {distribution: power_law, "
                     "exponent: 0.5, seed: 9},\n"
                     "    {distribution: histogram, histogram: [1, 0, 2.5, 1]}]"));
  ASSERT_EQ(study.workloads.size(), 4U);
  EXPECT_TRUE(study.workloads[0].expert_load.balanced());
  const ExpertLoad &second = study.workloads[1].expert_load, &third = study.workloads[2].expert_load;
  EXPECT_EQ(second.distribution, LoadDistribution::power_law);
  EXPECT_EQ(second.exponent, 1.2);
  EXPECT_EQ(second.seed, 0U);
  EXPECT_EQ(third.seed, 9U);
  EXPECT_EQ(study.workloads[3].expert_load.histogram, (std::vector<double>{1, 0, 2.5, 1}));
  EXPECT_EQ(to_text(second), "{distribution: power_law, exponent: 1.2}");
  for (const WorkloadSpec& w : study.workloads)
    EXPECT_EQ(good(with_load(to_text(w.expert_load))).workloads.front().expert_load, w.expert_load);
  const Study again = good(study.resolved_yaml);
  for (std::size_t w = 0; w < 4; ++w)
    EXPECT_EQ(again.workloads[w].expert_load, study.workloads[w].expert_load);
  EXPECT_EQ(again.resolved_yaml, study.resolved_yaml);
  EXPECT_TRUE(good(with_load("balanced")).workloads.front().expert_load.balanced());
}

TEST(ExpertLoads, ProblemsStandAtTheirPlace) {
  const auto says = [](const std::string& load, const std::string& place, const std::string& what) {
    EXPECT_TRUE(reports(bad(with_load(load)), "s.yaml:33:" + place, what)) << load;
  };
  const std::string at = "17: workload.expert_load", map = "workload.expert_load.";
  says("powerlaw", at + ".distribution", "did you mean \"power_law\"");
  says("power_law", at, "{distribution: power_law, exponent: 1.2}");
  says("{exponent: 1}", at + ".distribution", "missing");
  says("{distribution: power_law}", at + ".exponent", "missing");
  says("{distribution: power_law, exponent: -1}", "53: " + map + "exponent", "from 0 to 10");
  says("{distribution: balanced, exponent: 1}", "52: " + map + "exponent",
       "has no effect with distribution: balanced");
  says("{distribution: power_law, exponent: 1, histogram: [1]}", "67: " + map + "histogram",
       "has no effect with distribution: power_law");
  says("{distribution: power_law, exponent: 1, sed: 1}", "56: " + map + "sed", "did you mean \"seed\"");
  says("{distribution: histogram, histogram: 3}", "54: " + map + "histogram", "list of numbers");
  says("{distribution: histogram, histogram: [1, 2, 3]}", at + ".histogram",
       "3 entries; must have one for each of the model's 4");
  says("{distribution: histogram, histogram: [1, -2, 3, 1]}", "54: " + map + "histogram", "entry 2 is -2");
  says("{distribution: histogram, histogram: [0, 0, 0, 0]}", "54: " + map + "histogram",
       "gives no expert a token");
  says("{distribution: histogram, histogram: [0, 1, 0, 0]}", at + ".histogram",
       "tokens to 1 experts; must do so to at least 2");
  says("[balanced, balanced]", "28: workload.expert_load", "is in the list twice");
  // Two loads that differ in what results do not tell apart: the second is named, and where the first is.
  says(
      "[{distribution: histogram, histogram: [1, 2, 3, 4]}, {distribution: histogram, histogram: [4, 1, 1, "
      "1]}]",
      "70: workload.expert_load", "is the second histogram load (the first: line 33)");
  says("[{distribution: power_law, exponent: 1}, {distribution: power_law, exponent: 1, seed: 2}]",
       "58: workload.expert_load", "is the second power_law load of exponent 1 (the first: line 33)");
  EXPECT_TRUE(reports(bad(with_load("balanced,\n   expert_load: {distribution: power_law, exponent: 1}")),
                      "s.yaml:34:4: workload.expert_load", "duplicate key; first given at line 33"));
  says("[]", at, "empty list");
}

TEST(ExpertLoads, HaveNoEffectOnOtherModels) {
  const std::string load = "{distribution: power_law, exponent: 1}";
  const std::string text = replaced(
      with_load(load), "  moe: {experts: 4, top_k: 2, expert_ffn_hidden: 512, first_dense_layers: 1}\n", "");
  EXPECT_TRUE(reports(bad(text), "s.yaml:32:17: workload.expert_load", "has no experts to choose from"));
  EXPECT_TRUE(reports(bad(with_load(load, ", capacity_factor: 1.5")), "s.yaml:33:17: workload.expert_load",
                      "take 1.5 times the mean of tokens each"));
}

}  // namespace
}  // namespace shardscape::sweep
