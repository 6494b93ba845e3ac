// Is the quick course of two pools the obvious one, and do alike flows run as one?
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/serving/alike_caches.h"
#include "engine/serving/pooled_course.h"
#include "tests/support/plain_courses.h"
#include "tests/support/seeds.h"

namespace shardscape::serving {
namespace {

/// Two pools on links of their own and links that they share, all drawn at random; the timers are convex and piecewise
/// linear in the tokens met.
class RandomPools {
 public:
  explicit RandomPools(std::uint64_t seed) : rng_(seed, 11) {
    load_.load = {whole(1, 24), whole(1, 60), whole(1, 40)};
    if (rng_.below(3) == 0) load_.load.window = static_cast<double>(whole(1, 60));
    lay_out(prefill_, load_.prefill);
    lay_out(decode_, load_.decode);
    load_.prefill.timer = timer();
    load_.decode.timer = timer();
    add_links();
    layers_ = whole(1, 4);
    when_ = rng_.below(2) == 0 ? KvTransfer::after_prefill : KvTransfer::per_layer;
  }

  [[nodiscard]] KvFabric fabric() const {
    return {wires_, rates_,  flows_,           prefill_.replicas, decode_.replicas,
            when_,  layers_, prefill_.coupled, decode_.coupled};
  }
  [[nodiscard]] DisaggregatedLoad load() const { return {load_.load, load_.prefill, load_.decode, fabric()}; }
  [[nodiscard]] std::int64_t clients() const { return load_.load.clients; }
  [[nodiscard]] std::int64_t output_tokens() const { return load_.load.output_tokens; }
  [[nodiscard]] bool coupled() const { return prefill_.coupled * decode_.coupled > 1; }

 private:
  struct Layout {
    std::int64_t replicas = 1, coupled = 1, ranks = 1;  ///< ranks: of one replica
    std::int32_t first_link = 0;
  };

  std::int64_t whole(std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + rng_.below(high - low + 1));
  }

  void lay_out(Layout& layout, Pool& pool) {
    layout.coupled = rng_.below(4) == 0 ? 2 : 1;
    layout.replicas = layout.coupled * whole(1, 4);
    layout.ranks = whole(1, 4);
    pool.servers = layout.replicas / layout.coupled * whole(1, 3);
    pool.rules.policy = rng_.below(2) == 0 ? ServingPolicy::chunked : ServingPolicy::prefill_priority;
    pool.rules.slots = rng_.below(3) == 0 ? whole(1, 3) : whole(1, 30);
    pool.rules.token_budget = whole(1, rng_.below(3) == 0 ? 20 : 150);
  }

  Timer timer() {
    IterationTime fixed{};
    for (const TimeClass part : kServingClasses) fixed[part] = 1e-3 * rng_.uniform();
    const double per_sequence = 1e-4 * rng_.uniform(), per_cached = 1e-5 * rng_.uniform();
    const double per_token = 1e-4 * rng_.uniform(), per_pair = 1e-6 * rng_.uniform();
    const double floor = rng_.below(2) == 0 ? 0 : 1e-2 * rng_.uniform();
    return [=](const Iteration& i) {
      IterationTime time = fixed;
      const double device = per_sequence * i.decoding + per_cached * i.cached + per_token * i.prompt_tokens +
                            per_pair * i.masked_pairs;
      time[TimeClass::compute] += device;
      time[TimeClass::host] += std::max(0.0, floor - device);
      return time;
    };
  }

  /// A link out of or into each rank, of one width or of many, and some that all of a replica's flows share.
  void add_links() {
    const bool alike = rng_.below(2) == 0;
    const double width = 1e3 * (0.2 + rng_.uniform());
    for (Layout* layout : {&prefill_, &decode_}) {
      layout->first_link = static_cast<std::int32_t>(rates_.size());
      for (std::int64_t r = 0; r < layout->replicas * layout->ranks; ++r)
        rates_.push_back(alike ? width : 1e3 * (0.2 + rng_.uniform()));
    }
    const auto trunk = static_cast<std::int32_t>(rates_.size());
    const std::int64_t trunks = whole(0, 2);
    for (std::int64_t t = 0; t < trunks; ++t)
      rates_.push_back((rng_.below(2) == 0 ? 3 : 30) * width * rng_.uniform() + 1);
    const double bytes = rng_.below(4) == 0 ? 0.01 : 20 * rng_.uniform(), latency = 1e-3 * rng_.uniform();
    const std::int64_t kinds = whole(1, 2);
    for (std::int64_t a = 0; a < prefill_.replicas; ++a)
      for (std::int64_t b = 0; b < decode_.replicas; ++b)
        add_pair(a, b, trunk, trunks, kinds, bytes, latency);
  }

