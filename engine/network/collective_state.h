// What a CollectiveModel remembers; for its own files.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/network/collective_model.h"

namespace shardscape::network {

struct CollectiveModel::Candidate {
  /// Sibling groups that share links with each other and with no other group: what happens to one part leaves
  /// the time of the others as it is.
  struct Part {
    SiblingGroups groups;
    CostCurve healthy;
    std::unordered_map<std::uint64_t, double> simulated;  ///< times of `healthy` by bytes, where simulated
  };
  using SickParts = std::vector<std::pair<std::size_t, CostCurve>>;  ///< index of the part, its curve

  CollectiveChoice choice;
  Skew skew;
  double copied = 0;  ///< bytes per byte of the operation
  double steps = 1;
  double far_steps = 0;  ///< those of the steps that cross the scale-out network
  bool shorter = false;  ///< the same ring as the candidate before it, in an order that crosses fewer links
  CostCurve healthy;
  /// That carry it on healthy links, all siblings at once, where asked for.
  std::optional<LinkSet> all_links;
  std::array<std::optional<LinkLoads>, kLookedAt> loads;  ///< likewise, by Looked
  std::unordered_map<std::uint64_t, CostCurve> sick;      ///< where faults touch it, by their epoch

  // Made with the first soft fault.
  bool is_split = false;
  std::vector<Part> parts;                                  ///< several, or none
  std::vector<std::int32_t> part_of_link;                   ///< -1: no traffic
  std::unordered_map<std::uint64_t, double> simulated;      ///< of `healthy`, likewise
  std::unordered_map<std::uint64_t, SickParts> sick_parts;  ///< by epoch

  void split(CollectiveModel& model, const OpCosts& costs);
  SickParts& touched_parts(CollectiveModel& model, const OpCosts& costs);
  std::optional<double> part_by_part(CollectiveModel& model, const OpCosts& costs, double bytes);

  /// By axis of the slices and, where dead links make detours, epoch of the faults (else 0).
  std::map<std::pair<RankGroup::Level, std::uint64_t>, SliceLinks> slices;
  std::map<RankGroup::Level, CostCurve> within;  ///< of the first slice alone, by its axis
};

struct CollectiveModel::Priced {
  std::size_t chosen = 0;
  double healthy = 0;                              ///< seconds of the network
  std::unordered_map<std::uint64_t, double> sick;  ///< likewise where faults touch it, by their epoch
};

struct CollectiveModel::OpCosts {
  CollectiveOp op = CollectiveOp::all_reduce;
  RankGroup group;
  std::int32_t boundary = -1;         ///< >= 0: only between this member of each group and the next
  std::vector<Candidate> candidates;  ///< empty: not analysed yet
  bool affine = false;                ///< all healthy curves are
  /// What a rank's link carries, where the protocols of a node price the operation; else 0. Then there is one
  /// candidate, `direct`.
  BytesPerSecond node_link;
  bool closed = false;    ///< a closed form may hold: of a node's protocols or of an exchange
  double domains = 1;     ///< of exchanges: NVLink domains that a group spans
  double wire_share = 1;  ///< of the operation's bytes that go over the network
  double busiest = 1;     ///< part of the busiest member over that of a mean one
  std::unordered_map<std::uint64_t, Priced> by_bytes;
};

struct CollectiveModel::GroupCosts {
  std::array<OpCosts, kCollectiveOps> ops;
  std::vector<OpCosts> boundaries;  ///< of the group's chain, and the one that closes it
  std::vector<std::size_t>
      same_boundary;      ///< the first that costs the same on a healthy fabric; made with it
  std::size_t alike = 0;  ///< so many of them from the first on cost the same
  template <class Visit>
  void for_each(Visit visit) {
    for (OpCosts& op : ops) visit(op);
    for (OpCosts& boundary : boundaries) visit(boundary);
  }
};

}  // namespace shardscape::network
