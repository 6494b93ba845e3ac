// Where shared experts stand in the order of a layer when they run beside its exchanges.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

/// The names of a block's nodes from one to another, calls in brackets, what runs beside a call behind a '+'.
std::string order_of_block(step::LayerPart part, const char* from, const char* to) {
  Setting s;
  s.model = test::llama(1, 1024, 16, 4, 512, 32000);
  s.model.moe = MixtureOfExperts{.experts = 8, .top_k = 2, .expert_ffn_hidden = 512};
  s.model.moe->shared_experts = 1;
  s.model.moe->shared_ffn_hidden = 512;
  s.system.device = test::round_device();
  s.system.stack = test::plain_stack();
  s.system.stack.experts.shared_overlap = true;
  s.workload = test::training(1024, 16);
  ParallelPlan plan = test::plan_of(1, 1, 1, 8);
  plan.expert = 4;
  const auto operators =
      step::training_operators(step::block_layer(0), s, model::layer_key(plan, plan.microbatch));
  std::string text;
  bool inside = false;
  for (const step::Node& node : step::nodes(operators, part)) {
    inside = inside || node.op->name == from;
    if (!inside) continue;
    text += text.empty() ? "" : " ";
    const std::string name(node.op->name);
    text += node.call ? '[' + name + ']' : (node.beside_exchange ? "+" : "") + name;
    if (node.op->name == to) break;
  }
  return text;
}

TEST(SharedOverlap, WorkStandsBehindItsExchange) {
  EXPECT_EQ(
      order_of_block(step::LayerPart::forward, "dispatch", "shared_sum"),
      "[dispatch] +shared_in +swiglu expert_in swiglu expert_out [combine] +shared_out unpermute shared_sum");
  EXPECT_EQ(
      order_of_block(step::LayerPart::backward, "shared_sum", "permute"),
      "shared_sum unpermute [combine] +shared_out expert_out swiglu expert_in [dispatch] +swiglu +shared_in "
      "permute");
  // Gradients of weights that wait run when no exchange does.
  EXPECT_EQ(order_of_block(step::LayerPart::weight, "shared_out", "shared_in"),
            "shared_out expert_out expert_in shared_in");
}

}  // namespace
}  // namespace shardscape
