// Laws of selective recompute, whatever parts of a block a stack names for it: a further part never keeps more and
// never takes less, what it takes stands in the operator table, and both modes agree.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/simulate.h"
#include "engine/spec/parallel_groups.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/seeds.h"

namespace shardscape::laws_recompute {
namespace {

constexpr auto kParts = enum_values<RecomputePart>();

/// All parts, in a random order.
std::vector<RecomputePart> shuffled_parts(test::ScenarioGenerator& random) {
  std::vector<RecomputePart> parts(kParts.begin(), kParts.end());
  for (std::size_t i = 1; i < parts.size(); ++i)
    std::swap(parts[i], parts[random.pick({std::size_t{0}, i / 2, i})]);
  return parts;
}

std::string text_of(const std::vector<RecomputePart>& parts) {
  std::string text;
  for (const RecomputePart part : parts) text += std::string(name_of(part)) + ' ';
  return text;
}

/// Experts in all layers but the first, latent attention in some models, narrow products in others.
Setting recompute_setting(test::ScenarioGenerator& random) {
  Setting s = random.setting(Phase::training);
  s.model.layers = 4;
  if (random.coin()) {
    s.model.moe = MixtureOfExperts{.experts = 16, .top_k = 2, .expert_ffn_hidden = s.model.ffn_hidden};
    s.model.moe->first_dense_layers = 1;
  }
  if (random.coin() && s.model.position == PositionKind::rotary) {
    s.model.latent = LatentAttention{AttentionKind::mla, random.coin() ? 256 : 0, 128, 32, 64, 64};
    s.model.kv_heads = s.model.heads;
    s.model.head_dim = 96;
    s.model.qkv_bias = false;
  }
  s.system.device.sm.tensor_flops_per_clock[static_cast<std::size_t>(Precision::fp8)] = 2048;
  if (random.coin()) {
    s.workload.precision = PolicyName::fp8;
    s.system.stack.kept.activation_inputs = random.pick({KeptFormat::computed, KeptFormat::fp8});
    if (is_fused(s.system.stack.attention))
      s.system.stack.kept.attention_output = random.pick({KeptFormat::computed, KeptFormat::e5m6});
  }
  return s;
}

double kept_bytes(const Setting& setting, std::size_t kind, const model::LayerKey& key) {
  const std::int64_t tokens = setting.workload.sequence_length;
  const auto operators = model::block_operators(setting, kind, key, tokens, model::Mode::training);
  return model::saved_bytes(operators, Recompute::selective, setting, key, tokens).value();
}

TEST(LawsRecompute, AFurtherPartNeverKeepsMore) {
  for (std::uint64_t seed = 1; seed <= test::seeds(200); ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = recompute_setting(random);
    const std::vector<RecomputePart> parts = shuffled_parts(random);
    const bool split = random.coin();
    const model::LayerKey key{split ? 2 : 1, 1, 1, split};
    for (std::size_t kind = 0; kind < model::block_kinds(setting.model).size(); ++kind) {
      const std::int64_t tokens = setting.workload.sequence_length;
      double last =
          model::saved_bytes(model::block_operators(setting, kind, key, tokens, model::Mode::training),
                             Recompute::none, setting, key, tokens)
              .value();
      for (std::size_t n = 1; n <= parts.size(); ++n) {
        setting.system.stack.selective_recompute.assign(parts.begin(),
                                                        parts.begin() + static_cast<std::ptrdiff_t>(n));
        const double now = kept_bytes(setting, kind, key);
        EXPECT_LE(now, last * (1 + 1e-12)) << "seed " << seed << " kind " << kind << ": "
                                           << text_of(setting.system.stack.selective_recompute);
        EXPECT_GT(now, 0);
        last = now;
      }
    }
  }
}

TEST(LawsRecompute, AFurtherPartNeverTakesLessAndModesAgree) {
  const int wanted = test::cases(24);
  int plans = 0, marked = 0, close = 0;
  for (std::uint64_t seed = 0; seed < 400 && plans < wanted; ++seed) {
    test::ScenarioGenerator random(seed);
    Setting setting = recompute_setting(random);
    // Nothing overlaps and the host costs nothing: what is left is what the parts take.
    setting.system.fabric = test::crossbar(8, 100e9, 1e-6);
    StackProfile stack = test::plain_stack();
    stack.attention = setting.system.stack.attention;
    stack.partition = PartitionRule::balanced;
    stack.fused_pointwise = setting.system.stack.fused_pointwise;
    stack.keep_gathered = setting.system.stack.keep_gathered;
    stack.quantisation = setting.system.stack.quantisation;
    stack.kept = setting.system.stack.kept;
    setting.system.stack = stack;
    setting.workload.global_batch = 16;
    ParallelPlan plan = random.plan(setting);
    plan.recompute = Recompute::selective;
    plan.microbatch = 1;
    plan.zero_stage = 0;
    // Chunks of interleaved schedules are uneven, which a stage averages.
    plan.virtual_stages = 1;
    if (plan.pipeline > 1)
      plan.schedule = random.pick({ScheduleKind::one_f_one_b, ScheduleKind::zero_bubble});
    if (setting.model.moe) plan.expert = random.pick({1, 2, 4});
    if (!folds_evenly(plan)) continue;
    const std::vector<RecomputePart> parts = shuffled_parts(random);
    double last = 0;
    for (std::size_t n = 1; n <= parts.size(); ++n) {
      setting.system.stack.selective_recompute.assign(parts.begin(),
                                                      parts.begin() + static_cast<std::ptrdiff_t>(n));
      Details details;
      const Prediction p = Simulator(setting, {.time_infeasible = true}).run(plan, {}, &details);
      if (p.status != Status::ok && p.status != Status::memory) break;
      SCOPED_TRACE(test::describe(seed, plan) + ' ' + text_of(setting.system.stack.selective_recompute));
      EXPECT_GE(p.step_time.value(), last * (1 - 1e-9));
      last = p.step_time.value();
      double listed = 0;
      for (const OperatorRow& row : details.operators)
        if (row.phase == "recompute" && row.bound != "link") listed += row.count * row.time.value();
      EXPECT_NEAR(listed, p.breakdown[TimeClass::recompute].value(), 1e-6 * last);
      if (n != parts.size() / 2) continue;
      ++plans;
      const Prediction executed =
          Simulator(setting, {.time_infeasible = true, .mode = ExecutionMode::flattened}).run(plan);
      const double off = std::abs(p.step_time / executed.step_time - 1);
      if (p.outside_domain()) {
        ++marked;
      } else {
        close += off < 0.05 ? 1 : 0;
        EXPECT_LT(off, 0.4) << "contended " << p.contended_share;
      }
    }
  }
  EXPECT_EQ(plans, wanted);
  // The band of LawsModes: what plans that compute nothing again differ by is in it.
  if (!test::all_seeds()) return;
  EXPECT_GE(close, 0.95 * (plans - marked)) << marked << " of " << plans << " marked";
}

}  // namespace
}  // namespace shardscape::laws_recompute
