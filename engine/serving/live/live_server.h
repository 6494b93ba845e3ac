// One server of a simulated load: its iterations one after the other, stretches of decode iterations in which nothing
// changes as one piece of work (decode_times.h), which ends early where a request comes that may be admitted.
#pragma once

#include <limits>
#include <vector>

#include "engine/base/check.h"
#include "engine/serving/live/tally.h"

namespace shardscape::serving {

class LiveServer {
 public:
  /// `plain`: every iteration is a piece of work of its own. All references must outlive this object.
  LiveServer(const LiveRules& rules, const Timer& timer, DecodeTimes& times, Tally& tally, bool plain)
      : state_(rules), timer_(timer), times_(times), tally_(tally), plain_(plain) {}
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  static constexpr double kNever = std::numeric_limits<double>::infinity();
  /// When the work under way ends; kNever where there is none.
  [[nodiscard]] double ends() const { return works_ ? end_ : kNever; }
  /// When an idle server begins to work; kNever where it works, or has nothing to do.
  [[nodiscard]] double wakes() const { return works_ ? kNever : wakes_; }
  [[nodiscard]] std::int64_t unfinished() const { return unfinished_; }
  [[nodiscard]] const ServerState& state() const { return state_; }

  /// A request comes, at request.ready.
  void arrive(const DrawnRequest& request);
  /// Ends the work under way; done(sequence) for each request that is done with it.
  template <class Done>
  void finish(const Done& done) {
    book();
    works_ = false;
    state_.take_done([&](const Sequence& s) {
      --unfinished_;
      done(s);
    });
    SHARDSCAPE_CHECK(!state_.idle() || (state_.used_blocks() == 0 && state_.tokens_held() == 0),
                     "blocks are lost", state_.used_blocks(), state_.tokens_held());
    wakes_ = state_.idle() && arrived_.empty() ? kNever : end_;
  }
  /// Plans and begins the next work, at wakes().
  void start();
  /// Books what has been done of the work under way: iterations that have ended.
  void settle(double now);

 private:
  /// Decode iterations from the work's begin until a boundary at or after `moment` at which the server looks at new
  /// requests.
  [[nodiscard]] std::int64_t first_look(std::int64_t boundary) const;
  void look();
  [[nodiscard]] double held_seconds() const;
  void end_run_after(std::int64_t iterations);
  void book();
  void book_gaps(const Progression& gaps);

  ServerState state_;
  const Timer& timer_;
  DecodeTimes& times_;
  Tally& tally_;
  const bool plain_;
  struct Arrived {
    DrawnRequest request;
    std::int64_t earliest = 0;  ///< count of `ended_` from which on it may join, where the server is not idle
    std::int64_t looked_at = 0;  ///< count of `polled_` at which the server looks at it; 0: at its next look
  };
  std::vector<Arrived> arrived_;  ///< in order; not looked at when the work under way began
  std::int64_t unfinished_ = 0;
  std::int64_t ended_ = 0;   ///< iterations so far
  std::int64_t polled_ = 0;  ///< decode iterations since the counter of looks began
  bool works_ = false;
  double wakes_ = kNever, end_ = 0, begin_ = 0;
  Batch batch_;
  bool runs_ = false;          ///< the work is a run of decode iterations, not a single iteration
  bool admits_later_ = false;  ///< a request that comes during the run may be admitted
  DecodeRun run_;
  DecodePiece own_;
  IterationTime time_{};  ///< of a single iteration
};

}  // namespace shardscape::serving
