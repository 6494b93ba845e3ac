// How two operations that send at once share the links that both use.
//
// An operation alone sends at the pace that its busiest link allows, all of its flows alike. On link l it has n(l)
// flows then and uses the share u(l) of the bandwidth: 1 on its busiest link, less elsewhere. Of two operations a and
// b, flows share a link max-min fairly (Bertsekas and Gallager, "Data Networks", section 6.5.2), none faster than its
// operation's own pace:
//
//   u_a + u_b <= 1                  neither is slowed
//   u_a <= n_a / (n_a + n_b)        a keeps its pace, b gets 1 - u_a; the other way round likewise
//   else                            a gets n_a / (n_a + n_b), b the rest
//
// Each operation goes at the pace of its slowest flow. Stages of an operation, such as those along a fabric's
// dimensions, use links one after the other: operation a uses l for the share t_a(l) of its time alone, and u and n are
// those of this time. Let a and b keep the paces p_a and p_b while both use l, and let the stages of b outlast whole
// operations a, as those of large traffic do beside calls. While b is on l, a takes w = 1 - t_a + t_a / p_a times as
// long and is there for the share s = t_a / (p_a w) of the time. So b takes y = 1 / (1 - s (1 - p_b)) times as long
// there, and in all keeps the pace 1 / (1 - t_b + t_b y); for t_b y of that time a keeps 1 / w of its pace, else all of
// it. What b costs a depends on how long b has to be on l, whatever b does elsewhere.
//
// Left out: that members wait for each other at other times than alone, what a third operation takes, and that stages
// on several links may each be slowed: the slowest link counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/base/quantity.h"

namespace shardscape::network {

/// The load of a link, or of each of several links whose numbers follow each other.
struct LinkLoad {
  std::int32_t link = 0;
  double flows = 1;
  double use = 1;          ///< share of the bandwidth, 0..1, in the mean over the operation's time
  double active = 1;       ///< share of that time for which the link is in use, 0..1
  std::int32_t links = 1;  ///< how many links
  [[nodiscard]] std::int32_t end() const { return link + links; }
  friend bool operator==(const LinkLoad&, const LinkLoad&) = default;
};
/// Loads in ascending order of links, at most one for each.
using LinkLoads = std::vector<LinkLoad>;
/// The load of a link, or null.
const LinkLoad* load_of(const LinkLoads& loads, std::int32_t link);

/// The share of its own pace that each of two operations keeps while both send.
struct KeptPaces {
  double one = 1, other = 1;
  bool meet = false;  ///< whether they use a common link
  friend bool operator==(const KeptPaces&, const KeptPaces&) = default;
};
/// `one`: a call, made again and again beside `other`, whose stages outlast it.
KeptPaces kept_paces(const LinkLoads& one, const LinkLoads& other);
/// For loads in any order, several per link: the least paces if every load of one meets every load of the other there.
KeptPaces least_paces(const LinkLoads& one, const LinkLoads& other);
/// Keeps only the heaviest load of each link; the loads may be in any order.
LinkLoads heaviest_by_link(LinkLoads loads);

/// How much of each link some operations take, in the given order of operations.
class LinkUses {
 public:
  LinkUses() = default;
  explicit LinkUses(std::span<const LinkLoads* const> operations);
  /// How long the busiest link is busy if operation i sends for sending[i] >= 0 seconds.
  [[nodiscard]] Seconds busiest(std::span<const Seconds> sending) const;

 private:
  std::size_t operations_ = 0;
  std::vector<double>
      /// Link after link, one value per operation; without links that another link outdoes in every use.
      uses_;
};

struct StageLoads {
  double seconds = 0;  ///< duration of the stage
  std::shared_ptr<const LinkLoads> loads;
};
/// The mean loads over the time of all stages.
LinkLoads mean_loads(std::span<const StageLoads> stages);

}  // namespace shardscape::network