  /// Every rank of the wider replica sends to, or gets from, one of the other.
  void add_pair(std::int64_t a, std::int64_t b, std::int32_t trunk, std::int64_t trunks, std::int64_t kinds,
                double bytes, double latency) {
    std::vector<KvFlow> list;
    const auto first = static_cast<std::int32_t>(wires_.connections.size());
    for (std::int64_t t = 0; t < std::max(prefill_.ranks, decode_.ranks); ++t) {
      const auto begin = static_cast<std::int32_t>(wires_.path_links.size());
      wires_.path_links.push_back(prefill_.first_link +
                                  static_cast<std::int32_t>(a * prefill_.ranks + t % prefill_.ranks));
      if (trunks > 0 && a != b) wires_.path_links.push_back(trunk + static_cast<std::int32_t>(t % trunks));
      wires_.path_links.push_back(decode_.first_link +
                                  static_cast<std::int32_t>(b * decode_.ranks + t % decode_.ranks));
      wires_.connections.push_back({0, 1, begin, static_cast<std::int32_t>(wires_.path_links.size()),
                                    (1 + 0.1 * static_cast<double>(t)) * latency});
    }
    for (std::int64_t kind = 0; kind < kinds; ++kind)
      for (std::int32_t c = first; c < static_cast<std::int32_t>(wires_.connections.size()); ++c)
        list.push_back({c, bytes / static_cast<double>(kind + 1)});
    flows_.push_back(std::move(list));
  }

