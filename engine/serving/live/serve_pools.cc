// The course of a load on two pools: servers that read (live_server.h), caches on the fabric (cache_transfers.h), and
// servers that decode.
#include "engine/serving/live/serve_pools.h"

#include <algorithm>
#include <array>
#include <deque>

#include "engine/serving/cache_transfers.h"
#include "engine/serving/least.h"
#include "engine/serving/live/live_server.h"
#include "engine/serving/live/load_course.h"
#include "engine/serving/live/router.h"

namespace shardscape::serving {

namespace {

/// The rules of a pool's server as one that reads for others.
LiveRules reading_rules(LiveRules rules, std::uint64_t seed) {
  rules.reads_only = true;
  rules.on_demand = false;
  rules.drafts = 0;
  rules.poll_interval = 1;
  if (!admission(rules).fixes_ahead) rules.schedule_ahead = 0;
  rules.drawn_ranks = admission(rules).draws_ranks && rules.ranks > 1;
  rules.rank_seed = seed;
  return rules;
}

/// A request between the pools.
struct Flight {
  DrawnRequest request;
  double admitted = 0, read_at = 0, moved_from = 0;
  std::array<std::int64_t, kCacheTiers> hits{};
  std::size_t reader = 0, decoder = 0;
  std::int32_t slot = -1;  ///< at the decoder; -1: has no place yet
  bool read = false;       ///< all of the prompt has been read
};

class PooledService {
 public:
  PooledService(const Offered& offered, const PooledServers& in, const LoadObserver& observer, Supply supply)
      : in_(in),
        course_(offered, in.prefill.rules.frontend, in.decode.rules.max_batch * in.decode.rules.servers,
                supply, observer),
        reading_rules_(reading_rules(in.prefill.rules, offered.load.seed)),
        read_tally_(reading_rules_),
        tally_(in.decode.rules, offered.load.promised),
        read_times_(lengths_of(offered), in.prefill.timer),
        times_(lengths_of(offered), in.decode.timer),
        caches_(in.fabric),
        alarms_(static_cast<std::size_t>(in.decode.rules.servers + 2 * in.prefill.rules.servers),
                LiveServer::kNever),
        wakes_(static_cast<std::size_t>(in.decode.rules.servers + in.prefill.rules.servers),
               LiveServer::kNever),
        router_(reading_rules_),
        assigned_(static_cast<std::size_t>(in.decode.rules.servers), 0),
        expected_(static_cast<std::size_t>(in.decode.rules.servers)),
        early_(static_cast<std::size_t>(in.prefill.rules.servers)),
        late_(early_.size()),
        looks_(early_.size(), LiveServer::kNever) {
    decoders_.reserve(static_cast<std::size_t>(in.decode.rules.servers));
    readers_.reserve(static_cast<std::size_t>(in.prefill.rules.servers));
    for (std::int64_t i = 0; i < in.decode.rules.servers; ++i)
      decoders_.emplace_back(in.decode.rules, in.decode.timer, times_, tally_, false);
    for (std::int64_t i = 0; i < in.prefill.rules.servers; ++i)
      readers_.emplace_back(reading_rules_, in.prefill.timer, read_times_, read_tally_, false);
    if (course_.record() != nullptr) keep_works(*course_.record());
    for (std::size_t server = 0; server < readers_.size() + decoders_.size(); ++server)
      if (caches_.shares_links(server)) server_at(server).share_links(on_links_of(server));
  }

  LiveMeasured run() {
    while (!course_.over()) {
      const double next = std::min(
          {course_.senders.next(), alarms_.value(), looks_.value(), wakes_.value(), caches_.next_time()});
      if (!(next < LiveServer::kNever) ||
          !course_.note_event(tally_.reads() + read_tally_.reads(), [&] { return waiting(); }))
        return LoadCourse::without_end();
      now_ = std::max(now_, next);
      caches_.advance_at(now_, [this] { return settle(); });
      caches_.note_meetings([this](std::size_t server) {
        server_at(server).meet_caches(caches_.is_met(server), now_);
        keep_time(place_of(server));
      });
    }
    settle_servers();
    tally_.add_work(read_tally_);
    LiveMeasured out = tally_.result(now_);
    out.preemptions = preemptions() - preempted_before_;
    return out;
  }
  [[nodiscard]] const LoadCourse& course() const { return course_; }

