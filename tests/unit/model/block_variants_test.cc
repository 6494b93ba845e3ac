// What do the blocks of other families of models do otherwise: activations, norms, positions, soft caps?
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
    EXPECT_EQ(relu.saved.value(), tensor);  // the rectified input; its square follows from it
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
  EXPECT_DOUBLE_EQ(bytes(), sbh(2) * (32 + 5 * kScores));  // the two masks are not saved
  const auto embedding = [&] {
    return embedding_operators(setting, {1, 1, 2, false}, kSequence, Mode::training).size();
  };
  const std::size_t without = embedding();
  setting.model.embedding_dropout = 0.1;
  EXPECT_EQ(embedding(), without + 1);
}

}  // namespace
}  // namespace shardscape::model
