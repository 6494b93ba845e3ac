#include "engine/network/prices/ring_time.h"

#include <algorithm>

namespace shardscape::network {

RingTime::RingTime(std::span<const Hop> hops, int steps) : steps_(steps) {
  const auto all = std::make_shared<Hops>();
  all->kind.reserve(hops.size());
  for (const Hop& hop : hops) {
    const auto known = std::ranges::find(all->kinds, hop);
    all->kind.push_back(static_cast<std::uint32_t>(known - all->kinds.begin()));
    if (known == all->kinds.end()) all->kinds.push_back(hop);
  }
  hops_ = all;
  for (const Hop& hop : all->kinds) {
    if (std::ranges::find(rates_, hop.seconds_per_byte) == rates_.end())
      rates_.push_back(hop.seconds_per_byte);
  }
  if (is_affine()) latency_ = best_window(0, rates_.front());
  fastest_ = hops.front().seconds_per_byte;
  double before = hops.back().seconds_per_byte;
  for (const Hop& hop : hops) {
    fastest_ = std::min(fastest_, hop.seconds_per_byte);
    if (hops.size() > 1) neighbours_ = std::max(neighbours_, before + hop.seconds_per_byte);
    before = hop.seconds_per_byte;
    round_.latency += hop.latency;
    round_.seconds_per_byte += hop.seconds_per_byte;
    second_ = std::max(second_, std::min(slowest_, hop.seconds_per_byte));
    slowest_ = std::max(slowest_, hop.seconds_per_byte);
  }
}

bool RingTime::is_of(std::span<const Hop> hops) const {
  if (hops.size() != hops_->kind.size()) return false;
  for (std::size_t i = 0; i < hops.size(); ++i) {
    if (hops_->kinds[hops_->kind[i]] != hops[i]) return false;
  }
  return true;
}

double RingTime::at(double message_bytes) const {
  if (is_affine()) return latency_ + steps_ * message_bytes * rates_.front();
  double longest = 0;
  for (const double rate : rates_) {
    longest = std::max(longest, steps_ * message_bytes * rate + best_window(message_bytes, rate));
  }
  return longest;
}

double RingTime::period(double message_bytes, double step, double gap, int passes) const {
  const auto n = static_cast<double>(hops_->kind.size()), steps = static_cast<double>(passes * steps_);
  const double round = round_.latency + n * step + message_bytes * round_.seconds_per_byte;
  const double slow = message_bytes * slowest_, other = message_bytes * second_;
  double longest = std::max(steps * slow, gap + steps / n * round);
  if (steps >= n) longest = std::max(longest, gap + round + (steps - n) * slow);
  const double in_two_calls = round + (steps - 1) * slow + std::max(0.0, steps - n + 1) * other;
  const double in_three =
      round + message_bytes * ((steps - 1) * neighbours_ + std::max(0.0, steps - n + 2) * fastest_);
  return std::max({longest, gap + in_two_calls / 2, gap + in_three / 3});
}

std::vector<HopTime> RingTime::hop_times(double message_bytes, double step) const {
  std::vector<HopTime> times;
  for (const std::uint32_t kind : hops_->kind) {
    const Hop& hop = hops_->kinds[kind];
    times.push_back({message_bytes * hop.seconds_per_byte, hop.latency + step});
  }
  return times;
}

/// The largest sum over a window of hops that contains a hop no faster than the rate. Uses prefix sums, and a queue of
/// places at which the window may begin, the one with the least prefix sum first.
double RingTime::best_window(double message_bytes, double seconds_per_byte) const {
  const Hops& hops = *hops_;
  const std::size_t n = hops.kind.size(), steps = static_cast<std::size_t>(steps_);
  const auto prefix = std::make_unique_for_overwrite<double[]>(n + steps);
  const auto queue = std::make_unique_for_overwrite<std::size_t[]>(n);
  prefix[0] = 0;
  std::size_t head = 0, tail = 0, next = 0, k = 0;
  bool found = false;
  double best = 0;
  for (std::size_t end = 1; end < n + steps; ++end, k = k + 1 == n ? 0 : k + 1) {
    const Hop& hop = hops.kinds[hops.kind[k]];
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
