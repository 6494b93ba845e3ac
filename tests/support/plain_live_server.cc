#include "tests/support/plain_live_server.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "tests/support/plain_live_item.h"

namespace shardscape::serving {

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

class PlainLiveServer {
 public:
  PlainLiveServer(const LiveRules& rules, const Timer& timer, PlainLive& out, bool& measuring)
      : rules_(rules), timer_(timer), out_(out), measuring_(measuring) {}

  double end = kNever, wake = kNever;
  std::list<DrawnRequest> arrived;

  [[nodiscard]] std::int64_t unfinished() const {
    return static_cast<std::int64_t>(arrived.size() + waiting_.size() + running_.size() + ready_.size());
  }

  /// Tokens of a context of that length which are there, in whole blocks; its last token is always read.
  [[nodiscard]] std::int64_t found(const DrawnRequest& request, std::int64_t context) const {
    std::int64_t block = 0;
    while (block < (context - 1) / rules_.kv_block && kept_.contains(name(request, block))) ++block;
    return block * rules_.kv_block;
  }

  void start() {
    begin_ = wake;
    wake = kNever;
    for (LiveItem& item : ready_) item.admission = ++admissions_;
    running_.splice(running_.end(), ready_);
    const bool none = std::ranges::none_of(running_, [](const LiveItem& i) { return !i.reads(); });
    if (none || since_look_ % rules_.poll_interval == 0) {
      for (const DrawnRequest& request : arrived) {
        waiting_.emplace_back();
        waiting_.back().request = request;
        waiting_.back().start_over();
      }
      arrived.clear();
    }
    for (LiveItem& item : running_) item.piece = 0;
    grows_ = false;
    plan();
    Iteration work;
    double progressing = 0;
    for (LiveItem& item : running_) {
      if (item.piece > 0) {
        work.add_piece(static_cast<double>(item.read), static_cast<double>(item.piece), rules_.window);
        item.read += item.piece;
        if (!item.reads()) work.first_tokens += 1, item.joins = true;
        progressing += 1;
      } else if (!item.reads() && decodes_) {
        work.decoding += 1;
        work.cached += item.held(0) + 1;
        progressing += 1;
      }
    }
    if (progressing == 0) return;  // all wait for blocks
    double seconds = total(timer_(work));
    if (work.prompt_tokens > 0) seconds = std::max(seconds, rules_.eager_floor);
    since_look_ = work.prompt_tokens > 0 ? 0 : since_look_ + 1;
    end = begin_ + seconds;
    progress_ = progressing * seconds;
    peak_ = kept_blocks();
    held_ = 0;
    for (const LiveItem& item : running_) {
      const bool grows = decodes_ && !item.reads() && item.piece == 0;
      const std::int64_t tokens = item.joins ? item.read : item.cached_in(item.since() + (grows ? 1 : 0));
      peak_ += rules_.on_demand ? blocks(tokens) : reserved(item);
      const double of_item = item.joins ? static_cast<double>(item.read) : item.held(grows ? 1 : 0);
      held_ += rules_.on_demand ? of_item : static_cast<double>(reserved(item) * rules_.kv_block);
    }
  }

  /// Ends the iteration; returns those done, by number.
  std::vector<PlainLiveRequest> finish() {
    if (measuring_) {
      out_.kv_peak =
          std::max(out_.kv_peak, static_cast<double>(peak_) / static_cast<double>(rules_.kv_blocks));
      out_.kv_mean += held_ * (end - begin_);
      out_.progress_seconds += progress_;
    }
    for (LiveItem& item : running_) {
      const bool gets = item.joins || (decodes_ && !item.reads() && item.piece == 0);
      item.joins = false;
      if (!gets) continue;
      if (measuring_ && !item.tokens.empty()) out_.gaps.push_back(end - item.tokens.back());
      item.tokens.push_back(end);
      keep(item);
    }
    std::vector<PlainLiveRequest> done;
    for (auto it = running_.begin(); it != running_.end();) {
      const bool ends = it->given() == (rules_.reads_only ? 1 : it->request.steps + 1);
      if (ends) done.push_back(*it);
      it = ends ? running_.erase(it) : std::next(it);
    }
    std::ranges::sort(done, {}, [](const PlainLiveRequest& r) { return r.request.number; });
    wake = unfinished() > 0 ? end : kNever;
    end = kNever;
    return done;
  }

