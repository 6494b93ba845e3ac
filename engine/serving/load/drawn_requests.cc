// Every number comes from a counter-based generator seeded by the request's own number, so that requests can be drawn
// in any order. Turns of sessions add up what earlier turns left; open loops keep the moment of the last arrival
// alone.
#include "engine/serving/load/drawn_requests.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "engine/base/counter_rng.h"

namespace shardscape::serving {

namespace {

/// Streams of random numbers: those of arrivals differ from those of lengths in the seed.
constexpr std::uint64_t kArrivals = 0x9e3779b97f4a7c15, kOutputs = 0xc2b2ae3d27d4eb4f,
                        kDrafts = 0x165667b19e3779f9, kTurns = 0xd6e8feb86659fd93,
                        kThinking = 0xa0761d6478bd642f, kLines = 0x8ebc6af09c88c6e3;

/// The number by which a turn is drawn.
std::int64_t key_of(std::int64_t session, std::int32_t turn) { return session * Sessions::kMostTurns + turn; }

double normal(CounterRng& rng) {
  const double radius = std::sqrt(-2 * std::log1p(-rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

std::int32_t length(const Lengths& lengths, std::uint64_t seed, std::int64_t number) {
  if (lengths.law == LengthLaw::fixed) return static_cast<std::int32_t>(lengths.longest);
  CounterRng rng(seed, static_cast<std::uint64_t>(number));
  if (lengths.law == LengthLaw::uniform) {
    const auto count = static_cast<std::uint64_t>(lengths.longest - lengths.shortest + 1);
    return static_cast<std::int32_t>(lengths.shortest + static_cast<std::int64_t>(rng.below(count)));
  }
  const double variance = std::log1p(lengths.cv * lengths.cv);
  const double z = std::clamp(normal(rng), -kLognormalReach, kLognormalReach);
  const double tokens = lengths.mean * std::exp(std::sqrt(variance) * z - 0.5 * variance);
  return static_cast<std::int32_t>(std::clamp(std::round(tokens), 1.0, static_cast<double>(lengths.longest)));
}

/// A gamma variate of that shape and scale 1.
double gamma(CounterRng& rng, double shape) {
  if (shape < 1) {
    const double boost = std::pow(1 - rng.uniform(), 1 / shape);
    return boost * gamma(rng, shape + 1);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double z = normal(rng), root = 1 + c * z;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log1p(-rng.uniform()) < 0.5 * z * z + d - d * v + d * std::log(v)) return d * v;
  }
}

/// Which of `every` requests of a trace one has its lengths from: each in turn, from a drawn one on, so that what
/// returns in every so many requests is met as often as it comes.
std::int64_t place_in_block(std::uint64_t seed, std::int64_t number, std::int64_t every) {
  if (every == 1) return 0;
  CounterRng rng(seed ^ kLines, static_cast<std::uint64_t>(number / every));
  const auto first = static_cast<std::int64_t>(rng.below(static_cast<std::uint64_t>(every)));
  return (first + number) % every;
}

}  // namespace

DrawnRequest DrawnRequests::turn(std::int64_t session, std::int32_t turn, std::int64_t before) const {
  const Sessions& of = *load_.sessions;
  const std::int64_t key = key_of(session, turn);
  DrawnRequest request;
  request.session = session;
  request.turn = turn;
  request.output = length(load_.output, load_.seed ^ kOutputs, key);
  const std::int64_t added = length(turn == 0 ? of.first_prompt : of.new_tokens, load_.seed, key);
  request.prompt = static_cast<std::int32_t>(
      turn == 0 ? std::clamp(added, load_.prompt.shortest, of.context - load_.output.longest)
                : std::min(before + added, load_.prompt.longest + 1));
  // All turns go on with the same tokens.
  if (of.shared.end > 0) request.path.shared = std::span(&of.shared, 1);
  request.path.owner = session;
  request.path.end = std::int64_t{request.prompt} + request.output;
  request.steps = steps(key, request.output - 1);
  return request;
}

std::optional<DrawnRequest> DrawnRequests::turn_after(const DrawnRequest& last) const {
  const Sessions& of = *load_.sessions;
  if (last.turn + 1 >= length(of.turns, load_.seed ^ kTurns, last.session)) return {};
  DrawnRequest next = turn(last.session, last.turn + 1, last.path.end);
  if (next.prompt + load_.output.longest > of.context) return {};
  return next;
}

double DrawnRequests::think_time(const DrawnRequest& answered) const {
  const Sessions& of = *load_.sessions;
  if (!of.random_think) return of.think;
  CounterRng rng(load_.seed ^ kThinking, static_cast<std::uint64_t>(key_of(answered.session, answered.turn)));
  return -std::log1p(-rng.uniform()) * of.think;
}

DrawnRequest DrawnRequests::request(std::int64_t number) const {
  if (load_.sessions) {
    DrawnRequest first = turn(number, 0, 0);
    first.number = number;
    return first;
  }
  DrawnRequest request;
  request.number = number;
  request.path.owner = number * every_;
  if (load_.trace) {
    const std::int64_t of_all = number * every_ + place_in_block(load_.seed, number, every_);
    const auto at = static_cast<std::size_t>(of_all) % load_.trace->requests.size();
    const TraceRequest& line = load_.trace->requests[at];
    request.prompt = line.prompt;
    request.output = line.output;
    request.priority = line.priority;
    // A trace that begins again is one of other prompts.
    request.path.shared = load_.trace->pieces_of(at);
    request.path.offset = of_all - static_cast<std::int64_t>(at);
    request.path.owner = of_all;
  } else if (load_.common.end > 0) {
    request.path.shared = {&load_.common, 1};
  }
  if (load_.prompt.law != LengthLaw::trace) request.prompt = length(load_.prompt, load_.seed, number);
  if (load_.output.law != LengthLaw::trace)
    request.output = length(load_.output, load_.seed ^ kOutputs, number);
  request.path.end = std::int64_t{request.prompt} + request.output;
  request.steps = steps(number, request.output - 1);
  return request;
}

std::int32_t DrawnRequests::steps(std::int64_t number, std::int32_t tokens) const {
  const auto drafts = static_cast<std::size_t>(load_.speculation.draft_tokens);
  if (drafts == 0) return tokens;
  const std::span<const double> shares = std::span(load_.speculation.acceptance).first(drafts);
  CounterRng rng(load_.seed ^ kDrafts, static_cast<std::uint64_t>(number));
  std::int32_t steps = 0;
  for (std::int64_t left = tokens; left > 0; ++steps) {
    const double drawn = rng.uniform();
    // Shares never rise: a draft is accepted where the number lies below its share, and so are all before it.
    const auto first = std::ranges::find_if(shares, [&](double share) { return drawn >= share; });
    left -= 1 + (first - shares.begin());
  }
  return steps;
}

double DrawnRequests::gap(std::int64_t number) const {
  CounterRng rng(load_.seed ^ kArrivals, static_cast<std::uint64_t>(number));
  switch (load_.arrivals) {
    case ArrivalProcess::constant:
      return 1 / rate_;
    case ArrivalProcess::gamma: {
      const double shape = 1 / (load_.arrivals_cv * load_.arrivals_cv);
      return gamma(rng, shape) / shape / rate_;
    }
    case ArrivalProcess::poisson:
      break;
  }
  return -std::log1p(-rng.uniform()) / rate_;
}

DrawnRequest DrawnRequests::next_arrival() {
  DrawnRequest next = request(sent_);
  // Of replicas that do the same each has a request for each of theirs: of so many arrivals one is drawn.
  for (std::int64_t i = 0; i < every_ && !load_.trace; ++i) now_ += gap(drawn_++);
  next.sent = load_.trace ? traced(sent_) : now_;
  ++sent_;
  return next;
}

double DrawnRequests::traced(std::int64_t number) const {
  const std::vector<TraceRequest>& all = load_.trace->requests;
  const auto round = static_cast<double>(number * every_ / static_cast<std::int64_t>(all.size()));
  const double last = all.back().arrival;
  const double gap = all.size() > 1 ? last / static_cast<double>(all.size() - 1) : 1;
  return (round * (last + gap) + all[line_of(number)].arrival) / load_.speed_up;
}

double drawn_rate(const LoadSpec& load) {
  const std::int64_t before = load.statistic == ClientStatistic::steady ? load.warm_up.number : 0;
  DrawnRequests draws(load, 1);
  double begin = 0, now = 0;
  for (std::int64_t i = 0; i < before; ++i) begin = draws.next_arrival().sent;
  for (std::int64_t i = 0; i < load.requests.number; ++i) now = draws.next_arrival().sent;
  return static_cast<double>(load.requests.number) / (now - begin);
}

void begin_sessions(LoadSpec& load) {
  constexpr std::int64_t kSessions = 2048, kTurnsLooked = 1 << 18;
  Sessions& sessions = *load.sessions;
  Lengths& prompt = load.prompt;
  const Lengths first = sessions.first_prompt = prompt;
  const std::int64_t most = sessions.context - load.output.longest, least = sessions.shared.end + 1;
  const std::int64_t each = sessions.new_tokens.longest + load.output.longest;
  prompt.law = LengthLaw::sessions;
  prompt.longest = std::min(most, std::max(first.longest, least) + (sessions.turns.longest - 1) * each);
  prompt.shortest = std::min(std::max(first.shortest, least), prompt.longest);
  prompt.mean = std::min(first.mean + sessions.means().before * (sessions.new_tokens.mean + load.output.mean),
                         static_cast<double>(prompt.longest));
  if (load.prompt.longest + load.output.longest < sessions.context) return;
  const DrawnRequests draws(load, 1);
  std::int64_t drawn = 0, come = 0, tokens = 0;
  for (std::int64_t session = 0; session < kSessions && drawn < kTurnsLooked; ++session) {
    drawn += length(sessions.turns, load.seed ^ kTurns, session);
    for (std::optional<DrawnRequest> turn = draws.request(session); turn; turn = draws.turn_after(*turn)) {
      ++come;
      tokens += turn->prompt;
    }
  }
  sessions.kept = static_cast<double>(come) / static_cast<double>(drawn);
  load.prompt.mean = static_cast<double>(tokens) / static_cast<double>(come);
}

}  // namespace shardscape::serving
