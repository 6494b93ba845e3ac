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

#include "engine/network/traffic.h"

namespace shardscape::network {

class MaxMinSolver {
 public:
  /// Forgets everything; no flow is active. The spans must outlive the use.
  void reset(const Traffic& traffic, std::span<const double> capacity);

  /// Gives a flow that is not active another path.
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

  /// Since reset() rates of different flows have been added up on a link: in another order the sum is another in its
  /// last bits.
  [[nodiscard]] bool order_shows() const { return order_shows_; }

  /// The largest violation of the certificate over all active flows, relative; 0 where the allocation is
  /// max-min fair. For tests.
  [[nodiscard]] double violation() const;
  /// Links of paths that there is room for, those of paths that flows no longer have included. For tests.
  [[nodiscard]] std::size_t path_room() const { return slots_.size(); }

 private:
  static constexpr double kSame = 1e-13;
  static constexpr double kFair = 1e-11;  ///< rates this close, relative, count as equal

  /// What an event of a flow touches, together.
  struct FlowState {
    double rate = 0;
    std::int32_t bottleneck = -1;
    std::int32_t path_begin = 0, path_end = 0;  ///< slots
    std::uint32_t affected = 0, frozen = 0;     ///< marks
    bool active = false;
  };
  struct alignas(64) LinkState {
    double capacity = 0;
    double left = 0;            ///< capacity not yet given away in the current filling
    double top = 0;             ///< fastest affected flow
    double level = 0;           ///< rate at which affected flows are bottlenecked here; negative: none are
    std::int32_t begin = 0;     ///< of its entries
    std::int32_t size = 0;      ///< flows on it
    std::int32_t room = 0;      ///< for entries
    std::int32_t open = 0;      ///< affected flows without a rate
    std::int32_t affected = 0;  ///< affected flows
    std::uint32_t mark = 0;     ///< in links_ of the current filling
    std::uint32_t touched = 0;
  };
  /// A link of a path, and where among the link's entries the flow stands.
  struct Slot {
    std::int32_t link = 0, entry = 0;
  };
  /// A flow on a link, and by which slot of its path.
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
  std::vector<LinkState> state_;  ///< by link
  std::vector<Slot> slots_;       ///< as Traffic::path_links, with longer paths of rerouted flows behind
  std::vector<Entry> entries_;    ///< those of a link lie together
  std::vector<std::int32_t> path_room_;  ///< by flow, slots from path_begin on; empty where none was rerouted
  // The change since the last solve.
  std::vector<std::int32_t> touched_, started_;
  // The current solve.
  std::vector<std::int32_t> lone_, affected_, links_, live_;
  std::vector<double> old_rate_;
  std::size_t gathered_ = 0;
  std::uint32_t epoch_ = 1, filling_ = 1;
  bool order_shows_ = false;
};

}  // namespace shardscape::network
