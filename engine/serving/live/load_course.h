// What simulations of a load have in common: which requests are sent and count, when the course is over, and whether
// servers keep up with an open loop.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/serving/live/senders.h"
#include "engine/serving/live/tally.h"

namespace shardscape::serving {

/// The lengths that sequences of a load may have, in the form in which decode times are tabled.
inline Load lengths_of(const Offered& offered) {
  const LoadSpec& load = offered.load;
  Load lengths;
  lengths.clients = offered.clients;
  lengths.prompt_tokens = load.prompt.shortest;
  lengths.output_tokens = load.prompt.longest + load.output.longest - load.prompt.shortest;
  return lengths;
}

/// How the simulation is asked for: as the load is, with an end where the servers fall behind (note_event()) or
/// without one, or with servers that never lack requests.
enum class Supply : std::uint8_t { as_sent, all_as_sent, without_end };

/// How many requests there are.
struct LoadCounts {
  /// `places`: the most requests that run at once, on all servers together.
  LoadCounts(const Offered& offered, std::int64_t places, Supply supply)
      : steady(offered.load.statistic == ClientStatistic::steady && supply != Supply::without_end),
        warm_up(steady ? offered.load.warm_up.of(offered.clients) : 0),
        counted(count_of(offered, places, supply)),
        most(steady ? 2 * (warm_up + counted) + offered.clients + places : counted) {}

  bool steady;
  std::int64_t warm_up, counted;  ///< that are done first, and that count after them
  /// That are sent. In steady state without end; but where they are not kept up with, twice as many as count beside
  /// those that run are enough to keep all servers busy.
  std::int64_t most;

 private:
  /// Servers that never lack requests are watched for four generations (of sessions) and all requests, if that is not
  /// too long.
  [[nodiscard]] static std::int64_t count_of(const Offered& offered, std::int64_t places, Supply supply) {
    constexpr std::int64_t kGenerations = 4, kMost = 1 << 17;
    const std::int64_t counted = std::max<std::int64_t>(1, offered.load.requests.of(offered.clients));
    if (supply != Supply::without_end) return counted;
    const std::optional<Sessions>& sessions = offered.load.sessions;
    const std::int64_t turns = sessions ? std::llround(std::ceil(sessions->means().turns)) : 1;
    return std::min(std::max(counted, kGenerations * turns * places), kMost);
  }
};

class LoadCourse {
 public:
  /// `places`: the most requests that run at once, on all servers together.
  LoadCourse(const Offered& offered, double frontend, std::int64_t places, Supply supply,
             const LoadObserver& observer)
      : record_(supply == Supply::without_end ? nullptr : observer.record),
        go_on_(observer.go_on),
        open_(offered.load.open()),
        may_be_cut_(open_ && supply != Supply::all_as_sent),
        saturated_(supply == Supply::without_end),
        counts_(offered, places, supply),
        senders(offered, frontend, counts_.most, supply == Supply::without_end ? places : 0) {}

  [[nodiscard]] bool over() const { return cut_ || done_ >= counts_.warm_up + counts_.counted; }
  /// Whether it ended before all requests that count were done, as the servers had fallen behind for so long.
  [[nodiscard]] bool cut() const { return cut_; }
  /// What the load's observer is given.
  [[nodiscard]] LoadRecord* record() const { return record_; }
  /// Something happens, after `reads` iterations that read prompts and with `waiting()` requests in the queues: after
  /// kMostIterations of servers that have fallen behind the course is over, as their latencies only grow. False where
  /// the observer, who is asked once in so many events, wants no more of it.
  template <class Waiting>
  [[nodiscard]] bool note_event(std::int64_t reads, const Waiting& waiting) {
    constexpr std::int64_t kUnasked = 1 << 12;
    if (reads >= kMostIterations && may_be_cut_ && done_ > counts_.warm_up && waiting() > came_ / 100) {
      cut_ = true;
      backlog_ = std::numeric_limits<std::int64_t>::max();
    }
    return ++events_ % kUnasked != 0 || !go_on_ || go_on_();
  }

  /// A request comes, and finds `waiting()` of them in the queues, of which is asked in an open loop alone.
  template <class Waiting>
  void comes(const Waiting& waiting) {
    const std::int64_t all = counts_.warm_up + counts_.counted;
    if (++came_ > all / 2 && came_ <= all && open_) backlog_ = std::max(backlog_, waiting());
  }

  /// A request is done, its client sends the next one: counted(), then restart() where the warm-up ends with it.
  template <class Counted, class Restart>
  void is_done(const Sequence& sequence, double now, const Counted& counted, const Restart& restart) {
    senders.done(sequence.request, now);
    if (over()) return;
    ++done_;
    if (saturated_) ends_.push_back(now);
    counted();
    if (record_ != nullptr && done_ > counts_.warm_up)
      record_->requests.push_back({sequence.request, sequence.admitted, sequence.first_token, now});
    if (done_ == counts_.warm_up) came_before_ = came_, restart();
  }
  /// Requests have been done by `now`, the last thing that happened, and others wait or do not.
  void note_rate(double now, bool waits) {
    if (done_ == noted_) return;
    noted_ = done_;
    if (waits) busy_done_ = done_;
    now_ = now;
  }