  // ---- caches that move between pools ----

  /// Whether there is a place and room now for a request that was read elsewhere.
  bool expect(const DrawnRequest& request) {
    LiveItem item;
    item.request = request;
    item.start_over();
    item.read = item.context();
    const std::int64_t needed = rules_.on_demand ? blocks(item.read) : reserved(item);
    std::int64_t taken = kept_blocks();
    for (const LiveItem& other : running_) {
      const std::int64_t tokens =
          other.joins || other.reads() ? other.read : other.cached_in(other.since() + 1);
      taken += rules_.on_demand ? blocks(tokens) : reserved(other);
    }
    const std::int64_t all = places_taken();
    if (!waiting_.empty() || all >= rules_.max_batch) return false;
    if (rules_.kv_blocks - taken < needed + (all > 0 ? rules_.watermark : 0)) return false;
    moving_.push_back(item);
    return true;
  }
  /// Its cache is there; returns it if its first token is its last.
  std::optional<PlainLiveRequest> land(const DrawnRequest& request, double admitted, double now) {
    const auto item =
        std::ranges::find(moving_, request.number, [](const LiveItem& i) { return i.request.number; });
    item->tokens.push_back(now);
    item->admitted = admitted;
    std::optional<PlainLiveRequest> done;
    if (request.output == 1) {
      done = *item;
      moving_.erase(item);
    } else {
      ready_.splice(ready_.end(), moving_, item);
    }
    wake_up(now);
    return done;
  }
  void hold(const DrawnRequest& request) {
    held_items_.emplace_back();
    held_items_.back().request = request;
  }
  void let_go(const DrawnRequest& request, double now) {
    held_items_.remove_if([&](const LiveItem& i) { return i.request.number == request.number; });
    wake_up(now);
  }
  void take(const DrawnRequest& request, double now) {
    arrived.push_back(request);
    wake_up(now);
  }
  [[nodiscard]] bool works() const { return end < kNever; }
  [[nodiscard]] bool takes_more() const { return !works() && waiting_.empty(); }
  [[nodiscard]] std::int64_t unread() const {
    std::int64_t tokens = 0;
    for (const DrawnRequest& request : arrived) tokens += request.prompt;
    for (const LiveItems* list : {&waiting_, &running_})
      for (const LiveItem& item : *list) tokens += item.context() - item.read;
    return tokens;
  }

 private:
  /// Blocks have the names of those who had them first.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> name(const DrawnRequest& request,
                                                           std::int64_t block) const {
    for (const PrefixPiece& piece : request.path.shared)
      if (block < piece.end / rules_.kv_block) return {piece.owner, block};
    return {request.path.owner, block};
  }
  /// The context is there once it is read, what was given with the last token; which itself is not.
  void keep(const LiveItem& item) {
    if (!rules_.keeps_prefixes || (item.since() > 0 && item.left() > 0)) return;
    for (std::int64_t block = 0; block < item.cached() / rules_.kv_block; ++block)
      kept_.insert(name(item.request, block));
  }

  void wake_up(double now) {
    if (!works() && unfinished() > 0) wake = std::min(wake, now);
  }
  /// Blocks of caches that come or go, or have come and not joined.
  [[nodiscard]] std::int64_t kept_blocks() const {
    std::int64_t taken = 0;
    for (const LiveItems* list : {&moving_, &ready_, &held_items_})
      for (const LiveItem& item : *list)
        taken += rules_.on_demand ? blocks(item.request.prompt) : reserved(item);
    return taken;
  }
  [[nodiscard]] std::int64_t places_taken() const {
    return static_cast<std::int64_t>(running_.size() + moving_.size() + ready_.size() + held_items_.size());
  }
  [[nodiscard]] std::int64_t blocks(std::int64_t tokens) const {
    return (tokens + rules_.kv_block - 1) / rules_.kv_block;
  }
  [[nodiscard]] std::int64_t reserved(const LiveItem& item) const {
    return blocks(std::int64_t{item.request.prompt} + (rules_.reads_only ? 1 : item.request.output));
  }
  /// Blocks that are not taken, if those read in this iteration have theirs already.
  [[nodiscard]] std::int64_t free_blocks() const {
    std::int64_t taken = kept_blocks();
    for (const LiveItem& item : running_)
      taken += rules_.on_demand
                   ? blocks(item.cached_in(item.since() + (grows_ && !item.reads() ? 1 : 0)) + item.piece)
                   : reserved(item);
    return rules_.kv_blocks - taken;
  }
  [[nodiscard]] std::int64_t decoding() const {
    return std::ranges::count_if(running_, [](const LiveItem& i) { return !i.reads(); });
  }

