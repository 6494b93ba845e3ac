// Makes the programs of a server's iterations: the steps of each kind of block, whole or as two half batches, put in
// the order in which every stage runs them for each group of requests.
#include "engine/step/emit_iterations.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/model/expert_shares.h"

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
  const bool reads = shape_.table == Table::prompt;
  const auto which = reads ? TokenCosts::Tokens::of_prompts : TokenCosts::Tokens::decoding;
  blocks_.clear();
  for (std::size_t kind = 0; kind < model::block_kinds(in_.setting.model).size(); ++kind) {
    const std::int64_t tokens = in_halves(kind) ? half_of(shape_.tokens) : shape_.tokens;
    const std::int32_t slowest = costs_.slowest_member(which, kind, tokens);
    const bool own = expert_rank != model::LayerKey::kBusiest && slowest != model::kBalancedMember;
    const std::vector<model::Operator> operators =
        costs_.block(which, kind, tokens, own ? expert_rank : slowest);
    double calls = 0;
    for (const Node& node : nodes(operators, Part::forward)) calls += node.call ? node.comm().repeats : 0;
    blocks_.push_back({steps_of(operators, costs_.block(which, kind, tokens, slowest),
                                shape_.prompt_attention[kind], shape_.decode_attention[kind]),
                       stack_.host.decode_layer + calls * stack_.host.per_collective,
                       {},
                       {},
                       {}});
    if (in_halves(kind)) cut_into_pieces(blocks_.back());
  }
}

bool IterationEmitter::in_halves(std::size_t kind) const {
  return stack_.serving.two_batch_overlap && costs_.deals(kind) && splits(static_cast<double>(shape_.tokens));
}

void IterationEmitter::cut_into_pieces(Block& block) {
  std::size_t piece = 0;
  for (const LayerEmitter::Step& step : block.steps) {
    if (step.comm.repeats <= 0 || step.comm.group != ParallelGroup::expert) {
      block.pieces[piece].push_back(step);
      continue;
    }
    (piece == 0 ? block.dispatch : block.combine) = step.comm;
    ++piece;
    SHARDSCAPE_CHECK(piece < kHalfPieces, piece);
  }
}

Seconds IterationEmitter::host_step() const {
  return stack_.host.decode_step_fixed + static_cast<double>(shape_.rows) * stack_.host.decode_sequence;
}

/// Prices operators as steps. One attention core stands for all pieces of prompts, and a second one behind it for all
/// decoding sequences.
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

void IterationEmitter::emit(const std::vector<LayerEmitter::Item>& items) {
  for (const LayerEmitter::Item& item : items) {
    execution::Instruction instruction = item.instruction;
    if (instruction.kind == Kind::compute) instruction.value *= item.stretch;
    builder_.add(instruction);
  }
}

void IterationEmitter::emit(const std::vector<LayerEmitter::Step>& steps, Seconds launch) {
  std::vector<LayerEmitter::Item> items;
  double lead = 0;
  layer_emitter_.append(items, steps, launch, lead);
  emit(items);
}

/// Adds the gap between the kernels of a block, `seconds` long.
void IterationEmitter::pause(double seconds) {
  const std::int32_t gap = builder_.name("gap between kernels");
  if (seconds > 0) builder_.add(compute(seconds, Account::host, gap));
}

/// Adds compute that runs while a call is under way. The call is waited for when as much of it is hidden as the stack
/// allows. Adds to `hidden` the seconds of it that are expected to be hidden.
void IterationEmitter::emit_beside(const model::CollectiveCall& call,
                                   std::vector<LayerEmitter::Item> computes, double& hidden) {
  const StackProfile::Communication& communication = stack_.communication;
  const double comm = layer_emitter_.seconds_of(call);
  double all = 0;
  for (const LayerEmitter::Item& item : computes)
    if (item.instruction.kind == Kind::compute) all += item.expected;
  hidden += hidden_by_half(communication, comm, all);
  // A call that may be hidden altogether is waited for where the other half reaches its own call.
  double room = communication.expert_overlap * comm;
  const bool cuts = communication.expert_overlap < 1 && room < all;
  bool waits = true;
  std::vector<LayerEmitter::Item> items;
  layer_emitter_.append_calls(items, call);
  for (LayerEmitter::Item& item : computes) {
    if (cuts && waits && item.instruction.kind == Kind::compute) {
      if (item.expected > room) {
        LayerEmitter::Item part = item;
        part.instruction.value = part.expected = room;
        items.push_back(part);
        layer_emitter_.append_join(items, call.group, comm);
        item.instruction.value = item.expected -= room;
        waits = false;
      } else {
        room -= item.expected;
      }
    }
    items.push_back(item);
  }
  if (waits) layer_emitter_.append_join(items, call.group, comm);
  emit(items);
}

void IterationEmitter::emit_half_layer(const Block& block, const Block& previous, PlaceInRun place) {
  constexpr auto kTail = static_cast<std::size_t>(HalfPiece::tail);
  double hidden = 0;
  for (const TwoBatchStep& step : two_batch_steps(place)) {
    std::vector<LayerEmitter::Item> items;
    if (step.tail_of_previous) layer_emitter_.append_steps(items, previous.pieces[kTail]);
    layer_emitter_.append_steps(items, block.pieces[static_cast<std::size_t>(step.piece)]);
    const Block& sends = step.of_previous ? previous : block;
    switch (step.exchange) {
      case TwoBatchStep::Exchange::none:
        emit(items);
        break;
      case TwoBatchStep::Exchange::dispatch:
        emit_beside(sends.dispatch, std::move(items), hidden);
        break;
      case TwoBatchStep::Exchange::combine:
        emit_beside(sends.combine, std::move(items), hidden);
        break;
    }
  }
  const double lost = (1 - stack_.communication.expert_hidden) * hidden;
  if (lost > 0)
    builder_.add(
        compute(lost, Account::expert_comm, builder_.name("lost to exchanges of experts", {Work{}, lost})));
  builder_.add({Kind::launch, Account::host, 0, 0, 1, 2 * block.launch.value()});
}

/// Builds one pass of a stage. `opening`: a first one, which waits for no tokens to come back.
std::int32_t IterationEmitter::build_pass(std::int32_t stage, bool opening) {
  const bool piped = in_.plan.pipeline > 1;
  if (!first(stage)) builder_.add(on_channel(Kind::receive, down_, 0));
  if (piped && first(stage) && !opening) builder_.add(on_channel(Kind::receive, back_, 0));

  if (first(stage)) emit(embedding_, Seconds(0));
  const double gap = stack_.host.decode_gap.value();
  each_layer(
      in_.layers[static_cast<std::size_t>(stage)], [&](std::size_t kind) { return in_halves(kind); },
      [&](std::size_t kind) {
        sync_host();
        emit(blocks_[kind].steps, blocks_[kind].launch);
        pause(gap);
      },
      [&](std::size_t kind, std::size_t previous, PlaceInRun place) {
        sync_host();
        emit_half_layer(blocks_[kind], blocks_[previous], place);
        pause(2 * gap);
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
      sequences;  // key: member of the expert group; value index: stage
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
