// Does a load on two pools agree with brute force, is it the closed loop of alike requests where it is one, and are
// requests, tokens and blocks conserved?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <string>

#include "engine/base/counter_rng.h"
#include "engine/base/nearest_rank.h"
#include "tests/support/load_laws.h"
#include "tests/support/plain_loads.h"
#include "tests/support/prefix_trace.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

/// Pools, a load, and links: one into each decoding server, which all of its caches share.
class LivePoolsCase {
 public:
  explicit LivePoolsCase(std::uint64_t seed, bool alike = false) : rng_(seed, 31) {
    load.prompt = lengths(60, alike);
    load.output = lengths(40, alike);
    load.seed = seed;
    load.requests = {whole(1, 60), false};
    load.warm_up = {whole(0, 30), false};
    load.statistic = coin() ? ClientStatistic::run : ClientStatistic::steady;
    clients = whole(1, 16);
    if (coin() && !alike) {
      load.request_rate = 3 / (load.output.mean * 1e-3) * rng_.uniform();
      load.arrivals = static_cast<ArrivalProcess>(rng_.below(3));
      load.arrivals_cv = 0.3 + 2 * rng_.uniform();
    }
    prefill = pool();
    decode = pool();
    rate = 1e4 * (0.2 + rng_.uniform());
    bytes_per_token = coin() ? 1 : 0.01;
    latency = coin() ? 0 : 1e-3 * rng_.uniform();
    if (!alike) take_more(seed);
    lay_wires();
  }

  [[nodiscard]] Offered offered() const { return {load, clients, 1}; }
  [[nodiscard]] KvFabric fabric() const {
    return {wires_, rates_, flows_, prefill.rules.servers * prefill.rules.ranks,
            decode.rules.servers * decode.rules.ranks};
  }
  [[nodiscard]] PooledServers servers() const { return {prefill, decode, fabric(), kMeanPrompt}; }
  [[nodiscard]] std::string text() const {
    return std::string(name_of(prefill.rules.policy)) + " " + std::string(name_of(decode.rules.policy)) +
           (decode.rules.on_demand ? " on demand" : " reserved") + " clients " + std::to_string(clients) +
           " servers " + std::to_string(prefill.rules.servers) + " " + std::to_string(decode.rules.servers) +
           " ranks " + std::to_string(prefill.rules.ranks) + " " + std::to_string(decode.rules.ranks) +
           (prefill.rules.schedule_ahead > 0 ? " ahead " : " ") +
           std::string(name_of(prefill.rules.routing)) + (prefill.rules.keeps_prefixes ? " prefixes" : "") +
           (load.open() ? " open" : "") + " drafts " + std::to_string(decode.rules.drafts) +
           (decode.on_links[TimeClass::tensor_comm] > 0 ? " on links" : "");
  }

  static constexpr double kMeanPrompt = 20;
  LoadSpec load;
  LivePool prefill, decode;
  std::int64_t clients = 1;
  double rate = 1, bytes_per_token = 1, latency = 0;