  /// Whether among the later half of the requests that count one found so many waiting that the servers may not have
  /// kept up: more than one in a hundred. (Servers that read all that waits at once, and then decode, have few waiting
  /// at some moments, whatever comes.)
  [[nodiscard]] bool falls_behind(std::int64_t servers) const {
    return backlog_ > servers + (counts_.warm_up + counts_.counted) / 100;
  }
  /// Requests per second that come until then, those that are cut off among them.
  [[nodiscard]] double comes_per_s(const Offered& offered) const {
    if (!offered.load.trace) return offered.load.offered_per_s() / static_cast<double>(offered.every);
    const std::int64_t all = counts_.warm_up + counts_.counted;
    return static_cast<double>(all) / DrawnRequests(offered.load, offered.every).traced(all - 1);
  }
  /// The share of those that count which are done.
  [[nodiscard]] double done() const {
    return static_cast<double>(done_ - counts_.warm_up) / static_cast<double>(counts_.counted);
  }
  /// What is measured from the warm-up's end to the last request's end, of a load in steady state. An open loop has
  /// none there where a tenth more or fewer come than are done, or, of servers that fall behind, are done than hold;
  /// and no load where no time is between them. What is less is noise; but never are more served than come.
  void judge(LiveMeasured& out) const {
    if (!counts_.steady) return;
    const std::int64_t more = came_ - came_before_ - out.requests;
    const bool apart = out.overloaded() ? out.requests_per_s > 1.1 * out.sustained_per_s
                                        : 10 * std::abs(more) > out.requests;
    out.unsteady = no_time(out.begun, now_) || (open_ && apart);
    if (!open_ || more >= 0 || came_ == counts_.most) return;
    const double share = 1 + static_cast<double>(more) / static_cast<double>(out.requests);
    out.requests_per_s *= share;
    out.output_tokens_per_s *= share;
  }
  /// Whether no time is between the moments from which on and to which is measured.
  [[nodiscard]] static bool no_time(double begun, double end) { return end <= begun * (1 + 1e-9); }
  /// Requests per second of servers that never lack requests and have up to `at_once` under way. These may all end
  /// together, so that the number done by a moment says little: what counts is the mean moment at which as many
  /// requests as run at once were done, from that of the second generation to that of the last before no request
  /// waited.
  [[nodiscard]] double saturated_rate(std::int64_t at_once) const {
    const std::int64_t generation = std::min(at_once, busy_done_ / 3);
    const auto mean_end = [&](std::int64_t last) {
      const auto to = ends_.begin() + last;
      return std::accumulate(to - generation, to, 0.0) / static_cast<double>(generation);
    };
    const double seconds = generation > 0 ? mean_end(busy_done_) - mean_end(2 * generation) : 0;
    return seconds > 0 ? static_cast<double>(busy_done_ - 2 * generation) / seconds
                       : static_cast<double>(done_) / now_;
  }

  /// What is measured where iterations have no end (a figure out of range) and nothing happens any more, or where the
  /// load was given up.
  static LiveMeasured without_end() {
    LiveMeasured out;
    out.requests = 1;
    out.e2e.mean = std::numeric_limits<double>::infinity();
    return out;
  }

 private:
  LoadRecord* record_;
  std::function<bool()> go_on_;
  std::int64_t events_ = 0;
  bool cut_ = false;
  const bool open_, may_be_cut_, saturated_;
  const LoadCounts counts_;
  std::int64_t done_ = 0, noted_ = 0, came_ = 0, came_before_ = 0, backlog_ = 0, busy_done_ = 0;
  std::vector<double> ends_;  ///< of servers that never lack requests: when each was done
  double now_ = 0;

 public:
  Senders senders;
};

/// Measures a load by run(supply, out), which returns a finished course and what it measured; where more requests
/// come than are kept up with, `sustained_per_s` of the result is set.
template <class Run>
LiveMeasured measure_load(const Offered& offered, std::int64_t servers, const Run& run) {
  LiveMeasured out;
  const LoadCourse course = run(Supply::as_sent, out);
  if (offered.load.open() && (offered.too_many || course.falls_behind(servers))) {
    LiveMeasured full;
    const double holds = run(Supply::without_end, full).saturated_rate(full.at_once);
    if (course.comes_per_s(offered) > holds) {
      out.sustained_per_s = holds;
      out.done = course.done();
    } else if (course.cut()) {  // they had fallen behind for a while only
      run(Supply::all_as_sent, out).judge(out);
      return out;
    }
  }
  course.judge(out);
  return out;
}

}  // namespace shardscape::serving
