// The expected goodput of a long run on machines that fail: how much of the time becomes progress.
//
// Failures that end the run come as a Poisson process of the whole machine, with mean time between failures
// M. The run writes a checkpoint that takes d after each interval of t of work; a failure costs what was done
// since the last checkpoint, and a restart of R.
//
//     share of the time that is work     t / ( M exp(R / M) (exp((t + d) / M) - 1) )       Daly 2006
//     best interval, to first order      sqrt(2 d M)                                       Young 1974
//     best interval, to higher order     sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d  for d < 2M,
//                                        M beyond                                          Daly 2006
//
// J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9), 1974; J. T.
// Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006.
//
// Faults that only slow the run (the study's fault samples) are there for a share f of the time, so that a
// step takes 1 + f * mean slowdown of its healthy time in the mean.
//
// Left out: failures during a restart beyond what exp(R / M) counts, checkpoints that overlap with work.
#pragma once

#include <cstdint>
#include <optional>

#include "engine/base/quantity.h"

namespace shardscape::sweep {

/// Young's first-order best interval between checkpoints. All arguments > 0.
Seconds young_interval(Seconds checkpoint_write, Seconds failure_interval);
/// Daly's higher-order best interval.
Seconds daly_interval(Seconds checkpoint_write, Seconds failure_interval);
/// The share of the time that is spent on work, in (0, 1).
double work_share(Seconds interval, Seconds checkpoint_write, Seconds restart, Seconds failure_interval);

/// The `reliability:` part of a study.
struct Reliability {
  Seconds
      /// Mean time between failures of one device, with its share of the rest of the machine.
      device_failure_interval;
  std::optional<Seconds> checkpoint_interval;  ///< work between checkpoints; nothing: Daly's best interval
  Seconds checkpoint_write;
  Seconds restart;
  double fault_share = 1;  ///< share of the time in which the study's faults are present
};

/// The share of the time of a long run on `devices` devices that becomes healthy work. `mean_slowdown`: that of the
/// fault samples, 0 without.
double goodput_share(const Reliability& reliability, std::int64_t devices, double mean_slowdown);

}  // namespace shardscape::sweep
