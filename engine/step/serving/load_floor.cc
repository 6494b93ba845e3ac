#include "engine/step/serving/load_floor.h"

#include <algorithm>
#include <limits>

#include "engine/serving/live/serve_load.h"

namespace shardscape::step {

namespace {

using serving::Iteration;

/// Requests per second of servers without a floor.
constexpr double kAnyRate = 1e20;

double decode_seconds(const serving::Timer& timer, double sequences, double context) {
  Iteration iteration;
  iteration.decoding = sequences;
  iteration.cached = sequences * context;
  return serving::total(timer(iteration));
}

/// The least of value(n) for n = 1, 2, 4, ... and `most`.
template <class Value>
double least_up_to(std::int64_t most, const Value& value) {
  double least = std::numeric_limits<double>::infinity();
  for (std::int64_t n = 1; n < most; n *= 2) least = std::min(least, value(static_cast<double>(n)));
  return std::min(least, value(static_cast<double>(most)));
}

}  // namespace

LoadFloor load_floor(const LoadSpec& load, const serving::LiveRules& rules, const serving::Timer& timer) {
  LoadFloor floor;
  LoadSpec alone;
  // Of a prompt whose beginning is found in the cache a token at least is read.
  alone.prompt = Lengths::fixed(rules.keeps_prefixes ? 1 : load.prompt.shortest);
  alone.output = Lengths::fixed(1);
  alone.requests = {1, false};
  serving::LiveRules idle = rules;
  idle.servers = 1;
  idle.keeps_prefixes = false;
  floor.ttft = kLoadFloorShare * serving::serve_load({alone, 1, 1}, idle, timer).ttft.mean;

  const std::int64_t shortest = load.prompt.shortest + 1, longest = load.prompt.longest + load.output.longest;
  const double per_token = least_up_to(longest, [&](double context) {
    return decode_seconds(timer, 1, std::max<double>(context, static_cast<double>(shortest)));
  });
  // An iteration gives a sequence one token and as many as are drafted at most.
  const auto tokens_at_once = static_cast<double>(1 + rules.drafts);
  floor.tpot = load.output.longest > 1 ? kLoadFloorShare / tokens_at_once * per_token : 0;
  floor.e2e = floor.ttft + static_cast<double>(load.output.shortest - 1) * floor.tpot;

  const auto room = rules.kv_blocks * rules.kv_block / load.prompt.shortest;
  const std::int64_t batch = std::clamp<std::int64_t>(room, 1, rules.max_batch);
  const double decode = least_up_to(batch, [&](double sequences) {
    return decode_seconds(timer, sequences, static_cast<double>(shortest)) / sequences;
  });
  const std::int64_t largest = std::max(rules.token_budget, load.prompt.longest);
  // Of short prompts, which have the least attention.
  const double prefill = least_up_to(largest, [&](double tokens) {
    Iteration iteration;
    const double whole = std::min(tokens, static_cast<double>(load.prompt.shortest));
    iteration.add_piece(0, whole, rules.window);
    const double pieces = tokens / whole;
    for (double* const part : {&iteration.prompt_tokens, &iteration.prompt_pairs, &iteration.masked_pairs,
                               &iteration.window_pairs})
      *part *= pieces;
    return serving::total(timer(iteration)) / tokens;
  });
  const auto most = [&](double prompt, double output) {
    // All ranks of a server read at once; what is found in the cache takes no time.
    const double reads = rules.keeps_prefixes ? 0 : prompt * prefill / static_cast<double>(rules.ranks),
                 decodes = (output - 1) / tokens_at_once * decode,
                 busy = reads_beside(rules.policy) ? std::max(reads, decodes) : reads + decodes;
    return std::min(kAnyRate, static_cast<double>(rules.servers) / (kLoadFloorShare * busy));
  };
  floor.requests_per_s = most(load.prompt.mean, load.output.mean);
  floor.in_a_run = most(static_cast<double>(load.prompt.shortest), static_cast<double>(load.output.shortest));
  return floor;
}

}  // namespace shardscape::step
