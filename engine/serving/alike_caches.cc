// Reduces the flows of caches step by step: drops links that never limit, finds the connections and links that are
// alike, and lays out one connection and one link for each class.
#include "engine/serving/alike_caches.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "engine/base/refinement.h"

namespace shardscape::serving {

namespace {

constexpr std::int32_t kNone = -1;
/// Capacities that differ less than this, relative, are equal: they are products with a stack's share, and rounded.
constexpr double kSameCapacity = 1e-14;

class Reducer {
 public:
  explicit Reducer(const KvFabric& fabric) : fabric_(fabric), wires_(fabric.wires) {}

  AlikeCaches reduce() {
    join_bytes();
    drop_slack_links();
    find_classes();
    weigh_links();
    join_links();
    lay_out();
    return std::move(out_);
  }

 private:
  /// The link that stands for a class: how often each class of connections counts on it.
  struct Link {
    double capacity = 0;
    /// Class of connections, number of times; ascending.
    std::vector<std::pair<std::int32_t, std::int32_t>> counts;
  };

  /// The links of a connection that have not been dropped.
  [[nodiscard]] std::span<const std::int32_t> path(std::size_t connection) const {
    return std::span(path_links_)
        .subspan(static_cast<std::size_t>(path_begin_[connection]),
                 static_cast<std::size_t>(path_size_[connection]));
  }
  [[nodiscard]] double capacity(std::int32_t link) const {
    return fabric_.bytes_per_second[static_cast<std::size_t>(link)];
  }

  /// Adds up what one request sends on each connection: its parts follow each other there, as one parcel would.
  void join_bytes() {
    pair_.assign(wires_.connections.size(), kNone);
    bytes_.assign(wires_.connections.size(), 0);
    for (std::size_t pair = 0; pair < fabric_.flows.size(); ++pair) {
      for (const KvFlow& flow : fabric_.flows[pair]) {
        const auto connection = static_cast<std::size_t>(flow.connection);
        const auto number = static_cast<std::int32_t>(pair);
        shared_ = shared_ || (pair_[connection] != kNone && pair_[connection] != number);
        pair_[connection] = number;
        bytes_[connection] += flow.bytes;
      }
    }
  }

  /// Drops links that never limit anything: all that crosses such a link also crosses others which together have no
  /// more capacity. Links may be dropped one after the other, each because of those that are left then.
  void drop_slack_links() {
    path_links_ = wires_.path_links;
    // By link: the connections that cross it.
    std::vector<std::vector<std::int32_t>> crossed(fabric_.bytes_per_second.size());
    for (std::size_t c = 0; c < wires_.connections.size(); ++c) {
      const network::Connection& connection = wires_.connections[c];
      path_begin_.push_back(connection.path_begin);
      path_size_.push_back(pair_[c] == kNone ? 0 : connection.path_end - connection.path_begin);
      for (const std::int32_t link : path(c))
        crossed[static_cast<std::size_t>(link)].push_back(static_cast<std::int32_t>(c));
    }
    counted_.assign(crossed.size(), kNone);
    for (std::size_t l = 0; l < crossed.size(); ++l) {
      if (crossed[l].empty()) continue;
      const auto link = static_cast<std::int32_t>(l);
      if (!covered(link, crossed[l], End::first) && !covered(link, crossed[l], End::last)) continue;
      for (const std::int32_t connection : crossed[l]) leave_out(link, static_cast<std::size_t>(connection));
    }
  }

  enum class End : std::uint8_t { first, last };
  /// Whether the links at one end of all these connections together have no more capacity than this link.
  bool covered(std::int32_t link, const std::vector<std::int32_t>& connections, End end) {
    ++count_;
    double sum = 0;
    for (const std::int32_t connection : connections) {
      const std::span<const std::int32_t> links = path(static_cast<std::size_t>(connection));
      const std::int32_t cover = end == End::first ? links.front() : links.back();
      if (cover == link) return false;
      std::int32_t& counted = counted_[static_cast<std::size_t>(cover)];
      if (counted == count_) continue;
      counted = count_;
      sum += capacity(cover);
      if (sum > capacity(link) * (1 + kSameCapacity)) return false;
    }
    return true;
  }

  void leave_out(std::int32_t link, std::size_t connection) {
    const auto begin = path_links_.begin() + path_begin_[connection];
    const auto end = begin + path_size_[connection];
    const auto at = std::find(begin, end, link);
    std::move(at + 1, end, at);
    --path_size_[connection];
  }

  /// Sorts connections that carry caches and the links that they cross into classes.
  void find_classes() {
    const std::size_t connections = wires_.connections.size();
    std::vector<Signature> are(connections + fabric_.bytes_per_second.size());
    for (std::size_t c = 0; c < connections; ++c) {
      // A connection that two pairs use is a class of its own, as it cannot be known when both use it.
      are[c].add(shared_ ? c : static_cast<std::uint64_t>(pair_[c]));
      are[c].add(bytes_[c]);
    }
    for (std::size_t l = connections; l < are.size(); ++l)
      are[l].add(fabric_.bytes_per_second[l - connections]);
    const Meetings meetings(are.size(), [&](auto meet) {
      for (std::size_t c = 0; c < connections; ++c)
        for (const std::int32_t link : path(c)) meet(c, 0, connections + static_cast<std::size_t>(link), 0);
    });
    std::vector<std::int32_t> of = refine(meetings, std::move(are)).of();
    for (std::size_t c = 0; c < connections; ++c)
      if (pair_[c] == kNone) of[c] = kNone;
    for (std::size_t l = connections; l < of.size(); ++l)
      if (meetings.of(l).empty()) of[l] = kNone;
    connection_classes_ = number_classes(std::span(of).first(connections));
    link_classes_ = number_classes(std::span(of).subspan(connections));
  }

