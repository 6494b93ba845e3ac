// The plain simulation of two pools: every iteration and every flow is an event of its own. It is slow, and the oracle
// for pooled_course.cc.
#include <algorithm>
#include <deque>
#include <utility>

#include "engine/base/check.h"
#include "engine/network/flows/fluid.h"
#include "engine/serving/percentile.h"
#include "tests/support/plain_courses.h"

namespace shardscape::serving {

namespace {

constexpr std::int32_t kNobody = -1;

struct PlainRequest {
  double sent = 0;
  /// Server that reads it, and which of that server's coupled replicas.
  std::int32_t reader = kNobody, replica = 0;
  std::int32_t decoder = kNobody;  ///< server that decodes it
  std::int64_t unread = 0, piece = 0;
  bool read = false;         ///< all of the prompt has been read
  bool moving = false;       ///< its transfer has begun
  std::int32_t awaited = 0;  ///< flows not received yet plus sends not begun
  double read_at = 0, moved_from = 0, first_token = 0;
  double joined = 0;  ///< the decoding server's busy seconds when it joined
  IterationTime classes{};
};

struct PlainReader {
  /// One of the coupled replicas of a server.
  struct Replica {
    std::deque<std::int32_t> queue;     ///< requests whose prompts are not wholly read
    std::vector<std::int32_t> reading;  ///< requests in the running iteration
    std::int64_t waiting_tokens = 0;    ///< tokens that wait, with those of the running iteration
    std::int64_t held = 0;              ///< places taken
  };
  std::vector<Replica> replicas;
  bool busy = false;
  Iteration iteration;   ///< of the replica whose iteration takes longest
  IterationTime time{};  ///< time of that iteration
};

/// Sums over the measured requests of one client.
struct PlainClient {
  double requests = 0, seconds = 0, ttft = 0, exposed = 0, transfer = 0;
  IterationTime classes{};
};

struct PlainDecoder {
  struct Sequence {
    std::int32_t request = kNobody;
    std::int64_t left = 0;  ///< tokens still to decode
  };
  std::deque<std::int32_t> waiting;  ///< requests that wait for a place, in order
  std::vector<std::int32_t> ready;   ///< requests that join with the next iteration
  std::vector<Sequence> running;
  std::int64_t requests = 0;  ///< requests assigned and not done
  std::int64_t held = 0;      ///< places taken
  double cached = 0;          ///< tokens in the caches of the running sequences
  IterationTime spent{};      ///< seconds of all iterations so far
  bool busy = false;
  std::int64_t fresh = 0;  ///< sequences that joined with the running iteration, the last of `running`
  Iteration iteration;
  IterationTime time{};
};

struct Alarm {
  /// Events of one instant happen in this order.
  enum class Kind : std::uint8_t { decoded, read, first_layer, send };
  Kind kind = Kind::decoded;
  std::int32_t who = 0;  ///< server or request
  double share = 0;      ///< send: share of the cache
};

class PlainPools {
 public:
  PlainPools(const DisaggregatedLoad& in, bool keep)
      : in_(in),
        keep_(keep),
        requests_(static_cast<std::size_t>(in.load.clients)),
        clients_(requests_.size()),
        readers_(static_cast<std::size_t>(in.prefill.servers)),
        decoders_(static_cast<std::size_t>(in.decode.servers)) {
    SHARDSCAPE_CHECK(in.load.clients >= 1 && in.load.prompt_tokens >= 1 && in.load.output_tokens >= 1,
                     in.load.clients, in.load.prompt_tokens, in.load.output_tokens);
    SHARDSCAPE_CHECK(in.prefill.rules.slots >= 1 && in.decode.rules.slots >= 1, in.prefill.rules.slots,
                     in.decode.rules.slots);
    fluid_.reset(in.fabric.wires, in.fabric.bytes_per_second);
    for (PlainReader& reader : readers_)
      reader.replicas.resize(static_cast<std::size_t>(in.fabric.prefill_coupled));
    begin_measuring_ = in.load.clients * (kPoolGenerations / 2);
    end_measuring_ = in.load.clients * kPoolGenerations;
  }

  DisaggregatedMeasured run() {
    for (std::size_t r = 0; r < requests_.size(); ++r) arrive(static_cast<std::int32_t>(r));
    start_servers();
    while (out_.requests_done < end_measuring_ || !each_client_has_one()) {
      SHARDSCAPE_CHECK(!fluid_.idle(), out_.requests_done);
      fluid_.advance(*this);
      start_servers();
      if (from_ < 0 && out_.requests_done >= begin_measuring_) from_ = fluid_.now();
    }
    return finish();
  }

