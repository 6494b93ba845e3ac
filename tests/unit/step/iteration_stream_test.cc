// Does an iteration of a server run its layers and messages in the order in which its stages hold them?
#include "engine/step/serving/iteration_stream.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

constexpr double kMany = 8;  ///< tokens that two half batches share

/// Four layers of which the first has no experts; the others deal theirs over four replicas.
Setting mixed_setting() {
  Setting s;
  s.model = test::llama(4, 1024, 16, 16, 4096, 32000);
  s.model.moe = MixtureOfExperts{.experts = 16, .top_k = 4, .expert_ffn_hidden = 512};
  s.model.moe->first_dense_layers = 1;
  s.system.device = test::round_device();
  s.system.fabric = test::crossbar(4, 5e9);
  s.system.stack = test::plain_stack();
  s.system.stack.serving.two_batch_overlap = true;
  s.workload = test::inference(800, 100, 32);
  return s;
}

/// Writes down what it is told.
struct Notes {
  const step::IterationStream& stream;
  double tokens = kMany;
  std::string text = {};

  void end(step::LayerKind layer) { text += layer == step::kHeadLayer ? "head " : "embedding "; }
  void blocks(const model::StageLayers& layers) {
    stream.blocks(
        layers, tokens,
        [&](std::size_t kind, std::int32_t count) {
          text += std::to_string(count) + " of " + std::to_string(kind) + " ";
        },
        [&](std::size_t kind, std::size_t previous, step::PlaceInRun place) {
          text += "halves of " + std::to_string(kind) + " behind " + std::to_string(previous);
          text += place.first ? ", first" : "";
          text += place.last ? ", last " : " ";
        });
  }
  void pass_on(std::size_t stage, bool waits) {
    text += (waits ? "send, wait " : "send ") + std::to_string(stage) + " ";
  }
  void tokens_back() { text += "tokens"; }
};

struct Deployment {
  Setting setting = mixed_setting();
  ParallelPlan plan = test::plan_of(1, 1, 2, 4);
  std::vector<model::StageLayers> layers;

  Deployment() {
    plan.expert = 4;
    model::StageLayers first;
    first.add(0, 1);
    first.add(1, 2);
    layers = {first, model::StageLayers(1, 1)};
  }
  [[nodiscard]] std::vector<std::string> stages(double tokens, double rows) const {
    step::TokenCosts costs(setting, plan);
    const step::IterationStream stream({setting, plan, layers, {}}, costs);
    std::vector<std::string> texts;
    for (std::size_t stage = 0; stage < layers.size(); ++stage) {
      Notes notes{stream, tokens};
      stream.stage(stage, rows, notes);
      texts.push_back(notes.text);
    }
    return texts;
  }
};

TEST(IterationStream, ReadsWholeBlocksByTheirKinds) {
  Deployment d;
  const std::vector<std::string> one_token = {"embedding 1 of 0 2 of 1 send, wait 0 ", "1 of 1 head tokens"};
  EXPECT_EQ(d.stages(1, 1), one_token);  // a single token is not split
  d.setting.system.stack.serving.two_batch_overlap = false;
  EXPECT_EQ(d.stages(kMany, kMany), one_token);
}

// Halves of a stage form a run between its other layers; the layer before the first is none of it.
TEST(IterationStream, ReadsHalfBatchesLayerByLayer) {
  EXPECT_EQ(Deployment().stages(kMany, kMany),
            (std::vector<std::string>{
                "embedding 1 of 0 halves of 1 behind 1, first halves of 1 behind 1, last send, wait 0 ",
                "halves of 1 behind 1, first, last head tokens"}));
}

TEST(IterationStream, HasNoHeadWhereNoSequenceGetsATokenAndWaitsForNoAsynchronousMessage) {
  Deployment d;
  d.setting.system.stack.serving.two_batch_overlap = false;
  d.setting.system.stack.communication.pipeline_async = true;
  EXPECT_EQ(d.stages(kMany, 0),
            (std::vector<std::string>{"embedding 1 of 0 2 of 1 send 0 ", "1 of 1 tokens"}));
}

// Half of the tokens in each of two batches, the larger half of an odd number.
TEST(IterationStream, SplitsTokensOfBlocksThatDealThem) {
  const Deployment d;
  step::TokenCosts costs(d.setting, d.plan);
  const step::IterationStream stream({d.setting, d.plan, d.layers, {}}, costs);
  const auto dense = stream.work_of(step::TokenTable::decode, 0, 7),
             dealt = stream.work_of(step::TokenTable::decode, 1, 7);
  EXPECT_EQ(dense.batches, 1);
  EXPECT_EQ(dense.tokens, 7);
  EXPECT_EQ(dealt.batches, 2);
  EXPECT_EQ(dealt.tokens, 4);
}

}  // namespace
}  // namespace shardscape
