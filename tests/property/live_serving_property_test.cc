// Does the event simulation of a load agree with brute force under every scheduler, with runs of decode iterations or
// without them, and are requests, tokens and blocks conserved?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/base/nearest_rank.h"
#include "engine/step/serving/time_load.h"
#include "sweep/yaml/load.h"
#include "tests/support/engine_fixture.h"
#include "tests/support/load_laws.h"
#include "tests/support/paths.h"
#include "tests/support/plain_loads.h"
#include "tests/support/prefix_trace.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

struct Case {
  LoadSpec load;
  LiveRules rules;
  std::int64_t clients = 1;
  double fixed = 0, per_sequence = 0, per_cached = 0, per_prompt_token = 0, per_pair = 0, floor = 0;

  [[nodiscard]] Timer timer() const {
    return [c = *this](const Iteration& i) {
      IterationTime time{};
      const double device = c.fixed + c.per_sequence * i.decoding + c.per_cached * i.cached +
                            c.per_prompt_token * i.prompt_tokens + c.per_pair * i.masked_pairs +
                            1e-5 * i.first_tokens;
      time[TimeClass::compute] = device;
      time[TimeClass::host] = std::max(0.0, c.floor - device);
      return time;
    };
  }
  [[nodiscard]] Offered offered() const { return {load, clients, 1}; }
  [[nodiscard]] std::string text() const {
    return std::string(name_of(rules.policy)) + (rules.on_demand ? " on demand" : " reserved") + " clients " +
           std::to_string(clients) + " rate " + std::to_string(load.request_rate) + " budget " +
           std::to_string(rules.token_budget) + " batch " + std::to_string(rules.max_batch) + " blocks " +
           std::to_string(rules.kv_blocks) + " x " + std::to_string(rules.kv_block) + " poll " +
           std::to_string(rules.poll_interval) + " servers " + std::to_string(rules.servers) + " queue " +
           std::string(name_of(rules.queue)) + " " + std::string(name_of(load.statistic)) + " ahead " +
           std::to_string(rules.schedule_ahead) + " ranks " + std::to_string(rules.ranks) + " balance " +
           std::to_string(rules.balance_wait) + " drafts " + std::to_string(rules.drafts) +
           (rules.keeps_prefixes ? " prefixes" : "") + (load.trace ? " trace" : "");
  }
};

/// Requests of a trace in place of drawn ones, whose queue goes by priorities on both sides of zero.
void take_trace(CounterRng& rng, Case& c) {
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int32_t>(low + rng.below(high - low + 1));
  };
  auto trace = std::make_shared<Trace>();
  double now = 0;
  for (std::int32_t i = whole(1, 40); i > 0; --i, now += 2e-2 * rng.uniform())
    trace->requests.push_back({now, whole(1, 60), whole(1, 40), whole(0, 6) - 3});
  trace->prompt = {LengthLaw::trace, 30, 1, 0, 60, 1};
  trace->output = {LengthLaw::trace, 20, 1, 0, 40, 1};
  c.load.prompt = trace->prompt;
  c.load.output = trace->output;
  c.load.trace = std::move(trace);
  c.load.request_rate = 0;
}

/// Prompts that begin as earlier ones, or as one that was there before any came; blocks that leave go to lower tiers.
void take_prefixes(CounterRng& rng, Case& c) {
  c.rules.keeps_prefixes = true;
  if (rng.below(3) == 0 && !c.load.trace) {
    c.rules.cached_prompt = c.load.common.end = static_cast<std::int64_t>(rng.below(40));
  } else {
    const auto trace = std::make_shared<Trace>(test::random_trace(rng, 1 + rng.below(60), 60));
    double now = 0;
    for (TraceRequest& request : trace->requests) request.arrival = now += 2e-2 * rng.uniform();
    trace->requests.front().arrival = 0;
    c.load.trace = trace;
    c.load.prompt = trace->prompt;
    c.load.output = trace->output;
    c.load.request_rate = 0;
  }
  for (std::size_t tier = 0; tier < c.rules.lower_blocks.size(); ++tier) {
    c.rules.lower_blocks[tier] = static_cast<std::int64_t>(rng.below(3) * rng.below(30));
    c.rules.seconds_per_block[tier] = 1e-3 * rng.uniform();
  }
  c.rules.routing = static_cast<Routing>(rng.below(enum_names<Routing>().size()));
}