  // Called by Fluid.
  void wake(std::int32_t id) {
    due_.push_back(alarms_[static_cast<std::size_t>(id)]);
    free_alarms_.push_back(id);
  }
  /// A part of a request's cache on one connection.
  struct Parcel {
    double bytes = 0;
    std::int32_t request = 0;
    std::int64_t number = 0;  ///< number of the send
  };
  void deliver(std::int32_t /*connection*/, const Parcel& parcel) {
    delivered_.emplace_back(parcel.number, parcel.request);
  }
  /// Handles the events of an instant in the order that pooled_course.h states, whatever their times' rounding.
  bool settle() {
    if (delivered_.empty() && due_.empty()) return false;
    std::ranges::sort(delivered_);
    for (const auto& [number, r] : delivered_) finish_sending(r);
    delivered_.clear();
    const std::vector<Alarm> due = in_order(std::exchange(due_, {}));
    for (const Alarm& alarm : due) go_off(alarm);
    return true;
  }
  static void rate_changed(std::int32_t /*connection*/, double /*rate*/) {}

 private:
  [[nodiscard]] PlainRequest& request_of(std::int32_t r) { return requests_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] PlainReader& reader_of(std::int32_t s) { return readers_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] PlainDecoder& decoder_of(std::int32_t s) { return decoders_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] bool measuring() const { return from_ >= 0; }

  static std::vector<Alarm> in_order(std::vector<Alarm> alarms) {
    std::ranges::stable_sort(alarms, [](const Alarm& a, const Alarm& b) {
      if (a.kind != b.kind) return a.kind < b.kind;
      return a.kind != Alarm::Kind::send && a.who < b.who;  // sends keep the order in which they were begun
    });
    return alarms;
  }

  void go_off(const Alarm& alarm) {
    switch (alarm.kind) {
      case Alarm::Kind::decoded:
        return end_decoding(alarm.who);
      case Alarm::Kind::read:
        return end_reading(alarm.who);
      case Alarm::Kind::first_layer:
        return send_early(alarm.who);
      case Alarm::Kind::send:
        return send(alarm.who, alarm.share);
    }
  }

  void alarm_at(double time, const Alarm& alarm) {
    std::int32_t id = 0;
    if (free_alarms_.empty()) {
      id = static_cast<std::int32_t>(alarms_.size());
      alarms_.push_back(alarm);
    } else {
      id = free_alarms_.back();
      free_alarms_.pop_back();
      alarms_[static_cast<std::size_t>(id)] = alarm;
    }
    fluid_.wake_at(time, id);
  }

  // ---- prefill ----

  void arrive(std::int32_t r) {
    PlainRequest& request = request_of(r);
    request = {};
    request.sent = fluid_.now();
    request.unread = in_.load.prompt_tokens;
    std::int64_t fewest = -1;
    for (std::int32_t replica = 0; replica < in_.fabric.prefill_coupled; ++replica) {
      for (std::int32_t s = 0; s < in_.prefill.servers; ++s) {
        const std::int64_t tokens = reader_of(s).replicas[static_cast<std::size_t>(replica)].waiting_tokens;
        if (fewest >= 0 && tokens >= fewest) continue;
        fewest = tokens;
        request.reader = s;
        request.replica = replica;
      }
    }
    PlainReader::Replica& shortest = replica_reading(request);
    shortest.queue.push_back(r);
    shortest.waiting_tokens += request.unread;
  }

  [[nodiscard]] PlainReader::Replica& replica_reading(const PlainRequest& request) {
    return reader_of(request.reader).replicas[static_cast<std::size_t>(request.replica)];
  }

  [[nodiscard]] bool each_client_has_one() const {
    return std::ranges::all_of(clients_, [](const PlainClient& client) { return client.requests > 0; });
  }

  /// Starts decoders first: a request whose first token is its last ends there, and its client's next request is then
  /// read.
  void start_servers() {
    for (std::size_t s = 0; s < decoders_.size(); ++s) {
      if (!decoders_[s].busy) start_decoding(static_cast<std::int32_t>(s));
    }
    for (std::size_t s = 0; s < readers_.size(); ++s) {
      if (!readers_[s].busy) start_reading(static_cast<std::int32_t>(s));
    }
  }

