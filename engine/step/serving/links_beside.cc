#include "engine/step/serving/links_beside.h"

#include <algorithm>
#include <set>
#include <span>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/network/groups/rank_group.h"

namespace shardscape::step {

namespace {

using LinkNumbers = std::set<std::int32_t>;

/// The links of caches that come from, or go to, each replica of a pool.
std::vector<LinkNumbers> links_of_caches(const KvTraffic& traffic, std::int64_t readers,
                                         std::int64_t decoders, bool reads) {
  std::vector<LinkNumbers> links(static_cast<std::size_t>(reads ? readers : decoders));
  for (std::int64_t pair = 0; pair < readers * decoders; ++pair) {
    LinkNumbers& of = links[static_cast<std::size_t>(reads ? pair / decoders : pair % decoders)];
    for (const serving::KvFlow& flow : traffic.flows[static_cast<std::size_t>(pair)]) {
      const network::Connection& c = traffic.wires.connections[static_cast<std::size_t>(flow.connection)];
      for (std::int32_t i = c.path_begin; i < c.path_end; ++i)
        of.insert(traffic.wires.path_links[static_cast<std::size_t>(i)]);
    }
  }
  return links;
}

/// What the calls of a pool's iterations do on the links of caches.
class CallsOnLinks {
 public:
  CallsOnLinks(const Pool& pool, const LinkNumbers& caches)
      : collectives_(pool.collectives), layout_(pool.inputs.plan), caches_(caches) {}

  void add(const PartCost& part, double count) {
    for (const PartCost::Call& call : part.calls) {
      const network::CollectiveKey key{call.op, call.bytes, layout_.group(call.group)};
      if (key.nothing()) continue;
      const double often = count * call.repeats;
      seconds_[class_of(call.group)] += often * collectives_.time(key).value();
      double use = 0;
      for (const network::LinkLoad& load : collectives_.healthy().loads(key)) {
        for (std::int32_t link = load.link; link < load.end(); ++link) {
          if (!caches_.contains(link)) continue;
          use = std::max(use, load.use);
          used.insert(link);
        }
      }
      if (use > 0)
        busy_[class_of(call.group)] += often * use * collectives_.healthy().time_on_links(key).value();
    }
  }
  [[nodiscard]] serving::SendingShares shares() const {
    serving::SendingShares shares{};
    for (const TimeClass c : serving::kServingClasses)
      if (seconds_[c] > 0) shares[c] = std::min(1.0, busy_[c] / seconds_[c]);
    return shares;
  }

  LinkNumbers used;  ///< links of caches that calls use

 private:
  const network::CollectivePrices& collectives_;
  const network::PlanLayout layout_;
  const LinkNumbers& caches_;
  serving::SendingShares seconds_{}, busy_{};
};

/// Adds the flow of each server of a pool that has links in common with caches.
void add_servers(const Pool& pool, const TokenCost& typical, const std::vector<LinkNumbers>& caches,
                 std::span<const double> rates, KvTraffic& traffic,
                 std::vector<std::vector<serving::KvFlow>>& flows, serving::LivePool& live) {
  LinkNumbers all;
  for (const LinkNumbers& links : caches) all.insert(links.begin(), links.end());
  CallsOnLinks calls(pool, all);
  for (const auto& [kind, count] : model::all_layers(pool.setting.model))
    calls.add(typical.blocks[kind], count);
  live.on_links = calls.shares();
  const std::int64_t groups = pool.inputs.shape.groups, ranks = live.rules.ranks;
  for (std::int64_t server = 0; server < live.rules.servers; ++server) {
    LinkNumbers common;
    for (std::int64_t replica = server / groups * ranks; replica < (server / groups + 1) * ranks; ++replica)
      for (const std::int32_t link : caches[static_cast<std::size_t>(replica)])
        if (calls.used.contains(link)) common.insert(link);
    flows.emplace_back();
    if (common.empty()) continue;
    std::vector<std::int32_t>& path = traffic.wires.path_links;
    const auto begin = static_cast<std::int32_t>(path.size());
    path.insert(path.end(), common.begin(), common.end());
    double rate = rates[static_cast<std::size_t>(*common.begin())];
    for (const std::int32_t link : common) rate = std::min(rate, rates[static_cast<std::size_t>(link)]);
    flows.back().push_back({static_cast<std::int32_t>(traffic.wires.connections.size()), rate});
    traffic.wires.connections.push_back({0, 0, begin, static_cast<std::int32_t>(path.size()), 0});
  }
}

}  // namespace

void share_links(const Pool& prefill, const Pool& decode, std::span<const double> rates, KvTraffic& traffic,
                 serving::LivePool& readers, serving::LivePool& decoders) {
  const std::int64_t from = prefill.inputs.plan.data, to = decode.inputs.plan.data;
  const std::int64_t prompt =
      std::min(prefill.setting.system.stack.serving.token_budget, prefill.setting.workload.prompt_tokens);
  const ServingShape& shape = decode.inputs.shape;
  const std::int64_t sequences = std::max<std::int64_t>(1, std::min(shape.clients, shape.slots));
  std::vector<std::vector<serving::KvFlow>> flows;
  const auto typical = [](const Pool& pool, TokenTable table, std::int64_t tokens) {
    return pool.memo.token_costs(pool.setting, pool.inputs.plan).at(table, tokens);
  };
  add_servers(prefill, typical(prefill, TokenTable::prompt, prompt), links_of_caches(traffic, from, to, true),
              rates, traffic, flows, readers);
  add_servers(decode, typical(decode, TokenTable::decode, sequences),
              links_of_caches(traffic, from, to, false), rates, traffic, flows, decoders);
  const bool any = std::ranges::any_of(flows, [](const auto& list) { return !list.empty(); });
  if (any) traffic.flows.insert(traffic.flows.end(), flows.begin(), flows.end());
}

}  // namespace shardscape::step
