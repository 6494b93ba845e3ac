// Do sessions send what their users would, find in the cache what they left there, and take the times that follow?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/serving/live/serve_load.h"
#include "tests/support/plain_loads.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

Timer session_timer() {
  return [](const Iteration& i) {
    return IterationTime{1e-3 + 1e-5 * i.prompt_tokens + 1e-7 * i.masked_pairs + 1e-4 * i.decoding +
                         1e-7 * i.cached};
  };
}

LoadSpec chat(std::int64_t turns, std::int64_t first, std::int64_t added, std::int64_t output, double think) {
  LoadSpec load;
  load.sessions.emplace();
  load.sessions->turns = Lengths::fixed(turns);
  load.sessions->new_tokens = Lengths::fixed(added);
  load.sessions->think = think;
  load.prompt = Lengths::fixed(first);
  load.output = Lengths::fixed(output);
  begin_sessions(load);
  return load;
}

LiveRules chat_server(ServingPolicy policy = ServingPolicy::vllm) {
  LiveRules rules;
  rules.policy = policy;
  rules.on_demand = row_of(policy).on_demand;
  rules.token_budget = 1 << 20;
  rules.max_batch = 64;
  rules.kv_block = 16;
  rules.kv_blocks = 1 << 20;
  rules.keeps_prefixes = true;
  return rules;
}

std::vector<RequestRecord> by_number(const LoadRecord& record) {
  std::vector<RequestRecord> records = record.requests;
  std::ranges::sort(records, {}, [](const RequestRecord& r) { return r.request.number; });
  return records;
}

// One user, nobody else: turn k has P_k = P_1 + (k - 1)(new + output) tokens. Of them the whole blocks of P_(k-1) +
// output - 1 are there (the last token of an answer is never read), and of the first turn those that all sessions begin
// with, once there was a session. The rest is read in one iteration, which gives the first token; each further token
// is an iteration that meets one token more. Then the user thinks.
TEST(Sessions, OneUserFindsWhatWasSaidBefore) {
  constexpr std::int64_t kTurns = 4, kFirst = 1000, kAdded = 90, kOutput = 37, kShared = 210, kBlock = 16;
  for (const ServingPolicy policy : enum_values<ServingPolicy>()) {
    SCOPED_TRACE(std::string(name_of(policy)));
    LoadSpec load = chat(kTurns, kFirst, kAdded, kOutput, 2.5);
    load.sessions->shared.end = kShared;
    load.requests = {3 * kTurns, false};
    LoadRecord record;
    const LiveMeasured m =
        serve_load({load, 1, 1}, chat_server(policy), session_timer(), Stride::runs, &record);
    const std::vector<RequestRecord> records = by_number(record);
    ASSERT_EQ(records.size(), 3U * kTurns);
    double now = 0;
    std::int64_t found = 0, prompts = 0;
    for (std::int64_t i = 0; i < 3 * kTurns; ++i) {
      const RequestRecord& r = records[static_cast<std::size_t>(i)];
      const std::int64_t turn = i % kTurns, prompt = kFirst + turn * (kAdded + kOutput);
      const std::int64_t before = turn > 0 ? prompt - kAdded - 1 : i > 0 ? kShared : 0;
      const std::int64_t hits = before / kBlock * kBlock;
      EXPECT_EQ(r.request.prompt, prompt);
      EXPECT_EQ(r.request.session, i / kTurns);
      EXPECT_EQ(r.request.turn, turn);
      Iteration reads;
      reads.add_piece(static_cast<double>(hits), static_cast<double>(prompt - hits), 0);
      double done = total(session_timer()(reads));
      EXPECT_NEAR(r.request.sent, now, 1e-9);
      EXPECT_NEAR(r.first_token - r.request.sent, done, 1e-9) << i;
      for (std::int64_t token = 1; token < kOutput; ++token) {
        Iteration decodes;
        decodes.decoding = 1;
        decodes.cached = static_cast<double>(prompt + token);
        done += total(session_timer()(decodes));
      }
      EXPECT_NEAR(r.done - r.request.sent, done, 1e-9);
      now = r.done + 2.5;
      found += hits;
      prompts += prompt;
    }
    EXPECT_DOUBLE_EQ(m.hits[0], static_cast<double>(found) / static_cast<double>(prompts));
  }
}

struct SessionCase {
  LoadSpec load;
  LiveRules rules;
  std::int64_t clients = 1;
};

