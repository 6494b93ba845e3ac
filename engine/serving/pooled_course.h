// Disaggregated serving: one pool of servers reads prompts, another decodes, and the cache of each request
// travels from the one to the other over the fabric (Patel et al. 2024, Splitwise; Zhong et al. 2024,
// DistServe). In closed loop, as server.h has it: `clients` send a request each at time 0 and the next one
// the moment theirs is done.
//
//   prefill   A request joins the shortest queue, by tokens that wait or are being read. A server reads
//             prompts in order of arrival up to its token budget: under chunked the last of them cut where
//             the budget ends, under prefill_priority whole prompts, at least one. Replicas that are coupled
//             have a queue each, and iterations together, as long as that of the one with most to do.
//   transfer  When the prompt has been read the request joins the decoding server with the fewest requests.
//             Once that has a place for it, every rank that decodes takes its part of the cache from the
//             ranks that hold it: flows that share links max-min fairly with those of other requests. Under
//             per_layer all layers but the last leave as soon as the first one is done, where there is a
//             place by then; the last leaves at the end.
//   token     The first token is the prefill's and is given when the last byte of the cache has arrived:
//             TTFT = waiting + prefill + transfer, ITL = waiting for a running iteration + decode steps.
//   decode    All sequences of a server get one token in each iteration; those whose cache has arrived join
//             with the next one.
//
// A prompt holds its place in the first pool until its cache has left. Ties go to the lower number. Of what happens in
// one instant, which is what lies closer together than rounding may move it, caches arrive first, in the order in
// which they set out, then iterations end, those that decode before those that read, by server; what these send leaves
// then, and in the end servers start. Requests
// are alike but the pools run at their own pace, so events are timed one by one. Each client has kPoolGenerations
// requests done on average; measured are those of the second half.
//
// Laws: a client's measured time runs from sending the first of its requests that end in the measured part to the end
// of the last, which is what these took together. Its rate is their number over that time, and the rates of all add up
// to the throughput; means are over requests, those of a client weighted by its rate. So throughput x mean end to end =
// clients exactly (Little 1961), and mean end to end = mean TTFT + (output - 1) x mean ITL.
//
// Left out: what the traffic of caches and that of iterations cost each other; under per_layer, the caches of
// pieces read in earlier iterations leave with the last piece's.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic.h"
#include "engine/serving/server.h"

namespace shardscape::serving {

inline constexpr std::int64_t kPoolGenerations = 8;

struct Pool {
  std::int64_t servers = 1;
  Rules rules;  ///< of each server; in the pool that prefills, of each of its coupled replicas
  Timer timer;  ///< times of its iterations; in the pool that prefills, of those of one replica
};

/// What one request sends on one connection, in bytes.
struct KvFlow {
  std::int32_t connection = 0;
  double bytes = 0;
};

/// The caches on the fabric; all references must outlive the use.
struct KvFabric {
  const network::Traffic& wires;  ///< connections alone; latencies include the cost of a call
  std::span<const double> bytes_per_second;
  /// Flows of each pair of replicas, [prefill replica * decode replicas + decode replica]. Servers of one replica have
  /// consecutive numbers. Where iterations of simulated loads send on links of caches, more follow
  /// (live/serve_pools.h).
  const std::vector<std::vector<KvFlow>>& flows;
  std::int64_t prefill_replicas = 1, decode_replicas = 1;
  KvTransfer when = KvTransfer::after_prefill;
  std::int64_t layers = 1;
  /// Coupled replicas that each server spreads its requests over; those of one server have consecutive numbers.
  std::int64_t prefill_coupled = 1, decode_coupled = 1;
};

struct DisaggregatedLoad {
  Load load;
  Pool prefill, decode;
  KvFabric fabric;
};

/// Consecutive iterations of one pool, and the number of requests that each of them served.
struct ServedIteration {
  /// The first of them; in each further one every decoding sequence meets one token more. Where prompts are read, it is
  /// the iteration of the coupled replica with most to do.
  Iteration iteration;
  std::int64_t progressing = 0;
  std::int64_t iterations = 1;
};

struct DisaggregatedMeasured {
  /// The classes of time, the waiting and the exposed transfers of these add up to e2e.mean.
  Measured requests;
  double exposed_transfer = 0;  ///< seconds of the mean request in which nothing but its transfer goes on
  double transfer = 0;          ///< mean seconds from a transfer's start to its end
  double requests_measured = 0;
  // Totals over the whole course, for checks.
  std::int64_t transfers_started = 0, transfers_done = 0, requests_done = 0;
  double bytes_sent = 0;
  /// Iterations of the measured part, where asked for.
  std::vector<ServedIteration> prefill_iterations, decode_iterations;
};

/// Simulates the pools. Time in proportion to events: requests, their pieces, and the differing flows of their caches.
DisaggregatedMeasured serve_disaggregated(const DisaggregatedLoad& load, bool keep_iterations = false);

}  // namespace shardscape::serving
