// Does a server of two pools give the times that follow by hand, and does every cache travel once?
#include "engine/serving/pooled_course.h"

#include <gtest/gtest.h>

#include <vector>

namespace shardscape::serving {
namespace {

constexpr double kByteRate = 100;  // bytes per second of every link

/// Servers with links of their own: a cache of `bytes` from each to each, over a link out and a link in.
struct Bench {
  Bench(std::int64_t readers, std::int64_t writers, double bytes, double latency = 0) {
    const auto links = static_cast<std::int32_t>(readers + writers);
    for (std::int32_t from = 0; from < readers; ++from) {
      for (std::int32_t to = 0; to < writers; ++to) {
        const auto begin = static_cast<std::int32_t>(wires.path_links.size());
        wires.path_links.push_back(from);
        wires.path_links.push_back(static_cast<std::int32_t>(readers) + to);
        const auto connection = static_cast<std::int32_t>(wires.connections.size());
        wires.connections.push_back({from, to, begin, begin + 2, latency});
        flows.push_back({{connection, bytes}});
      }
    }
    rates.assign(static_cast<std::size_t>(links), kByteRate);
    load.prefill.servers = readers;
    load.decode.servers = writers;
  }

  DisaggregatedMeasured serve(std::int64_t clients, std::int64_t prompt, std::int64_t output,
                              double per_token, double step, KvTransfer when = KvTransfer::after_prefill,
                              std::int64_t layers = 1) {
    load.load = {clients, prompt, output};
    load.prefill.timer = [=](const Iteration& i) { return IterationTime{per_token * i.prompt_tokens}; };
    load.decode.timer = [=](const Iteration&) {
      IterationTime time{};
      time[TimeClass::tensor_comm] = step;
      return time;
    };
    const KvFabric fabric{wires, rates, flows, load.prefill.servers, load.decode.servers, when, layers};
    const DisaggregatedMeasured out = serve_disaggregated({load.load, load.prefill, load.decode, fabric});
    double sum = out.requests.waiting + out.exposed_transfer;
    for (const double part : out.requests.classes) sum += part;
    EXPECT_NEAR(sum, out.requests.e2e.mean, 1e-9 * out.requests.e2e.mean);
    // Each request once: those done have moved, and no more are under way than there are clients.
    EXPECT_GE(out.transfers_done, out.requests_done);
    EXPECT_LE(out.transfers_started, out.requests_done + clients);
    return out;
  }

