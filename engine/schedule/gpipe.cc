#include <algorithm>

#include "engine/schedule/schedule_rules.h"

namespace shardscape::schedule {

namespace {

/// A flow shop of identical jobs has a closed form: with forward times f and the sender's share of transfers c, stage s
/// ends its m-th forward at  sum(i <= s) f_i + (m - 1) max(i <= s) f_i  (plus transfers), and backwards mirror it.
void gpipe_ends(const PipelineShape& shape, std::span<const StageTime> times, const Transfer& transfer,
                std::vector<double>& ends) {
  const std::size_t stages = times.size();
  ends.resize(stages);
  const double repeats = shape.microbatches - 1;
  const auto busy = [&](double message) { return transfer.blocking ? message : 0; };
  // Arrival of the first microbatch at this stage; longest time per microbatch of the stages so far.
  double arrival = 0, slowest = 0;
  for (std::size_t s = 0; s < stages; ++s) {
    const bool sends = s + 1 < stages;
    const double message = sends ? transfer.over(s) : 0, work = times[s].forward + busy(message);
    slowest = std::max(slowest, work);
    ends[s] = arrival + work + repeats * slowest;
    arrival += times[s].forward + message;
  }
  arrival = ends.back();
  slowest = 0;
  for (std::size_t s = stages; s-- > 0;) {
    const bool sends = s > 0;
    const double message = sends ? transfer.back_over(s - 1) : 0, work = times[s].backward + busy(message);
    slowest = std::max(slowest, work);
    ends[s] = arrival + work + repeats * slowest;
    arrival += times[s].backward + message;
  }
}

}  // namespace

constinit const ScheduleRules kGpipeRules = {
    .warm_up = [](const PipelineShape& shape, std::int32_t) { return shape.forwards(); }, .ends = gpipe_ends};

}  // namespace shardscape::schedule