  LiveItems::iterator next_waiting() {
    const auto before = [&](const LiveItem& a, const LiveItem& b) {
      if (a.returned != b.returned) return a.returned;
      if (!a.returned && rules_.queue == QueueOrder::shortest && a.request.prompt != b.request.prompt)
        return a.request.prompt < b.request.prompt;
      if (!a.returned && rules_.queue == QueueOrder::priority && a.request.priority != b.request.priority)
        return a.request.priority < b.request.priority;
      return a.request.number < b.request.number;
    };
    return std::ranges::min_element(waiting_, before);
  }

  void evict_youngest() {
    const auto victim = std::ranges::max_element(running_, {}, &LiveItem::admission);
    victim->start_over();
    victim->piece = 0;
    victim->returned = true;
    if (measuring_) ++out_.preemptions;
    waiting_.splice(waiting_.end(), running_, victim);
  }

  bool room_to_decode() {
    bool none = true;
    grows_ = true;
    for (;;) {
      if (!rules_.on_demand || free_blocks() >= 0) return none;
      evict_youngest();
      none = false;
    }
  }

  [[nodiscard]] bool admits(const LiveItem& item, std::int64_t tokens) const {
    if (places_taken() >= rules_.max_batch) return false;
    const std::int64_t needed = rules_.on_demand ? blocks(tokens) : reserved(item);
    return free_blocks() - needed >= (places_taken() == 0 ? 0 : rules_.watermark);
  }
  void admit(LiveItems::iterator item, std::int64_t tokens) {
    if (rules_.keeps_prefixes) item->found = item->read = found(item->request, item->context());
    item->piece = tokens;
    item->returned = false;
    item->admission = ++admissions_;
    if (item->admitted < 0) item->admitted = begin_;
    running_.splice(running_.end(), waiting_, item);
  }

  void continue_reading(std::int64_t& left, bool& kept) {
    std::vector<std::int64_t> order;
    for (const LiveItem& item : running_)
      if (item.reads()) order.push_back(item.admission);
    std::ranges::sort(order);
    for (const std::int64_t admission : order) {
      if (left == 0) return;
      const auto find = [&] { return std::ranges::find(running_, admission, &LiveItem::admission); };
      if (find() == running_.end()) continue;
      const std::int64_t tokens = std::min(left, find()->context() - find()->read);
      while (rules_.on_demand && find() != running_.end() &&
             free_blocks() < blocks(find()->read + tokens) - blocks(find()->read)) {
        evict_youngest();
        kept = false;
      }
      if (find() == running_.end()) continue;
      find()->piece = tokens;
      left -= tokens;
    }
  }

