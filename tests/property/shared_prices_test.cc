// Prices of collectives that the threads of a sweep share: the files are those of evaluators that share nothing.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "sweep/runner/evaluator.h"
#include "sweep/runner/shared_networks.h"
#include "tests/support/datasets_equal.h"
#include "tests/unit/runner/sweep_fixture.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

/// Evaluates one setting alone, and shares nothing with others.
class LonelyEvaluator final : public Evaluator {
 public:
  explicit LonelyEvaluator(const Setting& setting) : simulator_(setting) {}
  Prediction evaluate(const ParallelPlan& plan) override { return simulator_.run(plan); }
  Prediction evaluate_again(const FaultSet& faults) override { return simulator_.rerun(faults); }

 private:
  Simulator simulator_;
};

void sweep_shared(const SweepJob& job, const std::filesystem::path& output, int threads,
                  EvaluatorFactory factory) {
  results::SegmentStore store =
      results::SegmentStore::create(results::parts_folder(output), job.manifest(example_run()));
  SweepOptions options;
  options.threads = threads;
  options.evaluator = std::move(factory);
  ASSERT_TRUE(run_sweep(job, store, options).complete);
  store.scan();
  results::assemble(std::move(store), output, example_run());
}

TEST(SharedPrices, LeaveTheFileAsItIsForAnyNumberOfThreads) {
  // Settings that share links (devices, batches), shares of links or neither, in turn; contended groups that are
  // simulated; sick links.
  const Study study = good(training(R"(space:
  tensor_parallel: [1, 2, 4]
  context_parallel: [1, 2]
  pipeline_parallel: [1, 2, 4]
  data_parallel: fill
  zero_stage: [1, 3]
  schedule: [1f1b]
  rank_order: [tp-cp-dp-pp, pp-dp-tp-cp, dp-tp-cp-pp]
hardware:
  device.hbm.bandwidth_per_stack: [0.5 TB/s, 1 TB/s]
  fabric.rail-a.bandwidth: [25 GB/s, 50 GB/s]
  stack.communication.scale_out_fraction: [0.5, 0.9]
faults:
  kind: soft_link
  samples: 3
  derate: {distribution: normal, mean: 0.5, std: 0.1, min: 0.05, max: 1.0}
  placement: uniform_links
  seed: 42
)"));
  const SweepJob job(study);
  ASSERT_GT(job.space().size(), 500U);
  const ScratchFolder folder;
  sweep_shared(job, folder / "alone.h5", 1, [](const Setting& setting, PlacementChoice) {
    return std::make_unique<LonelyEvaluator>(setting);
  });
  for (const int threads : {1, 4}) {
    const std::string name = std::to_string(threads) + ".h5";
    sweep_shared(job, folder / name, threads, simulator_factory());
    std::string difference;
    EXPECT_TRUE(test::datasets_equal(folder / "alone.h5", folder / name, &difference)) << difference;
  }
}

TEST(SharedPrices, AreOfOneFabricAndShareOfItsLinks) {
  const System system = example_study().systems.front();
  FabricSpec faster = system.fabric;
  faster.dimensions.front().bandwidth = BytesPerSecond(2e11);
  const auto networks = shared_networks();
  const auto one = networks->network_for(system.fabric, {1, 1}),
             again = networks->network_for(system.fabric, {1, 1});
  const auto slower = networks->network_for(system.fabric, {1, 0.5}),
             other = networks->network_for(faster, {1, 1});
  EXPECT_EQ(one.curves, again.curves);
  EXPECT_EQ(one.fabric, again.fabric);
  EXPECT_EQ(one.fabric, slower.fabric);
  EXPECT_NE(one.curves, slower.curves);
  EXPECT_NE(one.fabric, other.fabric);
  EXPECT_NE(one.curves, other.curves);
  // What nobody has is forgotten when it has not been asked for lately; what someone has is not.
  const std::weak_ptr<network::CurveStore> dropped = networks->network_for(system.fabric, {0.5, 0.5}).curves;
  EXPECT_FALSE(dropped.expired());
  for (int i = 2; i < 20; ++i) (void)networks->network_for(system.fabric, {1, 1.0 / i});
  EXPECT_TRUE(dropped.expired());
  EXPECT_EQ(networks->network_for(system.fabric, {1, 1}).curves, one.curves);
}

}  // namespace
}  // namespace shardscape::sweep
