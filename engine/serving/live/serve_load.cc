// The course of a load on replicas: the next of what is sent, ends or begins is dealt with until all requests that
// count are done. A router decides which server a request goes to.
#include "engine/serving/live/serve_load.h"

#include <algorithm>
#include <vector>

#include "engine/network/flows/fluid.h"
#include "engine/serving/least.h"
#include "engine/serving/live/alike_servers.h"
#include "engine/serving/live/live_server.h"
#include "engine/serving/live/load_course.h"
#include "engine/serving/live/router.h"

namespace shardscape::serving {

namespace {

constexpr double kNever = LiveServer::kNever;

/// When a server's work ends, or an idle one begins to work; of what is at one moment ends come first.
struct Moment {
  double at = kNever;
  bool wakes = true;
  friend auto operator<=>(const Moment&, const Moment&) = default;
};

class Service {
 public:
  Service(const Offered& offered, const LiveRules& rules, const Timer& timer, Stride stride,
          const LoadObserver& observer, Supply supply)
      : course_(offered, rules.frontend, rules.max_batch * rules.servers, supply, observer),
        tally_(rules, offered.load.promised),
        times_(lengths_of(offered), timer),
        moments_(static_cast<std::size_t>(rules.servers), Moment(), Moment()),
        router_(rules) {
    servers_.reserve(static_cast<std::size_t>(rules.servers));
    for (std::int64_t i = 0; i < rules.servers; ++i)
      servers_.emplace_back(rules, timer, times_, tally_, stride == Stride::plain);
    if (course_.record() != nullptr) *course_.record() = LoadRecord{0, rules.servers, {}, {}};
    for (std::size_t i = 0; course_.record() != nullptr && i < servers_.size(); ++i)
      servers_[i].keep_works(static_cast<std::int64_t>(i), course_.record()->works);
  }

  LiveMeasured run() {
    while (!course_.over()) {
      const double next = course_.senders.next();
      const Moment moment = moments_.value();
      if (!(std::min(next, moment.at) < kNever) ||
          !course_.note_event(tally_.reads(), [&] { return waiting(); }))
        return LoadCourse::without_end();
      // Servers that do the same send requests at one moment up to rounding: an idle one waits for all it gets of them.
      if (next <= (moment.wakes ? moment.at * (1 + network::kTie) : moment.at)) {
        deliver(course_.senders.take());
      } else if (moment.wakes) {
        const std::size_t i = moments_.index();
        servers_[i].start();
        keep_time(i);
      } else {
        finish(moments_.index());
      }
    }
    settle();
    LiveMeasured out = tally_.result(now_);
    out.preemptions = preemptions() - preempted_before_;
    return out;
  }
  [[nodiscard]] const LoadCourse& course() const { return course_; }

 private:
  [[nodiscard]] std::int64_t waiting() const {
    std::int64_t all = 0;
    for (const LiveServer& server : servers_) all += server.waiting();
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
    const LiveServer& server = servers_[i];
    const bool wakes = !server.works();
    moments_.set(i, {wakes ? server.wakes() : server.ends(), wakes});
  }

  void deliver(const DrawnRequest& request) {
    const std::size_t to = router_.server_for(request, servers_);
    servers_[to].arrive(request);
    router_.note_unfinished(to, servers_[to].unfinished());
    keep_time(to);
    course_.comes([&] { return waiting(); });
  }

  void finish(std::size_t i) {
    now_ = servers_[i].ends();
    servers_[i].finish([&](const Sequence& sequence) {
      course_.is_done(
          sequence, now_, [&] { tally_.done(sequence, now_); },
          [&] {
            settle();
            tally_.restart(now_);
            preempted_before_ = preemptions();
          });
    });
    course_.note_rate(now_, servers_[i].waiting() > 0);
    router_.note_unfinished(i, servers_[i].unfinished());
    keep_time(i);
  }

  LoadCourse course_;
  Tally tally_;
  DecodeTimes times_;
  std::vector<LiveServer> servers_;
  Least<Moment> moments_;  ///< by server
  Router router_;
  double now_ = 0;
  std::int64_t preempted_before_ = 0;  ///< in the warm-up
};

}  // namespace

LiveMeasured serve_load(const Offered& offered, const LiveRules& rules, const Timer& timer, Stride stride,
                        const LoadObserver& observer) {
  if (stride == Stride::runs && observer.record == nullptr && all_alike(offered, rules))
    return serve_alike(offered, rules, timer, observer.go_on);
  return measure_load(offered, rules.servers, [&](Supply supply, LiveMeasured& out) {
    Service service(offered, rules, timer, stride, observer, supply);
    out = service.run();
    return service.course();
  });
}

}  // namespace shardscape::serving
