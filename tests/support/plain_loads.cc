#include "tests/support/plain_loads.h"

#include <algorithm>
#include <deque>
#include <list>
#include <optional>
#include <utility>

namespace shardscape::serving {

namespace {

constexpr double kNever = PlainLiveServer::kNever;

/// The clients, and what counts of what they send.
class PlainClients {
 public:
  PlainClients(const Offered& offered, const LiveRules& rules, double frontend, PlainLive& out)
      : offered_(offered), load_(offered.load), frontend_(frontend), draws_(load_, offered.every), out_(out) {
    const bool steady = load_.statistic == ClientStatistic::steady;
    warm_up_ = steady ? load_.warm_up.of(offered.clients) : 0;
    all_ = warm_up_ + load_.requests.of(offered.clients);
    most_ = steady ? 2 * all_ + offered.clients + rules.max_batch * rules.servers : all_;
    measuring = warm_up_ == 0;
    for (std::int64_t i = 0; i < (load_.open() ? 1 : offered.clients); ++i) send(0);
  }
  PlainClients(const PlainClients&) = delete;
  PlainClients& operator=(const PlainClients&) = delete;

  [[nodiscard]] bool over() const { return done_ == all_; }
  [[nodiscard]] double next() const { return underway_.empty() ? kNever : underway_.front().ready; }
  DrawnRequest take() {
    DrawnRequest request = underway_.front();
    underway_.pop_front();
    request.number = taken_++;
    if (load_.open() && request.turn == 0) send(0);
    return request;
  }
  void is_done(const PlainLiveRequest& request, double now) {
    go_on(request.request, now);
    if (over()) return;
    if (++done_ > warm_up_) out_.done.push_back(request);
    if (done_ == warm_up_) measuring = true, out_.begin = now, before_ = taken_;
    out_.end = now;
    out_.came = taken_ - before_;
    out_.goes_on = taken_ < most_;
  }

  bool measuring = false;

 private:
  /// The next request of nobody before: of a client, or of a session that begins.
  void send(double now) {
    if (sent_ >= most_) return;
    const DrawnRequest request = load_.open() ? draws_.next_arrival() : draws_.request(begun_++);
    send_at(load_.open() ? request.sent : now, request);
  }
  void send_at(double moment, DrawnRequest request) {
    if (sent_++ >= most_) return;
    request.sent = moment;
    request.ready = moment + frontend_;
    const auto later = [&](const DrawnRequest& other) { return other.ready > request.ready; };
    const auto ties = [&](const DrawnRequest& other) { return other.ready == request.ready; };
    out_.tied = out_.tied || (load_.sessions && std::ranges::any_of(underway_, ties));
    underway_.insert(std::ranges::find_if(underway_, later), request);
  }
  /// Whoever got an answer goes on.
  void go_on(const DrawnRequest& answered, double now) {
    if (!load_.sessions) {
      if (!load_.open()) send(now);
      return;
    }
    const double then = now + draws_.think_time(answered);
    if (const auto next = draws_.turn_after(answered)) {
      send_at(then, *next);
    } else if (!load_.open()) {
      send(then);
    }
  }

