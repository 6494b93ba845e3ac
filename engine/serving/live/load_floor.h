// What no server of a plan does better, whatever requests it gets, counted without simulating.
//
//   first token   of the shortest prompt: as on an idle server that takes nothing but it, or as much less as the
//                 iteration that reads it is shorter with other tokens in it
//   per token     the shortest iteration that may give a token, shared by 1 + n tokens with n drafts
//   requests      A server's iterations come one after the other. One with b decoding sequences and c tokens of prompts
//                 takes at least b min t/b and at least c min t/c, so that all that serve a request take of a server's
//                 time what decodes it and, beside that where prompts are read beside decoding sequences, else after
//                 it, what reads it:
//                   rate <= servers / (max or sum)((output - 1) / (1 + n) min t/b, prompt / ranks min t/c)
//                 with mean lengths over a long run. Clients in a closed loop have one request each at a time:
//                   rate <= clients / least e2e
//
// b goes up to the largest batch, or as many sequences as come or as the cache has room for, which prompts that begin
// alike may share; with ranks of their own all of these may have as many as the busiest. c goes up to the largest
// iteration, of a prompt that is read again too. Where prefixes are kept or a part of prompts lies in the cache,
// reading may take nothing but a token.
//
// That is proved but for the least times t. Layers, embedding and head are linear between the numbers of tokens at
// which they are priced (price_iterations.h), so that t and t/n are least at one of those, which are all looked at,
// with prompts beside and without. The rest is attention, which is taken at the shortest contexts, and at those
// numbers: that more of it takes no less, and of more sequences no less for each than there, is tested and not proved,
// as kernels fill devices in waves. kLoadFloorShare leaves room for that.
#pragma once

#include "engine/serving/live/live_rules.h"
#include "engine/serving/live/senders.h"
#include "engine/spec/request_load.h"

namespace shardscape::serving {

/// Of random loads on all shipped devices and stacks (tests/property/load_floors_test.cc; 3,200 studies once) none was
/// better than the floors without it by more than 0.1 %.
inline constexpr double kLoadFloorShare = 0.97;

struct LoadFloor {
  double ttft = 0, tpot = 0, e2e = 0;  ///< seconds, of any request
  double requests_per_s = 0;           ///< the most, in a long run, of all servers together
  double in_a_run =
      0;  ///< the most in any run from an idle server to the last request: as if all were the shortest
};

/// `usual_batch`: sequences of a rank at which iterations are priced beside the powers of two.
LoadFloor load_floor(const Offered& offered, const LiveRules& rules, const Timer& timer,
                     std::int64_t usual_batch);

}  // namespace shardscape::serving