  void start_reading(std::int32_t s) {
    PlainReader& server = reader_of(s);
    for (PlainReader::Replica& replica : server.replicas) {
      const Iteration iteration = take_prompts(replica);
      if (replica.reading.empty()) continue;
      const IterationTime time = in_.prefill.timer(iteration);
      if (server.busy && total(time) <= total(server.time)) continue;
      server.busy = true;
      server.iteration = iteration;
      server.time = time;
    }
    if (!server.busy) return;
    const double seconds = total(server.time);
    alarm_at(fluid_.now() + seconds, {Alarm::Kind::read, s, 0});
    if (in_.fabric.when == KvTransfer::per_layer && in_.fabric.layers > 1) {
      alarm_at(fluid_.now() + seconds / static_cast<double>(in_.fabric.layers),
               {Alarm::Kind::first_layer, s, 0});
    }
  }

  Iteration take_prompts(PlainReader::Replica& replica) {
    const bool chunked = in_.prefill.rules.policy == ServingPolicy::chunked;
    std::int64_t left = in_.prefill.rules.token_budget;
    Iteration iteration;
    replica.reading.clear();
    for (const std::int32_t r : replica.queue) {
      PlainRequest& request = request_of(r);
      const bool begun = request.unread < in_.load.prompt_tokens;
      if (left <= 0 || (!begun && replica.held == in_.prefill.rules.slots)) break;
      if (!chunked && !replica.reading.empty() && request.unread > left) break;
      request.piece = chunked ? std::min(left, request.unread) : request.unread;
      if (!begun) ++replica.held;
      add_piece(request, iteration);
      left -= request.piece;
      request.unread -= request.piece;
      replica.reading.push_back(r);
    }
    return iteration;
  }

  void add_piece(const PlainRequest& request, Iteration& iteration) const {
    const auto piece = static_cast<double>(request.piece);
    const auto before = static_cast<double>(in_.load.prompt_tokens - request.unread);
    iteration.add_piece(before, piece, in_.load.window);
    if (request.piece == request.unread) iteration.first_tokens += 1;
  }

  /// Sends every layer but the last of the prompts that end in this iteration, where their decoder has room.
  void send_early(std::int32_t s) {
    for (const PlainReader::Replica& replica : reader_of(s).replicas) {
      for (const std::int32_t r : replica.reading) {
        if (request_of(r).unread > 0) continue;
        assign(r);
        PlainDecoder& decoder = decoder_of(request_of(r).decoder);
        if (decoder.waiting.empty() && decoder.held < in_.decode.rules.slots) begin_transfer(r);
      }
    }
  }

  void end_reading(std::int32_t s) {
    PlainReader& server = reader_of(s);
    server.busy = false;
    std::int64_t progressing = 0;
    for (PlainReader::Replica& replica : server.replicas) {
      progressing += static_cast<std::int64_t>(replica.reading.size());
      for (const std::int32_t r : replica.reading) end_piece(r, replica, server.time);
    }
    if (measuring() && keep_) out_.prefill_iterations.push_back({server.iteration, progressing});
  }

  void end_piece(std::int32_t r, PlainReader::Replica& replica, const IterationTime& time) {
    PlainRequest& request = request_of(r);
    add(request.classes, time, 1);
    replica.waiting_tokens -= request.piece;
    if (request.unread > 0) return;
    replica.queue.pop_front();  // prompts end in the order of the queue
    request.read = true;
    request.read_at = fluid_.now();
    if (request.moving) return begin_send(r, 1.0 / static_cast<double>(in_.fabric.layers));
    if (request.decoder == kNobody) assign(r);
    decoder_of(request.decoder).waiting.push_back(r);
    fill_places(request.decoder);
  }

  // ---- transfer ----

  void assign(std::int32_t r) {
    const auto least = std::ranges::min_element(decoders_, {}, &PlainDecoder::requests);
    ++least->requests;
    request_of(r).decoder = static_cast<std::int32_t>(least - decoders_.begin());
  }

  void fill_places(std::int32_t s) {
    PlainDecoder& server = decoder_of(s);
    while (!server.waiting.empty() && server.held < in_.decode.rules.slots) {
      const std::int32_t r = server.waiting.front();
      server.waiting.pop_front();
      begin_transfer(r);
    }
  }

