// Prices calls: chooses an algorithm, and adds up what ranks and links need.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/hash.h"
#include "engine/network/collectives/collectives.h"
#include "engine/network/collectives/expert_dispatch.h"
#include "engine/network/collectives/protocols.h"
#include "engine/network/prices/collective_state.h"
#include "engine/network/prices/curve_store.h"

namespace shardscape::network {

namespace {

/// A later candidate must be cheaper by more than rounding, so that fast paths and simulation choose alike.
constexpr double kCheaper = 1 - 1e-9;

bool is_send(CollectiveOp op) { return operation_of(op) == Operation::point_to_point; }

/// Sums in different orders count as equal down to this factor.
constexpr double kRounding = 1 - 1e-12;

/// Whether two sets have links of a common dimension. Copies of a group use links of the same dimensions as the group.
bool share_dimensions(const Fabric& fabric, const LinkSet& one, const LinkSet& other) {
  std::vector<char> used(fabric.spec().dimensions.size(), 0);
  const auto dimension = [&](std::int32_t link) {
    return static_cast<std::size_t>(fabric.links()[static_cast<std::size_t>(link)].dimension);
  };
  bool common = false;
  one.for_each([&](std::int32_t link) { used[dimension(link)] = 1; });
  other.for_each([&](std::int32_t link) { common = common || used[dimension(link)] != 0; });
  return common;
}

}  // namespace

/// The part of a call's time that is not the network's: fixed costs, steps and copies.
double CollectiveModel::at_ranks(const Candidate& candidate, double bytes, double memory_share) const {
  const double far = communication_.rank_step_scale_out > Seconds(0) ? candidate.far_steps : 0;
  return (communication_.call + (candidate.steps - far) * communication_.rank_step +
          far * communication_.rank_step_scale_out + copying(Bytes(candidate.copied * bytes), memory_share))
      .value();
}

/// The time in which a rank reads and writes so many bytes of its own.
Seconds CollectiveModel::copying(Bytes bytes, double memory_share) const {
  if (communication_.local_copy == 0) return Seconds(0);
  return communication_.local_copy * bytes / (memory_share * memory_rate_);
}

Seconds CollectiveModel::copy_time(Operation operation, Algorithm algorithm, Bytes bytes,
                                   std::int32_t n) const {
  return copying(copied_bytes(operation, algorithm, n) * bytes, memory_share_);
}

std::optional<double> CollectiveModel::simulated(PricedNetwork& network, const OpCosts& costs,
                                                 const Candidate& candidate, double bytes) const {
  const std::optional<double> seconds =
      network.simulate(pattern_of(costs.op, candidate, siblings(costs), bytes));
  // Without dead links all ranks are reachable, and then no result means that there are too many messages to simulate.
  SHARDSCAPE_CHECK(seconds.has_value() || network.routes().cut(), costs.group.size(), bytes);
  return seconds;
}

double CollectiveModel::healthy_time(const OpCosts& costs, Candidate& candidate, double bytes) {
  if (reference_) return *simulated(*healthy_, costs, candidate, bytes);
  return candidate.healthy.at(bytes, *healthy_, tolerance_);
}

std::size_t CollectiveModel::choose(OpCosts& costs, double bytes) {
  std::size_t best = 0;
  if (costs.candidates.size() == 1) return best;
  double least = 0;
  for (std::size_t c = 0; c < costs.candidates.size(); ++c) {
    Candidate& candidate = costs.candidates[c];
    const double before = at_ranks(candidate, bytes, 1);
    // The candidate before this one is the same ring in the order of the group; this order wins ties, as it crosses
    // fewer links.
    const bool wins_ties = candidate.shorter && best + 1 == c;
    const double limit = wins_ties ? least / kCheaper : least;
    const bool hopeless = c > 0 && !reference_ && before + candidate.healthy.at_least(bytes) >= limit;
    if (hopeless) continue;
    const double seconds = before + healthy_time(costs, candidate, bytes);
    if (c > 0 && !(seconds < (wins_ties ? limit : kCheaper * least))) continue;
    best = c;
    least = seconds;
  }
  return best;
}

constexpr double kNever = std::numeric_limits<double>::infinity();

/// The network time of an algorithm whose messages cross faulty links; infinite where dead links cut them
/// off.
double CollectiveModel::sick_time(OpCosts& costs, Candidate& candidate, double bytes) {
  if (const auto time = candidate.part_by_part(*this, costs, bytes)) return *time;
  CostCurve& curve = sick_curve(costs, candidate);
  if (curve.cut_off()) return kNever;
  return curve.at(bytes, curve.needs_no_simulation() ? *healthy_ : sick_network(), tolerance_);
}

/// The network time of the chosen algorithm on the links as they are now; infinite where dead links cut it
/// off.
double CollectiveModel::network_time(OpCosts& costs, std::size_t chosen, double bytes, const Slice& slice) {
  Candidate& candidate = costs.candidates[chosen];
  const bool sick = touched(costs, candidate, slice);
  if (reference_)
    return simulated(sick ? sick_network() : *healthy_, costs, candidate, bytes).value_or(kNever);
  return sick ? sick_time(costs, candidate, bytes) : candidate.healthy.at(bytes, *healthy_, tolerance_);
}

/// The chosen candidate and its network time, remembered by bytes and, where faults touch it, by faults.
std::pair<std::size_t, double> CollectiveModel::remembered(OpCosts& costs, double bytes, const Slice& slice) {
  const auto [entry, fresh] = costs.by_bytes.try_emplace(std::bit_cast<std::uint64_t>(bytes));
  Priced& priced = entry->second;
  if (fresh) {
    priced.chosen = choose(costs, bytes);
    priced.healthy = healthy_time(costs, costs.candidates[priced.chosen], bytes);
  }
  Candidate& candidate = costs.candidates[priced.chosen];
  if (!touched(costs, candidate, slice)) return {priced.chosen, priced.healthy};
  const auto [sick, unknown] = priced.sick.try_emplace(fault_epoch_);
  if (unknown) {
    ++sick_prices_;
    sick->second = sick_time(costs, candidate, bytes);
  }
  return {priced.chosen, sick->second};
}

/// The candidate that carries out the operation, and its network time.
std::pair<std::size_t, double> CollectiveModel::chosen_time(OpCosts& costs, double bytes,
                                                            const Slice& slice) {
  const bool quick = costs.affine && healthy();
  if (!reference_ && memoise_ && !quick) return remembered(costs, bytes, slice);
  const std::size_t chosen = choose(costs, bytes);
  return {chosen, network_time(costs, chosen, bytes, slice)};
}

Seconds CollectiveModel::added_by_faults(CollectiveOp op, Bytes bytes, const RankGroup& group,
                                         const Slice& slice) {
  if (healthy() || group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  const double sent = costs.wire_share * bytes.value();
  const double now = chosen_time(costs, sent, slice).second;
  if (!std::isfinite(now)) return Seconds(0);
  return Seconds(std::max(0.0, now - healthy_choice(costs, sent).second));
}

Seconds CollectiveModel::time_at_ranks(CollectiveOp op, Bytes bytes, const RankGroup& group) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  const double sent = costs.wire_share * bytes.value();
  const auto [candidate, seconds] = healthy_choice(costs, sent);
  const double more = costs.closed ? beyond_links(costs, *candidate, sent, seconds) : 0;
  return Seconds(at_ranks(*candidate, sent, memory_share_) + more);
}

Seconds CollectiveModel::time_without_faults(CollectiveOp op, Bytes bytes, const RankGroup& group) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  // Read the result at once: without the memo, the next question overwrites it.
  const Seconds network(healthy_choice(costs, costs.wire_share * bytes.value()).second);
  return time_at_ranks(op, bytes, group) + network;
}

