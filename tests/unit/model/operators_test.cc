#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

using network::CollectiveOp;

constexpr std::int64_t kSequence = 2048;

/// h = 4096, a = 32, s = 2048, naive attention and dropout: the block of Korthikanti et al. 2022, table 2.
Setting korthikanti() {
  Setting s;
  s.model = test::gpt(4, 4096, 32, 51200, kSequence);
  s.system.device = test::round_device();
  s.system.stack = test::plain_stack();
  s.system.stack.attention = AttentionKernel::naive;
  s.workload = test::training(kSequence, 8);
  return s;
}

Setting grouped_query() {
  Setting s = korthikanti();
  s.model = test::llama(4, 4096, 32, 8, 14336, 128256);
  s.system.stack.attention = AttentionKernel::flash;
  return s;
}

double saved(const Setting& setting, const LayerKey& key, Recompute recompute) {
  return saved_bytes(block_operators(setting, 0, key, kSequence, Mode::training), recompute, setting, key,
                     kSequence)
      .value();
}

const Operator& find(const std::vector<Operator>& operators, std::string_view name) {
  const auto at = std::ranges::find(operators, name, &Operator::name);
  EXPECT_NE(at, operators.end()) << name;
  return at == operators.end() ? operators.front() : *at;
}

// s b h and the ratio a s / h of korthikanti(), for microbatch b.
double sbh(double b) { return 2048.0 * b * 4096.0; }
constexpr double kScores = 32.0 * 2048.0 / 4096.0;

TEST(SavedBytes, WithoutParallelism) {
  // Attention 11 sbh + 5 a s^2 b, MLP 19 sbh, two norms 4 sbh (eq. 1).
  for (const int b : {1, 3}) {
    EXPECT_DOUBLE_EQ(saved(korthikanti(), {1, 1, b, false}, Recompute::none), sbh(b) * (34 + 5 * kScores));
  }
}

TEST(PutOffBytes, AreThoseOfThePaper) {
  // Qi et al. 2023, table 1: a weight gradient that waits keeps 32 s b h: inputs 2 (QKV) + 2 (projection) + 2
  // + 8 (MLP), gradients of outputs 6 + 2 + 8 + 2. A tensor group splits all but the inputs of
  // column-parallel and the output gradients of row-parallel products (2 + 2 and 2 + 2); sequence parallelism
  // splits the saved inputs, too.
  const Setting setting = korthikanti();
  const auto bytes = [&](const LayerKey& key) {
    return put_off_bytes(block_operators(setting, 0, key, kSequence, Mode::training)).value();
  };
  for (const int b : {1, 3}) {
    EXPECT_DOUBLE_EQ(bytes({1, 1, b, false}), 32 * sbh(b));
    EXPECT_DOUBLE_EQ(bytes({4, 1, b, false}), (8 + 24.0 / 4) * sbh(b));
    EXPECT_DOUBLE_EQ(bytes({4, 1, b, true}), (4 + 28.0 / 4) * sbh(b));
  }
}

TEST(SavedBytes, TensorParallelKeepsNormsMasksAndInputsWhole) {
  // Eq. 2: two norms 4, two masks 2, two inputs of column-parallel products 4 are not split.
  for (const int t : {2, 4, 8}) {
    EXPECT_DOUBLE_EQ(saved(korthikanti(), {t, 1, 2, false}, Recompute::none),
                     sbh(2) * (10 + 24.0 / t + 5 * kScores / t));
  }
}

TEST(SavedBytes, SequenceParallelSplitsEverything) {
  for (const int t : {2, 4, 8}) {  // eq. 4
    EXPECT_DOUBLE_EQ(saved(korthikanti(), {t, 1, 2, true}, Recompute::none), sbh(2) / t * (34 + 5 * kScores));
  }
}

TEST(SavedBytes, ContextParallelSplitsTheQueries) {
  // Each rank has s/c tokens, whose queries meet all s keys: everything is divided by c.
  EXPECT_DOUBLE_EQ(saved(korthikanti(), {2, 4, 1, true}, Recompute::none), sbh(1) / 8 * (34 + 5 * kScores));
}