  void begin_transfer(std::int32_t r) {
    PlainRequest& request = request_of(r);
    ++decoder_of(request.decoder).held;
    request.moving = true;
    request.moved_from = fluid_.now();
    ++out_.transfers_started;
    const double late = request.read ? 0 : 1.0 / static_cast<double>(in_.fabric.layers);
    begin_send(r, 1 - late);
  }

  /// Begins a send at the present moment through an alarm, since flows may change only when alarms go off.
  void begin_send(std::int32_t r, double share) {
    ++request_of(r).awaited;
    alarm_at(fluid_.now(), {Alarm::Kind::send, r, share});
  }

  /// The number of the first of a server's coupled replicas.
  static std::int64_t first_replica(std::int32_t server, std::int64_t servers, std::int64_t replicas,
                                    std::int64_t coupled) {
    return server / (servers * coupled / replicas) * coupled;
  }

  /// The flows of a request; among coupled replicas that decode, requests take turns.
  [[nodiscard]] const std::vector<KvFlow>& flows_of(std::int32_t r, const PlainRequest& request) const {
    const KvFabric& fabric = in_.fabric;
    const std::int64_t from =
        first_replica(request.reader, in_.prefill.servers, fabric.prefill_replicas, fabric.prefill_coupled) +
        request.replica;
    const std::int64_t to =
        first_replica(request.decoder, in_.decode.servers, fabric.decode_replicas, fabric.decode_coupled) +
        r % fabric.decode_coupled;
    return in_.fabric.flows[static_cast<std::size_t>(from * in_.fabric.decode_replicas + to)];
  }

  void send(std::int32_t r, double share) {
    PlainRequest& request = request_of(r);
    const std::vector<KvFlow>& flows = flows_of(r, request);
    request.awaited += static_cast<std::int32_t>(flows.size());
    ++sends_begun_;
    for (const KvFlow& flow : flows) {
      out_.bytes_sent += share * flow.bytes;
      fluid_.send(flow.connection, {share * flow.bytes, r, sends_begun_}, *this);
    }
    finish_sending(r);
  }

  void finish_sending(std::int32_t r) {
    PlainRequest& request = request_of(r);
    if (--request.awaited == 0 && request.read) end_transfer(r);
  }

  void end_transfer(std::int32_t r) {
    PlainRequest& request = request_of(r);
    ++out_.transfers_done;
    --replica_reading(request).held;
    request.first_token = fluid_.now();
    decoder_of(request.decoder).ready.push_back(r);
  }

  // ---- decode ----

  void start_decoding(std::int32_t s) {
    PlainDecoder& server = decoder_of(s);
    server.fresh = 0;
    for (std::size_t i = 0; i < server.ready.size(); ++i) {
      const std::int32_t r = server.ready[i];
      if (in_.load.output_tokens == 1) {
        done(r);
        continue;
      }
      ++server.fresh;
      server.running.push_back({r, in_.load.output_tokens - 1});
      server.cached += static_cast<double>(in_.load.prompt_tokens);
      add(request_of(r).classes, server.spent, -1);
    }
    server.ready.clear();
    if (server.running.empty()) return;
    server.iteration = {};
    server.iteration.decoding = static_cast<double>(server.running.size());
    server.cached += server.iteration.decoding;  // each sequence meets the token that its latest step gave
    server.iteration.cached = server.cached;
    server.time = in_.decode.timer(server.iteration);
    server.busy = true;
    alarm_at(fluid_.now() + total(server.time), {Alarm::Kind::decoded, s, 0});
  }

  void end_decoding(std::int32_t s) {
    PlainDecoder& server = decoder_of(s);
    server.busy = false;
    add(server.spent, server.time, 1);
    const auto count = static_cast<std::int64_t>(server.running.size());
    if (measuring()) record_gaps(server, count);
    for (PlainDecoder::Sequence& sequence : server.running) --sequence.left;
    const auto ends =
        std::stable_partition(server.running.begin(), server.running.end(),
                              [](const PlainDecoder::Sequence& sequence) { return sequence.left > 0; });
    finished_.assign(ends, server.running.end());
    server.running.erase(ends, server.running.end());
    for (const PlainDecoder::Sequence& sequence : finished_) {
      server.cached -= static_cast<double>(in_.load.prompt_tokens + in_.load.output_tokens - 1);
      add(request_of(sequence.request).classes, server.spent, 1);
      done(sequence.request);
    }
  }