 private:
  std::int64_t whole(std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng_.below(high - low + 1));
  }
  bool coin() { return rng_.below(2) == 0; }
  Lengths lengths(std::uint64_t longest, bool alike) {
    const std::int64_t most = whole(1, longest);
    if (alike || rng_.below(4) == 0) return Lengths::fixed(most);
    return Lengths::uniform(most, rng_.uniform());
  }

  LivePool pool() {
    LivePool pool;
    LiveRules& rules = pool.rules;
    rules.policy = static_cast<ServingPolicy>(rng_.below(enum_names<ServingPolicy>().size()));
    rules.on_demand = coin();
    rules.max_batch = whole(1, 14);
    rules.token_budget = rules.max_batch + whole(0, coin() ? 4 : 100);
    rules.kv_block = coin() ? whole(1, 3) : whole(4, 20);
    const std::int64_t longest = load.prompt.longest + load.output.longest;
    rules.kv_blocks = (longest + rules.kv_block - 1) / rules.kv_block;
    rules.kv_blocks = coin() ? rules.kv_blocks + whole(0, 10) : rules.kv_blocks * 14;
    rules.watermark = rng_.below(3) == 0 ? whole(0, 3) : 0;
    rules.queue = coin() ? QueueOrder::fcfs : QueueOrder::shortest;
    rules.servers = whole(1, 3);
    rules.frontend = coin() ? 0 : 1e-2 * rng_.uniform();
    rules.eager_floor = coin() ? 0 : 2e-2 * rng_.uniform();
    const double fixed = 1e-3 * rng_.uniform(), per_sequence = 1e-3 * rng_.uniform();
    const double per_token = 1e-3 * rng_.uniform(), per_cached = 1e-5 * rng_.uniform();
    const double per_pair = 1e-6 * rng_.uniform();
    pool.timer = [=](const Iteration& i) {
      IterationTime time{};
      time[TimeClass::compute] =
          fixed + per_token * i.prompt_tokens + per_cached * i.cached + per_pair * i.masked_pairs;
      time[TimeClass::tensor_comm] = per_sequence * i.decoding;
      return time;
    };
    return pool;
  }

  /// Ranks, drafts, prefixes of prompts, and iterations that send on links of caches.
  void take_more(std::uint64_t seed) {
    CounterRng rng(seed, 32);
    for (LivePool* pool : {&prefill, &decode})
      if (rng.below(4) == 0) pool->rules.ranks = static_cast<std::int64_t>(2 + rng.below(2));
    if (rng.below(4) == 0) {
      decode.rules.drafts = load.speculation.draft_tokens = static_cast<std::int64_t>(1 + rng.below(3));
      load.speculation.acceptance = Speculation::independent(rng.uniform());
    }
    prefill.rules.pool_prompts = std::max<std::int64_t>(0, static_cast<std::int64_t>(rng.below(5)) - 2);
    prefill.rules.first_prompts = rng.below(3) == 0 ? 0.1 * rng.uniform() : 0;
    prefill.rules.routing = static_cast<Routing>(rng.below(3));
    prefill.rules.schedule_ahead = static_cast<std::int64_t>(rng.below(2));
    decode.rules.answer_after = std::max<std::int64_t>(0, static_cast<std::int64_t>(rng.below(8)) - 3);
    if (rng.below(3) == 0) decode.on_links[TimeClass::tensor_comm] = rng.uniform();
    if (rng.below(3) > 0) return;
    const auto trace =
        std::make_shared<Trace>(test::random_trace(rng, 1 + rng.below(60), load.prompt.longest));
    double now = 0;
    for (TraceRequest& request : trace->requests) request.arrival = now += 2e-2 * rng.uniform();
    trace->requests.front().arrival = 0;
    load.trace = trace;
    load.prompt = trace->prompt;
    load.output = trace->output;
    load.request_rate = 0;
    prefill.rules.keeps_prefixes = true;
    for (LivePool* pool : {&prefill, &decode})
      pool->rules.kv_blocks += (load.output.longest + pool->rules.kv_block - 1) / pool->rules.kv_block;
  }

  std::int32_t wire_to(std::int64_t decoder, double seconds) {
    const auto begin = static_cast<std::int32_t>(wires_.path_links.size());
    wires_.path_links.push_back(static_cast<std::int32_t>(decoder));
    wires_.connections.push_back({0, 1, begin, begin + 1, seconds});
    return static_cast<std::int32_t>(wires_.connections.size()) - 1;
  }
  void lay_wires() {
    for (std::int64_t r = 0; r < prefill.rules.servers * prefill.rules.ranks; ++r)
      for (std::int64_t d = 0; d < decode.rules.servers * decode.rules.ranks; ++d)
        flows_.push_back({{wire_to(d / decode.rules.ranks, latency), bytes_per_token * kMeanPrompt}});
    if (decode.on_links[TimeClass::tensor_comm] > 0) {
      flows_.resize(flows_.size() + static_cast<std::size_t>(prefill.rules.servers));
      for (std::int64_t d = 0; d < decode.rules.servers; ++d) flows_.push_back({{wire_to(d, 0), rate}});
    }
    rates_.assign(static_cast<std::size_t>(decode.rules.servers), rate);
  }

  CounterRng rng_;
  network::Traffic wires_;
  std::vector<double> rates_;
  std::vector<std::vector<KvFlow>> flows_;
};