SessionCase random_sessions(std::uint64_t seed) {
  CounterRng rng(seed, 31);
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng.below(high - low + 1));
  };
  const auto coin = [&] { return rng.below(2) == 0; };
  const auto lengths = [&](std::uint64_t longest) {
    return coin() ? Lengths::uniform(whole(1, longest), rng.uniform())
                  : Lengths::lognormal(static_cast<double>(whole(1, longest)), 0.5);
  };
  SessionCase c;
  Sessions& sessions = c.load.sessions.emplace();
  sessions.turns = lengths(6);
  sessions.new_tokens = lengths(40);
  sessions.think = coin() ? 0 : 0.1 * rng.uniform();
  sessions.random_think = coin();
  c.load.prompt = lengths(80);
  c.load.output = lengths(30);
  if (coin())
    sessions.shared.end = std::max<std::int64_t>(0, whole(0, 60) % std::llround(c.load.prompt.mean));
  if (coin()) sessions.context = std::llround(c.load.prompt.mean) + c.load.output.longest + whole(0, 200);
  c.load.seed = seed;
  begin_sessions(c.load);
  c.load.requests = {whole(1, 80), false};
  c.load.warm_up = {whole(0, 30), false};
  c.load.statistic = coin() ? ClientStatistic::run : ClientStatistic::steady;
  if (coin()) c.load.request_rate = 200 * rng.uniform();
  c.clients = whole(1, 10);
  c.rules = chat_server(static_cast<ServingPolicy>(rng.below(enum_names<ServingPolicy>().size())));
  c.rules.on_demand = coin();
  c.rules.max_batch = whole(1, 10);
  c.rules.token_budget = c.rules.max_batch + whole(0, 100);
  c.rules.kv_block = whole(1, 20);
  c.rules.servers = coin() ? 1 : whole(2, 3);
  c.rules.routing = static_cast<Routing>(rng.below(enum_names<Routing>().size()));
  c.rules.keeps_prefixes = rng.below(4) > 0;
  c.rules.frontend = coin() ? 0 : 1e-2 * rng.uniform();
  return c;
}

TEST(Sessions, EventsAgreeWithBruteForce) {
  int compared = 0, hits = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(1500); ++seed) {
    const SessionCase c = random_sessions(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Offered offered{c.load, c.clients, 1};
    LoadRecord record;
    const LiveMeasured fast = serve_load(offered, c.rules, session_timer(), Stride::runs, &record);
    const PlainLive slow = serve_load_plainly(offered, c.rules, session_timer());
    if (slow.tied) continue;
    ++compared;
    ASSERT_EQ(record.requests.size(), slow.done.size());
    std::int64_t found = 0, prompts = 0;
    for (std::size_t i = 0; i < slow.done.size(); ++i) {
      const RequestRecord& a = record.requests[i];
      const PlainLiveRequest& b = slow.done[i];
      ASSERT_EQ(std::pair(a.request.session, a.request.turn), std::pair(b.request.session, b.request.turn));
      EXPECT_EQ(a.request.prompt, b.request.prompt);
      EXPECT_NEAR(a.request.sent, b.request.sent, 1e-9);
      EXPECT_NEAR(a.admitted, b.admitted, 1e-9);
      EXPECT_NEAR(a.first_token, b.tokens.front(), 1e-9);
      EXPECT_NEAR(a.done, b.tokens.back(), 1e-9);
      found += b.hits[0];
      prompts += b.request.prompt;
    }
    EXPECT_NEAR(fast.hits[0], static_cast<double>(found) / static_cast<double>(prompts), 1e-12);
    if (found > 0) ++hits;
    if (HasFailure()) return;
  }
  EXPECT_GE(compared, test::at_least(600));
  EXPECT_GE(hits, test::at_least(300));
}

// Whatever the servers do: a session's turns follow each other, each prompt is all that was said and something new,
// what a turn adds is the same for all plans, and no turn goes beyond the context.
TEST(Sessions, TurnsAreTheSameForEveryPlan) {
  std::int64_t ended = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const SessionCase c = random_sessions(seed);
    std::map<std::pair<std::int64_t, std::int32_t>, std::pair<std::int32_t, std::int32_t>> lengths;
    for (const std::int64_t servers : {1, 3}) {
      LiveRules rules = c.rules;
      rules.servers = servers;
      rules.max_batch = servers == 1 ? 1 : 8;
      rules.token_budget = 100;
      LoadSpec load = c.load;
      load.statistic = ClientStatistic::run;
      LoadRecord record;
      serve_load({load, c.clients, 1}, rules, session_timer(), Stride::runs, &record);
      std::map<std::int64_t, RequestRecord> last;
      for (const RequestRecord& r : by_number(record)) {
        const auto [prompt, output] = std::pair(r.request.prompt, r.request.output);
        const auto known =
            lengths.emplace(std::pair(r.request.session, r.request.turn), std::pair(prompt, output));
        EXPECT_EQ(known.first->second, std::pair(prompt, output));
        EXPECT_LE(prompt + load.output.longest, load.sessions->context);
        EXPECT_GE(prompt, load.prompt.shortest);
        EXPECT_LE(prompt, load.prompt.longest);
        if (r.request.turn > 0) {
          const RequestRecord& before = last.at(r.request.session);
          EXPECT_EQ(r.request.turn, before.request.turn + 1);
          EXPECT_GT(prompt, before.request.prompt + before.request.output);
          EXPECT_GE(r.request.sent, before.done);
        }
        last[r.request.session] = r;
      }
      EXPECT_EQ(record.requests.size(), static_cast<std::size_t>(load.requests.number));
    }
    ended += c.load.sessions->context < 1000 ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GT(ended, test::at_least(50));
}

