// Finds shares of the members of a group, copies of tokens on their way (token_copies.h), and the call of a kernel that
// moves them (expert_dispatch.h).
#include "engine/network/prices/expert_traffic.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <utility>

#include "engine/base/check.h"
#include "engine/network/collectives/collective_rows.h"
#include "engine/network/collectives/expert_dispatch.h"

namespace shardscape::network {

namespace {

/// Members with more than this share of the busiest member's load end their work at the same time as that one.
constexpr double kNearlyBusiest = 0.9;

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

}  // namespace

std::vector<double> ExpertTraffic::member_shares(std::size_t members) const {
  const std::size_t each = setup_.expert_shares.size() / members;
  SHARDSCAPE_CHECK(each * members == setup_.expert_shares.size(), members, setup_.expert_shares.size());
  std::vector<double> shares;
  for (std::size_t first = 0; first < setup_.expert_shares.size(); first += each) {
    const auto part = std::span(setup_.expert_shares).subspan(first, each);
    shares.push_back(std::accumulate(part.begin(), part.end(), 0.0));
  }
  return shares;
}

/// How many copies of a token an exchange sends to each member on average. If groups span domains, the first group
/// stands for all.
std::vector<double> ExpertTraffic::copy_chances(const SiblingGroups& groups) const {
  const std::vector<double> shares = member_shares(groups.size);
  const std::vector<std::int64_t> domains = places_of(setup_.fabric, groups.group(0), LinkScope::scale_out);
  TokenTargets to = token_targets(static_cast<double>(groups.size));
  to.shares = shares;
  to.domain_of = domains;
  return copies_by_member(to);
}

TokenTargets ExpertTraffic::token_targets(double members) const {
  const TokenExchange& exchange = setup_.exchange;
  return {exchange.top_k, exchange.groups, exchange.top_groups, members, 1, {}, {}};
}

Skew ExpertTraffic::skew_of(CollectiveOp op, const RankGroup& group) const {
  if (!is_exchange(op) || setup_.expert_shares.empty())
    return skew_of(op, static_cast<std::size_t>(group.size()));
  return skew_of(op, sibling_groups(group, setup_.fabric, setup_.placement));
}

Skew ExpertTraffic::skew_of(CollectiveOp op, const SiblingGroups& groups) const {
  if (!is_exchange(op) || setup_.expert_shares.empty()) return skew_of(op, groups.size);
  Skew skew{copy_chances(groups), op == CollectiveOp::expert_combine};
  const double all = std::accumulate(skew.shares.begin(), skew.shares.end(), 0.0);
  for (double& share : skew.shares) share /= all;
  return skew;
}

/// The parts of an operation that is no exchange, or of one without loads: there one member stands for the busiest.
Skew ExpertTraffic::skew_of(CollectiveOp op, std::size_t members) const {
  Skew skew;
  skew.of_sender = op == CollectiveOp::combine || op == CollectiveOp::last_combine;
  if (setup_.expert_shares.empty() && op == CollectiveOp::last_combine) {
    skew.shares.assign(members, 0);
    skew.shares.front() = 1 / static_cast<double>(members);
  }
  if (!is_skewed(op) || setup_.expert_shares.empty()) return skew;
  skew.shares = member_shares(members);
  if (op == CollectiveOp::last_combine) {
    const double least = kNearlyBusiest * std::ranges::max(skew.shares);
    for (double& share : skew.shares) share = share < least ? 0 : share;
  }
  return skew;
}

ExpertTraffic::Senders ExpertTraffic::senders_of(CollectiveOp op, const SiblingGroups& groups) const {
  if (op != CollectiveOp::combine && op != CollectiveOp::expert_combine) return {};
  if (setup_.expert_shares.empty()) return {};
  Senders senders{member_shares(groups.size), skew_of(op, groups).shares,
                  places_of(setup_.fabric, groups.group(0), LinkScope::scale_out)};
  const double most = std::ranges::max(senders.loads);
  for (double& load : senders.loads) load /= most;
  // Within one domain each member has links of its own.
  if (most_domains(setup_.fabric, groups) <= 1)
    std::iota(senders.domains.begin(), senders.domains.end(), std::int64_t{0});
  return senders;
}

double crowded_dispatch(const ExpertTraffic::Senders& senders, const BusiestExchange& of) {
  const std::size_t busiest =
      static_cast<std::size_t>(std::ranges::max_element(senders.loads) - senders.loads.begin());
  struct Flow {
    double begins, left;
  };
  std::vector<Flow> combines;
  for (std::size_t i = 0; i < senders.loads.size(); ++i) {
    if (senders.domains[i] == senders.domains[busiest]) continue;
    combines.push_back({senders.loads[i] * (of.dispatch + of.work),
                        of.ratio * of.dispatch * senders.parts[i] / senders.parts[busiest]});
  }
  const double flows = static_cast<double>(combines.size());
  for (Flow& flow : combines) flow.left /= flows;
  double now = 0, left = of.dispatch / std::max(1.0, flows);  // of each of the dispatch's flows
  for (; left > 0 && flows > 0;) {
    double under_way = flows, until = std::numeric_limits<double>::infinity(), least = left;
    for (const Flow& flow : combines) {
      if (flow.left <= 0) continue;
      if (flow.begins > now) {
        until = std::min(until, flow.begins);
        continue;
      }
      under_way += 1;
      least = std::min(least, flow.left);
    }
    const double each = std::min(least, (until - now) / under_way);
    for (Flow& flow : combines)
      if (flow.begins <= now) flow.left = flow.left > each ? flow.left - each : 0;
    left = left > each ? left - each : 0;
    now = each < least ? until : now + each * under_way;
  }
  return std::max(0.0, now - of.dispatch);
}

double last_to_end(const ExpertTraffic::Senders& senders, const BusiestExchange& of) {
  struct Sent {
    std::int64_t domain;
    double before;  ///< the end of the busiest member's work, seconds
    double part;
  };
  std::vector<Sent> sent;
  for (std::size_t i = 0; i < senders.loads.size(); ++i)
    sent.push_back({senders.domains[i], (1 - senders.loads[i]) * (of.dispatch + of.work), senders.parts[i]});
  std::ranges::sort(sent, [](const Sent& a, const Sent& b) {
    return std::pair(a.domain, a.before) < std::pair(b.domain, b.before);
  });
  const auto each_sum = [&](const auto& visit) {  // of what a domain sends from some moment on
    double sum = 0;
    for (std::size_t i = 0; i < sent.size(); ++i) {
      if (i > 0 && sent[i].domain != sent[i - 1].domain) sum = 0;
      visit(sent[i].before, sum += sent[i].part);
    }
  };
  double most = 0, last = std::min(of.alone, of.combine);
  each_sum([&](double /*before*/, double sum) { most = std::max(most, sum); });
  each_sum([&](double before, double sum) { last = std::max(last, sum / most * of.combine - before); });
  return last;
}

ExpertTraffic::Reach ExpertTraffic::reach_of(CollectiveOp op, const SiblingGroups& groups) const {
  Reach reach;
  if (operation_of(op) != Operation::all_to_all) return reach;
  reach.domains = most_domains(setup_.fabric, groups);
  if (!is_exchange(op) || is_low_latency(op)) return reach;
  TokenTargets to = token_targets(static_cast<double>(groups.size));
  to.domains = reach.domains;
  double copies = copies_sent(to);
  if (!setup_.expert_shares.empty()) {
    const std::vector<double> chances = copy_chances(groups);
    copies = std::accumulate(chances.begin(), chances.end(), 0.0);
  }
  reach.wire_share = copies / setup_.exchange.top_k;
  return reach;
}

std::optional<Seconds> ExpertTraffic::kernel_time(CollectiveOp op, double members, const Reach& reach,
                                                  double bytes) const {
  const TokenExchange& exchange = setup_.exchange;
  if (setup_.node == nullptr || exchange.hidden <= 0 || !exchange.closed_form) return std::nullopt;
  const bool quick = is_low_latency(op);
  const DispatchKernels kernels = quick ? DispatchKernels::low_latency : DispatchKernels::normal;
  const bool out = op == CollectiveOp::expert_dispatch || op == CollectiveOp::low_latency_dispatch;
  const double value = out ? exchange.dispatch_value : bytes_per_element(Precision::bf16);
  const double copies = bytes / reach.wire_share / (value * exchange.hidden);
  ExpertExchange call;
  call.tokens = copies / exchange.top_k;
  call.hidden = exchange.hidden;
  call.top_k = exchange.top_k;
  call.experts = exchange.experts;
  call.ranks = members;
  call.nodes = reach.domains;
  if (reach.domains > 1 && !quick) call.nodes_met = reach.wire_share * exchange.top_k;
  call.sms = exchange.sms;
  call.value_bytes = value;
  const DispatchWay way = out ? DispatchWay::dispatch : DispatchWay::combine;
  const auto time = expert_exchange_time(setup_.node->experts, kernels, way, call);
  if (time || reach.domains <= 1 || quick) return time;
  call.ranks = std::max(1.0, call.ranks / reach.domains);
  call.nodes = 1;
  return expert_exchange_time(setup_.node->experts, DispatchKernels::normal, way, call);
}

}  // namespace shardscape::network
