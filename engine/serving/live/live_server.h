// One server of a simulated load: its iterations one after the other, stretches of decode iterations in which nothing
// changes as one piece of work (decode_times.h), which ends early where a request comes that may be admitted.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/serving/live/tally.h"

namespace shardscape::serving {

class LiveServer {
 public:
  /// `plain`: every iteration is a piece of work of its own. All references must outlive this object.
  LiveServer(const LiveRules& rules, const Timer& timer, DecodeTimes& times, Tally& tally, bool plain)
      : state_(rules), timer_(timer), times_(times), tally_(tally), plain_(plain) {}
  /// Keeps all work from now on, as that of the server with this number. `works` must outlive this object.
  void keep_works(std::int64_t number, std::vector<WorkRecord>& works) {
    number_ = number;
    record_ = &works;
  }
  /// Another server in the state of one that is between two works, which goes on by itself.
  LiveServer(const LiveServer&) = default;
  LiveServer& operator=(const LiveServer&) = delete;

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// When the work under way ends; kNever where there is none.
  [[nodiscard]] double ends() const { return works_ ? end_ : kNever; }
  /// When an idle server begins to work; kNever where it works, or has nothing to do.
  [[nodiscard]] double wakes() const { return works_ ? kNever : wakes_; }
  [[nodiscard]] std::int64_t unfinished() const { return unfinished_; }
  /// Requests that have come and do not run.
  [[nodiscard]] std::int64_t waiting() const {
    return static_cast<std::int64_t>(arrived_.size()) + state_.waiting();
  }
  [[nodiscard]] const ServerState& state() const { return state_; }

  /// A request comes, at request.ready.
  void arrive(const DrawnRequest& request) { arrive(request, request.ready); }
  /// A request comes at that moment.
  void arrive(const DrawnRequest& request, double now);

  // ---- caches that move between pools ----

  /// Takes a place and blocks for a request that another server has read, if there are any (ServerState::expect).
  std::int32_t expect(const DrawnRequest& request, double now);
  [[nodiscard]] Sequence& moving(std::int32_t slot) { return state_.moving(slot); }
  /// Its cache arrives, and with it its first token: done(sequence) if that is its last.
  template <class Done>
  void land(std::int32_t slot, double now, const Done& done) {
    Sequence& s = state_.moving(slot);
    s.landed = now;
    s.first_token = s.request.steps > 0 && state_.rules().answer_after > 0 ? kNever : now;
    if (s.request.steps > 0) return join_next(slot, now);
    --unfinished_;
    done(s);
    state_.drop_moved(slot);
    // What was preempted may be admitted to the place and the blocks that are free now.
    if (state_.has_waiting()) cut_run(now);
    wake(now);
  }
  /// See ServerState::hold.
  void hold(const DrawnRequest& request) { state_.hold(request); }
  void let_go(const DrawnRequest& request, double now) {
    state_.let_go(request);
    wake(now);
  }
  /// Ends the work under way; done(sequence) for each request that is done with it.
  template <class Done>
  void finish(const Done& done) {
    book();
    works_ = false;
    state_.take_done([&](const Sequence& s) {
      --unfinished_;
      done(s);
    });
    wakes_ = has_work() ? end_ : kNever;
    SHARDSCAPE_CHECK(!state_.idle() || (state_.used_blocks() == 0 && state_.tokens_held() == 0),
                     "blocks are lost", state_.used_blocks(), state_.tokens_held());
  }
  /// How many requests finish() would find done.
  [[nodiscard]] std::int64_t completes() const {
    return state_.ending(batch_.ended, !batch_.decodes ? 0 : runs_ ? run_.iterations : 1);
  }
  /// Between two works: see ServerState::describe.
  void describe(double now, std::int64_t number, StateOfServer& state) const;
  /// Plans and begins the next work, at wakes(). Where everything waits for blocks of caches that are leaving, there is
  /// none.
  void start();
  /// Books what has been done of the work under way: iterations that have ended.
  void settle(double now);
  // ---- links that iterations have in common with caches ----

  void share_links(const SendingShares& on_links) { on_links_ = &on_links; }
  /// From now on caches are on the links, or are not there any more. What the running iteration has still to send is
  /// then sent beside them.
  void meet_caches(bool there, double now);
  /// Whether an iteration has come to the point where it sends, at ends().
  [[nodiscard]] bool has_to_send() const { return to_send_ > 0; }
  /// It sends for so many seconds, were it alone; it has no end until all is sent.
  double begin_sending() {
    end_ = kNever;
    return std::exchange(to_send_, 0);
  }
  void end_sending(double now);
  /// When so much of the iteration that has just begun will be done, were it alone on its links.
  [[nodiscard]] double moment_at(double share) const {
    return begin_ + share * (end_ + std::max(0.0, to_send_) - begin_);
  }

