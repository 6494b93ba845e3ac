// Do partition rules lay layers on stages and chunks as worked out by hand and as published, and is no chunk fuller
// than it must be?
#include "engine/model/partition.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "engine/spec/pipeline_layout.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

using Layers = std::vector<std::int32_t>;

/// A block of 12 h^2 = 12 * 64^2 = 49152 parameters and a head of vocabulary * 64.
ModelSpec gpt_of(std::int64_t layers, std::int64_t vocabulary) {
  return test::gpt(layers, 64, 4, vocabulary, 128);
}

/// Fills `layers` with the number of blocks of each stage.
bool partition(const ModelSpec& model, PartitionRule rule, std::int32_t stages, std::int32_t virtual_stages,
               Layers& layers) {
  StackProfile stack;
  stack.partition = rule;
  Partition split;
  const bool fits = partition_layers(model, stack, {stages, virtual_stages}, split);
  layers.clear();
  for (const StageLayers& stage : split.stages) layers.push_back(stage.count());
  return fits;
}

/// The chunks in the order in which a microbatch meets them, as a layout; "" where the rule cannot be met.
std::string laid_out(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                     std::int32_t virtual_stages, const std::string& layout = "") {
  StackProfile stack;
  stack.partition = rule;
  stack.pipeline_layout = layout;
  Partition split;
  if (!partition_layers(model, stack, {stages, virtual_stages, Phase::training}, split)) return "";
  PipelineLayout found;
  for (std::int32_t c = 0; c < stages * virtual_stages; ++c) {
    const StageLayers& chunk =
        split.chunks[static_cast<std::size_t>(c % stages * virtual_stages + c / stages)];
    found.stages.push_back({chunk.count(), chunk.further()});
  }
  for (std::size_t s = 0; s < split.stages.size(); ++s) {  // chunks add up to stages
    StageLayers sum;
    for (std::size_t c = 0; c < static_cast<std::size_t>(virtual_stages); ++c)
      sum += split.chunks[s * static_cast<std::size_t>(virtual_stages) + c];
    EXPECT_EQ(sum.count(), split.stages[s].count());
    EXPECT_EQ(sum.further(), split.stages[s].further());
  }
  return found.text();
}

/// Layers of which each has experts, and modules of further tokens.
ModelSpec modules_of(std::int64_t layers, std::int64_t modules) {
  ModelSpec model = gpt_of(layers, 100);
  model.moe.emplace();
  model.moe->experts = 8;
  model.moe->top_k = 2;
  model.moe->expert_ffn_hidden = 64;
  model.moe->mtp_layers = modules;
  return model;
}

TEST(PartitionUniform, EqualStages) {
  Layers layers;
  EXPECT_TRUE(partition(gpt_of(12, 100), PartitionRule::uniform, 4, 1, layers));
  EXPECT_EQ(layers, (Layers{3, 3, 3, 3}));
  EXPECT_TRUE(partition(gpt_of(12, 100), PartitionRule::uniform, 1, 1, layers));
  EXPECT_EQ(layers, Layers{12});
}

TEST(PartitionUniform, NeedsDivisibility) {
  Layers layers;
  EXPECT_FALSE(partition(gpt_of(12, 100), PartitionRule::uniform, 5, 1, layers));
  EXPECT_FALSE(partition(gpt_of(12, 100), PartitionRule::uniform, 4, 2, layers));
  EXPECT_TRUE(partition(gpt_of(12, 100), PartitionRule::uniform, 4, 3, layers));
  EXPECT_EQ(layers, (Layers{3, 3, 3, 3}));  // all chunks of a stage together
}

TEST(PartitionWithEnds, EmbeddingAndLossFillAnEvenSplit) {
  // Llama 3.1 405B on 8 stages of 8 chunks: (126 + 2) / 64 = 2 layers in each chunk, the embedding one of those of
  // the first, the loss one of those of the last.
  Layers layers;
  ASSERT_TRUE(partition(gpt_of(126, 100), PartitionRule::with_ends, 8, 8, layers));
  EXPECT_EQ(layers, (Layers{15, 16, 16, 16, 16, 16, 16, 15}));
  // Where the layers divide, ends are not counted; 9 stages of 7 chunks.
  ASSERT_TRUE(partition(gpt_of(126, 100), PartitionRule::with_ends, 9, 7, layers));
  EXPECT_EQ(layers, Layers(9, 14));
  ASSERT_TRUE(partition(gpt_of(6, 100), PartitionRule::with_ends, 4, 2, layers));
  EXPECT_EQ(layers, (Layers{1, 2, 2, 1}));  // the first chunk is the embedding alone, the last the loss
  EXPECT_FALSE(partition(gpt_of(7, 100), PartitionRule::with_ends, 4, 1, layers));
}