  const Offered& offered_;
  const LoadSpec& load_;
  const double frontend_;
  DrawnRequests draws_;
  PlainLive& out_;
  std::list<DrawnRequest> underway_;
  std::int64_t warm_up_ = 0, all_ = 0, most_ = 0, sent_ = 0, begun_ = 0, taken_ = 0, done_ = 0, before_ = 0;
};

template <class Servers>
PlainLiveServer& routed(Servers& servers, const LiveRules& rules, const DrawnRequest& request) {
  if (rules.routing == Routing::round_robin)
    return *std::next(servers.begin(), request.number % rules.servers);
  const auto idlest = std::ranges::min_element(servers, {}, &PlainLiveServer::unfinished);
  if (rules.routing == Routing::least_loaded) return *idlest;
  const auto best = std::ranges::max_element(
      servers, {}, [&](const PlainLiveServer& s) { return s.found(request) * rules.kv_block; });
  const auto most = std::ranges::max_element(servers, {}, &PlainLiveServer::unfinished)->unfinished();
  const bool apart = most - idlest->unfinished() > 32 &&
                     static_cast<double>(most) > 1.1 * static_cast<double>(idlest->unfinished());
  return apart || 2 * best->found(request) * rules.kv_block <= request.prompt ? *idlest : *best;
}

}  // namespace

PlainLive serve_load_plainly(const Offered& offered, const LiveRules& rules, const Timer& timer) {
  PlainLive out;
  PlainClients clients(offered, rules, rules.frontend, out);
  std::list<PlainLiveServer> servers;
  for (std::int64_t i = 0; i < rules.servers; ++i) servers.emplace_back(rules, timer, out, clients.measuring);
  while (!clients.over()) {
    const auto ending = std::ranges::min_element(servers, {}, &PlainLiveServer::end);
    const auto waking = std::ranges::min_element(servers, {}, &PlainLiveServer::wake);
    const double next = clients.next();
    const double soon = std::min(ending->end, next) * (1 + 1e-9);
    const auto near = std::ranges::count_if(servers, [&](const PlainLiveServer& s) { return s.end <= soon; });
    if (near + (next <= soon ? 1 : 0) > 1 && soon < kNever) out.tied = true;
    if (next <= std::min(ending->end, waking->wake)) {
      const DrawnRequest request = clients.take();
      routed(servers, rules, request).take(request, request.ready);
    } else if (ending->end <= waking->wake) {
      const double now = ending->end;
      for (const PlainLiveRequest& request : ending->finish()) clients.is_done(request, now);
    } else {
      waking->start();
    }
  }
  const auto tokens = static_cast<double>(rules.kv_blocks * rules.kv_block * rules.servers);
  out.kv_mean /= tokens * (out.end - out.begin);
  return out;
}

namespace {

LiveRules rules_of_readers(LiveRules rules, std::uint64_t seed) {
  rules.reads_only = true;
  rules.on_demand = false;
  rules.drafts = 0;
  rules.poll_interval = 1;
  if (rules.policy == ServingPolicy::trtllm) rules.schedule_ahead = 0;
  rules.drawn_ranks = rules.policy == ServingPolicy::sglang && rules.ranks > 1;
  rules.rank_seed = seed;
  return rules;
}

/// Caches on their way: those from one replica to another go one after the other, and what comes to a decoder shares
/// its link evenly, what this sends by itself included.
class PlainWires {
 public:
  struct Cache {
    PlainLiveRequest request;
    double left = 0;
    std::size_t reader = 0, decoder = 0;
    std::int64_t sent = 0;  ///< so many were sent before
  };
  PlainWires(const PooledServers& in, std::uint64_t seed, double rate, double latency, double bytes_per_token)
      : readers_(rules_of_readers(in.prefill.rules, seed)),
        ranks_(in.decode.rules.ranks),
        replicas_(in.decode.rules.servers * ranks_),
        lines_(static_cast<std::size_t>(readers_.servers * readers_.ranks * replicas_)),
        own_(static_cast<std::size_t>(in.decode.rules.servers), 0),
        rate_(rate),
        latency_(latency),
        bytes_per_token_(bytes_per_token) {}

  [[nodiscard]] double bytes_of(const DrawnRequest& request) const {
    return bytes_per_token_ * request.prompt;
  }

