// Flows that may be on the network at the same time: their routes, and what they leave of each other.
//
// Under max-min fairness a flow is never slower than the fair share of its most loaded link, whatever the
// other flows do and whenever they start: with n(l) flows that ever use link l and its bandwidth b(l),
//
//     1 / rate  <=  shared  =  max over links l of the path of  n(l) / b(l)
//     1 / rate  >=  alone   =  max over links l of the path of  1 / b(l)
//
// The first holds because the flow's bottleneck link is saturated, and no flow there is faster than it.
//
// A flow is rigid when one of its links has n(l)/b(l) = shared for it and no flow on that link has a slower
// share: while all flows of that link are active, they all run at exactly 1/shared. Where flows send unequal bytes
// (weights), those of that link must not have less to send than it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/network/link_loads.h"
#include "engine/network/link_set.h"
#include "engine/network/priced_network.h"

namespace shardscape::network {

/// Equal up to rounding.
inline bool same_number(double a, double b) {
  const double difference = a > b ? a - b : b - a;
  return difference <= 1e-12 * (a > b ? a : b);
}

struct RoutedFlow {
  double latency = 0;  ///< seconds, the sum over the path
  double alone = 0;    ///< seconds per byte without the others
  double shared = 0;   ///< seconds per byte with all of them; >= alone
  double weight = 1;   ///< bytes that it sends, in some unit
};

/// The link that has most to carry for its bandwidth.
struct BusiestLink {
  double seconds_per_unit = 0;  ///< of the weights of its flows
  double least_latency = 0;     ///< of its flows; of the largest such where several links are as busy
};

/// The scratch is kept between uses: reset() costs what the flows did, not the fabric.
class FlowSet {
 public:
  /// `network` outlives this object; its faults may change between resets.
  explicit FlowSet(PricedNetwork& network);

  void reset();
  /// Whether flows that are added take the stack's rank step beside their links' latency.
  void take_rank_steps(bool take) { rank_steps_ = take; }
  [[nodiscard]] bool takes_rank_steps() const { return rank_steps_; }
  /// False where dead links leave no way; the set is worthless then.
  bool add(std::int32_t source, std::int32_t destination, double weight = 1);
  /// Call once after the last add().
  void settle();

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] const RoutedFlow& flow(std::size_t i) const { return flows_[i]; }
  [[nodiscard]] std::span<const std::int32_t> path(std::size_t i) const {
    return std::span(links_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// All flows have the latency, the share and the weight of the first.
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// No flow shares the link that limits it.
  [[nodiscard]] bool uncontended() const { return uncontended_; }
  /// Largest shared.
  [[nodiscard]] double slowest() const { return slowest_; }
  [[nodiscard]] bool rigid(std::size_t i) const;
  /// Not where they are uniform. O(links of all paths).
  [[nodiscard]] BusiestLink busiest() const;
  void collect_links(LinkSet& set) const;
  /// Of settled flows that go at the pace of the slowest.
  [[nodiscard]] LinkLoads loads() const;

 private:
  PricedNetwork& network_;
  std::vector<RoutedFlow> flows_;
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> links_;
  /// A link that flows use.
  struct Use {
    double load = 0;   ///< flows on it
    double share = 0;  ///< seconds per byte with all of them; 0: not known yet
  };
  /// Of the flows on each link, where they are not uniform.
  struct OnLink {
    double slowest = 0;  ///< largest `shared`
    double weight = 0;   ///< of all
    double least_weight = 0, least_latency = 0;
  };
  [[nodiscard]] std::size_t place(std::int32_t link) const {
    return static_cast<std::size_t>(place_[static_cast<std::size_t>(link)]);
  }

  std::vector<std::int32_t> place_;  ///< by link: its index in uses_ and on_link_; -1: no flow uses it
  std::vector<Use> uses_;
  std::vector<OnLink> on_link_;
  bool uniform_ = true, uncontended_ = true;
  bool rank_steps_ = false;
  double slowest_ = 0;
};

}  // namespace shardscape::network
