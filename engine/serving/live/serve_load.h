// Serves a load request by request: clients that send requests (load/drawn_requests.h), a router, and one or more
// servers that work through iterations by a scheduler's rule (admit_*.cc).
//
// An event simulation of what is decided at boundaries of iterations: exact, given the times of iterations (Timer).
// Requests that come while an iteration is under way wait for its end. Runs of decode iterations in which nothing
// changes are one event: their times lie on straight pieces (decode_times.h), of which a sum, and the iteration that
// runs at a moment, are closed forms.
//
//   closed loop  so many requests are in flight all the time, or as long as there are any; the next is sent when one is
//                done, and the first ones all at once
//   open loop    requests are sent at moments of their own. Where more come than servers keep up with, all of them are
//                served all the same; `overloaded` says so, with the rate that would hold: of servers that never lack
//                requests, between the first generation of them and the moment when none waits
//   steady       counts as many requests as are done after the warm-up; requests are sent on until then
//
// Routing: in turn; to the server with the fewest requests; or by prefixes, as SGLang's router has it (cache_aware of
// sgl-router): to the server that has most of the prompt where that is more than half, else, or where the servers'
// numbers of requests are more than 32 and a tenth apart, to the one with the fewest.
//
// Requests that are sent at the same moment go to servers in order; moments at which several servers decide are dealt
// with in the servers' order, after all requests of that moment have come.
//
// Laws: sum of end-to-end times = integral of requests in the system (Little); tokens given = tokens asked for; all
// blocks of the cache are free when all is done.
//
// Left out: in open loop requests that are given up.
#pragma once

#include <cstdint>

#include "engine/serving/live/senders.h"
#include "engine/serving/live/tally.h"

namespace shardscape::serving {

/// Runs of decode iterations, or, `plain`, each of them as an event of its own.
enum class Stride : std::uint8_t { runs, plain };

LiveMeasured serve_load(const Offered& offered, const LiveRules& rules, const Timer& timer,
                        Stride stride = Stride::runs, const LoadObserver& observer = {});

}  // namespace shardscape::serving
