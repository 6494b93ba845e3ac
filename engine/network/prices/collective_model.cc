// Prepares the costs of operations: which algorithms are candidates for a group, their steps and copies, and their
// curves; keeps them by group, and prices calls, late combines and boundaries between stages.
#include "engine/network/prices/collective_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/network/collectives/collectives.h"
#include "engine/network/collectives/expert_dispatch.h"
#include "engine/network/groups/channel_rings.h"
#include "engine/network/groups/ring_order.h"
#include "engine/network/placement/placement.h"
#include "engine/network/prices/collective_state.h"
#include "engine/network/prices/curve_store.h"

namespace shardscape::network {

namespace {

constexpr double kMostChunksToChoose = 32;

bool is_pass(CollectiveOp op) { return op == CollectiveOp::ring_pass || op == CollectiveOp::chain_pass; }

bool is_grid(DimensionKind kind) {
  return kind == DimensionKind::ring || kind == DimensionKind::mesh || kind == DimensionKind::torus ||
         kind == DimensionKind::king_mesh || kind == DimensionKind::hypercube;
}

/// What the boxes of all groups have in common.
struct Boxes {
  bool all = true;                    ///< every group is a box
  bool grid = true;                   ///< all boxes have two or more axes, on wires that a ring can follow
  std::vector<std::int32_t> extents;  ///< extents of the box with the most steps
  std::int32_t far_steps = 0;         ///< how many of the steps lie along axes of the scale-out network
};

/// Whether members of some group differ in a coordinate of the scale-out network.
bool crosses_scale_out(const Fabric& fabric, const SiblingGroups& groups) {
  std::int64_t stride = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    const std::int64_t size = dimension.size();
    if (dimension.scope == LinkScope::scale_out) {
      for (std::size_t g = 0; g < groups.shapes(); ++g) {
        const std::span<const std::int32_t> group = groups.group(g);
        const auto coordinate = [&](std::int32_t rank) { return rank / stride % size; };
        const std::int64_t first = coordinate(group.front());
        if (std::ranges::any_of(group, [&](std::int32_t rank) { return coordinate(rank) != first; }))
          return true;
      }
    }
    stride *= size;
  }
  return false;
}

/// The largest number of domains that any group spans.
double most_domains(const Fabric& fabric, const SiblingGroups& groups) {
  std::size_t most = 1;
  for (std::size_t g = 0; g < groups.shapes(); ++g) {
    std::vector<std::int64_t> domains = places_of(fabric, groups.group(g), LinkScope::scale_out);
    std::ranges::sort(domains);
    const auto distinct = std::unique(domains.begin(), domains.end()) - domains.begin();
    most = std::max(most, static_cast<std::size_t>(distinct));
  }
  return static_cast<double>(most);
}

/// The bandwidth of a rank's link if every group lies behind one switch of a node; else 0.
BytesPerSecond link_behind_switch(const Fabric& fabric, const SiblingGroups& groups) {
  BytesPerSecond least(std::numeric_limits<double>::infinity());
  for (std::size_t g = 0; g < groups.shapes(); ++g) {
    GroupBox box;
    if (!split_into_box(fabric, groups.group(g), box) || box.levels.size() != 1) return BytesPerSecond(0);
    const auto index = static_cast<std::size_t>(box.levels.front().dimension);
    const DimensionSpec& dimension = fabric.spec().dimensions[index];
    if (dimension.kind != DimensionKind::switched || dimension.scope != LinkScope::scale_up)
      return BytesPerSecond(0);
    least = std::min(least, dimension.bandwidth);
  }
  return least;
}

Boxes boxes_of(const Fabric& fabric, const SiblingGroups& groups) {
  Boxes result;
  std::int32_t most = -1;
  for (std::size_t g = 0; g < groups.shapes() && result.all; ++g) {
    GroupBox box;
    result.all = split_into_box(fabric, groups.group(g), box);
    if (!result.all) break;
    result.grid = result.grid && box.levels.size() > 1;
    std::vector<std::int32_t> extents;
    std::int32_t steps = 0, far_steps = 0;
    for (const GroupBox::Level& level : box.levels) {
      extents.push_back(static_cast<std::int32_t>(level.positions.size()));
      steps += extents.back() - 1;
      const DimensionSpec& dimension = fabric.spec().dimensions[static_cast<std::size_t>(level.dimension)];
      if (dimension.scope == LinkScope::scale_out) far_steps += extents.back() - 1;
      result.grid = result.grid && is_grid(dimension.kind);
    }
    if (steps > most) {
      result.extents = std::move(extents);
      result.far_steps = far_steps;
    }
    most = std::max(most, steps);
  }
  result.grid = result.grid && result.all;
  return result;
}

bool reduces_in_network(const PricedNetwork& network, const SiblingGroups& groups) {
  const std::vector<DimensionSpec>& dimensions = network.fabric().spec().dimensions;
  if (std::ranges::none_of(dimensions, &DimensionSpec::in_network_reduction)) return false;
  SwitchTree tree;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    if (!find_switch_tree(network.routes(), groups.group(g), tree)) return false;
  }
  return true;
}

