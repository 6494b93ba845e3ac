// What does a block keep for backward, and how much of it does each axis split?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/head.h"
#include "tests/unit/model/block_setting.h"

namespace shardscape::model {
namespace {

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

}  // namespace
}  // namespace shardscape::model