  void plan() {
    const bool beside = reads_beside(rules_.policy);
    bool kept = true;
    decodes_ = beside;
    if (beside) kept = room_to_decode();
    std::int64_t left = rules_.token_budget - (beside ? decoding() * (1 + rules_.drafts) : 0), read = 0;
    if (rules_.policy != ServingPolicy::trtllm) continue_reading(left, kept);
    for (const LiveItem& item : running_) read += item.piece > 0 ? 1 : 0;
    while (!waiting_.empty() && (kept || !beside)) {
      const auto head = next_waiting();
      const std::int64_t context =
          head->context() - (rules_.keeps_prefixes ? found(head->request, head->context()) : 0);
      std::int64_t tokens = context, wanted = context;
      if (rules_.policy == ServingPolicy::trtllm) {
        if (context > left && read > 0) break;
      } else {
        if (left <= 0) break;
        if (rules_.policy == ServingPolicy::prefill_priority) {
          if (context > left && read > 0) break;
        } else {
          tokens = std::min(left, context);
        }
        if (beside) wanted = tokens;
        if (!beside) {
          std::int64_t to_give = 0;
          auto left_free = static_cast<double>(rules_.kv_blocks * rules_.kv_block - context);
          for (const LiveItem& item : running_) {
            to_give += item.reads() ? 0 : item.left() * item.pace();
            left_free -= item.held(0) + static_cast<double>(item.piece);
          }
          if (rules_.on_demand && !running_.empty() &&
              left_free < 0.098 * static_cast<double>(to_give / LiveItem::kWhole))
            break;
        }
      }
      if (!admits(*head, wanted)) break;
      admit(head, tokens);
      left -= tokens;
      ++read;
    }
    if (!beside && read == 0) {
      room_to_decode();
      decodes_ = true;
    }
  }

  const LiveRules& rules_;
  const Timer& timer_;
  PlainLive& out_;
  bool& measuring_;
  LiveItems waiting_, running_;
  LiveItems moving_, ready_, held_items_;
  bool decodes_ = false, grows_ = false;
  std::set<std::pair<std::int64_t, std::int64_t>> kept_;
  std::int64_t since_look_ = 0, admissions_ = 0, peak_ = 0;
  double begin_ = 0, progress_ = 0, held_ = 0;
};

}  // namespace

PlainLive serve_load_plainly(const Offered& offered, const LiveRules& rules, const Timer& timer) {
  PlainLive out;
  const LoadSpec& load = offered.load;
  const bool steady = load.statistic == ClientStatistic::steady;
  const std::int64_t warm_up = steady ? load.warm_up.of(offered.clients) : 0;
  const std::int64_t counted = load.requests.of(offered.clients);
  const std::int64_t most = steady ? 2 * (warm_up + counted) + offered.clients : counted;
  bool measuring = warm_up == 0;
  DrawnRequests draws(load, offered.every);
  std::list<DrawnRequest> underway;
  std::int64_t sent = 0, begun = 0, taken = 0;
  const auto send_it = [&](DrawnRequest request, double moment) {
    if (sent++ >= most) return;
    request.sent = moment;
    request.ready = moment + rules.frontend;
    const auto later = [&](const DrawnRequest& other) { return other.ready > request.ready; };
    underway.insert(std::ranges::find_if(underway, later), request);
  };
  const auto send = [&](double now) {
    if (sent >= most) return;
    const DrawnRequest request = load.open() ? draws.next_arrival() : draws.request(begun++);
    send_it(request, load.open() ? request.sent : now);
  };
  const auto go_on = [&](const DrawnRequest& request, double now) {
    if (!load.sessions) return load.open() ? void() : send(now);
    const double then = now + draws.think_time(request);
    if (const auto next = draws.turn_after(request)) {
      send_it(*next, then);
    } else if (!load.open()) {
      send(then);
    }
  };
  for (std::int64_t i = 0; i < (load.open() ? 1 : offered.clients); ++i) send(0);
  std::list<PlainLiveServer> servers;
  for (std::int64_t i = 0; i < rules.servers; ++i) servers.emplace_back(rules, timer, out, measuring);
  std::int64_t done = 0;
  while (done < warm_up + counted) {
    const auto ending = std::ranges::min_element(servers, {}, &PlainLiveServer::end);
    const auto waking = std::ranges::min_element(servers, {}, &PlainLiveServer::wake);
    const double next = underway.empty() ? kNever : underway.front().ready;
    const double soon = std::min(ending->end, next) * (1 + 1e-9);
    const auto near = std::ranges::count_if(servers, [&](const PlainLiveServer& s) { return s.end <= soon; });
    if (near + (next <= soon ? 1 : 0) > 1 && soon < kNever) out.tied = true;
    if (next <= std::min(ending->end, waking->wake)) {
      DrawnRequest request = underway.front();
      underway.pop_front();
      request.number = taken++;
      auto to = std::next(servers.begin(), request.number % rules.servers);
      if (rules.routing == Routing::least_loaded)
        to = std::ranges::min_element(servers, {}, [](const PlainLiveServer& s) { return s.unfinished(); });
      if (rules.routing == Routing::prefix_aware) {
        const auto there = [&](const PlainLiveServer& s) { return s.found(request, request.prompt); };
        const auto best = std::ranges::max_element(servers, {}, there);
        to = 2 * there(*best) > request.prompt
                 ? best
                 : std::ranges::min_element(servers, {},
                                            [](const PlainLiveServer& s) { return s.unfinished(); });
      }
      to->arrived.push_back(request);
      if (to->end == kNever) to->wake = std::min(to->wake, request.ready);
      if (load.open() && request.turn == 0) send(0);
    } else if (ending->end <= waking->wake) {
      const double now = ending->end;
      for (const PlainLiveRequest& request : ending->finish()) {
        go_on(request.request, now);
        if (done == warm_up + counted) continue;
        if (++done > warm_up) out.done.push_back(request);
        if (done == warm_up) measuring = true, out.begin = now;
        out.end = now;
      }
    } else {
      waking->start();
    }
  }
  const auto tokens = static_cast<double>(rules.kv_blocks * rules.kv_block * rules.servers);
  out.kv_mean /= tokens * (out.end - out.begin);
  return out;
}

