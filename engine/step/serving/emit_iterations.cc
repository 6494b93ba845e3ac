// Makes the programs of a server's iterations: the steps of each kind of block, whole or as two half batches, put in
// the order in which every stage runs them for each group of requests.
#include "engine/step/serving/emit_iterations.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/model/expert_shares.h"

namespace shardscape::step {

namespace {

using execution::Account;
using network::PlanLayout;
using Kind = execution::Instruction::Kind;

/// A sampled token is a 32-bit number.
constexpr double kTokenBytes = 4;

constexpr std::string_view kDecodeAttention = "decode_attention";

class IterationEmitter {
 public:
  /// All references must outlive this object.
  IterationEmitter(const InferenceInputs& inputs, TokenCosts& costs, execution::ProgramBuilder& builder,
                   const IterationShape& shape)
      : in_(inputs),
        costs_(costs),
        builder_(builder),
        shape_(shape),
        stream_(inputs, costs),
        layer_emitter_(inputs.setting.system.stack.communication, builder,
                       add_layer_lanes(inputs.plan, builder)) {
    set_blocks(model::LayerKey::kBusiest);
    embedding_ = steps_of(shape.table, kEmbeddingLayer, shape.tokens);
    if (shape.rows > 0) head_ = steps_of(TokenTable::head, kHeadLayer, shape.rows);
    boundary_ = costs.at(shape.table, shape.tokens).boundary;
    if (!piped()) return;
    const std::int32_t stages = in_.plan.pipeline, stride = PlanLayout(in_.plan).stride(PlanAxis::pipeline);
    down_ = builder_.add_channel(
        [=](std::int32_t rank) { return rank / stride % stages + 1 < stages ? rank + stride : rank; });
    back_ = builder_.add_channel([=](std::int32_t rank) {
      return rank / stride % stages + 1 < stages ? rank : rank - (stages - 1) * stride;
    });
    builder_.delay_channel(back_, Seconds(host_of_iteration(in_.setting.system.stack, in_.batches(),
                                                            static_cast<double>(shape.rows))
                                              .total()));
  }

  void build(std::int64_t groups, std::int64_t rounds) {
    set_sequences(
        in_.setting, in_.plan, builder_,
        [&](std::int32_t member) {
          if (member != model::LayerKey::kBusiest) set_blocks(member);
        },
        [&](std::int32_t stage) { return build_stage(stage, groups, rounds); });
  }

  // What the stream of an iteration calls.
  void end(LayerKind layer) { emit(layer == kHeadLayer ? head_ : embedding_, Seconds(0)); }

  void blocks(const model::StageLayers& layers) {
    stream_.blocks(
        layers, static_cast<double>(shape_.tokens),
        [&](std::size_t kind, std::int32_t count) {
          const Block& block = blocks_[kind];
          for (std::int32_t i = 0; i < count; ++i) {
            builder_.add(host_sync());
            emit(block.steps, Seconds(block.host.launch));
            pause(block.host.gap);
          }
        },
        [&](std::size_t kind, std::size_t previous, PlaceInRun place) {
          builder_.add(host_sync());
          emit_half_layer(blocks_[kind], blocks_[previous], place);
          pause(blocks_[kind].host.gap);
        });
  }

  void pass_on(std::size_t /*stage*/, bool waits) {
    builder_.add(on_channel(Kind::send, down_, boundary_.value()));
    if (waits) builder_.add(on_channel(Kind::sent, down_, 0));
  }

  void tokens_back() {
    const auto rows = static_cast<double>(shape_.rows);
    if (piped()) return builder_.add(on_channel(Kind::send, back_, kTokenBytes * rows));
    builder_.add(host_sync());
    builder_.add(host_launch(host_of_iteration(in_.setting.system.stack, in_.batches(), rows).total()));
  }

 private:
  using Step = LayerEmitter::Step;
  using Item = LayerEmitter::Item;
  struct Block {
    std::vector<Step> steps;
    BlockHost host;
    HalfLayer<std::vector<Step>, model::CollectiveCall> half = {};  ///< where it runs as two half batches
  };
  enum class Pass : std::uint8_t { opening, later };
  [[nodiscard]] bool piped() const { return in_.plan.pipeline > 1; }

  /// Sets the member of the expert groups that programs are made for from here on. What is hidden is decided by the
  /// slowest member. Where a balanced load takes longer than any member's, all members have that.
  void set_blocks(std::int32_t expert_rank) {
    blocks_.clear();
    for (std::size_t kind = 0, kinds = model::block_kinds(in_.setting.model).size(); kind < kinds; ++kind) {
      const auto [batches, tokens, slowest] = stream_.work_of(shape_.table, kind, shape_.tokens);
      const bool own = expert_rank != model::LayerKey::kBusiest && slowest != model::kBalancedMember;
      Block block{steps_of(shape_.table, block_layer(kind), tokens, own ? expert_rank : slowest, slowest,
                           shape_.attention[kind]),
                  host_of_block(in_.setting.system.stack,
                                costs_.at(shape_.table, tokens).blocks[kind].call_count, batches)};
      if (batches > 1) cut_into_pieces(block);
      blocks_.push_back(std::move(block));
    }
  }

  /// Cuts the steps of half a batch at its exchanges of experts.
  static void cut_into_pieces(Block& block) {
    auto& half = block.half;
    std::vector<Step>* piece = &half.head;
    for (const Step& step : block.steps) {
      if (step.comm.repeats <= 0 || step.comm.group != ParallelGroup::expert) {
        piece->push_back(step);
        continue;
      }
      SHARDSCAPE_CHECK(piece != &half.tail, piece->size());
      const bool first = piece == &half.head;
      (first ? half.dispatch : half.combine) = step.comm;
      piece = first ? &half.experts : &half.tail;
    }
  }