Seconds CollectiveModel::time_on_links(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  const auto [candidate, seconds] = healthy_choice(costs, costs.wire_share * bytes.value() / calls);
  return calls * Seconds(std::max(0.0, seconds - candidate->healthy.at_least(0)));
}

Seconds CollectiveModel::price(OpCosts& costs, double bytes, const Slice& slice) {
  auto [chosen, seconds] = chosen_time(costs, bytes, slice);
  if (recording_) record(costs, costs.candidates[chosen], slice);
  if (!std::isfinite(seconds)) {
    if (!cut_group_) cut_group_ = costs.group;
    return Seconds(0);
  }
  Candidate& candidate = costs.candidates[chosen];
  if (costs.closed) {
    const double undisturbed = healthy() ? seconds : healthy_time(costs, candidate, bytes);
    seconds += beyond_links(costs, candidate, bytes, undisturbed);
  }
  return Seconds(at_ranks(candidate, bytes, memory_share_) + seconds);
}

/// Seconds by which the closed form of a call inside a node exceeds the time at the ranks plus that on healthy links
/// (`healthy`); 0 where it does not. Copies in a slow memory count as time at the ranks, as on a machine with such
/// memories only.
double CollectiveModel::beyond_links(const OpCosts& costs, const Candidate& candidate, double bytes,
                                     double healthy) const {
  const std::optional<Seconds> closed = closed_form(costs, costs.busiest * bytes);
  if (!closed) return 0;
  const double whole = (communication_.call + *closed).value();
  return std::max(0.0, whole - at_ranks(candidate, bytes, memory_share_) - healthy);
}