/// Mean turns of sessions, and turns before a turn, are what is drawn.
TEST(Sessions, MeansAreThoseOfDraws) {
  for (const Lengths& turns : {Lengths::fixed(5), Lengths::uniform(9, 0.3), Lengths::lognormal(1.6, 1),
                               Lengths::lognormal(12, 0.5)}) {
    LoadSpec load = chat(1, 100, 10, 5, 0);
    load.sessions->turns = turns;
    begin_sessions(load);
    const DrawnRequests draws(load, 1);
    constexpr std::int64_t kMany = 40'000;
    double count = 0, before = 0;
    for (std::int64_t s = 0; s < kMany; ++s) {
      std::optional<DrawnRequest> turn = draws.request(s);
      for (; turn; turn = draws.turn_after(*turn)) count += 1, before += turn->turn;
    }
    const Sessions::Means means = load.sessions->means();
    EXPECT_NEAR(means.turns, count / kMany, 0.02 * means.turns);
    EXPECT_NEAR(means.before, before / count, 0.03 * means.before);
  }
}

// The interactive response time law (Denning and Buzen 1978): of N users who send, wait R and think Z, X = N / (R + Z).
// In steady state, whatever the distributions.
TEST(Sessions, UsersKeepTheInteractiveLaw) {
  for (const double think : {0.0, 0.2, 3.0}) {
    LoadSpec load = chat(4, 300, 50, 40, think);
    load.sessions->random_think = true;
    load.output = Lengths::uniform(60, 0.2);
    load.prompt = Lengths::fixed(300);
    begin_sessions(load);
    load.statistic = ClientStatistic::steady;
    load.requests = {40'000, false};
    load.warm_up = {2'000, false};
    constexpr std::int64_t kUsers = 24;
    LiveRules rules = chat_server();
    rules.max_batch = 8;
    const LiveMeasured m = serve_load({load, kUsers, 1}, rules, session_timer());
    EXPECT_NEAR(m.requests_per_s * (m.e2e.mean + think) / kUsers, 1, 0.01) << think;
  }
}

// In an open loop as many turns come per second as the rate says, and sessions the fewer.
TEST(Sessions, TurnsComeAtTheRate) {
  LoadSpec load = chat(3, 300, 50, 20, 1);
  load.request_rate = 20;
  load.statistic = ClientStatistic::steady;
  load.requests = {30'000, false};
  load.warm_up = {500, false};
  LoadRecord record;
  const LiveMeasured m = serve_load({load, 1, 1}, chat_server(), session_timer(), Stride::runs, &record);
  EXPECT_NEAR(m.requests_per_s, 20, 0.6);
  EXPECT_FALSE(m.overloaded());
  std::set<std::int64_t> sessions;
  for (const RequestRecord& r : record.requests) sessions.insert(r.request.session);
  EXPECT_NEAR(static_cast<double>(sessions.size()), 10'000, 100);
  // More than is kept up with is told: an idle server takes some 22 ms for each of these turns alone.
  load.request_rate = 1e6;
  LiveRules slow = chat_server();
  slow.max_batch = 1;
  load.requests = {2'000, false};
  const LiveMeasured over = serve_load({load, 1, 1}, slow, session_timer());
  EXPECT_TRUE(over.overloaded());
  EXPECT_NEAR(over.sustained_per_s, over.requests_per_s, 0.2 * over.requests_per_s);
}

// Of sessions of ten turns, each of 100 new tokens and 20 of an answer, a context of 1,250 tokens holds those whose
// prompts have 1,000 and 1,120 tokens: two of ten turns. As many as come are kept up with by servers that would not
// keep up with all; and where the context holds all of them, all come.
TEST(Sessions, TurnsBeyondTheContextAreNotOffered) {
  LoadSpec load = chat(10, 1000, 100, 20, 0.01);
  load.request_rate = 50;
  load.sessions->context = 1250;
  load.prompt = Lengths::fixed(1000);
  begin_sessions(load);
  EXPECT_DOUBLE_EQ(load.sessions->kept, 0.2);
  EXPECT_DOUBLE_EQ(load.offered_per_s(), 10);
  EXPECT_DOUBLE_EQ(load.prompt.mean, 1060);
  load.requests = {2'000, false};
  LiveRules rules = chat_server();
  rules.max_batch = 1;
  const LiveMeasured m = serve_load({load, 1, 1}, rules, session_timer());
  EXPECT_LT(m.requests_per_s, 11);
  EXPECT_FALSE(m.overloaded());
  LoadSpec whole = chat(10, 1000, 100, 20, 0.01);
  whole.request_rate = 50;
  whole.sessions->context = 1000 + 10 * 120 + 1;
  whole.prompt = Lengths::fixed(1000);
  begin_sessions(whole);
  EXPECT_DOUBLE_EQ(whole.sessions->kept, 1);
}

// The rate that holds is the same for sessions of one turn and for requests that are no turns, which arrive alike.
TEST(Sessions, OfOneTurnHoldTheSameRate) {
  LoadSpec turns = chat(1, 100, 1, 40, 0), plain = turns;
  turns.request_rate = plain.request_rate = 1'000;
  turns.requests = plain.requests = {300, false};
  plain.sessions.reset();
  plain.prompt = Lengths::fixed(100);
  LiveRules rules = chat_server();
  rules.max_batch = 4;
  const LiveMeasured a = serve_load({turns, 1, 1}, rules, session_timer()),
                     b = serve_load({plain, 1, 1}, rules, session_timer());
  ASSERT_TRUE(b.overloaded());
  EXPECT_NEAR(a.sustained_per_s / b.sustained_per_s, 1, 0.02);
}

// Two requests for one place, the second a quarter of a course after the first: it waits for the place for the three
// quarters of the first one that are left, of two courses at work.
TEST(LoadMix, WhatComesWhileNothingWaitsWaitsFromThenOn) {
  LoadSpec load = chat(1, 100, 1, 400, 0);
  load.sessions.reset();
  load.prompt = Lengths::fixed(100);
  LiveRules rules = chat_server();
  rules.max_batch = 1;
  load.requests = {1, false};
  const double alone = serve_load({load, 1, 1}, rules, session_timer()).e2e.mean;
  const auto trace = std::make_shared<Trace>();
  trace->requests = {{0, 100, 400}, {alone / 4, 100, 400}};
  load.trace = trace;
  load.requests = {2, false};
  LoadRecord record;
  serve_load({load, 1, 1}, rules, session_timer(), Stride::runs, &record);
  const LoadMixes mixes = mixes_of(record);
  EXPECT_NEAR(mixes.front().waits[WaitsFor::place] / (2 * alone), 0.75 / 2, 0.01);
}

/// What servers did adds up to what was asked of them, however it is summed.
TEST(LoadMix, AddsUp) {
  int waited = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(200); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SessionCase c = random_sessions(seed);
    c.load.statistic = ClientStatistic::run;
    LoadRecord record;
    const LiveMeasured m =
        serve_load({c.load, c.clients, 1}, c.rules, session_timer(), Stride::runs, &record);
    const LoadMixes mixes = mixes_of(record);
    ASSERT_EQ(mixes.size(), 1U);
    const LoadMix& mix = mixes.front();
    EXPECT_EQ(mix.servers, c.rules.servers);
    double busy = 0, read = 0, decoded = 0, serving = 0, waits = 0;
    for (const LoadMix::Kind& kind : mix.kinds)
      busy += kind.seconds, read += kind.prompt_tokens, decoded += kind.decoding,
          serving += kind.decoding_seconds + kind.paused_seconds;
    for (const double seconds : mix.waits) waits += seconds;
    EXPECT_NEAR(waits, busy, 1e-9 * busy);
    EXPECT_LE(busy, mix.span * static_cast<double>(mix.servers) * (1 + 1e-9));
    const double found = m.hits[0] * static_cast<double>(m.prompt_tokens);
    EXPECT_NEAR(read + found, static_cast<double>(m.prompt_tokens),
                1e-6 * static_cast<double>(m.prompt_tokens));
    EXPECT_EQ(static_cast<std::int64_t>(decoded), m.output_tokens - m.requests);
    // A sequence decodes, or pauses for prompts, from its first token to its last.
    double after_first = 0;
    for (const RequestRecord& r : record.requests) after_first += r.done - r.first_token;
    EXPECT_NEAR(serving, after_first, 1e-9 * std::max(1.0, after_first));
    // Nobody waits for blocks where there are enough; places and budgets are short here and there.
    EXPECT_EQ(mix.waits[WaitsFor::blocks], 0);
    if (mix.waits[WaitsFor::place] > 0 && mix.waits[WaitsFor::budget] > 0) ++waited;
    if (c.rules.max_batch > c.load.requests.number) {
      EXPECT_EQ(mix.waits[WaitsFor::place], 0);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(waited, test::at_least(10));
}

}  // namespace
}  // namespace shardscape::serving