  void weigh_links() {
    links_.resize(link_classes_.first.size());
    for (std::size_t l = 0; l < links_.size(); ++l)
      links_[l].capacity = fabric_.bytes_per_second[static_cast<std::size_t>(link_classes_.first[l])];
    // In the order of classes, so that the counts of each link ascend.
    std::vector<std::pair<std::int32_t, std::int32_t>> order;
    for (std::size_t c = 0; c < wires_.connections.size(); ++c)
      if (connection_classes_.of[c] != kNone)
        order.emplace_back(connection_classes_.of[c], static_cast<std::int32_t>(c));
    std::ranges::sort(order);
    for (const auto& [number, connection] : order) {
      for (const std::int32_t link : path(static_cast<std::size_t>(connection))) {
        const std::int32_t l = link_classes_.of[static_cast<std::size_t>(link)];
        if (link_classes_.first[static_cast<std::size_t>(l)] != link) continue;
        auto& counts = links_[static_cast<std::size_t>(l)].counts;
        if (counts.empty() || counts.back().first != number) counts.emplace_back(number, 0);
        ++counts.back().second;
      }
    }
    for (Link& link : links_) {
      std::int32_t common = 0;
      for (const auto& [number, times] : link.counts) common = std::gcd(common, times);
      link.capacity /= common;
      for (auto& [number, times] : link.counts) times /= common;
    }
  }

  /// Joins links with the same flows; the narrowest counts.
  void join_links() {
    std::map<std::vector<std::pair<std::int32_t, std::int32_t>>, Link*> first;
    for (Link& link : links_) {
      const auto [same, fresh] = first.try_emplace(link.counts, &link);
      if (fresh) continue;
      same->second->capacity = std::min(same->second->capacity, link.capacity);
      link.counts.clear();
    }
  }

  void lay_out() {
    std::vector<std::vector<std::int32_t>> paths(connection_classes_.first.size());
    for (const Link& link : links_) {
      if (link.counts.empty()) continue;
      const auto number = static_cast<std::int32_t>(out_.bytes_per_second.size());
      out_.bytes_per_second.push_back(link.capacity);
      for (const auto& [connection, times] : link.counts)
        paths[static_cast<std::size_t>(connection)].insert(paths[static_cast<std::size_t>(connection)].end(),
                                                           static_cast<std::size_t>(times), number);
    }
    for (std::size_t c = 0; c < paths.size(); ++c) {
      network::Connection connection =
          wires_.connections[static_cast<std::size_t>(connection_classes_.first[c])];
      connection.path_begin = static_cast<std::int32_t>(out_.wires.path_links.size());
      out_.wires.path_links.insert(out_.wires.path_links.end(), paths[c].begin(), paths[c].end());
      connection.path_end = static_cast<std::int32_t>(out_.wires.path_links.size());
      out_.wires.connections.push_back(connection);
    }
    for (std::size_t c = 0; c < wires_.connections.size(); ++c) {
      if (connection_classes_.of[c] == kNone) continue;
      double& latency = out_.wires.connections[static_cast<std::size_t>(connection_classes_.of[c])].latency;
      latency = std::max(latency, wires_.connections[c].latency);
    }
    lay_out_flows();
  }

  void lay_out_flows() {
    std::vector<std::int32_t> listed(out_.wires.connections.size(),
                                     kNone);  // by connection: the pair whose flow was listed last
    out_.begin.push_back(0);
    for (std::size_t pair = 0; pair < fabric_.flows.size(); ++pair) {
      double bytes = 0;
      for (const KvFlow& flow : fabric_.flows[pair]) {
        bytes += flow.bytes;
        const std::int32_t number = connection_classes_.of[static_cast<std::size_t>(flow.connection)];
        std::int32_t& last = listed[static_cast<std::size_t>(number)];
        if (!shared_ && last == static_cast<std::int32_t>(pair)) continue;
        last = static_cast<std::int32_t>(pair);
        out_.flows.push_back(
            {number, shared_ ? flow.bytes : bytes_[static_cast<std::size_t>(flow.connection)]});
      }
      out_.begin.push_back(static_cast<std::int32_t>(out_.flows.size()));
      out_.bytes.push_back(bytes);
    }
  }

  const KvFabric& fabric_;
  const network::Traffic& wires_;
  AlikeCaches out_;
  bool shared_ = false;  ///< whether two pairs use one connection
  // By connection: the pair of replicas whose caches it carries, and the bytes of one cache on it.
  std::vector<std::int32_t> pair_;
  std::vector<double> bytes_;
  // The paths of the connections, without dropped links.
  std::vector<std::int32_t> path_links_, path_begin_, path_size_;
  std::vector<std::int32_t> counted_;  ///< by link: the latest count that it was part of
  std::int32_t count_ = 0;
  Classes connection_classes_, link_classes_;
  std::vector<Link> links_;
};

}  // namespace

AlikeCaches alike_caches(const KvFabric& fabric) { return Reducer(fabric).reduce(); }

}  // namespace shardscape::serving
