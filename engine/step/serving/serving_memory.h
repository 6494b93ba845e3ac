// What a server holds at once besides its weights and its cache: the largest iterations that a load can lead to, and
// their bytes.
//
//   block    what one block's forward holds. Unfused attention writes its scores: per head, the sum over
//            sequences of tokens at work x tokens that they meet, for no sequence meets another's tokens
//   logits   fp32, a row for every sequence that gets a token
//
// A prompt's piece counts as its last, which meets the whole prompt, and a decoding sequence as if it were at
// its last token. How many of them decode while the rest of a chunked iteration's budget reads prompts
// decides which of the two terms is large; the amounts are linear in that number between the ends and the
// point where the budget stops being the limit, so that the maximum lies at one of them.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/memory/memory.h"
#include "engine/serving/server.h"
#include "engine/spec/scenario.h"

namespace shardscape::step {

/// Most sequences of a replica that one iteration works on, if the replica has so many requests; they take turns in as
/// many groups as there are stages.
std::int64_t sequences_at_once(const Setting& setting, const ParallelPlan& plan, std::int64_t requests);

/// What a server does: it belongs to a pool that only prefills or only decodes, or does both.
enum class ServerWork : std::uint8_t { prompts, decoding, both };

/// Candidates for the largest iterations of a server that works on so many sequences at once; the one that needs the
/// most memory is among them.
std::vector<serving::Iteration> largest_iterations(const Setting& setting, std::int64_t sequences,
                                                   ServerWork work);

/// The working set of a block, the logits and the boundary: for each, the most that any of the iterations needs.
memory::ActivationBytes serving_activations(const Setting& setting, const ParallelPlan& plan,
                                            const std::vector<serving::Iteration>& iterations);

}  // namespace shardscape::step