/// Number of links that the messages of one round of all rings cross, each counted as often as it is crossed.
std::size_t links_crossed(const Fabric& fabric, const SiblingGroups& rings) {
  std::vector<std::int32_t> path;
  for (std::size_t g = 0; g < rings.count(); ++g) {
    const std::span<const std::int32_t> ring = rings.group(g);
    for (std::size_t i = 0; i < ring.size(); ++i)
      fabric.append_route(ring[i], ring[i + 1 == ring.size() ? 0 : i + 1], path);
  }
  return path.size();
}

std::vector<PointToPoint> sends_of(CollectiveOp op, const SiblingGroups& groups) {
  std::vector<PointToPoint> sends;
  const std::size_t n = groups.size;
  for (std::size_t g = 0; g < groups.count(); ++g) {
    const std::span<const std::int32_t> group = groups.group(g);
    for (std::size_t i = 0; i < n; ++i) {
      const bool last = i + 1 == n;
      if (op == CollectiveOp::chain_pass && last) break;
      const std::int32_t next = group[last ? 0 : i + 1];
      sends.push_back({group[i], next, 1, 0});
      if (op == CollectiveOp::chain_pass) sends.push_back({next, group[i], 1, 0});
    }
  }
  return sends;
}

/// The groups themselves or, for a boundary between stages, the pairs of members at that boundary.
SiblingGroups between(SiblingGroups groups, std::int32_t boundary) {
  if (boundary < 0) return groups;
  const auto here = static_cast<std::size_t>(boundary);
  return pairs_of(groups, here, (here + 1) % groups.size);
}

}  // namespace

Operation operation_of(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return Operation::all_reduce;
    case CollectiveOp::reduce_scatter:
      return Operation::reduce_scatter;
    case CollectiveOp::all_gather:
      return Operation::all_gather;
    case CollectiveOp::all_to_all:
    case CollectiveOp::expert_dispatch:
    case CollectiveOp::expert_combine:
    case CollectiveOp::dispatch:
    case CollectiveOp::combine:
    case CollectiveOp::last_combine:
    case CollectiveOp::low_latency_dispatch:
    case CollectiveOp::low_latency_combine:
      return Operation::all_to_all;
    case CollectiveOp::broadcast:
      return Operation::broadcast;
    case CollectiveOp::ring_pass:
    case CollectiveOp::chain_pass:
      break;
  }
  return Operation::point_to_point;
}

std::string to_string(const CollectiveChoice& choice) {
  if (choice.in_node) return "protocols of the node";
  std::string text(name_of(choice.algorithm));
  if (choice.ring_order == RingOrder::hamiltonian) text += " along a Hamiltonian cycle";
  if (choice.ring_order == RingOrder::channels)
    text += choice.channels == 1 ? " over a channel" : fmt::format(" over {} channels", choice.channels);
  return text;
}

double steps_of(Operation operation, Algorithm algorithm, std::int32_t n,
                std::span<const std::int32_t> extents) {
  const double passes = operation == Operation::all_reduce ? 2 : 1;
  const auto levels_above = [](std::int32_t ranks) {  // ceil(log2(ranks))
    return static_cast<double>(std::bit_width(static_cast<std::uint32_t>(ranks - 1)));
  };
  switch (algorithm) {
    case Algorithm::ring:
    case Algorithm::bidirectional_ring:
    case Algorithm::pairwise:
      return passes * (n - 1);
    case Algorithm::direct:
      return passes;
    case Algorithm::halving_doubling:
      return passes * levels_above(n);
    case Algorithm::double_binary_tree:
      return operation == Operation::broadcast ? 1 + levels_above(std::max(1, n - 1)) : 2 * levels_above(n);
    case Algorithm::binary_tree:
      return static_cast<double>(std::bit_width(static_cast<std::uint32_t>(n))) - 1;
    case Algorithm::dimension_wise: {
      double steps = 0;
      for (const std::int32_t extent : extents) steps += extent - 1;
      return passes * steps;
    }
    case Algorithm::in_network:
      return 2;
  }
  return 0;
}

