// Lists and prices the operators of a server's layers at numbers of tokens, and attention for what iterations do.
#include "engine/step/serving/token_costs.h"

#include <algorithm>

#include "engine/model/block_kinds.h"
#include "engine/model/embedding.h"
#include "engine/model/expert_shares.h"
#include "engine/model/head.h"

namespace shardscape::step {

namespace {

using model::LayerKey;
using model::Operator;

/// The attention core of a block; of a block without one an operator that takes nothing.
Operator attention_of(const std::vector<Operator>& operators) {
  const auto core = std::ranges::find(operators, model::OperatorKind::attention, &Operator::kind);
  return core != operators.end() ? *core : Operator();
}

/// Most pieces of prompts whose attention is remembered; some megabytes.
constexpr std::size_t kMostPieces = 1 << 16;

/// Whether tokens are dealt to experts and back: exactly two exchanges go over ranks that deal experts.
bool deals_experts(const std::vector<Operator>& operators) {
  const auto over_experts = [](const Operator& op) {
    return op.forward_comm.repeats > 0 && op.forward_comm.group == ParallelGroup::expert;
  };
  return std::ranges::count_if(operators, over_experts) == 2;
}

/// The key where ranks of a context group share nothing: each works on all of `sequences` sequences.
LayerKey undivided(LayerKey key, std::int64_t sequences) {
  key.context = 1;
  key.microbatch = static_cast<std::int32_t>(sequences);
  return key;
}

}  // namespace

TokenCosts::TokenCosts(const Setting& setting, const ParallelPlan& plan)
    : setting_(setting),
      verified_(setting.workload.load ? static_cast<double>(setting.workload.load->speculation.verified())
                                      : 1),
      layout_(model::serving_layer_key(plan, 1)),
      distinct_members_(model::distinct_members(setting, layout_)) {
  for (std::size_t kind = 0, kinds = model::block_kinds(setting.model).size(); kind < kinds; ++kind) {
    const std::int64_t prompt = setting.workload.prompt_tokens;
    const std::vector<Operator> decode = operators(TokenTable::decode, block_layer(kind), 1);
    cores_.push_back({attention_of(operators(TokenTable::prompt, block_layer(kind), prompt)),
                      attention_of(decode),
                      {},
                      deals_experts(decode),
                      {}});
  }
}

std::vector<Operator> TokenCosts::operators(TokenTable table, LayerKind layer, std::int64_t tokens,
                                            std::int32_t member) const {
  LayerKey key = layout_;
  key.expert_rank = member;
  if (table == TokenTable::prompt) {
    constexpr auto kMode = model::Mode::prefill;
    return layer.is_block() ? model::block_operators(setting_, layer.block, key, tokens, kMode)
                            : model::embedding_operators(setting_, key, tokens, kMode);
  }
  key.microbatch = static_cast<std::int32_t>(tokens);
  if (layer.is_block()) return model::decode_block_operators(setting_, layer.block, key, 1);
  const LayerKey end = undivided(key, tokens);
  return table == TokenTable::head ? model::decode_head_operators(setting_, end)
                                   : model::decode_embedding_operators(setting_, end);
}

const TokenCost& TokenCosts::at(TokenTable table, std::int64_t tokens) {
  const auto [entry, fresh] = known_[static_cast<std::size_t>(table)].try_emplace(tokens);
  TokenCost& cost = entry->second;
  if (!fresh) return cost;
  const bool head = table == TokenTable::head;
  cost.end = price_served(operators(table, head ? kHeadLayer : kEmbeddingLayer, tokens), setting_);
  if (head) return cost;
  cost.boundary = table == TokenTable::prompt
                      ? model::boundary_bytes(setting_, layout_, tokens)
                      : model::boundary_bytes(setting_, undivided(layout_, tokens), 1);
  for (std::size_t kind = 0; kind < cores_.size(); ++kind) {
    const std::int32_t slowest = slowest_member(table, kind, tokens);
    const auto block = [&](std::int32_t member) {
      return price_served(operators(table, block_layer(kind), tokens, member), setting_);
    };
    PartCost& own = cost.blocks.emplace_back(block(slowest));
    if (slowest < 0) continue;
    own.lead = own.device - block(model::kBalancedMember).device;
    own.idler_others = model::idler_others(setting_, layout_, slowest);
  }
  return cost;
}

std::int32_t TokenCosts::slowest_member(TokenTable table, std::size_t kind, std::int64_t tokens) {
  if (distinct_members_.empty()) return LayerKey::kBusiest;
  const auto [entry, fresh] = slowest_.try_emplace({table, kind, tokens}, model::kBalancedMember);
  if (!fresh) return entry->second;
  const auto seconds = [&](std::int32_t member) {
    return price_served(operators(table, block_layer(kind), tokens, member), setting_).device;
  };
  Seconds longest = seconds(model::kBalancedMember);
  for (const std::int32_t member : distinct_members_) {
    const Seconds time = seconds(member);
    if (time > longest) longest = time, entry->second = member;
  }
  return entry->second;
}

TokenCosts::Pieces TokenCosts::pieces_of(std::size_t kind, const serving::Iteration& iteration) const {
  const bool local = model::attention_window(setting_.model, kind) > 0;
  return {iteration.prompt_tokens, iteration.prompt_pairs,
          local ? iteration.window_pairs : iteration.masked_pairs};
}

compute::OperatorCost TokenCosts::price_prompts(std::size_t kind, const serving::Iteration& iteration) const {
  Operator core = cores_[kind].prompt;
  core.attention.batch = 1;
  const auto [tokens, pairs, visible] = pieces_of(kind, iteration);
  core.attention.queries = std::max(1.0, tokens / layout_.context);
  core.attention.keys = pairs / tokens;
  core.attention.visible = visible / pairs;
  return price(core, setting_).forward;
}

compute::OperatorCost TokenCosts::price_decoding(std::size_t kind, double sequences, double cached) const {
  Operator core = cores_[kind].decode;
  core.attention.batch = sequences;
  core.attention.keys = model::cached_tokens(setting_.model, kind,
                                             cached / sequences / layout_.context);  // see attention_core()
  const compute::OperatorCost apart = price(core, setting_).forward;
  if (verified_ == 1) return apart;
  core.attention.batch /= verified_;
  core.attention.heads *= verified_;
  const compute::OperatorCost together = price(core, setting_).forward;
  return together.time < apart.time ? together : apart;
}

double TokenCosts::decode_seconds(std::size_t kind, double sequences, double cached) {
  std::vector<Chord>& chords = cores_[kind].chords;
  const auto index = static_cast<std::size_t>(sequences);
  if (chords.size() <= index) chords.resize(index + 1);
  Chord& chord = chords[index];
  const WorkloadSpec& workload = setting_.workload;
  const double shortest = static_cast<double>(workload.shortest_prompt()) + 1;
  if (chord.at_shortest < 0) {
    const double longest = static_cast<double>(workload.longest_prompt() + workload.longest_output()) - 1;
    const double span = std::max(1.0, longest + 1 - shortest);
    const Seconds low = price_decoding(kind, sequences, sequences * shortest).time;
    const Seconds high = price_decoding(kind, sequences, sequences * (shortest + span)).time;
    chord = {low.value(), (high - low).value() / span};
  }
  return chord.at_shortest + chord.per_token * (cached / sequences - shortest);
}

AttentionSeconds TokenCosts::attention(std::size_t kind, const serving::Iteration& iteration) {
  AttentionSeconds seconds;
  if (iteration.prompt_tokens > 0) {
    auto& prompts = cores_[kind].prompts;
    if (prompts.size() >= kMostPieces) prompts.clear();
    const auto [entry, fresh] = prompts.try_emplace(pieces_of(kind, iteration));
    if (fresh) entry->second = price_prompts(kind, iteration).time.value();
    seconds.prompt = entry->second;
  }
  if (iteration.decoding > 0) seconds.decode = decode_seconds(kind, iteration.decoding, iteration.cached);
  return seconds;
}

}  // namespace shardscape::step
