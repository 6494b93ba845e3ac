// Does latent attention compute, keep, hold and cache what its equations say?
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "engine/model/block_kinds.h"
#include "tests/support/engine_fixture.h"

namespace shardscape::model {
namespace {

constexpr std::int64_t kPrompt = 4096;

/// DeepSeek-V3's attention (arXiv:2412.19437, section 4.2) around a small dense MLP.
Setting latent_setting(std::int64_t q_rank = 1536) {
  Setting s;
  s.model = test::llama(2, 7168, 128, 128, 1024, 32000);
  s.model.latent = LatentAttention{AttentionKind::mla, q_rank, 512, 64, 128, 128};
  s.model.head_dim = 192;
  s.system.device = test::round_device();
  s.system.stack = test::plain_stack();
  s.system.stack.attention = AttentionKernel::flash;
  s.workload = test::training(kPrompt, 8);
  return s;
}

const Operator& part(const std::vector<Operator>& operators, std::string_view name) {
  const auto at = std::ranges::find(operators, name, &Operator::name);
  EXPECT_NE(at, operators.end()) << name;
  return at == operators.end() ? operators.front() : *at;
}

TEST(LatentAttention, CachesItsVectorOnEveryRank) {
  // 512 + 64 values for each token and layer of DeepSeek-V3, not split over a tensor group: 1,152 bytes in bf16.
  const Setting s = latent_setting();
  EXPECT_EQ(kv_units(s.model, 0).units, 1);
  EXPECT_EQ(kv_units(s.model, 0).elements, 576);
  for (const int t : {1, 8, 128}) EXPECT_EQ(kv_bytes(s, 0, t).value(), 2 * 576);
}

TEST(LatentAttention, WeightsOneByOne) {
  for (const std::int64_t q : {0, 1536}) {
    const Setting s = latent_setting(q);
    const double down = 7168.0 * static_cast<double>(q) + 7168.0 * 576;
    const double queries = (q > 0 ? static_cast<double>(q) : 7168.0) * 128 * 192;
    const double split = queries + 512.0 * 128 * (128 + 128) + 128 * 128 * 7168.0;
    const double norms = static_cast<double>(q) + 512 + 2 * 7168, mlp = 3 * 7168.0 * 1024;
    for (const int t : {1, 8}) {
      EXPECT_EQ(block_parameters(s.model, s.workload.policy(), 0, {t}).total().count,
                down + norms + (split + mlp) / t);
    }
    EXPECT_EQ(s.model.attention_matrix_parameters(), down + split);
  }
}

TEST(LatentAttention, OperatorsAddUpToTheModelsFlops) {
  for (const std::int64_t q : {0, 1536}) {
    const Setting s = latent_setting(q);
    // Core: scores over 192 and values over 128 elements of 128 heads, every pair counted.
    const double n = kPrompt, core = 2 * n * n * 128 * (192 + 128);
    const double expected = 2 * n * product_parameters(s.model, 0) + core;
    // Down-projections are not split over a tensor group unless sequence parallelism splits the tokens.
    for (const auto& [t, c] : {std::tuple{1, 1}, {8, 1}, {4, 4}}) {
      double sum = 0;
      for (const Operator& op : block_operators(s, 0, {t, c, 1, t > 1}, kPrompt, Mode::training)) {
        if (op.kind == OperatorKind::gemm) sum += op.gemm.flops().value();
        if (op.kind == OperatorKind::attention) sum += 4 * op.attention.head_dim * op.attention.scores();
      }
      EXPECT_NEAR(sum * t * c / expected, 1, 1e-12) << t << ' ' << c;
    }
  }
}

TEST(LatentAttention, GathersLatentVectorsInPlaceOfHiddenStates) {
  const Setting s = latent_setting();
  const auto operators = block_operators(s, 0, {8, 1, 1, true}, kPrompt, Mode::training);
  EXPECT_EQ(part(operators, "latent_gather").forward_comm.bytes.value(), 2.0 * kPrompt * (1536 + 576));
  EXPECT_EQ(part(operators, "query_down").gemm, (compute::GemmShape{kPrompt / 8, 1536, 7168, 1}));
  EXPECT_EQ(part(operators, "query_up").gemm, (compute::GemmShape{kPrompt, 16 * 192, 1536, 1}));
  EXPECT_EQ(part(operators, "key_value_up").gemm, (compute::GemmShape{kPrompt, 16 * 256, 512, 1}));
  EXPECT_EQ(part(operators, "output_projection").gemm, (compute::GemmShape{kPrompt, 7168, 16 * 128, 1}));
}

TEST(LatentAttention, KeepsExpandedHeadsForBackward) {
  // Per token in bf16: the hidden state once for both down-projections; both latent vectors, before and behind their
  // norms; queries and keys of 192 and values of 128 elements of 128 heads, log-sum-exp and output of the core.
  const Setting s = latent_setting();
  double sum = 0;
  for (const Operator& op : block_operators(s, 0, {1, 1, 1, false}, kPrompt, Mode::training)) {
    if (op.name == "attention_reduce") break;
    if (op.name != "input_norm") sum += op.saved.value();
  }
  const double latent = 2 * (1536 + 512), heads = 128 * (192 + 192 + 128 + 128);
  EXPECT_DOUBLE_EQ(sum / kPrompt, 2 * (7168 + latent + heads) + 4 * 128);
}

TEST(LatentAttention, DecodesAbsorbed) {
  const Setting s = latent_setting();
  const auto operators = decode_block_operators(s, 0, {8, 1, 32, false}, 1000);
  EXPECT_EQ(part(operators, "absorb_keys").gemm, (compute::GemmShape{32, 512, 128, 16}));
  EXPECT_EQ(part(operators, "absorb_values").gemm, (compute::GemmShape{32, 128, 512, 16}));
  const compute::AttentionShape& core = part(operators, "decode_attention").attention;
  EXPECT_EQ(core.heads, 16);
  EXPECT_EQ(core.kv_heads, 1);
  EXPECT_EQ(core.keys, 1000);
  EXPECT_EQ(core.cached_dim, 576);
  EXPECT_EQ(4 * core.head_dim, 2 * 576 + 2 * 512);  // FLOPs per score: over 576 elements, values over 512
  EXPECT_TRUE(std::ranges::none_of(operators, [](const Operator& op) { return op.name == "key_value_up"; }));
  // The up-projection's weights are read either way: per head 512 x (128 + 128).
  double weights = 0;
  for (const std::string_view name : {"absorb_keys", "absorb_values"}) {
    const compute::GemmShape& g = part(operators, name).gemm;
    weights += static_cast<double>(g.batch * g.n * g.k);
  }
  EXPECT_EQ(weights, 16 * 512.0 * 256);
}

TEST(LatentAttention, DecodeStreamsTheSharedCacheOnce) {
  const Setting s = latent_setting();
  compute::AttentionShape shape =
      part(decode_block_operators(s, 0, {1, 1, 64, false}, 8192), "decode_attention").attention;
  const compute::OperatorCost cost = compute::decode_split(shape, Precision::bf16, s.system.device, 1);
  EXPECT_DOUBLE_EQ(cost.work.bytes.value(), 64 * 8192.0 * 576 * 2);
}

TEST(LatentAttention, HeadsDivideByTheTensorGroup) {
  const Setting s = latent_setting();
  EXPECT_EQ(tensor_rule(s.model, 128), Reason::none);
  EXPECT_EQ(tensor_rule(s.model, 96), Reason::heads_by_tensor);
}

}  // namespace
}  // namespace shardscape::model
