#include "engine/step/emit_iterations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/model/block_kinds.h"

namespace shardscape::step {

namespace {

using execution::Account;
using network::PlanLayout;
using Kind = execution::Instruction::Kind;
using Table = IterationCosts::Table;

/// A sampled token is a 32-bit number.
constexpr double kTokenBytes = 4;

constexpr std::string_view kDecodeAttention = "decode_attention";

}  // namespace

IterationEmitter::IterationEmitter(const IterationCosts::Inputs& inputs, TokenCosts& costs,
                                   execution::ProgramBuilder& builder, const IterationShape& shape)
    : in_(inputs),
      costs_(costs),
      builder_(builder),
      shape_(shape),
      stack_(inputs.setting.system.stack),
      layer_emitter_(stack_.communication, builder, add_layer_lanes(inputs.plan, builder)) {
  const bool reads = shape.table == Table::prompt;
  set_blocks(model::LayerKey::kBusiest);
  const auto alike = [&](const std::vector<model::Operator>& operators) {
    return steps_of(operators, operators);
  };
  embedding_ = alike(reads ? costs.prompt_embedding(shape.tokens) : costs.decode_embedding(shape.tokens));
  if (shape.rows > 0) head_ = alike(costs.head_rows(shape.rows));
  boundary_ = (reads ? costs.prompt(shape.tokens) : costs.decode(shape.tokens)).boundary;

  const std::int32_t stages = in_.plan.pipeline;
  if (stages == 1) return;
  const std::int32_t stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
  down_ = builder_.add_channel(
      [=](std::int32_t rank) { return rank / stride % stages + 1 < stages ? rank + stride : rank; });
  back_ = builder_.add_channel([=](std::int32_t rank) {
    return rank / stride % stages + 1 < stages ? rank : rank - (stages - 1) * stride;
  });
  builder_.delay_channel(back_, host_step());
}

void IterationEmitter::set_blocks(std::int32_t expert_rank) {
  const auto block_of = [&](std::size_t kind, std::int32_t member) {
    return shape_.table == Table::prompt ? costs_.prompt_block(kind, shape_.tokens, member)
                                         : costs_.decode_block(kind, shape_.tokens, member);
  };
  blocks_.clear();
  for (std::size_t kind = 0; kind < model::block_kinds(in_.setting.model).size(); ++kind) {
    const std::vector<model::Operator> operators = block_of(kind, expert_rank);
    double calls = 0;
    for (const Node& node : nodes(operators, Part::forward)) calls += node.call ? node.comm().repeats : 0;
    blocks_.push_back({steps_of(operators, block_of(kind, model::LayerKey::kBusiest),
                                shape_.prompt_attention[kind], shape_.decode_attention[kind]),
                       stack_.host.decode_layer + calls * stack_.host.per_collective});
  }
}

Seconds IterationEmitter::host_step() const {
  return stack_.host.decode_step_fixed + static_cast<double>(shape_.rows) * stack_.host.decode_sequence;
}

/// The attention core stands for all pieces of prompts; that of all decoding sequences follows it.
std::vector<LayerEmitter::Step> IterationEmitter::steps_of(std::vector<model::Operator> operators,
                                                           std::vector<model::Operator> busiest,
                                                           double prompt_attention, double decode_attention) {
  for (std::vector<model::Operator>* const list : {&operators, &busiest}) {
    const auto core = std::ranges::find(*list, true, &model::Operator::attention_core);
    if (core == list->end() || decode_attention <= 0) continue;
    model::Operator decode;
    decode.name = kDecodeAttention;
    list->insert(core + 1, decode);
  }
  const auto seconds = [&](const model::Operator& op) {
    if (op.attention_core) return Seconds(prompt_attention);
    return op.name == kDecodeAttention ? Seconds(decode_attention) : price_forward(op, in_.setting);
  };
  std::vector<LayerEmitter::Step> steps;
  layer_emitter_.append_part(steps, operators, Part::forward, Account::compute, [&](const Node& node) {
    const auto index = static_cast<std::size_t>(node.op - operators.data());
    return LayerEmitter::Costs{{seconds(*node.op)}, seconds(busiest[index])};
  });
  return steps;
}

/// `opening`: nothing has to come back before.
std::int32_t IterationEmitter::build_pass(std::int32_t stage, bool opening) {
  const bool piped = in_.plan.pipeline > 1;
  if (!first(stage)) builder_.add(on_channel(Kind::receive, down_, 0));
  if (piped && first(stage) && !opening) builder_.add(on_channel(Kind::receive, back_, 0));

  std::vector<LayerEmitter::Item> items;
  const auto emit = [&](const std::vector<LayerEmitter::Step>& steps, Seconds launch) {
    items.clear();
    double lead = 0;
    layer_emitter_.append(items, steps, launch, lead);
    for (const LayerEmitter::Item& item : items) {
      execution::Instruction instruction = item.instruction;
      if (instruction.kind == Kind::compute) instruction.value *= item.stretch;
      builder_.add(instruction);
    }
  };
  const auto sync_host = [&] { builder_.add({Kind::sync_host, Account::host, 0, 0, 1, 0}); };
  if (first(stage)) emit(embedding_, Seconds(0));
  const std::int32_t gap = builder_.name("gap between kernels");
  in_.layers[static_cast<std::size_t>(stage)].each([&](std::size_t kind) {
    sync_host();
    emit(blocks_[kind].steps, blocks_[kind].launch);
    if (stack_.host.decode_gap > Seconds(0)) {
      builder_.add(compute(stack_.host.decode_gap.value(), Account::host, gap));
    }
  });
  if (last(stage)) emit(head_, Seconds(0));

  if (!last(stage)) {
    builder_.add(on_channel(Kind::send, down_, boundary_.value()));
    if (!stack_.communication.pipeline_async) builder_.add(on_channel(Kind::sent, down_, 0));
  } else if (piped) {
    builder_.add(on_channel(Kind::send, back_, kTokenBytes * static_cast<double>(shape_.rows)));
  } else {
    sync_host();
    builder_.add({Kind::launch, Account::host, 0, 0, 1, host_step().value()});
  }
  return builder_.end_block();
}

std::int32_t IterationEmitter::build_stage(std::int32_t stage, std::int64_t groups, std::int64_t rounds) {
  const bool waits = in_.plan.pipeline > 1 && first(stage);
  std::vector<std::int32_t> blocks(static_cast<std::size_t>(groups), build_pass(stage, true));
  if (rounds > 1) {
    const std::int32_t pass = waits ? build_pass(stage, false) : blocks.front();
    blocks.resize(static_cast<std::size_t>(groups * rounds), pass);
  }
  if (waits) {
    builder_.add(on_channel(Kind::receive, back_, 0));
    const std::int32_t wait = builder_.end_block();
    blocks.insert(blocks.end(), static_cast<std::size_t>(groups), wait);
  }
  return builder_.add_sequence(std::move(blocks));
}

void IterationEmitter::build(std::int64_t groups, std::int64_t rounds) {
  const std::int32_t stages = in_.plan.pipeline;
  const std::int32_t stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
  std::map<std::int32_t, std::vector<std::int32_t>>
      sequences;  // by member of the expert group, of each stage
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(in_.plan.gpus()); ++rank) {
    const std::int32_t member = expert_member(in_.setting, in_.plan, rank);
    std::vector<std::int32_t>& of = sequences[member];
    if (of.empty()) {
      if (member != model::LayerKey::kBusiest) set_blocks(member);
      for (std::int32_t stage = 0; stage < stages; ++stage) of.push_back(build_stage(stage, groups, rounds));
    }
    builder_.set_sequence(rank, of[static_cast<std::size_t>(rank / stride % stages)]);
  }
}

}  // namespace shardscape::step