/// Values are differences of moments up to `end`, which are equal within rounding (network::kTie).
void expect_percentiles(const Percentiles& fast, std::vector<double> slow, double end, const char* what) {
  std::ranges::sort(slow);
  double sum = 0;
  for (const double value : slow) sum += value;
  const auto rank = [&](double share) { return slow.empty() ? 0 : nearest_rank(slow, share); };
  const double tolerance = std::max(1e-9 * std::max(1e-6, slow.empty() ? 0 : slow.back()), 1e-12 * end);
  EXPECT_NEAR(fast.mean, slow.empty() ? 0 : sum / static_cast<double>(slow.size()), tolerance) << what;
  EXPECT_NEAR(fast.p50, rank(0.5), tolerance) << what;
  EXPECT_NEAR(fast.p95, rank(0.95), tolerance) << what;
  EXPECT_NEAR(fast.p99, rank(0.99), tolerance) << what;
}

TEST(LivePools, EventsAgreeWithBruteForce) {
  int compared = 0, preempted = 0, drawn = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(4000); ++seed) {
    const LivePoolsCase c(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const PlainLive slow =
        serve_pools_plainly(c.offered(), c.servers(), c.rate, c.latency, c.bytes_per_token);
    const LiveMeasured fast = serve_pools(c.offered(), c.servers());
    if (slow.tied || slow.begin == slow.end) continue;
    ++compared;
    preempted += slow.preemptions > 0 ? 1 : 0;
    drawn += c.prefill.rules.policy == ServingPolicy::sglang && c.prefill.rules.ranks > 1 ? 1 : 0;
    std::vector<double> ttft, tpot, e2e;
    double queued = 0;
    for (const PlainLiveRequest& r : slow.done) {
      ttft.push_back(r.first() - r.request.sent);
      e2e.push_back(r.tokens.back() - r.request.sent);
      queued += r.admitted - r.request.sent;
      if (r.request.output > 1) tpot.push_back((r.tokens.back() - r.first()) / (r.request.output - 1));
    }
    ASSERT_EQ(fast.requests, static_cast<std::int64_t>(slow.done.size()));
    expect_percentiles(fast.ttft, ttft, slow.end, "ttft");
    std::vector<double> gaps = slow.gaps;
    if (c.decode.rules.drafts > 0 && fast.accepted > 0)
      for (double& gap : gaps) gap /= fast.accepted;
    expect_percentiles(fast.itl, gaps, slow.end, "itl");
    expect_percentiles(fast.tpot, tpot, slow.end, "tpot");
    expect_percentiles(fast.e2e, e2e, slow.end, "e2e");
    EXPECT_EQ(fast.gaps, static_cast<std::int64_t>(slow.gaps.size()));
    EXPECT_NEAR(fast.queue, queued / static_cast<double>(fast.requests), 1e-9 * fast.e2e.mean);
    EXPECT_NEAR(fast.requests_per_s, slow.served(c.load), 1e-9 * fast.requests_per_s);
    EXPECT_EQ(fast.preemptions, slow.preemptions);
    if (HasFailure()) return;
  }
  EXPECT_GE(compared, test::at_least(2700));
  EXPECT_GE(preempted, test::at_least(100));
  EXPECT_GE(drawn, test::at_least(100)) << "ranks of servers that read";
}

