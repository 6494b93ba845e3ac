// Prices iterations of a server: costs of blocks and of the head at sampled numbers of tokens, attention for what each
// iteration does, and their sum over the stages by class of time.
#include "engine/step/price_iterations.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/expert_shares.h"
#include "engine/model/head.h"
#include "engine/step/training_bytes.h"

namespace shardscape::step {

namespace {

using model::LayerKey;
using model::Operator;
using model::OperatorKind;
using network::CollectiveOp;
using serving::IterationTime;

/// Sums over forward of an operator list, without its attention core.
PartCost price_rest(const std::vector<Operator>& operators, const Setting& setting) {
  PartCost cost;
  cost.between.assign(1, Seconds(0));
  std::vector<const Operator*> callers;
  for (const Node& node : listed_nodes(operators, Part::forward)) {
    if (node.call) {
      callers.push_back(node.op);
      cost.calls.push_back(node.comm());
      cost.call_count += node.comm().repeats;
      if (node.comm().group == ParallelGroup::expert) cost.between.emplace_back(0);
    } else if (node.op->kind != OperatorKind::attention) {
      const Seconds time = price_forward(*node.op, setting);
      cost.device += time;
      cost.between.back() += time;
      if (!node.op->loads.runs.empty()) cost.experts += time;
    }
  }
  const std::vector<Node> in_order = nodes(operators, Part::forward);
  std::vector<Seconds> seconds;
  for (const Node& node : in_order) {
    // The attention core hides no call, so its time does not matter.
    const bool known = !node.call && node.op->kind != OperatorKind::attention;
    seconds.push_back(known ? price_forward(*node.op, setting) : Seconds(0));
  }
  add_hiders(in_order, seconds, callers, cost);
  return cost;
}

Operator attention_of(const std::vector<Operator>& operators) {
  const auto core = std::ranges::find(operators, OperatorKind::attention, &Operator::kind);
  SHARDSCAPE_CHECK(core != operators.end(), operators.size());
  return *core;
}

/// One member of an expert group for each distinct load; empty where all members get equally much.
std::vector<std::int32_t> distinct_members(const Setting& setting, const LayerKey& key) {
  const model::ExpertSplit split = key.experts();
  if (split.ranks == 1 || !loads_differ(setting.model, setting.workload)) return {};
  const MixtureOfExperts& moe = *setting.model.moe;
  const std::vector<double> all = compute::popularity(setting.workload.expert_load, moe.experts, moe.top_k);
  std::map<std::vector<double>, std::int32_t> members;
  for (std::int32_t member = 0; member < split.ranks; ++member) {
    std::vector<double> load = model::experts_of(all, split, member);
    std::ranges::sort(load);
    members.try_emplace(std::move(load), member);
  }
  std::vector<std::int32_t> distinct;
  for (const auto& [load, member] : members) distinct.push_back(member);
  std::ranges::sort(distinct);
  return distinct;
}

/// Most pieces of prompts whose attention is remembered; some megabytes.
constexpr std::size_t kMostPieces = 1 << 16;

double mix(double low, double high, double share) { return low + share * (high - low); }

/// Adds up the seconds of each stage's blocks into `stages`.
void stage_seconds(const std::vector<model::StageLayers>& layers,
                   const std::array<double, model::kMostBlockKinds>& block, std::vector<double>& stages) {
  stages.clear();
  for (const model::StageLayers& stage : layers) {
    double busy = 0;
    for (const auto& [kind, count] : stage) busy += count * block[kind];
    stages.push_back(busy);
  }
}

/// Whether tokens are dealt to experts and back: exactly two exchanges go over ranks that deal experts.
bool deals_experts(const std::vector<Operator>& operators) {
  const auto over_experts = [](const Operator& op) {
    return op.forward_comm.repeats > 0 && op.forward_comm.group == ParallelGroup::expert;
  };
  return std::ranges::count_if(operators, over_experts) == 2;
}

}  // namespace

Seconds price_forward(const Operator& op, const Setting& setting) {
  if (op.kind != OperatorKind::gemm) return price(op, setting).forward.time;
  return price_product(op, op.gemm, setting.system.device).time;
}

TokenCosts::TokenCosts(const Setting& setting, const ParallelPlan& plan)
    : setting_(setting),
      layout_(model::serving_layer_key(plan, 1)),
      distinct_members_(distinct_members(setting, layout_)) {
  for (std::size_t kind = 0; kind < model::block_kinds(setting.model).size(); ++kind) {
    const std::vector<Operator> decode = decode_block(kind, 1);
    cores_.push_back({attention_of(prompt_block(kind, setting.workload.prompt_tokens)),
                      attention_of(decode),
                      {},
                      deals_experts(decode),
                      {}});
  }
}

LayerKey TokenCosts::key(std::int64_t sequences, std::int32_t context) const {
  LayerKey key = layout_;
  key.context = context;
  key.microbatch = static_cast<std::int32_t>(sequences);
  return key;
}

std::vector<Operator> TokenCosts::prompt_block(std::size_t kind, std::int64_t tokens,
                                               std::int32_t expert_rank) const {
  LayerKey of_rank = key(1, layout_.context);
  of_rank.expert_rank = expert_rank;
  return model::block_operators(setting_, kind, of_rank, tokens, model::Mode::prefill);
}

std::int32_t TokenCosts::slowest_member(Tokens which, std::size_t kind, std::int64_t tokens) {
  if (distinct_members_.empty()) return LayerKey::kBusiest;
  const auto [entry, fresh] = slowest_.try_emplace({which, kind, tokens}, model::kBalancedMember);
  if (!fresh) return entry->second;
  const auto seconds = [&](std::int32_t member) {
    return price_rest(block(which, kind, tokens, member), setting_).device;
  };
  Seconds longest = seconds(model::kBalancedMember);
  for (const std::int32_t member : distinct_members_) {
    const Seconds time = seconds(member);
    if (time > longest) longest = time, entry->second = member;
  }
  return entry->second;
}

PartCost TokenCosts::price_block(Tokens which, std::size_t kind, std::int64_t tokens) {
  return price_rest(block(which, kind, tokens, slowest_member(which, kind, tokens)), setting_);
}

std::vector<Operator> TokenCosts::prompt_embedding(std::int64_t tokens) const {
  return model::embedding_operators(setting_, key(1, layout_.context), tokens, model::Mode::prefill);
}

std::vector<Operator> TokenCosts::decode_block(std::size_t kind, std::int64_t sequences,
                                               std::int32_t expert_rank) const {
  LayerKey of_rank = key(sequences, layout_.context);
  of_rank.expert_rank = expert_rank;
  return model::decode_block_operators(setting_, kind, of_rank, 1);
}

std::vector<Operator> TokenCosts::decode_embedding(std::int64_t sequences) const {
  return model::decode_embedding_operators(setting_, key(sequences, 1));
}

std::vector<Operator> TokenCosts::head_rows(std::int64_t rows) const {
  return model::decode_head_operators(setting_, key(rows, 1));
}

const TokenCost& TokenCosts::prompt(std::int64_t tokens) {
  const auto [entry, fresh] = prompt_.try_emplace(tokens);
  if (fresh) {
    entry->second = {{},
                     price_rest(prompt_embedding(tokens), setting_),
                     model::boundary_bytes(setting_, key(1, layout_.context), tokens)};
    for (std::size_t kind = 0; kind < cores_.size(); ++kind)
      entry->second.blocks.push_back(price_block(Tokens::of_prompts, kind, tokens));
  }
  return entry->second;
}

const TokenCost& TokenCosts::decode(std::int64_t sequences) {
  const auto [entry, fresh] = decode_.try_emplace(sequences);
  if (fresh) {
    entry->second = {{},
                     price_rest(decode_embedding(sequences), setting_),
                     model::boundary_bytes(setting_, key(sequences, 1), 1)};
    for (std::size_t kind = 0; kind < cores_.size(); ++kind)
      entry->second.blocks.push_back(price_block(Tokens::decoding, kind, sequences));
  }
  return entry->second;
}

const PartCost& TokenCosts::head(std::int64_t rows) {
  const auto [entry, fresh] = head_.try_emplace(rows);
  if (fresh) entry->second = price_rest(head_rows(rows), setting_);
  return entry->second;
}

TokenCosts::Pieces TokenCosts::pieces_of(std::size_t kind, const serving::Iteration& iteration) const {
  const bool local = model::attention_window(setting_.model, kind) > 0;
  return {iteration.prompt_tokens, iteration.prompt_pairs,
          local ? iteration.window_pairs : iteration.masked_pairs};
}

compute::OperatorCost TokenCosts::price_prompt_attention(std::size_t kind,
                                                         const serving::Iteration& iteration) const {
  Operator core = cores_[kind].prompt;
  core.attention.batch = 1;
  const auto [tokens, pairs, visible] = pieces_of(kind, iteration);
  core.attention.queries = std::max(1.0, tokens / layout_.context);
  core.attention.keys = pairs / tokens;
  core.attention.visible = visible / pairs;
  return price(core, setting_).forward;
}

compute::OperatorCost TokenCosts::price_decode_attention(std::size_t kind, double sequences,
                                                         double cached) const {
  Operator core = cores_[kind].decode;
  core.attention.batch = sequences;
  core.attention.keys = model::cached_tokens(setting_.model, kind,
                                             cached / sequences / layout_.context);  // see attention_core()
  return price(core, setting_).forward;
}

Seconds TokenCosts::prompt_attention(std::size_t kind, const serving::Iteration& iteration) {
  auto& prompts = cores_[kind].prompts;
  if (prompts.size() >= kMostPieces) prompts.clear();
  const auto [entry, fresh] = prompts.try_emplace(pieces_of(kind, iteration));
  if (fresh) entry->second = price_prompt_attention(kind, iteration).time;
  return entry->second;
}

Bound TokenCosts::prompt_attention_bound(std::size_t kind, const serving::Iteration& iteration) const {
  return price_prompt_attention(kind, iteration).bound;
}

Bound TokenCosts::decode_attention_bound(std::size_t kind, const serving::Iteration& iteration) const {
  return price_decode_attention(kind, iteration.decoding, iteration.cached).bound;
}

Seconds TokenCosts::decode_attention(std::size_t kind, double sequences, double cached) {
  std::vector<Chord>& chords = cores_[kind].chords;
  const auto index = static_cast<std::size_t>(sequences);
  if (chords.size() <= index) chords.resize(index + 1);
  Chord& chord = chords[index];
  const double shortest = static_cast<double>(setting_.workload.prompt_tokens) + 1;
  if (chord.at_shortest < 0) {
    const double span = std::max<double>(1, static_cast<double>(setting_.workload.output_tokens) - 1);
    const Seconds low = price_decode_attention(kind, sequences, sequences * shortest).time;
    const Seconds high = price_decode_attention(kind, sequences, sequences * (shortest + span)).time;
    chord = {low.value(), (high - low).value() / span};
  }
  return Seconds(chord.at_shortest + chord.per_token * (cached / sequences - shortest));
}

IterationCosts::IterationCosts(const Inputs& inputs, TokenCosts& costs, network::CollectiveModel& collectives,
                               Unit unit)
    : in_(inputs),
      all_(model::all_layers(inputs.setting.model)),
      costs_(costs),
      collectives_(collectives),
      layout_(inputs.plan),
      unit_(unit) {
  const std::int64_t prompt = in_.load.prompt_tokens;
  const std::int64_t sequences = std::min(in_.load.clients, in_.rules.slots);
  const std::int64_t most =
      std::min(std::max(in_.rules.token_budget, prompt), sequences * prompt + sequences);
  tables_ = {samples(most, {prompt, in_.rules.token_budget}), samples(sequences, {}), samples(sequences, {})};
}

IterationCosts::Samples IterationCosts::samples(std::int64_t most,
                                                std::initializer_list<std::int64_t> exact) {
  std::vector<std::int64_t> tokens(exact);
  tokens.push_back(most);
  for (std::int64_t power = 1; power < most; power *= 2) tokens.push_back(power);
  std::ranges::sort(tokens);
  Samples list;
  for (const std::int64_t count : tokens) {
    if (count > most || (!list.empty() && list.back().tokens == count)) continue;
    list.push_back({count, false, {}, {}, {}, {}});
  }
  return list;
}

IterationCosts::Amounts IterationCosts::amounts(const PartCost& layer) {
  Amounts sum;
  sum.device = layer.device.value();
  sum.calls = layer.call_count;
  if (unit_ == Unit::seconds) {
    const auto times = call_times(
        layer, in_.setting.system.stack.communication,
        [&](const model::CollectiveCall& call) {
          return collectives_.time(call.op, call.bytes, layout_.group(call.group));
        },
        [&](const model::CollectiveCall& call, Seconds work) {
          return collectives_.late_combine(call.bytes, layout_.group(call.group), work);
        });
    for (const ParallelGroup group : enum_values<ParallelGroup>()) sum.comm[group] = times[group].value();
    return sum;
  }
  for (const model::CollectiveCall& call : layer.calls)
    sum.comm[call.group] += sent_bytes(collectives_, call, layout_.group(call.group)).value();
  return sum;
}

void IterationCosts::price_hops(Bytes boundary, std::vector<double>& hops) {
  const auto boundaries = static_cast<std::size_t>(in_.plan.pipeline - 1);
  if (boundaries > 0 && unit_ == Unit::seconds)
    collectives_.boundary_times(boundary, layout_.group(ParallelGroup::pipeline), false, hops);
  hops.resize(boundaries, boundary.value());
}

double IterationCosts::Cost::hop(std::size_t boundary) const {
  return low->hops[boundary] + share * (high->hops[boundary] - low->hops[boundary]);
}

const IterationCosts::Sample& IterationCosts::price_sample(Table table, Sample& sample) {
  if (sample.priced) return sample;
  sample.priced = true;
  if (table == Table::head) {
    sample.end = amounts(costs_.head(sample.tokens));
    return sample;
  }
  const TokenCost& cost =
      table == Table::prompt ? costs_.prompt(sample.tokens) : costs_.decode(sample.tokens);
  for (std::size_t kind = 0; kind < cost.blocks.size(); ++kind) {
    sample.block[kind] = amounts(cost.blocks[kind]);
    if (unit_ == Unit::bytes || !in_halves(kind, static_cast<double>(sample.tokens))) continue;
    const std::int64_t half = half_of(sample.tokens);
    const TokenCost& of_half = table == Table::prompt ? costs_.prompt(half) : costs_.decode(half);
    sample.half[kind] = half_block(of_half.blocks[kind]);
  }
  sample.end = amounts(cost.embedding);
  price_hops(cost.boundary, sample.hops);
  return sample;
}

std::array<IterationCosts::Share, 2> IterationCosts::shares(Table table, double tokens) const {
  const Samples& list = tables_[static_cast<std::size_t>(table)];
  auto above = std::ranges::lower_bound(list, tokens, {},
                                        [](const Sample& s) { return static_cast<double>(s.tokens); });
  if (above == list.end()) --above;
  const auto high = static_cast<double>(above->tokens);
  if (above == list.begin() || high <= tokens) return {{{above->tokens, 1}, {above->tokens, 0}}};
  const auto low = static_cast<double>((above - 1)->tokens);
  const double share = (tokens - low) / (high - low);
  return {{{above->tokens, share}, {(above - 1)->tokens, 1 - share}}};
}

/// Costs are kept by tokens: the iterations of a load work on few different numbers of tokens.
const IterationCosts::Cost& IterationCosts::at(Table table, double tokens) {
  const auto [entry, fresh] = costs_at_[static_cast<std::size_t>(table)].try_emplace(tokens);
  Cost& cost = entry->second;
  if (fresh) {
    cost = between_samples(table, tokens);
    for (std::size_t boundary = 0; boundary < cost.high->hops.size(); ++boundary)
      cost.trip += cost.hop(boundary);
  }
  return cost;
}

IterationCosts::Cost IterationCosts::between_samples(Table table, double tokens) {
  Samples& list = tables_[static_cast<std::size_t>(table)];
  const auto [high_share, low_share] = shares(table, tokens);
  const auto above = std::ranges::lower_bound(list, high_share.tokens, {}, &Sample::tokens);
  const Sample& high = price_sample(table, *above);
  if (low_share.share <= 0) return {high.block, high.end, &high, &high, 1, 0};
  const Sample& low = price_sample(table, *(above - 1));
  const double share = high_share.share;
  Cost cost{{}, mixed(low.end, high.end, share), &low, &high, share, 0};
  for (const auto& [kind, count] : all_) cost.block[kind] = mixed(low.block[kind], high.block[kind], share);
  return cost;
}

IterationCosts::Amounts IterationCosts::mixed(const Amounts& low, const Amounts& high, double share) {
  Amounts between{mix(low.device, high.device, share), high.calls, {}};
  for (const ParallelGroup group : enum_values<ParallelGroup>())
    between.comm[group] = mix(low.comm[group], high.comm[group], share);
  return between;
}

IterationCosts::HalfBlock IterationCosts::mixed(const HalfBlock& low, const HalfBlock& high, double share) {
  HalfBlock half;
  half.whole = mixed(low.whole, high.whole, share);
  for (std::size_t piece = 0; piece < kHalfPieces; ++piece)
    half.pieces[piece] = mix(low.pieces[piece], high.pieces[piece], share);
  half.dispatch = mix(low.dispatch, high.dispatch, share);
  half.combine = mix(low.combine, high.combine, share);
  return half;
}

IterationCosts::HalfBlock IterationCosts::half_block(const PartCost& layer) {
  SHARDSCAPE_CHECK(layer.between.size() == kHalfPieces, layer.between.size());
  HalfBlock half;
  half.whole = amounts(layer);
  for (std::size_t piece = 0; piece < kHalfPieces; ++piece) half.pieces[piece] = layer.between[piece].value();
  for (const model::CollectiveCall& call : layer.calls) {
    if (call.group != ParallelGroup::expert) continue;
    half.dispatch = std::exchange(
        half.combine,
        (call.repeats * collectives_.time(call.op, call.bytes, layout_.group(call.group))).value());
  }
  return half;
}

IterationTime IterationCosts::bytes(const Cost& body, const Cost& head) const {
  const auto blocks = [&](ParallelGroup group) {
    double most = 0;
    for (const model::StageLayers& stage : in_.layers) {
      double sum = 0;
      for (const auto& [kind, count] : stage) sum += count * body.block[kind].comm[group];
      most = std::max(most, sum);
    }
    return most;
  };
  IterationTime sum{};
  for (const ParallelGroup group : enum_values<ParallelGroup>())
    sum[class_of_bytes(group)] += blocks(group) + body.end.comm[group] + head.end.comm[group];
  sum[TimeClass::pipeline_comm] = in_.plan.pipeline > 1 ? body.hop(0) : 0;
  return sum;
}

double IterationCosts::exposed(ParallelGroup group, double comm, double beside) const {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  return comm - hidden_by_attention(stack, group, Seconds(comm), Seconds(beside)).value();
}

IterationCosts::Attention IterationCosts::attention_of(const serving::Iteration& iteration) {
  Attention attention;
  for (const auto& [kind, blocks] : all_) {
    if (iteration.prompt_tokens > 0)
      attention.prompt[kind] = costs_.prompt_attention(kind, iteration).value();
    if (iteration.decoding > 0)
      attention.decode[kind] = costs_.decode_attention(kind, iteration.decoding, iteration.cached).value();
  }
  return attention;
}

double IterationCosts::add_blocks(const Amounts& amounts, double prompt_attention, double decode_attention,
                                  double blocks, IterationTime& time) const {
  const StackProfile::Host& host = in_.setting.system.stack.host;
  const double device = amounts.device + (prompt_attention + decode_attention);
  double block = device;  // to which what is exposed is added
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (amounts.comm[group] <= 0) continue;
    const double comm = exposed(group, amounts.comm[group], prompt_attention);
    time[class_of(group)] += blocks * comm;
    block += comm;
  }
  const double launch = host.decode_layer.value() + amounts.calls * host.per_collective.value();
  const double gap = host.decode_gap.value();
  time[TimeClass::compute] += blocks * device;
  time[TimeClass::host] += blocks * (std::max(0.0, launch - block) + gap);
  return std::max(launch, block) + gap;
}

