// Max-min fair rates, kept up to date while flows come and go.
//
// A flow's certificate is a saturated link on its path, its bottleneck, on which no flow is faster. When the
// set of flows changes, the solver collects the flows that have lost theirs (those bottlenecked on a touched
// link, and the new ones), fills their rates with all others held, and adds every held flow that this leaves
// without a certificate, until none is left. The allocation with all certificates is unique, so this is the
// solution of the whole.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/network/collectives/traffic.h"

namespace shardscape::network {

class MaxMinSolver {
 public:
  /// Forgets everything; no flow is active. The spans must outlive the use.
  void reset(const Traffic& traffic, std::span<const double> capacity);

  /// Changes the path of a flow that is not active.
  void reroute(std::int32_t id, std::span<const std::int32_t> path);
  void start(std::int32_t id);
  void stop(std::int32_t id);
  [[nodiscard]] double rate(std::int32_t id) const { return flow(id).rate; }

  /// Brings all rates up to date. Calls changed(flow) for each flow whose rate differs from before, while
  /// rate() already gives the new one; `old` is the rate before.
  template <class Changed>
  void solve(Changed changed) {
    collect();
    for (const std::int32_t flow : lone_) changed(flow, 0.0);
    if (!affected_.empty()) {
      settle();
      for (std::size_t i = 0; i < affected_.size(); ++i) {
        double& rate = flow(affected_[i]).rate;
        const double old = old_rate_[i];
        const double difference = rate > old ? rate - old : old - rate;
        if (difference > kSame * old || old == 0) {
          changed(affected_[i], old);
        } else {
          rate = old;
        }
      }
    }
    finish();
  }

  /// Whether, since reset(), unequal rates have been added up on a link: in another order the sum would differ in its
  /// last bits.
  [[nodiscard]] bool order_shows() const { return order_shows_; }

  /// Number of path links that memory is held for, including paths that flows no longer have. For tests.
  [[nodiscard]] std::size_t path_room() const { return slots_.size(); }

 private:
  static constexpr double kSame = 1e-13;
  static constexpr double kFair = 1e-11;  ///< rates that differ by less, relative, count as equal

  /// The members of a flow that its events touch, kept together.
  struct FlowState {
    double rate = 0;
    std::int32_t bottleneck = -1;
    std::int32_t path_begin = 0, path_end = 0;  ///< range of its path in slots_
    /// Marks of the solve and of the filling that last affected, or froze, the flow.
    std::uint32_t affected = 0, frozen = 0;
    bool active = false;
  };
  struct alignas(64) LinkState {
    double capacity = 0;
    double left = 0;  ///< capacity that the current filling has not given away yet
    double top = 0;   ///< rate of the fastest affected flow on it
    /// Rate at which affected flows are bottlenecked here; negative: it is no bottleneck.
    double level = 0;
    std::int32_t begin = 0;     ///< first of its entries
    std::int32_t size = 0;      ///< number of flows on it
    std::int32_t room = 0;      ///< number of entries there is room for
    std::int32_t open = 0;      ///< number of affected flows without a rate
    std::int32_t affected = 0;  ///< number of affected flows on it
    std::uint32_t mark = 0;     ///< filling in which it was last added to links_
    std::uint32_t touched = 0;
  };
  /// A link of a flow's path, and the place of the flow among the link's entries.
  struct Slot {
    std::int32_t link = 0, entry = 0;
  };
  /// A flow on a link, and the slot of its path that names the link.
  struct Entry {
    std::int32_t flow = 0, slot = 0;
  };

  [[nodiscard]] FlowState& flow(std::int32_t id) { return flows_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] LinkState& link(std::int32_t id) { return state_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] const FlowState& flow(std::int32_t id) const { return flows_[static_cast<std::size_t>(id)]; }
  [[nodiscard]] std::span<const Slot> path(const FlowState& f) const {
    return std::span(slots_).subspan(static_cast<std::size_t>(f.path_begin),
                                     static_cast<std::size_t>(f.path_end - f.path_begin));
  }
  [[nodiscard]] std::span<const Entry> entries(const LinkState& l) const {
    return std::span(entries_).subspan(static_cast<std::size_t>(l.begin), static_cast<std::size_t>(l.size));
  }

  void make_room(LinkState& link);
  void touch(std::int32_t id);
  void take_held(LinkState& link);
  void collect();
  void settle();
  void gather_links();
  void fill();
  bool recruit();
  void finish();
  void affect(std::int32_t id, FlowState& flow);
  void freeze(std::int32_t id, LinkState& link, double level);

  std::vector<FlowState> flows_;
  std::vector<LinkState> state_;  ///< index: link
  /// Links of paths, as in Traffic::path_links, with longer paths of rerouted flows at the end.
  std::vector<Slot> slots_;
  std::vector<Entry> entries_;  ///< the entries of a link lie together
  /// Index: flow; slots it has from path_begin on; empty where no flow was rerouted.
  std::vector<std::int32_t> path_room_;
  // Links and flows that have changed since the last solve.
  std::vector<std::int32_t> touched_, started_;
  // Working memory of the current solve.
  std::vector<std::int32_t> lone_, affected_, links_, live_;
  std::vector<double> old_rate_;
  std::size_t gathered_ = 0;
  std::uint32_t epoch_ = 1, filling_ = 1;
  bool order_shows_ = false;
};

}  // namespace shardscape::network
