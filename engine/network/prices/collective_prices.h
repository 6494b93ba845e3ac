// What operations of groups take on a machine with sick links and sick memory: a view of the healthy costs.
//
//     time = that of healthy_costs.h with T on the links as they are now; where a closed form prices the call
//            call + the closed form + (T now - T healthy),    at least call + steps * rank_step + C + T now
//
// Algorithms, ring orders and routes stay those of the healthy machine; dead links make detours. What touches no sick
// link keeps its healthy price. So sick links and throttled memories slow closed forms, and so does other traffic of a
// flattened execution.
//
// In a slice only its groups are waited for: the time is the healthy one unless a sick link carries them or groups that
// contend with them (slices.h).
//
// Of several calls in a row that a sick link slows, only ranks beyond that link are late: the ranks before it have
// entered the next call, and its messages are under way, while the late ones are still in theirs. How much sooner a
// call follows an equal one for that is said by rings (ring_time.h) and, of messages between all pairs, by which links
// are sick (SickLinks::share_of_added()); no call follows sooner than its busiest link is done with the one before.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/network/prices/healthy_costs.h"
#include "engine/network/prices/sick_links.h"

namespace shardscape::network {

class LinkRecorder;

/// Prices under a set of faults, at a share of the memory's rate. Copies are cheap and share the faults and all that is
/// remembered. One per thread.
class CollectivePrices {
 public:
  /// Prices without faults.
  explicit CollectivePrices(CollectiveSetup setup)
      : healthy_(std::make_shared<const HealthyCosts>(std::move(setup))),
        sick_(std::make_shared<SickLinks>(*healthy_)) {}

  [[nodiscard]] const HealthyCosts& healthy() const { return *healthy_; }

  /// From now on, all copies have these faults of links; forgets unreachable(). For devices see with_memory().
  void set_faults(const FaultSet& faults) { sick_->set_faults(faults.links); }
  /// The same view without the faults.
  [[nodiscard]] CollectivePrices without_faults() const;
  /// The same view where the slowest rank of every group has only this share of its memory's rate, 0 < share <= 1.
  [[nodiscard]] CollectivePrices with_memory(double share) const;

  [[nodiscard]] bool has_faults() const { return !ignores_faults_ && sick_->any(); }
  /// As SickLinks::epoch(); 0 where there are no faults.
  [[nodiscard]] std::uint64_t fault_epoch() const { return has_faults() ? sick_->epoch() : 0; }
  [[nodiscard]] bool touched(const LinkSet& links) const { return has_faults() && sick_->touch(links); }
  /// As SickLinks::detours(); no where there are no faults.
  [[nodiscard]] bool detours() const { return has_faults() && sick_->detours(); }
  [[nodiscard]] bool detours(const LinkSet& links) const { return has_faults() && sick_->detours(links); }

  /// Time of all calls of an operation. 0 for groups of one rank, and where unreachable() becomes true.
  [[nodiscard]] Seconds time(const CollectiveKey& key) const { return priced(key).time; }
  /// Seconds by which faults of links make one call longer; 0 where they don't.
  [[nodiscard]] Seconds added_by_faults(const CollectiveKey& key) const {
    return has_faults() ? priced(key).added : Seconds(0);
  }
  struct Priced {
    Seconds time, added;
  };
  /// Both of these.
  [[nodiscard]] Priced priced(const CollectiveKey& key) const;
  /// The loads that an operation puts on sick links, if it takes `now` on its links, and longer than on healthy ones.
  [[nodiscard]] LinkLoads sick_loads(const CollectiveKey& key, Seconds now) const {
    const Seconds healthy = healthy_->time_on_links(key);
    if (!has_faults() || now <= healthy) return {};
    return sick_->loads(healthy_->loads(key), healthy.value(), now.value());
  }
  /// The sick links that are left.
  [[nodiscard]] const std::vector<SickLinks::SlowLink>& slow_links() const { return sick_->slow_links(); }
  /// Seconds by which a call that sick links slow delays its ranks less than it takes by itself, in a row of equal ones
  /// between which each rank works for so many seconds.
  [[nodiscard]] Seconds saved_in_row(const CollectiveKey& key, const Gaps& between) const;
  /// As time(), of an operation that comes again and again, so that its first call follows another one, too.
  [[nodiscard]] Seconds time_in_row(const CollectiveKey& key) const {
    return time(key) - std::min(1.0, key.calls) * saved_in_row(key, {0.0});
  }

  /// Whether sick links put members of an exchange ahead of others; not where all of them slow the same one both ways.
  /// Beyond a domain the links of a rank carry what others send through it, too.
  [[nodiscard]] bool some_get_ahead(const CollectiveKey& exchange) const {
    return has_faults() && (healthy_->operation(exchange.op, exchange.group).reach.domains > 1 ||
                            sick_->some_get_ahead(healthy_->links(exchange)));
  }

