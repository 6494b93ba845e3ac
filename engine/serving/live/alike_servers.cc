// Follows one server for all that are alike, with its own requests; looks for its state to come back, and adds up what
// the course until the next change of what is measured repeats.
#include "engine/serving/live/alike_servers.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/network/flows/fluid.h"
#include "engine/serving/live/live_server.h"

namespace shardscape::serving {

namespace {

/// Servers that do the same, and what is on its way to each of them.
struct Alike {
  LiveServer server;
  std::int64_t number = 1;  ///< of servers
  std::int64_t came = 0;    ///< requests to each
  std::deque<DrawnRequest> underway;
};

class AlikeCourse {
 public:
  AlikeCourse(const Offered& offered, const LiveRules& rules, const Timer& timer,
              const std::function<bool()>& go_on)
      : rules_(rules),
        counts_(offered, rules.max_batch * rules.servers, Supply::as_sent),
        request_(DrawnRequests(offered.load, offered.every).request(0)),
        each_(offered.clients / rules.servers),
        go_on_(go_on),
        tally_(rules, offered.load.promised),
        times_(lengths_of(offered), timer) {
    kinds_.push_back({LiveServer(rules, timer, times_, tally_, false), rules.servers, 0, {}});
  }

  LiveMeasured run() {
    send(kinds_.front(), each_, 0);
    // Kinds come to be once nothing is sent any more: one after the other goes on to its end.
    for (std::size_t i = 0; i < kinds_.size(); ++i)
      while (!over() && step(i))
        if (++events_ % kUnasked == 0 && go_on_ && !go_on_()) return LoadCourse::without_end();
    if (!over()) return LoadCourse::without_end();
    LiveMeasured out = tally_.result(end_);
    out.preemptions = preemptions() - preempted_before_;
    out.unsteady = counts_.steady && LoadCourse::no_time(out.begun, end_ + tally_.skipped());
    return out;
  }

 private:
  [[nodiscard]] bool over() const { return done_ >= counts_.warm_up + counts_.counted; }
  [[nodiscard]] bool warm() const { return done_ >= counts_.warm_up; }
  [[nodiscard]] std::int64_t preemptions() const {
    std::int64_t all = repeated_preemptions_;
    for (const Alike& kind : kinds_) all += kind.number * kind.server.state().preemptions();
    return all;
  }

  /// Sends as many requests of each server as there are left to send.
  void send(Alike& kind, std::int64_t each, double now) {
    const std::int64_t all = std::min(kind.number * each, counts_.most - sent_);
    const std::int64_t more = all % kind.number;
    sent_ += all;
    DrawnRequest request = request_;
    request.sent = now;
    request.ready = now + rules_.frontend;
    kind.underway.insert(kind.underway.end(), static_cast<std::size_t>(all / kind.number), request);
    if (more == 0) return;
    Alike others = kind;
    others.number -= more;
    kind.number = more;
    kind.underway.push_back(request);
    kinds_.push_back(std::move(others));
  }

  /// Deals with the next thing that happens; false where there is none.
  bool step(std::size_t i) {
    Alike& kind = kinds_[i];
    const double next = kind.underway.empty() ? kNever : kind.underway.front().ready;
    const double ends = kind.server.ends(), wakes = kind.server.wakes();
    if (!(std::min({next, ends, wakes}) < kNever)) return false;
    if (next <= (ends <= wakes ? ends : wakes * (1 + network::kTie))) {  // as in the course of all servers
      DrawnRequest request = std::exchange(kind.underway.front(), {});
      kind.underway.pop_front();
      request.number = kind.came++;
      kind.server.arrive(request);
    } else if (ends <= wakes) {
      finish(i);
    } else {
      kind.server.start();
    }
    return true;
  }

  void finish(std::size_t i) {
    Alike& kind = kinds_[i];
    const double now = kind.server.ends();
    end_ = std::max(end_, now);
    tally_.stands_for(kind.number);
    const std::int64_t limit = counts_.warm_up + (warm() ? counts_.counted : 0);
    std::int64_t done = 0;
    if (counts_.steady && done_ + kind.number * kind.server.unfinished() >= limit) {
      done = finish_in_turn(kind, now);
    } else {
      kind.server.finish([&](const Sequence& sequence) {
        ++done;
        tally_.done(sequence, now);
      });
      done_ += done * kind.number;
    }
    if (over() || done == 0) return;
    const bool all_alike = kinds_.size() == 1;
    send(kind, done, now);
    if (all_alike && kinds_.size() == 1) look_back(now);
  }