/// `bytes` as the network counts them.
std::optional<Seconds> CollectiveModel::closed_form(const OpCosts& costs, double bytes) const {
  if (is_exchange(costs.op)) return exchange_time(costs, bytes);
  const std::int32_t n = costs.group.size();
  return costs.op == CollectiveOp::all_reduce
             ? all_reduce_time(*node_, communication_.all_reduce, n, Bytes(bytes), costs.node_link)
             : nccl_time(node_->nccl, operation_of(costs.op), n, Bytes(bytes), costs.node_link);
}

std::optional<Seconds> CollectiveModel::exchange_time(const OpCosts& costs, double bytes) const {
  if (node_ == nullptr || exchange_.hidden <= 0 || !exchange_.closed_form) return std::nullopt;
  const bool quick = is_low_latency(costs.op);
  const DispatchKernels kernels = quick ? DispatchKernels::low_latency : DispatchKernels::normal;
  const bool out =
      costs.op == CollectiveOp::expert_dispatch || costs.op == CollectiveOp::low_latency_dispatch;
  const double value = out ? exchange_.dispatch_value : bytes_per_element(Precision::bf16);
  const double copies = bytes / costs.wire_share / (value * exchange_.hidden);
  ExpertExchange call;
  call.tokens = copies / exchange_.top_k;
  call.hidden = exchange_.hidden;
  call.top_k = exchange_.top_k;
  call.experts = exchange_.experts;
  call.ranks = costs.group.size();
  call.nodes = costs.domains;
  if (costs.domains > 1 && !quick) call.nodes_met = costs.wire_share * exchange_.top_k;
  call.sms = exchange_.sms;
  call.value_bytes = value;
  const DispatchWay way = out ? DispatchWay::dispatch : DispatchWay::combine;
  const auto time = expert_exchange_time(node_->experts, kernels, way, call);
  if (time || costs.domains <= 1 || quick) return time;
  call.ranks = std::max(1.0, call.ranks / costs.domains);
  call.nodes = 1;
  return expert_exchange_time(node_->experts, DispatchKernels::normal, way, call);
}

Bytes CollectiveModel::wire_bytes(CollectiveOp op, Bytes bytes, const RankGroup& group) {
  if (group.alone() || bytes <= Bytes(0) || !is_exchange(op)) return bytes;
  return costs_of(op, group).wire_share * bytes;
}

