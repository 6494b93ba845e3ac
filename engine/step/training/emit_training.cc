// Makes the programs of a training step: the blocks of each stage (passes, pairs, the end of the step) with what runs
// beside them, put in the order of the schedule, and further programs for ranks with sick devices.
#include "engine/step/training/emit_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/schedule/pipeline.h"
#include "engine/step/layers/emit_layer.h"
#include "engine/step/layers/host_work.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/layers/paired_passes.h"
#include "engine/step/training/data_costs.h"
#include "engine/step/training/data_exposure.h"
#include "engine/step/training/data_traffic.h"
#include "engine/step/training/stage_tails.h"
#include "engine/step/training/step_machine.h"

namespace shardscape::step {

namespace {

using execution::Account;
using execution::Instruction;
using network::CollectiveOp;
using network::PlanLayout;
using Kind = Instruction::Kind;

constexpr std::size_t at(Pass pass) { return static_cast<std::size_t>(pass); }

class TrainingEmitter {
 public:
  TrainingEmitter(const TrainingStep& inputs, execution::ProgramBuilder& builder)
      : in_(inputs),
        builder_(builder),
        stack_(inputs.setting.system.stack),
        lanes_(add_layer_lanes(inputs.plan, builder)),
        layer_emitter_(stack_.communication, builder, lanes_) {
    set_device(in_.setting);
    const PlanLayout layout(in_.plan);
    for (const ParallelGroup copies : kCopyGroups)
      if (in_.plan.folds_experts() || !is_of_experts(copies))
        lanes_[copies] = builder_.add_lane(layout.group(copies), name_of(copies));
    // All data-parallel traffic shares one stream, whatever its group (data_exposure.h), so these lanes take turns.
    if (in_.plan.folds_experts())
      builder_.take_turns(lanes_[ParallelGroup::expert_data], lanes_[ParallelGroup::data_shard]);
    const std::int32_t stages = in_.plan.pipeline, stride = layout.stride(PlanAxis::pipeline);
    const bool wraps = in_.pipeline.wraps();
    const auto neighbour = [=](std::int32_t rank, std::int32_t step) {
      const std::int32_t stage = rank / stride % stages, next = stage + step;
      if (!wraps && (next < 0 || next >= stages)) return rank;
      return rank + ((next + stages) % stages - stage) * stride;
    };
    for (std::size_t way = 0; way < (in_.pipeline.both_ways() ? 2 : 1); ++way) {
      const char* const note = way == 0 ? "" : ", upward microbatches";
      down_[way] = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, 1); },
                                        fmt::format("to next stage{}", note));
      up_[way] = builder_.add_channel([=](std::int32_t rank) { return neighbour(rank, -1); },
                                      fmt::format("to previous stage{}", note));
    }
  }

  void build() {
    set_sequences(
        in_.setting, in_.plan, builder_, [&](std::int32_t member) { set_device(in_.setting, member); },
        [&](std::int32_t stage) { return build_stage(stage); });
    build_sick_ranks();
  }

 private:
  using Step = LayerEmitter::Step;
  using Item = LayerEmitter::Item;
  /// A pass through a chunk of the stage under construction, with what is special about its microbatch.
  struct ChunkPass {
    std::int32_t chunk = 0;
    Pass pass = Pass::forward;
    bool gathers = false;   ///< the first microbatch's: weights are gathered beside it
    bool releases = false;  ///< the last microbatch's: it completes gradients, which leave meanwhile
    bool defers = false;    ///< of a microbatch that defers the head's weight gradient
    bool paired = false;    ///< together with another pass: the host launches both without a stop
    [[nodiscard]] bool forward() const { return pass == Pass::forward; }
    friend auto operator<=>(const ChunkPass&, const ChunkPass&) = default;
  };
  struct StageUnderConstruction {
    std::int32_t stage = 0;
    std::int32_t deferred = 0;  ///< microbatches that defer the head's weight gradient
    DataTraffic traffic = {};
    TailCosts tail = {};           ///< expected
    double last_backward = 0;      ///< expected seconds of the last microbatch's backward on all chunks
    double backward_done = 0;      ///< the part of last_backward in the chunks built so far
    std::int32_t layers_done = 0;  ///< number of layers in these chunks
    HiddenGather hidden = {};      ///< of the gather of updated weights, expected
    bool gate_open = false;        ///< whether 1 - data_overlap of the last backward is done
    std::array<double, kCopyGroups.size()> buckets_gone =
        {};  ///< by part of traffic.gradients: what has left
  };

  /// The pass that computes the gradients of weights.
  [[nodiscard]] Pass gradient_pass() const { return in_.cuts() ? Pass::weight : Pass::backward; }

  /// Sets the device, and the member of the expert groups, that programs are made for from here on.
  void set_device(const Setting& setting, std::int32_t expert_rank = model::LayerKey::kBusiest) {
    device_ = &setting.system.device;
    for (const LayerKind kind : layer_kinds(in_.setting.model)) {
      for (const Pass pass : {Pass::forward, Pass::backward, Pass::weight, Pass::input})
        steps_[kind.index()][at(pass)] = steps_of(kind, pass, setting, expert_rank);
    }
  }

  [[nodiscard]] std::vector<Step> steps_of(LayerKind kind, Pass pass, const Setting& setting,
                                           std::int32_t expert_rank) const {
    // The operators of the busiest rank: the same ones in the same order, but with other loads.
    const std::vector<model::Operator> busiest = training_operators(kind, in_.setting, in_.key());
    model::LayerKey key = in_.key();
    key.expert_rank = expert_rank;
    const std::vector<model::Operator> operators = training_operators(kind, in_.setting, key);
    std::vector<Step> steps;
    for (const Segment& segment : in_.segments(kind, pass)) {
      layer_emitter_.append_part(
          steps, operators, segment.part, segment.again ? Account::recompute : Account::compute,
          [&](const Node& node) { return cost_of(price(busiest[node.index], in_.setting), node.part).time; },
          [&](const Node& node) { return cost_of(price(*node.op, setting), node.part); });
    }
    return steps;
  }

  /// The ranks whose links the calls of a stage cross.
  [[nodiscard]] network::Slice slice(std::int32_t stage) const {
    return slice_of(static_cast<std::size_t>(stage), in_, builder_.collectives());
  }

  /// From here on, calls are expected to take what they take on the devices of this stage.
  void set_slice(std::int32_t stage) { layer_emitter_.set_slice(slice(stage)); }

  // ---- one pass ----

  std::vector<Item> layers_of(const ChunkPass& pass) {
    std::vector<Item> items;
    HostLead lead;
    for (const LayerWork& work :
         in_.stream(in_.chunk_layers(now_.stage, pass.chunk), pass.pass, pass.defers)) {
      const Seconds launch = pass_launch(in_, work.kind, work.pass);
      const bool meets = !pass.paired && meets_host(in_, work.kind, work.pass);
      for (std::int32_t n = 0; n < work.count; ++n)
        layer_emitter_.append(items, steps_[work.kind.index()][at(work.pass)], launch, lead, meets);
    }
    return items;
  }

  /// Whether a pass exchanges messages with the stage that holds the next part of the model, or else the one before.
  [[nodiscard]] bool has_neighbour(const ChunkPass& pass, bool next) const {
    if (pass.pass == Pass::weight) return false;
    const std::int32_t part = in_.pipeline.part(now_.stage, pass.chunk);
    return next ? part + 1 < in_.pipeline.parts() : part > 0;
  }

  /// The channel by which the messages of a pass travel.
  [[nodiscard]] std::int32_t channel(const ChunkPass& pass) const {
    const bool upward = in_.pipeline.both_ways() && pass.chunk == 1;
    return (pass.forward() == upward ? up_ : down_)[upward ? 1 : 0];
  }

  /// Receives the input of a pass from the neighbour stage, if it has any; the host launches nothing before it is
  /// there.
  void receive_inputs(const ChunkPass& pass) {
    if (!has_neighbour(pass, !pass.forward())) return;
    builder_.add(on_channel(Kind::receive, channel(pass), 0));
    const Boundary boundary = in_.boundary();
    if (boundary.gathered > Bytes(0)) {
      const std::int32_t lane = lanes_[ParallelGroup::tensor];
      const std::int32_t gather = builder_.call(lane, CollectiveOp::all_gather, boundary.gathered);
      builder_.add({Kind::start, Account::compute, static_cast<std::uint16_t>(lane), gather, 1, 0});
      builder_.add(join_lane(lane, Account::pipeline_comm));
    }
    builder_.add(host_sync());
  }

  /// What the host does before passes, the device waiting.
  void begin_passes(double passes) {
    const Seconds lead = passes * pass_lead(in_);
    if (lead > Seconds(0)) builder_.add(host_launch(lead.value()));
  }

  void send_boundary(const ChunkPass& pass) {
    if (has_neighbour(pass, pass.forward()))
      builder_.add(on_channel(Kind::send, channel(pass), in_.boundary().message.value()));
  }

  /// Waits until the message has been sent, unless sends are asynchronous.
  void await_boundary(const ChunkPass& pass) {
    if (has_neighbour(pass, pass.forward()) && !stack_.communication.pipeline_async)
      builder_.add(on_channel(Kind::sent, channel(pass), 0));
  }

  /// Whether something else can begin in the middle of the item.
  static bool cuttable(const Item& item) {
    return item.instruction.kind == Kind::compute || item.instruction.kind == Kind::launch;
  }

  /// Adds the part of an item before something that begins `begin` seconds into it, and returns the rest. Operators are
  /// cut there, and so are waits for the host, the end of a launch. Waits for calls can't be cut: what begins within
  /// one is to begin before it.
  [[nodiscard]] Instruction cut(const Item& item, double begin) const {
    Instruction rest = item.instruction;
    if (!cuttable(item) || begin <= 0) return rest;
    Instruction before = rest;
    rest.value = rest.kind == Kind::compute ? rest.value - begin : item.expected - begin;
    before.value -= rest.value;
    layer_emitter_.add(before, item.stretch);
    return rest;
  }

  /// Adds a pass and the calls beside it. The calls begin when 1 - data_overlap of the items' time has passed (or
  /// before the wait for calls that this falls into), and end before the pass does. What compute loses to them follows
  /// behind it.
  void emit_beside(const std::vector<Item>& items, const std::vector<Instruction>& calls, Seconds traffic) {
    double total = 0;
    for (const Item& item : items) total += item.expected;
    const double begin = (1 - stack_.communication.data_overlap) * total;
    double passed = 0, together = 0;
    bool begun = false;
    const auto begin_calls = [&](double now) {
      begun = true;
      together = total - now;
      for (const Instruction& call : calls) builder_.add(call);
    };
    for (const Item& item : items) {
      const double start = passed;
      passed += item.expected;
      Instruction instruction = item.instruction;
      if (!begun && passed > begin) {
        instruction = cut(item, begin - start);
        begin_calls(cuttable(item) ? begin : start);
      }
      layer_emitter_.add(instruction, item.stretch);
    }
    if (!begun) begin_calls(total);
    for (const ParallelGroup copies : kCopyGroups) {
      const auto on_lane = [lane = lanes_[copies]](const Instruction& call) { return call.lane == lane; };
      if (std::ranges::any_of(calls, on_lane)) builder_.add(join_lane(lanes_[copies], Account::data_comm));
    }
    add_lost(lost_beside(stack_.communication, std::min(traffic, Seconds(together))));
  }

  /// Adds what compute loses to data-parallel traffic.
  void add_lost(Seconds lost) {
    if (lost <= Seconds(0)) return;
    builder_.add(compute(lost.value(), Account::data_comm,
                         builder_.name("lost to data-parallel traffic", {Work{}, lost.value()})));
  }

  /// The share of the gather of updated weights that lies beside forwards, and that of a chunk.
  [[nodiscard]] double gathered_beside() const {
    const Seconds whole = now_.tail.weights.whole;
    return whole > Seconds(0) ? now_.hidden.all() / whole : 0;
  }
  [[nodiscard]] double gathered_beside(std::int32_t chunk) const {
    if (!in_.pipeline.wraps()) return gathered_beside() / in_.pipeline.virtual_stages;
    return (chunk == 0 ? now_.hidden.first : now_.hidden.later) / now_.tail.weights.whole;
  }

  /// Starts a share of the gather of updated weights.
  void start_gather(double share) {
    for (const DataTraffic::Part& part : now_.traffic.weights()) {
      const double calls = std::max(1.0, std::round(share * part.calls));
      if (share > 0) builder_.add(start(part, calls, share * part.bytes / calls));
    }
  }

  /// Adds the first microbatch's forward through a chunk, and beside it the gather of the chunk's updated weights.
  /// Under interleaved schedules that of the next chunk follows, which goes on until its own first forward ends.
  void emit_gathering(const std::vector<Item>& items, std::int32_t chunk) {
    const bool leads = in_.pipeline.wraps();
    if (chunk == 0 || !leads) start_gather(gathered_beside(chunk));
    layer_emitter_.add(items);
    join(now_.traffic.weights());
    if (leads && chunk + 1 < in_.pipeline.virtual_stages) start_gather(gathered_beside(chunk + 1));
  }

  /// Decides how much of the weights' gather forwards hide; the rest stays behind the optimizer.
  void split_weights() {
    if (now_.traffic.weights().empty() || stack_.communication.gather_overlap <= 0) return;
    // Under dualpipe a stage and its mirror make these calls together, so both must find the same share. So both sum up
    // in the order of the model, whichever chunk that puts first, and take the lesser of their two forwards, which
    // differ where only one of them has sick links.
    const std::int32_t chunks = in_.pipeline.virtual_stages;
    const bool upward =
        in_.pipeline.both_ways() && in_.pipeline.part(now_.stage, 0) > in_.pipeline.part(now_.stage, 1);
    const auto forward_on = [&](std::int32_t devices) {
      set_slice(devices);
      double sum = 0;
      for (std::int32_t c = 0; c < chunks; ++c) {
        for (const Item& item : layers_of({.chunk = upward ? chunks - 1 - c : c})) sum += item.expected;
      }
      return sum;
    };
    double forward = forward_on(now_.stage);
    if (in_.pipeline.both_ways()) {
      forward = std::min(forward, forward_on(in_.plan.pipeline - 1 - now_.stage));
      set_slice(now_.stage);
    }
    const WeightGather& gather = now_.tail.weights;
    if (gather.whole <= Seconds(0)) return;
    now_.hidden = hidden_gather(stack_.communication, gather, Seconds(forward), in_.pipeline);
  }

  [[nodiscard]] Seconds expected(const DataTraffic::Part& part) const {
    return builder_.estimate(lanes_[part.group], part.op, part.bytes, part.calls, slice(now_.stage));
  }

  /// What calls beside a pass are expected to take among groups of other stages that take turns.
  [[nodiscard]] Seconds in_turn(const DataTraffic::Part& part, double calls, Bytes bytes) const {
    const network::RankGroups groups = PlanLayout(in_.plan).groups();
    const CallPrices prices{in_.setting, in_.plan, in_.turns, groups, builder_.collectives()};
    return prices.time_in_row(part.group, {part.op, bytes, groups[part.group], calls, slice(now_.stage)});
  }

  Instruction start(const DataTraffic::Part& part, double calls, Bytes bytes) {
    const std::int32_t lane = lanes_[part.group], number = builder_.call(lane, part.op, bytes);
    return {Kind::start,
            Account::compute,
            static_cast<std::uint16_t>(lane),
            number,
            static_cast<std::int32_t>(std::lround(calls)),
            0};
  }

  void join(std::span<const DataTraffic::Part> parts) {
    for (const DataTraffic::Part& part : parts)
      builder_.add(join_lane(lanes_[part.group], Account::data_comm));
  }

  void release_buckets() {
    const std::span<const DataTraffic::Part> gradients = now_.traffic.gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const DataTraffic::Part& part = gradients[i];
      double& gone = now_.buckets_gone[i];
      const double whole =
          whole_buckets(part.calls, GradientShares(in_, now_.stage, part.group).after(now_.layers_done));
      if (whole <= gone) continue;
      builder_.add(start(part, whole - gone, part.bytes / part.calls));
      gone = whole;
    }
  }

  /// Adds a backward, and lets buckets leave as it completes them, once the gate is open. Buckets of the last layer
  /// leave in the tail or, if the head's weight gradients are deferred, before those.
  void emit_releasing(const std::vector<Item>& items, std::int32_t chunk) {
    constexpr double kRounding = 1e-9;  // sums over chunks here and in last_backward are rounded differently
    const double gate = (1 - stack_.communication.data_overlap) * now_.last_backward;
    for (const Item& item : items) {
      const double rest = gate - now_.backward_done;
      now_.backward_done += item.expected;
      Instruction instruction = item.instruction;
      if (!now_.gate_open && now_.backward_done > gate + kRounding * now_.last_backward) {
        instruction = cut(item, rest);
        now_.gate_open = true;
        release_buckets();
      }
      layer_emitter_.add(instruction, item.stretch);
      if (!item.layer_end) continue;
      ++now_.layers_done;
      const bool tail = chunk == 0 && &item == &items.back() && now_.deferred == 0;
      if (now_.gate_open && !tail) release_buckets();
    }
  }

  std::int32_t build_pass(const ChunkPass& pass) {
    builder_.add(host_sync());
    const double chunks = in_.pipeline.virtual_stages;
    receive_inputs(pass);
    if (pass.pass != Pass::weight) begin_passes(1);
    const std::vector<Item> items = layers_of(pass);
    std::vector<Instruction> calls;
    Seconds traffic;
    for (const DataTraffic::Part& part : now_.traffic.beside(pass.pass)) {
      const double mine = std::max(1.0, std::round(part.calls / chunks));
      calls.push_back(start(part, mine, part.bytes / chunks / mine));
      traffic += in_turn(part, mine, part.bytes / chunks);
    }
    if (!calls.empty()) {
      emit_beside(items, calls, traffic);
    } else if (pass.gathers) {
      emit_gathering(items, pass.chunk);
    } else if (pass.releases) {
      emit_releasing(items, pass.chunk);
    } else {
      layer_emitter_.add(items);
    }
    send_boundary(pass);
    await_boundary(pass);
    constexpr std::array<const char*, kPasses> kNames = {"F#", "B#", "W#", "B# (inputs)"};
    std::string name = kNames[at(pass.pass)];
    if (in_.pipeline.virtual_stages > 1) name += fmt::format(" chunk {}", pass.chunk);
    return builder_.end_block(name);
  }

  /// What a pair sees of the items of one of its passes.
  [[nodiscard]] std::vector<PairStep> pair_steps(const std::vector<Item>& items) const {
    std::vector<PairStep> steps;
    for (const Item& item : items) {
      const Instruction& next = item.instruction;
      const bool exchange = next.lane == lanes_[ParallelGroup::expert];
      const PairStep::Kind kind = next.kind == Kind::compute             ? PairStep::Kind::compute
                                  : next.kind == Kind::start && exchange ? PairStep::Kind::exchange
                                  : next.kind == Kind::join && exchange  ? PairStep::Kind::wait
                                                                         : PairStep::Kind::other;
      steps.push_back({kind, item.expected});
    }
    return steps;
  }

  /// Builds a forward and a backward that run together.
  std::int32_t build_pair(const ChunkPass& forward, const ChunkPass& backward) {
    builder_.add(host_sync());
    receive_inputs(forward);
    receive_inputs(backward);
    begin_passes(2);
    const std::vector<Item> ahead = layers_of(forward), back = layers_of(backward);
    const PairOrder order = pair_up(pair_steps(ahead), pair_steps(back), stack_.communication.expert_overlap);
    for (const PairOrder::Part& part : order.parts) {
      Item item = (part.backward ? back : ahead)[part.step];
      if (item.instruction.kind == Kind::compute) item.instruction.value = part.seconds;
      layer_emitter_.add(item.instruction, item.stretch);
    }
    layer_emitter_.add_lost_to_exchanges(order.hidden);
    for (const ChunkPass& pass : {forward, backward}) send_boundary(pass);
    for (const ChunkPass& pass : {forward, backward}) await_boundary(pass);
    return builder_.end_block(in_.pipeline.virtual_stages > 1
                                  ? fmt::format("FB# chunks {} and {}", forward.chunk, backward.chunk)
                                  : std::string("FB#"));
  }

  // ---- one stage ----

  /// Builds the deferred weight gradient of the head for one microbatch.
  std::int32_t build_deferred() {
    builder_.add(host_sync());
    std::vector<Item> items;
    HostLead lead;
    layer_emitter_.append(items, steps_[kHeadLayer.index()][at(Pass::weight)],
                          pass_launch(in_, kHeadLayer, Pass::weight), lead);
    layer_emitter_.add(items);
    return builder_.end_block("W#");
  }

  std::int32_t build_tail() {
    const std::span<const DataTraffic::Part> gradients = now_.traffic.gradients();
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      const DataTraffic::Part& part = gradients[i];
      const double calls = part.calls - now_.buckets_gone[i];
      if (calls > 0) builder_.add(start(part, calls, part.bytes / part.calls));
    }
    join(gradients);
    add_lost(lost_in_step(in_, now_.tail, now_.hidden.all(), Seconds(now_.last_backward)));
    const OptimizerCost optimizer = optimizer_cost(in_, *device_, now_.stage);
    builder_.add(compute(optimizer.total().value(), Account::optimizer,
                         builder_.name("optimizer", {optimizer.update.work, optimizer.total().value()}),
                         builder_.bound(name_of(optimizer.update.bound))));
    start_gather(1 - gathered_beside());
    join(now_.traffic.weights());
    return builder_.end_block("end of step");
  }

  /// The pass that an operation of the schedule stands for.
  [[nodiscard]] ChunkPass pass_of(const schedule::PipelineOperation& op) const {
    ChunkPass pass{.chunk = op.chunk};
    if (!op.backward) {
      pass.gathers = op.microbatch == 0 && now_.hidden.all() > Seconds(0);
      return pass;
    }
    pass.pass = op.weight ? Pass::weight : op.cut && !in_.cuts() ? Pass::input : Pass::backward;
    pass.defers = op.microbatch < now_.deferred;
    const bool last = op.microbatch + 1 == in_.pipeline.per_chunk() && !in_.pipeline.both_ways();
    pass.releases = last && pass.pass == gradient_pass();
    return pass;
  }

  /// Builds the programs of a stage; returns the number of its sequence.
  std::int32_t build_stage(std::int32_t stage) {
    set_slice(stage);
    now_ = {.stage = stage, .deferred = in_.last(stage) ? in_.deferred() : 0};
    now_.traffic = data_traffic(in_, stage);
    now_.tail = tail_costs(now_.traffic, [&](const DataTraffic::Part& part) { return expected(part); });
    const bool all_defer = now_.deferred > 0 && now_.deferred == in_.pipeline.microbatches;
    for (std::int32_t c = 0; c < in_.pipeline.virtual_stages; ++c) {
      for (const Item& item : layers_of({.chunk = c, .pass = gradient_pass(), .defers = all_defer}))
        now_.last_backward += item.expected;
    }
    split_weights();
    std::vector<schedule::PipelineOperation> order;
    schedule::stage_order(in_.pipeline, stage, order);
    std::map<std::pair<ChunkPass, std::optional<ChunkPass>>, std::int32_t>
        built;  // value: number of the block
    std::vector<std::int32_t> blocks;
    blocks.reserve(order.size() + static_cast<std::size_t>(now_.deferred) + 1);
    for (std::size_t i = 0; i < order.size(); ++i) {
      ChunkPass pass = pass_of(order[i]);
      std::optional<ChunkPass> other;
      if (order[i].paired) {
        other = pass_of(order[++i]);
        pass.paired = other->paired = true;
      }
      const auto [entry, fresh] = built.try_emplace({pass, other}, 0);
      if (fresh) entry->second = other ? build_pair(pass, *other) : build_pass(pass);
      blocks.push_back(entry->second);
    }
    if (now_.deferred > 0)
      blocks.insert(blocks.end(), static_cast<std::size_t>(now_.deferred), build_deferred());
    blocks.push_back(build_tail());
    return builder_.add_sequence(std::move(blocks), fmt::format("stage {}", stage));
  }

  /// Builds programs for ranks with sick devices. Ranks of one stage with the same device and experts share a program.
  void build_sick_ranks() {
    std::map<std::tuple<std::size_t, const Setting*, std::int32_t>, std::int32_t> built;
    for (const SickStage& sick : in_.sick) {
      const std::int32_t member = expert_member(in_.setting, in_.plan, sick.rank);
      const auto [entry, fresh] = built.try_emplace({sick.stage, &sick.setting, member}, 0);
      if (fresh) {
        set_device(sick.setting, member);
        entry->second = build_stage(static_cast<std::int32_t>(sick.stage));
      }
      builder_.set_sequence(sick.rank, entry->second);
      builder_.set_memory_share(sick.rank, sick.memory_share);
    }
  }

  const TrainingStep& in_;
  execution::ProgramBuilder& builder_;
  const StackProfile& stack_;
  const DeviceSpec* device_ = nullptr;
  /// The steps that a layer runs in a pass on the device set last; index: kind of layer, pass.
  std::array<std::array<std::vector<Step>, kPasses>, kLayerKinds> steps_;
  GroupLanes lanes_;
  LayerEmitter layer_emitter_;
  /// Channels to the next and to the previous stage; the second ones are for dualpipe's second chunks.
  std::array<std::int32_t, 2> down_{}, up_{};
  StageUnderConstruction now_;
};

}  // namespace

void emit_training(const TrainingStep& inputs, execution::ProgramBuilder& builder) {
  TrainingEmitter(inputs, builder).build();
}

}  // namespace shardscape::step