  struct {
    Load load;
    Pool prefill{1, {ServingPolicy::chunked, 1000, 1000}, {}},
        decode{1, {ServingPolicy::chunked, 1000, 1000}, {}};
  } load;
  network::Traffic wires;
  std::vector<double> rates;
  std::vector<std::vector<KvFlow>> flows;
};

// One at a time: 10 tokens at 0.1 s, 50 bytes at 100 bytes/s with a latency of 0.25 s, then 4 more tokens.
TEST(Disaggregated, ALoneRequestIsPrefillTransferAndSteps) {
  Bench bench(1, 1, 50, 0.25);
  const DisaggregatedMeasured out = bench.serve(1, 10, 5, 0.1, 0.02);
  EXPECT_NEAR(out.transfer, 0.75, 1e-12);
  EXPECT_NEAR(out.exposed_transfer, 0.75, 1e-12);
  EXPECT_NEAR(out.requests.ttft.mean, 1.75, 1e-12);
  EXPECT_NEAR(out.requests.itl.mean, 0.02, 1e-12);
  EXPECT_NEAR(out.requests.itl.p95, 0.02, 1e-12);
  EXPECT_NEAR(out.requests.e2e.mean, 1.83, 1e-12);
  EXPECT_NEAR(out.requests.requests_per_s, 1 / 1.83, 1e-9);
  EXPECT_NEAR(out.requests.waiting, 0, 1e-12);
  EXPECT_DOUBLE_EQ(out.requests.decode_batch, 1);
}

// Layer by layer: 4 layers, a prefill of 1 s. 20 bytes take 0.2 s: all but the last 5 bytes have gone by the
// end, 0.05 s are exposed. 400 bytes take 4 s, of which 0.75 s lie beside the prefill.
TEST(Disaggregated, LayersLeaveWhileTheOthersAreRead) {
  const DisaggregatedMeasured small = Bench(1, 1, 20).serve(1, 10, 5, 0.1, 0.02, KvTransfer::per_layer, 4);
  EXPECT_NEAR(small.exposed_transfer, 0.05, 1e-9);
  EXPECT_NEAR(small.requests.ttft.mean, 1.05, 1e-9);
  const DisaggregatedMeasured large = Bench(1, 1, 400).serve(1, 10, 5, 0.1, 0.02, KvTransfer::per_layer, 4);
  EXPECT_NEAR(large.exposed_transfer, 3.25, 1e-9);
  EXPECT_NEAR(large.transfer, 4, 1e-9);
  EXPECT_NEAR(large.bytes_sent, 400.0 * static_cast<double>(large.transfers_started),
              1e-6 * large.bytes_sent);
}

// Two prompts that fit in one iteration: both caches leave together and share the link out, 1 s each instead
// of half; then both decode together.
TEST(Disaggregated, CachesShareTheLinks) {
  Bench bench(1, 2, 50);
  const DisaggregatedMeasured out = bench.serve(2, 10, 5, 0.1, 0.02);
  EXPECT_NEAR(out.requests.ttft.mean, 2 + 1, 1e-9);
  EXPECT_NEAR(out.transfer, 1, 1e-9);
  EXPECT_DOUBLE_EQ(out.requests.decode_batch, 1);  // each on a server of its own
}

// Two servers of each kind and two clients: nobody meets anybody.
TEST(Disaggregated, RequestsGoWhereThereIsLeastToDo) {
  Bench bench(2, 2, 50);
  const DisaggregatedMeasured out = bench.serve(2, 10, 5, 0.1, 0.02);
  EXPECT_NEAR(out.requests.ttft.mean, 1.5, 1e-9);
  EXPECT_NEAR(out.requests.e2e.mean, 1.58, 1e-9);
  EXPECT_NEAR(out.requests.waiting, 0, 1e-9);
}

// One place to decode sets two clients half a cycle apart: each finds a reader that has nothing to do, though
// the other one is busy, and the place free when its prompt has been read.
TEST(Disaggregated, RequestsGoToIdleReaders) {
  Bench bench(2, 1, 50);
  bench.load.decode.rules.slots = 1;
  const DisaggregatedMeasured out = bench.serve(2, 10, 5, 0.1, 0.02);
  EXPECT_NEAR(out.requests.e2e.mean, 1.58, 1e-9);
  EXPECT_NEAR(out.requests.waiting, 0, 1e-9);
}

// A decoding pool with one place: caches wait where they are, requests are served one after the other, each
// holding the place for its transfer and its four steps, 0.5 + 0.08 s. With prefill far quicker than that the
// pool is never idle, and by Little's law a request takes clients times as long.
TEST(Disaggregated, CachesWaitForAPlace) {
  Bench bench(1, 1, 50);
  bench.load.decode.rules.slots = 1;
  const DisaggregatedMeasured out = bench.serve(5, 10, 5, 0.001, 0.02);
  EXPECT_NEAR(out.requests.e2e.mean, 5 * 0.58, 1e-6);
  EXPECT_NEAR(out.requests.requests_per_s, 1 / 0.58, 1e-6);
  EXPECT_NEAR(out.requests.ttft.mean, 5 * 0.58 - 0.08, 1e-6);
  EXPECT_NEAR(out.transfer, 0.5, 1e-9);
  EXPECT_DOUBLE_EQ(out.requests.decode_batch, 1);
}

// A prefill pool with one place: the next prompt is not begun before the cache of the one before has left.
// Decoding is quick, so a cycle is prefill and transfer, 1 + 0.5 s.
TEST(Disaggregated, PromptsWaitUntilCachesHaveLeft) {
  Bench bench(1, 1, 50);
  bench.load.prefill.rules.slots = 1;
  const DisaggregatedMeasured out = bench.serve(4, 10, 2, 0.1, 1e-9);
  EXPECT_NEAR(out.requests.requests_per_s, 1 / 1.5, 1e-6);
}

// Prompts of 10 tokens under a budget of 15: each iteration reads one and a half, 1.5 s; whole prompts read
// one at a time, 1 s.
TEST(Disaggregated, BudgetsCutPromptsOrNot) {
  Bench chunked(1, 1, 1e-6);
  chunked.load.prefill.rules.token_budget = 15;
  const DisaggregatedMeasured pieces = chunked.serve(8, 10, 2, 0.1, 1e-9);
  EXPECT_NEAR(pieces.requests.requests_per_s, 1, 0.02);  // 32 requests are measured, to within half a second
  Bench whole(1, 1, 1e-6);
  whole.load.prefill.rules = {ServingPolicy::prefill_priority, 15, 1000};
  const DisaggregatedMeasured one = whole.serve(8, 10, 2, 0.1, 1e-9);
  EXPECT_NEAR(one.requests.requests_per_s, 1, 1e-3);
  EXPECT_NEAR(one.requests.ttft.p50, 8, 1e-3);
}

TEST(Disaggregated, OneTokenNeedsNoDecoding) {
  const DisaggregatedMeasured out = Bench(1, 1, 50).serve(3, 10, 1, 0.1, 0.02);
  EXPECT_DOUBLE_EQ(out.requests.decode_batch, 0);
  EXPECT_EQ(out.requests.itl.mean, 0);
  EXPECT_NEAR(out.requests.e2e.mean, out.requests.ttft.mean, 1e-12);
}

// A request of one token is done when its cache is there; its client's next prompt is read from that moment
// on: 10 tokens at 0.1 s and 50 bytes at 100 bytes/s, again and again.
TEST(Disaggregated, AfterOneTokenTheNextPromptIsReadAtOnce) {
  const DisaggregatedMeasured out = Bench(1, 1, 50).serve(1, 10, 1, 0.1, 0.02);
  EXPECT_NEAR(out.requests.e2e.mean, 1.5, 1e-9);
  EXPECT_NEAR(out.requests.requests_per_s, 1 / 1.5, 1e-9);
}

}  // namespace
}  // namespace shardscape::serving
