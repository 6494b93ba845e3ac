// Prices iterations of a server: costs of blocks and of the head at sampled numbers of tokens, attention for what each
// iteration does, and their sum over the stages by class of time.
#include "engine/step/serving/price_iterations.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/step/serving/inference.h"
#include "engine/step/training/sent_in_step.h"

namespace shardscape::step {

namespace {

using serving::IterationTime;

double mix(double low, double high, double share) { return low + share * (high - low); }

/// The numbers of tokens up to `most` at which costs are sampled: powers of two, and `exact` ones.
std::vector<std::int64_t> samples(std::int64_t most, std::vector<std::int64_t> exact) {
  exact.push_back(most);
  for (std::int64_t power = 1; power < most; power *= 2) exact.push_back(power);
  std::erase_if(exact, [&](std::int64_t count) { return count > most; });
  std::ranges::sort(exact);
  exact.erase(std::unique(exact.begin(), exact.end()), exact.end());
  return exact;
}

}  // namespace

IterationCosts::IterationCosts(const InferenceInputs& inputs, TokenCosts& costs,
                               const network::CollectivePrices& collectives, Unit unit)
    : in_(inputs),
      costs_(costs),
      collectives_(collectives),
      layout_(inputs.plan),
      stream_(inputs, costs),
      unit_(unit) {
  const std::int64_t prompt = in_.setting.workload.prompt_tokens;
  const std::int64_t budget = in_.setting.system.stack.serving.token_budget;
  const std::int64_t sequences = std::min(in_.shape.clients, in_.shape.slots);
  const std::int64_t most = std::min(std::max(budget, prompt), sequences * prompt + sequences);
  samples_ = {samples(most, {prompt, budget}), samples(sequences, {}), samples(sequences, {})};
  if (!in_.setting.workload.load) return;
  // The router may send one server more than its share of the requests, and prompts may be longer than the mean.
  const std::int64_t all =
      std::min(requests_in_flight(in_.setting, in_.plan), in_.setting.system.stack.serving.max_batch);
  const std::int64_t longest = std::max(budget, in_.setting.workload.longest_prompt()) + all;
  const std::int64_t verified = in_.setting.workload.load->speculation.verified();
  samples_ = {samples(longest + all * (verified - 1), {prompt, budget}),
              samples(all * verified, {sequences * verified}),
              samples(all * verified, {sequences * verified})};
}

IterationCosts::Amounts IterationCosts::amounts(const PartCost& layer) {
  Amounts sum;
  sum.device = layer.device.value();
  sum.calls = layer.call_count;
  if (unit_ == Unit::bytes) {
    for (const model::CollectiveCall& call : layer.calls)
      sum.comm[call.group] += sent_bytes(collectives_, call, layout_.group(call.group)).value();
    return sum;
  }
  const auto times = call_times(
      layer, in_.setting.system.stack.communication,
      [&](const model::CollectiveCall& call) {
        return collectives_.time({call.op, call.bytes, layout_.group(call.group)});
      },
      [&](const model::CollectiveCall& /*dispatch*/, const model::CollectiveCall& call, Seconds /*work*/) {
        const network::CollectiveKey asked{call.op, call.bytes, layout_.group(call.group)};
        const bool kernels = call.op == network::CollectiveOp::expert_combine ||
                             call.op == network::CollectiveOp::low_latency_combine;
        return kernels ? collectives_.late_exchange(asked, layer.lead, layer.idler_others)
                       : collectives_.time(asked);
      });
  for (const ParallelGroup group : enum_values<ParallelGroup>()) sum.comm[group] = times[group].value();
  return sum;
}

IterationCosts::Amounts IterationCosts::half_amounts(const PartCost& half) {
  Amounts sum = amounts(half);
  SHARDSCAPE_CHECK(half.between.size() == 3, half.between.size());
  sum.half = {half.between[0].value(), half.between[1].value(), half.between[2].value(), 0, 0};
  double* exchange = &sum.half.dispatch;
  for (const model::CollectiveCall& call : half.calls) {
    if (call.group != ParallelGroup::expert) continue;
    *exchange = (call.repeats * collectives_.time({call.op, call.bytes, layout_.group(call.group)})).value();
    exchange = &sum.half.combine;
  }
  return sum;
}

IterationCosts::Price IterationCosts::price_sample(TokenTable table, std::int64_t tokens) {
  const TokenCost& cost = costs_.at(table, tokens);
  Price price;
  price.layers.end = amounts(cost.end);
  if (table == TokenTable::head) return price;
  for (std::size_t kind = 0; kind < cost.blocks.size(); ++kind) {
    const bool halves = unit_ == Unit::seconds && stream_.batches(kind, static_cast<double>(tokens)) > 1;
    price.layers.block[kind] =
        halves ? half_amounts(costs_.at(table, half_of(tokens)).blocks[kind]) : amounts(cost.blocks[kind]);
  }
  if (in_.plan.pipeline == 1) return price;
  constexpr bool kRing = false;
  std::vector<double> back;  // nothing is sent back
  if (unit_ == Unit::seconds)
    collectives_.boundary_times(cost.boundary, layout_.group(ParallelGroup::pipeline), kRing, price.hops,
                                back);
  price.hops.resize(static_cast<std::size_t>(in_.plan.pipeline - 1), cost.boundary.value());
  for (const double hop : price.hops) price.trip += hop;
  return price;
}

IterationCosts::Price IterationCosts::between(const Price& low, const Price& high, double share) {
  using Numbers = std::array<double, sizeof(Layers) / sizeof(double)>;
  const auto below = std::bit_cast<Numbers>(low.layers), above = std::bit_cast<Numbers>(high.layers);
  Numbers numbers;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = mix(below[i], above[i], share);
  Price price{std::bit_cast<Layers>(numbers), {}, 0};
  for (std::size_t boundary = 0; boundary < low.hops.size(); ++boundary) {
    price.hops.push_back(mix(low.hops[boundary], high.hops[boundary], share));
    price.trip += price.hops.back();
  }
  return price;
}

std::array<IterationCosts::Share, 2> IterationCosts::shares(TokenTable table, double tokens) const {
  const std::vector<std::int64_t>& list = samples_[static_cast<std::size_t>(table)];
  auto above =
      std::ranges::lower_bound(list, tokens, {}, [](std::int64_t n) { return static_cast<double>(n); });
  if (above == list.end()) --above;
  const auto high = static_cast<double>(*above);
  if (above == list.begin() || high <= tokens) return {{{*above, 1}, {*above, 0}}};
  const auto low = static_cast<double>(*(above - 1));
  const double share = (tokens - low) / (high - low);
  return {{{*above, share}, {*(above - 1), 1 - share}}};
}

/// Costs are kept by tokens: the iterations of a load work on few different numbers of tokens.
const IterationCosts::Price& IterationCosts::at(TokenTable table, double tokens) {
  const auto [entry, fresh] = known_[static_cast<std::size_t>(table)].try_emplace(tokens);
  Price& price = entry->second;
  if (!fresh) return price;
  const auto [high, low] = shares(table, tokens);
  const auto above = static_cast<double>(high.tokens), below = static_cast<double>(low.tokens);
  price = above == tokens ? price_sample(table, high.tokens)
                          : between(at(table, below), at(table, above), high.share);
  return price;
}

double IterationCosts::spared(const serving::Iteration& iteration) {
  const double tokens = iteration.prompt_tokens + iteration.decoding;
  if (iteration.spare <= 0 || in_.plan.pipeline > 1 || stream_.has_halves(tokens)) return 0;
  const TokenTable table = table_of(iteration);
  const auto between_exchanges = [&](std::size_t kind, double of) {
    double seconds = 0;
    for (const auto& [sample, share] : shares(table, of))
      if (share > 0) seconds += share * costs_.at(table, sample).blocks[kind].between[1].value();
    return seconds;
  };
  double sum = 0;
  for (const auto& [kind, count] : stream_.all_blocks()) {
    if (!costs_.deals(kind)) continue;
    sum += count * (between_exchanges(kind, tokens) - between_exchanges(kind, tokens - iteration.spare));
  }
  return sum;
}

IterationTime IterationCosts::bytes(const Price& body, const Amounts& head) const {
  IterationTime sum{};
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    double most = 0;
    for (const model::StageLayers& stage : in_.layers) {
      double blocks = 0;
      for (const auto& [kind, count] : stage) blocks += count * body.layers.block[kind].comm[group];
      most = std::max(most, blocks);
    }
    sum[class_of_bytes(group)] += most + body.layers.end.comm[group] + head.comm[group];
  }
  sum[TimeClass::pipeline_comm] = in_.plan.pipeline > 1 ? body.hops.front() : 0;
  return sum;
}

