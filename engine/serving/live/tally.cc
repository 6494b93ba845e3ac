#include "engine/serving/live/tally.h"

#include <algorithm>

#include "engine/serving/live/attainment.h"

namespace shardscape::serving {

void Tally::work(const Work& work) {
  const auto progressing = static_cast<double>(work.progressing);
  add(sums_.spent, work.time, progressing);
  if (work.progressing > work.decoding) ++reads_;
  sums_.held_seconds += work.held_seconds;
  sums_.peak = std::max(sums_.peak, work.blocks);
  sums_.together = std::max(sums_.together, work.progressing);
  if (work.decoding == 0) return;
  sums_.decode_iterations += static_cast<double>(work.iterations);
  sums_.decoded += static_cast<double>(work.iterations * work.decoding);
}

void Tally::done(const Sequence& sequence, double now) {
  const DrawnRequest& request = sequence.request;
  sums_.ttft.add(sequence.first_token - request.sent);
  sums_.e2e.add(now - request.sent);
  // Moments of two pools are equal up to rounding.
  if (request.output > 1) sums_.tpot.add(std::max(0.0, now - sequence.first_token) / (request.output - 1));
  sums_.queued += sequence.admitted - request.sent;
  ++sums_.requests;
  if (keeps({request, sequence.admitted, sequence.first_token, now}, promised_)) ++sums_.kept;
  sums_.prompts += request.prompt;
  sums_.outputs += request.output;
  sums_.steps += request.steps;
  for (std::size_t tier = 0; tier < kCacheTiers; ++tier) sums_.hits[tier] += sequence.hits[tier];
  if (sequence.read_at <= 0) return;
  sums_.transfer += sequence.landed - sequence.moved_from;
  sums_.exposed += sequence.landed - std::max(sequence.read_at, sequence.moved_from);
}

LiveMeasured Tally::result(double end) {
  LiveMeasured out;
  out.requests = sums_.requests;
  out.begun = sums_.begin;
  out.at_once = sums_.together * rules_.servers;
  const auto requests = static_cast<double>(std::max<std::int64_t>(1, out.requests));
  out.ttft = sums_.ttft.percentiles();
  out.tpot = sums_.tpot.percentiles();
  out.e2e = sums_.e2e.percentiles();
  out.itl = sums_.gaps.percentiles();
  out.gaps = sums_.gaps.count();
  // Tokens that come together share the gap before them evenly.
  if (sums_.steps > 0)
    out.accepted = static_cast<double>(sums_.outputs - out.requests) / static_cast<double>(sums_.steps);
  if (sums_.outputs - out.requests != sums_.steps) out.itl.divide(out.accepted);
  if (out.requests > 0) out.attainment = static_cast<double>(sums_.kept) / requests;
  out.queue = sums_.queued / requests;
  // Where all that count were done at the moment at which the warm-up ended, up to rounding, the whole time stands for
  // none.
  const double window = end > sums_.begin * (1 + 1e-9) ? end - sums_.begin : end;
  out.requests_per_s = static_cast<double>(out.requests) / window;
  out.output_tokens_per_s = static_cast<double>(sums_.outputs) / window;
  if (sums_.decode_iterations > 0) out.decode_batch = sums_.decoded / sums_.decode_iterations;
  add(out.classes, sums_.spent, 1 / requests);
  for (std::size_t tier = 0; tier < kCacheTiers; ++tier)
    out.hits[tier] =
        static_cast<double>(sums_.hits[tier]) / static_cast<double>(std::max<std::int64_t>(1, sums_.prompts));
  out.transfer = sums_.transfer / requests;
  out.exposed_transfer = sums_.exposed / requests;
  // Beside what these requests met, servers worked on some that began before or are not done, whose work is no part of
  // their time.
  const double spent = total(out.classes), most = out.e2e.mean - out.exposed_transfer;
  if (spent > most) add(out.classes, IterationTime(out.classes), most / spent - 1);
  out.waiting = std::max(0.0, most - spent);
  const auto blocks = static_cast<double>(rules_.kv_blocks);
  out.kv_peak = static_cast<double>(sums_.peak) / blocks;
  // With drafts sequences hold parts of tokens in the mean, and blocks for whole ones.
  out.kv_mean =
      std::min(out.kv_peak, sums_.held_seconds /
                                (window * blocks * static_cast<double>(rules_.kv_block * rules_.servers)));
  out.prompt_tokens = sums_.prompts;
  out.output_tokens = sums_.outputs;
  return out;
}

}  // namespace shardscape::serving
