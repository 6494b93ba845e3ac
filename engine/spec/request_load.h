// The load of an inference workload that is simulated request by request (engine/serving/live): who sends requests, how
// long they are, and which of them count. A workload without one is the steady closed loop of alike requests
// (engine/serving/server.h).
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/base/problems.h"
#include "engine/spec/speculation.h"

namespace shardscape {

/// Times between requests of an open loop, all with mean 1 / rate: exponential, gamma with a given coefficient of
/// variation, or all the same.
enum class ArrivalProcess : std::uint8_t { poisson, gamma, constant };

/// The requests that count. `run`: all that a benchmark sends to an idle server, its opening burst and its end
/// included; warm-up requests are over before it begins. `steady`: the same number of requests that are done after the
/// warm-up, under a load that does not end.
enum class ClientStatistic : std::uint8_t { run, steady };

/// `trace`, `sessions`: the requests of a trace, and the turns of sessions, have their own; mean and limits are known.
enum class LengthLaw : std::uint8_t { fixed, uniform, lognormal, trace, sessions };

/// Lengths of prompts or of outputs in tokens.
struct Lengths {
  LengthLaw law = LengthLaw::fixed;
  /// The length of every request, or the mean length. For uniform lengths it follows from `longest`.
  double mean = 1;
  double ratio = 1;  ///< uniform: integers from ratio x longest, rounded down and at least 1, to longest
  double cv = 0;     ///< lognormal: coefficient of variation
  std::int64_t longest = 1;  ///< no request is longer
  std::int64_t shortest = 1;

  static Lengths fixed(std::int64_t tokens);
  static Lengths uniform(std::int64_t longest, double ratio);
  /// The distribution is cut off at kLognormalReach standard deviations of the logarithm.
  static Lengths lognormal(double mean, double cv);
  friend bool operator==(const Lengths&, const Lengths&) = default;
};
/// Reach of lognormal lengths, in standard deviations of the logarithm: one length in 3.5 million lies beyond.
inline constexpr double kLognormalReach = 5;

/// One request of a trace: when it is sent, and how many tokens it has.
struct TraceRequest {
  double arrival = 0;  ///< seconds since the first one
  std::int32_t prompt = 1, output = 1;
  std::int32_t priority = 0;  ///< lower ones go first where the queue goes by priority
};
/// Tokens of a request that it has in common with an earlier one, from the same positions on: those from the end of the
/// piece before it to `end`. `owner`: the number of the request that had them first.
struct PrefixPiece {
  std::int64_t owner = 0, end = 0;
  friend bool operator==(const PrefixPiece&, const PrefixPiece&) = default;
};
/// The owner of what all prompts have in common before any request comes.
inline constexpr std::int64_t kCommonOwner = -1;
struct Trace {
  std::vector<TraceRequest> requests;  ///< in order of arrival; at least one
  Lengths prompt, output;
  /// Where the trace says which tokens requests begin with: their common pieces one after the other, and by request
  /// where its own begin; else empty.
  std::vector<PrefixPiece> pieces;
  std::vector<std::size_t> piece_begin;

  [[nodiscard]] std::span<const PrefixPiece> pieces_of(std::size_t request) const {
    if (piece_begin.empty()) return {};
    return std::span(pieces).subspan(piece_begin[request], piece_begin[request + 1] - piece_begin[request]);
  }
};

/// Requests that are turns of sessions, as chats and agents send them: a prompt is all that was said before and new
/// tokens, and is sent a while after the answer before it has ended.
struct Sessions {
  Lengths turns;              ///< requests of a session, 1..kMostTurns
  double think = 0;           ///< mean seconds from an answer's end until the next prompt is sent
  bool random_think = false;  ///< exponential; else the same each time
  Lengths first_prompt;       ///< LoadSpec::prompt has those of all turns
  Lengths new_tokens;         ///< of a later prompt, beside what was said before
  PrefixPiece shared{-1, 0};  ///< the tokens with which all sessions begin
  /// A session ends before a turn whose prompt and longest answer are more tokens than this.
  std::int64_t context = std::numeric_limits<std::int64_t>::max();
  double kept = 1;  ///< share of the turns that come all the same (serving::begin_sessions())