double copied_bytes(Operation operation, Algorithm algorithm, std::int32_t n) {
  const double part = 1 / static_cast<double>(n);
  const bool tree = algorithm == Algorithm::double_binary_tree, switches = algorithm == Algorithm::in_network;
  switch (operation) {
    case Operation::all_reduce:
      return switches || (tree && n > 2) ? 6 : 6 - 4 * part;
    case Operation::reduce_scatter:
    case Operation::all_gather:
      return switches ? 3 + part : 3 - part;
    case Operation::broadcast:
      return 3;
    case Operation::all_to_all:
    case Operation::pipeline:
    case Operation::point_to_point:
      return 0;
  }
  return 0;
}

CollectiveModel::CollectiveModel(const Fabric& fabric, const StackProfile::Communication& communication,
                                 BytesPerSecond memory_rate, const NodeCollectives* node,
                                 const TokenExchange& exchange)
    : fabric_(fabric),
      communication_(communication),
      memory_rate_(memory_rate),
      node_(node),
      exchange_(exchange),
      healthy_(std::make_unique<PricedNetwork>(fabric, communication)),
      healthy_maker_(std::make_unique<CurveMaker>(*healthy_)) {}

CollectiveModel::~CollectiveModel() = default;
CollectiveModel::CollectiveModel(CollectiveModel&&) noexcept = default;

std::size_t CollectiveModel::GroupHash::operator()(const RankGroup& group) const {
  std::uint64_t hash = 0;
  const auto add = [&](const RankGroup::Level& level) {
    hash = hash_word(
        hash, (static_cast<std::uint64_t>(level.extent) << 32) | static_cast<std::uint32_t>(level.stride));
  };
  for (std::int32_t i = 0; i < group.depth; ++i) add(group.levels[static_cast<std::size_t>(i)]);
  if (group.mirror.extent > 1) add(group.mirror);
  return hash;
}

void CollectiveModel::set_memory_share(double share) {
  SHARDSCAPE_CHECK(share > 0 && share <= 1, share);
  memory_share_ = share;
}

void CollectiveModel::record_links(bool on) {
  if (on) recorded_ = recorded_part_ = {};
  recording_ = on;
}

LinkSet CollectiveModel::take_recorded_part() { return std::exchange(recorded_part_, {}); }

void CollectiveModel::forget_groups() {
  memo_.clear();
  recent_groups_ = {};
  met_.clear();
  paces_.clear();
  uses_.clear();
}

void CollectiveModel::set_placement(std::vector<std::int32_t> placement) {
  SHARDSCAPE_CHECK(is_partial_placement(placement, fabric_.ranks()), placement.size(), fabric_.ranks());
  forget_groups();
  placement_ = std::move(placement);
}

void CollectiveModel::set_expert_loads(std::vector<double> shares) {
  forget_groups();
  expert_loads_ = std::move(shares);
}

void CollectiveModel::set_tolerance(double tolerance) {
  SHARDSCAPE_CHECK(tolerance >= 1e-9, tolerance);
  forget_groups();
  tolerance_ = tolerance;
}

// ---- candidates and their curves ----

