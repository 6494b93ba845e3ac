#include "engine/model/partition.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

using Layers = std::vector<std::int32_t>;

/// A block of 12 h^2 = 12 * 64^2 = 49152 parameters and a head of vocabulary * 64.
ModelSpec gpt_of(std::int64_t layers, std::int64_t vocabulary) {
  return test::gpt(layers, 64, 4, vocabulary, 128);
}

/// Blocks of each stage.
bool partition(const ModelSpec& model, PartitionRule rule, std::int32_t stages, std::int32_t virtual_stages,
               Layers& layers) {
  std::vector<StageLayers> list;
  const bool fits = partition_layers(model, rule, stages, virtual_stages, list);
  layers.clear();
  for (const StageLayers& stage : list) layers.push_back(stage.count());
  return fits;
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

TEST(PartitionBalanced, ChunksOfAStageAddUpToIt) {
  for (std::int32_t layers = 0; layers <= 20; ++layers) {
    for (std::int32_t chunks = 1; chunks <= 9; ++chunks) {
      const auto of = [&](std::int32_t c) {
        return layers_of_chunk(StageLayers(0, layers), chunks, c).count();
      };
      std::int32_t sum = 0;
      for (std::int32_t c = 0; c < chunks; ++c) sum += of(c);
      EXPECT_EQ(sum, layers);
      EXPECT_LE(of(0) - of(chunks - 1), 1);
    }
  }
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
