// Do collectives cost what a plainly written router and link count say, on random small fabrics?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/counter_rng.h"
#include "engine/network/prices/collective_prices.h"
#include "tests/support/random_plan.h"
#include "tests/support/seeds.h"

namespace shardscape::network {
namespace {

constexpr double kCall = 10e-6;
constexpr double kLocalCopy = 1.5;
constexpr BytesPerSecond kMemory(2e11);
constexpr double kStep = 2e-6;

FabricSpec random_fabric(CounterRng& random) {
  FabricSpec spec;
  spec.name = "random";
  const std::uint64_t count = 1 + random.below(3);
  for (std::uint64_t d = 0; d < count; ++d) {
    const auto kind = static_cast<DimensionKind>(random.below(5));
    const bool shaped = kind == DimensionKind::mesh || kind == DimensionKind::torus;
    std::vector<std::int64_t> shape = {1 + static_cast<std::int64_t>(random.below(5))};
    if (shaped && random.below(2) == 0) shape.push_back(1 + static_cast<std::int64_t>(random.below(4)));
    spec.dimensions.push_back({"d" + std::to_string(d), kind, std::move(shape),
                               BytesPerSecond(1e10 * (1 + random.uniform())),
                               Seconds(1e-6 * (1 + random.uniform())), LinkScope::scale_up});
  }
  return spec;
}

/// A vertex of the oracle: the coordinates, the last one -1 for ranks and else the axis whose crossbar it is.
using Vertex = std::vector<std::int64_t>;
using Wire = std::pair<Vertex, Vertex>;

struct OracleAxis {
  std::size_t dimension;
  DimensionKind kind;
  std::int64_t size;
};

/// The rules of routing once more, on coordinates instead of link ids.
class Oracle {
 public:
  explicit Oracle(const FabricSpec& spec) : spec_(spec) {
    for (std::size_t d = 0; d < spec.dimensions.size(); ++d) {
      for (const std::int64_t extent : spec.dimensions[d].shape) {
        axes_.push_back({d, spec.dimensions[d].kind, extent});
      }
    }
  }

  void derate(const Link& link, double factor) {
    // Only links between ranks or to a crossbar have two ends in the model; a fault is found by its ends.
    derate_[{link.source, link.destination}] = factor;
  }

  struct LockStep {
    double latency = 0, least_latency = 1e9;  ///< largest latency of the routes, and the least
    double per_byte = 0;                      ///< seconds per byte on the busiest link
  };
  /// When all `flows` start together.
  [[nodiscard]] LockStep lock_step(const std::vector<std::pair<std::int32_t, std::int32_t>>& flows) const {
    std::map<Wire, std::pair<int, double>> load;  // flows, seconds per byte of the link
    LockStep result;
    for (const auto& [from, to] : flows) {
      double path_latency = 0;
      Vertex at = coordinates(from);
      const Vertex goal = coordinates(to);
      for (std::size_t a = 0; a < axes_.size(); ++a) {
        for (const Vertex& next : axis_path(at, goal, a)) {
          const DimensionSpec& d = spec_.dimensions[axes_[a].dimension];
          auto& entry = load[{at, next}];
          ++entry.first;
          entry.second = 1 / d.bandwidth.value() / factor(at, next);
          path_latency += d.latency.value();
          at = next;
        }
      }
      result.latency = std::max(result.latency, path_latency);
      result.least_latency = std::min(result.least_latency, path_latency);
    }
    for (const auto& [hop, entry] : load)
      result.per_byte = std::max(result.per_byte, entry.first * entry.second);
    return result;
  }

 private:
  [[nodiscard]] Vertex coordinates(std::int64_t rank) const {
    Vertex result;
    for (const OracleAxis& axis : axes_) {
      result.push_back(rank % axis.size);
      rank /= axis.size;
    }
    result.push_back(-1);
    return result;
  }

  [[nodiscard]] double factor(const Vertex& a, const Vertex& b) const {
    const auto found = derate_.find({number(a), number(b)});
    return found == derate_.end() ? 1 : found->second;
  }

