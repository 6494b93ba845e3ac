// Prices calls on healthy links: finds the curves of the ways to carry out an operation, chooses the cheapest, and adds
// up what ranks and links need. How operations share links stands in shared_links.cc.
#include "engine/network/prices/healthy_costs.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/network/collectives/algorithm_rules.h"
#include "engine/network/collectives/protocols.h"
#include "engine/network/groups/tiles.h"
#include "engine/network/placement/placement.h"

namespace shardscape::network {

namespace {

constexpr double kMostChunksToChoose = 32;

/// A later way must be cheaper by more than rounding, so that fast paths and simulation choose alike.
constexpr double kCheaper = 1 - 1e-9;

/// The groups themselves or, for a boundary between stages (OperationCosts::boundary), the pairs of members there.
SiblingGroups between(SiblingGroups groups, std::int32_t boundary) {
  if (boundary < 0) return groups;
  const std::size_t here = static_cast<std::size_t>(boundary) % groups.size, next = (here + 1) % groups.size;
  const bool back = here != static_cast<std::size_t>(boundary);
  return back ? pairs_of(groups, next, here) : pairs_of(groups, here, next);
}

}  // namespace

HealthyCosts::HealthyCosts(CollectiveSetup setup)
    : setup_(std::move(setup)),
      experts_(setup_),
      network_(std::make_unique<PricedNetwork>(setup_.fabric, setup_.communication)),
      maker_(std::make_unique<CurveMaker>(*network_)) {
  SHARDSCAPE_CHECK(setup_.tolerance >= 1e-9, setup_.tolerance);
  SHARDSCAPE_CHECK(setup_.placement.empty() || is_partial_placement(setup_.placement, setup_.fabric.ranks()),
                   setup_.placement.size(), setup_.fabric.ranks());
  maker_->take_shortcuts(!plain());
}

// ---- ways and their curves ----

BytesPerSecond HealthyCosts::node_link(CollectiveOp op, const SiblingGroups& groups) const {
  const bool priced = op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter ||
                      op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all || is_skewed(op);
  const bool known = setup_.communication.protocols && setup_.node != nullptr && setup_.node->nccl.known();
  if (!known || !priced) return BytesPerSecond(0);
  return setup_.communication.scale_up_fraction * link_behind_switch(setup_.fabric, groups);
}

CostCurve HealthyCosts::curve_on(const OperationCosts& costs, const Way& way,
                                 const SiblingGroups& groups) const {
  return curve_of(*maker_, costs.op, way, groups, setup_.fabric);
}

/// The key of an operation in a store; empty where it can't be shared.
std::optional<CurveKey> HealthyCosts::shared_key(const OperationCosts& costs, const Way& way,
                                                 const RankGroup::Level& slice) const {
  // Costs that depend on loads of experts (the workload's own) or on a placement (one of a search) are of no use to
  // others.
  const bool of_loads = (is_skewed(costs.op) || is_exchange(costs.op)) && !setup_.expert_shares.empty();
  if (setup_.curves == nullptr || !knows_tiles() || of_loads) return std::nullopt;
  CurveKey key{costs.op, way.choice, costs.group, costs.boundary, slice};
  if (way.choice.ring_order == RingOrder::channels) {
    key.rank_step = setup_.communication.rank_step;
    key.rank_step_scale_out = setup_.communication.rank_step_scale_out;
  }
  return key;
}

/// The curve, taken from the store if it is there. `groups`: all groups, or those of the first slice along an axis.
CostCurve HealthyCosts::shared_curve(const OperationCosts& costs, const Way& way, const SiblingGroups& groups,
                                     const RankGroup::Level& slice) const {
  const std::optional<CurveKey> key = shared_key(costs, way, slice);
  if (key) {
    if (std::optional<CostCurve> known = setup_.curves->find(*key)) return *std::move(known);
  }
  CostCurve curve = curve_of(*maker_, costs.op, way, groups, setup_.fabric, costs.boundary < 0);
  if (key) setup_.curves->keep(*key, curve);
  return curve;
}

void HealthyCosts::add_ways(OperationCosts& costs, std::vector<Way> ways, const SiblingGroups& groups) const {
  std::vector<KnownWay> too_long;
  const Skew skew = experts_.skew_of(costs.op, groups);
  for (Way& way : ways) {
    way.skew = skew;
    KnownWay known{std::move(way), ++ways_};
    known.curve = shared_curve(costs, known, groups);
    SHARDSCAPE_CHECK(!known.curve.cut_off(), name_of(known.choice.algorithm));
    double messages = 0;
    for (const CurveParts::Contended& part : known.curve.contended()) {
      if (part.upper.empty()) messages += part.messages;
    }
    if (takes_chunks(operation_of(costs.op), known.choice.algorithm)) messages *= kMostChunksToChoose;
    (messages <= kMostMessagesToChoose ? costs.ways : too_long).push_back(std::move(known));
  }
  if (costs.ways.empty()) costs.ways = std::move(too_long);
}

OperationCosts HealthyCosts::analysed(CollectiveOp op, const RankGroup& group, std::int32_t boundary) const {
  OperationCosts costs;
  costs.op = op;
  costs.group = group;
  costs.boundary = boundary;
  const SiblingGroups groups = representatives(costs);
  costs.node_link = node_link(op, groups);
  costs.closed = costs.node_link > BytesPerSecond(0) || is_exchange(op);
  costs.reach = experts_.reach_of(op, groups);
  costs.senders = experts_.senders_of(op, groups);
  if (costs.closed) {
    Way way = way_in_node(op, groups.size);
    if (costs.reach.domains > 1) way.far_steps = way.steps;
    add_ways(costs, {std::move(way)}, groups);
  } else {
    add_ways(costs, ways_of(op, groups, *network_, setup_.communication), groups);
  }
  const std::vector<double>& shares = costs.ways.front().skew.shares;
  if (!shares.empty()) costs.busiest = static_cast<double>(groups.size) * std::ranges::max(shares);
  costs.affine = std::ranges::all_of(costs.ways, [](const KnownWay& way) { return way.curve.is_affine(); });
  return costs;
}

OperationCosts& HealthyCosts::operation(CollectiveOp op, const RankGroup& group) const {
  const auto analyse = [&] { return analysed(op, group, -1); };
  if (plain()) return plain_.emplace(analyse());
  const auto [extent, stride] = group.levels.front();
  return operations_.get({op, group}, static_cast<std::size_t>((extent ^ stride) + static_cast<int>(op)),
                         analyse);
}

BoundaryCosts& HealthyCosts::boundaries(const RankGroup& group) const {
  const auto none = [&] {
    BoundaryCosts costs;
    costs.each.resize(static_cast<std::size_t>(group.size()));
    costs.same.resize(costs.each.size());
    return costs;
  };
  return plain() ? plain_boundaries_ = none() : boundaries_.get(group, none);
}

OperationCosts& HealthyCosts::boundary(BoundaryCosts& costs, const RankGroup& group,
                                       std::int32_t number) const {
  const auto index = static_cast<std::size_t>(number);
  OperationCosts& result = costs.each[index];
  if (!result.ways.empty()) return result;
  result = analysed(CollectiveOp::chain_pass, group, number);
  const auto alike = [&](const OperationCosts& other) {
    if (!result.affine || !other.affine || other.ways.empty()) return false;
    const KnownWay &a = result.ways.front(), &b = other.ways.front();
    return a.far_steps == b.far_steps && a.curve.affine() == b.curve.affine();
  };
  costs.same[index] = static_cast<std::size_t>(std::ranges::find_if(costs.each, alike) - costs.each.begin());
  if (costs.same[index] > index) costs.same[index] = index;
  if (costs.same[index] == 0 && costs.alike == index) ++costs.alike;
  return result;
}

OperationCosts& HealthyCosts::message(BoundaryCosts& costs, const RankGroup& group, std::int32_t number,
                                      bool back) const {
  const std::int32_t members = group.size();
  costs.one_way.resize(2 * static_cast<std::size_t>(members));
  OperationCosts& result = costs.one_way[static_cast<std::size_t>(back ? members + number : number)];
  if (result.ways.empty()) result = analysed(CollectiveOp::message, group, back ? members + number : number);
  return result;
}

SiblingGroups HealthyCosts::siblings(const OperationCosts& costs, const Slice& slice) const {
  return between(sibling_groups(costs.group, setup_.fabric, setup_.placement, slice), costs.boundary);
}

/// The groups that stand for all others; where ranks are placed, all groups.
SiblingGroups HealthyCosts::tile(const OperationCosts& costs, const Slice& slice) const {
  if (!setup_.placement.empty()) return siblings(costs, slice);
  if (costs.boundary < 0 || !slice.everything())
    return between(first_tile(costs.group, setup_.fabric, slice), costs.boundary);
  // The boundaries of a group are asked for one after the other.
  if (tile_.second.ranks.empty() || tile_.first != costs.group)
    tile_ = {costs.group, first_tile(costs.group, setup_.fabric)};
  return between(tile_.second, costs.boundary);
}

/// The groups that have to be looked at.
SiblingGroups HealthyCosts::representatives(const OperationCosts& costs, const Slice& slice) const {
  return knows_tiles() ? tile(costs, slice) : siblings(costs, slice);
}

// ---- calls ----

double HealthyCosts::in_steps(const Way& way) const {
  const StackProfile::Communication& stack = setup_.communication;
  const double far = stack.rank_step_scale_out > Seconds(0) ? way.far_steps : 0;
  return ((way.steps - far) * stack.rank_step + far * stack.rank_step_scale_out).value();
}

double HealthyCosts::at_ranks(const Way& way, double bytes, double memory_share) const {
  const Seconds copies = copying(Bytes(way.copied * bytes), memory_share);
  return (setup_.communication.call + copies).value() + in_steps(way);
}

/// The time in which a rank reads and writes so many bytes of its own.
Seconds HealthyCosts::copying(Bytes bytes, double memory_share) const {
  if (setup_.communication.local_copy == 0) return Seconds(0);
  return setup_.communication.local_copy * bytes / (memory_share * setup_.memory_rate);
}

Seconds HealthyCosts::copy_time(Operation operation, Algorithm algorithm, Bytes bytes, std::int32_t n) const {
  return copying(rules_of(algorithm).copied(operation, n) * bytes, 1);
}

std::optional<double> HealthyCosts::simulated(PricedNetwork& network, const OperationCosts& costs,
                                              const Way& way, double bytes) const {
  const std::optional<double> seconds = network.simulate(pattern_of(costs.op, way, siblings(costs), bytes));
  // Without dead links all ranks are reachable, and then no result means that there are too many messages to simulate.
  SHARDSCAPE_CHECK(seconds.has_value() || network.routes().cut(), costs.group.size(), bytes);
  return seconds;
}

double HealthyCosts::seconds_of(const OperationCosts& costs, KnownWay& way, double bytes) const {
  if (plain()) return *simulated(*network_, costs, way, bytes);
  // A simulation takes longer than all else here: one model makes it for all.
  std::optional<CurveKey> key;
  if (!way.curve.needs_no_simulation()) key = shared_key(costs, way, {});
  if (!key) return at(way.curve, bytes);
  CurvePoint point{*std::move(key), bytes, setup_.tolerance};
  // A ring scatters with the messages that it gathers with.
  if (way.choice.algorithm == Algorithm::ring && costs.op == CollectiveOp::reduce_scatter)
    point.curve.op = CollectiveOp::all_gather;
  if (const std::optional<double> known = setup_.curves->find(point)) return *known;
  const double seconds = at(way.curve, bytes);
  setup_.curves->keep(point, seconds);
  return seconds;
}

ChosenWay HealthyCosts::cheapest(OperationCosts& costs, double bytes) const {
  ChosenWay best{0, seconds_of(costs, costs.ways.front(), bytes)};
  if (costs.ways.size() == 1) return best;
  double least = at_ranks(costs.ways.front(), bytes, 1) + best.seconds;
  for (std::size_t w = 1; w < costs.ways.size(); ++w) {
    KnownWay& way = costs.ways[w];
    const double before = at_ranks(way, bytes, 1);
    // The way before this one is the same ring in the order of the group; this order wins ties, as it crosses fewer
    // links.
    const bool wins_ties = way.shorter && best.way + 1 == w;
    const double limit = wins_ties ? least / kCheaper : least;
    const bool hopeless = !plain() && before + way.curve.at_least(bytes) >= limit;
    if (hopeless) continue;
    const double on_links = seconds_of(costs, way, bytes), seconds = before + on_links;
    if (!(seconds < (wins_ties ? limit : kCheaper * least))) continue;
    best = {w, on_links};
    least = seconds;
  }
  return best;
}

ChosenWay HealthyCosts::choose(OperationCosts& costs, double bytes) const {
  const auto chosen = [&] { return cheapest(costs, bytes); };
  return plain() ? chosen() : costs.chosen.get(bytes, FieldsHash()(bytes), chosen);
}

HealthyCosts::CallTime HealthyCosts::time_of_call(const CollectiveKey& key, double memory_share) const {
  if (key.nothing()) return {};
  OperationCosts& costs = operation(key.op, key.group);
  const double sent = costs.reach.wire_share * key.bytes.value();
  const ChosenWay chosen = choose(costs, sent);
  const Way& way = costs.ways[chosen.way];
  return {Seconds(at_ranks(way, sent, memory_share) +
                  beyond_links(costs, way, sent, chosen.seconds, memory_share)),
          Seconds(chosen.seconds)};
}

Seconds HealthyCosts::time_on_links(const CollectiveKey& key) const {
  if (key.nothing()) return Seconds(0);
  OperationCosts& costs = operation(key.op, key.group);
  const ChosenWay chosen = choose(costs, costs.sent_by(key));
  return key.calls * Seconds(std::max(0.0, chosen.seconds - costs.ways[chosen.way].curve.at_least(0)));
}

std::vector<CostCurve> HealthyCosts::curves_within_slices(const OperationCosts& costs, const KnownWay& way,
                                                          const RankGroup::Level& axis) const {
  RankGroup group = costs.group;
  group.mirror = {};  // the ranks of a stage and of its mirror lie in their slices alike
  const Tile one = tile_of(group, setup_.fabric, {axis, 0});
  if (one.known || !setup_.placement.empty()) {
    // Groups of one slice that stand for those of all slices share no links with another one.
    const Tile all = tile_of(costs.group, setup_.fabric);
    if (knows_tiles() && all.known && all.digits == one.digits) return {way.curve};
    return {shared_curve(costs, way, representatives(costs, {axis, 0}), axis)};
  }
  std::vector<CostCurve> curves;
  for (std::int32_t i = 0; i < axis.extent; ++i)
    curves.push_back(curve_of(*maker_, costs.op, way, representatives(costs, {axis, i}), setup_.fabric,
                              costs.boundary < 0));
  return curves;
}

HealthyCosts::WithinSlice HealthyCosts::time_within_slice(const CollectiveKey& key,
                                                          double memory_share) const {
  if (key.nothing()) return {};
  OperationCosts& costs = operation(key.op, key.group);
  const double bytes = costs.sent_by(key);
  const ChosenWay together = choose(costs, bytes);
  KnownWay& way = costs.ways[together.way];
  const RankGroup::Level axis = key.slice.axis;
  std::vector<CostCurve>& within =
      way.within_slices.get(axis, [&] { return curves_within_slices(costs, way, axis); });
  constexpr double kAnyBound = 1e9;
  double least = together.seconds, most = 0;
  for (CostCurve& curve : within) {
    const double alone = std::min(together.seconds, curve.at(bytes, *network_, kAnyBound));
    least = std::min(least, alone);
    most = std::max(most, alone);
  }
  const auto whole = [&](double alone) {
    const double on_links = alone + beyond_links(costs, way, bytes, alone, memory_share);
    return key.calls * Seconds(at_ranks(way, bytes, memory_share) + on_links);
  };
  return {whole(least), whole(most)};
}

double HealthyCosts::beyond_links(const OperationCosts& costs, const Way& way, double bytes, double on_links,
                                  double memory_share) const {
  if (!costs.closed) return 0;
  const std::optional<Seconds> closed = closed_form(costs, costs.busiest * bytes);
  if (!closed) return 0;
  const double whole = (setup_.communication.call + *closed).value();
  return std::max(0.0, whole - at_ranks(way, bytes, memory_share) - on_links);
}

/// `bytes` as the network counts them.
std::optional<Seconds> HealthyCosts::closed_form(const OperationCosts& costs, double bytes) const {
  const std::int32_t n = costs.group.size();
  if (is_exchange(costs.op)) return experts_.kernel_time(costs.op, n, costs.reach, bytes);
  return costs.op == CollectiveOp::all_reduce
             ? all_reduce_time(*setup_.node, setup_.communication.all_reduce, n, Bytes(bytes),
                               costs.node_link)
             : nccl_time(setup_.node->nccl, operation_of(costs.op), n, Bytes(bytes), costs.node_link);
}

Seconds HealthyCosts::beyond_links(CollectiveOp op, Bytes bytes, const RankGroup& group) const {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OperationCosts& costs = operation(op, group);
  if (!costs.closed) return Seconds(0);
  KnownWay& way = costs.ways.front();
  return Seconds(beyond_links(costs, way, bytes.value(), seconds_of(costs, way, bytes.value()), 1));
}

Bytes HealthyCosts::wire_bytes(CollectiveOp op, Bytes bytes, const RankGroup& group) const {
  if (group.alone() || bytes <= Bytes(0) || !is_exchange(op)) return bytes;
  return operation(op, group).reach.wire_share * bytes;
}

std::optional<CollectiveChoice> HealthyCosts::choice(const CollectiveKey& key) const {
  if (key.nothing() || operation_of(key.op) == Operation::point_to_point) return std::nullopt;
  return asked(key).way.choice;
}

}  // namespace shardscape::network