TEST(SavedBytes, SelectiveDropsTheScores) {
  for (const int t : {1, 2, 8}) {  // eq. 6
    EXPECT_DOUBLE_EQ(saved(korthikanti(), {t, 1, 2, t > 1}, Recompute::selective), 34 * sbh(2) / t);
    EXPECT_DOUBLE_EQ(saved(korthikanti(), {t, 1, 2, false}, Recompute::selective), sbh(2) * (10 + 24.0 / t));
  }
}

TEST(SavedBytes, FullKeepsTheInput) {
  EXPECT_DOUBLE_EQ(saved(korthikanti(), {8, 1, 2, false}, Recompute::full), 2 * sbh(2));
  EXPECT_DOUBLE_EQ(saved(korthikanti(), {8, 1, 2, true}, Recompute::full), 2 * sbh(2) / 8);
}

TEST(SavedBytes, GatheredInputsCountWholeWhereTheStackKeepsThem) {
  Setting setting = korthikanti();
  setting.system.stack.keep_gathered = true;
  // 4 of the 34 sbh/t become 4 sbh.
  EXPECT_DOUBLE_EQ(saved(setting, {4, 1, 1, true}, Recompute::none), sbh(1) * (4 + (30 + 5 * kScores) / 4));
}

TEST(SavedBytes, FlashKeepsOneNumberPerRowInsteadOfTheScores) {
  Setting setting = korthikanti();
  setting.system.stack.attention = AttentionKernel::flash;
  // The log-sum-exp in fp32 for each of a s b rows; selective drops it and the attention's output (2 sbh).
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 2, false}, Recompute::none), 34 * sbh(2) + 4 * 32.0 * 2048 * 2);
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 2, false}, Recompute::selective), 32 * sbh(2));
}

TEST(SavedBytes, GroupedQueriesAndSwiglu) {
  // Per token, in elements of 2 bytes: two norm inputs 2 h, two product inputs 2 h, Q h, K and V 2 * h/4,
  // attention output h, gate and up 2 f, their product f. Log-sum-exp: 4 bytes for each of 32 heads.
  const double h = 4096, f = 14336, tokens = 2048;
  EXPECT_DOUBLE_EQ(saved(grouped_query(), {1, 1, 1, false}, Recompute::none),
                   2 * tokens * (6 * h + h / 2 + 3 * f) + 4 * 32 * tokens);
}

// Inputs of products are kept as the products take them: of the 34, QKV 2, output projection 2, MLP 2 and 8
// are 14. All else stays bf16: norms, residuals, masks, Q, K, V, scores, the input of GELU.
TEST(SavedBytes, NarrowProductsKeepNarrowInputsAndNothingElse) {
  Setting setting = korthikanti();
  setting.workload.precision = PolicyName::fp8;
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 1, false}, Recompute::none),
                   sbh(1) * (34 - 14 + 14 / 2.0 + 5 * kScores));
  EXPECT_DOUBLE_EQ(saved(setting, {8, 1, 2, true}, Recompute::selective), sbh(2) / 8 * 27);
  EXPECT_DOUBLE_EQ(saved(setting, {8, 1, 2, false}, Recompute::full), 2 * sbh(2));
  setting.workload.precision = PolicyName::fp4;  // with a scale of 8 bits for 16 elements
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 1, false}, Recompute::none),
                   sbh(1) * (34 - 14 + 14 * (0.5 + 1 / 16.0) / 2 + 5 * kScores));
}

TEST(SavedBytes, FlashKeepsItsOutputBesideTheCopyOfTheProjection) {
  // 2 sbh in bf16 for flash, sbh in fp8 for the projection; selective recompute brings the former again.
  Setting setting = korthikanti();
  setting.system.stack.attention = AttentionKernel::flash;
  setting.workload.precision = PolicyName::fp8;
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 2, false}, Recompute::none),
                   (27 + 2) * sbh(2) + 4 * 32.0 * 2048 * 2);
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 2, false}, Recompute::selective), 27 * sbh(2));
}

