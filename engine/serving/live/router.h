// Which of several servers alike a request goes to when it comes (LiveRules::routing).
#pragma once

#include <algorithm>
#include <vector>

#include "engine/serving/least.h"
#include "engine/serving/live/live_server.h"

namespace shardscape::serving {

class Router {
 public:
  /// `rules` must outlive its use.
  explicit Router(const LiveRules& rules)
      : rules_(rules), unfinished_(static_cast<std::size_t>(rules.servers), 0) {}

  /// How many requests a server has now that are not done.
  void note_unfinished(std::size_t server, std::int64_t requests) {
    if (rules_.routing != Routing::round_robin) unfinished_.set(server, requests);
  }

  /// By its number in turn, or to the server with the fewest requests; prefix_aware: to the one that has most of the
  /// prompt cached, where that is over half of it and no server has far more to do than another (SGLang's router:
  /// cache_threshold 0.5, balance_abs_threshold 32, balance_rel_threshold 1.1).
  [[nodiscard]] std::size_t server_for(const DrawnRequest& request, std::vector<LiveServer>& servers) const {
    if (rules_.routing == Routing::round_robin)
      return static_cast<std::size_t>(request.number) % servers.size();
    const std::size_t idlest = unfinished_.index();
    if (rules_.routing == Routing::least_loaded) return idlest;
    constexpr std::int64_t kApart = 32;
    constexpr double kRatio = 1.1;
    std::size_t best = idlest;
    std::int64_t most = 0, busiest = 0;
    for (std::size_t i = 0; i < servers.size(); ++i) {
      servers[i].settle(request.ready);  // sequences that grow push others' blocks out
      const std::int64_t found = servers[i].state().blocks_found(request);
      if (found > most) most = found, best = i;
      busiest = std::max(busiest, unfinished_[i]);
    }
    const std::int64_t fewest = unfinished_.value();
    const bool apart =
        busiest - fewest > kApart && static_cast<double>(busiest) > kRatio * static_cast<double>(fewest);
    return apart || 2 * most * rules_.kv_block <= request.prompt ? idlest : best;
  }

 private:
  const LiveRules& rules_;
  Least<std::int64_t> unfinished_;
};

}  // namespace shardscape::serving