  /// The rank; -1 for a crossbar (no test derates those).
  [[nodiscard]] std::int64_t number(const Vertex& v) const {
    if (v.back() != -1) return -1;
    std::int64_t rank = 0;
    for (std::size_t a = axes_.size(); a-- > 0;) rank = rank * axes_[a].size + v[a];
    return rank;
  }

  [[nodiscard]] std::vector<Vertex> axis_path(Vertex at, const Vertex& goal, std::size_t a) const {
    std::vector<Vertex> path;
    const OracleAxis& axis = axes_[a];
    if (at[a] == goal[a]) return path;
    if (axis.kind == DimensionKind::switched) {
      Vertex crossbar = at;
      crossbar[a] = 0;
      crossbar.back() = static_cast<std::int64_t>(a);
      path.push_back(crossbar);
    }
    if (axis.kind == DimensionKind::switched || axis.kind == DimensionKind::fully_connected) {
      at[a] = goal[a];
      path.push_back(at);
      return path;
    }
    const bool closed = axis.kind != DimensionKind::mesh;
    const std::int64_t up = ((goal[a] - at[a]) % axis.size + axis.size) % axis.size;
    const std::int64_t direction = closed ? (up <= axis.size - up ? 1 : -1) : (goal[a] > at[a] ? 1 : -1);
    while (at[a] != goal[a]) {
      at[a] = (at[a] + direction + axis.size) % axis.size;
      path.push_back(at);
    }
    return path;
  }

  FabricSpec spec_;
  std::vector<OracleAxis> axes_;
  std::map<std::pair<std::int64_t, std::int64_t>, double> derate_;
};

/// The groups of a plan axis by definition: ranks whose other coordinates are equal, in coordinate order.
std::vector<std::vector<std::int32_t>> groups_of(const ParallelPlan& plan, PlanAxis axis) {
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> groups;
  for (std::int32_t rank = 0; rank < static_cast<std::int32_t>(plan.gpus()); ++rank) {
    std::vector<std::int32_t> others;
    std::int32_t rest = rank;
    for (const PlanAxis a : plan.order) {
      if (a != axis) others.push_back(rest % plan.degree(a));
      rest /= plan.degree(a);
    }
    groups[others].push_back(rank);
  }
  std::vector<std::vector<std::int32_t>> result;
  for (auto& [others, members] : groups) result.push_back(std::move(members));
  return result;
}

StackProfile::Communication stack() {
  StackProfile::Communication communication;
  communication.call = Seconds(kCall);
  communication.rank_step = Seconds(kStep);
  communication.local_copy = kLocalCopy;
  communication.bucket = Bytes(1e6);
  return communication;
}

struct Bench {
  explicit Bench(std::uint64_t seed)
      : random(seed, 1),
        spec(random_fabric(random)),
        fabric(spec),
        plan(test::random_plan(random, fabric.ranks())) {
    axis = static_cast<PlanAxis>(random.below(kPlanAxes));
    text = "seed " + std::to_string(seed) + ": " + to_string(plan.order) + " axis " +
           std::string(name_of(axis)) + " of " + std::to_string(plan.degree(axis)) + " on";
    for (const DimensionSpec& d : spec.dimensions) {
      text += " " + std::string(name_of(d.kind)) + testing::PrintToString(d.shape);
    }
    bytes = Bytes(1e8 * random.uniform());
  }
  /// Derates some links between two ranks; links of crossbars stay well.
  FaultSet random_faults(Oracle* oracle) {
    FaultSet faults;
    for (std::size_t i = 0; i < fabric.links().size(); ++i) {
      const Link& link = fabric.links()[i];
      if (link.source >= fabric.ranks() || link.destination >= fabric.ranks() || random.below(4) != 0)
        continue;
      const double factor = 0.1 + 0.9 * random.uniform();
      faults.links.push_back({static_cast<std::int32_t>(i), factor, Seconds(0)});
      if (oracle != nullptr) oracle->derate(link, factor);
    }
    return faults;
  }