std::vector<CollectiveModel::Candidate> CollectiveModel::candidates(CollectiveOp op,
                                                                    const SiblingGroups& groups) {
  std::vector<Candidate> result;
  const bool far = crosses_scale_out(fabric_, groups);
  const Operation operation = operation_of(op);
  const auto n = static_cast<std::int32_t>(groups.size);
  const auto add = [&](Algorithm algorithm, RingOrder order, double steps) {
    Candidate candidate;
    candidate.choice = {algorithm, order};
    candidate.copied = copied_bytes(operation, algorithm, n);
    candidate.steps = steps;
    candidate.far_steps = far ? steps : 0;
    result.push_back(std::move(candidate));
  };
  if (is_pass(op)) {
    add(Algorithm::direct, RingOrder::listed, 1);
    return result;
  }
  if (is_skewed(op)) {
    add(Algorithm::direct, RingOrder::listed, 1);
    return result;
  }
  const Boxes boxes = boxes_of(fabric_, groups);
  const bool several = communication_.algorithms.size() > 1;
  for (const Algorithm algorithm : communication_.algorithms) {
    if (!supports(operation, algorithm)) continue;
    const bool all_pairs = algorithm == Algorithm::direct || algorithm == Algorithm::pairwise;
    if (all_pairs && several && n > kMostDirectRanks && operation != Operation::all_to_all) continue;
    if (algorithm == Algorithm::halving_doubling && !std::has_single_bit(groups.size)) continue;
    if (algorithm == Algorithm::dimension_wise && (!boxes.all || boxes.extents.size() < 2)) continue;
    if (algorithm == Algorithm::in_network && !reduces_in_network(*healthy_, groups)) continue;
    const double steps = steps_of(operation, algorithm, n, boxes.extents);
    add(algorithm, RingOrder::listed, steps);
    if (algorithm == Algorithm::dimension_wise) {
      result.back().far_steps = (operation == Operation::all_reduce ? 2 : 1) * boxes.far_steps;
    }
    const bool ring = algorithm == Algorithm::ring || algorithm == Algorithm::bidirectional_ring;
    if (ring && boxes.grid && operation != Operation::broadcast) {
      add(algorithm, RingOrder::hamiltonian, steps);
      result.back().shorter =
          links_crossed(fabric_, along_wires(groups, fabric_)) < links_crossed(fabric_, groups);
    }
    if (algorithm != Algorithm::ring || operation == Operation::broadcast) continue;
    // Where the groups are boxes of several axes, dimension_wise has as many rings (one for each seat) but far fewer
    // messages.
    const bool by_dimension = std::ranges::find(communication_.algorithms, Algorithm::dimension_wise) !=
                              communication_.algorithms.end();
    if (boxes.all && boxes.extents.size() > 1 && by_dimension) continue;
    if (const std::int32_t channels = channels_of(fabric_, groups)) {
      // Hops over unlike links don't keep step, so rank steps are part of each hop's latency and none are counted here.
      add(algorithm, RingOrder::channels, 0);
      result.back().choice.channels = channels;
    }
  }
  if (result.empty()) {
    const Algorithm plain = operation == Operation::all_to_all ? Algorithm::direct : Algorithm::ring;
    add(plain, RingOrder::listed, steps_of(operation, plain, n));
  }
  return result;
}

BytesPerSecond CollectiveModel::node_link(CollectiveOp op, const SiblingGroups& groups) const {
  const bool priced = op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter ||
                      op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all || is_skewed(op);
  const bool known = communication_.protocols && node_ != nullptr && node_->nccl.known();
  if (!known || !priced) return BytesPerSecond(0);
  return communication_.scale_up_fraction * link_behind_switch(fabric_, groups);
}

/// The candidate inside a node: each rank's link carries what the protocols send over it, and nothing waits.
CollectiveModel::Candidate CollectiveModel::in_node(CollectiveOp op, const SiblingGroups& groups) {
  const auto n = static_cast<std::int32_t>(groups.size);
  Candidate candidate;
  candidate.choice = {.algorithm = Algorithm::direct, .in_node = true};
  candidate.copied = copied_bytes(operation_of(op), Algorithm::direct, n);
  candidate.steps = steps_of(operation_of(op), Algorithm::direct, n);
  return candidate;
}

Pattern CollectiveModel::pattern_of(CollectiveOp op, const Candidate& candidate) {
  Pattern pattern;
  pattern.operation = operation_of(op);
  pattern.algorithm = candidate.choice.algorithm;
  if (candidate.choice.ring_order == RingOrder::channels) {
    pattern.ring_order = RingOrder::channels;
    pattern.channels = candidate.choice.channels;
    pattern.rank_steps = true;
  }
  pattern.skew = candidate.skew;
  return pattern;
}

/// The pattern of an operation with its groups and bytes, ready to be simulated.
Pattern CollectiveModel::pattern_of(CollectiveOp op, const Candidate& candidate, const SiblingGroups& groups,
                                    double bytes) const {
  Pattern pattern = pattern_of(op, candidate);
  pattern.bytes = bytes;
  pattern.chunks = chunks_of(pattern.operation, pattern.algorithm, bytes);
  pattern.ring_order = candidate.choice.ring_order;
  if (is_pass(op)) {
    pattern.sends = sends_of(op, groups);
    for (PointToPoint& send : pattern.sends) send.bytes = bytes;
  } else {
    pattern.groups = groups.nested();
  }
  return pattern;
}

