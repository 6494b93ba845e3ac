// A load that is simulated request by request (engine/serving/live) on the replicas of a plan.
//
// There is a server for each replica and group of requests (inference.h), and for coupled replicas one. Where all do
// the same it stands for all of them, and gets its share of the clients or of the arrivals; where requests are dealt
// out it has them all as its ranks. Its cache has as many blocks as the shape says, and for the longest request at
// least; memory shows where that does not fit. Tokens of models whose layers have windows count as many bytes as those
// of the mean request.
#pragma once

#include "engine/serving/live/serve_load.h"
#include "engine/spec/prediction.h"
#include "engine/step/serving/inference.h"
#include "engine/step/serving/iteration_stream.h"

namespace shardscape::step {

serving::LiveRules live_rules(const InferenceInputs& inputs);
/// Requests that come until each rank has one, in the mean: one goes to the rank with the fewest sequences, which is
/// that of the sequence that has just ended, so that all ranks must have ended one: n (1 + 1/2 + ... + 1/n), the coupon
/// collector's number.
double prompts_of_all(std::int64_t ranks);
/// Seconds that a server's first iteration takes longer if it reads a prompt (LiveRules::first_prompts). In steady
/// state the warm-up of every server is over, however few requests each of them has had.
double first_prompts(const Setting& setting);
/// Coupled replicas as the ranks of one server, with the places and the cache of all of them together.
void join_ranks(std::int64_t coupled, serving::LiveRules& rules);
/// The iteration of the busiest of several coupled replicas, over which sequences are dealt evenly: ceil(n / replicas).
serving::Iteration of_busiest(serving::Iteration all, std::int64_t coupled);
/// Fills what a load has: latencies, rates, breakdown. `replicas`: replicas that the measured servers stand for.
void fill_load(const serving::LiveMeasured& measured, double replicas, double gpus, Prediction& prediction);

/// Fills latencies, rates, breakdown and what a load has beside. `timer` gives the time of an iteration of a server.
/// An open loop is overloaded, too, where more requests come than the fastest iterations serve. `observer` may get
/// what servers do over time, and end the simulation.
void time_load(const InferenceInputs& inputs, const serving::Timer& timer, LoadTiming timing,
               Prediction& prediction, const serving::LoadObserver& observer = {});

}  // namespace shardscape::step