  void record_gaps(const PlainDecoder& server, std::int64_t count) {
    const double seconds = total(server.time);
    if (count > server.fresh) gaps_.push_back({seconds, 0, 1, count - server.fresh});
    for (std::int64_t i = count - server.fresh; i < count; ++i) {
      const std::int32_t r = server.running[static_cast<std::size_t>(i)].request;
      gaps_.push_back({fluid_.now() - request_of(r).first_token, 0, 1, 1});
    }
    decode_iterations_ += 1;
    decoded_ += static_cast<double>(count);
    if (keep_) out_.decode_iterations.push_back({server.iteration, count});
  }

  void done(std::int32_t r) {
    const PlainRequest& request = request_of(r);
    ++out_.requests_done;
    if (measuring()) {
      PlainClient& client = clients_[static_cast<std::size_t>(r)];
      client.requests += 1;
      client.seconds += fluid_.now() - request.sent;
      client.ttft += request.first_token - request.sent;
      client.exposed += request.first_token - std::max(request.read_at, request.moved_from);
      client.transfer += request.first_token - request.moved_from;
      add(client.classes, request.classes, 1);
      ttft_.push_back({request.first_token - request.sent, 0, 1, 1});
      e2e_.push_back({fluid_.now() - request.sent, 0, 1, 1});
    }
    const std::int32_t s = request.decoder;
    PlainDecoder& server = decoder_of(s);
    --server.requests;
    --server.held;
    arrive(r);
    fill_places(s);
  }

  // ---- the end ----

  static Spread percentiles(const std::vector<Progression>& values) {
    return {0, percentile(values, 0.5), percentile(values, 0.95)};
  }

  DisaggregatedMeasured finish() {
    Measured& m = out_.requests;
    out_.requests_measured = static_cast<double>(e2e_.size());
    m.periodic = false;
    m.ttft = percentiles(ttft_);
    m.e2e = percentiles(e2e_);
    m.itl = percentiles(gaps_);
    for (const PlainClient& client : clients_) m.requests_per_s += client.requests / client.seconds;
    for (const PlainClient& client : clients_) {
      const double rate = client.requests / client.seconds;  // requests per second of this client
      const auto mean = [&](double sum) { return rate / m.requests_per_s * sum / client.requests; };
      m.e2e.mean += mean(client.seconds);
      m.ttft.mean += mean(client.ttft);
      out_.exposed_transfer += mean(client.exposed);
      out_.transfer += mean(client.transfer);
      for (const TimeClass c : kServingClasses) m.classes[c] += mean(client.classes[c]);
    }
    if (in_.load.output_tokens > 1)
      m.itl.mean = (m.e2e.mean - m.ttft.mean) / static_cast<double>(in_.load.output_tokens - 1);
    if (decode_iterations_ > 0) m.decode_batch = decoded_ / decode_iterations_;
    m.waiting = m.e2e.mean - total(m.classes) - out_.exposed_transfer;
    // A difference within the rounding of sums of a few thousand durations counts as zero.
    if (m.waiting < 1e-12 * m.e2e.mean) m.waiting = 0;
    return std::move(out_);
  }

  const DisaggregatedLoad& in_;
  const bool keep_;
  network::Fluid<Parcel> fluid_;
  std::vector<PlainRequest> requests_;
  std::vector<PlainClient> clients_;
  std::vector<PlainReader> readers_;
  std::vector<PlainDecoder> decoders_;
  std::vector<Alarm> alarms_;
  std::vector<std::int32_t> free_alarms_;
  // Events of this instant that have not been handled yet:
  std::vector<Alarm> due_;
  std::vector<std::pair<std::int64_t, std::int32_t>>
      delivered_;  ///< by parcel: the number of the send and its request
  std::int64_t sends_begun_ = 0;
  std::vector<PlainDecoder::Sequence> finished_;
  std::int64_t begin_measuring_ = 0, end_measuring_ = 0;
  double from_ = -1;  ///< begin of the measured part in seconds; < 0: not measuring yet
  std::vector<Progression> ttft_, e2e_, gaps_;
  double decode_iterations_ = 0, decoded_ = 0;
  DisaggregatedMeasured out_;
};

}  // namespace

DisaggregatedMeasured serve_disaggregated_plainly(const DisaggregatedLoad& load, bool keep_iterations) {
  return PlainPools(load, keep_iterations).run();
}

}  // namespace shardscape::serving