 private:
  /// What happens in an instant, in the header's order; true while something did.
  bool settle() {
    if (course_.over()) return false;
    if (land_caches() || look_at_late() || end_sending() || end_iterations()) return true;
    if (course_.senders.next() <= limit()) {
      do come(course_.senders.take());
      while (course_.senders.next() <= limit());
      return true;
    }
    if (begin_work()) return true;
    return caches_.send_ordered();
  }

  [[nodiscard]] Flight& at(std::int32_t flight) { return flights_[static_cast<std::size_t>(flight)]; }
  [[nodiscard]] double limit() const { return caches_.end_of_instant(); }
  // Numbers of alarms: ends of decoders' work, of readers', and of the first layers that these read.
  [[nodiscard]] std::size_t read_alarm(std::size_t reader) const { return decoders_.size() + reader; }
  [[nodiscard]] std::size_t layer_alarm(std::size_t reader) const {
    return decoders_.size() + readers_.size() + reader;
  }
  [[nodiscard]] bool per_layer() const {
    return in_.fabric.when == KvTransfer::per_layer && in_.fabric.layers > 1;
  }
  [[nodiscard]] double last_share() const { return 1.0 / static_cast<double>(in_.fabric.layers); }

  // Servers are numbered as alarms, decoders first; on links, as everywhere else, those that read come first.
  [[nodiscard]] std::size_t number_of(std::size_t place) const {
    return place < decoders_.size() ? readers_.size() + place : place - decoders_.size();
  }
  [[nodiscard]] std::size_t place_of(std::size_t number) const {
    return number < readers_.size() ? decoders_.size() + number : number - readers_.size();
  }
  [[nodiscard]] LiveServer& server_at(std::size_t number) {
    return number < readers_.size() ? readers_[number] : decoders_[number - readers_.size()];
  }
  [[nodiscard]] const SendingShares& on_links_of(std::size_t number) const {
    return number < readers_.size() ? in_.prefill.on_links : in_.decode.on_links;
  }

  void keep_time(std::size_t server) {
    const bool decodes = server < decoders_.size();
    const std::size_t reader = server - decoders_.size();
    const LiveServer& of = decodes ? decoders_[server] : readers_[reader];
    alarms_.set(server, of.ends());
    wakes_.set(server, of.wakes());
  }

  [[nodiscard]] std::int64_t preemptions() const {
    std::int64_t all = 0;
    for (const std::vector<LiveServer>* pool : {&readers_, &decoders_})
      for (const LiveServer& server : *pool) all += server.state().preemptions();
    return all;
  }
  void keep_works(LoadRecord& record) {
    record = LoadRecord{static_cast<std::int64_t>(readers_.size()), 0, {}, {}};
    record.servers = record.readers + static_cast<std::int64_t>(decoders_.size());
    std::int64_t number = 0;
    for (std::vector<LiveServer>* pool : {&readers_, &decoders_})
      for (LiveServer& server : *pool) server.keep_works(number++, record.works);
  }
  void settle_servers() {
    for (std::vector<LiveServer>* pool : {&readers_, &decoders_})
      for (LiveServer& server : *pool) server.settle(CacheTransfers::before(now_));
  }

  // ---- what comes ----

  void come(const DrawnRequest& request) {
    const std::size_t to = router_.server_for(request, readers_);
    readers_[to].arrive(request, now_);
    router_.note_unfinished(to, readers_[to].unfinished());
    keep_time(read_alarm(to));
    course_.comes([&] { return waiting(); });
  }

  /// Requests that have come to a server that reads, and have nothing read.
  [[nodiscard]] std::int64_t unread() const {
    std::int64_t all = 0;
    for (const LiveServer& reader : readers_) all += reader.waiting();
    return all;
  }
  [[nodiscard]] std::int64_t waiting() const {
    std::int64_t all = unread();
    for (const std::deque<std::int32_t>& expected : expected_)
      all += static_cast<std::int64_t>(expected.size());
    return all;
  }

