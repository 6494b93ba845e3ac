// Caches on their way from servers that read to servers that decode (pooled_course.h, live/serve_pools.h): parts of a
// cache that leave when they are ordered, over flows that share links max-min fairly (fluid.h), and arrive with the
// latest of their flows. Flows that always run at the same rate are one (alike_caches.h), and latencies are taken off
// the wires, so that a cache has one event, when its last flow arrives, not one for each.
//
// Beside caches the traffic of servers' own iterations may go over the links.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/network/flows/fluid.h"
#include "engine/serving/alike_caches.h"

namespace shardscape::serving {

/// The servers of a pool, in so many replicas, of which `coupled` belong to a server.
struct PoolReplicas {
  std::int64_t servers, replicas, coupled;
  /// The replica that has a request: the one numbered `which` of the coupled ones of a server.
  [[nodiscard]] std::int64_t of(std::int64_t server, std::int64_t which) const {
    return server / (servers * coupled / replicas) * coupled + which;
  }
};

class CacheTransfers {
 public:
  /// All references of the fabric must outlive this object.
  explicit CacheTransfers(const KvFabric& fabric)
      : pairs_(static_cast<std::size_t>(fabric.prefill_replicas * fabric.decode_replicas)),
        caches_(alike_caches(fabric)) {
    for (network::Connection& connection : caches_.wires.connections)
      latencies_.push_back(std::exchange(connection.latency, 0));
    fluid_.reset(caches_.wires, caches_.bytes_per_second);
    meet_servers();
  }
  CacheTransfers(const CacheTransfers&) = delete;
  CacheTransfers& operator=(const CacheTransfers&) = delete;

  [[nodiscard]] double now() const { return fluid_.now(); }
  /// The end of this instant: moments up to it are equal but for rounding.
  [[nodiscard]] double end_of_instant() const { return now() * (1 + network::kTie); }
  [[nodiscard]] static double before(double moment) { return moment * (1 - network::kTie); }
  [[nodiscard]] double next_time() const { return ordered_.empty() ? fluid_.next_time() : now(); }
  /// Of all that was sent.
  [[nodiscard]] double bytes_sent() const { return bytes_sent_; }

  /// Orders a part of a request's cache to be sent between a pair of replicas. `share`: bytes to send over those of the
  /// mean request's cache. `last`: the cache has arrived when this part has. Flows may change only when an instant
  /// settles: the part leaves with send_ordered().
  void order(std::int32_t cache, std::size_t pair, double share, bool last) {
    if (ways_.size() <= static_cast<std::size_t>(cache)) ways_.resize(static_cast<std::size_t>(cache) + 1);
    Way& way = way_of(cache);
    ++way.awaited;
    way.whole = last;
    ordered_.push_back({cache, pair, share});
  }
  /// Sends what has been ordered; false where nothing has.
  bool send_ordered() {
    if (ordered_.empty()) return false;
    Receiver receiver{*this};
    for (const auto& [cache, pair, share] : std::exchange(ordered_, {})) {
      const std::span<const KvFlow> flows = caches_.of(pair);
      way_of(cache).awaited += static_cast<std::int32_t>(flows.size());
      ++sends_;
      bytes_sent_ += share * caches_.bytes[pair];
      for (const KvFlow& flow : flows)
        fluid_.send(flow.connection, {share * flow.bytes, cache, sends_}, receiver);
      finish_flow(cache);
    }
    return true;
  }
  /// arrived(cache) for each that has arrived, in the order of their last sends; false where none has.
  template <class Arrived>
  bool land(const Arrived& arrived) {
    if (arrived_.empty()) return false;
    std::ranges::sort(arrived_);
    for (const auto& [send, cache] : std::exchange(arrived_, {})) {
      way_of(cache) = {};
      arrived(cache);
    }
    return true;
  }

  // ---- traffic of iterations ----

  /// Whether iterations of a server send on links that caches use.
  [[nodiscard]] bool shares_links(std::size_t server) const {
    return pairs_ + server < caches_.begin.size() - 1 && !caches_.of(pairs_ + server).empty();
  }
  /// Whether there are caches on these links now.
  [[nodiscard]] bool is_met(std::size_t server) const { return on_links_[server] > 0; }
  /// An iteration begins to send for so many seconds, were it alone.
  void send_iteration(std::size_t server, double seconds) {
    const KvFlow& flow = caches_.of(pairs_ + server).front();
    Receiver receiver{*this};
    fluid_.send(flow.connection, {seconds * flow.bytes, static_cast<std::int32_t>(server), kIteration},
                receiver);
  }
  /// ended(server) for those whose iterations have sent all; false where there are none.
  template <class Ended>
  bool end_sending(const Ended& ended) {
    const std::vector<std::int32_t> servers = std::exchange(sent_, {});
    for (const std::int32_t server : servers) ended(static_cast<std::size_t>(server));
    return !servers.empty();
  }
  /// changed(server) for those whose links got caches, or lost them, since the last call; false where there are none.
  template <class Changed>
  bool note_meetings(const Changed& changed) {
    const std::vector<std::size_t> servers = std::exchange(changed_, {});
    for (const std::size_t server : servers) changed(server);
    return !servers.empty();
  }

