// The rules of a server that is simulated request by request, and what an iteration of it does.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/serving/server.h"
#include "engine/spec/stack.h"

namespace shardscape::serving {

struct LiveRules {
  ServingPolicy policy = ServingPolicy::vllm;
  bool on_demand = true;  ///< blocks of the cache are taken as sequences grow, not at once
  /// The most tokens of an iteration, of each rank; at least max_batch / ranks where prompts are read beside.
  std::int64_t token_budget = 1;
  std::int64_t max_batch = 1;      ///< the most requests running at once
  std::int64_t kv_block = 1;       ///< tokens of one block
  std::int64_t kv_blocks = 1;      ///< blocks of one server; enough for the longest request
  std::int64_t watermark = 0;      ///< blocks that admission leaves free where anything runs
  std::int64_t poll_interval = 1;  ///< decode iterations between looks at new requests
  /// Iterations that are fixed when a request comes, beside the one under way.
  std::int64_t schedule_ahead = 0;
  QueueOrder queue = QueueOrder::fcfs;
  Routing routing = Routing::round_robin;
  std::int64_t servers = 1;
  double frontend = 0;            ///< seconds from sending a request until a scheduler may see it
  double eager_floor = 0;         ///< the least seconds of an iteration that reads a prompt
  std::int64_t graph_tokens = 0;  ///< `eager_floor` applies only to iterations with more tokens than this
  double first_prompts = 0;       ///< seconds that the first iteration takes longer if it reads
  /// Tokens that the prefix cache has from the beginning, and all prompts begin with (kCommonOwner).
  std::int64_t cached_prompt = 0;
  double window = 0;  ///< window of the model's local layers in tokens; 0: none
  /// Ranks with attention of their own that a server deals its sequences over (data-parallel attention): its iterations
  /// are as long as those of the rank with most to do.
  std::int64_t ranks = 1;
  /// The most decode iterations that prompts wait, and how many prompts end the wait. The first one's wait is that of
  /// all, and what the next iteration has no room for waits anew.
  std::int64_t balance_wait = 0, balanced = 1;
  bool reads_only = false;  ///< sequences leave with their first token
  /// Iterations of a server that decodes, from the one that a prompt's cache joins, until the client has the first
  /// token of a prompt that another server has read; 0: it has it as the cache arrives.
  std::int64_t answer_after = 0;
  /// Of a server that only reads: prompts of an iteration for each of its ranks; 0: as many as the budget holds.
  std::int64_t pool_prompts = 0;
  /// Of SGLang's server that only reads: requests wait for a rank that is drawn for each, whatever the others do; else
  /// the rank with the least to read takes the next one.
  bool drawn_ranks = false;
  std::uint64_t rank_seed = 0;  ///< of these draws: the load's
  /// Tokens of each sequence that decode iterations verify beside the one they give.
  std::int64_t drafts = 0;
  bool keeps_prefixes = false;  ///< blocks of earlier requests are used again (prefix_cache.h)
  /// Of host and disk, of one server: blocks that they have room for, and seconds to bring one back.
  std::array<std::int64_t, 2> lower_blocks{};
  std::array<double, 2> seconds_per_block{};
};

/// The rank that a request is read on, of a server that reads for others. Drawn: by its number and the load's seed
/// alone, so that all plans with as many ranks draw alike.
inline std::int64_t rank_of(const LiveRules& rules, std::int64_t number) {
  if (!rules.drawn_ranks) return number % rules.ranks;
  constexpr std::uint64_t kRooms = 0xe7037ed1a0b428db;  // another stream than those of drawn_requests.cc
  CounterRng rng(rules.rank_seed ^ kRooms, static_cast<std::uint64_t>(number));
  return static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(rules.ranks)));
}

/// The least seconds of an iteration: those in which the host launches it where it reads prompts without graphs.
/// `work`: the prompts of the rank with most, and the sequences of all ranks.
inline double least_seconds(const LiveRules& rules, const Iteration& work) {
  const auto ranks = static_cast<double>(rules.ranks), verified = static_cast<double>(1 + rules.drafts);
  const double tokens = work.prompt_tokens + std::ceil(work.decoding / ranks) * verified;
  return work.prompt_tokens > 0 && tokens > static_cast<double>(rules.graph_tokens) ? rules.eager_floor : 0;
}

/// Of each class of an iteration's time: the share in which it sends on links that it has in common with others.
using SendingShares = EnumArray<TimeClass, double>;