namespace {

/// Caches on their way: those from one reader to one decoder go one after the other, and what comes to a decoder shares
/// its link evenly.
class PlainWires {
 public:
  struct Cache {
    DrawnRequest request;
    double admitted = 0, left = 0;
    std::size_t reader = 0, decoder = 0;
    std::int64_t sent = 0;  ///< so many were sent before
  };
  PlainWires(std::size_t readers, std::size_t decoders, double rate, double latency)
      : lines_(readers * decoders), decoders_(decoders), rate_(rate), latency_(latency) {}

  void send(Cache cache) {
    cache.sent = sent_++;
    lines_[cache.reader * decoders_ + cache.decoder].push_back(cache);
  }
  [[nodiscard]] double next() const {
    double next = landing_.empty() ? kNever : landing_.front().first;
    for (const auto& line : lines_)
      if (!line.empty()) next = std::min(next, now_ + line.front().left / rate(line.front().decoder));
    return next;
  }
  void advance(double now) {
    std::vector<double> rates;
    for (const auto& line : lines_) rates.push_back(line.empty() ? 0 : rate(line.front().decoder));
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
    double busy = 0;
    for (std::size_t i = decoder; i < lines_.size(); i += decoders_) busy += lines_[i].empty() ? 0 : 1;
    return rate_ / busy;
  }
  std::vector<std::deque<Cache>> lines_;
  std::deque<std::pair<double, Cache>> landing_;
  const std::size_t decoders_;
  const double rate_, latency_;
  double now_ = 0;
  std::int64_t sent_ = 0;
};

}  // namespace