/// What a server has beside its places and its cache.
void take_more(std::uint64_t seed, Case& c) {
  CounterRng rng(seed, 29);
  if (rng.below(2) == 0) c.rules.schedule_ahead = static_cast<std::int64_t>(1 + rng.below(3));
  if (rng.below(2) == 0) c.rules.graph_tokens = static_cast<std::int64_t>(rng.below(60));
  if (rng.below(4) == 0) {
    c.rules.ranks = static_cast<std::int64_t>(2 + rng.below(3));
    if (rng.below(2) == 0) c.rules.balance_wait = static_cast<std::int64_t>(1 + rng.below(30));
    c.rules.balanced = c.rules.ranks;
  }
  if (rng.below(4) == 0) take_prefixes(rng, c);
}

Case random_case(std::uint64_t seed) {
  CounterRng rng(seed, 27);
  const auto whole = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng.below(high - low + 1));
  };
  const auto coin = [&] { return rng.below(2) == 0; };
  const auto lengths = [&](std::uint64_t longest) {
    const std::int64_t most = whole(1, longest);
    if (rng.below(4) == 0) return Lengths::fixed(most);
    return coin() ? Lengths::uniform(most, rng.uniform())
                  : Lengths::lognormal(static_cast<double>(most), 0.4);
  };
  Case c;
  c.load.prompt = lengths(60);
  c.load.output = lengths(40);
  c.load.seed = seed;
  c.load.requests = {whole(1, 60), false};
  c.load.warm_up = {whole(0, 30), false};
  c.load.statistic = coin() ? ClientStatistic::run : ClientStatistic::steady;
  c.clients = whole(1, 12);
  for (double* cost : {&c.fixed, &c.per_sequence, &c.per_prompt_token}) *cost = 1e-3 * rng.uniform();
  c.per_cached = 1e-5 * rng.uniform();
  c.per_pair = 1e-6 * rng.uniform();
  c.floor = coin() ? 0 : 1e-2 * rng.uniform();
  if (coin()) {
    c.load.request_rate = 3 / (c.load.output.mean * 1e-3) * rng.uniform();
    c.load.arrivals = static_cast<ArrivalProcess>(rng.below(3));
    c.load.arrivals_cv = 0.3 + 2 * rng.uniform();
  }
  CounterRng traced(seed, 28);
  const bool by_priority = traced.below(6) == 0;
  if (by_priority) take_trace(traced, c);
  take_more(seed, c);
  c.rules.policy = static_cast<ServingPolicy>(rng.below(enum_names<ServingPolicy>().size()));
  c.rules.on_demand = coin();
  c.rules.max_batch = whole(1, 14);
  c.rules.token_budget = c.rules.max_batch + whole(0, rng.below(3) == 0 ? 4 : 100);
  c.rules.kv_block = coin() ? whole(1, 3) : whole(4, 20);
  const std::int64_t longest = c.load.prompt.longest + c.load.output.longest;
  c.rules.kv_blocks = (longest + c.rules.kv_block - 1) / c.rules.kv_block;
  c.rules.kv_blocks = coin() ? c.rules.kv_blocks + whole(0, 10) : c.rules.kv_blocks * 14;
  c.rules.watermark = rng.below(3) == 0 ? whole(0, 3) : 0;
  c.rules.poll_interval = coin() ? 1 : whole(2, 12);
  c.rules.queue = coin() ? QueueOrder::fcfs : QueueOrder::shortest;
  if (by_priority) c.rules.queue = QueueOrder::priority;
  const auto routing = static_cast<Routing>(rng.below(2));
  if (!c.rules.keeps_prefixes) c.rules.routing = routing;
  c.rules.servers = rng.below(3) == 0 ? whole(2, 4) : 1;
  c.rules.frontend = coin() ? 0 : 1e-2 * rng.uniform();
  c.rules.eager_floor = coin() ? 0 : 2e-2 * rng.uniform();
  c.rules.first_prompts = rng.below(3) == 0 ? 0.1 * rng.uniform() : 0;
  if (rng.below(3) == 0) {
    c.rules.drafts = c.load.speculation.draft_tokens = whole(1, 4);
    c.load.speculation.acceptance = Speculation::independent(rng.uniform());
    c.floor = 0;  // a kink is known to the token (decode_times.h), and these meet parts of tokens
  }
  return c;
}