  CounterRng random;
  FabricSpec spec;
  Fabric fabric;
  ParallelPlan plan;
  PlanAxis axis = PlanAxis::tensor;
  std::string text;
  Bytes bytes;
  StackProfile::Communication communication = stack();
  CollectivePrices model{{fabric, communication, kMemory}};
};

constexpr CollectiveOp kOps[] = {CollectiveOp::all_reduce, CollectiveOp::reduce_scatter,
                                 CollectiveOp::all_gather, CollectiveOp::ring_pass, CollectiveOp::chain_pass};

TEST(CollectiveProperty, PassesAreTheLockStepOfTheOracle) {
  for (std::uint64_t seed = 0; seed < test::seeds(1500); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    const RankGroup group = PlanLayout(bench.plan).group(bench.axis);
    if (group.size() == 1) continue;
    Oracle oracle(bench.spec);
    if (seed % 2 == 1) bench.model.set_faults(bench.random_faults(&oracle));
    std::vector<std::pair<std::int32_t, std::int32_t>> ring, chain;
    for (const std::vector<std::int32_t>& members : groups_of(bench.plan, bench.axis)) {
      ASSERT_EQ(members.size(), static_cast<std::size_t>(group.size()));
      for (std::size_t i = 0; i < members.size(); ++i) {
        ring.emplace_back(members[i], members[(i + 1) % members.size()]);
        if (i + 1 == members.size()) continue;
        chain.emplace_back(members[i], members[i + 1]);
        chain.emplace_back(members[i + 1], members[i]);
      }
    }
    const double n = group.size(), bytes = bench.bytes.value();
    // All messages are equal: the last byte over the busiest link comes after per_byte * bytes, and no flow
    // is slower; which of the ways its latency belongs to is left open where they differ.
    const Oracle::LockStep step = oracle.lock_step(ring);
    const auto expect_pass = [&](CollectiveOp op, const Oracle::LockStep& lock_step) {
      const double time = bench.model.time({op, bench.bytes, group}).value() - kCall - kStep;
      const double drained = lock_step.per_byte * bytes;
      EXPECT_GE(time, (drained + lock_step.least_latency) * (1 - 1e-9));
      EXPECT_LE(time, (drained + lock_step.latency) * (1 + 1e-9));
    };
    expect_pass(CollectiveOp::ring_pass, step);
    expect_pass(CollectiveOp::chain_pass, oracle.lock_step(chain));
    // The flat ring is always among the choices: n - 1 steps of bytes / n, so nothing chosen on healthy links
    // is dearer. A job keeps that choice when a link gets sick.
    // Beside them a rank reads its n-th once and writes n of them once; the n - 1 that come in are written to
    // and read from a buffer.
    const double copies = kLocalCopy * (1 + n + 2 * (n - 1)) / n * bytes / kMemory.value();
    const double sweep = (n - 1) * (kStep + step.latency + step.per_byte * bytes / n) + copies;
    const double gathered = bench.model.time({CollectiveOp::all_gather, bench.bytes, group}).value();
    if (seed % 2 == 0) {
      EXPECT_LE(gathered, (kCall + sweep) * (1 + 1e-9));
    }
    // The busiest link has n - 1 messages of each of its flows to carry. Equal ways at equal rates keep step.
    if (bench.fabric.axes().size() == 1) {
      const double drained = (n - 1) * (kStep + step.per_byte * bytes / n);
      const bool in_step = seed % 2 == 0 && step.latency - step.least_latency < 1e-12;
      const double least = kCall + copies + drained + (in_step ? n - 1 : 1) * step.least_latency;
      EXPECT_GE(gathered, least * (1 - 1e-9));
      EXPECT_LE(gathered, (kCall + sweep) * (1 + 1e-9));
    }
  }
}

// An all-reduce scatters and gathers; ranks need not wait for each other in between.
TEST(CollectiveProperty, ReductionIsASweepEachWay) {
  for (std::uint64_t seed = 0; seed < test::seeds(500); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    const RankGroup group = PlanLayout(bench.plan).group(bench.axis);
    if (group.size() == 1) continue;
    const auto seconds = [&](CollectiveOp op) {
      return bench.model.time({op, bench.bytes, group}).value() - kCall;
    };
    const double scatter = seconds(CollectiveOp::reduce_scatter), gather = seconds(CollectiveOp::all_gather);
    EXPECT_GE(seconds(CollectiveOp::all_reduce), std::max(scatter, gather));
    EXPECT_LE(seconds(CollectiveOp::all_reduce), 2 * std::max(scatter, gather) * (1 + 1e-9));
  }
}

TEST(CollectiveProperty, SickLinksNeverHelp) {
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    const RankGroup group = PlanLayout(bench.plan).group(bench.axis);
    std::vector<Seconds> healthy;
    for (const CollectiveOp op : kOps) healthy.push_back(bench.model.time({op, bench.bytes, group}));
    bench.model.set_faults(bench.random_faults(nullptr));
    for (std::size_t i = 0; i < std::size(kOps); ++i) {
      EXPECT_GE(bench.model.time({kOps[i], bench.bytes, group}), healthy[i]) << i;
    }
    bench.model.set_faults({});
    for (std::size_t i = 0; i < std::size(kOps); ++i) {
      EXPECT_EQ(bench.model.time({kOps[i], bench.bytes, group}), healthy[i]) << i;
    }
  }
}

TEST(CollectiveProperty, MemoChangesNothing) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    FaultSet faults;
    for (int round = 0; round < 12; ++round) {
      if (round == 6) {
        faults = bench.random_faults(nullptr);
        bench.model.set_faults(faults);
      }
      const ParallelPlan plan = test::random_plan(bench.random, bench.fabric.ranks());
      const PlanLayout layout(plan);
      const RankGroup group = bench.random.below(2) == 0
                                  ? layout.group(static_cast<PlanAxis>(bench.random.below(4)))
                                  : layout.group(PlanAxis::data, PlanAxis::context);
      const CollectiveOp op = kOps[bench.random.below(std::size(kOps))];
      const double calls = 1 + static_cast<double>(bench.random.below(5));
      const CollectiveKey asked{op, bench.bytes, group, calls};
      CollectivePrices fresh({bench.fabric, bench.communication, kMemory});
      fresh.set_faults(faults);
      EXPECT_EQ(bench.model.time(asked), fresh.time(asked));
    }
  }
}

