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

  void start(std::int32_t flow);
  void stop(std::int32_t flow);
  [[nodiscard]] double rate(std::int32_t flow) const { return rate_[static_cast<std::size_t>(flow)]; }

  /// Brings all rates up to date. Calls changed(flow) for each flow whose rate differs from before, while
  /// rate() already gives the new one; `old` is the rate before.
  template <class Changed>
  void solve(Changed changed) {
    collect();
    for (const std::int32_t flow : lone_) changed(flow, 0.0);
    if (!affected_.empty()) {
      settle();
      for (std::size_t i = 0; i < affected_.size(); ++i) {
        const auto f = static_cast<std::size_t>(affected_[i]);
        const double old = old_rate_[i];
        const double difference = rate_[f] > old ? rate_[f] - old : old - rate_[f];
        if (difference > kSame * old || old == 0) {
          changed(affected_[i], old);
        } else {
          rate_[f] = old;
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

 private:
  static constexpr double kSame = 1e-13;
  static constexpr double kFair = 1e-11;  ///< rates this close, relative, count as equal

  struct LinkState {
    double left = 0;            ///< capacity not yet given away in the current filling
    double top = 0;             ///< fastest affected flow
    double level = 0;           ///< rate at which affected flows are bottlenecked here; negative: none are
    std::int32_t open = 0;      ///< affected flows without a rate
    std::int32_t affected = 0;  ///< affected flows
    std::uint32_t mark = 0;     ///< in links_ of the current filling
    std::uint32_t touched = 0;
  };

  void touch(std::size_t link);
  void take_held(std::size_t link);
  void collect();
  void settle();
  void gather_links();
  void fill();
  bool recruit();
  void finish();
  void affect(std::int32_t flow);
  void freeze(std::size_t link, double level);

  const Traffic* traffic_ = nullptr;
  std::span<const double> capacity_;
  // Per flow.
  std::vector<double> rate_;
  std::vector<std::int32_t> bottleneck_;
  std::vector<std::uint8_t> active_;
  std::vector<std::uint32_t> affected_mark_, frozen_mark_;
  // Flows on each link: [link_begin, link_begin + link_size) of the entries; a slot is an index in
  // traffic.path_links.
  std::vector<std::int32_t> link_begin_, link_size_;
  std::vector<std::int32_t> entry_flow_, entry_slot_, position_;
  std::vector<LinkState> state_;
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