TEST(LivePools, RequestsAndTokensAreConserved) {
  for (std::uint64_t seed = 9000; seed < 9000 + test::seeds(1000); ++seed) {
    LivePoolsCase c(seed);
    c.load.statistic = ClientStatistic::run;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    LoadRecord record;
    const LiveMeasured m = serve_pools(c.offered(), c.servers(), &record);
    for (const WorkRecord& work : record.works) {
      EXPECT_GE(work.waiting, 0) << "caches that leave do not wait to run";
      EXPECT_LE(work.waiting, c.load.requests.number);
    }
    test::expect_conserved(c.load, m, record);
    if (HasFailure()) return;
  }
}

/// One decoder, one link into it, and iterations that compute for 3 ms and send on it for 1 ms. A cache that would be
/// there alone for 20 ms comes as such an iteration begins: with it an iteration takes 3 + 2 ms, in which the cache has
/// the link for 3 ms and half of it for 2 ms. So it takes five iterations, 25 ms, and they are 5 ms late.
TEST(LivePools, ACacheAndIterationsShareALink) {
  LivePoolsCase c(0);
  const auto trace = std::make_shared<Trace>();
  // The first request is read in 10 ms, and its cache comes at 30 ms; iterations begin at 30, 34, 38 ... ms. The second
  // is read until 50 ms, when the sixth iteration begins.
  trace->requests = {{0, 1000, 101}, {0.04, 1000, 11}};
  c.load = LoadSpec();
  c.load.trace = trace;
  c.load.prompt = Lengths::fixed(1000);
  c.load.output = {LengthLaw::trace, 50, 1, 0, 101, 11};
  c.load.requests = {2, false};
  for (LivePool* pool : {&c.prefill, &c.decode}) {
    pool->rules = {ServingPolicy::vllm, true, 2000, 100, 1, 1 << 20};
    pool->on_links = {};
  }
  c.prefill.timer = [](const Iteration&) { return IterationTime{0.01}; };
  c.decode.timer = [](const Iteration&) {
    IterationTime time{};
    time[TimeClass::compute] = 0.003;
    time[TimeClass::tensor_comm] = 0.001;
    return time;
  };
  network::Traffic wires;
  wires.path_links = {0, 0};
  wires.connections = {{0, 1, 0, 1, 0}, {0, 1, 1, 2, 0}};
  const double rate = 1e6;
  const std::vector<double> rates = {rate};
  const auto serve = [&](bool shared, LoadRecord& record) {
    const std::vector<std::vector<KvFlow>> flows = {{{0, 0.02 * rate}}, {}, {{1, rate}}};
    const std::vector<std::vector<KvFlow>> apart = {flows.front()};
    c.decode.on_links[TimeClass::tensor_comm] = 1;
    const LiveMeasured m = serve_pools(
        c.offered(), {c.prefill, c.decode, {wires, rates, shared ? flows : apart}, 1000}, &record);
    std::ranges::sort(record.requests, {}, [](const RequestRecord& r) { return r.request.number; });
    return m;
  };
  LoadRecord apart, shared;
  const LiveMeasured a = serve(false, apart), s = serve(true, shared);
  EXPECT_NEAR(apart.requests[0].first_token, 0.03, 1e-12);
  EXPECT_NEAR(apart.requests[0].done, 0.03 + 100 * 0.004, 1e-12);
  EXPECT_NEAR(apart.requests[1].first_token, 0.05 + 0.02, 1e-12);
  EXPECT_NEAR(shared.requests[0].first_token, 0.03, 1e-12) << "nothing goes on beside the first cache";
  EXPECT_NEAR(shared.requests[1].first_token, 0.05 + 0.025, 1e-12);
  EXPECT_NEAR(shared.requests[0].done, 0.03 + 100 * 0.004 + 0.005, 1e-12);
  EXPECT_NEAR(s.transfer, (0.02 + 0.025) / 2, 1e-12);
  // What the iterations take longer is theirs: 5 ms of the first request.
  EXPECT_NEAR(s.classes[TimeClass::tensor_comm] - a.classes[TimeClass::tensor_comm], 0.005 / 2, 1e-12);
  EXPECT_NEAR(s.classes[TimeClass::compute], a.classes[TimeClass::compute], 1e-12);
}