double IterationCosts::add_half_layer(const HalfBlock& block, const HalfBlock& previous, PlaceInRun place,
                                      double attention, IterationTime& time) const {
  const StackProfile& stack = in_.setting.system.stack;
  constexpr auto kTail = static_cast<std::size_t>(HalfPiece::tail);
  double busy = 0;
  for (const TwoBatchStep& step : two_batch_steps(place)) {
    double compute = block.pieces[static_cast<std::size_t>(step.piece)];
    if (step.piece == HalfPiece::head) compute += attention;
    if (step.tail_of_previous) compute += previous.pieces[kTail];
    const HalfBlock& sends = step.of_previous ? previous : block;
    const double comm = step.exchange == TwoBatchStep::Exchange::none       ? 0
                        : step.exchange == TwoBatchStep::Exchange::dispatch ? sends.dispatch
                                                                            : sends.combine;
    const double shown =
        comm - stack.communication.expert_hidden * hidden_by_half(stack.communication, comm, compute);
    time[TimeClass::compute] += compute;
    time[TimeClass::expert_comm] += shown;
    busy += compute + shown;
  }
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (group == ParallelGroup::expert || block.whole.comm[group] <= 0) continue;
    const double comm = 2 * exposed(group, block.whole.comm[group], 0);
    time[class_of(group)] += comm;
    busy += comm;
  }
  const double launch =
      2 * (stack.host.decode_layer.value() + block.whole.calls * stack.host.per_collective.value());
  const double gap = 2 * stack.host.decode_gap.value();
  time[TimeClass::host] += std::max(0.0, launch - busy) + gap;
  return std::max(launch, busy) + gap;
}

