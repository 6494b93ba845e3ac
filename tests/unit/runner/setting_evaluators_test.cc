// Do points of settings that share an evaluator get the answer of their own setting?
#include "sweep/runner/setting_evaluators.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/runner/sweep_fixture.h"

namespace shardscape::sweep {
namespace {

/// The example's two machines, which serve loads of three sizes in two precisions: twelve settings.
Study serving_study() {
  Study study = example_study();
  study.workloads.clear();
  for (const std::int64_t concurrency : {1, 4, 16}) {
    for (const PolicyName precision : {PolicyName::bf16, PolicyName::fp8}) {
      WorkloadSpec workload;
      workload.phase = Phase::inference;
      workload.precision = precision;
      workload.prompt_tokens = 100;
      workload.output_tokens = 10;
      workload.concurrency = concurrency;
      study.workloads.push_back(workload);
    }
  }
  return study;
}

/// All of a setting that these differ in, in one number.
double mark_of(const Setting& setting) {
  return static_cast<double>(setting.workload.concurrency) +
         (setting.workload.precision == PolicyName::fp8 ? 0.5 : 0) +
         static_cast<double>(setting.workload.global_batch) +
         setting.system.device.hbm.bandwidth_per_stack.value() / 1e10;
}

class MarkingEvaluator final : public Evaluator {
 public:
  explicit MarkingEvaluator(const Setting& setting) : setting_(setting) {}
  Prediction evaluate(const ParallelPlan& /*plan*/) override {
    Prediction prediction;
    prediction.step_time = Seconds(mark_of(setting_));
    return prediction;
  }
  Prediction evaluate_again(const FaultSet& /*faults*/) override { return {}; }

 private:
  const Setting& setting_;
};

/// Counts the evaluators made while settings are asked for in some order; each has to give its own answer.
int made_for(const Study& study, const std::vector<std::uint64_t>& order) {
  int made = 0;
  const EvaluatorFactory factory = [&made](const Setting& setting, PlacementChoice) {
    ++made;
    return std::make_unique<MarkingEvaluator>(setting);
  };
  SettingEvaluators evaluators(study, factory);
  for (const std::uint64_t setting : order)
    EXPECT_EQ(evaluators.of(setting).evaluate({}).step_time.value(), mark_of(study.setting(setting)))
        << setting;
  return made;
}

TEST(SettingEvaluators, LoadsOfAMachineShareOne) {
  EXPECT_EQ(made_for(serving_study(), {0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 11}), 4);
}

TEST(SettingEvaluators, AMachineThatComesBackHasANewOne) {
  EXPECT_EQ(made_for(serving_study(), {0, 6, 0, 5, 11, 1, 3}), 6);
}

TEST(SettingEvaluators, OfTrainingOnlyTheLastIsKept) {
  EXPECT_EQ(made_for(example_study(), {0, 1, 0, 0, 3, 4, 5}), 6);
}

}  // namespace
}  // namespace shardscape::sweep
