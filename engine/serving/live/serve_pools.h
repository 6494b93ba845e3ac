// Serves a load request by request by two pools of servers, one that reads prompts and one that decodes, with the
// transfer of caches between them (pooled_course.h says what happens; there requests are alike, here they are those of
// a load, and blocks are counted).
//
//   queue     A request goes to one of the servers that read as it comes (router.h) and waits there. These read by
//             their admission rule until their token budget is filled, or pool_prompts for each rank; of SGLang's a
//             rank is drawn for each request, which waits for that one (admit_sglang.cc). Where they schedule ahead,
//             the host launches an iteration as the one before it begins, if anything waits by then. Where launching is
//             what an iteration lasts for, SGLang's launches the next at its end, and looks at what has been read after
//             that. Blocks for all of a prompt are taken at once.
//   transfer  A prompt that is read goes to the decoding server with the fewest requests, and its cache leaves once
//             that has a place and blocks for it; flows share links max-min fairly. Until it has left, it keeps its
//             place and its blocks in the first pool. A cache's bytes are in proportion to its prompt.
//   token     The first token is given when the cache has arrived. The sequence joins with the next iteration.
//   decode    as live_server.h has it. What is preempted is read again where it decoded.
//
//   links     Iterations may send on the links of caches, too. Of an iteration that alone takes c + s seconds, s of
//             them sending there, the s seconds' bytes are a flow like those of caches, all at the iteration's end. So
//             n caches that are there all the time make it c + (n + 1) s long, and together get c + n s seconds' bytes
//             through: what it would be if layers computed and sent by turns. Where no cache is there at its beginning
//             and comes later, what of the s seconds is left then is sent beside it.
//
// Of what happens in one instant, up to rounding, caches arrive first, then hosts look at what they had left, then
// iterations end (those that decode first), then requests come, then servers begin, then caches leave.
//
// Left out: that waiting for the host may hide what sending takes longer.
#pragma once

#include <vector>

#include "engine/serving/live/live_rules.h"
#include "engine/serving/live/senders.h"
#include "engine/serving/live/tally.h"
#include "engine/serving/pooled_course.h"

namespace shardscape::serving {

/// Servers of one pool; `rules.ranks` of them are coupled replicas, and the timer is of a whole server's iteration.
struct LivePool {
  LiveRules rules;
  Timer timer;
  /// Of iterations on links that caches use: KvFabric::flows has an entry for each server after those of the pairs, the
  /// ones that read first; empty, or one flow with the bytes of a second over all such links.
  SendingShares on_links{};
};

struct PooledServers {
  LivePool prefill, decode;
  KvFabric fabric;         ///< of the mean request; couplings are those of the rules
  double mean_prompt = 1;  ///< tokens of that request
};

/// Use of the cache is that of the pool that decodes.
LiveMeasured serve_pools(const Offered& offered, const PooledServers& servers,
                         const LoadObserver& observer = {});

}  // namespace shardscape::serving
