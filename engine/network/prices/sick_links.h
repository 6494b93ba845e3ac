// A set of faults of links, and what operations take on the network that has them.
//
// Curves of operations that sick links touch are made anew on the sick network; they are remembered for each set of
// faults, up to kMostSickCurves, and so are the latest prices. An operation that no sick link carries is not asked
// about here.
//
// A soft fault leaves every route as it is, so the groups still fall into the same parts, which share no links with
// each other, and the operation takes as long as its slowest part. With T the healthy time of all parts, t(p) that of
// part p and t'(p) with the faults, t'(p) >= t(p) for the touched ones makes the time max(T, max over touched p of
// t'(p)): only the touched parts are priced again. Where sharing makes some part faster (links that others leave to
// it), all is priced anew.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/memo.h"
#include "engine/network/groups/slices.h"
#include "engine/network/prices/healthy_costs.h"
#include "engine/spec/fault.h"

namespace shardscape::network {

/// The most curves under faults that are kept; some hundred bytes each.
constexpr std::size_t kMostSickCurves = 1 << 16;

// Keys of what is remembered; `way` is KnownWay::number.

struct SickPriceKey {
  std::uint64_t faults = 0;  ///< SickLinks::epoch()
  std::uint32_t way = 0;
  double bytes = 0;
  friend bool operator==(const SickPriceKey&, const SickPriceKey&) = default;
};
struct SlicesKey {
  std::uint32_t way = 0;
  RankGroup::Level axis;
  friend bool operator==(const SlicesKey&, const SlicesKey&) = default;
};
/// The price of one of the parts into which an operation falls, or of all of it, on healthy links.
struct HealthyPartKey {
  std::uint32_t way = 0;
  std::int32_t part = -1;  ///< -1: all of it
  double bytes = 0;
  friend bool operator==(const HealthyPartKey&, const HealthyPartKey&) = default;
};

/// Prices operations under the current faults of links, and remembers earlier ones. One object per thread.
class SickLinks {
 public:
  /// `healthy` must outlive this object.
  explicit SickLinks(const HealthyCosts& healthy) : healthy_(healthy) {}

  /// Replaces the faults. Throws nothing; ids must exist.
  void set_faults(const std::vector<LinkFault>& faults);
  [[nodiscard]] bool any() const { return now_ != nullptr; }
  /// A number above 0 that stands for the current faults: what has the same number are equal faults. 0: there are none.
  [[nodiscard]] std::uint64_t epoch() const { return any() ? now_->epoch : 0; }
  /// Whether any of the links is sick.
  [[nodiscard]] bool touch(const LinkSet& links) const;
  /// Whether links are gone, so that what they carry takes other routes; whether links of this set are.
  [[nodiscard]] bool detours() const;
  [[nodiscard]] bool detours(const LinkSet& links) const;

  /// Whether faults slow the groups of the slice.
  [[nodiscard]] bool slow(const OperationCosts& costs, KnownWay& way, const Slice& slice);
  /// Seconds of a call on the links, which slow it; infinite where dead links cut it.
  [[nodiscard]] double seconds(const OperationCosts& costs, KnownWay& way, double bytes);
  /// A link on which bytes take so many times as long as without the faults, 1 where these make its latency longer.
  struct SlowLink {
    std::int32_t link = 0;
    double times = 1;
  };
  /// In ascending order of links; none of those that are gone.
  [[nodiscard]] const std::vector<SlowLink>& slow_links();
  /// The loads of an operation on sick links alone, where it takes so many seconds on its links `now` and `healthy`
  /// without the faults.
  [[nodiscard]] LinkLoads loads(const LinkLoads& healthy_loads, double healthy, double now);
  using InRow = CostCurve::InRow;
  /// Seconds by which such a call follows an equal one sooner than seconds() says, as members behind sick links are
  /// late and the others ahead of them. seconds() must have been asked before.
  [[nodiscard]] double saved_in_row(const OperationCosts& costs, KnownWay& way, double bytes,
                                    const InRow& row);
  /// Whether members of exchanges over these links are ahead of others because of the faults: see share_of_added().
  [[nodiscard]] bool some_get_ahead(const LinkSet& links) const { return share_of_added(links) < 1; }
  /// The links whose soft faults would slow the slice.
  [[nodiscard]] const LinkSet& links_minded(const OperationCosts& costs, KnownWay& way, const Slice& slice);