  /// Ends a work of all servers of a kind, one after the other, where among the requests that are done with it may be
  /// the last of the warm-up or the last that counts. Returns how many each server is done with.
  std::int64_t finish_in_turn(Alike& kind, double now) {
    const std::int64_t each = kind.server.completes(), all = each * kind.number;
    const std::int64_t left = counts_.warm_up - done_;
    const bool warms_up = left > 0 && left <= all;
    const std::int64_t until = counts_.warm_up + counts_.counted - done_;
    // Requests of this moment in the order of servers: those from `from` to `to` count, and the work of servers after
    // `first` up to `last`.
    const std::int64_t from = std::max<std::int64_t>(0, left), to = std::min(all, until);
    const std::int64_t first = warms_up ? (left - 1) / each : -1;
    const std::int64_t last = until <= all ? (until - 1) / each : kind.number - 1;
    if (warms_up || until <= all) kind.server.settle(now);
    if (warms_up) {
      tally_.restart(now);
      preempted_before_ = preemptions();
      reference_.reset();
      repeated_ = false;
    }
    tally_.stands_for(last - first);
    std::int64_t place = 0;
    kind.server.finish([&](const Sequence& sequence) {
      const auto before = [&](std::int64_t end) {
        return std::max<std::int64_t>(0, end - place + each - 1) / each;
      };
      tally_.stands_for(before(to) - before(std::min(from, to)));
      tally_.done(sequence, now);
      ++place;
    });
    done_ += to;
    return each;
  }

  // ---- states that come back ----

  /// What is compared first: nearly all states differ in it.
  struct Outline {
    std::int64_t waiting = 0, running = 0, decoding = 0, underway = 0;
    double tokens = 0;
    double age = 0;  ///< seconds since the request was sent that is admitted next
  };
  struct Reference {
    Outline outline;
    StateOfServer state;
    double now = 0;
    std::int64_t done = 0, preemptions = 0;
    Tally::Mark mark;
  };

  [[nodiscard]] Outline outline(double now) const {
    const Alike& kind = kinds_.front();
    const ServerState& state = kind.server.state();
    return {kind.server.waiting(), state.running(),
            state.decoding(),      std::ssize(kind.underway),
            state.tokens_met(),    state.has_waiting() ? now - state.head().request.sent : 0};
  }

  [[nodiscard]] StateOfServer state(double now) {
    const Alike& kind = kinds_.front();
    StateOfServer state;
    kind.server.describe(now, kind.came, state);
    for (const DrawnRequest& request : kind.underway) state.moments.push_back(request.ready - now);
    described_ += std::ssize(state.moments);
    return state;
  }

  /// Whether the state is that of the reference.
  [[nodiscard]] bool comes_back(double now) {
    const auto equal = [&](double a, double b) { return std::abs(a - b) <= kSame * now; };
    const Outline one = outline(now), &other = reference_->outline;
    if (std::tie(one.waiting, one.running, one.decoding, one.underway, one.tokens) !=
            std::tie(other.waiting, other.running, other.decoding, other.underway, other.tokens) ||
        !equal(one.age, other.age))
      return false;
    const StateOfServer is = state(now);
    return is.counts == reference_->state.counts &&
           std::ranges::equal(is.moments, reference_->state.moments, equal);
  }

  /// Requests are done: where the state is back, what has been done since is done again as often as may be.
  void look_back(double now) {
    if (repeated_ || described_ > kMostDescribed * events_) return;
    if (reference_ && comes_back(now)) return repeat(now);
    const std::int64_t each = done_ / rules_.servers;
    if (reference_ ? each < next_reference_ : each < each_) return;
    reference_ = Reference{outline(now), state(now), now, done_, preemptions(), tally_.mark()};
    next_reference_ = each + std::min(each, kMostPeriod * each_);
  }

  void repeat(double now) {
    repeated_ = true;
    const std::int64_t period = done_ - reference_->done;
    const std::int64_t limit = counts_.warm_up + (warm() ? counts_.counted : 0);
    const std::int64_t times = std::min((limit - done_ - 1) / period, (counts_.most - sent_) / period);
    if (times <= 0 || !tally_.repeat(reference_->mark, times, now - reference_->now)) return;
    done_ += times * period;
    sent_ += times * period;
    repeated_preemptions_ += times * (preemptions() - reference_->preemptions);
  }

  static constexpr double kNever = LiveServer::kNever;
  /// Moments that lie closer together, as a share of the time since the beginning, are equal up to rounding.
  static constexpr double kSame = 1e-11;
  static constexpr std::int64_t kUnasked = 1 << 12;
  /// Numbers of states that are looked at for each event: more would take longer than to go on event by event.
  static constexpr std::int64_t kMostDescribed = 16;

  const LiveRules& rules_;
  const LoadCounts counts_;
  const DrawnRequest request_;
  const std::int64_t each_;  ///< clients of each server
  const std::function<bool()>& go_on_;
  Tally tally_;
  DecodeTimes times_;
  std::deque<Alike> kinds_;
  std::int64_t sent_ = 0, done_ = 0, events_ = 0, described_ = 0;
  double end_ = 0;  ///< of the latest work
  std::int64_t preempted_before_ = 0, repeated_preemptions_ = 0;
  std::optional<Reference> reference_;
  std::int64_t next_reference_ = 0;  ///< requests of each server that are done when the reference is replaced
  /// A period was found, which is looked for once before the warm-up ends and once after.
  bool repeated_ = false;
};

}  // namespace

bool all_alike(const Offered& offered, const LiveRules& rules) {
  return offered.load.alike() && !rules.keeps_prefixes && rules.drafts == 0 &&
         offered.clients % rules.servers == 0 && (rules.servers == 1 || rules.frontend > 0);
}

LiveMeasured serve_alike(const Offered& offered, const LiveRules& rules, const Timer& timer,
                         const std::function<bool()>& go_on) {
  return AlikeCourse(offered, rules, timer, go_on).run();
}

}  // namespace shardscape::serving
