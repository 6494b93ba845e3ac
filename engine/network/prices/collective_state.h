// What a CollectiveModel remembers. Only for its own files.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/network/prices/collective_model.h"

namespace shardscape::network {

struct CollectiveModel::Candidate {
  /// Sibling groups that share links with each other but with no other group, so that faults on one part leave the
  /// times of the others unchanged.
  struct Part {
    SiblingGroups groups;
    CostCurve healthy;
    /// Key: bytes; times of `healthy` that were simulated.
    std::unordered_map<std::uint64_t, double> simulated;
  };
  /// Index of a part, and its curve under faults.
  using SickParts = std::vector<std::pair<std::size_t, CostCurve>>;

  CollectiveChoice choice;
  Skew skew;
  double copied = 0;  ///< bytes that a rank copies per byte of the operation
  double steps = 1;
  double far_steps = 0;  ///< how many of the steps cross the scale-out network
  bool shorter = false;  ///< the same ring as the candidate before it, in an order that crosses fewer links
  CostCurve healthy;
  /// The links that carry it on healthy wires, all siblings at once; filled when first asked for.
  std::optional<LinkSet> all_links;
  std::array<std::optional<LinkLoads>, kLookedAt> loads;  ///< index: Looked; filled when first asked for
  std::unordered_map<std::uint64_t, CostCurve> sick;      ///< key: epoch of faults that touch it

  // The next members are made with the first soft fault.
  bool is_split = false;
  std::vector<Part> parts;                 ///< several parts, or none at all
  std::vector<std::int32_t> part_of_link;  ///< index: link; -1: it carries nothing
  /// Key: bytes; times of `healthy` that were simulated.
  std::unordered_map<std::uint64_t, double> simulated;
  std::unordered_map<std::uint64_t, SickParts> sick_parts;  ///< key: epoch of faults

  void split(CollectiveModel& model, const OpCosts& costs);
  SickParts& touched_parts(CollectiveModel& model, const OpCosts& costs);
  std::optional<double> part_by_part(CollectiveModel& model, const OpCosts& costs, double bytes);

  /// Key: axis of the slices, and the epoch of the faults where dead links make detours (else 0).
  std::map<std::pair<RankGroup::Level, std::uint64_t>, SliceLinks> slices;
  std::map<RankGroup::Level, CostCurve> within;  ///< key: axis; the curve where only the first slice sends
};

struct CollectiveModel::Priced {
  std::size_t chosen = 0;
  double healthy = 0;  ///< network time on healthy links, seconds
  /// Network time under faults that touch it; key: their epoch.
  std::unordered_map<std::uint64_t, double> sick;
};

struct CollectiveModel::OpCosts {
  CollectiveOp op = CollectiveOp::all_reduce;
  RankGroup group;
  /// >= 0: only between the member of each group with this number and the next one.
  std::int32_t boundary = -1;
  std::vector<Candidate> candidates;  ///< empty: not analysed yet
  bool affine = false;                ///< whether the healthy curves of all candidates are affine
  /// Bandwidth of a rank's link if the protocols of a node price the operation; else 0. There is one candidate then,
  /// `direct`.
  BytesPerSecond node_link;
  /// A closed form may apply: that of a node's protocols, or of an exchange of experts.
  bool closed = false;
  double domains = 1;     ///< for exchanges of experts: NVLink domains that a group spans
  double wire_share = 1;  ///< share of the operation's bytes that go over the network
  double busiest = 1;     ///< bytes of the busiest member over those of a mean one
  std::unordered_map<std::uint64_t, Priced> by_bytes;
};

struct CollectiveModel::GroupCosts {
  std::array<OpCosts, kCollectiveOps> ops;
  std::vector<OpCosts> boundaries;  ///< index: boundary in the group's chain; the last one closes the chain
  std::vector<std::size_t>
      same_boundary;      ///< index: boundary; the first boundary that costs the same on a healthy fabric
  std::size_t alike = 0;  ///< number of boundaries, from the first on, that cost the same
  template <class Visit>
  void for_each(Visit visit) {
    for (OpCosts& op : ops) visit(op);
    for (OpCosts& boundary : boundaries) visit(boundary);
  }
};

}  // namespace shardscape::network
