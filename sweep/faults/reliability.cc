#include "sweep/faults/reliability.h"

#include <cmath>

namespace shardscape::sweep {

Seconds young_interval(Seconds checkpoint_write, Seconds failure_interval) {
  return Seconds(std::sqrt(2 * checkpoint_write.value() * failure_interval.value()));
}

Seconds daly_interval(Seconds checkpoint_write, Seconds failure_interval) {
  const double ratio = checkpoint_write / failure_interval / 2;
  if (ratio >= 1) return failure_interval;
  return (1 + std::sqrt(ratio) / 3 + ratio / 9) * young_interval(checkpoint_write, failure_interval) -
         checkpoint_write;
}

double work_share(Seconds interval, Seconds checkpoint_write, Seconds restart, Seconds failure_interval) {
  const double per_interval =
      std::exp(restart / failure_interval) * std::expm1((interval + checkpoint_write) / failure_interval);
  return interval / failure_interval / per_interval;
}

double goodput_share(const Reliability& reliability, std::int64_t devices, double mean_slowdown) {
  const Seconds failure_interval = reliability.device_failure_interval / static_cast<double>(devices);
  const Seconds interval =
      reliability.checkpoint_interval.value_or(daly_interval(reliability.checkpoint_write, failure_interval));
  return work_share(interval, reliability.checkpoint_write, reliability.restart, failure_interval) /
         (1 + reliability.fault_share * mean_slowdown);
}

}  // namespace shardscape::sweep