TEST(PutOffBytes, FollowTheProducts) {
  Setting setting = korthikanti();
  for (const AttentionKernel kernel : {AttentionKernel::naive, AttentionKernel::flash}) {
    setting.system.stack.attention = kernel;
    setting.workload.precision = PolicyName::fp8;
    const LayerKey key{1, 1, 1, false};
    EXPECT_DOUBLE_EQ(put_off_bytes(block_operators(setting, 0, key, kSequence, Mode::training)).value(),
                     32 / 2.0 * sbh(1));
  }
}

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

TEST(SavedBytes, NothingButMasksDependsOnDropout) {
  Setting setting = korthikanti();
  setting.model.dropout = 0;
  EXPECT_DOUBLE_EQ(saved(setting, {1, 1, 1, false}, Recompute::none), sbh(1) * (32 + 2 * kScores));
}

TEST(SavedBytes, EmbeddingAndHead) {
  // Korthikanti, section 4.3: embedding dropout mask sbh; final norm 2 sbh and input of the head 2 sbh.
  const Setting setting = korthikanti();
  const auto of = [&](const LayerKey& key, const std::vector<Operator>& operators) {
    return saved_bytes(operators, Recompute::none, setting, key, kSequence).value();
  };
  const LayerKey whole{1, 1, 1, false}, split{4, 1, 1, true};
  EXPECT_DOUBLE_EQ(of(whole, embedding_operators(setting, whole, kSequence, Mode::training)), sbh(1));
  EXPECT_DOUBLE_EQ(of(whole, head_operators(setting, whole, kSequence, Mode::training)), 4 * sbh(1));
  EXPECT_DOUBLE_EQ(of(split, embedding_operators(setting, split, kSequence, Mode::training)), sbh(1) / 4);
  EXPECT_DOUBLE_EQ(of(split, head_operators(setting, split, kSequence, Mode::training)), sbh(1));
}

TEST(Logits, BytesPerLogit) {
  Setting setting = korthikanti();
  const double logits = 2048.0 * 2 * 51200 / 4;
  // bf16 logits and gradient, and an fp32 copy where the loss is not fused.
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {4, 1, 2, true}, kSequence).value(), 8 * logits);
  setting.system.stack.fused_loss = true;
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {4, 1, 2, true}, kSequence).value(), 4 * logits);
  EXPECT_DOUBLE_EQ(logits_bytes(setting, {4, 2, 2, true}, kSequence).value(), 2 * logits);
}

