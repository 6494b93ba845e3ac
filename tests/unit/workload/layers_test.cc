#include "engine/workload/layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/workload/partition.h"
#include "tests/support/settings.h"

namespace shardscape::workload {
namespace {

Setting setting_of(const ModelSpec& model, AttentionKernel attention = AttentionKernel::naive) {
  Setting setting;
  setting.model = model;
  setting.system = {test::a100(), test::nodes(8, 1), test::bare_stack()};
  setting.system.stack.attention = attention;
  setting.workload = test::training(2048, 8);
  return setting;
}

double saved(const Setting& setting, const LayerKey& key, std::int64_t s, Recompute recompute) {
  return saved_bytes(block_operators(setting, key, s, Mode::training), recompute, setting, key, s).value();
}

const Operator* find(const std::vector<Operator>& ops, std::string_view name) {
  const auto found = std::ranges::find(ops, name, &Operator::name);
  return found == ops.end() ? nullptr : &*found;
}

struct Shape {
  std::int64_t s, h, a;
  std::int32_t b;
};
const std::vector<Shape> kShapes = {{2048, 6144, 64, 4}, {2048, 12288, 96, 1}, {1024, 1024, 16, 3}};

// Korthikanti et al. 2022, table 2, bytes per layer in 16-bit: s b h (34 + 5 a s / h), and its variants.
class SavedBytes : public testing::TestWithParam<std::int32_t> {
 protected:
  template <class Check>
  static void for_each_shape(Check check) {
    for (const auto& [s, h, a, b] : kShapes) {
      const Setting setting = setting_of(test::gpt(2, h, a));
      const double sbh = static_cast<double>(s) * b * static_cast<double>(h);
      const double as_over_h = static_cast<double>(a * s) / static_cast<double>(h);
      check(setting, s, b, sbh, as_over_h);
    }
  }
};

TEST_P(SavedBytes, TensorParallel) {
  const double t = GetParam();
  for_each_shape([&](const Setting& setting, std::int64_t s, std::int32_t b, double sbh, double as_over_h) {
    const LayerKey key{GetParam(), 1, b, false};
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::none), sbh * (10 + 24 / t + 5 * as_over_h / t));
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::selective), sbh * (10 + 24 / t));
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::full), 2 * sbh);
  });
}

TEST_P(SavedBytes, TensorAndSequenceParallel) {
  const double t = GetParam();
  for_each_shape([&](const Setting& setting, std::int64_t s, std::int32_t b, double sbh, double as_over_h) {
    const LayerKey key{GetParam(), 1, b, true};
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::none), sbh / t * (34 + 5 * as_over_h));
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::selective), 34 * sbh / t);
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::full), 2 * sbh / t);
  });
}

// A context group holds its share of the tokens; the score matrix has s / c rows of s keys.
TEST_P(SavedBytes, ContextParallelDividesEverything) {
  const double c = GetParam();
  for_each_shape([&](const Setting& setting, std::int64_t s, std::int32_t b, double sbh, double as_over_h) {
    const LayerKey key{1, GetParam(), b, false};
    EXPECT_DOUBLE_EQ(saved(setting, key, s, Recompute::none), sbh / c * (34 + 5 * as_over_h));
  });
}

INSTANTIATE_TEST_SUITE_P(Degrees, SavedBytes, testing::Values(1, 2, 4, 8));

// Keeping the gathered inputs of the two column-parallel products (2 + 2 bytes) undoes their sharding.
TEST(SavedBytesVariants, KeepGatheredCostsTwoWholeInputs) {
  Setting setting = setting_of(test::gpt(2, 1024, 16));
  const LayerKey key{4, 1, 1, true};
  const double sharded = saved(setting, key, 2048, Recompute::none);
  setting.system.stack.keep_gathered = true;
  EXPECT_DOUBLE_EQ(saved(setting, key, 2048, Recompute::none) - sharded, 2 * 2 * 2048.0 * 1024 * (1 - 0.25));
}

// Flash: no score matrix, but an fp32 log-sum-exp per row and head: 34 s b h + 4 a s b.
TEST(SavedBytesVariants, FlashKeepsRowStatisticsInsteadOfScores) {
  const Setting setting = setting_of(test::gpt(2, 1024, 16), AttentionKernel::flash);
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 2, false}, 2048, Recompute::none),
                   2048.0 * 2 * (34 * 1024 + 4 * 16));
}

