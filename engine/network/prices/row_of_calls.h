// How long calls of a row take that follow each other over links of which some are slow.
//
// A collective of one or several stages is a ring along an axis of a box of members, stage by stage; a member enters a
// stage when it is through the one before, and the next call when it is through this one and has been busy for a while.
// Only members behind a slow hop are late, and a late member finds what the others have sent it waiting: it catches up
// on the latency that its messages would have had. So calls follow each other sooner than the longest of them ends. The
// recursion of ring_time.h is run, message by message, until the members keep their distance; a hop also waits for its
// message before, in the last call as well:
//
//     drained(i, s) = max(received(i - 1, s - 1), drained(i, s - 1)) + send_i
//     received(i, s) = drained(i, s) + arrive_i
#pragma once

#include <boost/container/static_vector.hpp>
#include <cstddef>
#include <span>
#include <vector>

namespace shardscape::network {

/// What lies before a call, and which way that goes.
struct Gap {
  double seconds = 0;      ///< for which each member is busy
  bool together = false;   ///< all members begin that at one time, since they have waited for each other
  bool backwards = false;  ///< the call goes through the stages from the last to the first
  constexpr Gap(double busy = 0, bool waited = false, bool back = false)
      : seconds(busy), together(waited), backwards(back) {}
  friend bool operator==(const Gap&, const Gap&) = default;
};
/// The gaps before the calls of a cycle, which comes again and again.
using Gaps = boost::container::static_vector<Gap, 8>;
/// The mean of their seconds; of one gap at least.
double mean_of(const Gaps& gaps);
/// The share of them that members do not begin together.
double share_apart(const Gaps& gaps);

/// Seconds of a message on its hop, and from there to its receipt.
struct HopTime {
  double send = 0, arrive = 0;
};

/// A stage of a call: a ring along an axis, on every line of the box.
struct RowStage {
  std::size_t axis = 0;     ///< two stages on one axis go over the same hops
  std::size_t members = 1;  ///< of a line
  std::size_t steps = 0;    ///< messages that each of them sends
  HopTime hop;              ///< of all lines but one
  std::vector<HopTime>
      slow;  ///< the hops of that one, in the order of the ring; empty: it is like the others
};

/// Messages of one cycle of calls; up to 32 cycles are run.
double messages_in_cycle(std::span<const RowStage> stages, const Gaps& gaps);
/// The most in a cycle that are worth it: up to some hundred microseconds for a row. Beyond them the mean of the gaps
/// stands for a ring, and half of what is added for several stages (CostCurve::saved_in_row()).
constexpr double kMostInCycle = 1 << 11;

/// Seconds after which a call follows the one before, in the mean over many cycles: to 1e-9 where what members do comes
/// again within eight cycles, else to some tenths of a percent. O(messages_in_cycle()).
double mean_in_row(std::span<const RowStage> stages, const Gaps& gaps);

}  // namespace shardscape::network
