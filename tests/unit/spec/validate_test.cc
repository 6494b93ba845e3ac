// Does validate() name exactly the broken rule, and all of them at once?
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "engine/spec/fabric_spec.h"
#include "engine/spec/model.h"
#include "engine/spec/stack.h"
#include "engine/spec/workload.h"
#include "tests/support/a100.h"

namespace shardscape {
namespace {

std::set<std::string> fields(const Problems& problems) {
  std::set<std::string> result;
  for (const Problem& problem : problems.list()) {
    result.insert(problem.field);
    EXPECT_FALSE(problem.message.empty()) << problem.field;
  }
  return result;
}

template <class Spec>
struct Rule {
  const char* field;
  std::function<void(Spec&)> breaks;
};

/// Breaks one rule at a time, then all at once.
template <class Spec>
void expect_rules(const Spec& good, const std::vector<Rule<Spec>>& rules) {
  EXPECT_EQ(fields(good.validate()), std::set<std::string>{});
  Spec all_broken = good;
  std::set<std::string> all_fields;
  for (const Rule<Spec>& rule : rules) {
    SCOPED_TRACE(rule.field);
    Spec broken = good;
    rule.breaks(broken);
    EXPECT_EQ(fields(broken.validate()), std::set<std::string>{rule.field});
    rule.breaks(all_broken);
    all_fields.insert(rule.field);
  }
  const std::set<std::string> found = fields(all_broken.validate());
  for (const std::string& field : all_fields) EXPECT_TRUE(found.contains(field)) << field;
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

ModelSpec good_model() {
  ModelSpec model;
  model.layers = 2;
  model.hidden = 64;
  model.heads = 8;
  model.kv_heads = 4;
  model.head_dim = 8;
  model.ffn_hidden = 256;
  model.vocabulary = 1000;
  model.max_positions = 128;
  return model;
}

TEST(Validate, Model) {
  expect_rules<ModelSpec>(good_model(), {{"layers", [](auto& m) { m.layers = 0; }},
                                         {"hidden", [](auto& m) { m.hidden = -1; }},
                                         {"head_dim", [](auto& m) { m.head_dim = 0; }},
                                         {"ffn_hidden", [](auto& m) { m.ffn_hidden = 0; }},
                                         {"vocabulary", [](auto& m) { m.vocabulary = 0; }},
                                         {"max_positions", [](auto& m) { m.max_positions = 0; }},
                                         {"dropout", [](auto& m) { m.dropout = 1; }},
                                         {"dropout", [](auto& m) { m.dropout = -0.1; }},
                                         {"dropout", [](auto& m) { m.dropout = kNan; }},
                                         {"kv_heads", [](auto& m) { m.kv_heads = 3; }},
                                         {"kv_heads", [](auto& m) { m.kv_heads = 0; }},
                                         {"heads", [](auto& m) { m.heads = 0; }},
                                         {"qkv_bias", [](auto& m) { m.linear_bias = m.qkv_bias = true; }}});
  ModelSpec rotary = good_model();
  rotary.position = PositionKind::rotary;
  EXPECT_EQ(fields(rotary.validate()), std::set<std::string>{"max_positions"});
  rotary.max_positions = 0;
  EXPECT_TRUE(rotary.validate().empty());
}

TEST(Validate, Device) {
  using D = DeviceSpec;
  const auto bf16 = static_cast<std::size_t>(Precision::bf16);
  expect_rules<D>(test::a100(),
                  {{"sm.count", [](D& d) { d.sm.count = 0; }},
                   {"sm.clock", [](D& d) { d.sm.clock = Hertz(0); }},
                   {"sm.vector_flops_per_clock", [](D& d) { d.sm.vector_flops_per_clock = kNan; }},
                   {"sm.registers", [](D& d) { d.sm.registers = Bytes(0); }},
                   {"sm.sram", [](D& d) { d.sm.sram = Bytes(-1); }},
                   {"sm.sram_bytes_per_clock", [](D& d) { d.sm.sram_bytes_per_clock = 0; }},
                   {"sm.tensor_flops_per_clock", [](D& d) { d.sm.tensor_flops_per_clock = {}; }},
                   {"sm.tensor_flops_per_clock.bf16", [=](D& d) { d.sm.tensor_flops_per_clock[bf16] = -1; }},
                   {"l2.capacity", [](D& d) { d.l2.capacity = Bytes(0); }},
                   {"l2.bytes_per_clock", [](D& d) { d.l2.bytes_per_clock = 0; }},
                   {"hbm.stacks", [](D& d) { d.hbm.stacks = 0; }},
                   {"hbm.capacity_per_stack", [](D& d) { d.hbm.capacity_per_stack = Bytes(0); }},
                   {"hbm.bandwidth_per_stack", [](D& d) { d.hbm.bandwidth_per_stack = BytesPerSecond(0); }},
                   {"sustained.tensor", [](D& d) { d.sustained.tensor = 1.01; }},
                   {"sustained.hbm", [](D& d) { d.sustained.hbm = 0; }},
                   {"sustained.l2", [](D& d) { d.sustained.l2 = kNan; }},
                   {"sm.tensor_efficiency", [](D& d) { d.sm.tensor_efficiency = 1.2; }},
                   {"sm.load_latency_clocks", [](D& d) { d.sm.load_latency_clocks = -1; }},
                   {"sm.l2_bytes_per_clock", [](D& d) { d.sm.l2_bytes_per_clock = 0; }},
                   {"sm.fragment.m", [](D& d) { d.sm.fragment.m = 0; }},
                   {"sm.fragment.n", [](D& d) { d.sm.fragment.n = -8; }},
                   {"sm.fragment.per_cta", [](D& d) { d.sm.fragment.per_cta = 0; }},
                   {"sm.cluster", [](D& d) { d.sm.cluster = 0; }},
                   {"attention.forward", [](D& d) { d.attention.forward = 0; }},
                   {"attention.backward", [](D& d) { d.attention.backward = 2; }},
                   {"energy.idle_watts",
                    [](D& d) {
                      d.power = Watts(400);
                      d.energy = {400, 1, 0.5, 0.25, 30, 400};
                    }},
                   {"energy.burst_watts",
                    [](D& d) {
                      d.power = Watts(400);
                      d.energy = {60, 1, 0.5, 0.25, 30, 399};
                    }},
                   {"energy.flop_pj", [](D& d) { d.energy.flop_pj = -1; }},
                   {"energy.byte_pj", [](D& d) { d.energy.byte_pj = kNan; }},
                   {"energy.fp8", [](D& d) { d.energy.fp8 = 0; }},
                   {"energy.fp4", [](D& d) { d.energy.fp4 = 11; }},
                   {"energy.idle_watts", [](D& d) { d.energy.idle_watts = -1; }},
                   {"energy.burst_watts", [](D& d) { d.energy.burst_watts = -1; }},
                   {"products.latency", [](D& d) { d.products.latency = Seconds(-1); }},
                   {"products.step", [](D& d) { d.products.step = Seconds(-1); }},
                   {"products.reduction", [](D& d) { d.products.reduction = Seconds(kNan); }},
                   {"products.output", [](D& d) { d.products.output = 0.5; }},
                   {"products.port", [](D& d) { d.products.port = 0; }},
                   {"cold_start", [](D& d) { d.cold_start = Seconds(-1); }},
                   {"kernel_latency", [](D& d) { d.kernel_latency = Seconds(-1e-6); }}});
}

FabricSpec good_fabric() {
  FabricSpec fabric;
  fabric.name = "two";
  fabric.dimensions = {{"torus", DimensionKind::torus, {4, 2}, BytesPerSecond(1e11), Seconds(1e-6)},
                       {"rail", DimensionKind::switched, {8}, BytesPerSecond(25e9), Seconds(2e-6)}};
  return fabric;
}

TEST(Validate, Fabric) {
  using F = FabricSpec;
  expect_rules<F>(good_fabric(),
                  {{"dimensions[0].name", [](F& f) { f.dimensions[0].name.clear(); }},
                   {"dimensions[1].name", [](F& f) { f.dimensions[1].name = f.dimensions[0].name; }},
                   {"dimensions[0].shape", [](F& f) { f.dimensions[0].shape.clear(); }},
                   {"dimensions[0].shape",
                    [](F& f) {
                      f.dimensions[0].shape = {4, -1};
                    }},
                   {"dimensions[0].shape", [](F& f) { f.dimensions[0].shape = {0}; }},
                   {"dimensions[1].shape",
                    [](F& f) {
                      f.dimensions[1].shape = {2, 2};
                    }},
                   {"dimensions[0].bandwidth", [](F& f) { f.dimensions[0].bandwidth = BytesPerSecond(0); }},
                   {"dimensions[1].latency", [](F& f) { f.dimensions[1].latency = Seconds(-1); }}});
  EXPECT_EQ(fields(FabricSpec{}.validate()), std::set<std::string>{"dimensions"});
  FabricSpec open = good_fabric();
  open.dimensions.back().shape = {FabricTemplate::kFill};
  EXPECT_TRUE(open.validate().empty());
}

StackProfile good_stack() {
  StackProfile stack;
  stack.communication.bucket = Bytes(1e6);
  return stack;
}

TEST(Validate, AChunkedServerHasATokenForEverySequence) {
  StackProfile stack = good_stack();
  stack.serving.token_budget = stack.serving.max_batch - 1;
  EXPECT_EQ(fields(stack.validate()), std::set<std::string>{"serving.token_budget"});
  stack.serving.scheduler = ServingPolicy::prefill_priority;
  EXPECT_TRUE(stack.validate().empty());
}

TEST(Validate, ALimitOfDeferralsNeedsDeferrals) {
  StackProfile stack = good_stack();
  stack.head.deferral_limit = 50;
  EXPECT_EQ(fields(stack.validate()), std::set<std::string>{"head.deferral_limit"});
  stack.head.deferred_weight_gradient = true;
  EXPECT_TRUE(stack.validate().empty());
}

TEST(Validate, Stack) {
  using S = StackProfile;
  expect_rules<S>(
      good_stack(),
      {{"zero_slice", [](S& s) { s.zero_slice = Seconds(-1); }},
       {"host.forward_layer", [](S& s) { s.host.forward_layer = Seconds(-1); }},
       {"host.backward_layer", [](S& s) { s.host.backward_layer = Seconds(-1); }},
       {"host.per_collective", [](S& s) { s.host.per_collective = Seconds(-1); }},
       {"host.stage_pass", [](S& s) { s.host.stage_pass = Seconds(-1); }},
       {"host.step_fixed", [](S& s) { s.host.step_fixed = Seconds(-1); }},
       {"host.decode_layer", [](S& s) { s.host.decode_layer = Seconds(-1); }},
       {"host.decode_gap", [](S& s) { s.host.decode_gap = Seconds(-1); }},
       {"serving.token_budget", [](S& s) { s.serving.token_budget = 0; }},
       {"serving.max_batch", [](S& s) { s.serving.max_batch = 0; }},
       {"serving.kv_block", [](S& s) { s.serving.kv_block = 0; }},
       {"serving.kv_share", [](S& s) { s.serving.kv_share = 1.5; }},
       {"serving.converted_share", [](S& s) { s.serving.converted_share = 0; }},
       {"serving.kv_watermark", [](S& s) { s.serving.kv_watermark = -0.1; }},
       {"serving.poll_interval", [](S& s) { s.serving.poll_interval = 0; }},
       {"serving.frontend", [](S& s) { s.serving.frontend = Seconds(-1); }},
       {"serving.eager_floor", [](S& s) { s.serving.eager_floor = Seconds(kNan); }},
       {"serving.first_prompts", [](S& s) { s.serving.first_prompts = Seconds(-1); }},
       {"serving.fp8_expert_share", [](S& s) { s.serving.fp8_expert_share = 0; }},
       {"serving.fp8_block_share", [](S& s) { s.serving.fp8_block_share = 0; }},
       {"serving.fp8_blackwell_share", [](S& s) { s.serving.fp8_blackwell_share = 0; }},
       {"serving.eager_layer", [](S& s) { s.serving.eager_layer = Seconds(-1); }},
       {"serving.eager_expert_layer", [](S& s) { s.serving.eager_expert_layer = Seconds(kNan); }},
       {"host.decode_step_fixed", [](S& s) { s.host.decode_step_fixed = Seconds(kNan); }},
       {"communication.call", [](S& s) { s.communication.call = Seconds(-1); }},
       {"communication.rank_step", [](S& s) { s.communication.rank_step = Seconds(-1); }},
       {"communication.scale_up_fraction", [](S& s) { s.communication.scale_up_fraction = 0; }},
       {"communication.scale_out_fraction", [](S& s) { s.communication.scale_out_fraction = 1.1; }},
       {"communication.tensor_overlap", [](S& s) { s.communication.tensor_overlap = -0.1; }},
       {"communication.context_overlap", [](S& s) { s.communication.context_overlap = 1.1; }},
       {"communication.data_overlap", [](S& s) { s.communication.data_overlap = kNan; }},
       {"communication.data_hidden", [](S& s) { s.communication.data_hidden = 1.1; }},
       {"communication.data_sms", [](S& s) { s.communication.data_sms = -1; }},
       {"communication.gather_overlap", [](S& s) { s.communication.gather_overlap = -0.1; }},
       {"communication.expert_overlap", [](S& s) { s.communication.expert_overlap = 1.1; }},
       {"experts.dispatch_sms", [](S& s) { s.experts.dispatch_sms = 0; }},
       {"experts.forward_layer", [](S& s) { s.experts.forward_layer = Seconds(-1); }},
       {"experts.backward_layer", [](S& s) { s.experts.backward_layer = Seconds(-1); }},
       {"experts.per_expert", [](S& s) { s.experts.per_expert = Seconds(kNan); }},
       {"experts.load_wait", [](S& s) { s.experts.load_wait = Seconds(-1); }},
       {"experts.plain_launch", [](S& s) { s.experts.plain_launch = Seconds(-1); }},
       {"communication.expert_hidden", [](S& s) { s.communication.expert_hidden = -0.1; }},
       {"pipeline_layout", [](S& s) { s.pipeline_layout = "Et|t"; }},
       {"quantisation.passes", [](S& s) { s.quantisation.passes = -1; }},
       {"quantisation.weight_bytes", [](S& s) { s.quantisation.weight_bytes = kNan; }},
       {"head.deferral_limit",
        [](S& s) {
          s.head = {true, -1};
        }},
       {"communication.bucket", [](S& s) { s.communication.bucket = Bytes(0); }},
       {"state.gradient_bytes", [](S& s) { s.state.gradient_bytes = -1; }},
       {"state.gradient_comm_bytes", [](S& s) { s.state.gradient_comm_bytes = -1; }},
       {"state.master_bytes", [](S& s) { s.state.master_bytes = -1; }},
       {"state.moment_bytes", [](S& s) { s.state.moment_bytes = -1; }},
       {"memory.reserve", [](S& s) { s.memory.reserve = Bytes(-1); }},
       {"memory.fragmentation", [](S& s) { s.memory.fragmentation = 0.9; }}});
}

TEST(Validate, WorkloadAsksOnlyForItsPhase) {
  using W = WorkloadSpec;
  W training;
  training.sequence_length = 2048;
  training.global_batch = 8;
  expect_rules<W>(training, {{"sequence_length", [](W& w) { w.sequence_length = 0; }},
                             {"global_batch", [](W& w) { w.global_batch = 0; }}});
  W inference;
  inference.phase = Phase::inference;
  inference.prompt_tokens = inference.output_tokens = inference.concurrency = 1;
  expect_rules<W>(inference, {{"prompt_tokens", [](W& w) { w.prompt_tokens = 0; }},
                              {"output_tokens", [](W& w) { w.output_tokens = 0; }},
                              {"concurrency", [](W& w) { w.concurrency = -3; }}});
}

}  // namespace
}  // namespace shardscape