  /// Does all that happens at a time up to next_time(); see FluidHandler::settle() for `settle`.
  template <class Settle>
  void advance_at(double time, const Settle& settle) {
    Instant<Settle> instant{{*this}, settle};
    fluid_.advance_at(time, instant);
  }

 private:
  struct Parcel {
    double bytes = 0;
    std::int32_t id = 0;      ///< cache, or server
    std::int64_t number = 0;  ///< of the send
  };
  using Network = network::Fluid<Parcel>;
  static constexpr std::int64_t kIteration = -1;  ///< in the place of a send's number

  struct Receiver {
    CacheTransfers& all;
    void deliver(std::int32_t connection, const Parcel& parcel) { all.deliver(connection, parcel); }
  };
  template <class Settle>
  struct Instant : Receiver {
    const Settle& settled;
    void wake(std::int32_t cache) {
      this->all.arrived_.emplace_back(this->all.way_of(cache).last_send, cache);
    }
    bool settle() { return settled(); }
    void rate_changed(std::int32_t connection, double rate) { this->all.note_rate(connection, rate > 0); }
  };
  /// A cache on its way.
  struct Way {
    std::int32_t awaited = 0;  ///< flows that have not left yet, and sends not begun
    bool whole = false;        ///< its last part has been ordered
    std::int64_t last_send = 0;
    double arrival = 0;  ///< of the latest of the flows that have left
  };
  struct Order {
    std::int32_t cache;
    std::size_t pair;
    double share;
  };

  [[nodiscard]] Way& way_of(std::int32_t cache) { return ways_[static_cast<std::size_t>(cache)]; }

  /// The last byte of a parcel leaves; it arrives after the latency of its wire.
  void deliver(std::int32_t connection, const Parcel& parcel) {
    if (parcel.number == kIteration) return sent_.push_back(parcel.id);
    Way& way = way_of(parcel.id);
    way.arrival = std::max(way.arrival, now() + latencies_[static_cast<std::size_t>(connection)]);
    way.last_send = std::max(way.last_send, parcel.number);
    finish_flow(parcel.id);
  }
  void finish_flow(std::int32_t cache) {
    Way& way = way_of(cache);
    if (--way.awaited == 0 && way.whole) fluid_.wake_at(std::max(way.arrival, now()), cache);
  }

  /// Lists, for each connection of caches, the servers whose iterations use one of its links.
  void meet_servers() {
    const std::size_t servers = caches_.begin.size() - 1 - pairs_;
    on_links_.assign(servers, 0);
    met_.resize(caches_.wires.connections.size());
    active_.assign(met_.size(), 0);
    for (std::size_t server = 0; server < servers; ++server) {
      if (!shares_links(server)) continue;
      const std::int32_t own = caches_.of(pairs_ + server).front().connection;
      const std::span<const std::int32_t> links = path(own);
      for (std::size_t c = 0; c < met_.size(); ++c) {
        const auto other = static_cast<std::int32_t>(c);
        const auto common = [&](std::int32_t link) { return std::ranges::find(links, link) != links.end(); };
        if (other != own && std::ranges::any_of(path(other), common)) met_[c].push_back(server);
      }
    }
    for (std::size_t server = 0; server < servers; ++server)  // those of iterations are no caches
      if (shares_links(server))
        met_[static_cast<std::size_t>(caches_.of(pairs_ + server).front().connection)].clear();
  }
  [[nodiscard]] std::span<const std::int32_t> path(std::int32_t connection) const {
    const network::Connection& c = caches_.wires.connections[static_cast<std::size_t>(connection)];
    return std::span(caches_.wires.path_links)
        .subspan(static_cast<std::size_t>(c.path_begin), static_cast<std::size_t>(c.path_end - c.path_begin));
  }
  void note_rate(std::int32_t connection, bool active) {
    const auto c = static_cast<std::size_t>(connection);
    if (met_[c].empty() || (active_[c] != 0) == active) return;
    active_[c] = active ? 1 : 0;
    for (const std::size_t server : met_[c]) {
      on_links_[server] += active ? 1 : -1;
      changed_.push_back(server);
    }
  }

  const std::size_t pairs_;
  AlikeCaches caches_;
  std::vector<double> latencies_;  ///< of the connections of caches_, in seconds
  Network fluid_;
  std::vector<Way> ways_;  ///< index: cache
  std::vector<Order> ordered_;
  std::vector<std::pair<std::int64_t, std::int32_t>> arrived_;  ///< number of the last send, cache
  std::int64_t sends_ = 0;
  double bytes_sent_ = 0;
  std::vector<std::vector<std::size_t>> met_;  ///< by connection of caches: servers
  std::vector<char> active_;                   ///< by connection of caches: it sends
  std::vector<std::int64_t> on_links_;         ///< by server: connections of caches that send
  std::vector<std::size_t> changed_;           ///< servers
  std::vector<std::int32_t> sent_;             ///< servers
};

}  // namespace shardscape::serving