// Without dropout the three masks (1 byte each on residuals, 1 + 2 bytes per score) are gone: 32 sbh + 2 a
// s^2 b.
TEST(SavedBytesVariants, NoDropoutNoMasks) {
  ModelSpec model = test::gpt(2, 1024, 16);
  model.dropout = 0;
  EXPECT_DOUBLE_EQ(saved(setting_of(model), {1, 1, 1, false}, 512, Recompute::none),
                   512.0 * (32 * 1024 + 2 * 16 * 512));
}

/// Forward matrix FLOPs of an operator list; attention cores count the whole score matrix.
double matrix_flops(const std::vector<Operator>& ops) {
  double sum = 0;
  for (const Operator& op : ops) {
    if (op.kind == OperatorKind::gemm) sum += op.gemm.flops().value();
    if (op.kind == OperatorKind::attention) sum += 4 * op.attention.scores() * op.attention.head_dim;
  }
  return sum;
}

// Narayanan et al. 2021, appendix: forward of a layer 24 B s h^2 + 4 B s^2 h, of the head 2 B s h V; backward
// twice that; with a repeated forward of the layers F = 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)).
TEST(MatrixFlops, AreTheMegatronClosedForm) {
  for (const auto& [s, h, a, b] : kShapes) {
    const Setting setting = setting_of(test::gpt(24, h, a));
    const double l = 24, V = 51200, B = b;
    const auto sd = static_cast<double>(s), hd = static_cast<double>(h);
    const double layers = l * matrix_flops(block_operators(setting, {1, 1, b, false}, s, Mode::training));
    const double head = matrix_flops(head_operators(setting, {1, 1, b, false}, s, Mode::training));
    const double with_recompute = 96 * B * sd * l * hd * hd * (1 + sd / (6 * hd) + V / (16 * l * hd));
    EXPECT_NEAR(4 * layers + 3 * head, with_recompute, 1e-12 * with_recompute);
    const double model = 72 * B * sd * l * hd * hd * (1 + sd / (6 * hd) + V / (12 * l * hd));
    EXPECT_NEAR(B * model_flops_per_sequence(setting.model, s).value(), model, 1e-12 * model);
  }
}

// Tensor, sequence and context parallelism divide the work, they do not change it.
TEST(MatrixFlops, AreConservedByEveryDegree) {
  for (const ModelSpec& model : {test::gpt(2, 4096, 32), test::llama31_8b()}) {
    const Setting setting = setting_of(model, AttentionKernel::flash);
    const double whole = matrix_flops(block_operators(setting, {1, 1, 2, false}, 4096, Mode::training));
    for (const std::int32_t t : {1, 2, 8}) {
      for (const std::int32_t c : {1, 2, 4}) {
        const double rank = matrix_flops(block_operators(setting, {t, c, 2, t > 1}, 4096, Mode::training));
        EXPECT_NEAR(rank * t * c, whole, 1e-12 * whole) << t << ' ' << c;
      }
    }
  }
}

// Llama 3.1 70B on 16 tensor ranks: 8 KV heads, each held by two ranks; 4 query heads per rank; head_dim 128.
TEST(GroupedQueries, KvHeadsAreReplicatedBeyondTheirNumber) {
  const Setting setting = setting_of(test::llama31_70b(), AttentionKernel::flash);
  EXPECT_EQ(local_kv_heads(setting.model, 1), 8);
  EXPECT_EQ(local_kv_heads(setting.model, 8), 1);
  EXPECT_EQ(local_kv_heads(setting.model, 16), 1);
  const auto ops = block_operators(setting, {16, 1, 1, true}, 4096, Mode::training);
  const Operator* qkv = find(ops, "qkv_projection");
  ASSERT_NE(qkv, nullptr);
  EXPECT_EQ(qkv->gemm, (compute::GemmShape{4096, (4 + 2) * 128, 8192, 1}));
  const Operator* core = find(ops, "attention");
  ASSERT_NE(core, nullptr);
  EXPECT_EQ(core->attention.heads, 4);
  EXPECT_EQ(core->attention.kv_heads, 1);
  EXPECT_EQ(find(ops, "mlp_in")->gemm, (compute::GemmShape{4096, 2 * 28672 / 16, 8192, 1}));
  EXPECT_EQ(find(ops, "mlp_out")->gemm, (compute::GemmShape{4096, 8192, 28672 / 16, 1}));
}