/// What admission rules fill: the prompts that an iteration reads, and whether running sequences decode beside them.
/// Each piece of a prompt goes to the rank with the fewest tokens, or, with a queue for each rank, to that of its
/// queue.
struct Batch {
  std::vector<Iteration> of_ranks;      ///< what each reads; without decoding sequences
  std::vector<std::int32_t> ended;      ///< sequences whose context is read to its end
  std::int64_t reading = 0;             ///< sequences of which something is read
  std::vector<std::int64_t> of_queues;  ///< of these, those of each queue
  std::int64_t budget = 0;              ///< tokens that a rank may read
  bool decodes = false;
  std::int64_t most = 0;  ///< sequences of a queue of which something may be read; 0: any number

  /// Begins anew, as the rules have it: what each rank may read, tokens and prompts.
  void clear(const LiveRules& rules) {
    of_ranks.assign(static_cast<std::size_t>(rules.ranks), {});
    ended.clear();
    reading = 0;
    of_queues.assign(static_cast<std::size_t>(rules.drawn_ranks ? rules.ranks : 1), 0);
    budget = rules.token_budget;
    decodes = false;
    most = rules.reads_only ? rules.pool_prompts * rules.ranks / std::ssize(of_queues) : 0;
  }
  [[nodiscard]] bool full(std::size_t queue = 0) const { return most > 0 && of_queues[queue] >= most; }
  /// The rank that the next piece of a queue goes to.
  [[nodiscard]] Iteration& rank_for(std::size_t queue = 0) {
    return of_queues.size() > 1 ? of_ranks[queue]
                                : *std::ranges::min_element(of_ranks, {}, &Iteration::prompt_tokens);
  }
  /// What the rank with most to read does.
  [[nodiscard]] const Iteration& fullest() const {
    return *std::ranges::max_element(of_ranks, {}, &Iteration::prompt_tokens);
  }
  /// What an iteration of all ranks does, told by the rank with most to read.
  [[nodiscard]] Iteration work() const {
    Iteration slowest = fullest();
    double all = 0;
    for (const Iteration& rank : of_ranks) all += rank.prompt_tokens;
    slowest.spare = slowest.prompt_tokens - all / static_cast<double>(of_ranks.size());
    return slowest;
  }
  /// Tokens that the next piece of a queue may have.
  [[nodiscard]] std::int64_t left(std::size_t queue = 0) {
    return full(queue) ? 0 : budget - static_cast<std::int64_t>(rank_for(queue).prompt_tokens);
  }
  /// Whether a prompt may be read as a whole: one at least is.
  [[nodiscard]] bool takes_whole(std::int64_t context) {
    return !full() && (context <= left() || rank_for().prompt_tokens == 0);
  }
};

class ServerState;

// One admission rule each, in a file of its own.
void admit_vllm(ServerState& server, Batch& batch);
void admit_sglang(ServerState& server, Batch& batch);
void admit_trtllm(ServerState& server, Batch& batch);

struct AdmissionRule {
  ServingPolicy policy;
  void (*admit)(ServerState& server, Batch& batch);
  // Of servers that only read:
  bool fixes_ahead = true;        ///< LiveRules::schedule_ahead is as where they decode, too; else 0
  bool draws_ranks = false;       ///< LiveRules::drawn_ranks
  bool launches_to_look = false;  ///< LiveServer::launches_before_it_looks()
};
inline constexpr auto kAdmissionRules = std::to_array<AdmissionRule>({
    {ServingPolicy::prefill_priority, admit_sglang},
    {ServingPolicy::chunked, admit_vllm},
    {ServingPolicy::vllm, admit_vllm},
    // Its ranks read what is drawn for them (admit_sglang.cc); its loop launches by itself.
    {ServingPolicy::sglang, admit_sglang, true, true, true},
    // Context servers run without the overlap scheduler (guide to disaggregated serving: disable_overlap_scheduler).
    {ServingPolicy::trtllm, admit_trtllm, false},
});
static_assert([] {
  for (std::size_t i = 0; i < kAdmissionRules.size(); ++i)
    if (kAdmissionRules[i].policy != kServingPolicies[i].policy) return false;
  return kAdmissionRules.size() == kServingPolicies.size();
}());
constexpr const AdmissionRule& admission(const LiveRules& rules) {
  return kAdmissionRules[static_cast<std::size_t>(rules.policy)];
}

}  // namespace shardscape::serving
