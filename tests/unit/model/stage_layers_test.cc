#include "engine/model/stage_layers.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/model/parameters.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

/// The kinds of all blocks in order, as digits.
std::string text(const StageLayers& layers) {
  std::string kinds;
  layers.each([&](std::size_t kind) { kinds += std::to_string(kind); });
  return kinds;
}

StageLayers two_kinds() {  // 3 blocks of kind 1, then 4 of kind 0
  StageLayers layers(1, 3);
  layers.add(0, 4);
  return layers;
}

TEST(StageLayers, KeepTheirOrder) {
  EXPECT_EQ(text(two_kinds()), "1110000");
  EXPECT_EQ(two_kinds().count(), 7);
  EXPECT_EQ(text({}), "");
  EXPECT_EQ(text(StageLayers(2, 0)), "");
}

TEST(StageLayers, AddUp) {
  StageLayers layers = two_kinds();
  layers += StageLayers(0, 2);
  EXPECT_EQ(text(layers), "111000000");
  EXPECT_EQ(layers.further(), 0);
  StageLayers more(1, 1);
  more.add_further(2);
  layers += more;
  EXPECT_EQ(text(layers), "1111000000");
  EXPECT_EQ(layers.further(), 2);
  EXPECT_EQ(layers.count(), 10);
}

TEST(StageParameters, BlocksCountByTheirKind) {
  StageParameters parameters;
  parameters.block[0] = {ParallelGroup::data_shard, {100, 3, Bytes(200), Bytes(10)}};
  parameters.block[1] = {ParallelGroup::data_shard, {7, 2, Bytes(14), Bytes(1)}};
  const Parameters sum = parameters.of_blocks(two_kinds()).total();
  EXPECT_EQ(sum.count, 4 * 100 + 3 * 7);
  EXPECT_EQ(sum.tensors, 4 * 3 + 3 * 2);
  EXPECT_EQ(sum.weights, Bytes(4 * 200 + 3 * 14));
  EXPECT_EQ(sum.copies, Bytes(4 * 10 + 3 * 1));
}

TEST(StageParameters, TensorsOfABlock) {
  // QKV, output, gate, up, down, two RMSNorms; GPT: QKV, output, in, out, their biases, two LayerNorms of
  // two.
  const auto tensors = [](const ModelSpec& model) {
    return stage_parameters(model, policy_of(PolicyName::bf16, Phase::training), {}).block[0].total().tensors;
  };
  EXPECT_EQ(tensors(test::llama(1, 64, 8, 8, 96, 100)), 5 + 2);
  EXPECT_EQ(tensors(test::gpt(1, 64, 8, 100, 32)), 4 + 4 + 4);
}

}  // namespace
}  // namespace shardscape::model
