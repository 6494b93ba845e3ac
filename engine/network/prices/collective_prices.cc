#include "engine/network/prices/collective_prices.h"

#include <cmath>

#include "engine/base/check.h"

namespace shardscape::network {

CollectivePrices CollectivePrices::without_faults() const {
  CollectivePrices view = *this;
  view.ignores_faults_ = true;
  return view;
}

CollectivePrices CollectivePrices::with_memory(double share) const {
  SHARDSCAPE_CHECK(share > 0 && share <= 1, share);
  CollectivePrices view = *this;
  view.memory_share_ = share;
  return view;
}

/// The way that carries out a call, and what it takes of the links. A slow message may leave a link to others in time,
/// and all may end sooner than on healthy links; that is chance, which no plan is to be chosen for.
CollectivePrices::OnLinks CollectivePrices::on_links(OperationCosts& costs, double bytes,
                                                     const Slice& slice) const {
  const ChosenWay chosen = healthy_->choose(costs, bytes);
  OnLinks links{costs.ways[chosen.way], chosen.seconds, chosen.seconds};
  if (has_faults() && sick_->slow(costs, links.way, slice))
    links.now = std::max(links.healthy, sick_->seconds(costs, links.way, bytes));
  return links;
}

/// The time of one call; notes the links that it depends on, and whether it is cut off.
Seconds CollectivePrices::price(const OperationCosts& costs, const OnLinks& links, double bytes,
                                const Slice& slice) const {
  if (recorder_ != nullptr) recorder_->add(sick_->links_minded(costs, links.way, slice));
  if (!std::isfinite(links.now)) {
    sick_->cut(costs.group);
    return Seconds(0);
  }
  const double more = healthy_->beyond_links(costs, links.way, bytes, links.healthy, memory_share_);
  return Seconds(healthy_->at_ranks(links.way, bytes, memory_share_) + (links.now + more));
}

CollectivePrices::Priced CollectivePrices::priced(const CollectiveKey& key) const {
  if (key.nothing()) return {};
  OperationCosts& costs = healthy_->operation(key.op, key.group);
  const double sent = costs.sent_by(key);
  const OnLinks links = on_links(costs, sent, key.slice);
  const Seconds first = price(costs, links, sent, key.slice);
  if (!has_faults() || !std::isfinite(links.now)) return {key.calls * first, {}};
  const double added = std::max(0.0, links.now - links.healthy);
  if (key.calls <= 1) return {key.calls * first, Seconds(added)};
  return {key.calls * first - (key.calls - 1) * Seconds(saved_in_row(costs, links, sent, {0.0})),
          Seconds(added)};
}

double CollectivePrices::saved_in_row(const OperationCosts& costs, const OnLinks& links, double bytes,
                                      Gaps gaps) const {
  const double steps = healthy_->in_steps(links.way),
               at_ranks = healthy_->at_ranks(links.way, bytes, memory_share_),
               more = healthy_->beyond_links(costs, links.way, bytes, links.healthy, memory_share_);
  for (Gap& gap : gaps) gap.seconds += at_ranks - steps + more;
  return sick_->saved_in_row(
      costs, links.way, bytes,
      {links.way.steps > 0 ? steps / links.way.steps : 0, gaps, links.healthy, links.now});
}

Seconds CollectivePrices::saved_in_row(const CollectiveKey& key, const Gaps& between) const {
  if (key.nothing() || !has_faults()) return Seconds(0);
  OperationCosts& costs = healthy_->operation(key.op, key.group);
  const double sent = costs.sent_by(key);
  const OnLinks links = on_links(costs, sent, key.slice);
  if (!std::isfinite(links.now) || links.now <= links.healthy) return Seconds(0);
  return Seconds(saved_in_row(costs, links, sent, between));
}

bool CollectivePrices::unequal_loads(const CollectiveKey& combine) const {
  return !combine.nothing() && !unreachable() &&
         !healthy_->operation(combine.op, combine.group).senders.loads.empty();
}

BusiestExchange CollectivePrices::busiest_exchange(const CollectiveKey& dispatch,
                                                   const CollectiveKey& combine, Seconds work) const {
  const double back = healthy_->wire_bytes(combine.op, combine.bytes, combine.group).value(),
               out = healthy_->wire_bytes(dispatch.op, dispatch.bytes, dispatch.group).value();
  return {healthy_->time_on_links(dispatch).value(), healthy_->time_on_links(combine).value(), work.value(),
          0, out > 0 ? back / out : 0};
}

Seconds CollectivePrices::crowded_by_loads(const CollectiveKey& dispatch, const CollectiveKey& combine,
                                           Seconds work) const {
  if (!unequal_loads(combine)) return Seconds(0);
  const BusiestExchange of = busiest_exchange(dispatch, combine, work);
  return Seconds(crowded_dispatch(healthy_->operation(combine.op, combine.group).senders, of));
}

Seconds CollectivePrices::sooner_by_loads(const CollectiveKey& dispatch, const CollectiveKey& combine,
                                          Seconds work) const {
  if (!unequal_loads(combine)) return Seconds(0);
  BusiestExchange of = busiest_exchange(dispatch, combine, work);
  // What kernels send beyond a domain its members send in equal parts, so that the busiest has no more than others.
  CollectiveKey of_few = combine;
  of_few.op = CollectiveOp::last_combine;
  of.alone = is_exchange(combine.op) ? 0 : healthy_->time_on_links(of_few).value();
  const Bytes out = healthy_->wire_bytes(dispatch.op, dispatch.bytes, dispatch.group);
  of.dispatch += healthy_->beyond_links(dispatch.op, out, dispatch.group).value();
  // Kernels take what they take, however soon their links are done.
  const double back = healthy_->wire_bytes(combine.op, combine.bytes, combine.group).value();
  OperationCosts& costs = healthy_->operation(combine.op, combine.group);
  const ChosenWay chosen = healthy_->choose(costs, back);
  const auto whole = [&](double on_links) {
    return on_links + healthy_->beyond_links(costs, costs.ways[chosen.way], back, on_links, memory_share_);
  };
  const double sooner = of.combine - last_to_end(costs.senders, of);
  return Seconds(whole(chosen.seconds) - whole(chosen.seconds - sooner));
}

Seconds CollectivePrices::late_exchange(const CollectiveKey& combine, Seconds lead, double gone) const {
  const Seconds all = time(combine);
  if (lead <= Seconds(0) || combine.nothing()) return all;
  CollectiveKey of_one = combine;
  of_one.op = CollectiveOp::last_combine;
  of_one.bytes = healthy_->wire_bytes(combine.op, combine.bytes, combine.group);
  const Seconds sent_before = gone * (healthy_->time_on_links(combine) - healthy_->time_on_links(of_one));
  return all - std::clamp(sent_before, Seconds(0), lead);
}

double CollectivePrices::priced_on(OperationCosts& boundary, Bytes bytes) const {
  return price(boundary, on_links(boundary, bytes.value(), {}), bytes.value(), {}).value();
}

void CollectivePrices::boundary_times(Bytes bytes, const RankGroup& group, bool closed,
                                      std::vector<double>& seconds, std::vector<double>& back) const {
  const std::int32_t members = group.size(), used = closed ? members : members - 1;
  seconds.assign(static_cast<std::size_t>(members), 0);
  back = seconds;
  if (members == 1 || bytes <= Bytes(0)) return;
  BoundaryCosts& costs = healthy_->boundaries(group);
  const bool shortcuts = !has_faults() && recorder_ == nullptr && !healthy_->plain();
  const auto priced = [&](OperationCosts& boundary) { return priced_on(boundary, bytes); };
  if (shortcuts && costs.alike >= static_cast<std::size_t>(used)) {
    std::fill_n(seconds.begin(), used, priced(costs.each.front()));
    back = seconds;
    return;
  }
  for (std::int32_t b = 0; b < used; ++b) {
    OperationCosts& boundary = healthy_->boundary(costs, group, b);
    const auto index = static_cast<std::size_t>(b);
    const std::size_t same = costs.same[index];
    if (!has_faults() || !sick_->touch(healthy_->links_of(boundary, boundary.ways.front()))) {
      seconds[index] = back[index] = shortcuts && same < index ? seconds[same] : priced(boundary);
      continue;
    }
    // On healthy links messages both ways at once take as long as one of them, or longer where they share some.
    const double well = without_faults().priced_on(boundary, bytes);
    seconds[index] = std::max(well, priced(healthy_->message(costs, group, b, false)));
    back[index] = std::max(well, priced(healthy_->message(costs, group, b, true)));
  }
}

}  // namespace shardscape::network