  void send(Cache cache) {
    cache.sent = sent_++;
    const std::int64_t number = cache.request.request.number;
    const std::int64_t from =
        static_cast<std::int64_t>(cache.reader) * readers_.ranks + rank_of(readers_, number);
    const std::int64_t to = static_cast<std::int64_t>(cache.decoder) * ranks_ + number % ranks_;
    lines_[static_cast<std::size_t>(from * replicas_ + to)].push_back(cache);
  }
  /// An iteration of a decoder sends for so many seconds, were it alone.
  void send_own(std::size_t decoder, double seconds) { own_[decoder] = seconds * rate_; }
  /// Whether it has sent all.
  bool has_sent_own(std::size_t decoder) { return std::exchange(own_done_[decoder], 0) != 0; }
  [[nodiscard]] double next() const {
    double next = landing_.empty() ? kNever : landing_.front().first;
    for (const auto& line : lines_)
      if (!line.empty()) next = std::min(next, now_ + line.front().left / rate(line.front().decoder));
    for (std::size_t d = 0; d < own_.size(); ++d)
      if (own_[d] > 0) next = std::min(next, now_ + own_[d] / rate(d));
    return next;
  }
  void advance(double now) {
    std::vector<double> rates, own_rates;
    for (const auto& line : lines_) rates.push_back(line.empty() ? 0 : rate(line.front().decoder));
    for (std::size_t d = 0; d < own_.size(); ++d) own_rates.push_back(own_[d] > 0 ? rate(d) : 0);
    for (std::size_t d = 0; d < own_.size(); ++d) {
      if (own_[d] <= 0) continue;
      own_done_[d] = now_ + own_[d] / own_rates[d] <= now * (1 + 1e-13) ? 1 : 0;
      own_[d] = own_done_[d] != 0 ? 0 : own_[d] - (now - now_) * own_rates[d];
    }
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i].empty()) continue;
      const bool done = now_ + lines_[i].front().left / rates[i] <= now * (1 + 1e-13);
      lines_[i].front().left -= (now - now_) * rates[i];
      if (!done) continue;
      landing_.emplace_back(now + latency_, lines_[i].front());
      lines_[i].pop_front();
    }
    now_ = now;
  }
  std::vector<Cache> landed(double now) {
    std::vector<Cache> all;
    for (; !landing_.empty() && landing_.front().first <= now; landing_.pop_front())
      all.push_back(landing_.front().second);
    std::ranges::sort(all, {}, &Cache::sent);
    return all;
  }

 private:
  [[nodiscard]] double rate(std::size_t decoder) const {
    double busy = own_[decoder] > 0 ? 1 : 0;
    for (const auto& line : lines_) busy += !line.empty() && line.front().decoder == decoder ? 1 : 0;
    return rate_ / busy;
  }
  LiveRules readers_;
  std::int64_t ranks_, replicas_;
  std::vector<std::deque<Cache>> lines_;
  std::deque<std::pair<double, Cache>> landing_;
  std::vector<double> own_;  ///< by decoder: bytes that its iteration has to send
  std::vector<char> own_done_ = std::vector<char>(own_.size(), 0);
  double rate_, latency_, bytes_per_token_;
  double now_ = 0;
  std::int64_t sent_ = 0;
};

/// Two pools, from one instant to the next.
class PlainPooledLoad {
 public:
  PlainPooledLoad(const Offered& offered, const PooledServers& in, const PlainWires& wires, PlainLive& out)
      : in_(in),
        rules_(rules_of_readers(in.prefill.rules, offered.load.seed)),
        clients_(offered, in.decode.rules, rules_.frontend, out),
        wires_(wires),
        assigned_(static_cast<std::size_t>(in.decode.rules.servers)),
        expected_(assigned_.size()),
        late_(static_cast<std::size_t>(rules_.servers)),
        look_at_(late_.size(), kNever),
        out_(out) {
    for (std::int64_t i = 0; i < rules_.servers; ++i)
      readers_.emplace_back(rules_, in.prefill.timer, reading_, clients_.measuring);
    for (std::int64_t i = 0; i < in.decode.rules.servers; ++i)
      decoders_.emplace_back(in.decode.rules, in.decode.timer, out, clients_.measuring, in.decode.on_links);
  }
  PlainPooledLoad(const PlainPooledLoad&) = delete;
  PlainPooledLoad& operator=(const PlainPooledLoad&) = delete;

  void run() {
    while (!clients_.over()) {
      find_next();
      wires_.advance(now_);
      land();
      end_decoding();
      end_reading();
      if (clients_.over()) return;
      while (clients_.next() <= now_) {
        const DrawnRequest request = clients_.take();
        routed(readers_, rules_, request).take(request, now_);
      }
      if (clients_.next() <= now_ * (1 + 1e-9)) out_.tied = true;
      for (std::deque<PlainLiveServer>* pool : {&decoders_, &readers_})
        for (PlainLiveServer& server : *pool)
          if (server.wake <= now_) server.start();
      for (std::size_t r = 0; r < readers_.size(); ++r)
        if (!late_[r].empty() && look_at_[r] == kNever)
          look_at_[r] = now_ + (readers_[r].works() ? readers_[r].launch : 0);
    }
  }

