// Continuous batching of one replica in closed loop, iteration by iteration.
//
// `clients` send a request each at time 0, and the next one the moment theirs is done, for ever (a load
// generator at a fixed concurrency). The server works in iterations (Yu et al. 2022, Orca); every request
// that runs in one gets a token, or a piece of its prompt is read:
//
//   chunked           each running sequence decodes one token; what is left of the token budget reads prompts
//                     in order of arrival, the last of them cut where the budget ends (Agrawal et al. 2024,
//                     Sarathi-Serve).
//   prefill_priority  while prompts wait and there is room, an iteration reads whole prompts up to the token
//                     budget (at least one) and nobody decodes; else all running sequences decode (Orca; the
//                     first scheduler of vLLM, Kwon et al. 2023).
//
// A request is admitted when one of `slots` places is free: the largest batch, or as many requests as the
// key-value cache has blocks for with their last token (so none is ever evicted). The iteration that reads
// the end of a prompt yields its first token.
//
// Requests are alike and clients do not think, so who runs when depends on no duration: the course of the
// iterations is found first (trajectory()), exactly and without a clock, and then timed (measure()).
//
// Steady state: the state (whose prompts wait, what each sequence has to go) is compared whenever requests are done.
// Where a state comes back after each client has had one done or more, the server repeats itself for ever, and the
// next such period is measured. Where none does within a few requests of each client (kMostPeriod), courses may still
// be on their way to it for long: clients that began together fall apart slowly. So as many requests of each as
// generations() says are served, and the last of them measured. The first requests of all clients are never measured,
// but they do start at once, as load generators have it: prompts that fit in one iteration together stay together.
//
// Laws: whatever is measured, throughput x mean end to end = clients (Little 1961), mean end to end = mean TTFT +
// (output - 1) x mean ITL, and mean ITL is a mean of gaps, so that it lies between the shortest and the longest.
// Measuring begins and ends where all decoding sequences have just got a token: no gap lies across. Requests are
// counted by the gaps of theirs that end (where there are none, by those done), which over a period is their number:
// what enters and leaves half done is counted as what it is.
//
// Left out: requests of different lengths, eviction, prefix caching, speculative decoding.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/base/quantity.h"
#include "engine/serving/percentile.h"
#include "engine/spec/causal_window.h"
#include "engine/spec/stack.h"
#include "engine/spec/time_class.h"

namespace shardscape::serving {

struct Load {
  std::int64_t clients = 1;
  std::int64_t prompt_tokens = 1;
  std::int64_t output_tokens = 1;
  double window = 0;  ///< of the model's local layers, tokens; 0: none
};

struct Rules {
  ServingPolicy policy = ServingPolicy::chunked;
  std::int64_t token_budget = 1;  ///< tokens of one iteration; >= slots under chunked
  std::int64_t slots = 1;         ///< requests admitted at once
};

/// What one iteration works on.
struct Iteration {
  double decoding = 0;       ///< sequences that get one more token
  double cached = 0;         ///< tokens that these sequences meet, all together, their new ones included
  double prompt_tokens = 0;  ///< tokens of prompts read
  double prompt_pairs = 0;   ///< those tokens times the tokens of their prompt read so far, these included
  double masked_pairs = 0;   ///< of these pairs, how many the causal mask leaves
  double window_pairs = 0;   ///< and how many a window leaves of those; the same where there is none
  double first_tokens = 0;   ///< prompts that end here

  /// Reads `tokens` of a prompt behind `before` others.
  void add_piece(double before, double tokens, double window) {
    prompt_tokens += tokens;
    prompt_pairs += tokens * (before + tokens);
    masked_pairs += visible_pairs(before, tokens, 0);
    window_pairs += visible_pairs(before, tokens, window);
  }
};

/// Where an iteration's seconds go; the classes add up to its duration. bubble: in wait for a pipeline stage
/// that has others to serve.
using IterationTime = EnumArray<TimeClass, double>;
/// The classes of inference, by the table; the wait last: it is what the others leave.
inline constexpr auto kServingClasses = [] {
  constexpr auto kKnown = [](const TimeClassRow& row) { return applies(row.phases, Phase::inference); };
  std::array<TimeClass, std::ranges::count_if(kTimeClasses, kKnown)> classes{};
  std::size_t count = 0;
  for (const TimeClassRow& row : kTimeClasses) {
    if (kKnown(row) && row.time_class != TimeClass::bubble) classes[count++] = row.time_class;
  }
  classes[count] = TimeClass::bubble;
  return classes;
}();
inline double total(const IterationTime& time) {
  double sum = 0;
  for (const TimeClass c : kServingClasses) sum += time[c];
  return sum;
}

inline void add(IterationTime& to, const IterationTime& time, double factor) {
  for (const TimeClass c : kServingClasses) to[c] += factor * time[c];
}

/// The time of an iteration. Must be a pure function, and as a function of the cached tokens alone convex and
/// piecewise linear: then a run of decode iterations is summed up exactly without timing each.
using Timer = std::function<IterationTime(const Iteration&)>;

struct Measured {
  Spread ttft;  ///< from sending a request to its first token
  Spread itl;   ///< between consecutive tokens of a request; 0 where there is only one
  Spread e2e;   ///< a whole request
  double requests_per_s = 0;
  double decode_batch = 0;  ///< sequences decoded together, mean over iterations that decode; 0 where none do
  /// The mean request's seconds by class and, as `waiting`, those in which nothing is done for it; together
  /// they are e2e.mean.
  IterationTime classes{};
  double waiting = 0;
  bool periodic = true;  ///< measured over an exact period
};

/// Longest period that is looked for, and what is measured where there is none: requests of each client.
inline constexpr std::int64_t kMostPeriod = 8;
/// Requests of each client that are served where no state comes back: 64, by when nine in ten such courses have the
/// TTFT of 256 within 1 %, or as few as 8 where there are so many clients, or pieces of prompts, that they would be
/// more than 2^17 pieces of work.
std::int64_t generations(const Load& load, const Rules& rules);
/// Of these, how many are measured.
inline std::int64_t measured_generations(std::int64_t all) { return std::min(kMostPeriod, all / 2); }

/// The course of a server's iterations, without times: who has a part in which of them. Iterations in a row
/// form segments. Moments are given as boundaries: boundary i is the begin of segment i and the end of
/// segment i - 1.
struct Trajectory {
  /// Iterations in a row that differ only in that every decoding sequence meets one token more from one to
  /// the next.
  struct Segment {
    Iteration first;
    std::int64_t iterations = 1;
    std::int64_t progressing = 0;  ///< requests worked on, those being read included
    /// Its gaps are `gaps` from the end of the segment before up to here.
    std::int32_t gaps_end = 0;
  };
  /// A gap between tokens: `count` sequences that get a token at the end of the segment's first iteration got
  /// the token before it at boundary `since`.
  struct Gap {
    std::int32_t since = 0;
    std::int64_t count = 0;
  };
  struct Request {
    std::int32_t sent = 0, first_token = 0, done = 0;  ///< boundaries
  };
  std::vector<Segment> segments;
  std::vector<Gap> gaps;
  std::vector<Request> requests;  ///< those done, in order
  std::int32_t from = 0, to = 0;  ///< boundaries between which to measure
  bool periodic = false;
};

/// Time proportional to events (requests, prompt pieces), not to tokens.
Trajectory trajectory(const Load& load, const Rules& rules);

Measured measure(const Trajectory& trajectory, const Load& load, const Timer& timer);

/// Requests that the measured part counts for; see the laws above.
double requests_measured(const Trajectory& trajectory, const Load& load);

}  // namespace shardscape::serving