TEST(SavedBytes, PlainOperatorsKeepCopies) {
  // Each of two norms keeps an fp32 copy of its input (4 sbh), SwiGLU the output of its nonlinearity (2 sbf).
  Setting setting = korthikanti();
  setting.model.mlp = MlpKind::swiglu;
  const LayerKey key{1, 1, 1, false};
  const double fused = saved(setting, key, Recompute::none);
  setting.system.stack.fused_pointwise = false;
  const double ffn =
      static_cast<double>(setting.model.ffn_hidden) / static_cast<double>(setting.model.hidden);
  EXPECT_DOUBLE_EQ(saved(setting, key, Recompute::none) - fused, sbh(1) * (2 * 4 + 2 * ffn));
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

TEST(BackwardWorking, GradientsOfOneBlock) {
  // bf16: four tensors of the hidden width over all tokens, and of the inner width on 4 tensor ranks the
  // gradients of GELU's input and output; of gate, up, nonlinearity and product with SwiGLU.
  Setting setting = korthikanti();
  const double inner =
      static_cast<double>(setting.model.ffn_hidden) / static_cast<double>(setting.model.hidden);
  const LayerKey key{4, 1, 1, true};
  EXPECT_DOUBLE_EQ(backward_working_bytes(setting, 0, key, kSequence).value(),
                   sbh(1) * (2 * 4 + 2 * 2 * inner / 4));
  setting.model.mlp = MlpKind::swiglu;
  EXPECT_DOUBLE_EQ(backward_working_bytes(setting, 0, key, kSequence).value(),
                   sbh(1) * (2 * 4 + 2 * 4 * inner / 4));
}

TEST(Logits, WaitingForBackward) {
  Setting setting = korthikanti();
  const double logits = 2048.0 * 2 * 51200 / 4;
  // fp32 probabilities, or the logits in bf16 where the fused loss computes them again.
  EXPECT_DOUBLE_EQ(saved_logits_bytes(setting, {4, 1, 2, true}, kSequence).value(), 4 * logits);
  setting.system.stack.fused_loss = true;
  EXPECT_DOUBLE_EQ(saved_logits_bytes(setting, {4, 1, 2, true}, kSequence).value(), 2 * logits);
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

struct Traffic {
  double count = 0;
  double bytes = 0;
};

Traffic traffic(const std::vector<Operator>& operators, CollectiveOp op, ParallelGroup group, bool backward) {
  Traffic sum;
  for (const Operator& o : operators) {
    const CollectiveCall& call = backward ? o.backward_comm : o.forward_comm;
    if (call.repeats <= 0 || call.op != op || call.group != group) continue;
    sum.count += call.repeats;
    sum.bytes += call.repeats * call.bytes.value();
  }
  return sum;
}

void expect_traffic(const Traffic& actual, double count, double bytes) {
  EXPECT_EQ(actual.count, count);
  EXPECT_DOUBLE_EQ(actual.bytes, bytes);
}

TEST(TensorTraffic, TwoAllReducesEachWay) {
  // Shoeybi et al. 2019: operators f and g, once around attention and once around the MLP.
  const auto operators = block_operators(korthikanti(), 0, {4, 1, 2, false}, kSequence, Mode::training);
  for (const bool backward : {false, true}) {
    SCOPED_TRACE(backward);
    expect_traffic(traffic(operators, CollectiveOp::all_reduce, ParallelGroup::tensor, backward), 2,
                   2 * 2 * sbh(2));
    expect_traffic(traffic(operators, CollectiveOp::all_gather, ParallelGroup::tensor, backward), 0, 0);
    expect_traffic(traffic(operators, CollectiveOp::reduce_scatter, ParallelGroup::tensor, backward), 0, 0);
  }
}

TEST(TensorTraffic, SequenceParallelGathersAndScatters) {
  Setting setting = korthikanti();
  const LayerKey key{4, 1, 2, true};
  const auto count = [&](CollectiveOp op, bool backward) {
    return traffic(block_operators(setting, 0, key, kSequence, Mode::training), op, ParallelGroup::tensor,
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

Setting parallel_block(bool shared_norm) {
  Setting setting = korthikanti();
  setting.model.parallel_residual = true;
  setting.model.shared_norm = shared_norm;
  return setting;
}

TEST(ParallelBlock, OneReductionOfBothBranches) {
  // GPT-NeoX: the partial sums of attention and MLP are added and reduced once. A shared norm's gradient is
  // reduced once, too; those of two norms each by itself.
  const double tensor = 2 * sbh(2);
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared);
    const double norms = shared ? 1 : 2;
    const auto plain =
        block_operators(parallel_block(shared), 0, {4, 1, 2, false}, kSequence, Mode::training);
    expect_traffic(traffic(plain, CollectiveOp::all_reduce, ParallelGroup::tensor, false), 1, tensor);
    expect_traffic(traffic(plain, CollectiveOp::all_reduce, ParallelGroup::tensor, true), norms,
                   norms * tensor);
    // Sequence parallel: a gather per norm, one scatter; backward the reverse, and each gather once more.
    const auto split = block_operators(parallel_block(shared), 0, {4, 1, 2, true}, kSequence, Mode::training);
    expect_traffic(traffic(split, CollectiveOp::all_gather, ParallelGroup::tensor, false), norms,
                   norms * tensor);
    expect_traffic(traffic(split, CollectiveOp::reduce_scatter, ParallelGroup::tensor, false), 1, tensor);
    EXPECT_EQ(traffic(split, CollectiveOp::all_gather, ParallelGroup::tensor, true).count +
                  traffic(split, CollectiveOp::reduce_scatter, ParallelGroup::tensor, true).count,
              1 + 2 * norms);
    // A decode step reduces once per block.
    const auto decode = decode_block_operators(parallel_block(shared), 0, {4, 1, 2, false}, 100);
    EXPECT_EQ(traffic(decode, CollectiveOp::all_reduce, ParallelGroup::tensor, false).count, 1);
  }
}

TEST(ParallelBlock, TheSharedInputIsKeptOnce) {
  // Of the 34 sbh + 5 a s^2 b of a sequential block (Korthikanti et al. 2022, eq. 1) the second norm's input,
  // 2 sbh, is that of the first; with a shared norm the MLP's input, 2 sbh, is that of the QKV projection.
  for (const bool shared : {false, true}) {
    EXPECT_DOUBLE_EQ(saved(parallel_block(shared), {1, 1, 2, false}, Recompute::none),
                     sbh(2) * (34 - (shared ? 4 : 2) + 5 * kScores));
    EXPECT_DOUBLE_EQ(saved(parallel_block(shared), {1, 1, 2, false}, Recompute::full), 2 * sbh(2));
  }
}

TEST(ParallelBlock, ProductsAndKernelsAreTheSame) {
  // Adding two branches and the input is as many sums as adding each in turn.
  const auto kernels = [](const Setting& setting) {
    double sum = 0;
    for (const Operator& op : block_operators(setting, 0, {1, 1, 2, false}, kSequence, Mode::training))
      sum += op.forward.kernels + (op.kind == OperatorKind::gemm ? 1 : 0);
    return sum;
  };
  EXPECT_EQ(kernels(parallel_block(false)), kernels(korthikanti()));
  EXPECT_EQ(kernels(parallel_block(true)), kernels(korthikanti()) - 1);  // one norm
}

TEST(ParallelBlock, WeightGradientsThatWaitKeepSharedTensorsOnce) {
  // 32 sbh (Qi et al. 2023, table 1) less the gradient of the sum, 2 sbh, where no dropout stands between,
  // and less the shared input of QKV and MLP, 2 sbh.
  for (const bool shared : {false, true}) {
    Setting setting = parallel_block(shared);
    const auto bytes = [&] {
      return put_off_bytes(block_operators(setting, 0, {1, 1, 2, false}, kSequence, Mode::training)).value();
    };
    EXPECT_DOUBLE_EQ(bytes(), (32 - (shared ? 2 : 0)) * sbh(2));
    setting.model.dropout = 0;
    EXPECT_DOUBLE_EQ(bytes(), (30 - (shared ? 2 : 0)) * sbh(2));
  }
}

TEST(Activations, GatedOnesHaveTwoProjectionsIn) {
  Setting setting = grouped_query();
  const LayerKey key{1, 1, 1, false};
  const double inner = 2.0 * kSequence * 14336;  // bytes of one tensor of the inner width
  const auto of = [&](MlpKind kind) {
    setting.model.mlp = kind;
    return block_operators(setting, 0, key, kSequence, Mode::training);
  };
  for (const MlpKind kind : {MlpKind::swiglu, MlpKind::geglu, MlpKind::reglu}) {
    const auto operators = of(kind);
    const Operator& activation = find(operators, name_of(kind));
    EXPECT_EQ(find(operators, "mlp_in").gemm.n, 2 * 14336);
    EXPECT_DOUBLE_EQ(activation.forward.traffic.value(), 3 * inner);
    EXPECT_DOUBLE_EQ(activation.saved.value(), 2 * inner);
  }
  for (const MlpKind kind : {MlpKind::gelu, MlpKind::silu, MlpKind::relu}) {
    const auto operators = of(kind);
    const Operator& activation = find(operators, name_of(kind));
    EXPECT_EQ(find(operators, "mlp_in").gemm.n, 14336);
    EXPECT_DOUBLE_EQ(activation.forward.traffic.value(), 2 * inner);
    // Backward of ReLU needs its output alone, which is the input that mlp_out keeps.
    EXPECT_DOUBLE_EQ(activation.saved.value(), kind == MlpKind::relu ? 0 : inner);
    EXPECT_DOUBLE_EQ(find(operators, "mlp_out").saved.value(), inner);
  }
}

TEST(Activations, SquaredReluKeepsOneTensorAndTakesTwoKernelsUnfused) {
  Setting setting = grouped_query();
  setting.model.mlp = MlpKind::squared_relu;
  const double tensor = 2 * 2048.0 * 14336;  // bf16
  for (const bool fused : {true, false}) {
    setting.system.stack.fused_pointwise = fused;
    const auto ops = block_operators(setting, 0, {1, 1, 1, false}, kSequence, Mode::training);
    const Operator& relu = find(ops, "squared_relu");
    EXPECT_EQ(relu.forward.traffic.value(), (fused ? 2 : 4) * tensor);
    EXPECT_EQ(relu.backward.traffic.value(), (fused ? 3 : 6) * tensor);
    EXPECT_EQ(relu.forward.kernels, fused ? 1 : 2);
    EXPECT_EQ(relu.saved.value(), tensor);  // of the rectified input, from which its square follows
    EXPECT_EQ(find(ops, "mlp_in").gemm.n, 14336);
  }
}

TEST(QkNorm, StreamsQueriesAndKeysOfTheRank) {
  Setting setting = grouped_query();
  setting.model.qk_norm = QkNorm::per_head;
  const auto ops = block_operators(setting, 0, {4, 1, 1, false}, kSequence, Mode::training);
  const Operator& norm = find(ops, "qk_norm");
  const double tensor = 2 * 2048.0 * (8 + 2) * 128;  // 8 of 32 heads, 2 of 8 KV heads
  EXPECT_EQ(norm.forward.traffic.value(), 2 * tensor);
  EXPECT_EQ(norm.backward.traffic.value(), 3 * tensor);
  EXPECT_EQ(norm.forward.kernels, 2);  // one for the queries, one for the keys
  EXPECT_EQ(norm.saved.value(), tensor);
  const auto count = [&](QkNorm kind, std::int32_t tensor_group) {
    setting.model.qk_norm = kind;
    return block_parameters(setting.model, setting.workload.policy(), 0, {tensor_group}).total().count;
  };
  EXPECT_EQ(count(QkNorm::per_head, 4) - count(QkNorm::none, 4), 2 * 128);  // every rank has both gains
  EXPECT_EQ(count(QkNorm::full_width, 4) - count(QkNorm::none, 4), (8 + 2) * 128);
  EXPECT_EQ(count(QkNorm::full_width, 1) - count(QkNorm::none, 1), (32 + 8) * 128);
}

TEST(NormPlace, BeforeAfterOrBoth) {
  Setting setting = grouped_query();
  const auto names = [&](NormPlace place) {
    setting.model.norm_place = place;
    std::string text;
    for (const Operator& op : block_operators(setting, 0, {2, 1, 1, true}, kSequence, Mode::training))
      if (op.name.ends_with("norm") || op.name.ends_with("reduce")) text += std::string(op.name) + ' ';
    return text;
  };
  EXPECT_EQ(names(NormPlace::before), "input_norm attention_reduce mlp_norm mlp_reduce ");
  EXPECT_EQ(names(NormPlace::after), "attention_reduce attention_output_norm mlp_reduce mlp_output_norm ");
  EXPECT_EQ(names(NormPlace::both),
            "input_norm attention_reduce attention_output_norm mlp_norm mlp_reduce mlp_output_norm ");
  const auto bytes = [&](NormPlace place) {
    setting.model.norm_place = place;
    return saved(setting, {1, 1, 1, false}, Recompute::none);
  };
  // A norm keeps its input, 2 bytes each of s h elements.
  EXPECT_EQ(bytes(NormPlace::after), bytes(NormPlace::before));
  EXPECT_EQ(bytes(NormPlace::both) - bytes(NormPlace::before), 2 * 2 * 2048.0 * 4096);
}

TEST(Scores, CapsAndAlibiCostVectorWorkAlone) {
  Setting setting = grouped_query();
  const auto core = [&] {
    return find(block_operators(setting, 0, {1, 1, 1, false}, kSequence, Mode::training), "attention");
  };
  EXPECT_EQ(core().attention.score_flops, 0);
  setting.model.attention_soft_cap = true;
  const double cap = core().attention.score_flops;
  EXPECT_GT(cap, 0);
  setting.model.position = PositionKind::alibi;
  EXPECT_GT(core().attention.score_flops, cap);
  const auto ops = block_operators(setting, 0, {1, 1, 1, false}, kSequence, Mode::training);
  EXPECT_TRUE(std::ranges::none_of(ops, [](const Operator& op) { return op.name == "rotary"; }));
}

TEST(Logits, ASoftCapStreamsThemOnceMore) {
  Setting setting = grouped_query();
  const double before = logits_bytes(setting, {1, 1, 1, false}, kSequence).value();
  setting.model.logit_soft_cap = true;
  const double logits = 2 * 2048.0 * 128256;
  EXPECT_EQ(logits_bytes(setting, {1, 1, 1, false}, kSequence).value() - before, logits);
  const auto ops = head_operators(setting, {1, 1, 1, false}, kSequence, Mode::training);
  EXPECT_EQ(find(ops, "logit_soft_cap").forward.traffic.value(), 2 * logits);
  EXPECT_EQ(find(ops, "logit_soft_cap").backward.traffic.value(), 3 * logits);
}

TEST(Rotary, TurnsAShareOfEachHead) {
  Setting setting = grouped_query();
  const auto bytes = [&] {
    const auto operators = block_operators(setting, 0, {1, 1, 1, false}, kSequence, Mode::training);
    return find(operators, "rotary").forward.traffic.value();
  };
  EXPECT_DOUBLE_EQ(bytes(), 2 * 2.0 * kSequence * (32 + 8) * 128);
  setting.model.rotary_fraction = 0.25;  // GPT-NeoX-20B
  EXPECT_DOUBLE_EQ(bytes(), 2 * 2.0 * kSequence * (32 + 8) * 32);
}

TEST(Dropout, EachPlaceMayHaveItsOwnRate) {
  Setting setting = korthikanti();
  const auto bytes = [&] { return saved(setting, {1, 1, 2, false}, Recompute::none); };
  // Attention keeps 5 a s^2 b: softmax output and dropout output of 2 bytes and a mask; without 2.
  setting.model.attention_dropout = 0;
  EXPECT_DOUBLE_EQ(bytes(), sbh(2) * (34 + 2 * kScores));
  setting.model.dropout = 0;
  setting.model.attention_dropout = 0.1;
  EXPECT_DOUBLE_EQ(bytes(), sbh(2) * (32 + 5 * kScores));  // without the two masks
  const auto embedding = [&] {
    return embedding_operators(setting, {1, 1, 2, false}, kSequence, Mode::training).size();
  };
  const std::size_t without = embedding();
  setting.model.embedding_dropout = 0.1;
  EXPECT_EQ(embedding(), without + 1);
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
  expect_traffic(traffic(operators, CollectiveOp::ring_pass, ParallelGroup::context, false), 3, 3 * message);
  expect_traffic(traffic(operators, CollectiveOp::ring_pass, ParallelGroup::context, true), 3, 6 * message);
}

TEST(Boundary, OneTensorPerMicrobatch) {
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 1, 2, false}, kSequence).value(), 2 * sbh(2));
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 1, 2, true}, kSequence).value(), 2 * sbh(2) / 4);
  EXPECT_DOUBLE_EQ(boundary_bytes(korthikanti(), {4, 2, 2, true}, kSequence).value(), 2 * sbh(2) / 8);
}

}  // namespace
}  // namespace shardscape::model