  static constexpr std::int64_t kMostTurns = 4096;
  /// Mean number of turns, and mean number of turns that a turn has before it, where the context ends no session.
  struct Means {
    double turns = 1, before = 0;
  };
  [[nodiscard]] Means means() const;
  friend bool operator==(const Sessions&, const Sessions&) = default;
};

/// A number of requests: in all, or for each request that is in flight at once (closed loop).
struct RequestCount {
  std::int64_t number = 0;
  bool per_client = false;
  [[nodiscard]] std::int64_t of(std::int64_t clients) const { return per_client ? number * clients : number; }
  friend bool operator==(const RequestCount&, const RequestCount&) = default;
};

/// Most iterations that read prompts, which are walked through one by one and take some hundred bytes each: plans that
/// would read the prompts of all clients once in more are not predicted, and servers that have fallen behind are not
/// followed any further.
inline constexpr std::int64_t kMostIterations = std::int64_t{1} << 20U;

/// What every request is promised, in seconds; infinite where nothing is (engine/serving/live/attainment.h).
struct LatencyBounds {
  double ttft = std::numeric_limits<double>::infinity();
  double tpot = std::numeric_limits<double>::infinity();
  double e2e = std::numeric_limits<double>::infinity();
  friend bool operator==(const LatencyBounds&, const LatencyBounds&) = default;
};

struct LoadSpec {
  /// Requests per second over all replicas (of sessions: their turns, where the context ends none); 0 in closed loop,
  /// where WorkloadSpec::concurrency of them are in flight, or so many users are at their sessions.
  double request_rate = 0;
  ArrivalProcess arrivals = ArrivalProcess::poisson;
  double arrivals_cv = 1;              ///< coefficient of variation of gamma arrivals
  std::shared_ptr<const Trace> trace;  ///< arrivals, and lengths where they have the law `trace`; else null
  double speed_up = 1;                 ///< the trace's requests come so many times faster
  Lengths prompt, output;
  std::optional<Sessions> sessions;
  RequestCount requests{10, true};  ///< requests that count in the statistics
  RequestCount warm_up{0, false};   ///< requests before those that count
  /// What every prompt begins with, where requests are drawn: it lies in the cache before the first one comes.
  PrefixPiece common{kCommonOwner, 0};
  ClientStatistic statistic = ClientStatistic::run;
  std::uint64_t seed = 0;
  Speculation speculation;
  LatencyBounds promised;  ///< changes nothing of what happens

  [[nodiscard]] bool has_prefixes() const {
    return sessions || common.end > 0 || (trace && !trace->piece_begin.empty());
  }
  [[nodiscard]] bool open() const { return request_rate > 0 || trace != nullptr; }
  /// Whether all requests are alike, and each is sent when another one is done.
  [[nodiscard]] bool alike() const {
    return !open() && !sessions && prompt.law == LengthLaw::fixed && output.law == LengthLaw::fixed &&
           speculation.draft_tokens == 0;
  }
  /// Requests per second that come over all replicas where they keep up; 0 in closed loop.
  [[nodiscard]] double offered_per_s() const;
  /// Checks the load; problems are reported under the keys of `workload:`.
  void check(Problems& problems) const;
  friend bool operator==(const LoadSpec&, const LoadSpec&) = default;
};

/// The defaults of a benchmark program.
struct ClientProfile {
  std::string_view name;
  RequestCount requests, warm_up;
  double length_ratio;  ///< shortest over longest length, of prompts and of outputs
};
/// The profile of that name; null where there is none.
const ClientProfile* find_client_profile(std::string_view name);
std::vector<std::string_view> client_profile_names();

}  // namespace shardscape