  /// Prices operators as steps. `member`: whose layer it is; `slowest`: the one that decides what is hidden. One
  /// attention core stands for all pieces of prompts, and a second one behind it for all decoding sequences.
  std::vector<LayerEmitter::Step> steps_of(TokenTable table, LayerKind layer, std::int64_t tokens,
                                           std::int32_t member = model::LayerKey::kBusiest,
                                           std::int32_t slowest = model::LayerKey::kBusiest,
                                           const AttentionSeconds& attention = {}) const {
    const auto operators_of = [&](std::int32_t of) {
      std::vector<model::Operator> list = costs_.operators(table, layer, tokens, of);
      const auto core = std::ranges::find(list, true, &model::Operator::attention_core);
      if (core == list.end() || attention.decode <= 0) return list;
      model::Operator decode;
      decode.name = kDecodeAttention;
      list.insert(core + 1, decode);
      return list;
    };
    const auto seconds = [&](const model::Operator& op) {
      if (op.attention_core) return Seconds(attention.prompt);
      return op.name == kDecodeAttention ? Seconds(attention.decode) : price_forward(op, in_.setting);
    };
    const std::vector<model::Operator> operators = operators_of(member), planned = operators_of(slowest);
    std::vector<Step> steps;
    layer_emitter_.append_part(
        steps, operators, LayerPart::forward, Account::compute,
        [&](const Node& node) { return seconds(planned[node.index]); },
        [&](const Node& node) { return compute::OperatorCost{seconds(*node.op)}; });
    return steps;
  }

  void emit(const std::vector<Step>& steps, Seconds launch) {
    std::vector<Item> items;
    HostLead lead;
    layer_emitter_.append(items, steps, launch, lead);
    layer_emitter_.add(items);
  }

  /// Adds the gap between the kernels of a block, `seconds` long.
  void pause(double seconds) {
    const std::int32_t gap = builder_.name("gap between kernels");
    if (seconds > 0) builder_.add(compute(seconds, Account::host, gap));
  }

  /// Adds compute that runs while a call is under way (overlap.h). Adds to `hidden` the seconds of it that are expected
  /// to be hidden.
  void emit_beside(const model::CollectiveCall& call, std::vector<Item> computes, double& hidden) {
    const double comm = layer_emitter_.seconds_of(call);
    double all = 0;
    for (const Item& item : computes)
      if (item.instruction.kind == Kind::compute) all += item.expected;
    const BesideExchange beside =
        beside_exchange(comm, in_.setting.system.stack.communication.expert_overlap, all);
    hidden += beside.hidden;
    double room = beside.until;
    bool waits = true;
    std::vector<Item> items;
    layer_emitter_.append_calls(items, call);
    for (Item& item : computes) {
      if (waits && item.instruction.kind == Kind::compute) {
        if (item.expected > room) {
          Item part = item;
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
    layer_emitter_.add(items);
  }

  void emit_half_layer(const Block& block, const Block& previous, PlaceInRun place) {
    double hidden = 0;
    each_half_step(block.half, previous.half, place,
                   [&](const model::CollectiveCall* exchange, const std::vector<Step>* before,
                       const std::vector<Step>& work) {
                     std::vector<Item> items;
                     if (before != nullptr) layer_emitter_.append_steps(items, *before);
                     layer_emitter_.append_steps(items, work);
                     exchange != nullptr ? emit_beside(*exchange, std::move(items), hidden)
                                         : layer_emitter_.add(items);
                   });
    layer_emitter_.add_lost_to_exchanges(hidden);
    builder_.add(host_launch(block.host.launch));
  }

  /// Builds one pass of a stage. An opening one waits for no tokens to come back.
  std::int32_t build_pass(std::int32_t stage, Pass pass) {
    if (stage > 0) {
      builder_.add(on_channel(Kind::receive, down_, 0));
    } else if (piped() && pass == Pass::later) {
      builder_.add(on_channel(Kind::receive, back_, 0));
    }
    stream_.stage(static_cast<std::size_t>(stage), static_cast<double>(shape_.rows), *this);
    return builder_.end_block();
  }

  std::int32_t build_stage(std::int32_t stage, std::int64_t groups, std::int64_t rounds) {
    const bool waits = piped() && stage == 0;
    std::vector<std::int32_t> blocks(static_cast<std::size_t>(groups), build_pass(stage, Pass::opening));
    if (rounds > 1) {
      const std::int32_t pass = waits ? build_pass(stage, Pass::later) : blocks.front();
      blocks.resize(static_cast<std::size_t>(groups * rounds), pass);
    }
    if (waits) {
      builder_.add(on_channel(Kind::receive, back_, 0));
      const std::int32_t wait = builder_.end_block();
      blocks.insert(blocks.end(), static_cast<std::size_t>(groups), wait);
    }
    return builder_.add_sequence(std::move(blocks));
  }

  const InferenceInputs& in_;
  TokenCosts& costs_;
  execution::ProgramBuilder& builder_;
  const IterationShape shape_;
  const IterationStream stream_;
  LayerEmitter layer_emitter_;
  std::vector<Block> blocks_;  ///< index: kind of block
  std::vector<Step> embedding_, head_;
  Bytes boundary_;
  std::int32_t down_ = 0, back_ = 0;  ///< channels to the next stage, and from the last stage to the first
};

}  // namespace

void emit_iterations(const InferenceInputs& inputs, TokenCosts& costs, const IterationShape& shape,
                     std::int64_t groups, std::int64_t rounds, execution::ProgramBuilder& builder) {
  IterationEmitter(inputs, costs, builder, shape).build(groups, rounds);
}

}  // namespace shardscape::step
