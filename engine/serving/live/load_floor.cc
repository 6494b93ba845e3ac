#include "engine/serving/live/load_floor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/serving/live/serve_load.h"

namespace shardscape::serving {

namespace {

/// Requests per second of servers without a floor.
constexpr double kAnyRate = 1e20;

/// Sizes from 1 to `most` of which one is the least of anything that is linear between samples: of things that bring
/// `tokens` tokens each, or one more in all, those next to every sample of tokens.
std::vector<std::int64_t> sizes(std::int64_t most, std::int64_t tokens, std::vector<std::int64_t> samples) {
  std::vector<std::int64_t> list = {1, most};
  for (std::int64_t power = 1; power < (most + 1) * tokens; power *= 2) samples.push_back(power);
  for (const std::int64_t sample : samples)
    for (const std::int64_t by : {-1, 0, 1}) list.push_back(sample / tokens + by);
  std::erase_if(list, [&](std::int64_t size) { return size < 1 || size > most; });
  std::ranges::sort(list);
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

/// Iterations of a server, each with the least work that it may have.
class LeastIterations {
 public:
  LeastIterations(const LoadSpec& load, const LiveRules& rules, const Timer& timer)
      : load_(load), rules_(rules), timer_(timer) {}

  /// Of so many tokens of the shortest prompts, which have the least attention, and as many sequences that decode, at
  /// their shortest.
  [[nodiscard]] double operator()(double prompt_tokens, double sequences) const {
    Iteration iteration;
    iteration.decoding = sequences;
    iteration.cached = sequences * static_cast<double>(load_.prompt.shortest + 1);
    if (prompt_tokens > 0) {
      const double whole = std::min(prompt_tokens, static_cast<double>(load_.prompt.shortest));
      iteration.add_piece(0, whole, rules_.window);
      const double pieces = prompt_tokens / whole;
      for (double* const part : {&iteration.prompt_tokens, &iteration.prompt_pairs, &iteration.masked_pairs,
                                 &iteration.window_pairs})
        *part *= pieces;
    }
    return std::max(total(timer_(iteration)), least_seconds(rules_, iteration));
  }

 private:
  const LoadSpec& load_;
  const LiveRules& rules_;
  const Timer& timer_;
};

/// The first token of the shortest prompt, on an idle server that takes nothing but it.
double ttft_alone(const LiveRules& rules, std::int64_t prompt, const Timer& timer) {
  LoadSpec alone;
  alone.prompt = Lengths::fixed(prompt);
  alone.output = Lengths::fixed(1);
  alone.requests = {1, false};
  LiveRules idle = rules;
  idle.servers = 1;
  idle.keeps_prefixes = false;
  idle.first_prompts = 0;
  return serve_load({alone, 1, 1}, idle, timer).ttft.mean;
}

}  // namespace

LoadFloor load_floor(const Offered& offered, const LiveRules& rules, const Timer& timer,
                     std::int64_t usual_batch) {
  const LoadSpec& load = offered.load;
  LoadFloor floor;
  const LeastIterations least(load, rules, timer);
  const std::int64_t longest_context = load.prompt.longest + (rules.on_demand ? load.output.longest : 0);
  const std::int64_t largest = std::max(rules.token_budget, longest_context);
  const std::vector<std::int64_t> prompts =
      sizes(largest, 1, {std::llround(load.prompt.mean), rules.token_budget, rules.graph_tokens});

  // Of a prompt whose beginning is found in the cache a token at least is read.
  const std::int64_t shortest = rules.keeps_prefixes ? 1 : load.prompt.shortest;
  const std::int64_t first = std::min(shortest, rules.token_budget);
  const double by_itself = least(static_cast<double>(first), 0);
  double beside_others = by_itself, prefill = by_itself / static_cast<double>(first), per_token = by_itself;
  for (const std::int64_t tokens : prompts) {
    const double seconds = least(static_cast<double>(tokens), 0);
    prefill = std::min(prefill, seconds / static_cast<double>(tokens));
    per_token = std::min(per_token, seconds);
    if (tokens >= first) beside_others = std::min(beside_others, seconds);
  }
  const double reading = ttft_alone(rules, shortest, timer) - rules.frontend;
  floor.ttft = kLoadFloorShare * (rules.frontend + beside_others / by_itself * reading);

  // Where prompts begin alike sequences share blocks.
  const std::int64_t room =
      rules.keeps_prefixes ? rules.max_batch : rules.kv_blocks * rules.kv_block / load.prompt.shortest;
  const std::int64_t places = load.open() ? rules.max_batch : std::min(rules.max_batch, offered.clients);
  const std::int64_t batch = std::clamp<std::int64_t>(room, 1, places);
  const auto ranks = static_cast<double>(rules.ranks);
  double decode = std::numeric_limits<double>::infinity();
  // What was preempted gets a token of an iteration that reads it again.
  if (rules.on_demand) {
    decode = (rules.keeps_prefixes ? 1 : static_cast<double>(load.prompt.shortest + 1)) * prefill / ranks;
  } else {
    per_token = decode;
  }
  for (const std::int64_t each :
       sizes((batch + rules.ranks - 1) / rules.ranks, 1 + rules.drafts, {usual_batch * (1 + rules.drafts)})) {
    const double sequences = ranks * static_cast<double>(each);
    double seconds = least(0, sequences);
    if (reads_beside(rules.policy)) seconds = std::min(seconds, least(1, sequences));
    decode = std::min(decode, seconds / sequences);
    per_token = std::min(per_token, seconds);
  }
  // An iteration gives a sequence one token and as many as are drafted at most.
  const auto tokens_at_once = static_cast<double>(1 + rules.drafts);
  floor.tpot = load.output.longest > 1 ? kLoadFloorShare / tokens_at_once * per_token : 0;
  floor.e2e = floor.ttft + static_cast<double>(load.output.shortest - 1) * floor.tpot;

  const auto most = [&](double prompt, double output) {
    // All ranks of a server read at once; what is found in the cache takes no time.
    const double reads = rules.keeps_prefixes ? 0 : prompt * prefill / ranks,
                 decodes = (output - 1) / tokens_at_once * decode,
                 busy = reads_beside(rules.policy) ? std::max(reads, decodes) : reads + decodes;
    return std::min(kAnyRate, static_cast<double>(rules.servers) / (kLoadFloorShare * busy));
  };
  floor.in_a_run = most(static_cast<double>(load.prompt.shortest), static_cast<double>(load.output.shortest));
  // Sessions with long turns end early where the context is full: the mean turn is shorter than all of theirs.
  floor.requests_per_s = load.sessions ? floor.in_a_run : most(load.prompt.mean, load.output.mean);
  // Each client sends one request after the other.
  if (!load.open())
    floor.in_a_run = std::min(floor.in_a_run, static_cast<double>(offered.clients) / floor.e2e);
  return floor;
}

}  // namespace shardscape::serving
