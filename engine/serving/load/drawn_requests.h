// Draws the requests of a load: their lengths, and in open loop the moments at which they are sent. All is a function
// of the seed and the number of the request (base/counter_rng.h): the same for every plan, every number of replicas and
// any number of threads, and none needs to be kept. Of sessions that holds for what a turn adds, and for the time
// before it is sent.
//
//   uniform    integers, each as likely
//   lognormal  exp(m + s z) rounded, z standard normal (Box and Muller 1958) and cut off
//   poisson    times between requests -ln(1 - u) / rate
//   drafts     of each decode iteration as many as a uniform number finds accepted
//   gamma      times of shape 1 / cv^2 (Marsaglia and Tsang 2000, ACM TOMS 26; below shape 1 their boost)
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "engine/spec/request_load.h"

namespace shardscape::serving {

/// The tokens of a request: pieces that earlier ones had, and from there to `end` its own.
struct PrefixPath {
  std::span<const PrefixPiece> shared;
  std::int64_t offset = 0;  ///< added to owners of shared pieces
  std::int64_t owner = 0, end = 0;
};

/// A request on its way to a server.
struct DrawnRequest {
  std::int64_t number = 0;
  double sent = 0;   ///< seconds
  double ready = 0;  ///< when the scheduler may see it
  std::int32_t prompt = 1, output = 1, priority = 0;
  PrefixPath path;
  std::int32_t steps = 0;     ///< decode iterations that give its tokens after the first
  std::int64_t session = -1;  ///< its number; -1: no turn of one
  std::int32_t turn = 0;      ///< from 0 on
};

class DrawnRequests {
 public:
  /// `load` must outlive this object. `every`: of an open loop only every `every`-th request is drawn; of a trace it
  /// comes with the first of so many and has the lengths of one of them, each place in turn.
  DrawnRequests(const LoadSpec& load, std::int64_t every)
      : load_(load),
        every_(every),
        rate_(load.request_rate / (load.sessions ? load.sessions->means().turns : 1)) {}

  /// The lengths (and priority) of a request, or of the first one of the session with that number.
  [[nodiscard]] DrawnRequest request(std::int64_t number) const;
  /// The turn after that of a session; nothing where the session is over.
  [[nodiscard]] std::optional<DrawnRequest> turn_after(const DrawnRequest& last) const;
  /// Seconds from the end of an answer until the user sends the next prompt.
  [[nodiscard]] double think_time(const DrawnRequest& answered) const;
  /// Sends the next request of an open loop, or begins its next session. A trace that is at its end begins again, a
  /// mean gap later.
  [[nodiscard]] DrawnRequest next_arrival();
  /// The moment at which a request of a trace is sent.
  [[nodiscard]] double traced(std::int64_t number) const;

 private:
  [[nodiscard]] double gap(std::int64_t number) const;
  /// Draws a turn that has `before` tokens before it.
  [[nodiscard]] DrawnRequest turn(std::int64_t session, std::int32_t turn, std::int64_t before) const;
  /// Decode iterations in which so many tokens are given.
  [[nodiscard]] std::int32_t steps(std::int64_t number, std::int32_t tokens) const;
  [[nodiscard]] std::size_t line_of(std::int64_t number) const {
    return static_cast<std::size_t>(number * every_) % load_.trace->requests.size();
  }

  const LoadSpec& load_;
  const std::int64_t every_;
  const double rate_;                  ///< arrivals per second
  std::int64_t sent_ = 0, drawn_ = 0;  ///< requests that were sent, and arrivals that were drawn
  double now_ = 0;
};

/// The rate at which the requests that count come in a run: their number over the time in which they are sent, from the
/// end of the warm-up on. Drawn at random, so few requests differ from the rate that was asked for. Of an open loop
/// that is drawn request by request (no trace, no sessions), in requests per second over all replicas. O(requests).
double drawn_rate(const LoadSpec& load);

/// Takes the prompts of a load as the first ones of its sessions, and has those of all turns in their place; where the
/// context ends some sessions, the share of turns that come and their mean prompt are those of the first sessions
/// drawn.
void begin_sessions(LoadSpec& load);

}  // namespace shardscape::serving