  // ---- what ends and begins ----

  bool end_iterations() {
    due_.clear();
    while (alarms_.value() <= limit()) {
      due_.push_back(alarms_.index());
      alarms_.set(alarms_.index(), LiveServer::kNever);
    }
    std::ranges::sort(due_);
    for (const std::size_t alarm : due_) {
      if (alarm < layer_alarm(0) && server_at(number_of(alarm)).has_to_send()) {
        caches_.send_iteration(number_of(alarm), server_at(number_of(alarm)).begin_sending());
      } else if (alarm < decoders_.size()) {
        end_decoding(alarm);
      } else if (alarm < layer_alarm(0)) {
        end_reading(alarm - decoders_.size());
      } else {
        send_early(alarm - layer_alarm(0));
      }
    }
    return !due_.empty();
  }

  bool begin_work() {
    bool any = false;
    while (wakes_.value() <= limit()) {
      const std::size_t server = wakes_.index();
      any = true;
      if (server < decoders_.size()) {
        decoders_[server].start();
      } else {
        const std::size_t i = server - decoders_.size();
        LiveServer& reader = readers_[i];
        reader.start();
        if (per_layer() && !reader.batch().ended.empty())
          alarms_.set(layer_alarm(i), reader.moment_at(last_share()));
        if (!late_[i].empty()) looks_.set(i, now_ + reader.launch());
      }
      keep_time(server);
    }
    return any;
  }

  /// Iterations that shared links with caches have sent all.
  bool end_sending() {
    return caches_.end_sending([this](std::size_t server) {
      server_at(server).end_sending(now_);
      keep_time(place_of(server));
    });
  }

  void end_reading(std::size_t i) {
    LiveServer& reader = readers_[i];
    look_at_what_is_read(i);
    reader.finish([&](const Sequence& sequence) {
      reader.hold(sequence.request);
      const auto early = std::ranges::find(early_[i], sequence.request.number,
                                           [&](std::int32_t f) { return at(f).request.number; });
      const std::int32_t flight = early != early_[i].end() ? *early : take_off(sequence, i);
      late_[i].push_back(flight);
    });
    early_[i].clear();
    if (!reader.launches_before_it_looks()) look_at_what_is_read(i);
    router_.note_unfinished(i, reader.unfinished());
    keep_time(read_alarm(i));
  }

  /// The host of a server that reads sees what has been read, which may leave now.
  void look_at_what_is_read(std::size_t i) {
    looks_.set(i, LiveServer::kNever);
    for (const std::int32_t flight : late_[i]) {
      at(flight).read = true;
      at(flight).read_at = now_;
      if (at(flight).slot >= 0) {
        order_send(flight, last_share());
      } else {
        expected_[at(flight).decoder].push_back(flight);
        fill_places(at(flight).decoder);
      }
    }
    late_[i].clear();
  }

  bool look_at_late() {
    bool any = false;
    for (; looks_.value() <= limit(); any = true) look_at_what_is_read(looks_.index());
    return any;
  }

  void end_decoding(std::size_t i) {
    decoders_[i].finish([&](const Sequence& sequence) { done(sequence, i); });
    note_done(i);
  }

  void done(const Sequence& sequence, std::size_t decoder) {
    assigned_.set(decoder, assigned_[decoder] - 1);
    course_.is_done(
        sequence, now_, [&] { tally_.done(sequence, now_); },
        [&] {
          settle_servers();
          tally_.restart(now_);
          read_tally_.restart(now_);
          preempted_before_ = preemptions();
        });
  }
  void note_done(std::size_t decoder) {
    course_.note_rate(now_, unread() > 0);
    fill_places(decoder);
  }

  // ---- caches ----