  /// Notes that dead links cut such a group, unless one has been noted since the faults were set.
  void cut(const RankGroup& group) {
    if (!cut_) cut_ = group;
  }
  [[nodiscard]] bool unreachable() const { return cut_.has_value(); }
  /// The pair of ranks and the dead links; for unreachable() only.
  [[nodiscard]] std::string describe_unreachable();

 private:
  /// Sibling groups that share links with each other but with no other group, so that faults on one part leave the
  /// times of the others unchanged.
  struct Part {
    SiblingGroups groups;
    CostCurve healthy;
  };
  struct Parts {
    std::vector<Part> parts;                 ///< at least two parts; empty where the groups are not split
    std::vector<std::int32_t> part_of_link;  ///< index: link; -1: it carries nothing
  };
  /// Number of a part that faults touch, and its curve under them.
  using TouchedParts = std::vector<std::pair<std::int32_t, CostCurve>>;

  struct SickRowKey {
    std::uint64_t faults = 0;  ///< epoch()
    std::uint32_t way = 0;
    double bytes = 0, step = 0;
    Gaps gaps;
    friend bool operator==(const SickRowKey&, const SickRowKey&) = default;
  };
  /// All that has been computed under one set of faults.
  struct Known {
    std::uint64_t epoch = 0;
    Memo<std::uint32_t, CostCurve> curves;  ///< key: KnownWay::number
    Memo<std::uint32_t, TouchedParts> touched;
    Memo<SlicesKey, SliceLinks> slices;  ///< links of slices where dead links make detours
    std::vector<SlowLink> slow;          ///< filled when first asked for
  };

  PricedNetwork& network();
  CurveMaker& maker();
  [[nodiscard]] double at(CostCurve& curve, double bytes);
  [[nodiscard]] CostCurve& sick_curve(const OperationCosts& costs, const KnownWay& way);
  /// Whether a link is gone: all of it, not one strand of several.
  [[nodiscard]] bool gone(const LinkFault& fault) const;
  /// Whether messages of the operation take other routes.
  [[nodiscard]] bool detours(const OperationCosts& costs, KnownWay& way) const;
  [[nodiscard]] SliceLinks slice_links(const OperationCosts& costs, KnownWay& way, RankGroup::Level axis);
  [[nodiscard]] SliceLinks slice_links_plainly(const OperationCosts& costs, const KnownWay& way,
                                               RankGroup::Level axis);
  [[nodiscard]] Parts split(const OperationCosts& costs, const KnownWay& way) const;
  [[nodiscard]] TouchedParts touched_parts(const OperationCosts& costs, const KnownWay& way,
                                           const Parts& all);
  [[nodiscard]] double healthy_part(const HealthyPartKey& key, CostCurve& curve);
  [[nodiscard]] double share_of_added(const LinkSet& links) const;
  [[nodiscard]] double saved_on(const CostCurve& curve, const OperationCosts& costs, const KnownWay& way,
                                double bytes, const InRow& row) const;
  [[nodiscard]] double find_saved(const OperationCosts& costs, KnownWay& way, double bytes, const InRow& row);
  [[nodiscard]] std::optional<double> part_by_part(const OperationCosts& costs, KnownWay& way, double bytes);

  const HealthyCosts& healthy_;
  std::vector<LinkFault> faults_;
  std::optional<RankGroup> cut_;
  std::unique_ptr<PricedNetwork> network_;  ///< made with the first fault
  std::unique_ptr<CurveMaker> maker_;
  std::uint64_t network_epoch_ = 0;  ///< epoch of the faults that network_ has
  Memo<std::vector<LinkFault>, Known> known_;
  Known* now_ = nullptr;  ///< the entry of the current faults; null: there are none
  std::uint64_t epochs_ = 0;
  std::size_t curves_ = 0;  ///< number of sets of faults and curves in known_
  // Room for the draws of faults for one choice of degrees; some megabytes.
  SlotMemo<SickPriceKey, double, 1 << 16> prices_;
  SlotMemo<SickRowKey, double, 1 << 14> saved_;
  // The links of slices on the healthy network.
  Memo<SlicesKey, SliceLinks> slices_;
  Memo<std::uint32_t, Parts> parts_;  ///< key: KnownWay::number
  Memo<HealthyPartKey, double> simulated_;
};

}  // namespace shardscape::network
