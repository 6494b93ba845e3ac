// The course of two pools, event by event. What happens is what the header says, iteration by iteration; what
// makes it quick:
//
//   decode      Iterations of the same sequences are one run, in closed form (decode_times.h). A run ends when the
//               first sequence does, or with the iteration during which the next one gets its cache. Sequences are
//               alike, so they end in the order in which they joined.
//   servers     Each has at most one alarm set; the next one to go off, the shortest queue and the emptiest decoder
//               are looked up in trees (least.h). After an instant only servers that something happened to are asked
//               whether they can go on.
//   caches      See cache_transfers.h.
//   prompts     Iterations of the same prompts are timed once.
#include "engine/serving/pooled_course.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.h"
#include "engine/execution/state.h"
#include "engine/serving/cache_transfers.h"
#include "engine/serving/client_accounts.h"
#include "engine/serving/decode_times.h"
#include "engine/serving/least.h"
#include "engine/serving/prompt_times.h"

namespace shardscape::serving {

namespace {

constexpr std::int32_t kUnassigned = -1;

struct Request {
  double sent = 0;
  /// Lane of a server that reads; server that decodes.
  std::int32_t lane = kUnassigned, decoder = kUnassigned;
  std::int64_t unread = 0, piece = 0;
  bool read = false;    ///< all of the prompt has been read
  bool moving = false;  ///< its transfer has begun
  double read_at = 0, moved_from = 0, first_token = 0;
  std::int64_t done_at = 0;  ///< number of the decoder's iterations after which it has its last token
  IterationTime classes{};
};

/// One of the coupled replicas of a server that reads.
struct Lane {
  execution::Fifo<std::int32_t> queue;  ///< requests whose prompts are not wholly read
  std::vector<std::int32_t> reading;    ///< requests in the running iteration
  std::int64_t held = 0;                ///< places taken
};

struct Reader {
  bool busy = false;
  // The running iteration:
  Iteration iteration;           ///< of the lane that takes longest
  IterationTime time{};          ///< time of that iteration
  std::int64_t progressing = 0;  ///< requests in it, of all lanes
};

struct Decoder {
  execution::Fifo<std::int32_t> waiting;  ///< requests that wait for a place, in order
  std::vector<std::int32_t> ready;        ///< requests that join with the next iteration
  execution::Fifo<std::int32_t> running;  ///< in the order of joining, and so of ending
  std::int64_t held = 0;                  ///< places taken
  bool busy = false;
  // State before the current run:
  std::int64_t decoded = 0;  ///< number of iterations
  double cached = 0;         ///< tokens in the caches of the running sequences
  IterationTime spent{};     ///< seconds of all iterations
  // The current run of iterations:
  DecodeRun run;
  DecodePiece own;              ///< its piece, for batches without a table
  std::int64_t fresh = 0;       ///< sequences that joined with the run, the last of `running`
  std::int64_t unmeasured = 0;  ///< its first iterations that ended before measuring began
};

/// The set of servers that something has happened to.
class Touched {
 public:
  explicit Touched(std::size_t servers) : words_((servers + 63) / 64, 0) {}
  void insert(std::int32_t s) { words_[static_cast<std::size_t>(s) / 64] |= std::uint64_t{1} << (s % 64); }
  /// Takes all out one by one, in ascending order. Meanwhile only servers after the one just taken may be inserted.
  template <class Visit>
  void take(Visit visit) {
    for (std::size_t word = 0; word < words_.size(); ++word) {
      while (words_[word] != 0) {
        const int bit = std::countr_zero(words_[word]);
        words_[word] &= words_[word] - 1;
        visit(static_cast<std::int32_t>(64 * word) + bit);
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
};

class PooledCourse {
 public:
  PooledCourse(const DisaggregatedLoad& in, bool keep)
      : in_(in),
        keep_(keep),
        caches_(in.fabric),
        prompt_times_(in.prefill.timer),
        decode_times_(in.load, in.decode.timer),
        requests_(static_cast<std::size_t>(in.load.clients)),
        accounts_(in.load.clients),
        lanes_(static_cast<std::size_t>(in.prefill.servers * in.fabric.prefill_coupled)),
        readers_(static_cast<std::size_t>(in.prefill.servers)),
        decoders_(static_cast<std::size_t>(in.decode.servers)),
        touched_readers_(readers_.size()),
        touched_decoders_(decoders_.size()),
        alarms_(decoders_.size() + 2 * readers_.size(), kNever),
        queued_(lanes_.size(), 0),
        assigned_(decoders_.size(), 0) {
    SHARDSCAPE_CHECK(in.load.clients >= 1 && in.load.prompt_tokens >= 1 && in.load.output_tokens >= 1,
                     in.load.clients, in.load.prompt_tokens, in.load.output_tokens);
    SHARDSCAPE_CHECK(in.prefill.rules.slots >= 1 && in.decode.rules.slots >= 1, in.prefill.rules.slots,
                     in.decode.rules.slots);
    begin_measuring_ = in.load.clients * (kPoolGenerations / 2);
    end_measuring_ = in.load.clients * kPoolGenerations;
    ttft_.reserve(static_cast<std::size_t>(end_measuring_ - begin_measuring_));
    e2e_.reserve(ttft_.capacity());
  }

  DisaggregatedMeasured run() {
    for (std::size_t r = 0; r < requests_.size(); ++r) arrive(static_cast<std::int32_t>(r));
    start_servers();
    while (out_.requests_done < end_measuring_ || !accounts_.complete()) {
      const double next = std::min(alarms_.value(), caches_.next_time());
      SHARDSCAPE_CHECK(next < kNever, out_.requests_done);
      caches_.advance_at(next, [this] { return settle(); });
      start_servers();
      if (from_ < 0 && out_.requests_done >= begin_measuring_) begin_measuring();
    }
    return finish();
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  [[nodiscard]] Request& request_of(std::int32_t r) { return requests_[static_cast<std::size_t>(r)]; }
  [[nodiscard]] Reader& reader_of(std::int32_t s) { return readers_[static_cast<std::size_t>(s)]; }
  /// Lane l belongs to server l % servers: the first lanes of all servers come first.
  [[nodiscard]] std::int32_t server_of(std::int32_t lane) const {
    return lane % static_cast<std::int32_t>(readers_.size());
  }
  template <class Visit>
  void each_lane(std::int32_t s, Visit visit) {
    for (auto lane = static_cast<std::size_t>(s); lane < lanes_.size(); lane += readers_.size())
      visit(lanes_[lane], lane);
  }
  [[nodiscard]] Decoder& decoder_of(std::int32_t s) { return decoders_[static_cast<std::size_t>(s)]; }
  [[nodiscard]] bool measuring() const { return from_ >= 0; }
  // Numbers of alarms: ends of decode runs, then ends of reading iterations, then ends of their first layers.
  [[nodiscard]] std::size_t read_alarm(std::int32_t s) const {
    return decoders_.size() + static_cast<std::size_t>(s);
  }
  [[nodiscard]] std::size_t layer_alarm(std::int32_t s) const { return read_alarm(s) + readers_.size(); }

  /// Handles the servers' events of the instant, then begins the sends that these have ordered.
  bool settle() {
    const bool heard = caches_.land([this](std::int32_t r) { end_transfer(r); }), ended = hear_alarms();
    return heard || ended || caches_.send_ordered();
  }

  /// Handles the alarms of this instant in the order of their numbers, not of their rounded times.
  bool hear_alarms() {
    due_.clear();
    for (const double limit = caches_.end_of_instant(); alarms_.value() <= limit;) {
      due_.push_back(alarms_.index());
      alarms_.set(alarms_.index(), kNever);
    }
    if (due_.size() > 1) std::ranges::sort(due_);
    for (const std::size_t alarm : due_) go_off(alarm);
    return !due_.empty();
  }

  void go_off(std::size_t alarm) {
    if (alarm < decoders_.size()) return end_decoding(static_cast<std::int32_t>(alarm));
    alarm -= decoders_.size();
    if (alarm < readers_.size()) return end_reading(static_cast<std::int32_t>(alarm));
    send_early(static_cast<std::int32_t>(alarm - readers_.size()));
  }

  /// Starts decoders first: a request whose first token is its last ends there, and its client's next request is then
  /// read.
  void start_servers() {
    touched_decoders_.take([&](std::int32_t s) {
      if (!decoder_of(s).busy) start_decoding(s);
    });
    touched_readers_.take([&](std::int32_t s) {
      if (!reader_of(s).busy) start_reading(s);
    });
  }

  // ---- prefill ----

  void arrive(std::int32_t r) {
    Request& request = request_of(r);
    request = {};
    request.sent = caches_.now();
    request.unread = in_.load.prompt_tokens;
    const std::size_t shortest = queued_.index();
    queued_.set(shortest, queued_[shortest] + request.unread);
    request.lane = static_cast<std::int32_t>(shortest);
    lanes_[shortest].queue.push(r);
    touched_readers_.insert(server_of(request.lane));
  }

  void start_reading(std::int32_t s) {
    Reader& server = reader_of(s);
    server.progressing = 0;
    double seconds = 0;
    each_lane(s, [&](Lane& lane, std::size_t /*index*/) {
      const Iteration iteration = take_prompts(lane);
      if (lane.reading.empty()) return;
      const IterationTime& time = prompt_times_(iteration);
      if (server.progressing == 0 || total(time) > seconds) {
        server.iteration = iteration;
        server.time = time;
        seconds = total(time);
      }
      server.progressing += static_cast<std::int64_t>(lane.reading.size());
    });
    if (server.progressing == 0) return;
    server.busy = true;
    alarms_.set(read_alarm(s), caches_.now() + seconds);
    if (in_.fabric.when == KvTransfer::per_layer && in_.fabric.layers > 1)
      alarms_.set(layer_alarm(s), caches_.now() + seconds / static_cast<double>(in_.fabric.layers));
  }

  /// Chooses what a lane reads in its next iteration.
  Iteration take_prompts(Lane& lane) {
    const bool chunked = in_.prefill.rules.policy == ServingPolicy::chunked;
    std::int64_t left = in_.prefill.rules.token_budget;
    Iteration iteration;
    lane.reading.clear();
    for (std::size_t i = 0; i < lane.queue.size(); ++i) {
      const std::int32_t r = lane.queue[i];
      Request& request = request_of(r);
      const bool begun = request.unread < in_.load.prompt_tokens;
      if (left <= 0 || (!begun && lane.held == in_.prefill.rules.slots)) break;
      if (!chunked && !lane.reading.empty() && request.unread > left) break;
      request.piece = chunked ? std::min(left, request.unread) : request.unread;
      if (!begun) ++lane.held;
      add_piece(request, iteration);
      left -= request.piece;
      request.unread -= request.piece;
      lane.reading.push_back(r);
    }
    return iteration;
  }

  void add_piece(const Request& request, Iteration& iteration) const {
    const auto piece = static_cast<double>(request.piece);
    const auto before = static_cast<double>(in_.load.prompt_tokens - request.unread);
    iteration.add_piece(before, piece, in_.load.window);
    if (request.piece == request.unread) iteration.first_tokens += 1;
  }

  /// Sends every layer but the last of the prompts that end in this iteration, where their decoder has room.
  void send_early(std::int32_t s) {
    each_lane(s, [&](Lane& lane, std::size_t /*index*/) {
      for (const std::int32_t r : lane.reading) {
        if (request_of(r).unread > 0) continue;
        assign(r);
        Decoder& decoder = decoder_of(request_of(r).decoder);
        if (decoder.waiting.empty() && decoder.held < in_.decode.rules.slots) begin_transfer(r);
      }
    });
  }

  void end_reading(std::int32_t s) {
    Reader& server = reader_of(s);
    server.busy = false;
    touched_readers_.insert(s);
    if (measuring() && keep_) out_.prefill_iterations.push_back({server.iteration, server.progressing});
    each_lane(s, [&](Lane& lane, std::size_t index) {
      std::int64_t tokens = 0;
      for (const std::int32_t r : lane.reading) tokens += end_piece(r, lane, server.time);
      if (tokens > 0) queued_.set(index, queued_[index] - tokens);
    });
  }

  /// Ends a request's part in an iteration of the given time; returns the tokens of its prompt that were read.
  std::int64_t end_piece(std::int32_t r, Lane& lane, const IterationTime& time) {
    Request& request = request_of(r);
    add(request.classes, time, 1);
    const std::int64_t tokens = request.piece;
    if (request.unread > 0) return tokens;
    lane.queue.pop();  // prompts end in the order of the queue
    request.read = true;
    request.read_at = caches_.now();
    if (request.moving) {
      begin_send(r, 1.0 / static_cast<double>(in_.fabric.layers));
      return tokens;
    }
    if (request.decoder == kUnassigned) assign(r);
    decoder_of(request.decoder).waiting.push(r);
    fill_places(request.decoder);
    return tokens;
  }

  // ---- transfer ----

  void assign(std::int32_t r) {
    const std::size_t least = assigned_.index();
    assigned_.set(least, assigned_[least] + 1);
    request_of(r).decoder = static_cast<std::int32_t>(least);
  }

  void fill_places(std::int32_t s) {
    Decoder& server = decoder_of(s);
    while (!server.waiting.empty() && server.held < in_.decode.rules.slots)
      begin_transfer(server.waiting.pop());
  }

  void begin_transfer(std::int32_t r) {
    Request& request = request_of(r);
    ++decoder_of(request.decoder).held;
    request.moving = true;
    request.moved_from = caches_.now();
    ++out_.transfers_started;
    const double late = request.read ? 0 : 1.0 / static_cast<double>(in_.fabric.layers);
    begin_send(r, 1 - late);
  }

  /// Orders a share of the request's cache to be sent.
  void begin_send(std::int32_t r, double share) {
    const Request& request = request_of(r);
    caches_.order(r, pair_of(r, request), share, request.read);
  }

  /// The pair of replicas between which a request's cache goes; in the pool that decodes coupled replicas take turns.
  [[nodiscard]] std::size_t pair_of(std::int32_t r, const Request& request) const {
    const KvFabric& fabric = in_.fabric;
    const PoolReplicas read{in_.prefill.servers, fabric.prefill_replicas, fabric.prefill_coupled};
    const PoolReplicas decode{in_.decode.servers, fabric.decode_replicas, fabric.decode_coupled};
    const std::int64_t from =
        read.of(server_of(request.lane), request.lane / static_cast<std::int64_t>(readers_.size()));
    const std::int64_t to = decode.of(request.decoder, r % fabric.decode_coupled);
    return static_cast<std::size_t>(from * in_.fabric.decode_replicas + to);
  }

  void end_transfer(std::int32_t r) {
    Request& request = request_of(r);
    ++out_.transfers_done;
    --lanes_[static_cast<std::size_t>(request.lane)].held;
    touched_readers_.insert(server_of(request.lane));
    request.first_token = caches_.now();
    Decoder& decoder = decoder_of(request.decoder);
    decoder.ready.push_back(r);
    if (!decoder.busy) return touched_decoders_.insert(request.decoder);
    if (decoder.ready.size() == 1) cut_run(request.decoder);
  }

  // ---- decode ----

  void start_decoding(std::int32_t s) {
    Decoder& server = decoder_of(s);
    server.fresh = 0;
    for (std::size_t i = 0; i < server.ready.size(); ++i) {
      const std::int32_t r = server.ready[i];
      if (in_.load.output_tokens == 1) {
        done(r);
        continue;
      }
      ++server.fresh;
      Request& request = request_of(r);
      request.done_at = server.decoded + in_.load.output_tokens - 1;
      server.running.push(r);
      server.cached += static_cast<double>(in_.load.prompt_tokens);
      add(request.classes, server.spent, -1);
    }
    server.ready.clear();
    if (server.running.empty()) return;
    const auto count = static_cast<std::int64_t>(server.running.size());
    const std::int64_t left = request_of(server.running.front()).done_at - server.decoded;
    // Each sequence meets the token that its latest step gave.
    server.run =
        decode_times_.run(caches_.now(), count, server.cached + static_cast<double>(count), left, server.own);
    server.unmeasured = 0;
    server.busy = true;
    set_end(s);
  }

  void set_end(std::int32_t s) {
    const DecodeRun& run = decoder_of(s).run;
    alarms_.set(static_cast<std::size_t>(s), run.begin + run.seconds(run.iterations));
  }

  /// Shortens the run because a sequence waits to join, which it can after the running iteration.
  void cut_run(std::int32_t s) {
    DecodeRun& run = decoder_of(s).run;
    if (run.iterations == 1) return;
    const std::int64_t ended = run.ended_before(CacheTransfers::before(caches_.now()));
    if (ended + 1 >= run.iterations) return;
    run.iterations = ended + 1;
    set_end(s);
  }

  void end_decoding(std::int32_t s) {
    Decoder& server = decoder_of(s);
    const DecodeRun& run = server.run;
    server.busy = false;
    touched_decoders_.insert(s);
    if (measuring()) record(server, run.iterations);
    run.add_to(server.spent, run.iterations);
    server.decoded += run.iterations;
    server.cached += run.sequences * static_cast<double>(run.iterations);
    while (!server.running.empty() && request_of(server.running.front()).done_at == server.decoded) {
      const std::int32_t r = server.running.pop();
      server.cached -= static_cast<double>(in_.load.prompt_tokens + in_.load.output_tokens - 1);
      add(request_of(r).classes, server.spent, 1);
      done(r);
    }
  }

  /// Records the gaps between tokens of the run's first `count` iterations, as far as they are measured.
  void record(const Decoder& server, std::int64_t count) {
    const DecodeRun& run = server.run;
    const auto sequences = static_cast<std::int64_t>(run.sequences);
    std::int64_t from = server.unmeasured;
    if (count <= from) return;
    decode_iterations_ += static_cast<double>(count - from);
    decoded_ += static_cast<double>((count - from) * sequences);
    if (keep_) keep_run(run, from, count);
    if (from == 0 && server.fresh > 0) {
      const double seconds = run.first();
      if (sequences > server.fresh) gaps_.push_back({seconds, 0, 1, sequences - server.fresh});
      for (auto i = static_cast<std::size_t>(sequences - server.fresh); i < server.running.size(); ++i)
        gaps_.push_back({run.begin + seconds - request_of(server.running[i]).first_token, 0, 1, 1});
      from = 1;
    }
    if (count == from) return;
    const double first = run.first() + run.step() * static_cast<double>(from);
    gaps_.push_back({first, count - from > 1 ? run.step() : 0, count - from, sequences});
  }

  void keep_run(const DecodeRun& run, std::int64_t from, std::int64_t count) {
    Iteration first;
    first.decoding = run.sequences;
    first.cached = run.cached + run.sequences * static_cast<double>(from);
    out_.decode_iterations.push_back({first, static_cast<std::int64_t>(run.sequences), count - from});
  }

  void done(std::int32_t r) {
    const Request& request = request_of(r);
    ++out_.requests_done;
    if (measuring()) {
      ttft_.push_back(request.first_token - request.sent);
      e2e_.push_back(caches_.now() - request.sent);
      accounts_.add(
          r, {request.sent, request.first_token, caches_.now(), request.first_token - request.moved_from,
              request.first_token - std::max(request.read_at, request.moved_from), request.classes});
    }
    const std::int32_t s = request.decoder;
    const auto decoder = static_cast<std::size_t>(s);
    assigned_.set(decoder, assigned_[decoder] - 1);
    --decoder_of(s).held;
    arrive(r);
    fill_places(s);
  }

  // ---- the measured part ----

  void begin_measuring() {
    from_ = caches_.now();
    for (Decoder& server : decoders_)
      if (server.busy) server.unmeasured = server.run.ended_before(caches_.end_of_instant());
  }

  DisaggregatedMeasured finish() {
    for (const Decoder& server : decoders_)
      if (server.busy) record(server, server.run.ended_before(caches_.end_of_instant()));
    out_.bytes_sent = caches_.bytes_sent();
    Measured& m = out_.requests;
    out_.requests_measured = static_cast<double>(e2e_.size());
    m.periodic = false;
    m.ttft = spread_of(ttft_);
    m.e2e = spread_of(e2e_);
    m.itl = spread_of(gaps_);
    m.itl.mean = 0;  // which follows from the accounts
    if (decode_iterations_ > 0) m.decode_batch = decoded_ / decode_iterations_;
    accounts_.fill(in_.load.output_tokens, out_);
    return std::move(out_);
  }

  const DisaggregatedLoad& in_;
  const bool keep_;
  CacheTransfers caches_;
  PromptTimes prompt_times_;
  DecodeTimes decode_times_;
  std::vector<Request> requests_;
  ClientAccounts accounts_;
  std::vector<Lane> lanes_;
  std::vector<Reader> readers_;
  std::vector<Decoder> decoders_;
  Touched touched_readers_, touched_decoders_;  ///< servers that may be able to go on
  // Events of this instant that have not been handled yet:
  std::vector<std::size_t> due_;
  Least<double> alarms_;
  Least<std::int64_t> queued_;    ///< tokens at each lane that wait or are being read
  Least<std::int64_t> assigned_;  ///< requests of each decoder that are not done
  std::int64_t begin_measuring_ = 0, end_measuring_ = 0;
  double from_ = -1;  ///< begin of the measured part in seconds; < 0: not measuring yet
  std::vector<double> ttft_, e2e_;
  std::vector<Progression> gaps_;
  double decode_iterations_ = 0, decoded_ = 0;
  DisaggregatedMeasured out_;
};

}  // namespace

DisaggregatedMeasured serve_disaggregated(const DisaggregatedLoad& load, bool keep_iterations) {
  return PooledCourse(load, keep_iterations).run();
}

}  // namespace shardscape::serving