  std::int32_t take_off(const Sequence& sequence, std::size_t reader) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::int32_t>(flights_.size()));
      flights_.emplace_back();
    }
    const std::int32_t flight = free_.back();
    free_.pop_back();
    const std::size_t decoder = assigned_.index();
    assigned_.set(decoder, assigned_[decoder] + 1);
    at(flight) = {sequence.request, sequence.admitted, 0, 0, sequence.hits, reader, decoder};
    return flight;
  }

  /// Sends every layer but the last of the prompts that end in this iteration, where their decoder has room.
  void send_early(std::size_t i) {
    const LiveServer& reader = readers_[i];
    for (const std::int32_t slot : reader.batch().ended) {
      const std::int32_t flight = take_off(reader.state()[slot], i);
      early_[i].push_back(flight);
      if (expected_[at(flight).decoder].empty()) begin_transfer(flight);
    }
  }

  void fill_places(std::size_t decoder) {
    std::deque<std::int32_t>& expected = expected_[decoder];
    while (!expected.empty() && begin_transfer(expected.front())) expected.pop_front();
    keep_time(decoder);
  }

  /// False where the decoder has no room.
  bool begin_transfer(std::int32_t number) {
    Flight& flight = at(number);
    flight.slot = decoders_[flight.decoder].expect(flight.request, now_);
    keep_time(flight.decoder);
    if (flight.slot < 0) return false;
    flight.moved_from = now_;
    order_send(number, flight.read ? 1 : 1 - last_share());
    return true;
  }

  void order_send(std::int32_t number, double share) {
    const Flight& flight = at(number);
    const KvFabric& fabric = in_.fabric;
    const auto replica = [&](std::size_t server, const LiveRules& rules, std::int64_t replicas) {
      return PoolReplicas{rules.servers, replicas, rules.ranks}.of(static_cast<std::int64_t>(server),
                                                                   rank_of(rules, flight.request.number));
    };
    const auto pair = static_cast<std::size_t>(
        replica(flight.reader, reading_rules_, fabric.prefill_replicas) * fabric.decode_replicas +
        replica(flight.decoder, in_.decode.rules, fabric.decode_replicas));
    caches_.order(number, pair, share * flight.request.prompt / in_.mean_prompt, flight.read);
  }

  bool land_caches() {
    return caches_.land([this](std::int32_t number) {
      const Flight flight = at(number);
      free_.push_back(number);
      LiveServer& decoder = decoders_[flight.decoder];
      Sequence& sequence = decoder.moving(flight.slot);
      sequence.admitted = flight.admitted;
      sequence.read_at = flight.read_at;
      sequence.moved_from = flight.moved_from;
      sequence.hits = flight.hits;
      readers_[flight.reader].let_go(flight.request, now_);
      keep_time(read_alarm(flight.reader));
      decoder.land(flight.slot, now_, [&](const Sequence& s) { done(s, flight.decoder); });
      if (flight.request.steps == 0) note_done(flight.decoder);
      keep_time(flight.decoder);
    });
  }

  const PooledServers& in_;
  LoadCourse course_;
  const LiveRules reading_rules_;
  Tally read_tally_, tally_;
  DecodeTimes read_times_, times_;
  CacheTransfers caches_;
  std::vector<LiveServer> readers_, decoders_;
  Least<double> alarms_, wakes_;
  Router router_;                 ///< to those that read
  Least<std::int64_t> assigned_;  ///< by decoder: requests that are not done
  std::vector<Flight> flights_;
  std::vector<std::int32_t> free_;                  ///< flights
  std::vector<std::deque<std::int32_t>> expected_;  ///< by decoder: flights that wait for a place
  std::vector<std::vector<std::int32_t>> early_;  ///< by reader: flights of prompts that are still being read
  std::vector<std::vector<std::int32_t>>
      late_;                      ///< by reader: of those read, at which its host has not looked
  Least<double> looks_;           ///< by reader: when it will, where it has launched the next
  std::vector<std::size_t> due_;  ///< alarms of this instant
  double now_ = 0;
  std::int64_t preempted_before_ = 0;  ///< in the warm-up
};

}  // namespace

LiveMeasured serve_pools(const Offered& offered, const PooledServers& servers, const LoadObserver& observer) {
  return measure_load(offered, servers.prefill.rules.servers, [&](Supply supply, LiveMeasured& out) {
    PooledService service(offered, servers, observer, supply);
    out = service.run();
    return service.course();
  });
}

}  // namespace shardscape::serving
