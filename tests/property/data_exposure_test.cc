// Is what gradients expose the end of a queue in which every bucket waits for its own gradients? Random stages, chunks
// and buckets, served one by one.
#include "engine/step/training/data_exposure.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/partition.h"
#include "engine/step/feasibility.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/price_layers.h"
#include "engine/step/plan_pipeline.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::step {
namespace {

/// The layers of a chunk in the order of backward: the kind of each.
std::vector<LayerKind> backward_layers(const TrainingStep& in, std::int32_t stage, std::int32_t chunk) {
  std::vector<LayerKind> layers;
  for (const LayerRun& run : in.chunk_layers(stage, chunk)) {
    if (in.cuts() && !in.cuts(run.kind)) continue;
    layers.insert(layers.begin(), static_cast<std::size_t>(run.count), run.kind);
  }
  return layers;
}

/// When each layer of the last backward ends, chunk after chunk: one after the other from where the host has begun the
/// pass of the chunk (pass_lead()), none after its end, the last one with it; blocks that only compute weight gradients
/// share the pass.
std::vector<double> layer_ends(const TrainingStep& in, std::int32_t stage, const LastBackward& last) {
  std::vector<double> ends;
  for (auto chunk = static_cast<std::int32_t>(last.ends.size()) - 1; chunk >= 0; --chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const double end = last.ends[c], pass = last.pass(c);
    const std::vector<LayerKind> layers = backward_layers(in, stage, chunk);
    double done = pass_lead(in).value();
    for (std::size_t i = 0; i < layers.size(); ++i) {
      done += last.layer[layers[i]].value();
      const double share = static_cast<double>(i + 1) / static_cast<double>(layers.size());
      const double in_pass = in.cuts() ? share * pass : i + 1 == layers.size() ? pass : std::min(done, pass);
      ends.push_back(end - pass + in_pass);
    }
  }
  return ends;
}

/// The end of the last bucket, each of which is sent when its gradients are whole, the gate is open and the one before
/// it has arrived.
double last_arrival(const TrainingStep& in, std::int32_t stage, const LastBackward& last,
                    const GradientTraffic& gradients) {
  // The passes, chunk after chunk from the last one on, laid end to end: the gate opens so far into them.
  double sum = 0;
  for (std::size_t c = 0; c < last.ends.size(); ++c) sum += last.pass(c);
  const double open = (1 - in.setting.system.stack.communication.data_overlap) * sum;
  double gate = 0, begin = 0;
  for (std::size_t c = last.ends.size(); c-- > 0; begin += last.pass(c)) {
    if (c > 0 && open >= begin + last.pass(c) - 1e-9 * last.pass(c)) continue;
    gate = last.ends[c] - last.pass(c) + (open - begin);
    break;
  }
  const double end = last.ends[0] + last.deferred.value();
  const std::vector<double> layers = layer_ends(in, stage, last);
  std::vector<std::pair<double, double>> buckets;  // when it is whole, seconds
  for (const GroupGradients& group : gradients) {
    const GradientShares shares(in, stage, group.copies);
    for (double bucket = 1; bucket <= group.buckets; ++bucket) {
      double ready = last.deferred > Seconds(0) ? end : gate;
      for (std::size_t j = layers.size(); j > 0; --j) {
        if (whole_buckets(group.buckets, shares.after(static_cast<std::int32_t>(j))) >= bucket)
          ready = layers[j - 1];
      }
      buckets.emplace_back(ready, group.time.value() / group.buckets);
    }
  }
  std::ranges::sort(buckets);
  double free = gate;
  for (const auto& [ready, seconds] : buckets) free = std::max(free, ready) + seconds;
  return free;
}

/// Any numbers that a pipeline may come to: chunks that end one after the other.
LastBackward random_backward(const TrainingStep& in, std::int32_t stage, test::ScenarioGenerator& generator,
                             std::vector<double>& ends, std::vector<schedule::StageTime>& passes) {
  LastBackward last;
  last.layer[kHeadLayer] = Seconds(in.last(stage) ? generator.between(0.1, 3) : 0);
  last.layer[kEmbeddingLayer] = Seconds(in.first(stage) ? generator.between(0.1, 3) : 0);
  last.layer[kFurtherLayer] = Seconds(generator.between(0.5, 2));
  last.layer[block_layer(0)] = Seconds(generator.between(0.5, 2));
  last.cut = in.cuts();
  const double mean = generator.between(0.5, 20);
  passes.resize(static_cast<std::size_t>(in.pipeline.virtual_stages));
  for (schedule::StageTime& pass : passes) {
    pass.backward = mean * (generator.coin() ? 1 : generator.between(0.2, 3));
    pass.weight = pass.backward;
  }
  last.passes = passes;
  last.deferred = Seconds(in.last(stage) && in.deferred() > 0 ? generator.between(0.1, 5) : 0);
  ends.assign(static_cast<std::size_t>(in.pipeline.virtual_stages), 0);
  double end = 100;
  for (std::size_t chunk = ends.size(); chunk-- > 0;) {
    end += last.pass(chunk) * (generator.coin() ? 1 : generator.between(1, 4));
    ends[chunk] = end;
  }
  last.ends = ends;
  return last;
}

TEST(DataExposure, IsTheEndOfAQueueOfBuckets) {
  int compared = 0, hidden_in_part = 0, chunked = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(400); ++seed) {
    test::ScenarioGenerator generator(seed);
    Setting setting = generator.setting(Phase::training);
    setting.system.stack.communication.data_overlap =
        generator.pick({1.0, 0.9, 0.5, generator.between(0.01, 1)});
    const ParallelPlan plan = generator.plan(setting);
    SCOPED_TRACE(test::describe(seed, plan));
    model::Partition split;
    if (check_plan(setting, plan).status != Status::ok || plan.both_ways() ||
        !model::partition_layers(setting.model, setting.system.stack,
                                 {plan.pipeline, plan.virtual_stages, Phase::training}, split))
      continue;
    const LayerCosts costs = price_layers(setting, model::layer_key(plan, plan.microbatch));
    const TrainingStep in{setting,
                          plan,
                          costs,
                          split.stages,
                          split.chunks,
                          model::stage_parameters(setting.model, setting.policy(), plan, Phase::training),
                          pipeline_shape(setting, plan)};
    for (std::int32_t stage = 0; stage < plan.pipeline; ++stage) {
      std::vector<double> ends;
      std::vector<schedule::StageTime> passes;
      const LastBackward last = random_backward(in, stage, generator, ends, passes);
      GradientTraffic gradients;
      Seconds all;
      for (const auto& [copies, held] : in.parameters_of(stage)) {
        if (held.count <= 0) continue;
        gradients.push_back(
            {copies, static_cast<double>(1 + generator.below(30)), Seconds(generator.between(0, 60))});
        all += gradients.back().time;
      }
      const double end = last.ends[0] + last.deferred.value();
      const double expected = std::max(0.0, last_arrival(in, stage, last, gradients) - end);
      const double exposed = exposed_gradients(in, stage, last, gradients).value();
      EXPECT_NEAR(exposed, expected, 1e-12 * end) << "stage " << stage;
      const std::vector<double> left = gradients_left(in, stage, gradients);
      EXPECT_EQ(exposed_gradients(in, stage, last, left).value(), exposed) << "stage " << stage;
      ++compared;
      if (exposed < 0.99 * all.value()) ++hidden_in_part;
      if (ends.size() > 1) ++chunked;
    }
  }
  if (test::all_seeds()) {
    EXPECT_GT(compared, 200);
    EXPECT_GT(hidden_in_part, compared / 4);
    EXPECT_GT(chunked, 10);
  }
}

}  // namespace
}  // namespace shardscape::step
