// Sums up what the requests of a simulated load met: their latencies, the gaps between tokens, the time by class, and
// the use of the cache.
#pragma once

#include <array>

#include "engine/serving/decode_times.h"
#include "engine/serving/latency_distribution.h"
#include "engine/serving/live/load_record.h"
#include "engine/serving/live/server_state.h"

namespace shardscape::serving {

/// Results of a simulated load.
struct LiveMeasured {
  Percentiles ttft, itl, tpot, e2e;  ///< seconds; ITL over gaps between tokens, the others over requests
  double queue = 0;                  ///< mean seconds from sending a request until its prompt is first read
  double requests_per_s = 0, output_tokens_per_s = 0;
  double decode_batch = 0;  ///< as in Measured
  IterationTime classes{};  ///< as in Measured
  double waiting = 0;       ///< as in Measured
  /// Share of the cache of a server that is held (or reserved): of its tokens the mean over time and servers, of its
  /// blocks the most.
  double kv_mean = 0, kv_peak = 0;
  std::int64_t requests = 0, preemptions = 0, prompt_tokens = 0, output_tokens = 0;
  std::int64_t at_once = 0;  ///< the most requests that iterations serve, of all servers together
  double begun = 0;          ///< the moment from which on is measured
  /// The time in which requests count is too short: in it the servers were in no steady state (LoadCourse::unsteady).
  bool unsteady = false;
  std::int64_t gaps =
      0;  ///< between tokens: of requests that count from their first token, output_tokens - requests
  /// Open loop: requests per second that the servers keep up with, where more come than that; else 0.
  double sustained_per_s = 0;
  double done = 1;  ///< share of the requests that count which are done, and measured
  [[nodiscard]] bool overloaded() const { return sustained_per_s > 0; }
  /// Of two pools: mean seconds of a cache's way, and those of them in which nothing else goes on for its request.
  double transfer = 0, exposed_transfer = 0;
  /// Share of the tokens of prompts that were found in the cache, by tier (prefix_cache.h).
  std::array<double, kCacheTiers> hits{};
  /// Tokens that a decode iteration gives a sequence: 1, or more where drafts are accepted; 0: nothing was decoded.
  double accepted = 0;
  /// Share of the requests that keep what is promised (attainment.h); 1 where there are none.
  double attainment = 1;
};

class Tally {
 public:
  /// `promised`: what requests are held against.
  explicit Tally(const LiveRules& rules, const LatencyBounds& promised = {})
      : rules_(rules), promised_(promised), promises_(promised != LatencyBounds()) {}

  /// What is added from now on is met alike by so many servers, and by the requests of each. 1: by one.
  void stands_for(std::int64_t servers) { alike_ = servers; }

  /// Tokens of `weight` sequences that come `gap` seconds after the ones before them.
  void gap(double gap, std::int64_t weight) { gaps({gap, 0, 1, weight}); }
  void gaps(const Progression& gaps) { gaps_.add(gaps, alike_); }
  /// A piece of work: iterations that serve `progressing` requests, of which `decoding` decode.
  struct Work {
    IterationTime time{};  ///< of all iterations
    std::int64_t iterations = 1, progressing = 0, decoding = 0;
    double held_seconds = 0;  ///< tokens that the cache holds, times seconds
    std::int64_t blocks = 0;  ///< in use at the end
  };
  void work(const Work& work);
  void done(const Sequence& sequence, double now);

  /// The moment from which on is measured, by the clock of the servers.
  [[nodiscard]] double begun() const { return sums_.begin; }
  /// Seconds that were not gone through, as they repeat others: the clock of the servers is late by them.
  [[nodiscard]] double skipped() const { return skipped_; }
  /// Iterations in which prompts were read, those of the warm-up, too.
  [[nodiscard]] std::int64_t reads() const { return reads_; }
  /// All measured so far is forgotten: the warm-up is over.
  void restart(double now) {
    sums_ = {};
    sums_.begin = now;
    sums_.skipped = skipped_;
    for (LatencyDistribution* const values : distributions()) *values = LatencyDistribution();
  }
  /// Takes over the time by class of work done elsewhere for the same requests.
  void add_work(const Tally& other) { add(sums_.spent, other.sums_.spent, 1); }
  /// `end`: moment at which measuring ends, by the clock of the servers.
  [[nodiscard]] LiveMeasured result(double end);

 private:
  struct Sums {
    double begin = 0, skipped = 0;  ///< `skipped`: before it
    std::int64_t requests = 0, kept = 0;
    double queued = 0, held_seconds = 0, decode_iterations = 0, decoded = 0, transfer = 0, exposed = 0;
    std::int64_t peak = 0, together = 0, prompts = 0, outputs = 0, steps = 0;
    TierBlocks hits{};  ///< tokens
    IterationTime spent{};
  };
  [[nodiscard]] std::array<LatencyDistribution*, 4> distributions() {
    return {&gaps_, &ttft_, &tpot_, &e2e_};
  }

 public:
  /// What had been added at some moment.
  struct Mark {
    Sums sums;
    std::array<LatencyDistribution::Mark, 4> values{};
  };
  [[nodiscard]] Mark mark();
  /// All that has been added since then came so many times more, `seconds` apart; false, and nothing is added, where it
  /// is not known one by one any more.
  [[nodiscard]] bool repeat(const Mark& since, std::int64_t times, double seconds);

 private:
  const LiveRules& rules_;
  const LatencyBounds promised_;
  const bool promises_;
  std::int64_t alike_ = 1;
  std::int64_t reads_ = 0;
  double skipped_ = 0;
  Sums sums_;
  LatencyDistribution gaps_, ttft_, tpot_, e2e_;
};

}  // namespace shardscape::serving
