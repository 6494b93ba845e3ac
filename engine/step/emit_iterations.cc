#include "engine/step/emit_iterations.h"

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
      builder_(builder),
      shape_(shape),
      stack_(inputs.setting.system.stack),
      layer_emitter_(stack_.communication, builder, add_layer_lanes(inputs.plan, builder)) {
  const bool reads = shape.table == Table::prompt;
  for (std::size_t kind = 0; kind < model::block_kinds(in_.setting.model).size(); ++kind) {
    const std::vector<model::Operator> operators =
        reads ? costs.prompt_block(kind, shape.tokens) : costs.decode_block(kind, shape.tokens);
    double calls = 0;
    for (const Node& node : nodes(operators, Part::forward)) calls += node.call ? node.comm().repeats : 0;
    blocks_.push_back({steps_of(operators, shape.prompt_attention[kind], shape.decode_attention[kind]),
                       stack_.host.decode_layer + calls * stack_.host.per_collective});
  }
  embedding_ = steps_of(reads ? costs.prompt_embedding(shape.tokens) : costs.decode_embedding(shape.tokens));
  if (shape.rows > 0) head_ = steps_of(costs.head_rows(shape.rows));
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

Seconds IterationEmitter::host_step() const {
  return stack_.host.decode_step_fixed + static_cast<double>(shape_.rows) * stack_.host.decode_sequence;
}

/// The attention core stands for all pieces of prompts; that of all decoding sequences follows it.
std::vector<LayerEmitter::Step> IterationEmitter::steps_of(std::vector<model::Operator> operators,
                                                           double prompt_attention, double decode_attention) {
  const auto core = std::ranges::find(operators, true, &model::Operator::attention_core);
  if (core != operators.end() && decode_attention > 0) {
    model::Operator decode;
    decode.name = kDecodeAttention;
    operators.insert(core + 1, decode);
  }
  const auto seconds = [&](const model::Operator& op) {
    if (op.attention_core) return Seconds(prompt_attention);
    return op.name == kDecodeAttention ? Seconds(decode_attention) : price_forward(op, in_.setting);
  };
  std::vector<LayerEmitter::Step> steps;
  layer_emitter_.append_part(steps, operators, Part::forward, Account::compute, [&](const Node& node) {
    return LayerEmitter::Costs{{seconds(*node.op)}, seconds(*node.op)};
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
    for (const LayerEmitter::Item& item : items) builder_.add(item.instruction);
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

void IterationEmitter::build(std::int64_t groups, std::int64_t rounds) {
  const std::int32_t stages = in_.plan.pipeline;
  const std::int32_t stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const bool waits = stages > 1 && first(stage);
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
    const std::int32_t sequence = builder_.add_sequence(std::move(blocks));
    for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(in_.plan.gpus()); ++rank) {
      if (rank / stride % stages == stage) builder_.set_sequence(rank, sequence);
    }
  }
}

}  // namespace shardscape::step
