#include "engine/serving/live/serve_load.h"

#include <algorithm>
#include <deque>
#include <memory>

#include "engine/serving/least.h"
#include "engine/serving/live/live_server.h"

namespace shardscape::serving {

namespace {

constexpr double kNever = LiveServer::kNever;

/// The lengths that sequences may have, in the form in which decode times are tabled.
Load lengths_of(const Offered& offered) {
  const LoadSpec& load = offered.load;
  Load lengths;
  lengths.clients = offered.clients;
  lengths.prompt_tokens = load.prompt.shortest;
  lengths.output_tokens = load.prompt.longest + load.output.longest - load.prompt.shortest;
  return lengths;
}

/// Sends requests, in order of the moments at which schedulers may see them.
class Senders {
 public:
  /// At most `most` requests are sent; in an open loop that is `at_once` all of them at time 0.
  Senders(const Offered& offered, double frontend, std::int64_t most, bool at_once)
      : requests_(offered.load, offered.every), frontend_(frontend), most_(most) {
    open_ = offered.load.open() && !at_once;
    const std::int64_t first = at_once ? most : open_ ? std::min<std::int64_t>(1, most) : offered.clients;
    for (std::int64_t i = 0; i < first; ++i) send(0);
  }

  [[nodiscard]] double next() const { return underway_.empty() ? kNever : underway_.front().ready; }
  DrawnRequest take() {
    const DrawnRequest request = underway_.front();
    underway_.pop_front();
    if (open_) send(0);
    return request;
  }
  /// A request is done.
  void done(double now) {
    if (!open_) send(now);
  }

 private:
  /// Sends a request now, in an open loop at its own moment.
  void send(double now) {
    if (sent_ == most_) return;
    DrawnRequest request = open_ ? requests_.next_arrival() : requests_.request(sent_);
    if (!open_) request.sent = now;
    request.ready = request.sent + frontend_;
    underway_.push_back(request);
    ++sent_;
  }

  DrawnRequests requests_;
  const double frontend_;
  const std::int64_t most_;
  bool open_ = false;
  std::int64_t sent_ = 0;
  std::deque<DrawnRequest> underway_;
};

class Service {
 public:
  Service(const Offered& offered, const LiveRules& rules, const Timer& timer, Stride stride,
          std::vector<RequestRecord>* records, bool saturated)
      : rules_(rules),
        records_(records),
        steady_(offered.load.statistic == ClientStatistic::steady && !saturated),
        warm_up_(steady_ ? offered.load.warm_up.of(offered.clients) : 0),
        counted_(count_of(offered, rules, saturated)),
        tally_(rules),
        times_(lengths_of(offered), timer),
        senders_(offered, rules.frontend, most_sent(offered), saturated),
        ends_(static_cast<std::size_t>(rules.servers), kNever),
        wakes_(static_cast<std::size_t>(rules.servers), kNever),
        unfinished_(static_cast<std::size_t>(rules.servers), 0) {
    for (std::int64_t i = 0; i < rules.servers; ++i)
      servers_.emplace_back(rules, timer, times_, tally_, stride == Stride::plain);
  }

  LiveMeasured run() {
    while (done_ < warm_up_ + counted_) {
      const double next = senders_.next(), ends = ends_.value(), wakes = wakes_.value();
      // Iterations without end (a figure out of range): nothing happens any more.
      if (!(std::min({next, ends, wakes}) < kNever)) return without_end();
      if (next <= std::min(ends, wakes)) {
        deliver(senders_.take());
      } else if (ends <= wakes) {
        finish(ends_.index());
      } else {
        const std::size_t i = wakes_.index();
        servers_[i].start();
        keep_time(i);
      }
    }
    settle();
    LiveMeasured out = tally_.result(now_);
    out.preemptions = preemptions() - preempted_before_;
    return out;
  }

  /// Whether at the moment when the last of the requests that count came so many waited that the servers may not have
  /// kept up: more than one in a hundred.
  [[nodiscard]] bool falls_behind() const { return backlog_ > rules_.servers + (warm_up_ + counted_) / 100; }
  /// Requests that came per second until then.
  [[nodiscard]] double came_per_s() const { return static_cast<double>(warm_up_ + counted_) / last_came_; }
  /// Requests per second from the first generation's end until no request waited.
  [[nodiscard]] double saturated_rate() const {
    return busy_done_ > first_done_
               ? static_cast<double>(busy_done_ - first_done_) / (busy_until_ - first_until_)
               : static_cast<double>(done_) / now_;
  }

