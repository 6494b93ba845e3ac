// Do exchanges between experts cost what their closed forms say?
#include "engine/network/collectives/expert_dispatch.h"

#include <gtest/gtest.h>

#include <cmath>

namespace shardscape::network {
namespace {

ExpertDispatch round_dispatch() {
  ExpertDispatch d;
  d.low_latency = {Seconds(10e-6),        Seconds(12e-6),        Seconds(10e-9),      Seconds(5e-9),
                   BytesPerSecond(300e9), BytesPerSecond(200e9), BytesPerSecond(4e9), Seconds(7e-6),
                   Seconds(8e-6),         BytesPerSecond(50e9)};
  d.normal = {Seconds(30e-6),
              Seconds(25e-6),
              BytesPerSecond(0.5e9),
              Seconds(0.05e-6),
              BytesPerSecond(25e9),
              BytesPerSecond(500e9),
              1.5,
              Seconds(35e-6),
              Seconds(40e-6),
              BytesPerSecond(60e9)};
  return d;
}

double us(DispatchKernels kernels, DispatchWay way, const ExpertExchange& call) {
  return 1e6 * expert_exchange_time(round_dispatch(), kernels, way, call)->value();
}
constexpr double kExchangeRounding = 1e-9;

TEST(ExpertDispatch, LowLatencyIsItsClosedForm) {
  // 128 tokens to 8 of 256 experts, 4,096 wide: 1,024 messages of 4,224 B out and 8,192 B back.
  const ExpertExchange call = {128, 4096, 8, 256, 8, 1, 20};
  EXPECT_NEAR(us(DispatchKernels::low_latency, DispatchWay::dispatch, call), 10 + 2.56 + 1024 * 4224 / 300e3,
              kExchangeRounding);
  EXPECT_NEAR(us(DispatchKernels::low_latency, DispatchWay::combine, call), 12 + 1.28 + 1024 * 8192 / 200e3,
              kExchangeRounding);
  // With 8 experts the queue of one counts: 128 tokens at 4 GB/s.
  const ExpertExchange few = {128, 4096, 8, 8, 8, 1, 20};
  EXPECT_NEAR(us(DispatchKernels::low_latency, DispatchWay::dispatch, few), 10 + 0.08 + 128 * 4224 / 4e3,
              kExchangeRounding);
  // With four nodes, a quarter of the tokens stays inside a node.
  const ExpertExchange far = {128, 4096, 8, 256, 32, 4, 20};
  EXPECT_NEAR(us(DispatchKernels::low_latency, DispatchWay::combine, far),
              12 + 1.28 + std::sqrt(3) * 8 + 1024 * 8192 * (0.25 / 200e3 + 0.75 / 50e3), 1e-6);
}

TEST(ExpertDispatch, NormalIsItsClosedForm) {
  // One choice among eight ranks is one copy, and 1.5 stay; 1000 tokens of 2,000 values are 2,500 copies of 4 kB.
  const ExpertExchange call = {1000, 2000, 1, 64, 8, 1, 10};
  const double moved = 2500 * 4000, sms = (2500 * 0.05 + moved / 25e3) / 10, link = moved / 500e3;
  const double norm = std::pow(std::pow(sms, 4) + std::pow(link, 4), 0.25);
  EXPECT_NEAR(us(DispatchKernels::normal, DispatchWay::combine, call), 25 + 4000 / 0.5e3 + norm, 1e-9 * norm);
  // Two nodes: one choice goes to the other one with probability 1/2, SMs that forward do not send.
  ExpertExchange far = call;
  far.ranks = 16, far.nodes = 2;
  const double network = 500 * 4000 / 60e3;
  const double both = std::pow(std::pow(2 * sms, 4) + std::pow(link, 4) + std::pow(network, 4), 0.25);
  EXPECT_NEAR(us(DispatchKernels::normal, DispatchWay::combine, far), 25 + 8 + 40 + both, 1e-9 * both);
  // Many choices meet every rank: 8 copies and no more.
  ExpertExchange all = call;
  all.top_k = 1000;
  const double copies = 9500, busy = (copies * 0.05 + copies * 4000 / 25e3) / 10,
               wire = copies * 4000 / 500e3;
  const double whole = std::pow(std::pow(busy, 4) + std::pow(wire, 4), 0.25);
  EXPECT_NEAR(us(DispatchKernels::normal, DispatchWay::combine, all), 25 + 8 + whole, 1e-6 * whole);
}

TEST(ExpertDispatch, NothingWithoutConstants) {
  const ExpertExchange call = {8, 4096, 8, 256, 16, 2, 20};
  const auto time = [&](const ExpertDispatch& device, DispatchKernels kernels) {
    return expert_exchange_time(device, kernels, DispatchWay::dispatch, call);
  };
  EXPECT_FALSE(time({}, DispatchKernels::normal));
  EXPECT_FALSE(time({}, DispatchKernels::low_latency));
  ExpertDispatch alone = round_dispatch();
  alone.normal.node_bandwidth = BytesPerSecond(0);
  EXPECT_FALSE(time(alone, DispatchKernels::normal));
  EXPECT_TRUE(time(alone, DispatchKernels::low_latency));
}

}  // namespace
}  // namespace shardscape::network