PlainLive serve_pools_plainly(const Offered& offered, const PooledServers& in, double rate, double latency,
                              double bytes_per_token) {
  PlainLive out, reading;
  const LoadSpec& load = offered.load;
  const bool steady = load.statistic == ClientStatistic::steady;
  const std::int64_t warm_up = steady ? load.warm_up.of(offered.clients) : 0;
  const std::int64_t counted = load.requests.of(offered.clients);
  const std::int64_t most = steady ? 2 * (warm_up + counted) + offered.clients : counted;
  bool measuring = warm_up == 0, never = false;
  DrawnRequests draws(load, offered.every);
  std::list<DrawnRequest> underway;
  std::int64_t sent = 0;
  const auto send = [&](double now) {
    if (sent == most) return;
    DrawnRequest request = load.open() ? draws.next_arrival() : draws.request(sent);
    if (!load.open()) request.sent = now;
    request.ready = request.sent + in.prefill.rules.frontend;
    underway.push_back(request);
    ++sent;
  };
  for (std::int64_t i = 0; i < (load.open() ? 1 : offered.clients); ++i) send(0);
  LiveRules rules = in.prefill.rules;
  rules.reads_only = true;
  rules.on_demand = false;
  rules.poll_interval = 1;
  rules.queue = QueueOrder::fcfs;
  std::deque<PlainLiveServer> readers, decoders;
  for (std::int64_t i = 0; i < rules.servers; ++i)
    readers.emplace_back(rules, in.prefill.timer, reading, never);
  for (std::int64_t i = 0; i < in.decode.rules.servers; ++i)
    decoders.emplace_back(in.decode.rules, in.decode.timer, out, measuring);
  PlainWires wires(readers.size(), decoders.size(), rate, latency);
  std::vector<std::int64_t> assigned(decoders.size());
  std::vector<std::deque<PlainWires::Cache>> expected(decoders.size());
  std::list<DrawnRequest> queue;
  std::int64_t done = 0;
  double now = 0;
  const auto fill = [&](std::size_t d) {
    while (!expected[d].empty() && decoders[d].expect(expected[d].front().request)) {
      wires.send(expected[d].front());
      expected[d].pop_front();
    }
  };
  const auto count = [&](const PlainLiveRequest& request, std::size_t d) {
    --assigned[d];
    if (!load.open()) send(now);
    if (done == warm_up + counted) return;
    if (++done > warm_up) out.done.push_back(request);
    if (done == warm_up) measuring = true, out.begin = now;
    out.end = now;
  };
  while (done < warm_up + counted) {
    std::vector<double> moments = {underway.empty() ? kNever : underway.front().ready, wires.next()};
    for (const std::deque<PlainLiveServer>* pool : {&readers, &decoders})
      for (const PlainLiveServer& server : *pool) moments.push_back(server.end);
    std::ranges::sort(moments);
    if (moments[0] > 0 && moments[1] <= moments[0] * (1 + 1e-9)) out.tied = true;
    now = moments[0];
    wires.advance(now);
    for (const PlainWires::Cache& cache : wires.landed(now)) {
      readers[cache.reader].let_go(cache.request, now);
      const auto ended = decoders[cache.decoder].land(cache.request, cache.admitted, now);
      if (ended) count(*ended, cache.decoder), fill(cache.decoder);
    }
    for (std::size_t d = 0; d < decoders.size(); ++d) {
      if (decoders[d].end > now) continue;
      for (const PlainLiveRequest& request : decoders[d].finish()) count(request, d);
      fill(d);
    }
    for (std::size_t r = 0; r < readers.size(); ++r) {
      if (readers[r].end > now) continue;
      for (const PlainLiveRequest& request : readers[r].finish()) {
        readers[r].hold(request.request);
        const auto d = static_cast<std::size_t>(std::ranges::min_element(assigned) - assigned.begin());
        ++assigned[d];
        expected[d].push_back(
            {request.request, request.admitted, bytes_per_token * request.request.prompt, r, d, 0});
        fill(d);
      }
    }
    if (done == warm_up + counted) break;
    while (!underway.empty() && underway.front().ready <= now) {
      queue.push_back(underway.front());
      underway.pop_front();
      if (load.open()) send(0);
    }
    const bool whole =
        rules.policy == ServingPolicy::trtllm || rules.policy == ServingPolicy::prefill_priority;
    for (;;) {
      const auto head = std::ranges::min_element(queue, [&](const DrawnRequest& a, const DrawnRequest& b) {
        const bool shortest = in.prefill.rules.queue == QueueOrder::shortest;
        return shortest && a.prompt != b.prompt ? a.prompt < b.prompt : a.number < b.number;
      });
      PlainLiveServer* to = nullptr;
      for (PlainLiveServer& reader : readers)
        if (reader.takes_more() && (to == nullptr || reader.unread() < to->unread())) to = &reader;
      if (head == queue.end() || to == nullptr) break;
      const std::int64_t has = to->unread();
      if (has > 0 && (whole ? has + head->prompt > rules.token_budget : has >= rules.token_budget)) break;
      to->take(*head, now);
      queue.erase(head);
    }
    for (std::deque<PlainLiveServer>* pool : {&decoders, &readers})
      for (PlainLiveServer& server : *pool)
        if (server.wake <= now) server.start();
  }
  return out;
}

}  // namespace shardscape::serving
