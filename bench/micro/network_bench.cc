// The network: messages per CPU-second of the flow simulator, its growth, and what surrounds it.
//
// Rates are per second of CPU time. What is measured is the simulation alone; traffic is built beforehand and
// has benchmarks of its own.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <ctime>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "bench/micro/bench_settings.h"
#include "engine/base/counter_rng.h"
#include "engine/network/collectives/traffic_builder.h"
#include "engine/network/fabric/fabric.h"
#include "engine/network/flows/flow_simulator.h"
#include "tests/support/naive_flow_simulator.h"

namespace shardscape {
namespace {

using network::Algorithm;
using network::Operation;
using network::Pattern;

FabricSpec one_dimension(DimensionKind kind, std::vector<std::int64_t> shape, double gigabytes_per_second) {
  DimensionSpec dimension;
  dimension.name = "links";
  dimension.kind = kind;
  dimension.shape = std::move(shape);
  dimension.bandwidth = BytesPerSecond(gigabytes_per_second * 1e9);
  dimension.latency = Seconds(5e-7);
  FabricSpec fabric;
  fabric.name = "bench";
  fabric.dimensions.push_back(std::move(dimension));
  return fabric;
}

/// One group of all ranks.
Pattern pattern_of(Operation operation, Algorithm algorithm, std::int32_t ranks, double bytes) {
  Pattern pattern;
  pattern.operation = operation;
  pattern.algorithm = algorithm;
  pattern.groups.emplace_back(static_cast<std::size_t>(ranks));
  std::iota(pattern.groups[0].begin(), pattern.groups[0].end(), 0);
  pattern.bytes = bytes;
  return pattern;
}

/// The ranks in a random order, the same every time (Fisher and Yates).
void scatter(std::vector<std::int32_t>& ranks) {
  CounterRng rng(1, 0);
  for (std::size_t i = ranks.size() - 1; i > 0; --i) {
    std::swap(ranks[i], ranks[static_cast<std::size_t>(rng.below(i + 1))]);
  }
}

/// A pattern on its fabric, ready to run.
class NetworkCase {
 public:
  NetworkCase(const FabricSpec& spec, const Pattern& pattern)
      : healthy_(spec), fabric_(healthy_), traffic_(build({pattern}, fabric_)) {}

  [[nodiscard]] const network::Traffic& traffic() const { return traffic_; }
  [[nodiscard]] double messages() const { return static_cast<double>(traffic_.sent()); }
  [[nodiscard]] std::span<const double> capacity() const { return fabric_.bytes_per_second(); }

 private:
  static network::Traffic build(const std::vector<Pattern>& patterns, network::FaultyFabric& fabric) {
    if (!network::check_patterns(patterns, fabric).empty()) throw std::runtime_error("pattern is not valid");
    return std::move(network::build_traffic(patterns, fabric).value().traffic);
  }