struct Traffic {
  double all_reduce = 0, reduce_scatter = 0, all_gather = 0, ring = 0;
};

Traffic traffic(const std::vector<Operator>& ops) {
  Traffic sum;
  const auto add = [&](const CollectiveCall& call) {
    const double bytes = call.repeats * call.bytes.value();
    switch (call.op) {
      case network::CollectiveOp::all_reduce:
        sum.all_reduce += bytes;
        break;
      case network::CollectiveOp::reduce_scatter:
        sum.reduce_scatter += bytes;
        break;
      case network::CollectiveOp::all_gather:
        sum.all_gather += bytes;
        break;
      default:
        sum.ring += bytes;
    }
  };
  for (const Operator& op : ops) add(op.forward_comm), add(op.backward_comm);
  return sum;
}

// Shoeybi et al. 2019: four all-reduces of b s h elements per layer, two forward and two backward.
// Korthikanti et al. 2022: sequence parallelism turns each into an all-gather and a reduce-scatter, and
// gathers the two sharded inputs again in backward.
TEST(Collectives, TensorParallelBytesPerLayer) {
  Setting setting = setting_of(test::gpt(2, 1024, 16));
  const double bsh = 2.0 * 3 * 2048 * 1024;
  const Traffic plain = traffic(block_operators(setting, {8, 1, 3, false}, 2048, Mode::training));
  EXPECT_DOUBLE_EQ(plain.all_reduce, 4 * bsh);
  EXPECT_EQ(plain.all_gather + plain.reduce_scatter + plain.ring, 0);
  setting.system.stack.keep_gathered = true;
  const Traffic kept = traffic(block_operators(setting, {8, 1, 3, true}, 2048, Mode::training));
  EXPECT_EQ(kept.all_reduce, 0);
  EXPECT_DOUBLE_EQ(kept.all_gather, 4 * bsh);
  EXPECT_DOUBLE_EQ(kept.reduce_scatter, 4 * bsh);
  setting.system.stack.keep_gathered = false;
  const Traffic again = traffic(block_operators(setting, {8, 1, 3, true}, 2048, Mode::training));
  EXPECT_DOUBLE_EQ(again.all_gather + again.reduce_scatter, 10 * bsh);
  const Traffic alone = traffic(block_operators(setting, {1, 1, 3, false}, 2048, Mode::training));
  EXPECT_EQ(alone.all_reduce + alone.all_gather + alone.reduce_scatter + alone.ring, 0);
}

// Ring attention: K and V of the rank's tokens travel c - 1 times forward, with their gradients (twice the
// bytes) backward. Llama 3.1 8B, t = 2: 4 KV heads of 128.
TEST(Collectives, ContextRingBytes) {
  const Setting setting = setting_of(test::llama31_8b(), AttentionKernel::flash);
  const auto ops = block_operators(setting, {2, 4, 1, true}, 8192, Mode::training);
  const double piece = 2.0 * (8192 / 4) * (2 * 4 * 128);
  const Operator* ring = find(ops, "context_ring");
  ASSERT_NE(ring, nullptr);
  EXPECT_EQ(ring->forward_comm.bytes.value(), piece);
  EXPECT_EQ(ring->forward_comm.repeats, 3);
  EXPECT_EQ(ring->backward_comm.bytes.value(), 2 * piece);
  EXPECT_EQ(find(block_operators(setting, {2, 1, 1, true}, 8192, Mode::training), "context_ring"), nullptr);
}

TEST(Decode, ReadsTheCacheOfEveryRequest) {
  const Setting setting = setting_of(test::llama2_7b(), AttentionKernel::flash);
  const auto ops = decode_block_operators(setting, {4, 1, 8, false}, 1500);
  const Operator* core = find(ops, "decode_attention");
  ASSERT_NE(core, nullptr);
  EXPECT_EQ(core->attention.batch, 8);
  EXPECT_EQ(core->attention.heads, 8);
  EXPECT_EQ(core->attention.queries, 1);
  EXPECT_EQ(core->attention.keys, 1500);
  EXPECT_EQ(find(ops, "qkv_projection")->gemm, (compute::GemmShape{8, 3 * 4096 / 4, 4096, 1}));
}

