// The clients of a simulated load: send requests, in the order of the moments at which schedulers may see them.
//
// Of sessions a client is a user. The next turn is sent a think time after the answer before it; after the last turn a
// user of a closed loop thinks as long and begins another session, and one of an open loop is gone.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {

/// Who sends requests to some servers. `load` must outlive its use.
struct Offered {
  const LoadSpec& load;
  std::int64_t clients = 1;  ///< requests in flight, or users at their sessions, in closed loop
  std::int64_t every =
      1;                  ///< of an open loop's requests, every such comes to these servers (2: every second)
  bool too_many = false;  ///< more come than servers can keep up with, however few the load simulates
};

class Senders {
 public:
  /// At most `most` requests are sent. Servers with `saturated` places that never lack requests: all at time 0, or, of
  /// sessions, as those of twice as many users, who do not think. 0: as the load is.
  Senders(const Offered& offered, double frontend, std::int64_t most, std::int64_t saturated)
      : requests_(offered.load, offered.every), frontend_(frontend), most_(most) {
    sessions_ = offered.load.sessions.has_value();
    open_ = offered.load.open() && saturated == 0;
    at_once_ = saturated > 0 && !sessions_;
    thinks_ = saturated == 0;
    const std::int64_t users = saturated > 0 ? 2 * saturated : offered.clients;
    const std::int64_t first = std::min(at_once_ || open_ ? 1 : users, most);
    for (std::int64_t i = 0; i < first; ++i) send(0);
  }

  [[nodiscard]] double next() const {
    const double later =
        others_.empty() ? std::numeric_limits<double>::infinity() : others_.top().request.ready;
    return in_order_.empty() ? later : std::min(later, in_order_.front().request.ready);
  }
  /// Requests are numbered in this order.
  DrawnRequest take() {
    const bool other = in_order_.empty() || (!others_.empty() && in_order_.front() > others_.top());
    DrawnRequest request = other ? others_.top().request : in_order_.front().request;
    if (other) {
      others_.pop();
    } else {
      in_order_.pop_front();
    }
    request.number = taken_++;
    if ((open_ && request.turn == 0) || at_once_) send(0);
    return request;
  }
  /// A request is done.
  void done(const DrawnRequest& request, double now) {
    if (!sessions_) {
      if (!open_ && !at_once_) send(now);
      return;
    }
    const double then = now + (thinks_ ? requests_.think_time(request) : 0);
    if (const auto next = requests_.turn_after(request)) {
      send(*next, then);
    } else if (!open_) {
      send(then);
    }
  }

 private:
  /// Sends a request, or begins a session, now, in an open loop at its own moment.
  void send(double now) {
    if (sent_ == most_) return;
    const DrawnRequest request = open_ ? requests_.next_arrival() : requests_.request(begun_++);
    send(request, open_ ? request.sent : now);
  }
  void send(DrawnRequest request, double now) {
    if (sent_ == most_) return;
    request.sent = now;
    request.ready = now + frontend_;
    const Underway underway{request, sent_++};
    if (in_order_.empty() || underway > in_order_.back()) {
      in_order_.push_back(underway);
    } else {
      others_.push(underway);
    }
  }

  struct Underway {
    DrawnRequest request;
    std::int64_t order;  ///< of those that are ready at the same moment
    friend bool operator>(const Underway& a, const Underway& b) {
      return std::pair(a.request.ready, a.order) > std::pair(b.request.ready, b.order);
    }
  };

  DrawnRequests requests_;
  const double frontend_;
  const std::int64_t most_;
  bool sessions_ = false, open_ = false, at_once_ = false, thinks_ = true;
  std::int64_t sent_ = 0, begun_ = 0, taken_ = 0;
  /// Most are sent in the order in which they are ready.
  std::deque<Underway> in_order_;
  std::priority_queue<Underway, std::vector<Underway>, std::greater<>> others_;
};

}  // namespace shardscape::serving