CostCurve CollectiveModel::make_curve(CurveMaker& maker, CollectiveOp op, const Candidate& candidate,
                                      const SiblingGroups& groups, bool with_links) const {
  maker.collect_links(with_links);
  maker.remember_rings(memoise_ && !reference_ && &maker == healthy_maker_.get());
  if (is_pass(op)) return maker.one_round(sends_of(op, groups), groups.copies);
  const bool turned = candidate.choice.ring_order == RingOrder::hamiltonian;
  return maker.make(pattern_of(op, candidate), turned ? along_wires(groups, fabric_) : groups);
}

std::optional<CurveKey> CollectiveModel::shared_key(const OpCosts& costs, const Candidate& candidate,
                                                    const RankGroup::Level& slice) const {
  // No other model asks for the same where loads of experts (of the workload) or placements (being searched) matter.
  const bool of_loads = (is_skewed(costs.op) || is_exchange(costs.op)) && !expert_loads_.empty();
  if (store_ == nullptr || !knows_tiles() || of_loads) return std::nullopt;
  CurveKey key{costs.op, candidate.choice, costs.group, costs.boundary, slice};
  if (candidate.choice.ring_order == RingOrder::channels) {
    key.rank_step = communication_.rank_step;
    key.rank_step_scale_out = communication_.rank_step_scale_out;
  }
  return key;
}

CostCurve CollectiveModel::healthy_curve(const OpCosts& costs, const Candidate& candidate,
                                         const SiblingGroups& groups, const RankGroup::Level& slice) {
  const std::optional<CurveKey> key = shared_key(costs, candidate, slice);
  if (key) {
    if (std::optional<CostCurve> known = store_->find(*key)) return *std::move(known);
  }
  CostCurve curve = make_curve(*healthy_maker_, costs.op, candidate, groups, costs.boundary < 0);
  if (key) store_->keep(*key, curve);
  return curve;
}

void CollectiveModel::share_curves(std::shared_ptr<CurveStore> store) { store_ = std::move(store); }

void CollectiveModel::add_curves(OpCosts& costs, const SiblingGroups& groups) {
  std::vector<Candidate> offered;
  for (Candidate& candidate : costs.candidates) {
    candidate.healthy = healthy_curve(costs, candidate, groups);
    SHARDSCAPE_CHECK(!candidate.healthy.cut_off(), name_of(candidate.choice.algorithm));
    double messages = 0;
    for (const CurveParts::Contended& part : candidate.healthy.contended()) {
      if (part.upper.empty()) messages += part.messages;
    }
    if (takes_chunks(operation_of(costs.op), candidate.choice.algorithm)) messages *= kMostChunksToChoose;
    if (messages <= kMostMessagesToChoose) offered.push_back(std::move(candidate));
  }
  if (!offered.empty()) costs.candidates = std::move(offered);
}

void CollectiveModel::fill(OpCosts& costs, CollectiveOp op, const RankGroup& group) {
  costs.op = op;
  costs.group = group;
  const SiblingGroups groups = representatives(costs);
  costs.node_link = node_link(op, groups);
  costs.closed = costs.node_link > BytesPerSecond(0) || is_exchange(op);
  const Skew skew = skew_of(op, groups);
  if (!skew.shares.empty()) costs.busiest = static_cast<double>(groups.size) * std::ranges::max(skew.shares);
  if (is_exchange(op)) {
    costs.domains = most_domains(fabric_, groups);
    TokenTargets to = token_targets(static_cast<double>(groups.size));
    to.domains = costs.domains;
    double copies = copies_sent(to);
    if (!expert_loads_.empty()) {
      const std::vector<double> chances = copy_chances(groups);
      copies = std::accumulate(chances.begin(), chances.end(), 0.0);
    }
    costs.wire_share = is_low_latency(op) ? 1 : copies / exchange_.top_k;
  }
  if (costs.closed) {
    costs.candidates.push_back(in_node(op, groups));
    if (costs.domains > 1) costs.candidates.back().far_steps = costs.candidates.back().steps;
  } else {
    costs.candidates = candidates(op, groups);
  }
  for (Candidate& candidate : costs.candidates) candidate.skew = skew;
  add_curves(costs, groups);
  costs.affine =
      std::ranges::all_of(costs.candidates, [](const Candidate& c) { return c.healthy.is_affine(); });
}