  CounterRng rng_;
  struct {
    Load load;
    Pool prefill, decode;
  } load_;
  Layout prefill_, decode_;
  network::Traffic wires_;
  std::vector<double> rates_;
  std::vector<std::vector<KvFlow>> flows_;
  std::int64_t layers_ = 1;
  KvTransfer when_ = KvTransfer::after_prefill;
};

// Events closer than 1e-12 of the time happen together, at the time of the first: what rounding tells apart may move
// each of hundreds of instants by that much, and waiting, transfers and rates are differences of moments.
void expect_alike(const Spread& fast, const Spread& slow, const char* what) {
  const double tolerance = 1e-9 * std::max(1e-6, slow.p95);
  EXPECT_NEAR(fast.mean, slow.mean, tolerance) << what;
  EXPECT_NEAR(fast.p50, slow.p50, tolerance) << what;
  EXPECT_NEAR(fast.p95, slow.p95, tolerance) << what;
}

void expect_alike(const DisaggregatedMeasured& fast, const DisaggregatedMeasured& slow) {
  expect_alike(fast.requests.ttft, slow.requests.ttft, "ttft");
  expect_alike(fast.requests.itl, slow.requests.itl, "itl");
  expect_alike(fast.requests.e2e, slow.requests.e2e, "e2e");
  const double tolerance = 1e-9 * slow.requests.e2e.mean;
  EXPECT_NEAR(fast.requests.requests_per_s / slow.requests.requests_per_s, 1, 1e-9);
  EXPECT_NEAR(fast.requests.decode_batch, slow.requests.decode_batch, 1e-9 * slow.requests.decode_batch);
  EXPECT_NEAR(fast.requests.waiting, slow.requests.waiting, tolerance);
  EXPECT_NEAR(fast.exposed_transfer, slow.exposed_transfer, tolerance);
  EXPECT_NEAR(fast.transfer, slow.transfer, tolerance);
  for (const TimeClass part : kServingClasses)
    EXPECT_NEAR(fast.requests.classes[part], slow.requests.classes[part], tolerance) << name_of(part);
  EXPECT_EQ(fast.requests_measured, slow.requests_measured);
  EXPECT_EQ(fast.requests_done, slow.requests_done);
  EXPECT_EQ(fast.transfers_started, slow.transfers_started);
  EXPECT_EQ(fast.transfers_done, slow.transfers_done);
  EXPECT_NEAR(fast.bytes_sent, slow.bytes_sent, 1e-9 * slow.bytes_sent);
}

/// Iterations, those that decode, and the sequences and tokens in them.
std::vector<double> sums_of(const std::vector<ServedIteration>& served) {
  std::vector<double> sums(5, 0);
  for (const ServedIteration& s : served) {
    const auto count = static_cast<double>(s.iterations);
    sums[0] += count;
    sums[1] += count * static_cast<double>(s.progressing);
    sums[2] += count * s.iteration.decoding;
    sums[3] += count * (s.iteration.cached + 0.5 * (count - 1) * s.iteration.decoding);
    sums[4] += count * s.iteration.prompt_tokens;
  }
  return sums;
}

TEST(Pools, RunsAgreeWithTheCourseOfSingleIterations) {
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    const RandomPools pools(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const DisaggregatedMeasured fast = serve_disaggregated(pools.load(), true);
    const DisaggregatedMeasured slow = serve_disaggregated_plainly(pools.load(), true);
    expect_alike(fast, slow);
    EXPECT_EQ(sums_of(fast.prefill_iterations), sums_of(slow.prefill_iterations));
    EXPECT_EQ(sums_of(fast.decode_iterations), sums_of(slow.decode_iterations));
    if (HasFailure()) return;
  }
}

// The first gap of a request may begin within an iteration, whose end it waits for; all others hold one each.
TEST(Pools, LawsOfQueuesHoldExactly) {
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    const RandomPools pools(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    DisaggregatedLoad load = pools.load();
    double fastest = 1e30, slowest = 0;
    load.decode.timer = [&, timer = load.decode.timer](const Iteration& i) {
      const IterationTime time = timer(i);
      fastest = std::min(fastest, total(time)), slowest = std::max(slowest, total(time));
      return time;
    };
    const DisaggregatedMeasured all = serve_disaggregated_plainly(load);
    const Measured& m = all.requests;
    const double steps = static_cast<double>(pools.output_tokens() - 1);
    EXPECT_NEAR(m.requests_per_s * m.e2e.mean, static_cast<double>(pools.clients()), 1e-9);
    EXPECT_NEAR(m.ttft.mean + steps * m.itl.mean, m.e2e.mean, 1e-9 * m.e2e.mean);
    EXPECT_NEAR(m.waiting + total(m.classes) + all.exposed_transfer, m.e2e.mean, 1e-9 * m.e2e.mean);
    // Everything sent has arrived, except what is still under way.
    EXPECT_GE(all.transfers_started, all.transfers_done);
    EXPECT_LE(all.transfers_started, all.transfers_done + pools.clients());
    EXPECT_LE(all.requests_done, all.transfers_done);
    if (steps > 0) {
      EXPECT_GE(m.itl.mean, fastest * (1 - 1e-9));
      EXPECT_LE(m.itl.mean * steps, slowest * (steps + 1) * (1 + 1e-9));
    }
    if (HasFailure()) return;
  }
}

// The obvious course on the flows that are left is that on all of them.
TEST(Pools, AlikeFlowsRunAsOne) {
  std::size_t all = 0, left = 0;
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    const RandomPools pools(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    const KvFabric fabric = pools.fabric();
    const AlikeCaches caches = alike_caches(fabric);
    std::vector<std::vector<KvFlow>> flows;
    for (std::size_t pair = 0; pair < fabric.flows.size(); ++pair) {
      flows.emplace_back(caches.of(pair).begin(), caches.of(pair).end());
      double bytes = 0;
      for (const KvFlow& flow : fabric.flows[pair]) bytes += flow.bytes;
      EXPECT_DOUBLE_EQ(caches.bytes[pair], bytes);
      all += fabric.flows[pair].size();
      left += flows.back().size();
    }
    const DisaggregatedLoad load = pools.load();
    const KvFabric reduced{caches.wires,
                           caches.bytes_per_second,
                           flows,
                           fabric.prefill_replicas,
                           fabric.decode_replicas,
                           fabric.when,
                           fabric.layers,
                           fabric.prefill_coupled,
                           fabric.decode_coupled};
    DisaggregatedMeasured fewer =
        serve_disaggregated_plainly({load.load, load.prefill, load.decode, reduced});
    const DisaggregatedMeasured full = serve_disaggregated_plainly(load);
    fewer.bytes_sent = full.bytes_sent;  // each of them stands for several
    expect_alike(fewer, full);
    if (HasFailure()) return;
  }
  EXPECT_LT(3 * left, 2 * all);
}

}  // namespace
}  // namespace shardscape::serving