/// Prompts are read in 10 ms, caches arrive 20 ms later, iterations take 4 ms and begin at 30, 34, 38 ... ms, as the
/// first cache arrives at 30 ms. Clients have the first token at the end of the third iteration: the first one at 30 +
/// 12 ms. The second cache arrives at 71.5 ms, joins at 74, and is done with its only iteration at 78; the third
/// arrives at 91.5 ms, joins at 94 and is answered at 94 + 12 ms. What caches take is the same.
TEST(LivePools, TheFirstTokenComesWithAnIterationOfTheDecoder) {
  LivePoolsCase c(0);
  const auto trace = std::make_shared<Trace>();
  trace->requests = {{0, 1000, 101}, {0.0415, 1000, 2}, {0.0615, 1000, 11}};
  c.load = LoadSpec();
  c.load.trace = trace;
  c.load.prompt = Lengths::fixed(1000);
  c.load.output = {LengthLaw::trace, 38, 1, 0, 101, 2};
  c.load.requests = {3, false};
  for (LivePool* pool : {&c.prefill, &c.decode}) {
    pool->rules = {ServingPolicy::vllm, true, 2000, 100, 1, 1 << 20};
    pool->on_links = {};
  }
  c.decode.rules.answer_after = 3;
  c.prefill.timer = [](const Iteration&) { return IterationTime{0.01}; };
  c.decode.timer = [](const Iteration&) { return IterationTime{0.004}; };
  network::Traffic wires;
  wires.path_links = {0};
  wires.connections = {{0, 1, 0, 1, 0}};
  const std::vector<double> rates = {1e6};
  const std::vector<std::vector<KvFlow>> flows = {{{0, 0.02 * 1e6}}};
  LoadRecord record;
  const LiveMeasured m =
      serve_pools(c.offered(), {c.prefill, c.decode, {wires, rates, flows}, 1000}, &record);
  std::ranges::sort(record.requests, {}, [](const RequestRecord& r) { return r.request.number; });
  const std::vector<double> first = {0.042, 0.078, 0.106},
                            done = {0.03 + 100 * 0.004, 0.078, 0.094 + 10 * 0.004};
  ASSERT_EQ(record.requests.size(), first.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_NEAR(record.requests[i].first_token, first[i], 1e-12);
    EXPECT_NEAR(record.requests[i].done, done[i], 1e-12);
  }
  EXPECT_NEAR(m.transfer, 0.02, 1e-12);
}