  network::Fabric healthy_;
  network::FaultyFabric fabric_;
  network::Traffic traffic_;
};

NetworkCase ring_all_reduce(std::int32_t ranks) {
  return {one_dimension(DimensionKind::ring, {ranks}, 50),
          pattern_of(Operation::all_reduce, Algorithm::ring, ranks, 524'288.0 * ranks)};
}

/// The largest: every rank to every other of an 8x8 torus at once.
NetworkCase torus_all_to_all() {
  return {one_dimension(DimensionKind::torus, {8, 8}, 100),
          pattern_of(Operation::all_to_all, Algorithm::direct, 64, 1 << 24)};
}

/// A ring over an 8x8 torus in random order: steps are of different lengths and cross each other's links.
NetworkCase scattered_ring() {
  Pattern pattern = pattern_of(Operation::all_reduce, Algorithm::ring, 64, 1 << 24);
  scatter(pattern.groups[0]);
  return {one_dimension(DimensionKind::torus, {8, 8}, 100), pattern};
}

void count_messages(benchmark::State& state, double messages, std::int64_t solves) {
  const auto runs = static_cast<double>(state.iterations());
  state.counters["messages"] = messages;
  state.counters["solves"] = static_cast<double>(solves);
  state.counters["messages_per_second"] =
      benchmark::Counter(messages * runs, benchmark::Counter::kIsRate, benchmark::Counter::kIs1000);
  state.counters["seconds_per_message"] =
      benchmark::Counter(messages * runs, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void simulate(benchmark::State& state, const NetworkCase& network) {
  network::FlowSimulator simulator;
  network::FlowResult result;
  for (auto _ : state) {
    result = simulator.run_traffic(network.traffic(), network.capacity());
    benchmark::DoNotOptimize(result.completion_time);
  }
  count_messages(state, network.messages(), result.events);
}

void BM_NetworkRing(benchmark::State& state) { simulate(state, ring_all_reduce(64)); }
BENCHMARK(BM_NetworkRing)->Unit(benchmark::kMicrosecond);

void BM_NetworkAllToAll(benchmark::State& state) { simulate(state, torus_all_to_all()); }
BENCHMARK(BM_NetworkAllToAll)->Unit(benchmark::kMicrosecond);

void BM_NetworkScatteredRing(benchmark::State& state) { simulate(state, scattered_ring()); }
BENCHMARK(BM_NetworkScatteredRing)->Unit(benchmark::kMicrosecond);

/// How the time grows with the messages of a ring all-reduce, 2 n (n - 1) on n ranks.
void BM_NetworkRingGrowth(benchmark::State& state) {
  const NetworkCase network = ring_all_reduce(static_cast<std::int32_t>(state.range(0)));
  simulate(state, network);
  state.SetComplexityN(static_cast<benchmark::IterationCount>(network.messages()));
}
BENCHMARK(BM_NetworkRingGrowth)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Arg(4096)
    ->Complexity(benchmark::oNLogN)
    ->Unit(benchmark::kMillisecond);

/// Messages, gates and routes of a ring all-reduce, laid out.
void BM_NetworkRingTraffic(benchmark::State& state) {
  const auto ranks = static_cast<std::int32_t>(state.range(0));
  double messages = 0;
  for (auto _ : state) {
    const NetworkCase network = ring_all_reduce(ranks);
    messages = network.messages();
    benchmark::DoNotOptimize(network.traffic().messages.data());
  }
  count_messages(state, messages, 0);
  state.SetComplexityN(static_cast<benchmark::IterationCount>(messages));
}
BENCHMARK(BM_NetworkRingTraffic)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Arg(4096)
    ->Complexity(benchmark::oNLogN)
    ->Unit(benchmark::kMillisecond);

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Both solvers on a scattered ring over a 4x4 torus: `naive_over_production` is how many times longer the
/// oracle takes.
void BM_NetworkNaive(benchmark::State& state) {
  Pattern pattern = pattern_of(Operation::all_reduce, Algorithm::ring, 16, 1 << 22);
  scatter(pattern.groups[0]);
  const NetworkCase network(one_dimension(DimensionKind::torus, {4, 4}, 100), pattern);
  network::FlowSimulator simulator;
  constexpr int kRuns = 100;
  double production = 0, naive = 0;
  for (auto _ : state) {
    const double begin = cpu_seconds();
    for (int i = 0; i < kRuns; ++i) {
      benchmark::DoNotOptimize(simulator.run_traffic(network.traffic(), network.capacity()).completion_time);
    }
    const double middle = cpu_seconds();
    benchmark::DoNotOptimize(
        network::simulate_naively(network.traffic(), network.capacity()).completion_time);
    production += (middle - begin) / kRuns;
    naive += cpu_seconds() - middle;
  }
  state.counters["messages"] = network.messages();
  state.counters["naive_over_production"] = naive / production;
}
BENCHMARK(BM_NetworkNaive)->Unit(benchmark::kMillisecond);

void BM_FabricBuild(benchmark::State& state) {
  const Setting setting =
      bench::training_setting("gpt-175b", "dgx-h100", "megatron-lm", state.range(0), 2048, 1536);
  for (auto _ : state) {
    const network::Fabric fabric(setting.system.fabric);
    benchmark::DoNotOptimize(fabric.links().size());
  }
}
BENCHMARK(BM_FabricBuild)->Arg(1024)->Arg(16384)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace shardscape
