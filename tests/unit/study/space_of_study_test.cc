// Are the axes of plans read as they are documented: values, what fills the rest, ranges, and axes without effect?
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

TEST(Space, EveryWayToWriteAnAxis) {
  const Study study =
      good(training("space:\n"
                    "  tensor_parallel: powers_of_two\n"
                    "  context_parallel: divisors\n"
                    "  pipeline_parallel: {from: 2, to: 8, step: 2}\n"
                    "  data_parallel: [4, 1]\n"
                    "  microbatch_size: powers_of_two\n"
                    "  schedule: [interleaved]\n"
                    "  virtual_stages: divisors\n"
                    "  rank_order: [tp-cp-dp-pp, tp-dp-cp-pp]\n"
                    "  zero_stage: {from: 0, to: 3}\n"
                    "  recompute: [full, none]\n"
                    "  sequence_parallel: [true, false]\n"));
  EXPECT_EQ(study.space[PlanKey::tensor].values, (Degrees{1, 2, 4, 8, 16}));
  EXPECT_EQ(study.space[PlanKey::context].values, (Degrees{1, 2, 4, 8, 16}));
  EXPECT_EQ(study.space[PlanKey::pipeline].values, (Degrees{2, 4, 6, 8}));
  EXPECT_EQ(study.space[PlanKey::data].values, (Degrees{1, 4}));
  EXPECT_FALSE(study.space[PlanKey::data].fill);
  EXPECT_EQ(study.space[PlanKey::microbatch].values, (Degrees{1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(study.space[PlanKey::virtual_stages].values, (Degrees{2, 4, 8}));
  EXPECT_EQ(study.space[PlanKey::order].values.size(), 2U);
  EXPECT_EQ(study.space[PlanKey::zero_stage].values, (Degrees{0, 1, 2, 3}));
  EXPECT_EQ(study.space[PlanKey::recompute].values, codes_of({Recompute::full, Recompute::none}));
  EXPECT_EQ(study.space[PlanKey::sequence_parallel].values, (Degrees{1, 0}));
}

TEST(Space, AnotherAxisMayFill) {
  const Study study = good(training("space: {tensor_parallel: fill, pipeline_parallel: 2}\n"));
  EXPECT_TRUE(study.space[PlanKey::tensor].fill);
  EXPECT_FALSE(study.space[PlanKey::data].fill);
  EXPECT_EQ(study.space[PlanKey::data].values, Degrees{1});
  EXPECT_TRUE(reports(bad(training("space: {tensor_parallel: fill, data_parallel: fill}\n")),
                      "s.yaml:31:47: space.data_parallel", "only one axis can fill"));
}

TEST(Space, ValuesOutOfRangeAndDuplicates) {
  const auto with = [](const std::string& space) { return bad(training("space: {" + space + "}\n")); };
  EXPECT_TRUE(
      reports(with("tensor_parallel: [1, 32]"), "s.yaml:31:30: space.tensor_parallel", "from 1 to 16"));
  EXPECT_TRUE(reports(with("tensor_parallel: 0"), "s.yaml:31:26: space.tensor_parallel", "from 1 to 16"));
  EXPECT_TRUE(reports(with("tensor_parallel: [2, 2]"), "s.yaml:31:30: space.tensor_parallel", "twice"));
  EXPECT_TRUE(
      reports(with("tensor_parallel: powers_of_to"), "s.yaml:31:26: space.tensor_parallel", "powers_of_two"));
  EXPECT_TRUE(
      reports(with("tensor_parallel: {from: 4, to: 2}"), "s.yaml:31:26: space.tensor_parallel", "greater"));
  EXPECT_TRUE(reports(with("tensor_parallel: {from: 4, too: 2}"), "s.yaml:31:36: space.tensor_parallel.too",
                      "\"to\""));
  EXPECT_TRUE(reports(with("microbatch_size: {from: 1, to: 1e6}"), "s.yaml:31:26: space.microbatch_size",
                      "more than"));
  EXPECT_TRUE(reports(with("zero_stage: 4"), "s.yaml:31:21: space.zero_stage", "from 0 to 3"));
  EXPECT_TRUE(reports(with("zero_stage: fill"), "s.yaml:31:21: space.zero_stage", "integer"));
  EXPECT_TRUE(reports(with("recompute: some"), "s.yaml:31:20: space.recompute", "unknown value"));
  EXPECT_TRUE(
      reports(with("rank_order: tp-dp"), "s.yaml:31:21: space.rank_order", "each of tp, cp, dp and pp once"));
  EXPECT_TRUE(reports(with("schedule: [1f1b, 1f1b]"), "s.yaml:31:26: space.schedule", "twice"));
  EXPECT_TRUE(reports(with("microbatch_size: []"), "s.yaml:31:26: space.microbatch_size", "empty"));
}

TEST(Space, AxesWithoutEffect) {
  const auto with = [](const std::string& space) { return bad(training("space: {" + space + "}\n")); };
  EXPECT_TRUE(reports(with("pipeline_parallel: 2, virtual_stages: 2"), "s.yaml:31:47: space.virtual_stages",
                      "without interleaved"));
  EXPECT_TRUE(
      reports(with("sequence_parallel: true"), "s.yaml:31:28: space.sequence_parallel", "tensor_parallel"));
  EXPECT_TRUE(
      reports(with("tensor_parallel: 16, zero_stage: [0, 1]"), "s.yaml:31:42: space.zero_stage", "only 1"));
  EXPECT_TRUE(reports(with("schedule: gpipe"), "s.yaml:31:19: space.schedule", "pipeline_parallel"));
  // 3 never divides 16, so the tensor degree that remains is 1.
  EXPECT_TRUE(reports(with("tensor_parallel: [1, 3], sequence_parallel: [false, true]"),
                      "s.yaml:31:53: space.sequence_parallel", "only 1"));
  EXPECT_TRUE(
      reports(bad(inference("space: {zero_stage: 0}\n")), "s.yaml:31:21: space.zero_stage", "in inference"));
  EXPECT_EQ(good(training("space: {sequence_parallel: false, zero_stage: 0, schedule: 1f1b}\n")).gpus, 16);
}

TEST(Space, AxesOfThePoolThatPrefills) {
  const auto space = [](const std::string& text) { return inference("space: {" + text + "}\n"); };
  const Study study = good(space("prefill_gpus: [0, 4, 8], prefill_tensor_parallel: [2, 4]"));
  EXPECT_EQ(study.space.prefill_gpus, (Degrees{0, 4, 8}));
  EXPECT_EQ(study.space[PlanKey::prefill_tensor].values, (Degrees{2, 4}));
  EXPECT_EQ(study.space[PlanKey::prefill_pipeline].values, Degrees{1});
  const auto says = [&](const std::string& text, const std::string& key, const std::string& message) {
    EXPECT_TRUE(reports(bad(space(text)), key, message)) << text;
  };
  const std::string gpus = "s.yaml:31:23: space.prefill_gpus";
  says("prefill_gpus: 16", gpus, "15");
  says("prefill_gpus: 6, prefill_tensor_parallel: 4", gpus, "6 GPUs make no whole replicas");
  says("prefill_gpus: 4, tensor_parallel: 8", gpus,
       "with 4 of 16 GPUs to prefill, no plan fills the 12 GPUs");
  // 8 and 8 leave nothing, but each of them has plans with another value.
  good(space("prefill_gpus: [4, 8], ffn_gpus: [0, 8], prefill_tensor_parallel: [1]"));
  says("prefill_gpus: [4, 8], ffn_gpus: 12", gpus, "with 4 of 16 GPUs to prefill and 12 for experts alone");
  says("prefill_gpus: 8, ffn_gpus: [0, 8]", "s.yaml:31:36: space.ffn_gpus", "none is left to decode");
  // Of numbers of GPUs one is enough.
  good(replaced(space("prefill_gpus: 4, tensor_parallel: 4, data_parallel: [1]"), "gpus: 16",
                "gpus: [8, 16]"));
  good(replaced(space("tensor_parallel: 8, data_parallel: 1"), "gpus: 16", "gpus: [8, 16]"));
  // With a pool of one the other two are a replica; without one nothing fills three.
  const std::string three =
      replaced(space("tensor_parallel: 2, prefill_gpus: [0, 1]"), "gpus: 16", "gpus: 3");
  EXPECT_EQ(good(three).space.prefill_gpus, (Degrees{0, 1}));
  EXPECT_TRUE(reports(bad(replaced(three, "[0, 1]", "[0]")), "s.yaml:31:8: space", "no plan fills the 3"));
  says("prefill_tensor_parallel: 2", "s.yaml:31:34: space.prefill_tensor_parallel", "without prefill_gpus");
  EXPECT_TRUE(reports(bad(training("space: {prefill_gpus: 8}\n")), "s.yaml:31:23: space.prefill_gpus",
                      "has no effect in training"));
}

TEST(Space, GpusThatNoPlanFills) {
  const std::string at = "s.yaml:31:8: space";
  EXPECT_TRUE(reports(
      bad(training("space: {tensor_parallel: 2, data_parallel: [1, 4]}\n")), at,
      "no plan fills the 16 GPUs: no product of degrees equals 16 (tensor_parallel 2, context_parallel "
      "1, pipeline_parallel 1, data_parallel [1, 4])"));
  EXPECT_TRUE(reports(bad(training("space: {tensor_parallel: 3}\n")), at, "data_parallel filling"));
}

}  // namespace
}  // namespace shardscape::sweep