  // ---- servers that only read and schedule ahead ----

  /// Whether the host looks at what the iteration that has just ended gave only when it has launched the next one
  /// (SGLang, event_loop_overlap_disagg_prefill, since its loop launches by itself; vLLM's workers hand results over
  /// beside the launch): launching is what the host did last, and there is something to launch. (Where the device is
  /// slower the host launches the next as this one begins, and has nothing left to do at its end: see is_fixed.)
  [[nodiscard]] bool launches_before_it_looks() const {
    const LiveRules& rules = state_.rules();
    return rules.reads_only && admission(rules).launches_to_look && rules.schedule_ahead > 0 && host_bound_ &&
           wakes_ == end_;
  }
  /// Seconds in which the host launches the work under way.
  [[nodiscard]] double launch() const { return works_ ? launch_ : 0; }

  [[nodiscard]] bool works() const { return works_; }
  /// Of the latest iteration that was planned.
  [[nodiscard]] const Batch& batch() const { return batch_; }

 private:
  [[nodiscard]] bool has_work() const {
    return state_.running() > state_.moving() || state_.has_waiting() || !arrived_.empty() ||
           !landed_.empty();
  }
  void wake(double now) {
    if (!works_ && has_work()) wakes_ = std::min(wakes_, now);
  }
  void join_next(std::int32_t slot, double now);
  void cut_run(double now);
  void note_looks(std::int64_t boundary);
  /// Whether a look during a run of iterations may change anything: who waits for others begins to wait once the first
  /// of them has joined the queue.
  [[nodiscard]] bool looks_later() const {
    return (admits_later_ || state_.rules().balance_wait > 0) && !crowded_;
  }
  /// Iterations from the work's begin until the first that has come may join.
  [[nodiscard]] std::int64_t first_joins_after() const;
  [[nodiscard]] bool is_fixed() const;
  void look();
  [[nodiscard]] double held_seconds() const;
  /// What those wait for that the iteration just planned leaves waiting.
  [[nodiscard]] WaitsFor waits();
  void end_run_after(std::int64_t iterations);
  [[nodiscard]] double sending() const;
  void send_from(double now);
  void book();
  void book_gaps(const Progression& gaps);
  void book_answers(std::int64_t iterations);

  ServerState state_;
  const Timer& timer_;
  DecodeTimes& times_;
  Tally& tally_;
  const bool plain_;
  std::int64_t number_ = 0;
  std::vector<WorkRecord>* record_ = nullptr;
  struct Arrived {
    DrawnRequest request;
    std::int64_t earliest = 0;  ///< count of `ended_` from which on it may join, where the server is not idle
    std::int64_t looked_at =
        -1;  ///< count of `polled_` at which the server looks at it; -1: at its next look
  };
  std::vector<std::int32_t> landed_;  ///< slots of sequences that join with the next work
  struct Answer {
    std::int32_t slot;
    std::int64_t number,
        after;  ///< of the request; and the count of `ended_` at which its client has the first token
  };
  std::deque<Answer> answers_;    ///< to come
  std::vector<Arrived> arrived_;  ///< in order; not looked at when the work under way began
  std::int64_t unfinished_ = 0;
  std::int64_t ended_ = 0;   ///< iterations so far
  std::int64_t polled_ = 0;  ///< decode iterations since the counter of looks began
  bool works_ = false;
  double wakes_ = kNever, end_ = 0, begin_ = 0;
  Batch batch_;
  WaitsFor waits_ = WaitsFor::nothing, later_ = WaitsFor::nothing;
  double later_from_ = kNever;  ///< as in WorkRecord
  bool runs_ = false;           ///< the work is a run of decode iterations, not a single iteration
  bool admits_later_ = false;   ///< a request that comes during the run may be admitted
  bool crowded_ = false;        ///< as many wait as an iteration has room for, so that nobody joins them
  DecodeRun run_;
  DecodePiece own_;
  IterationTime time_{};     ///< of a single iteration
  double launch_ = 0;        ///< seconds in which the host launches the latest iteration that reads
  bool host_bound_ = false;  ///< and these are all it takes
  bool stood_ = false;       ///< at the latest start all waited for blocks
  const SendingShares* on_links_ = nullptr;
  bool met_ = false;  ///< caches are on the links
  double to_send_ =
      -1;  ///< seconds that the iteration will send, were it alone; negative: not told from its end
};

}  // namespace shardscape::serving