TEST(PartitionBalanced, HeadOfOneBlock) {
  // 768 * 64 = 49152: the head costs exactly one block. 7 blocks + head = 8 units over 2 stages: 4 and 3 +
  // head.
  Layers layers;
  ASSERT_TRUE(partition(gpt_of(7, 768), PartitionRule::balanced, 2, 1, layers));
  EXPECT_EQ(layers, (Layers{4, 3}));
}

TEST(PartitionBalanced, BlockThatCrossesTheBorderStays) {
  // 8 blocks + head = 9 units over 4 stages: shares end at 2.25, 4.5, 6.75. Blocks that start at 0, 1, 2 go
  // to stage 0; 3, 4 to stage 1; 5, 6 to stage 2; 7 to stage 3.
  Layers layers;
  ASSERT_TRUE(partition(gpt_of(8, 768), PartitionRule::balanced, 4, 1, layers));
  EXPECT_EQ(layers, (Layers{3, 2, 2, 1}));
}

TEST(PartitionBalanced, LargeHeadEmptiesTheLastStages) {
  // Head = 8 blocks: 4 + 8 = 12 units over 3 stages of 4: all blocks on stage 0.
  Layers layers;
  ASSERT_TRUE(partition(gpt_of(4, 8 * 768), PartitionRule::balanced, 3, 1, layers));
  EXPECT_EQ(layers, (Layers{4, 0, 0}));
}

TEST(PartitionBalanced, VirtualStagesArePartitionedEvenly) {
  Layers layers;
  EXPECT_TRUE(partition(gpt_of(8, 768), PartitionRule::balanced, 2, 2, layers));
  EXPECT_EQ(layers, (Layers{4, 4}));
}

TEST(PartitionBalanced, ChunksAreFilledInOrderWhereTheyDoNotDivide) {
  // 7 blocks and a head of one: 8 units over 4 chunks of 2. Chunks 0 and 2 lie on stage 0, 1 and 3 on
  // stage 1.
  Layers layers;
  EXPECT_FALSE(partition(gpt_of(7, 768), PartitionRule::uniform, 2, 2, layers));
  ASSERT_TRUE(partition(gpt_of(7, 768), PartitionRule::balanced, 2, 2, layers));
  EXPECT_EQ(layers, (Layers{4, 3}));
  // 126 blocks and a head of 0.66 over 128 chunks of 0.98953: block b starts at b and falls to chunk
  // floor(b / 0.98953). No block starts in chunk 95 (94.005 to 94.995) and none in chunk 127 (from 125.67):
  // both are of stage 15.
  ASSERT_TRUE(partition(gpt_of(126, 507), PartitionRule::balanced, 16, 8, layers));
  EXPECT_EQ(layers, (Layers{8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 6}));
}

TEST(PartitionUneven, IsThatOfPublishedRecipes) {
  // DeepSeek-V3, 61 layers and a module of further tokens: the layouts of Megatron Bridge for 4, 8 and 16 chunks.
  const ModelSpec deepseek = modules_of(61, 1);
  constexpr auto kUneven = PartitionRule::uneven;
  EXPECT_EQ(laid_out(deepseek, kUneven, 4, 1),
            "E" + std::string(16, 't') + "|(" + std::string(16, 't') + "|)*2" + std::string(13, 't') + "mL");
  EXPECT_EQ(laid_out(deepseek, kUneven, 8, 1), "Etttttttt|(tttttttt|)*6tttttmL");
  EXPECT_EQ(laid_out(deepseek, kUneven, 16, 1), "Etttt|(tttt|)*14tmL");
  EXPECT_EQ(laid_out(deepseek, kUneven, 8, 2), "Etttt|(tttt|)*14tmL");
  // Kimi K2, without the module: likewise.
  EXPECT_EQ(laid_out(modules_of(61, 0), kUneven, 16, 1), "Etttt|(tttt|)*14tL");
  // Two units in each of 32 chunks would leave the last one none of 63: the first 31 of them have two.
  EXPECT_EQ(laid_out(deepseek, kUneven, 16, 2), "Ett|(tt|)*29tm|L");
}

TEST(PartitionWithEnds, ModelsWithExpertsAreLaidOut) {
  EXPECT_EQ(laid_out(modules_of(61, 1), PartitionRule::with_ends, 16, 1), "Etttt|(tttt|)*14tmL");
  EXPECT_EQ(laid_out(gpt_of(61, 100), PartitionRule::with_ends, 16, 1), "");
}

TEST(PartitionUneven, IsEvenWhereThatCanBeMet) {
  constexpr auto kUneven = PartitionRule::uneven;
  EXPECT_EQ(laid_out(gpt_of(12, 100), kUneven, 4, 1), "Ettt|(ttt|)*2tttL");
  EXPECT_EQ(laid_out(gpt_of(126, 100), kUneven, 8, 8), "Et|(tt|)*62tL");
  EXPECT_EQ(laid_out(gpt_of(7, 100), kUneven, 4, 1), "Ett|(tt|)*2tL");
  EXPECT_EQ(laid_out(gpt_of(3, 100), kUneven, 5, 1), "E|(t|)*3L");
  EXPECT_EQ(laid_out(gpt_of(3, 100), kUneven, 6, 1), "");
}

