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
  double window = 0;  ///< window of the model's local layers in tokens; 0: none
};

struct Rules {
  ServingPolicy policy = ServingPolicy::chunked;
  std::int64_t token_budget = 1;  ///< most tokens of one iteration; >= slots under chunked
  std::int64_t slots = 1;         ///< most requests admitted at once
};

/// The work of one iteration.
struct Iteration {
  double decoding = 0;       ///< sequences that get one more token
  double cached = 0;         ///< tokens that these sequences meet, all together, their new ones included
  double prompt_tokens = 0;  ///< tokens of prompts read
  /// Pairs: those tokens times the tokens of their prompt read so far, these included.
  double prompt_pairs = 0;
  double masked_pairs = 0;  ///< pairs that the causal mask leaves
  double window_pairs = 0;  ///< pairs of these that a window leaves; the same where there is none
  double first_tokens = 0;  ///< prompts that end here
  /// Of ranks that share experts, whose iteration lasts as long as that of the one with most tokens, which this is:
  /// tokens of prompts that they read fewer in the mean. Their experts meet no more than all have together.
  double spare = 0;

  /// Adds `tokens` tokens of a prompt that follow `before` others.
  void add_piece(double before, double tokens, double window) {
    prompt_tokens += tokens;
    prompt_pairs += tokens * (before + tokens);
    masked_pairs += visible_pairs(before, tokens, 0);
    window_pairs += visible_pairs(before, tokens, window);
  }
};

/// An iteration's seconds by class; the classes add up to its duration. bubble is the wait for a pipeline stage that
/// serves other sequences.
using IterationTime = EnumArray<TimeClass, double>;
/// The classes of inference in the order of the table, with the wait last, as it is what the others leave.
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

/// Gives the time of an iteration. Must be a pure function, and convex and piecewise linear in the cached tokens alone,
/// so that runs of decode iterations can be summed exactly without timing each.
using Timer = std::function<IterationTime(const Iteration&)>;

struct Measured {
  Spread ttft;  ///< from sending a request to its first token
  Spread itl;   ///< between consecutive tokens of a request; 0 where it has only one
  Spread e2e;   ///< from sending a request to its last token
  double requests_per_s = 0;
  /// Mean number of sequences decoded together, over iterations that decode; 0 where none do.
  double decode_batch = 0;
  /// Seconds of the mean request by class, and `waiting`, in which nothing is done for it; together they are e2e.mean.
  IterationTime classes{};
  double waiting = 0;
  bool periodic = true;  ///< measured over an exact period
};

/// The longest period that is looked for, and the length measured where there is none, in requests of each client.
inline constexpr std::int64_t kMostPeriod = 8;
/// Requests of each client that are served where no state comes back: 64, with which nine in ten such courses have the
/// TTFT of 256 within 1 %; as few as 8 where clients or pieces of prompts are so many that there would be more than
/// 2^17 pieces of work.
std::int64_t generations(const Load& load, const Rules& rules);
/// The number of these, the last, that are measured.
inline std::int64_t measured_generations(std::int64_t all) { return std::min(kMostPeriod, all / 2); }

/// The course of a server's iterations without times: which request takes part in which iteration. Consecutive
/// iterations form segments; moments are boundaries: boundary i is the beginning of segment i and the end of segment i
/// - 1.
struct Trajectory {
  /// Consecutive iterations that differ only in that every decoding sequence meets one token more in each.
  struct Segment {
    Iteration first;
    std::int64_t iterations = 1;
    std::int64_t progressing = 0;  ///< requests worked on, with those being read
    /// Its gaps in `gaps` begin where those of the segment before end, and end here.
    std::int32_t gaps_end = 0;
  };
  /// A gap between tokens: `count` sequences that get a token at the end of the segment's first iteration got
  /// the token before it at boundary `since`.
  struct Gap {
    std::int32_t since = 0;
    std::int64_t count = 0;
  };
  struct Request {
    std::int32_t sent = 0, first_token = 0, done = 0;  ///< boundaries of these moments
  };
  std::vector<Segment> segments;
  std::vector<Gap> gaps;
  std::vector<Request> requests;  ///< requests that are done, in order
  std::int32_t from = 0, to = 0;  ///< boundaries between which is measured
  bool periodic = false;
};

/// Finds the course. Time in proportion to events (requests, prompt pieces), not to tokens.
Trajectory trajectory(const Load& load, const Rules& rules);

Measured measure(const Trajectory& trajectory, const Load& load, const Timer& timer);

/// Number of requests that the measured part counts for; see the laws above.
double requests_measured(const Trajectory& trajectory, const Load& load);

}  // namespace shardscape::serving