TEST(Head, PrefillComputesOneTokenPerSequence) {
  const Setting setting = setting_of(test::llama2_7b(), AttentionKernel::flash);
  EXPECT_EQ(find(head_operators(setting, {1, 2, 3, false}, 1000, Mode::prefill), "lm_head")->gemm.m, 3);
  EXPECT_EQ(find(head_operators(setting, {1, 2, 3, false}, 1000, Mode::training), "lm_head")->gemm.m, 1500);
  EXPECT_EQ(find(head_operators(setting, {1, 2, 3, false}, 1000, Mode::prefill), "cross_entropy"), nullptr);
}

// bf16 logits and their gradient, 2 + 2 bytes, and 4 bytes of the fp32 copy unless the loss is fused.
TEST(Logits, BytesPerLogit) {
  Setting setting = setting_of(test::llama2_7b());
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {4, 2, 3, true}, 1024).value(), 8.0 * (3 * 512) * (32000 / 4));
  setting.system.stack.fused_loss = true;
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {4, 2, 3, true}, 1024).value(), 4.0 * (3 * 512) * (32000 / 4));
}

std::vector<std::int32_t> partition(const ModelSpec& model, PartitionRule rule, std::int32_t stages,
                                    std::int32_t chunks = 1) {
  std::vector<std::int32_t> layers;
  if (!partition_layers(model, rule, stages, chunks, layers)) return {};
  return layers;
}

TEST(Partition, UniformNeedsDivisibility) {
  const ModelSpec model = test::gpt(24, 1024, 16);
  EXPECT_EQ(partition(model, PartitionRule::uniform, 4), (std::vector<std::int32_t>{6, 6, 6, 6}));
  EXPECT_EQ(partition(model, PartitionRule::uniform, 4, 3), (std::vector<std::int32_t>{6, 6, 6, 6}));
  EXPECT_TRUE(partition(model, PartitionRule::uniform, 5).empty());
  EXPECT_TRUE(partition(model, PartitionRule::uniform, 4, 4).empty());
}

// nanotron's rule, by hand. Block 4 h^2 + 8 h^2 = 12 h^2; vocabulary 24 h: the head costs two blocks. 6
// blocks
// + head = 8 block units over 4 stages: a share of 2: the borders 2, 4, 6 give 2 2 2 and the head alone.
TEST(Partition, BalancedGivesTheHeadItsShare) {
  const ModelSpec model = test::gpt(6, 64, 4, 24 * 64);
  EXPECT_EQ(partition(model, PartitionRule::balanced, 4), (std::vector<std::int32_t>{2, 2, 2, 0}));
  EXPECT_EQ(partition(model, PartitionRule::balanced, 2), (std::vector<std::int32_t>{4, 2}));
  // Share 8 / 3: the block that starts below 2.67 (the third) stays, and so does that below 5.33 (the sixth).
  EXPECT_EQ(partition(model, PartitionRule::balanced, 3), (std::vector<std::int32_t>{3, 3, 0}));
}

TEST(Partition, BalancedCoversEveryLayerWithinOneBlockOfItsShare) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    SCOPED_TRACE(i);
    test::CaseRng rng(31, i);
    const ModelSpec model =
        test::llama(rng.integer(1, 96), 512, 8, 8, 128 * rng.integer(1, 16), 1000 * rng.integer(1, 200));
    const std::int32_t stages = rng.small(1, static_cast<std::int32_t>(model.layers));
    const auto layers = partition(model, PartitionRule::balanced, stages);
    ASSERT_EQ(layers.size(), static_cast<std::size_t>(stages));
    const double block = model.block_matrix_parameters();
    const double total = static_cast<double>(model.layers) * block +
                         static_cast<double>(model.vocabulary) * static_cast<double>(model.hidden);
    double before = 0, sum = 0;
    for (std::size_t s = 0; s < layers.size(); ++s) {
      ASSERT_GE(layers[s], 0);
      sum += layers[s];
      before += layers[s] * block;
      // The stages up to s end less than a block beyond their share.
      EXPECT_LT(before, total * static_cast<double>(s + 1) / stages + block * (1 + 1e-9));
    }
    EXPECT_EQ(sum, static_cast<double>(model.layers));
  }
}

}  // namespace
}  // namespace shardscape::workload
