#include "engine/network/ring_time.h"

#include <algorithm>
#include <utility>

namespace shardscape::network {

RingTime::RingTime(std::vector<Hop> hops, int steps)
    : hops_(std::make_shared<const std::vector<Hop>>(std::move(hops))), steps_(steps) {
  for (const Hop& hop : *hops_) {
    if (std::ranges::find(rates_, hop.seconds_per_byte) == rates_.end())
      rates_.push_back(hop.seconds_per_byte);
  }
  if (is_affine()) latency_ = best_window(0, rates_.front());
}

double RingTime::at(double message_bytes) const {
  if (is_affine()) return latency_ + steps_ * message_bytes * rates_.front();
  double longest = 0;
  for (const double rate : rates_) {
    longest = std::max(longest, steps_ * message_bytes * rate + best_window(message_bytes, rate));
  }
  return longest;
}

/// The largest sum over a window of hops that contains a hop no faster than the rate. By prefix sums, with a
/// queue of the places at which the window may begin, the one of the least sum first.
double RingTime::best_window(double message_bytes, double seconds_per_byte) const {
  const std::vector<Hop>& hops = *hops_;
  const std::size_t n = hops.size(), steps = static_cast<std::size_t>(steps_);
  std::vector<double> prefix(n + steps);
  std::vector<std::size_t> queue(n);
  std::size_t head = 0, tail = 0, next = 0, k = 0;
  bool found = false;
  double best = 0;
  for (std::size_t end = 1; end < n + steps; ++end, k = k + 1 == n ? 0 : k + 1) {
    const Hop& hop = hops[k];
    prefix[end] = prefix[end - 1] + hop.latency + message_bytes * (hop.seconds_per_byte - seconds_per_byte);
    if (hop.seconds_per_byte >= seconds_per_byte) {
      for (; next < std::min(end, n); ++next) {
        while (tail > head && prefix[queue[tail - 1]] >= prefix[next]) --tail;
        queue[tail++] = next;
      }
    }
    while (tail > head && queue[head] + steps < end) ++head;
    if (tail == head) continue;
    const double sum = prefix[end] - prefix[queue[head]];
    if (!found || sum > best) best = sum;
    found = true;
  }
  return best;
}

}  // namespace shardscape::network