double IterationCosts::add_host(const Amounts& block, std::int64_t batches, double busy, double blocks,
                                IterationTime& time) const {
  const auto [launch, gap] = host_of_block(in_.setting.system.stack, block.calls, batches);
  time[TimeClass::host] += blocks * (std::max(0.0, launch - busy) + gap);
  return std::max(launch, busy) + gap;
}

double IterationCosts::add_blocks(const Amounts& block, const AttentionSeconds& attention, double blocks,
                                  IterationTime& time) const {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  const double device = block.device + (attention.prompt + attention.decode);
  double busy = device;  // to which what is exposed is added
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    const Seconds all(block.comm[group]);
    if (all <= Seconds(0)) continue;
    const double comm =
        all.value() - hidden_by_attention(stack, group, all, Seconds(attention.prompt)).value();
    time[class_of(group)] += blocks * comm;
    busy += comm;
  }
  time[TimeClass::compute] += blocks * device;
  return add_host(block, 1, busy, blocks, time);
}

double IterationCosts::add_half_layer(const Amounts& block, const Amounts& previous, PlaceInRun place,
                                      const AttentionSeconds& attention, IterationTime& time) const {
  const StackProfile::Communication& stack = in_.setting.system.stack.communication;
  HalfLayer<double, double> half = block.half;
  half.head += attention.prompt + attention.decode;
  double busy = 0;
  each_half_step(half, previous.half, place, [&](const double* exchange, const double* before, double work) {
    const double compute = before != nullptr ? work + *before : work;
    const double comm = exchange != nullptr ? *exchange : 0;
    const double shown =
        comm - stack.expert_hidden * beside_exchange(comm, stack.expert_overlap, compute).hidden;
    time[TimeClass::compute] += compute;
    time[TimeClass::expert_comm] += shown;
    busy += compute + shown;
  });
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    if (group == ParallelGroup::expert) continue;
    const double comm = 2 * block.comm[group];
    time[class_of(group)] += comm;
    busy += comm;
  }
  return add_host(block, 2, busy, 1, time);
}