/// `bytes` as the network counts them.
Seconds CollectiveModel::beyond_links(CollectiveOp op, Bytes bytes, const RankGroup& group) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  if (!costs.closed) return Seconds(0);
  Candidate& candidate = costs.candidates.front();
  return Seconds(
      beyond_links(costs, candidate, bytes.value(), healthy_time(costs, candidate, bytes.value())));
}

namespace {

/// Seconds by which a call behind an equal one is shorter, where a link is sick. Only ranks beyond that link are late:
/// those before it have entered the next call, and its messages are under way, while the late ones are still at theirs
/// (at_ranks(), and what a node adds to its links: a and b). With h seconds on healthy links and s on these, a call
/// follows the other after max(s, (h + s) / 2 + a + b): either the link is never idle, or ranks are ahead in every
/// other call.
Seconds spared_behind(double healthy, double sick, Seconds call) {
  return Seconds(std::max(0.0, std::min(call.value() - sick, (sick - healthy) / 2)));
}

}  // namespace

Seconds CollectiveModel::time(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls,
                              const Slice& slice) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  const double one = costs.wire_share * bytes.value() / calls;
  const Seconds first = price(costs, one, slice);
  if (healthy() || calls <= 1) return calls * first;
  const double now = chosen_time(costs, one, slice).second;
  if (!std::isfinite(now)) return calls * first;
  return calls * first - (calls - 1) * spared_behind(healthy_choice(costs, one).second, now, first);
}

Seconds CollectiveModel::late_combine(Bytes bytes, const RankGroup& group, Seconds work, const Slice& slice) {
  const Seconds all = time(CollectiveOp::combine, bytes, group, 1, slice);
  if (group.alone()) return all;
  const std::vector<double> shares = skew_of(CollectiveOp::combine, group).shares;
  if (shares.size() < 2 || bytes <= Bytes(0) || unreachable()) return all;
  const auto [least, most] = std::ranges::minmax(shares);
  const Seconds alone = time(CollectiveOp::last_combine, bytes, group, 1, slice);
  if (unreachable()) return all;
  const Seconds sick = added_by_faults(CollectiveOp::combine, bytes, group, slice), well = all - sick;
  return std::clamp(well - (1 - least / most) * work, std::min(alone, well), well) + sick;
}

void CollectiveModel::boundary_times(Bytes bytes, const RankGroup& group, bool closed,
                                     std::vector<double>& seconds) {
  const std::int32_t members = group.size(), used = closed ? members : members - 1;
  seconds.assign(static_cast<std::size_t>(members), 0);
  if (members == 1 || bytes <= Bytes(0)) return;
  GroupCosts& costs = group_costs(group);
  const bool shortcuts = healthy() && !recording_ && !reference_;
  if (shortcuts && costs.alike >= static_cast<std::size_t>(used)) {
    std::fill_n(seconds.begin(), used, price(costs.boundaries.front(), bytes.value(), {}).value());
    return;
  }
  for (std::int32_t b = 0; b < used; ++b) {
    OpCosts& boundary = boundary_costs(costs, group, b);
    const auto index = static_cast<std::size_t>(b);
    const std::size_t same = costs.same_boundary[index];
    seconds[index] = shortcuts && same < index ? seconds[same] : price(boundary, bytes.value(), {}).value();
  }
}

std::pair<CollectiveModel::Candidate*, double> CollectiveModel::healthy_choice(OpCosts& costs, double bytes) {
  if (reference_ || !memoise_ || costs.affine) {
    Candidate& candidate = costs.candidates[choose(costs, bytes)];
    return {&candidate, healthy_time(costs, candidate, bytes)};
  }
  const auto key = std::bit_cast<std::uint64_t>(bytes);
  auto known = costs.by_bytes.find(key);
  if (known == costs.by_bytes.end()) {
    (void)remembered(costs, bytes, {});
    known = costs.by_bytes.find(key);
  }
  return {&costs.candidates[known->second.chosen], known->second.healthy};
}