/// One server reads, at most `most` prompts in an iteration (0: as many as there are), of which the device works for
/// `device` seconds and the host launches for `host`, on each of so many `ranks`; `comes` are the moments at which
/// prompts come, and the result those of their first tokens, in their order.
std::vector<double> first_tokens(ServingPolicy policy, std::int64_t ahead, double device, double host,
                                 const std::vector<double>& comes, std::int64_t most = 2,
                                 std::int64_t ranks = 1) {
  LivePoolsCase c(0);
  const auto trace = std::make_shared<Trace>();
  for (const double moment : comes) trace->requests.push_back({moment, 1000, 2});
  c.load = LoadSpec();
  c.load.trace = trace;
  c.load.prompt = Lengths::fixed(1000);
  c.load.output = {LengthLaw::trace, 2, 1, 0, 2, 2};
  c.load.requests = {std::ssize(comes), false};
  for (LivePool* pool : {&c.prefill, &c.decode}) {
    pool->rules = {policy, true, 1 << 20, 100, 1, 1 << 20};
    pool->on_links = {};
  }
  c.prefill.rules.pool_prompts = most;
  c.prefill.rules.ranks = ranks;
  c.prefill.rules.schedule_ahead = ahead;
  c.prefill.rules.eager_floor = host;
  c.prefill.timer = [=](const Iteration&) { return IterationTime{device}; };
  c.decode.timer = [](const Iteration&) { return IterationTime{0.004}; };
  network::Traffic wires;
  wires.path_links = {0};
  wires.connections = {{0, 1, 0, 1, 0}};
  const std::vector<double> rates = {1e6};
  const std::vector<std::vector<KvFlow>> flows(static_cast<std::size_t>(ranks), {{0, 1e-6}});
  LoadRecord record;
  serve_pools(c.offered(), {c.prefill, c.decode, {wires, rates, flows, ranks}, 1000}, &record);
  std::ranges::sort(record.requests, {}, [](const RequestRecord& r) { return r.request.number; });
  std::vector<double> first;
  for (const RequestRecord& request : record.requests) first.push_back(request.first_token);
  return first;
}

void expect_moments(const std::vector<double>& first, const std::vector<double>& moments) {
  ASSERT_EQ(first.size(), moments.size());
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_NEAR(first[i], moments[i], 1e-9) << i;
}

/// Five prompts come at once to a server that reads two prompts in an iteration of 10 ms whatever its budget holds:
/// they are read after 10, 10, 20, 20 and 30 ms. Without the limit all five are in one iteration.
TEST(LivePools, ABurstIsReadSoManyPromptsAtATime) {
  const std::vector<double> burst(5, 0);
  expect_moments(first_tokens(ServingPolicy::sglang, 0, 0.01, 0, burst, 0), {0.01, 0.01, 0.01, 0.01, 0.01});
  expect_moments(first_tokens(ServingPolicy::sglang, 0, 0.01, 0, burst), {0.01, 0.01, 0.02, 0.02, 0.03});
}

/// A burst on four ranks of SGLang, one prompt of each in an iteration: a prompt waits for those before it that the
/// draw sent to its own rank, though others rest. TensorRT-LLM's ranks take whatever comes next, four at a time.
TEST(LivePools, PromptsWaitForTheRankThatIsDrawnForThem) {
  constexpr std::int64_t kRanks = 4;
  const std::vector<double> burst(40, 0);
  LiveRules rules;
  rules.ranks = kRanks;
  rules.drawn_ranks = true;
  std::vector<double> drawn, dealt;
  std::vector<std::int64_t> waiting(kRanks, 0);
  for (std::int64_t i = 0; i < std::ssize(burst); ++i) {
    drawn.push_back(0.01 * static_cast<double>(++waiting[static_cast<std::size_t>(rank_of(rules, i))]));
    dealt.push_back(0.01 * static_cast<double>(1 + i / kRanks));
  }
  EXPECT_GT(std::ranges::max(waiting), 10) << "the draw is even";
  expect_moments(first_tokens(ServingPolicy::sglang, 0, 0.01, 0, burst, 1, kRanks), drawn);
  expect_moments(first_tokens(ServingPolicy::trtllm, 0, 0.01, 0, burst, 1, kRanks), dealt);
}

/// Another seed of the load draws other ranks.
TEST(LivePools, RanksAreDrawnByTheSeedOfTheLoad) {
  LiveRules one, other;
  one.ranks = other.ranks = 8;
  one.drawn_ranks = other.drawn_ranks = true;
  other.rank_seed = 1;
  int same = 0;
  for (std::int64_t i = 0; i < 800; ++i) same += rank_of(one, i) == rank_of(other, i) ? 1 : 0;
  EXPECT_NEAR(same, 100, 50);  // one of eight, five standard deviations of a binomial law
}