void IterationCosts::add_all_blocks(const serving::Iteration& iteration, const Layers& priced,
                                    IterationTime& time) {
  const double tokens = iteration.prompt_tokens + iteration.decoding;
  const bool halves = stream_.has_halves(tokens);
  BlockAttention attention;
  for (const auto& [kind, count] : stream_.all_blocks()) attention[kind] = stream_.attention(kind, iteration);
  std::array<double, model::kMostBlockKinds> block{};  // seconds of a whole one; index: kind
  const auto add = [&](const model::StageLayers& layers) {
    double busy = 0;
    stream_.blocks(
        layers, tokens,
        [&](std::size_t kind, std::int32_t count) {
          block[kind] = add_blocks(priced.block[kind], attention[kind], count, time);
          busy += count * block[kind];
        },
        [&](std::size_t kind, std::size_t previous, PlaceInRun place) {
          busy += add_half_layer(priced.block[kind], priced.block[previous], place, attention[kind], time);
        });
    return busy;
  };
  stages_.clear();
  if (!halves) add(stream_.all_blocks());
  for (const model::StageLayers& stage : in_.layers) {
    double busy = 0;
    if (halves) {
      busy = add(stage);
    } else {
      for (const auto& [kind, count] : stage) busy += count * block[kind];
    }
    stages_.push_back(busy);
  }
}

/// Adds up for how long an iteration of one group of requests keeps a stage busy.
struct IterationCosts::StageReader {
  double embedding, head, blocks_of_stage;
  const std::vector<double>& hops;
  double busy = 0;
  void end(LayerKind layer) { busy += layer == kHeadLayer ? head : embedding; }
  void blocks(const model::StageLayers&) { busy += blocks_of_stage; }
  void pass_on(std::size_t stage, bool waits) { busy += waits ? hops[stage] : 0; }
  void tokens_back() {}
};

IterationTime IterationCosts::operator()(const serving::Iteration& iteration) {
  const Price& body = at(table_of(iteration), iteration.prompt_tokens + iteration.decoding);
  const double rows = iteration.decoding + iteration.first_tokens;
  static constexpr Layers kNoHead{};
  const Amounts& embedding = body.layers.end;
  const Amounts& head = (rows > 0 ? at(TokenTable::head, rows).layers : kNoHead).end;
  if (unit_ == Unit::bytes) return bytes(body, head);

  IterationTime time{};
  add_all_blocks(iteration, body.layers, time);
  double embedding_end = embedding.device, head_end = head.device;
  double& compute = time[TimeClass::compute];
  compute = compute + embedding_end + head_end - spared(iteration);
  for (const ParallelGroup group : enum_values<ParallelGroup>()) {
    time[class_of(group)] += embedding.comm[group] + head.comm[group];
    embedding_end += embedding.comm[group];
    head_end += head.comm[group];
  }
  time[TimeClass::pipeline_comm] = body.trip;
  const IterationHost step = host_of_iteration(in_.setting.system.stack, in_.batches(), rows);
  double& host = time[TimeClass::host];
  host = host + step.scheduling + step.tokens;
  if (in_.plan.pipeline > 1 && in_.shape.groups > 1) {
    double longest = 0;
    for (std::size_t stage = 0; stage < in_.layers.size(); ++stage) {
      StageReader reader{embedding_end, head_end, stages_[stage], body.hops};
      stream_.stage(stage, rows, reader);
      longest = std::max(longest, reader.busy);
    }
    time[TimeClass::bubble] =
        std::max(0.0, static_cast<double>(in_.shape.groups) * longest - serving::total(time));
  }
  return time;
}

}  // namespace shardscape::step