Seconds CollectiveModel::time_within_slice(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls,
                                           RankGroup::Level axis) {
  if (group.alone() || bytes <= Bytes(0)) return Seconds(0);
  OpCosts& costs = costs_of(op, group);
  const double one = costs.wire_share * bytes.value() / calls;
  const auto [candidate, together] = healthy_choice(costs, one);
  const auto [entry, fresh] = candidate->within.try_emplace(axis);
  if (fresh) {
    entry->second = healthy_curve(costs, *candidate, representatives(costs, {axis, 0}), axis);
  }
  constexpr double kAnyBound = 1e9;
  double alone = std::min(together, entry->second.at(one, *healthy_, kAnyBound));
  if (costs.closed) alone += beyond_links(costs, *candidate, one, alone);
  return calls * Seconds(at_ranks(*candidate, one, memory_share_) + alone);
}

const LinkSet& CollectiveModel::links(const Asked& asked) {
  OpCosts& costs = costs_of(asked.op, asked.group);
  return links_of(costs, *healthy_choice(costs, costs.wire_share * asked.bytes.value() / asked.calls).first);
}

const LinkSet& CollectiveModel::tile_links(const Asked& asked) {
  OpCosts& costs = costs_of(asked.op, asked.group);
  const double sent = costs.wire_share * asked.bytes.value() / asked.calls;
  return healthy_choice(costs, sent).first->healthy.links();
}

std::size_t CollectiveModel::LinksHash::operator()(
    const std::pair<const LinkSet*, const LinkSet*>& sets) const {
  return hash_word(std::bit_cast<std::uintptr_t>(sets.first), std::bit_cast<std::uintptr_t>(sets.second));
}

bool CollectiveModel::meet(const Asked& one, const Asked& other) {
  if (!knows_tiles()) {
    const LinkSet of_one = links(one);  // a copy: without the memo, the next question overwrites it
    return of_one.intersects(links(other));
  }
  const LinkSet &first = tile_links(one), &second = tile_links(other);
  const auto [known, fresh] = met_.try_emplace({&first, &second});
  if (fresh)
    known->second = first.intersects(second) ||
                    (share_dimensions(fabric_, first, second) && links(one).intersects(links(other)));
  return known->second;
}

const LinkLoads& CollectiveModel::loads(const Asked& asked, Looked looked) {
  OpCosts& costs = costs_of(asked.op, asked.group);
  const double sent = costs.wire_share * asked.bytes.value() / asked.calls;
  return loads_of(costs, *healthy_choice(costs, sent).first, looked);
}

/// Lists each distinct load once per dimension, with the number of the dimension in place of the link.
LinkLoads CollectiveModel::by_dimension(const LinkLoads& loads) const {
  LinkLoads different;
  for (LinkLoad load : loads) {
    load.link = fabric_.links()[static_cast<std::size_t>(load.link)].dimension;
    const auto last = different.rbegin();  // most are equal to the one before
    if (last != different.rend() && *last == load) continue;
    if (std::ranges::find(different, load) == different.end()) different.push_back(load);
  }
  return different;
}

KeptPaces CollectiveModel::paces_of_all(const Asked& one, const Asked& other) {
  const LinkLoads first = loads(one);  // a copy: without the memo, the next question overwrites it
  return kept_paces(first, loads(other));
}

KeptPaces CollectiveModel::paces_from_tile(const Asked& one, const Asked& other) {
  SHARDSCAPE_CHECK(knows_tiles(),
                   one.group.size());  // so that loads are remembered, and the references stay valid
  if (!meet(one, other)) return {};
  const LinkLoads &first = loads(one, Looked::tile), &second = loads(other, Looked::tile);
  const KeptPaces paces = kept_paces(first, second);
  // Elsewhere they meet on links of the same dimensions, at worst at these paces; if the tile is as slow, it decides.
  const bool decides = paces == least_paces(loads(one, Looked::dimensions), loads(other, Looked::dimensions));
  return decides ? paces : paces_of_all(one, other);
}