  /// As HealthyCosts::time_of_call() and time_within_slice(), at this view's share of the memory's rate.
  [[nodiscard]] Seconds time_without_faults(const CollectiveKey& key) const {
    const HealthyCosts::CallTime time = healthy_->time_of_call(key, memory_share_);
    return time.at_ranks + time.on_links;
  }
  [[nodiscard]] Seconds time_at_ranks(const CollectiveKey& key) const {
    return healthy_->time_of_call(key, memory_share_).at_ranks;
  }
  [[nodiscard]] HealthyCosts::WithinSlice time_within_slice(const CollectiveKey& key) const {
    return healthy_->time_within_slice(key, memory_share_);
  }

  /// By how much a combine behind a dispatch, by the library or by kernels, ends sooner than if all members began it
  /// together, where their loads are unequal and so is their work in between: `work` for the busiest, in proportion to
  /// their loads for the others, which begin the combine before it. Members of a domain send over the same links, which
  /// are done with what is sent from some moment on no sooner than that takes: of these bounds the longest stands, but
  /// no less than what the busiest members take alone.
  [[nodiscard]] Seconds sooner_by_loads(const CollectiveKey& dispatch, const CollectiveKey& combine,
                                        Seconds work) const;
  /// By how much what the others send early makes the dispatch to the busiest longer, if it meets all of it. How early
  /// they are depends on when each of them has left the exchange before.
  [[nodiscard]] Seconds crowded_by_loads(const CollectiveKey& dispatch, const CollectiveKey& combine,
                                         Seconds work) const;
  /// Time of a combine by kernels, in which members send equally much, behind work that lasts `lead` seconds longer on
  /// one of them than with balanced loads: by then the share `gone` of the others has sent, as far as that takes no
  /// longer. What the late one sends alone is left, and what kernels take beyond links.
  [[nodiscard]] Seconds late_exchange(const CollectiveKey& combine, Seconds lead, double gone) const;

  /// Time of one message over each boundary of the groups' chains: entry b is for every b-th member and the
  /// next one, in all groups at once; the last entry for the last member and the first, 0 where the chain is not
  /// `closed`, and all that dead links cut. Messages over different boundaries do not meet: the stages of a pipeline
  /// send at different times. `back`: of messages the other way, which count as long on a healthy machine.
  void boundary_times(Bytes bytes, const RankGroup& group, bool closed, std::vector<double>& seconds,
                      std::vector<double>& back) const;

  /// Whether, since the last set_faults(), a time was asked for that dead links make infinite.
  [[nodiscard]] bool unreachable() const { return sick_->unreachable(); }
  [[nodiscard]] std::string describe_unreachable() const { return sick_->describe_unreachable(); }

  /// The recorder that lists the links which prices depend on; null where none is at work.
  [[nodiscard]] LinkRecorder* recorder() const { return recorder_; }

 private:
  friend class LinkRecorder;
  [[nodiscard]] bool unequal_loads(const CollectiveKey& combine) const;
  [[nodiscard]] BusiestExchange busiest_exchange(const CollectiveKey& dispatch, const CollectiveKey& combine,
                                                 Seconds work) const;
  struct OnLinks {
    KnownWay& way;
    double now = 0, healthy = 0;  ///< seconds; `now` is infinite where dead links cut the operation
  };
  [[nodiscard]] double saved_in_row(const OperationCosts& costs, const OnLinks& links, double bytes,
                                    Gaps gaps) const;
  [[nodiscard]] OnLinks on_links(OperationCosts& costs, double bytes, const Slice& slice) const;
  [[nodiscard]] double priced_on(OperationCosts& boundary, Bytes bytes) const;  ///< seconds
  [[nodiscard]] Seconds price(const OperationCosts& costs, const OnLinks& links, double bytes,
                              const Slice& slice) const;

  std::shared_ptr<const HealthyCosts> healthy_;
  std::shared_ptr<SickLinks> sick_;
  bool ignores_faults_ = false;
  double memory_share_ = 1;
  LinkRecorder* recorder_ = nullptr;
};

/// While it lives, lists the links that carry the operations whose times are asked of a view, and of views made from it
/// meanwhile, as their chosen algorithm uses them on a healthy fabric; for an operation in a slice, the links whose
/// soft faults would slow the slice. Not for the plain path.
class LinkRecorder {
 public:
  /// `prices` must outlive this object.
  explicit LinkRecorder(CollectivePrices& prices) : prices_(prices) { prices_.recorder_ = this; }
  ~LinkRecorder() { prices_.recorder_ = nullptr; }
  LinkRecorder(const LinkRecorder&) = delete;
  LinkRecorder& operator=(const LinkRecorder&) = delete;

  void add(const LinkSet& links) {
    all_.insert_all(links);
    part_.insert_all(links);
  }
  [[nodiscard]] const LinkSet& all() const { return all_; }
  /// The links since the last call.
  [[nodiscard]] LinkSet take_part() { return std::exchange(part_, {}); }

 private:
  CollectivePrices& prices_;
  LinkSet all_, part_;
};

}  // namespace shardscape::network
