#include "engine/serving/live/tally.h"

#include <algorithm>

#include "engine/serving/live/attainment.h"

namespace shardscape::serving {

void Tally::work(const Work& work) {
  if (alike_ == 0) return;
  const auto servers = static_cast<double>(alike_);
  const auto progressing = static_cast<double>(work.progressing);
  add(sums_.spent, work.time, servers * progressing);
  if (work.progressing > work.decoding) ++reads_;
  sums_.held_seconds += servers * work.held_seconds;
  sums_.peak = std::max(sums_.peak, work.blocks);
  sums_.together = std::max(sums_.together, work.progressing);
  if (work.decoding == 0) return;
  sums_.decode_iterations += static_cast<double>(alike_ * work.iterations);
  sums_.decoded += static_cast<double>(alike_ * work.iterations * work.decoding);
}

void Tally::done(const Sequence& sequence, double now) {
  if (alike_ == 0) return;
  const auto servers = static_cast<double>(alike_);
  const DrawnRequest& request = sequence.request;
  ttft_.add(sequence.first_token - request.sent, alike_);
  e2e_.add(now - request.sent, alike_);
  // Moments of two pools, and of requests and of the servers that they find idle, are equal up to rounding.
  if (request.output > 1) tpot_.add(std::max(0.0, now - sequence.first_token) / (request.output - 1), alike_);
  sums_.queued += servers * std::max(0.0, sequence.admitted - request.sent);
  sums_.requests += alike_;
  if (!promises_ || keeps({request, sequence.admitted, sequence.first_token, now}, promised_))
    sums_.kept += alike_;
  sums_.prompts += alike_ * request.prompt;
  sums_.outputs += alike_ * request.output;
  sums_.steps += alike_ * request.steps;
  for (std::size_t tier = 0; tier < kCacheTiers; ++tier) sums_.hits[tier] += alike_ * sequence.hits[tier];
  if (sequence.read_at <= 0) return;
  sums_.transfer += servers * (sequence.landed - sequence.moved_from);
  sums_.exposed += servers * (sequence.landed - std::max(sequence.read_at, sequence.moved_from));
}

Tally::Mark Tally::mark() {
  Mark mark{sums_, {}};
  const auto all = distributions();
  for (std::size_t i = 0; i < all.size(); ++i) mark.values[i] = all[i]->mark();
  return mark;
}

bool Tally::repeat(const Mark& since, std::int64_t times, double seconds) {
  const auto all = distributions();
  if (std::ranges::any_of(all, [](const LatencyDistribution* one) { return one->spilt(); })) return false;
  for (std::size_t i = 0; i < all.size(); ++i) all[i]->repeat(since.values[i], times);
  const auto more = [&]<class T>(T Sums::*sum) {
    sums_.*sum += static_cast<T>(times) * (sums_.*sum - since.sums.*sum);
  };
  for (const auto sum : {&Sums::requests, &Sums::kept, &Sums::prompts, &Sums::outputs, &Sums::steps})
    more(sum);
  for (const auto sum : {&Sums::queued, &Sums::held_seconds, &Sums::decode_iterations, &Sums::decoded})
    more(sum);
  for (const TimeClass c : kServingClasses)
    sums_.spent[c] += static_cast<double>(times) * (sums_.spent[c] - since.sums.spent[c]);
  skipped_ += static_cast<double>(times) * seconds;
  return true;
}

LiveMeasured Tally::result(double end) {
  LiveMeasured out;
  out.requests = sums_.requests;
  out.begun = sums_.begin + sums_.skipped;
  end += skipped_;
  out.at_once = sums_.together * rules_.servers;
  const auto requests = static_cast<double>(std::max<std::int64_t>(1, out.requests));
  out.ttft = ttft_.percentiles();
  out.tpot = tpot_.percentiles();
  out.e2e = e2e_.percentiles();
  out.itl = gaps_.percentiles();
  out.gaps = gaps_.count();
  // Tokens that come together share the gap before them evenly.
  if (sums_.steps > 0)
    out.accepted = static_cast<double>(sums_.outputs - out.requests) / static_cast<double>(sums_.steps);
  if (sums_.outputs - out.requests != sums_.steps) out.itl.divide(out.accepted);
  if (out.requests > 0) out.attainment = static_cast<double>(sums_.kept) / requests;
  out.queue = sums_.queued / requests;
  // Where all that count were done at the moment at which the warm-up ended, up to rounding, the whole time stands for
  // none.
  const double window = end > out.begun * (1 + 1e-9) ? end - out.begun : end;
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