void IterationCosts::add_halves(const serving::Iteration& iteration, const Cost& body, IterationTime& time) {
  const Attention whole = attention_of(iteration), half = attention_of(half_of(iteration));
  const double tokens = iteration.prompt_tokens + iteration.decoding;
  HalfParts parts;
  for (const auto& [kind, blocks] : all_)
    if (in_halves(kind, tokens)) parts[kind] = mixed(body.low->half[kind], body.high->half[kind], body.share);
  stages_.clear();
  for (const model::StageLayers& layers : in_.layers) {
    double busy = 0;
    each_layer(
        layers, [&](std::size_t kind) { return in_halves(kind, tokens); },
        [&](std::size_t kind) {
          busy += add_blocks(body.block[kind], whole.prompt[kind], whole.decode[kind], 1, time);
        },
        [&](std::size_t kind, std::size_t previous, PlaceInRun place) {
          busy += add_half_layer(parts[kind], parts[previous], place, half.prompt[kind] + half.decode[kind],
                                 time);
        });
    stages_.push_back(busy);
  }
}

IterationTime IterationCosts::operator()(const serving::Iteration& iteration) {
  const Cost& body = at(table_of(iteration), iteration.prompt_tokens + iteration.decoding);
  const double rows = iteration.decoding + iteration.first_tokens;
  static constexpr Cost kNoHead{};
  const Cost& head = rows > 0 ? at(Table::head, rows) : kNoHead;
  if (unit_ == Unit::bytes) return bytes(body, head);

  const StackProfile& stack = in_.setting.system.stack;
  const double tokens = iteration.prompt_tokens + iteration.decoding;
  const bool halves =
      std::ranges::any_of(all_, [&](const model::BlockRun& run) { return in_halves(run.kind, tokens); });
  IterationTime time{};
  const bool turns = in_.plan.pipeline > 1 && in_.groups > 1;
  if (halves) {
    add_halves(iteration, body, time);
  } else {
    const Attention attention = attention_of(iteration);
    BlockSeconds block{};
    for (const auto& [kind, blocks] : all_)
      block[kind] =
          add_blocks(body.block[kind], attention.prompt[kind], attention.decode[kind], blocks, time);
    if (turns) stage_seconds(in_.layers, block, stages_);
  }
  double embedding_end = body.end.device, head_end = head.end.device;
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (body.end.comm[group] + head.end.comm[group] <= 0) continue;
    time[class_of(group)] += exposed(group, body.end.comm[group] + head.end.comm[group], 0);
    embedding_end += exposed(group, body.end.comm[group], 0);
    head_end += exposed(group, head.end.comm[group], 0);
  }
  double& compute = time[TimeClass::compute];
  compute = compute + body.end.device + head.end.device;
  time[TimeClass::pipeline_comm] = body.trip;
  double& host = time[TimeClass::host];
  host = host + stack.host.decode_step_fixed.value() + rows * stack.host.decode_sequence.value();
  if (turns) {
    const double busy = longest_stage(embedding_end, head_end, body);
    time[TimeClass::bubble] = std::max(0.0, static_cast<double>(in_.groups) * busy - serving::total(time));
  }
  return time;
}

/// Seconds that the busiest stage spends on one iteration of one group of requests.
double IterationCosts::longest_stage(double embedding, double head, const Cost& hops) const {
  double longest = 0;
  const std::size_t last = in_.layers.size() - 1;
  for (std::size_t stage = 0; stage <= last; ++stage) {
    double busy = stages_[stage];
    if (stage == 0) busy += embedding;
    if (stage == last) busy += head;
    if (stage < last && !in_.setting.system.stack.communication.pipeline_async) busy += hops.hop(stage);
    longest = std::max(longest, busy);
  }
  return longest;
}

}  // namespace shardscape::step
