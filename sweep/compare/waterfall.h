// Why one plan is faster than another: their difference as bars that add up to it.
//
// A bar belongs to a class of time. Communication is told apart by the dimensions of the fabric that its groups cross,
// so that traffic which moved from one link to another is two bars. In training computation is told apart by cause:
//
//   work   tokens times the parameters that each of them meets, per GPU: more GPUs, another batch or model
//   share  what the critical rank computes beyond that: head, uneven layers, chunks of experts (from the products of
//          its operators)
//   rate   the rest: device, format, kernels and the shapes that they get
//
// The causes are factors of the time; they are taken one after the other in this order, so that their bars are those of
// the factor on what the ones before have left. Recomputation is work where the plans recompute otherwise, and rate
// where both do the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/details.h"
#include "engine/spec/prediction.h"
#include "engine/spec/scenario.h"

namespace shardscape::compare {

/// A plan with what was predicted for it; has_times().
struct Side {
  const Setting& setting;
  const ParallelPlan& plan;
  const Prediction& prediction;
  const Details& details;

  [[nodiscard]] Seconds whole() const { return prediction.whole(setting.workload.phase); }
};

enum class Cause : std::uint8_t { time, work, share, rate };

struct Bar {
  TimeClass time_class = TimeClass::compute;
  Cause cause = Cause::time;  ///< time: the class as a whole
  std::string links;   ///< names of dimensions, joined by " + "; empty where the class is no communication
  Seconds difference;  ///< what it adds to A's time on the way to B's
};

/// The bars from A's time to B's, in the order of the classes, without those of nothing. They add up to the difference
/// of the breakdowns, which is that of the whole. Both are of one phase.
std::vector<Bar> waterfall(const Side& a, const Side& b);

/// The dimensions of the fabric that groups of a class of communication cross, " + " between their names.
std::string crossed_links(const Setting& setting, const ParallelPlan& plan, TimeClass time_class);

/// What became of a plan with less recomputation on its machine.
struct LighterRecompute {
  Recompute recompute = Recompute::none;
  Prediction prediction;
};
/// The plan with each lighter recomputation, the lightest first; none for servers.
std::vector<LighterRecompute> lighter_recompute(const Setting& setting, const ParallelPlan& plan);

}  // namespace shardscape::compare