/// Of n requests each of R ranks gets n / R, with the variance of a binomial law.
TEST(LivePools, RanksAreDrawnEvenly) {
  LiveRules rules;
  rules.drawn_ranks = true;
  constexpr double kRequests = 8000;
  for (const std::int64_t ranks : {2, 8}) {
    rules.ranks = ranks;
    std::vector<double> counts(static_cast<std::size_t>(ranks), 0);
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(kRequests); ++i)
      ++counts[static_cast<std::size_t>(rank_of(rules, i))];
    const double mean = kRequests / static_cast<double>(ranks);
    double chi = 0;
    for (const double count : counts) chi += (count - mean) * (count - mean) / mean;
    const auto freedom = static_cast<double>(ranks - 1);
    EXPECT_LT(chi, freedom + 4 * std::sqrt(2 * freedom));
    EXPECT_GT(chi, 0.05 * freedom) << "more even than chance";
  }
}

/// Three prompts at 0 ms: two are read until 10 ms, and the host launches the third's iteration as that begins, so the
/// fourth, which comes at 5 ms, goes at 20 ms although the second iteration has room. One that comes while the server
/// rests is read at once.
TEST(LivePools, AServerThatReadsFixesItsNextIterationAsOneBegins) {
  const std::vector<double> comes = {0, 0, 0, 0.005, 0.055};
  expect_moments(first_tokens(ServingPolicy::sglang, 0, 0.01, 0, comes), {0.01, 0.01, 0.02, 0.02, 0.065});
  expect_moments(first_tokens(ServingPolicy::sglang, 1, 0.01, 0, comes), {0.01, 0.01, 0.02, 0.03, 0.065});
  expect_moments(first_tokens(ServingPolicy::trtllm, 1, 0.01, 0, comes), {0.01, 0.01, 0.02, 0.02, 0.065});
}

/// Where the device has done in 4 ms what the host launches in 10 ms, the next iteration is launched at 10 ms with all
/// that are there, and what the first gave is looked at after that, at 20 ms; at 20 ms nothing is there to launch, so
/// that the second's prompts leave then, too.
TEST(LivePools, AHostThatLaunchesTheNextIterationLooksAtThisOneAfterIt) {
  const std::vector<double> comes = {0, 0, 0, 0.005, 0.055};
  expect_moments(first_tokens(ServingPolicy::sglang, 0, 0.004, 0.01, comes), {0.01, 0.01, 0.02, 0.02, 0.065});
  expect_moments(first_tokens(ServingPolicy::sglang, 1, 0.004, 0.01, comes), {0.02, 0.02, 0.02, 0.02, 0.065});
  expect_moments(first_tokens(ServingPolicy::trtllm, 1, 0.004, 0.01, comes), {0.01, 0.01, 0.02, 0.02, 0.065});
}