/// A server of a stack that is shipped, with prompts of its scale.
Case shipped_case(std::uint64_t seed, const std::vector<StackProfile>& stacks) {
  Case c = random_case(seed);
  CounterRng rng(seed, 30);
  Setting setting;
  setting.model = test::llama(32, 4096, 32, 8, 14336, 32000);
  setting.system.stack = stacks[rng.below(stacks.size())];
  StackProfile::Serving& stack = setting.system.stack.serving;
  stack.max_batch = std::min<std::int64_t>(stack.max_batch, static_cast<std::int64_t>(4 + rng.below(60)));
  if (!c.load.trace && c.load.common.end == 0) {
    c.load.prompt = Lengths::uniform(static_cast<std::int64_t>(1 + rng.below(12'000)), rng.uniform());
    c.per_prompt_token *= 1e-2, c.per_cached *= 1e-2, c.per_pair *= 1e-4;
  }
  setting.workload = test::inference(static_cast<std::int64_t>(c.load.prompt.mean),
                                     static_cast<std::int64_t>(c.load.output.mean), c.clients);
  setting.workload.load = c.load;
  const ParallelPlan plan;
  step::ServingShape shape;
  const std::int64_t longest = c.load.prompt.longest + c.load.output.longest;
  shape.cache_tokens = static_cast<double>(longest) * (1 + 8 * rng.uniform());
  c.rules = step::live_rules({setting, plan, {}, shape});
  return c;
}

std::vector<StackProfile> shipped_stacks() {
  const yaml::Catalog catalog({test::source_dir()});
  std::vector<StackProfile> stacks;
  for (const char* const name : {"maxtext", "nim", "sglang-0.5.1", "sglang-0.5.14", "sglang", "trtllm",
                                 "vllm-0.15", "vllm-sync", "vllm"})
    stacks.push_back(yaml::load_stack(catalog, name).value());
  return stacks;
}

/// Decode iterations of all requests, one for each token but the first where nothing is drafted.
std::int64_t steps_of(const std::vector<PlainLiveRequest>& done) {
  std::int64_t steps = 0;
  for (const PlainLiveRequest& r : done) steps += r.request.steps;
  return steps;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

void expect_spread(const Percentiles& fast, std::vector<double> slow, const char* what) {
  std::ranges::sort(slow);
  const auto rank = [&](double share) { return slow.empty() ? 0 : nearest_rank(slow, share); };
  const double tolerance = 1e-9 * std::max(1e-6, slow.empty() ? 0 : slow.back());
  EXPECT_NEAR(fast.mean, mean(slow), tolerance) << what;
  EXPECT_NEAR(fast.p50, rank(0.5), tolerance) << what;
  EXPECT_NEAR(fast.p90, rank(0.9), tolerance) << what;
  EXPECT_NEAR(fast.p95, rank(0.95), tolerance) << what;
  EXPECT_NEAR(fast.p99, rank(0.99), tolerance) << what;
}

/// Compares a case with brute force; empty where moments are tied, or nothing was measured.
std::optional<LiveMeasured> compare(const Case& c) {
  const Timer timer = c.timer();
  const LiveMeasured fast = serve_load(c.offered(), c.rules, timer);
  const PlainLive slow = serve_load_plainly(c.offered(), c.rules, timer);
  if (slow.tied || slow.begin == slow.end) return {};
  std::vector<double> ttft, tpot, e2e, queued;
  TierBlocks hits{};
  for (const PlainLiveRequest& r : slow.done) {
    ttft.push_back(r.tokens.front() - r.request.sent);
    e2e.push_back(r.tokens.back() - r.request.sent);
    queued.push_back(r.admitted - r.request.sent);
    if (r.request.output > 1) tpot.push_back((r.tokens.back() - r.tokens.front()) / (r.request.output - 1));
    for (std::size_t tier = 0; tier < kCacheTiers; ++tier) hits[tier] += r.hits[tier];
  }
  EXPECT_EQ(fast.requests, static_cast<std::int64_t>(slow.done.size()));
  expect_spread(fast.ttft, ttft, "ttft");
  // Tokens that come together share the gap before them.
  std::vector<double> gaps = slow.gaps;
  const std::int64_t steps = steps_of(slow.done);
  if (c.rules.drafts > 0 && steps > 0) {
    EXPECT_NEAR(fast.accepted,
                static_cast<double>(fast.output_tokens - fast.requests) / static_cast<double>(steps), 1e-12);
    for (double& gap : gaps) gap /= fast.accepted;
  }
  expect_spread(fast.itl, gaps, "itl");
  expect_spread(fast.tpot, tpot, "tpot");
  expect_spread(fast.e2e, e2e, "e2e");
  EXPECT_EQ(fast.gaps, static_cast<std::int64_t>(slow.gaps.size()));
  EXPECT_NEAR(fast.queue, mean(queued), 1e-9 * fast.e2e.mean);
  EXPECT_NEAR(fast.requests_per_s, slow.served(c.load), 1e-9 * fast.requests_per_s);
  EXPECT_NEAR(fast.kv_mean, std::min(slow.kv_mean, slow.kv_peak), 1e-9);
  EXPECT_DOUBLE_EQ(fast.kv_peak, slow.kv_peak);
  EXPECT_EQ(fast.preemptions, slow.preemptions);
  // Where requests that began in the warm-up, or are not done, had more of the servers' time, these had no more than
  // theirs; so all of a request's time adds up.
  const double progress = slow.progress_seconds / static_cast<double>(fast.requests);
  EXPECT_NEAR(total(fast.classes), std::min(progress, mean(e2e)), 1e-9 * progress);
  EXPECT_NEAR(total(fast.classes) + fast.waiting, mean(e2e), 1e-9 * mean(e2e));
  for (std::size_t tier = 0; tier < kCacheTiers; ++tier)
    EXPECT_NEAR(fast.hits[tier] * static_cast<double>(fast.prompt_tokens), static_cast<double>(hits[tier]),
                1e-6);
  return fast;
}

TEST(LiveServing, EventsAgreeWithBruteForceUnderEveryScheduler) {
  std::set<std::pair<ServingPolicy, bool>> preempted;
  int compared = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(4000); ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const std::optional<LiveMeasured> measured = compare(c);
    if (HasFailure()) return;
    if (!measured) continue;
    ++compared;
    if (measured->preemptions > 0) preempted.emplace(c.rules.policy, c.rules.on_demand);
  }
  EXPECT_GE(compared, test::at_least(3300));
  if (test::all_seeds()) {
    EXPECT_EQ(preempted.size(), enum_names<ServingPolicy>().size()) << "each scheduler, on demand alone";
    for (const auto& [policy, on_demand] : preempted) EXPECT_TRUE(on_demand) << name_of(policy);
  }
}

TEST(LiveServing, ServersOfShippedStacksAgreeWithBruteForce) {
  const std::vector<StackProfile> stacks = shipped_stacks();
  int compared = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    const Case c = shipped_case(seed, stacks);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    compared += compare(c) ? 1 : 0;
    if (HasFailure()) return;
  }
  EXPECT_GE(compared, test::at_least(300));
}

TEST(LiveServing, RunsOfIterationsAreEqualToIterationsOneByOne) {
  int compared = 0;
  for (std::uint64_t seed = 5000; seed < 5000 + test::seeds(2000); ++seed) {
    const Case c = random_case(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    if (serve_load_plainly(c.offered(), c.rules, c.timer()).tied) continue;
    ++compared;
    LoadRecord quick, slow;
    const LiveMeasured a = serve_load(c.offered(), c.rules, c.timer(), Stride::runs, &quick);
    const LiveMeasured b = serve_load(c.offered(), c.rules, c.timer(), Stride::plain, &slow);
    const std::vector<RequestRecord>&runs = quick.requests, &plain = slow.requests;
    ASSERT_EQ(runs.size(), plain.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      EXPECT_EQ(runs[i].request.number, plain[i].request.number);
      EXPECT_NEAR(runs[i].first_token, plain[i].first_token, 1e-9 * runs[i].done);
      EXPECT_NEAR(runs[i].done, plain[i].done, 1e-9 * runs[i].done);
    }
    EXPECT_NEAR(a.itl.mean, b.itl.mean, 1e-9 * a.e2e.mean);
    EXPECT_NEAR(a.kv_mean, b.kv_mean, 1e-9);
    // Servers that all begin at once with requests of a few lengths decide at the same moments, up to rounding.
    if (c.rules.servers == 1 || !c.load.trace) {
      EXPECT_NEAR(a.sustained_per_s, b.sustained_per_s, 1e-9 * b.sustained_per_s);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(compared, test::at_least(1600));
}

/// Every request of a run counts from its beginning to its end.
TEST(LiveServing, RequestsAndTokensAreConserved) {
  for (std::uint64_t seed = 9000; seed < 9000 + test::seeds(1000); ++seed) {
    Case c = random_case(seed);
    c.load.statistic = ClientStatistic::run;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    LoadRecord record;
    const LiveMeasured m = serve_load(c.offered(), c.rules, c.timer(), Stride::runs, &record);
    test::expect_conserved(c.load, m, record);
    EXPECT_LE(m.kv_mean, m.kv_peak + 1e-12);
    if (!c.load.open() && c.load.requests.number > c.clients) {
      // No more than so many are ever in flight.
      std::vector<std::pair<double, int>> events;
      for (const RequestRecord& r : record.requests)
        events.insert(events.end(), {{r.request.sent, 1}, {r.done, -1}});
      std::ranges::sort(events);
      std::int64_t inside = 0, most = 0;
      for (const auto& [moment, change] : events) most = std::max(most, inside += change);
      EXPECT_EQ(most, c.clients);
    }
    if (HasFailure()) return;
  }
}

void expect_close(const Spread& live, const Spread& closed, double tolerance, const char* what) {
  EXPECT_NEAR(live.mean, closed.mean, tolerance) << what;
  EXPECT_NEAR(live.p50, closed.p50, tolerance) << what;
  EXPECT_NEAR(live.p95, closed.p95, tolerance) << what;
}

/// The steady closed loop of alike requests has a closed form (server.h), by rules that reserve.
TEST(LiveServing, LockStepIsTheSteadyState) {
  int periodic = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    Case c = random_case(seed);
    CounterRng rng(seed, 3);
    const bool chunked = rng.below(2) == 0;
    const Load load{c.clients, static_cast<std::int64_t>(1 + rng.below(60)),
                    static_cast<std::int64_t>(2 + rng.below(40))};
    const Rules rules{chunked ? ServingPolicy::chunked : ServingPolicy::prefill_priority,
                      c.rules.token_budget, std::min(c.clients, c.rules.max_batch)};
    const Trajectory course = trajectory(load, rules);
    if (!course.periodic) continue;
    ++periodic;
    c.load = LoadSpec();
    c.load.prompt = Lengths::fixed(load.prompt_tokens);
    c.load.output = Lengths::fixed(load.output_tokens);
    c.load.statistic = ClientStatistic::steady;
    c.load.warm_up = {64 * c.clients, false};
    c.load.requests = {3 * std::ranges::count_if(course.requests,
                                                 [&](const Trajectory::Request& r) {
                                                   return r.done > course.from && r.done <= course.to;
                                                 }),
                       false};
    c.rules = {rules.policy, false, rules.token_budget, rules.slots, 1, rules.slots * 200};
    c.floor = 0;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const Measured closed = measure(course, load, c.timer());
    const LiveMeasured live = serve_load(c.offered(), c.rules, c.timer());
    const double tolerance = 1e-9 * closed.e2e.mean;
    expect_close(live.ttft, closed.ttft, tolerance, "ttft");
    expect_close(live.itl, closed.itl, tolerance, "itl");
    expect_close(live.e2e, closed.e2e, tolerance, "e2e");
    EXPECT_NEAR(live.requests_per_s / closed.requests_per_s, 1, 1e-9);
    EXPECT_NEAR(live.decode_batch / closed.decode_batch, 1, 1e-9);
    EXPECT_NEAR(live.waiting, closed.waiting, tolerance);
    if (HasFailure()) return;
  }
  EXPECT_GE(periodic, test::at_least(200));
}

/// Ranks with attention of their own that get as many alike requests each do what each would alone.
TEST(LiveServing, EvenRanksAreOneOfThem) {
  for (std::uint64_t seed = 0; seed < test::seeds(400); ++seed) {
    Case c = random_case(seed);
    CounterRng rng(seed, 9);
    const auto ranks = static_cast<std::int64_t>(2 + rng.below(3));
    c.load.prompt = Lengths::fixed(1 + static_cast<std::int64_t>(rng.below(60)));
    c.load.output = Lengths::fixed(1 + static_cast<std::int64_t>(rng.below(40)));
    c.load.request_rate = 0;
    c.load.trace = nullptr;
    c.load.requests = {4, true};
    c.load.statistic = ClientStatistic::run;
    c.load.speculation = {};
    c.load.common.end = c.rules.cached_prompt = 0;
    c.rules.keeps_prefixes = false;
    c.rules.ranks = 1;
    c.rules.balance_wait = 0;
    c.rules.queue = QueueOrder::fcfs;
    c.rules.drafts = 0;
    c.rules.servers = 1;
    c.rules.watermark = 0;
    c.rules.kv_blocks = 1 << 20;
    c.rules.on_demand = false;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const LiveMeasured one = serve_load(c.offered(), c.rules, c.timer());
    LiveRules dealt = c.rules;
    dealt.ranks = ranks;
    dealt.max_batch *= ranks;
    dealt.kv_blocks *= ranks;
    const Timer timer = [each = c.timer(), ranks](Iteration i) {
      i.decoding /= static_cast<double>(ranks);
      i.cached /= static_cast<double>(ranks);
      return each(i);
    };
    const LiveMeasured all = serve_load({c.load, ranks * c.clients, 1}, dealt, timer);
    ASSERT_EQ(all.requests, ranks * one.requests);
    // Tokens of a budget that are left when a prompt does not divide it go round the ranks.
    const bool cuts = c.rules.policy != ServingPolicy::trtllm &&
                      c.rules.policy != ServingPolicy::prefill_priority &&
                      c.clients * c.load.prompt.longest > c.rules.token_budget - c.rules.max_batch;
    if (cuts) continue;
    EXPECT_NEAR(all.ttft.mean, one.ttft.mean, 1e-9 * one.e2e.mean);
    EXPECT_NEAR(all.e2e.mean, one.e2e.mean, 1e-9 * one.e2e.mean);
    EXPECT_NEAR(all.requests_per_s / one.requests_per_s, static_cast<double>(ranks), 1e-9);
    if (HasFailure()) return;
  }
}

/// Servers that get as many alike requests each do what each would alone: moments that are equal up to rounding are
/// equal.
TEST(LiveServing, EvenServersAreOneOfThem) {
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    Case c = random_case(seed);
    CounterRng rng(seed, 10);
    c.load = LoadSpec();
    c.load.prompt = Lengths::fixed(1 + static_cast<std::int64_t>(rng.below(60)));
    c.load.output = Lengths::fixed(1 + static_cast<std::int64_t>(rng.below(40)));
    c.load.requests = {6, true};
    c.rules.keeps_prefixes = false;
    c.rules.cached_prompt = c.rules.drafts = 0;
    c.rules.kv_blocks = (200 + c.rules.kv_block - 1) / c.rules.kv_block;  // for two of them
    c.rules.servers = 1;
    c.rules.frontend = 1e-3 + 1e-2 * rng.uniform();
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    LoadRecord record;  // each server is followed by itself
    const LiveMeasured one = serve_load(c.offered(), c.rules, c.timer(), Stride::runs, &record);
    c.rules.servers = static_cast<std::int64_t>(2 + rng.below(12));
    c.clients *= c.rules.servers;
    const LiveMeasured all = serve_load(c.offered(), c.rules, c.timer(), Stride::runs, &record);
    ASSERT_EQ(all.requests, c.rules.servers * one.requests);
    EXPECT_NEAR(all.ttft.mean, one.ttft.mean, 1e-9 * one.e2e.mean);
    EXPECT_NEAR(all.itl.p99, one.itl.p99, 1e-9 * one.e2e.mean);
    EXPECT_NEAR(all.e2e.mean, one.e2e.mean, 1e-9 * one.e2e.mean);
    EXPECT_NEAR(all.requests_per_s / one.requests_per_s, static_cast<double>(c.rules.servers), 1e-6);
    if (HasFailure()) return;
  }
}

/// A prompt beside one that decodes waits for so many iterations, or until there are enough.
TEST(LiveServing, PromptsWaitForOneOfEachRank) {
  auto trace = std::make_shared<Trace>();
  trace->requests = {{0, 10, 100}, {0.105, 10, 2}, {2, 10, 100}, {2.105, 10, 2}, {2.155, 10, 2}};
  LoadSpec load;
  load.trace = trace;
  load.prompt = {LengthLaw::trace, 10, 1, 0, 10, 10};
  load.output = {LengthLaw::trace, 30, 1, 0, 100, 2};
  load.requests = {5, false};
  LiveRules rules;
  rules.policy = ServingPolicy::trtllm;
  rules.on_demand = false;
  rules.token_budget = 1000;
  rules.max_batch = 100;
  rules.kv_blocks = 1 << 20;
  rules.ranks = rules.balanced = 2;
  rules.balance_wait = 20;
  const Timer timer = [](const Iteration&) { return IterationTime{0.01}; };
  LoadRecord record;
  std::vector<RequestRecord>& records = record.requests;
  serve_load({load, 1, 1}, rules, timer, Stride::runs, &record);
  std::ranges::sort(records, {}, [](const RequestRecord& r) { return r.request.number; });
  // Iterations end at multiples of 0.01 s. The second request comes at 0.105, could begin at 0.11, and waits for 20.
  EXPECT_NEAR(records[1].admitted, 0.31, 1e-9);
  EXPECT_NEAR(records[1].first_token, 0.32, 1e-9);
  // The fourth comes at 2.105, and the fifth, at 2.155, is the second of two that wait: both begin at 2.16.
  EXPECT_NEAR(records[3].admitted, 2.16, 1e-9);
  EXPECT_NEAR(records[4].admitted, 2.16, 1e-9);
  // Where three are enough the fourth waits until 2.31, and takes the fifth with it, which could begin at 2.16.
  rules.balanced = 3;
  records.clear();
  serve_load({load, 1, 1}, rules, timer, Stride::runs, &record);
  std::ranges::sort(records, {}, [](const RequestRecord& r) { return r.request.number; });
  EXPECT_NEAR(records[3].admitted, 2.31, 1e-9);
  EXPECT_NEAR(records[4].admitted, 2.31, 1e-9);
  rules.balance_wait = 0;
  records.clear();
  serve_load({load, 1, 1}, rules, timer, Stride::runs, &record);
  std::ranges::sort(records, {}, [](const RequestRecord& r) { return r.request.number; });
  EXPECT_NEAR(records[1].admitted, 0.11, 1e-9);
}

// What a server does is one thing after the other, within the course. A token comes with each context that is read to
// its end and with each decode iteration of each sequence; what is read is all of every prompt but what was found, and
// what preempted sequences read again.
TEST(LiveServing, WorksAreTheCourse) {
  int preempted = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    Case c = random_case(seed);
    c.load.statistic = ClientStatistic::run;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    LoadRecord record;
    const LiveMeasured m = serve_load(c.offered(), c.rules, c.timer(), Stride::runs, &record);
    std::vector<double> ended(static_cast<std::size_t>(c.rules.servers), 0);
    std::int64_t given = 0;
    double read = 0;
    for (const WorkRecord& work : record.works) {
      double& last = ended[static_cast<std::size_t>(work.server)];
      EXPECT_GE(work.begin, last * (1 - 1e-12));
      EXPECT_GT(work.end, work.begin);
      EXPECT_GE(work.waiting, 0);
      EXPECT_LE(work.cache, 1);
      last = work.end;
      given += work.iterations * work.decoding + work.contexts_read;
      read += work.prompt_tokens;
    }
    std::int64_t asked = 0;
    for (const RequestRecord& r : record.requests) asked += 1 + r.request.steps;
    EXPECT_EQ(given, asked);
    const double found = (m.hits[0] + m.hits[1] + m.hits[2]) * static_cast<double>(m.prompt_tokens);
    const double once = static_cast<double>(m.prompt_tokens) - found;
    if (m.preemptions == 0) {
      EXPECT_NEAR(read, once, 1e-6);
    }
    preempted += m.preemptions > 0 ? 1 : 0;
    const PlainLive slow = serve_load_plainly(c.offered(), c.rules, c.timer());
    if (!slow.tied) {
      EXPECT_NEAR(read, slow.tokens_read, 1e-6);
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(preempted, test::at_least(50));
}

}  // namespace
}  // namespace shardscape::serving
