// A closed loop of requests that are all alike, on servers that are all alike: servers that get as many clients do the
// same at the same moments, so that one is followed and stands for all; and where its state comes back, all that it did
// in between comes again, as often as there are requests for it.
//
// Alike servers: round robin deals requests that are ready at one moment out evenly where all servers send as many, and
// so do routers that look for the idlest. As soon as the last requests are sent they are dealt out unevenly, by at most
// one: from then on the servers are of two kinds, and nothing is sent any more that could make one depend on the other.
// Moments at which the warm-up or the measuring ends lie amid what servers do at one moment: those with lower numbers
// come first, as in the course of all of them.
//
// Where requests find the scheduler at the moment at which they are sent (no `frontend`), they come to servers whose
// iteration ends at that moment, before or after its end as rounding has it: several servers are not taken as one then.
//
// The state of a server: what waits, what runs, how far each is, when each was sent and has met what its latencies
// count, and what is on its way to it, moments as they are from now. All is compared to the count, moments up to the
// rounding of sums. Equal states have equal futures, in what is done and in what is measured of it.
//
// Equal to the course of all servers, event by event, up to rounding: its moments are sums from the beginning, these
// of one period, so that they are the more exact ones (tests/property/alike_servers_test.cc).
#pragma once

#include <functional>

#include "engine/serving/live/load_course.h"

namespace shardscape::serving {

/// Whether it applies.
bool all_alike(const Offered& offered, const LiveRules& rules);

/// Serves such a load. `go_on`: as in LoadObserver.
LiveMeasured serve_alike(const Offered& offered, const LiveRules& rules, const Timer& timer,
                         const std::function<bool()>& go_on);

}  // namespace shardscape::serving
