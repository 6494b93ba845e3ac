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

namespace {

Seconds machine_failure_interval(const Reliability& reliability, std::int64_t devices) {
  return reliability.device_failure_interval / static_cast<double>(devices);
}

}  // namespace

Seconds checkpoint_interval(const Reliability& reliability, std::int64_t devices) {
  return reliability.checkpoint_interval.value_or(
      daly_interval(reliability.checkpoint_write, machine_failure_interval(reliability, devices)));
}

double goodput_share(const Reliability& reliability, std::int64_t devices, double mean_slowdown) {
  return work_share(checkpoint_interval(reliability, devices), reliability.checkpoint_write,
                    reliability.restart, machine_failure_interval(reliability, devices)) /
         (1 + reliability.fault_share * mean_slowdown);
}

}  // namespace shardscape::sweep