// Whatever the algorithm, a rank has to receive what the others hold, (n - 1) / n of the buffer, over the
// links that enter it; the first rank may end an open line on each axis, so others have up to twice its
// links.
TEST(CollectiveProperty, NoAllGatherBeatsTheLinksIntoARank) {
  for (std::uint64_t seed = 0; seed < test::seeds(1000); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    const RankGroup group = PlanLayout(bench.plan).group(bench.axis);
    if (group.size() == 1) continue;
    BytesPerSecond into_rank;
    for (const Link& link : bench.fabric.links()) {
      if (link.destination == 0) into_rank += link.bandwidth;
    }
    const double n = group.size();
    EXPECT_GE(bench.model.time({CollectiveOp::all_gather, bench.bytes, group}),
              (n - 1) / n * bench.bytes / (2 * into_rank));
  }
}

TEST(CollectiveProperty, MoreBytesTakeLonger) {
  for (std::uint64_t seed = 0; seed < test::seeds(300); ++seed) {
    Bench bench(seed);
    SCOPED_TRACE(bench.text);
    const RankGroup group = PlanLayout(bench.plan).group(bench.axis);
    if (group.size() == 1) continue;
    for (const CollectiveOp op : kOps) {
      Seconds before(0);
      for (const double bytes : {1.0, 1e3, 1e5, 1e7, 1e9}) {
        const Seconds now = bench.model.time({op, Bytes(bytes), group});
        EXPECT_GT(now, before);
        before = now;
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::network
