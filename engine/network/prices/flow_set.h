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

#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/link_set.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/link_loads.h"
#include "engine/network/prices/priced_network.h"

namespace shardscape::network {

/// Whether two numbers are equal up to rounding.
inline bool same_number(double a, double b) {
  const double difference = a > b ? a - b : b - a;
  return difference <= 1e-12 * (a > b ? a : b);
}

struct RoutedFlow {
  double latency = 0;  ///< seconds, summed over the path
  double alone = 0;    ///< seconds per byte if no other flow is active
  double shared = 0;   ///< seconds per byte if all flows are active; >= alone
  double weight = 1;   ///< bytes that it sends, relative to other flows
};

/// The link that has the most to carry, relative to its bandwidth.
struct BusiestLink {
  double seconds_per_unit = 0;  ///< seconds per unit of its flows' weights
  /// The least latency of its flows; the largest such value if several links are equally busy.
  double least_latency = 0;
};

/// A set of flows. Its memory is kept between uses: reset() costs as much as there were flows, not as the fabric is
/// large.
class FlowSet {
 public:
  /// `network` must outlive this object; its faults may change between resets.
  explicit FlowSet(PricedNetwork& network);

  void reset();
  /// Whether flows added from now on have the stack's rank step in addition to their links' latency.
  void take_rank_steps(bool take) { rank_steps_ = take; }
  [[nodiscard]] bool takes_rank_steps() const { return rank_steps_; }
  /// Adds a flow. Returns false where dead links leave no route; the set is useless then.
  bool add(std::int32_t source, std::int32_t destination, double weight = 1);
  /// Computes rates; call it once, after the last add().
  void settle();
  /// Resets the set and counts the flows of an exchange, between every two members of a group of which the first has a
  /// part for the second: links, loads and the slowest share are then those of add() for each and settle(), but there
  /// is no single flow. Not where links are dead. O(members x coordinates) where groups are boxes.
  void count_exchange(const SiblingGroups& groups, const Skew& skew);

  [[nodiscard]] std::size_t size() const { return flows_.size(); }
  [[nodiscard]] const RoutedFlow& flow(std::size_t i) const { return flows_[i]; }
  [[nodiscard]] std::span<const std::int32_t> path(std::size_t i) const {
    return std::span(links_).subspan(begin_[i], begin_[i + 1] - begin_[i]);
  }
  /// Whether all flows have the same latency, share and weight.
  [[nodiscard]] bool uniform() const { return uniform_; }
  /// Whether no flow shares the link that limits it.
  [[nodiscard]] bool uncontended() const { return uncontended_; }
  /// The largest `shared` of all flows.
  [[nodiscard]] double slowest() const { return slowest_; }
  [[nodiscard]] bool rigid(std::size_t i);
  /// Finds the busiest link; only for flows that are not uniform. O(links of all paths).
  [[nodiscard]] BusiestLink busiest();
  void collect_links(LinkSet& set) const;
  /// Loads of links if all flows go at the pace of the slowest; the flows must be settled.
  [[nodiscard]] LinkLoads loads() const;

 private:
  PricedNetwork& network_;
  std::vector<RoutedFlow> flows_;
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> links_;
  /// A link that flows use.
  struct Use {
    double load = 0;   ///< number of flows on it
    double share = 0;  ///< seconds per byte if all of them are active; 0: not known yet
  };
  /// About the flows on one link.
  struct OnLink {
    double slowest = 0;  ///< largest `shared` of its flows
    double weight = 0;   ///< sum of its flows' weights
    double least_weight = 0, least_latency = 0;
  };
  [[nodiscard]] std::size_t place(std::int32_t link) const {
    return static_cast<std::size_t>(place_[static_cast<std::size_t>(link)]);
  }
  Use& use_of(std::int32_t link);
  void look_at_links();

  std::vector<std::int32_t> place_;  ///< index: link; its place in uses_ and on_link_; -1: no flow uses it
  std::vector<Use> uses_;
  std::vector<OnLink> on_link_;    ///< empty until it is asked for
  std::vector<std::int32_t> leg_;  ///< scratch memory
  bool uniform_ = true, uncontended_ = true;
  bool rank_steps_ = false;
  double slowest_ = 0;
};

}  // namespace shardscape::network