/// The groups of the operation, or those in the slice where one is given. For a boundary between stages: of each group
/// the two members at that boundary.
SiblingGroups CollectiveModel::siblings(const OpCosts& costs, const Slice& slice) const {
  return between(sibling_groups(costs.group, fabric_, placement_, slice), costs.boundary);
}

SiblingGroups CollectiveModel::tile(const OpCosts& costs, const Slice& slice) const {
  if (!placement_.empty()) return siblings(costs, slice);
  return between(first_tile(costs.group, fabric_, slice), costs.boundary);
}

SiblingGroups CollectiveModel::representatives(const OpCosts& costs, const Slice& slice) const {
  return knows_tiles() ? tile(costs, slice) : siblings(costs, slice);
}

/// The links on healthy wires, found when first asked for, since curves know only those of the groups that were looked
/// at.
const LinkSet& CollectiveModel::links_of(const OpCosts& costs, Candidate& candidate) {
  if (candidate.all_links) return *candidate.all_links;
  const SiblingGroups groups = siblings(costs);
  const bool turned = candidate.choice.ring_order == RingOrder::hamiltonian;
  candidate.all_links = is_pass(costs.op)
                            ? healthy_maker_->links(sends_of(costs.op, groups))
                            : healthy_maker_->links(pattern_of(costs.op, candidate),
                                                    turned ? along_wires(groups, fabric_) : groups);
  return *candidate.all_links;
}

const LinkLoads& CollectiveModel::loads_of(const OpCosts& costs, Candidate& candidate, Looked looked) {
  std::optional<LinkLoads>& loads = candidate.loads[static_cast<std::size_t>(looked)];
  if (loads) return *loads;
  if (looked == Looked::dimensions) return *(loads = by_dimension(loads_of(costs, candidate, Looked::tile)));
  const SiblingGroups groups = looked == Looked::all ? siblings(costs) : tile(costs);
  const bool turned = candidate.choice.ring_order == RingOrder::hamiltonian;
  loads = is_pass(costs.op) ? healthy_maker_->loads(sends_of(costs.op, groups))
                            : healthy_maker_->loads(pattern_of(costs.op, candidate),
                                                    turned ? along_wires(groups, fabric_) : groups);
  return *loads;
}

CollectiveModel::GroupCosts& CollectiveModel::group_costs(const RankGroup& group) {
  if (!memoise_ || reference_) {
    unmemoised_ = std::make_unique<GroupCosts>();
    return *unmemoised_;
  }
  const auto [extent, stride] = group.levels.front();
  RecentGroup& recent = recent_groups_[static_cast<std::size_t>(extent ^ stride) % recent_groups_.size()];
  if (recent.costs == nullptr || recent.group != group) {
    std::unique_ptr<GroupCosts>& costs = memo_[group];
    if (!costs) costs = std::make_unique<GroupCosts>();
    recent = {group, costs.get()};
  }
  return *recent.costs;
}

CollectiveModel::OpCosts& CollectiveModel::costs_of(CollectiveOp op, const RankGroup& group) {
  OpCosts& result = group_costs(group).ops[static_cast<std::size_t>(op)];
  if (result.candidates.empty()) fill(result, op, group);
  return result;
}

CollectiveModel::OpCosts& CollectiveModel::boundary_costs(GroupCosts& costs, const RankGroup& group,
                                                          std::int32_t boundary) {
  const auto index = static_cast<std::size_t>(boundary);
  if (costs.boundaries.empty()) {
    costs.boundaries.resize(static_cast<std::size_t>(group.size()));
    costs.same_boundary.resize(costs.boundaries.size());
  }
  OpCosts& result = costs.boundaries[index];
  if (!result.candidates.empty()) return result;
  result.boundary = boundary;
  fill(result, CollectiveOp::chain_pass, group);
  const auto alike = [&](const OpCosts& other) {
    if (!result.affine || !other.affine || other.candidates.empty()) return false;
    const Candidate &a = result.candidates.front(), &b = other.candidates.front();
    return a.far_steps == b.far_steps && a.healthy.affine() == b.healthy.affine();
  };
  costs.same_boundary[index] =
      static_cast<std::size_t>(std::ranges::find_if(costs.boundaries, alike) - costs.boundaries.begin());
  if (costs.same_boundary[index] > index) costs.same_boundary[index] = index;
  if (costs.same_boundary[index] == 0 && costs.alike == index) ++costs.alike;
  return result;
}

}  // namespace shardscape::network
