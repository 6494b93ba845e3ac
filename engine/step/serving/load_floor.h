// What no server of a plan does better, whatever requests it gets: the fastest iterations, counted without simulating.
//
//   first token   of the shortest prompt, alone on an idle server: company adds iterations, or work to its own
//   per token     the fastest decode iteration of one sequence, of any context that requests have
//   requests      each takes of a server's time the decode iterations of its output, shared by as many sequences as run
//                 at once, and the reading of its prompt at the best speed: the longer of both where prompts are read
//                 beside decoding sequences, else both:
//                   rate <= servers / (max or sum)((output - 1) min_b t(b) / b, prompt min_c t(c) / c)
//                 with mean lengths over a long run; b up to the largest batch, or as many sequences as the cache
//                 holds, c up to the largest iteration
//
// With n drafts an iteration gives a sequence up to 1 + n tokens; where prefixes are kept a prompt may be found in the
// cache but for one token; ranks of a server read prompts at the same time.
//
// b and c are taken at powers of two and at their ends. Iterations with more work take no less time, and per sequence
// or token no more, but for tiles that fill unevenly: kLoadFloorShare of what is computed leaves room for that.
// Property tests hold simulated loads against these floors; nothing proves them.
#pragma once

#include "engine/serving/live/live_rules.h"
#include "engine/spec/request_load.h"

namespace shardscape::step {

/// Of random loads on plans of shipped presets (tests/property/capacity_test.cc) none was better than the floors
/// themselves.
inline constexpr double kLoadFloorShare = 0.97;

struct LoadFloor {
  double ttft = 0, tpot = 0, e2e = 0;  ///< seconds, of any request
  double requests_per_s = 0;           ///< the most, in a long run, of all servers together
  double in_a_run =
      0;  ///< the most in any run from an idle server to the last request: as if all were the shortest
};

LoadFloor load_floor(const LoadSpec& load, const serving::LiveRules& rules, const serving::Timer& timer);

}  // namespace shardscape::step