/// Blocks that come free while a decoding server is in the middle of its iterations let in what was preempted.
TEST(LivePools, APreemptedSequenceTakesTheBlocksOfACacheThatIsDone) {
  LivePoolsCase c(0);
  const auto trace = std::make_shared<Trace>();
  // Blocks of one token, 62 of them. Two requests of 10 tokens are read until 10 ms, and their caches come at 15 and at
  // 20 ms; they get a token each ms. At 20 ms the third is read, of 30 tokens and a single one to give, and has its
  // blocks; its cache comes at 35 ms. At 24 ms the three would need 63 blocks: the second is preempted, and has room
  // again when the third is done.
  trace->requests = {{0, 10, 51}, {0, 10, 51}, {0.005, 30, 1}};
  c.load = LoadSpec();
  c.load.trace = trace;
  c.load.prompt = {LengthLaw::trace, 17, 1, 0, 30, 10};
  c.load.output = {LengthLaw::trace, 34, 1, 0, 51, 1};
  c.load.requests = {3, false};
  c.prefill.rules = {ServingPolicy::vllm, true, 2000, 100, 1, 1 << 20};
  c.decode.rules = {ServingPolicy::vllm, true, 2000, 100, 1, 62};
  for (LivePool* pool : {&c.prefill, &c.decode}) pool->on_links = {};
  c.prefill.timer = [](const Iteration&) { return IterationTime{0.01}; };
  c.decode.timer = [](const Iteration&) { return IterationTime{0.001}; };
  network::Traffic wires;
  wires.path_links = {0};
  wires.connections = {{0, 1, 0, 1, 0}};
  const std::vector<double> rates = {1000};
  const std::vector<std::vector<KvFlow>> flows = {{{0, 5}}};
  LoadRecord record;
  serve_pools(c.offered(), {c.prefill, c.decode, {wires, rates, flows}, 10}, &record);
  const auto third =
      std::ranges::find(record.requests, 2, [](const RequestRecord& r) { return r.request.number; });
  ASSERT_NE(third, record.requests.end());
  const auto again = std::ranges::find_if(record.works, [&](const WorkRecord& w) {
    return w.server == 1 && w.reading > 0 && w.begin >= third->done;
  });
  ASSERT_NE(again, record.works.end()) << "what was preempted is read again";
  EXPECT_NEAR(third->done, 0.035, 1e-9);
  EXPECT_LE(again->begin, third->done + 0.001) << "in the next iteration";
}

/// One client meets nobody: its request is prefill, transfer and decode steps, as pooled_course.h has it, also where
/// layers leave one by one and several attention ranks share an iteration.
TEST(LivePools, OneClientIsTheClosedForm) {
  for (std::uint64_t seed = 0; seed < test::seeds(600); ++seed) {
    LivePoolsCase c(seed, true);
    CounterRng rng(seed, 5);
    c.clients = 1;
    c.load.statistic = ClientStatistic::steady;
    c.load.warm_up = {2, false};
    c.load.requests = {4, false};
    KvFabric fabric = c.fabric();
    if (rng.below(2) == 0) {
      fabric.when = KvTransfer::per_layer;
      fabric.layers = 1 + static_cast<std::int64_t>(rng.below(5));
    }
    for (LivePool* pool : {&c.prefill, &c.decode}) pool->rules.frontend = pool->rules.eager_floor = 0;
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + c.text());
    const auto rules = [](const LivePool& pool) {
      const bool cut =
          pool.rules.policy != ServingPolicy::trtllm && pool.rules.policy != ServingPolicy::prefill_priority;
      return Pool{pool.rules.servers,
                  {cut ? ServingPolicy::chunked : ServingPolicy::prefill_priority, pool.rules.token_budget,
                   pool.rules.max_batch},
                  pool.timer};
    };
    const DisaggregatedMeasured closed = serve_disaggregated(
        {{1, c.load.prompt.longest, c.load.output.longest}, rules(c.prefill), rules(c.decode), fabric});
    // The closed form moves the bytes of the mean request, the load those of its own prompts.
    const LiveMeasured live =
        serve_pools(c.offered(), {c.prefill, c.decode, fabric, static_cast<double>(c.load.prompt.longest)});
    const double tolerance = 1e-9 * closed.requests.e2e.mean;
    EXPECT_NEAR(live.ttft.mean, closed.requests.ttft.mean, tolerance);
    EXPECT_NEAR(live.itl.mean, closed.requests.itl.mean, tolerance);
    EXPECT_NEAR(live.itl.p95, closed.requests.itl.p95, tolerance);
    EXPECT_NEAR(live.e2e.mean, closed.requests.e2e.mean, tolerance);
    EXPECT_NEAR(live.transfer, closed.transfer, tolerance);
    EXPECT_NEAR(live.exposed_transfer, closed.exposed_transfer, tolerance);
    EXPECT_NEAR(live.waiting, closed.requests.waiting, tolerance);
    EXPECT_NEAR(live.requests_per_s / closed.requests.requests_per_s, 1, 1e-9);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace shardscape::serving