TEST(PartitionUneven, DealsOneOrTwoLayersToEachOfManyChunks) {
  // Qwen3 235B: 94 layers and the loss are 95 units over 64 chunks, of which only that of the loss may hold no layer.
  EXPECT_EQ(laid_out(modules_of(94, 0), PartitionRule::uneven, 16, 4), "Ett|(tt|)*30(t|)*32L");
}

TEST(PartitionUneven, NoChunkHasMoreUnitsThanItMust) {
  for (std::int64_t layers = 1; layers <= 30; ++layers) {
    for (std::int64_t modules = 0; modules <= 2; ++modules) {
      const ModelSpec model = modules_of(layers, modules);
      for (std::int32_t stages = 1; stages <= layers; ++stages) {
        const auto layout = read_layout(laid_out(model, PartitionRule::uneven, stages, 1));
        ASSERT_TRUE(layout) << layers << ' ' << modules << ' ' << stages;
        EXPECT_EQ(layout->layers(), layers);
        EXPECT_EQ(layout->further(), modules);
        // Where layers (or those and the ends) divide, modules come on top.
        if (layers % stages == 0 || (layers + 2) % stages == 0) continue;
        const std::int64_t most = (layers + modules + 1 + stages - 1) / stages;
        for (const PipelineLayout::Stage& stage : layout->stages)
          EXPECT_LE(stage.layers + stage.further + (&stage == &layout->stages.back() ? 1 : 0), most);
      }
    }
  }
}

TEST(PartitionLayout, IsTakenAtItsWord) {
  const ModelSpec deepseek = modules_of(61, 1);
  const std::string published = "Et*3|(tt|)*29,m|L";
  EXPECT_EQ(laid_out(deepseek, PartitionRule::uniform, 16, 2, published), "Ettt|(tt|)*29m|L");
  EXPECT_EQ(laid_out(deepseek, PartitionRule::uniform, 16, 1, published), "");  // 32 stages
  EXPECT_EQ(laid_out(modules_of(61, 0), PartitionRule::uniform, 16, 2, published), "");
  EXPECT_EQ(laid_out(modules_of(60, 1), PartitionRule::uniform, 16, 2, published), "");
  // Chunk 31 of 16 x 2 is the last of rank 15; the module is the last chunk of rank 14.
  StackProfile stack;
  stack.pipeline_layout = published;
  Partition split;
  ASSERT_TRUE(partition_layers(deepseek, stack, {16, 2, Phase::training}, split));
  EXPECT_EQ(split.stages[0].count(), 5);
  EXPECT_EQ(split.stages[14].further(), 1);
  EXPECT_EQ(split.stages[14].count(), 2);
  EXPECT_EQ(split.stages[15].count(), 2);
  // Servers have no such modules, and go by the rule.
  stack.partition = PartitionRule::uneven;
  ASSERT_TRUE(partition_layers(deepseek, stack, {16, 1, Phase::inference}, split));
  EXPECT_EQ(split.stages[15].count(), 1);
  EXPECT_EQ(split.stages[15].further(), 0);
}

TEST(PartitionBalanced, ChunksHoldWhatTheRuleGivesThem) {
  // 7 blocks and a head of one over 4 chunks: two in each, the last with the head.
  EXPECT_EQ(laid_out(gpt_of(7, 768), PartitionRule::balanced, 2, 2), "Ett|(tt|)*2tL");
}

TEST(PartitionBalanced, CoversAllLayersAndNeverGrows) {
  // Brute force over shapes: a block belongs to the stage in whose share of the total its start lies, where
  // the stages share [0, blocks + head) evenly. Integers only: block = 768 units, head = vocabulary units.
  Layers layers;
  for (std::int64_t count = 1; count <= 40; ++count) {
    for (const std::int64_t vocabulary : {1, 500, 768, 3000, 20000}) {
      for (std::int32_t stages = 1; stages <= 12; ++stages) {
        SCOPED_TRACE(testing::Message()
                     << count << " layers, vocabulary " << vocabulary << ", " << stages << " stages");
        ASSERT_TRUE(partition(gpt_of(count, vocabulary), PartitionRule::balanced, stages, 1, layers));
        Layers expected(static_cast<std::size_t>(stages), 0);
        const std::int64_t total = count * 768 + vocabulary;
        for (std::int64_t layer = 0; layer < count; ++layer)
          ++expected[static_cast<std::size_t>(layer * 768 * stages / total)];
        EXPECT_EQ(layers, expected);
        EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), 0), count);
        EXPECT_GT(layers.front(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::model
