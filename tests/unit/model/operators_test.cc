// Do the operators do the FLOPs, move the bytes and send the messages that the formulas of the field have?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "tests/unit/model/block_setting.h"

namespace shardscape::model {
namespace {

using network::CollectiveOp;

TEST(NarrowProducts, LeaveMessagesNormsHeadAndCacheAsTheyAre) {
  const Setting wide = grouped_query();
  for (const PolicyName precision :
       {PolicyName::fp8, PolicyName::fp4, PolicyName::mxfp8, PolicyName::nvfp4}) {
    SCOPED_TRACE(name_of(precision));
    Setting narrow = wide;
    narrow.workload.precision = precision;
    const LayerKey key{4, 2, 1, true};
    const auto expected = block_operators(wide, 0, key, kSequence, Mode::training);
    const auto operators = block_operators(narrow, 0, key, kSequence, Mode::training);
    ASSERT_EQ(operators.size(), expected.size());
    for (std::size_t i = 0; i < operators.size(); ++i) {
      SCOPED_TRACE(operators[i].name);
      EXPECT_EQ(operators[i].forward.traffic, expected[i].forward.traffic);
      EXPECT_EQ(operators[i].backward.traffic, expected[i].backward.traffic);
      EXPECT_EQ(operators[i].forward_comm.bytes, expected[i].forward_comm.bytes);
      EXPECT_EQ(operators[i].backward_comm.bytes, expected[i].backward_comm.bytes);
      if (operators[i].kind == OperatorKind::gemm) {
        EXPECT_EQ(operators[i].operands, format_of(precision));
      }
    }
    const auto head = head_operators(narrow, key, kSequence, Mode::training);
    EXPECT_EQ(find(head, "lm_head").operands, Precision::bf16);
    EXPECT_EQ(saved_bytes(head, Recompute::none, narrow, key, kSequence),
              saved_bytes(head_operators(wide, key, kSequence, Mode::training), Recompute::none, wide, key,
                          kSequence));
    EXPECT_EQ(boundary_bytes(narrow, key, kSequence), boundary_bytes(wide, key, kSequence));
    EXPECT_EQ(logits_bytes(narrow, key, kSequence), logits_bytes(wide, key, kSequence));
    EXPECT_EQ(kv_bytes(narrow, 0, 4), kv_bytes(wide, 0, 4));
    EXPECT_EQ(backward_working_bytes(narrow, 0, key, kSequence),
              backward_working_bytes(wide, 0, key, kSequence));
  }
}

TEST(PlainOperators, MoveMoreBytesInMoreKernels) {
  // Per element of a norm in bf16, forward: cast 2 + 4, norm 4 + 4, cast 4 + 2 bytes; backward: cast 2 + 4,
  // norm 4 + 4 + 4, cast 4 + 2. SwiGLU forward: nonlinearity 2 + 2, product 4 + 2; backward: product 6 + 4,
  // nonlinearity 4 + 2.
  Setting setting = korthikanti();
  setting.model.mlp = MlpKind::swiglu;
  setting.system.stack.fused_pointwise = false;
  const LayerKey key{1, 1, 1, false};
  const double tokens = static_cast<double>(kSequence);
  const double hidden = tokens * static_cast<double>(setting.model.hidden);
  const double inner = tokens * static_cast<double>(setting.model.ffn_hidden);
  int found = 0;
  for (const Operator& op : block_operators(setting, 0, key, kSequence, Mode::training)) {
    if (op.name == "input_norm" || op.name == "mlp_norm") {
      EXPECT_DOUBLE_EQ(op.forward.traffic.value(), 20 * hidden);
      EXPECT_DOUBLE_EQ(op.backward.traffic.value(), 24 * hidden);
      EXPECT_EQ(op.forward.kernels, 3);
      ++found;
    }
    if (op.name == "swiglu") {
      EXPECT_DOUBLE_EQ(op.forward.traffic.value(), 10 * inner);
      EXPECT_DOUBLE_EQ(op.backward.traffic.value(), 16 * inner);
      EXPECT_EQ(op.backward.kernels, 2);
      ++found;
    }
  }
  EXPECT_EQ(found, 3);
}

TEST(FusedResidual, NormAndSumAreOneKernelOfFourTensors) {
  // The fused kernel reads its input and the residual, and writes the sum and its norm: 4 tensors of 2 bytes.
  // Apart they move 2 + 3. Where dropout has a mask of its own the sum stays a kernel.
  Setting setting = korthikanti();
  setting.system.stack.fused_residual = true;
  for (const double dropout : {0.0, 0.1}) {
    setting.model.dropout = dropout;
    const double hidden = static_cast<double>(kSequence * setting.model.hidden);
    double traffic = 0, kernels = 0;
    for (const Operator& op : block_operators(setting, 0, {1, 1, 1, false}, kSequence, Mode::training)) {
      if (op.name != "attention_residual" && op.name != "mlp_norm") continue;
      traffic += op.forward.traffic.value();
      kernels += op.forward.kernels;
    }
    EXPECT_DOUBLE_EQ(traffic, (dropout > 0 ? 11 : 8) * hidden);  // a byte of mask
    EXPECT_EQ(kernels, dropout > 0 ? 2 : 1);
  }
}

double forward_matrix_flops(const std::vector<Operator>& operators) {
  double sum = 0;
  for (const Operator& op : operators) {
    if (op.kind == OperatorKind::gemm) sum += op.gemm.flops().value();
    // Two products of 2 head_dim FLOPs per score, counted in full.
    if (op.kind == OperatorKind::attention) sum += 4 * op.attention.head_dim * op.attention.scores();
  }
  return sum;
}

double model_forward_flops(const Setting& setting, const LayerKey& key) {
  const double layers = static_cast<double>(setting.model.layers);
  return layers * forward_matrix_flops(block_operators(setting, 0, key, kSequence, Mode::training)) +
         forward_matrix_flops(head_operators(setting, key, kSequence, Mode::training));
}

TEST(ModelFlops, NarayananClosedForm) {
  // Narayanan et al. 2021, appendix: 96 B s l h^2 (1 + s/6h + V/16lh) with a second forward on the blocks.
  // Without it, blocks cost 3 forwards of 24 s h^2 + 4 s^2 h each and the head 3 of 2 s h V:
  //   72 s l h^2 + 12 l s^2 h + 6 s h V = 72 s l h^2 (1 + s/(6h) + V/(12 l h)).
  const Setting setting = korthikanti();
  const double s = 2048, l = 4, h = 4096, vocabulary = 51200;
  const double expected = 72 * s * l * h * h * (1 + s / (6 * h) + vocabulary / (12 * l * h));
  EXPECT_NEAR(model_flops_per_sequence(setting.model, kSequence).value() / expected, 1, 1e-14);
}

TEST(ModelFlops, EqualsTheOperators) {
  for (const Setting& setting : {korthikanti(), grouped_query()}) {
    for (const auto& [t, c, b] : {std::tuple{1, 1, 1}, {4, 1, 2}, {8, 4, 1}, {2, 8, 3}}) {
      const double per_rank = model_forward_flops(setting, {t, c, b, t > 1});
      const double expected = model_flops_per_sequence(setting.model, kSequence).value() * b;
      EXPECT_NEAR(3 * per_rank * t * c / expected, 1, 1e-12) << t << ' ' << c << ' ' << b;
    }
  }
}

TEST(Shapes, GroupedQueries) {
  // 32 query and 8 KV heads of 128: (32 + 2 * 8) * 128 columns over t.
  const auto operators = block_operators(grouped_query(), 0, {4, 2, 3, true}, kSequence, Mode::training);
  const std::int64_t m = 3 * 2048 / 2;
  EXPECT_EQ(find(operators, "qkv_projection").gemm, (compute::GemmShape{m, 48 * 128 / 4, 4096, 1}));
  EXPECT_EQ(find(operators, "output_projection").gemm, (compute::GemmShape{m, 4096, 1024, 1}));
  EXPECT_EQ(find(operators, "mlp_in").gemm, (compute::GemmShape{m, 2 * 14336 / 4, 4096, 1}));
  EXPECT_EQ(find(operators, "mlp_out").gemm, (compute::GemmShape{m, 4096, 14336 / 4, 1}));
  const compute::AttentionShape& attention = find(operators, "attention").attention;
  EXPECT_EQ(attention.heads, 8);
  EXPECT_EQ(attention.kv_heads, 2);
  EXPECT_EQ(attention.queries, 1024);
  EXPECT_EQ(attention.keys, 2048);
  EXPECT_EQ(attention.batch, 3);
}

TEST(Shapes, KvHeadsAreReplicatedBeyondTheirNumber) {
  const Setting setting = grouped_query();
  EXPECT_EQ(kv_units(setting.model, 0).local(8), 1);
  EXPECT_EQ(kv_units(setting.model, 0).local(16), 1);
  EXPECT_EQ(kv_units(setting.model, 0).local(2), 4);
  // 32 / 16 = 2 query heads and one K and one V head on each rank.
  const auto operators = block_operators(setting, 0, {16, 1, 1, true}, kSequence, Mode::training);
  EXPECT_EQ(find(operators, "qkv_projection").gemm.n, 4 * 128);
  EXPECT_EQ(find(operators, "attention").attention.kv_heads, 1);
}

TEST(Shapes, HeadColumnsAreRoundedUp) {
  Setting setting = korthikanti();
  setting.model.vocabulary = 50257;
  const auto operators = head_operators(setting, {8, 1, 1, false}, kSequence, Mode::training);
  EXPECT_EQ(find(operators, "lm_head").gemm, (compute::GemmShape{2048, 6283, 4096, 1}));  // ceil(50257 / 8)
}

TEST(Shapes, PrefillAsksTheHeadForOneTokenPerSequence) {
  const auto operators = head_operators(grouped_query(), {4, 2, 5, false}, kSequence, Mode::prefill);
  EXPECT_EQ(find(operators, "lm_head").gemm.m, 5);
}

TEST(Shapes, DecodeMeetsTheCacheWithOneToken) {
  const auto operators = decode_block_operators(grouped_query(), 0, {4, 2, 6, false}, 3000);
  EXPECT_EQ(find(operators, "qkv_projection").gemm.m, 6);
  const compute::AttentionShape& attention = find(operators, "decode_attention").attention;
  EXPECT_EQ(attention.queries, 1);
  EXPECT_EQ(attention.keys, 1500);
  EXPECT_EQ(attention.visible, 1);
  EXPECT_TRUE(std::ranges::none_of(operators, [](const Operator& op) { return op.name == "context_ring"; }));
}

TEST(Shapes, DecodeLooksItsTokensUp) {
  // 6 sequences, one token each: 6 rows of 4096 elements read and written, summed over the tensor group.
  const auto operators = decode_embedding_operators(grouped_query(), {4, 2, 6, true});
  EXPECT_DOUBLE_EQ(find(operators, "embedding").forward.traffic.value(), 2 * 2.0 * 6 * 4096);
  const CollectiveCall& reduce = find(operators, "embedding_reduce").forward_comm;
  EXPECT_EQ(reduce.op, CollectiveOp::all_reduce);
  EXPECT_EQ(reduce.repeats, 1);
  EXPECT_DOUBLE_EQ(reduce.bytes.value(), 2.0 * 6 * 4096);
}

TEST(TensorTraffic, TwoAllReducesEachWay) {
  // Shoeybi et al. 2019: operators f and g, once around attention and once around the MLP.
  const auto operators = block_operators(korthikanti(), 0, {4, 1, 2, false}, kSequence, Mode::training);
  for (const bool backward : {false, true}) {
    SCOPED_TRACE(backward);
    expect_traffic(traffic(operators, CollectiveOp::all_reduce, PlanAxis::tensor, backward), 2,
                   2 * 2 * sbh(2));
    expect_traffic(traffic(operators, CollectiveOp::all_gather, PlanAxis::tensor, backward), 0, 0);
    expect_traffic(traffic(operators, CollectiveOp::reduce_scatter, PlanAxis::tensor, backward), 0, 0);
  }
}

TEST(TensorTraffic, SequenceParallelGathersAndScatters) {
  Setting setting = korthikanti();
  const LayerKey key{4, 1, 2, true};
  const auto count = [&](CollectiveOp op, bool backward) {
    return traffic(block_operators(setting, 0, key, kSequence, Mode::training), op, PlanAxis::tensor,
                   backward);
  };
  const double tensor = 2 * sbh(2);
  expect_traffic(count(CollectiveOp::all_gather, false), 2, 2 * tensor);
  expect_traffic(count(CollectiveOp::reduce_scatter, false), 2, 2 * tensor);
  // Backward mirrors forward and gathers the two saved inputs once more: 6 calls of a gather's cost.
  const double again =
      count(CollectiveOp::all_gather, true).count + count(CollectiveOp::reduce_scatter, true).count;
  EXPECT_EQ(again, 6);
  setting.system.stack.keep_gathered = true;
  expect_traffic(count(CollectiveOp::all_gather, true), 2, 2 * tensor);
  expect_traffic(count(CollectiveOp::reduce_scatter, true), 2, 2 * tensor);
}

TEST(TensorTraffic, NoneWithoutAGroup) {
  for (const auto& operators :
       {block_operators(korthikanti(), 0, {1, 1, 2, false}, kSequence, Mode::training),
        embedding_operators(korthikanti(), {1, 1, 2, false}, kSequence, Mode::training),
        head_operators(korthikanti(), {1, 1, 2, false}, kSequence, Mode::training)}) {
    for (const Operator& op : operators) {
      EXPECT_EQ(op.forward_comm.repeats, 0) << op.name;
      EXPECT_EQ(op.backward_comm.repeats, 0) << op.name;
    }
  }
}

TEST(ContextTraffic, RingOfKeysAndValues) {
  // Of s/c = 512 tokens, K and V of 8/2 heads of 128 elements of 2 bytes go c - 1 = 3 times; backward sends
  // them again with their gradients.
  const auto operators = block_operators(grouped_query(), 0, {2, 4, 3, true}, kSequence, Mode::training);
  const double message = 2.0 * 512 * 3 * 2 * 4 * 128;
  expect_traffic(traffic(operators, CollectiveOp::ring_pass, PlanAxis::context, false), 3, 3 * message);
  expect_traffic(traffic(operators, CollectiveOp::ring_pass, PlanAxis::context, true), 3, 6 * message);
}

TEST(Boundary, OneTensorPerMicrobatch) {
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 1, 2, false}, kSequence).value(), 2 * sbh(2));
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 1, 2, true}, kSequence).value(), 2 * sbh(2) / 4);
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 2, 2, true}, kSequence).value(), 2 * sbh(2) / 8);
}

}  // namespace
}  // namespace shardscape::model
