// Exchanges of experts: who gets how much of them, how many copies of a token they put on the network, and what their
// kernels take.
//
// expert_dispatch and expert_combine send tokens to the ranks of their experts by kernels of their own (TokenExchange).
// They put a copy of a token on the network for each rank of an NVLink domain that has one of its experts or, where
// groups span several domains, for each domain, and take
//
//     call + the closed form of expert_dispatch.h + (T now - T healthy),   at least call + rank_step + T
//
// with T that of an all-to-all of these copies. A device without constants takes the latter, and so does a stack whose
// kernels keep up with the links (TokenExchange::closed_form). In groups that span several domains the copies are
// forwarded within each domain; where constants between nodes are missing, that takes what the kernels take inside one
// node, beside T.
//
// Where members get unequal shares s of the choices (CollectiveSetup::expert_shares), a copy goes to each with the
// chance 1 - (1 - s)^top_k, those of a domain that others reach over the network in equal parts of the domain's; the
// closed form is that of a call in which every rank has as many as the busiest.
//
// low_latency_dispatch and low_latency_combine likewise, but that they put a copy on the network for each expert of a
// token, and that without constants between nodes they take what an all-to-all of these copies takes.
//
// dispatch and combine are an all-to-all of the library in the shares of the members; inside a node they take the
// closed form of one as large as the busiest rank's share makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/network/collectives/patterns.h"
#include "engine/network/groups/sibling_groups.h"
#include "engine/network/prices/collective_setup.h"
#include "engine/spec/token_copies.h"

namespace shardscape::network {

/// Answers for one setup, which must outlive it. Pure.
class ExpertTraffic {
 public:
  explicit ExpertTraffic(const CollectiveSetup& setup) : setup_(setup) {}

  /// The parts in which an operation splits its bytes among the members of a group, who divide the experts. No shares
  /// where they are equal.
  [[nodiscard]] Skew skew_of(CollectiveOp op, const RankGroup& group) const;
  [[nodiscard]] Skew skew_of(CollectiveOp op, const SiblingGroups& groups) const;

  /// The members of a group of experts with unequal loads, as senders of a combine.
  struct Senders {
    std::vector<double> loads;  ///< of their work, over the busiest member's; empty where they are equal
    std::vector<double> parts;  ///< of what all of them send
    std::vector<std::int64_t> domains;  ///< whose links they send over
  };
  [[nodiscard]] Senders senders_of(CollectiveOp op, const SiblingGroups& groups) const;

  /// How far the messages of an exchange go; operations that are none have the defaults.
  struct Reach {
    double domains = 1;     ///< NVLink domains that a group spans
    double wire_share = 1;  ///< share of the operation's bytes that go over the network
  };
  [[nodiscard]] Reach reach_of(CollectiveOp op, const SiblingGroups& groups) const;

  /// The closed form of the exchange's kernels in groups of so many members, without the call; empty where the device
  /// or the stack has none. `bytes` as the network counts them: those of the busiest member.
  [[nodiscard]] std::optional<Seconds> kernel_time(CollectiveOp op, double members, const Reach& reach,
                                                   double bytes) const;

 private:
  /// The targets of tokens among `members` members with equal shares in one domain.
  [[nodiscard]] TokenTargets token_targets(double members) const;
  [[nodiscard]] Skew skew_of(CollectiveOp op, std::size_t members) const;
  [[nodiscard]] std::vector<double> member_shares(std::size_t members) const;
  [[nodiscard]] std::vector<double> copy_chances(const SiblingGroups& groups) const;

  const CollectiveSetup& setup_;
};

/// What the busiest member of a group with unequal loads waits for around its work, in seconds.
struct BusiestExchange {
  double dispatch = 0, combine = 0;  ///< that their links are busy for if all members begin together
  double work = 0;                   ///< in between
  double alone = 0;                  ///< of the combine, if only the busiest members send
  double ratio = 1;                  ///< of the bytes of a combine to those of the dispatch
};
/// Seconds by which the dispatch to the busiest member takes longer, since the combines of others, who have fewer tokens
/// and are through with them, come over the same links. Flows there share them evenly. O(n^2) in members.
double crowded_dispatch(const ExpertTraffic::Senders& senders, const BusiestExchange& of);
/// Seconds from the end of the busiest member's work to that of the combine.
double last_to_end(const ExpertTraffic::Senders& senders, const BusiestExchange& of);

}  // namespace shardscape::network