std::optional<CurveKey> CollectiveModel::shared_key(const Asked& asked) {
  OpCosts& costs = costs_of(asked.op, asked.group);
  const double sent = costs.wire_share * asked.bytes.value() / asked.calls;
  return shared_key(costs, *healthy_choice(costs, sent).first, {});
}

KeptPaces CollectiveModel::shared_paces(const Asked& one, const Asked& other) {
  const std::optional<CurveKey> first = shared_key(one), second = shared_key(other);
  if (!first || !second) return paces_from_tile(one, other);
  if (const auto known = store_->find(*first, *second)) return *known;
  const KeptPaces paces = paces_from_tile(one, other);
  store_->keep(*first, *second, paces);
  return paces;
}

KeptPaces CollectiveModel::paces_together(const Asked& one, const Asked& other) {
  if (!knows_tiles()) return paces_of_all(one, other);
  const auto [known, fresh] = paces_.try_emplace({&tile_links(one), &tile_links(other)});
  if (fresh) known->second = shared_paces(one, other);
  return known->second;
}

/// Uses per dimension, as if in each dimension the largest uses of all operations fell on one link.
LinkUses CollectiveModel::uses_by_dimension(std::span<const Asked> operations) {
  std::vector<LinkLoads> most;
  std::vector<const LinkLoads*> each;
  for (const Asked& asked : operations) most.push_back(heaviest_by_link(loads(asked, Looked::dimensions)));
  for (const LinkLoads& of : most) each.push_back(&of);
  return LinkUses(each);
}

LinkUses CollectiveModel::uses_of_all(std::span<const Asked> operations) {
  std::vector<LinkLoads> all;  // copies: without the memo, the next question overwrites them
  std::vector<const LinkLoads*> each;
  for (const Asked& asked : operations) all.push_back(loads(asked));
  for (const LinkLoads& of : all) each.push_back(&of);
  return LinkUses(each);
}

Seconds CollectiveModel::busiest_link(std::span<const Asked> operations, std::span<const Seconds> sending,
                                      Seconds beyond) {
  const auto longer = [&](Seconds busy) { return busy > beyond ? busy : Seconds(0); };
  if (!knows_tiles()) return longer(uses_of_all(operations).busiest(sending));
  asked_loads_.clear();
  for (const Asked& asked : operations) asked_loads_.push_back(&loads(asked, Looked::tile));
  auto known = uses_.find(asked_loads_);
  if (known == uses_.end())
    known = uses_.try_emplace(asked_loads_, Uses{uses_by_dimension(operations), {}, {}}).first;
  Uses& uses = known->second;
  // No link is busier than its dimension would be as one link; if a link of the tile is as busy, it is the busiest of
  // all.
  const Seconds most = uses.by_dimension.busiest(sending);
  if (most <= beyond) return Seconds(0);
  if (!uses.of_tile) uses.of_tile.emplace(asked_loads_);
  const Seconds least = uses.of_tile->busiest(sending);
  if (least >= kRounding * most) return longer(least);
  if (!uses.of_all) uses.of_all = uses_of_all(operations);
  return longer(uses.of_all->busiest(sending));
}

std::optional<CollectiveChoice> CollectiveModel::choice(CollectiveOp op, Bytes bytes, const RankGroup& group,
                                                        double calls) {
  if (group.alone() || bytes <= Bytes(0) || is_send(op)) return std::nullopt;
  OpCosts& costs = costs_of(op, group);
  return healthy_choice(costs, costs.wire_share * bytes.value() / calls).first->choice;
}

}  // namespace shardscape::network