 private:
  static LiveMeasured without_end() {
    LiveMeasured out;
    out.requests = 1;
    out.e2e.mean = kNever;
    return out;
  }

  /// Servers that never lack requests are watched for four generations at least, as far as that is not too long.
  [[nodiscard]] static std::int64_t count_of(const Offered& offered, const LiveRules& rules, bool saturated) {
    constexpr std::int64_t kGenerations = 4, kMost = 1 << 17;
    const std::int64_t counted = std::max<std::int64_t>(1, offered.load.requests.of(offered.clients));
    if (!saturated) return counted;
    return std::max(counted, std::min(kGenerations * rules.max_batch * rules.servers, kMost));
  }

  /// In steady state requests are sent without end; but where they are not kept up with, twice as many as count are
  /// enough to keep all servers busy.
  [[nodiscard]] std::int64_t most_sent(const Offered& offered) const {
    if (!steady_) return counted_;
    return 2 * (warm_up_ + counted_) + offered.clients;
  }

  [[nodiscard]] std::int64_t waiting() const {
    std::int64_t all = 0;
    for (const LiveServer& server : servers_) all += server.unfinished() - server.state().running();
    return all;
  }

  [[nodiscard]] std::int64_t preemptions() const {
    std::int64_t all = 0;
    for (const LiveServer& server : servers_) all += server.state().preemptions();
    return all;
  }

  /// What servers have done until now is booked, and nothing of what comes.
  void settle() {
    for (LiveServer& server : servers_) server.settle(now_);
  }

  void keep_time(std::size_t i) {
    ends_.set(i, servers_[i].ends());
    wakes_.set(i, servers_[i].wakes());
  }

  void deliver(const DrawnRequest& request) {
    std::size_t to = static_cast<std::size_t>(request.number) % servers_.size();
    if (rules_.routing == Routing::least_loaded) to = unfinished_.index();
    servers_[to].arrive(request);
    unfinished_.set(to, servers_[to].unfinished());
    keep_time(to);
    if (++came_ == warm_up_ + counted_) {
      backlog_ = waiting();
      last_came_ = request.ready;
    }
  }

  void finish(std::size_t i) {
    now_ = servers_[i].ends();
    const std::int64_t before = done_;
    servers_[i].finish([&](const Sequence& sequence) {
      senders_.done(now_);
      if (done_ == warm_up_ + counted_) return;
      ++done_;
      tally_.done(sequence, now_);
      if (records_ != nullptr && done_ > warm_up_)
        records_->push_back({sequence.request, sequence.admitted, sequence.first_token, now_});
      if (done_ == warm_up_) {
        settle();
        tally_.restart(now_);
        preempted_before_ = preemptions();
      }
    });
    if (done_ > before && done_ <= rules_.max_batch * rules_.servers)
      first_done_ = done_, first_until_ = now_;
    if (done_ > before && servers_[i].state().has_waiting()) busy_done_ = done_, busy_until_ = now_;
    unfinished_.set(i, servers_[i].unfinished());
    keep_time(i);
  }

  const LiveRules& rules_;
  std::vector<RequestRecord>* records_;
  const bool steady_;
  const std::int64_t warm_up_, counted_;
  Tally tally_;
  DecodeTimes times_;
  Senders senders_;
  std::deque<LiveServer> servers_;
  Least<double> ends_, wakes_;
  Least<std::int64_t> unfinished_;
  double now_ = 0;
  std::int64_t done_ = 0, came_ = 0, backlog_ = 0;
  std::int64_t preempted_before_ = 0;  ///< in the warm-up
  std::int64_t first_done_ = 0, busy_done_ = 0;
  double first_until_ = 0, busy_until_ = 0, last_came_ = 0;
};

}  // namespace

LiveMeasured serve_load(const Offered& offered, const LiveRules& rules, const Timer& timer, Stride stride,
                        std::vector<RequestRecord>* records) {
  Service service(offered, rules, timer, stride, records, false);
  LiveMeasured out = service.run();
  if (!offered.load.open() || !service.falls_behind()) return out;
  Service saturated(offered, rules, timer, stride, nullptr, true);
  saturated.run();
  const double holds = saturated.saturated_rate();
  const double comes = offered.load.trace ? service.came_per_s()
                                          : offered.load.request_rate / static_cast<double>(offered.every);
  if (comes > holds) out.sustained_per_s = holds;
  return out;
}

}  // namespace shardscape::serving
