// The clients of a simulated load: send requests, in the order of the moments at which schedulers may see them.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {

/// Who sends requests to some servers. `load` must outlive its use.
struct Offered {
  const LoadSpec& load;
  std::int64_t clients = 1;  ///< requests in flight in closed loop
  std::int64_t every =
      1;  ///< of an open loop's requests, every such comes to these servers (2: every second)
};

class Senders {
 public:
  /// At most `most` requests are sent; in an open loop that is `at_once` all of them at time 0.
  Senders(const Offered& offered, double frontend, std::int64_t most, bool at_once)
      : requests_(offered.load, offered.every), frontend_(frontend), most_(most) {
    open_ = offered.load.open() && !at_once;
    at_once_ = at_once;
    const std::int64_t first =
        at_once || open_ ? std::min<std::int64_t>(1, most) : std::min(offered.clients, most);
    for (std::int64_t i = 0; i < first; ++i) send(0);
  }

  [[nodiscard]] double next() const {
    return underway_.empty() ? std::numeric_limits<double>::infinity() : underway_.front().ready;
  }
  DrawnRequest take() {
    const DrawnRequest request = underway_.front();
    underway_.pop_front();
    if (open_ || at_once_) send(0);
    return request;
  }
  /// A request is done.
  void done(double now) {
    if (!open_ && !at_once_) send(now);
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
  bool open_ = false, at_once_ = false;
  std::int64_t sent_ = 0;
  std::deque<DrawnRequest> underway_;
};

}  // namespace shardscape::serving