 private:
  void find_next() {
    std::vector<double> moments = {clients_.next(), wires_.next()};
    for (const std::deque<PlainLiveServer>* pool : {&readers_, &decoders_})
      for (const PlainLiveServer& server : *pool) moments.push_back(server.end);
    // At the end of the next iteration the host looks in any case.
    for (std::size_t r = 0; r < readers_.size(); ++r)
      if (look_at_[r] * (1 + 1e-9) < readers_[r].end) moments.push_back(look_at_[r]);
    std::ranges::sort(moments);
    if (moments[0] > 0 && moments[1] <= moments[0] * (1 + 1e-9)) out_.tied = true;
    now_ = moments[0];
  }
  void fill(std::size_t d) {
    while (!expected_[d].empty() && decoders_[d].expect(expected_[d].front().request.request)) {
      wires_.send(expected_[d].front());
      expected_[d].pop_front();
    }
  }
  void count(const PlainLiveRequest& request, std::size_t d) {
    --assigned_[d];
    clients_.is_done(request, now_);
  }
  void land() {
    for (const PlainWires::Cache& cache : wires_.landed(now_)) {
      readers_[cache.reader].let_go(cache.request.request, now_);
      const auto ended = decoders_[cache.decoder].land(cache.request, now_);
      if (ended) count(*ended, cache.decoder), fill(cache.decoder);
    }
  }
  void end_decoding() {
    for (std::size_t d = 0; d < decoders_.size(); ++d) {
      if (wires_.has_sent_own(d)) decoders_[d].end = now_;
      if (decoders_[d].end > now_) continue;
      if (decoders_[d].to_send > 0) {
        wires_.send_own(d, std::exchange(decoders_[d].to_send, 0));
        decoders_[d].end = kNever;
        continue;
      }
      for (const PlainLiveRequest& request : decoders_[d].finish()) count(request, d);
      fill(d);
    }
  }
  void end_reading() {
    for (std::size_t r = 0; r < readers_.size(); ++r) {
      if (readers_[r].end > now_) continue;
      look(r);
      for (const PlainLiveRequest& request : readers_[r].finish()) {
        readers_[r].hold(request.request);
        const auto d = static_cast<std::size_t>(std::ranges::min_element(assigned_) - assigned_.begin());
        ++assigned_[d];
        late_[r].push_back({request, wires_.bytes_of(request.request), r, d, 0});
        late_[r].back().request.tokens.clear();
      }
      const bool goes_on = readers_[r].wake <= now_;
      const bool launches = rules_.policy == ServingPolicy::sglang && rules_.schedule_ahead > 0;
      if (!launches || !readers_[r].host_bound || !goes_on) look(r);
    }
    for (std::size_t r = 0; r < readers_.size(); ++r)
      if (look_at_[r] <= now_) look(r);
  }
  /// The host of a server that reads looks at what has been read.
  void look(std::size_t r) {
    look_at_[r] = kNever;
    for (const PlainWires::Cache& cache : late_[r]) {
      expected_[cache.decoder].push_back(cache);
      fill(cache.decoder);
    }
    late_[r].clear();
  }

  const PooledServers& in_;
  LiveRules rules_;  ///< of servers that read
  PlainWork reading_;
  PlainClients clients_;
  PlainWires wires_;
  std::deque<PlainLiveServer> readers_, decoders_;
  std::vector<std::int64_t> assigned_;
  std::vector<std::deque<PlainWires::Cache>> expected_;
  std::vector<std::vector<PlainWires::Cache>> late_;  ///< by server: read, and not looked at
  std::vector<double> look_at_;                       ///< when that will be
  double now_ = 0;
  PlainLive& out_;
};

}  // namespace

PlainLive serve_pools_plainly(const Offered& offered, const PooledServers& in, double rate, double latency,
                              double bytes_per_token) {
  PlainLive out;
  PlainPooledLoad(offered, in, PlainWires(in, offered.load.seed, rate, latency, bytes_per_token), out).run();
  return out;
}

}  // namespace shardscape::serving
