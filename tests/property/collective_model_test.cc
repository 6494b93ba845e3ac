// Random groups on random fabrics against an oracle that knows nothing of link ids, lattices or memos.
#include "engine/network/collective_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "tests/support/fabrics.h"

namespace shardscape::network {
namespace {

constexpr std::uint64_t kSeed = 20240611;

/// Index of the fabric dimension in which two neighbouring ranks of a route differ.
int dimension_between(const FabricSpec& spec, std::int32_t a, std::int32_t b) {
  for (std::size_t d = 0; d < spec.dimensions.size(); ++d) {
    const auto size = static_cast<std::int32_t>(spec.dimensions[d].size());
    if (a % size != b % size) return static_cast<int>(d);
    a /= size, b /= size;
  }
  return -1;
}

/// Time of simultaneous equal messages: the longest path's latency, and the most loaded link's share.
class Traffic {
 public:
  explicit Traffic(const FabricSpec& spec) : spec_(spec) {}

  void send(std::int32_t source, std::int32_t destination) {
    const std::vector<std::int32_t> route = test::expected_route(spec_, source, destination);
    double path_latency = 0;
    for (std::size_t i = 0; i + 1 < route.size();) {
      const std::int32_t from = route[i];
      const bool crossbar = route[i + 1] == test::kSwitch;
      const std::int32_t to = route[i + (crossbar ? 2 : 1)];
      const int d = dimension_between(spec_, from, to);
      const DimensionSpec& dimension = spec_.dimensions[static_cast<std::size_t>(d)];
      if (crossbar) {
        load(from, -1 - d, dimension);
        load(-1 - d, to, dimension);
        path_latency += 2 * dimension.latency.value();
        i += 2;
      } else {
        load(from, to, dimension);
        path_latency += dimension.latency.value();
        ++i;
      }
    }
    latency_ = std::max(latency_, path_latency);
  }
  [[nodiscard]] double time(double bytes) const { return latency_ + bytes * worst_; }

 private:
  void load(std::int32_t from, std::int32_t to, const DimensionSpec& dimension) {
    worst_ = std::max(worst_, ++count_[{from, to}] / dimension.bandwidth.value());
  }
  const FabricSpec& spec_;
  std::map<std::pair<std::int32_t, std::int32_t>, int> count_;
  double worst_ = 0, latency_ = 0;
};

/// Ranks that agree in every plan axis but `axis`, lowest first, for all values of the others.
std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> groups_of(const ParallelPlan& plan,
                                                                         PlanAxis axis) {
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> groups;
  for (std::int32_t rank = 0; rank < plan.gpus(); ++rank) {
    std::vector<std::int32_t> others;
    std::int32_t rest = rank;
    for (const PlanAxis a : plan.order) {
      if (a != axis) others.push_back(rest % plan.degree(a));
      rest /= plan.degree(a);
    }
    groups[others].push_back(rank);
  }
  return groups;
}

ParallelPlan random_plan(test::CaseRng& rng, std::int64_t ranks) {
  ParallelPlan plan;
  const auto take = [&](std::int64_t of) {
    std::vector<std::int64_t> divisors;
    for (std::int64_t i = 1; i <= of; ++i) {
      if (of % i == 0) divisors.push_back(i);
    }
    return static_cast<std::int32_t>(rng.pick(divisors));
  };
  plan.tensor = take(ranks);
  plan.context = take(ranks / plan.tensor);
  plan.data = take(ranks / plan.tensor / plan.context);
  plan.pipeline = static_cast<std::int32_t>(ranks / plan.tensor / plan.context / plan.data);
  for (std::size_t i = 3; i > 0; --i) {
    std::swap(plan.order[i], plan.order[static_cast<std::size_t>(rng.integer(0, static_cast<int>(i)))]);
  }
  return plan;
}

struct Case {
  FabricSpec spec;
  ParallelPlan plan;
  PlanAxis axis = PlanAxis::tensor;
  RankGroup group;
};

Case random_case(test::CaseRng& rng) {
  static const std::vector<FabricSpec> kFabrics = test::assorted_fabrics();
  Case c;
  do {
    c.spec = rng.pick(kFabrics);
    c.plan = random_plan(rng, c.spec.size());
    c.axis = static_cast<PlanAxis>(rng.integer(0, 3));
    c.group = PlanLayout(c.plan).group(c.axis);
  } while (c.group.size() == 1);
  return c;
}

std::string describe(const Case& c, std::uint64_t i) {
  return "seed " + std::to_string(kSeed) + " case " + std::to_string(i) + ": " + test::describe(c.spec) +
         to_string(c.plan.order) + " tp " + std::to_string(c.plan.tensor) + " cp " +
         std::to_string(c.plan.context) + " dp " + std::to_string(c.plan.data) + " pp " +
         std::to_string(c.plan.pipeline) + ", group over " + std::string(name_of(c.axis));
}

TEST(CollectiveOracle, PassesAndRingsMatchBruteForceLinkCounting) {
  const auto communication = test::bare_stack().communication;
  for (std::uint64_t i = 0; i < 1500; ++i) {
    test::CaseRng rng(kSeed, i);
    const Case c = random_case(rng);
    SCOPED_TRACE(describe(c, i));
    Traffic ring(c.spec), chain(c.spec);
    const auto groups = groups_of(c.plan, c.axis);
    for (const auto& [others, members] : groups) {
      ASSERT_EQ(members.size(), static_cast<std::size_t>(c.group.size()));
      for (std::size_t m = 0; m < members.size(); ++m) {
        const bool last = m + 1 == members.size();
        const std::int32_t successor = members[last ? 0 : m + 1];
        ring.send(members[m], successor);
        if (!last) chain.send(members[m], successor), chain.send(successor, members[m]);
      }
    }
    const Fabric f(c.spec);
    CollectiveModel model(f, communication);
    const double bytes = rng.real(1, 1e9), n = c.group.size();
    const auto time = [&](CollectiveOp op) { return model.time(op, Bytes(bytes), c.group).value(); };
    EXPECT_NEAR(time(CollectiveOp::ring_pass), ring.time(bytes), 1e-12 * ring.time(bytes));
    EXPECT_NEAR(time(CollectiveOp::chain_pass), chain.time(bytes), 1e-12 * chain.time(bytes));
    // The flat ring is always a candidate, and the only one where the fabric has one axis.
    const double flat = (n - 1) * ring.time(bytes / n);
    EXPECT_LE(time(CollectiveOp::all_gather), flat * (1 + 1e-12));
    if (f.axes().size() == 1) {
      EXPECT_NEAR(time(CollectiveOp::all_gather), flat, 1e-12 * flat);
      EXPECT_NEAR(time(CollectiveOp::all_reduce), 2 * flat, 1e-12 * flat);
    }
  }
}

// Whatever the algorithm, each rank has to receive the other ranks' share over its own links: all-gather
// cannot beat (n-1)/n * bytes over the sum of the bandwidths that enter a rank.
TEST(CollectiveBounds, NoAllGatherBeatsTheLinksIntoARank) {
  const auto communication = test::bare_stack().communication;
  for (std::uint64_t i = 0; i < 500; ++i) {
    test::CaseRng rng(kSeed + 1, i);
    const Case c = random_case(rng);
    SCOPED_TRACE(describe(c, i));
    const Fabric f(c.spec);
    double into_rank = 0;
    for (const Link& link : f.links()) into_rank += link.destination == 0 ? link.bandwidth.value() : 0;
    CollectiveModel model(f, communication);
    const double n = c.group.size();
    // Rank 0 may stand at the end of an open line; any rank has at most twice its links.
    EXPECT_GE(model.time(CollectiveOp::all_gather, Bytes(1e9), c.group).value(),
              (n - 1) / n * 1e9 / (2 * into_rank));
  }
}

TEST(CollectiveMemo, ChangesNoResult) {
  const auto communication = test::full_stack().communication;
  for (std::uint64_t i = 0; i < 300; ++i) {
    test::CaseRng rng(kSeed + 2, i);
    const Case c = random_case(rng);
    SCOPED_TRACE(describe(c, i));
    const Fabric f(c.spec);
    CollectiveModel memoised(f, communication), plain(f, communication);
    plain.use_memo(false);
    for (int round = 0; round < 4; ++round) {
      FaultSet faults;
      if (round % 2 == 1) {
        faults.links.push_back(
            {rng.small(0, static_cast<std::int32_t>(f.links().size()) - 1), rng.real(0.05, 1), Seconds(0)});
      }
      memoised.set_faults(faults);
      plain.set_faults(faults);
      for (const CollectiveOp op : {CollectiveOp::all_reduce, CollectiveOp::all_gather,
                                    CollectiveOp::ring_pass, CollectiveOp::chain_pass}) {
        const Bytes bytes(rng.real(1, 1e9));
        EXPECT_EQ(memoised.time(op, bytes, c.group, 3), plain.time(op, bytes, c.group, 3));
      }
    }
  }
}

TEST(CollectiveFaults, NeverMakeAnythingFasterAndCostNothingOnIdleLinks) {
  const auto communication = test::full_stack().communication;
  for (std::uint64_t i = 0; i < 800; ++i) {
    test::CaseRng rng(kSeed + 3, i);
    const Case c = random_case(rng);
    SCOPED_TRACE(describe(c, i));
    const Fabric f(c.spec);
    CollectiveModel model(f, communication);
    const auto op = static_cast<CollectiveOp>(rng.integer(0, 4));
    const Bytes bytes(rng.real(1, 1e9));
    const Seconds healthy = model.time(op, bytes, c.group);
    const std::int32_t link = rng.small(0, static_cast<std::int32_t>(f.links().size()) - 1);
    model.set_faults({{{link, 0.6, Seconds(0)}}});
    const Seconds sick = model.time(op, bytes, c.group);
    EXPECT_GE(sick, healthy);
    model.set_faults({{{link, 0.3, Seconds(0)}}});
    EXPECT_GE(model.time(op, bytes, c.group), sick);
    model.set_faults({{{link, 1.0, Seconds(0)}}});
    EXPECT_EQ(model.time(op, bytes, c.group), healthy);
  }
}

// More bytes are never faster, and the time is affine in bytes for passes: halving the distance to zero bytes
// halves the bytes term.
TEST(CollectiveBytes, MonotoneInBytes) {
  const auto communication = test::full_stack().communication;
  for (std::uint64_t i = 0; i < 300; ++i) {
    test::CaseRng rng(kSeed + 4, i);
    const Case c = random_case(rng);
    SCOPED_TRACE(describe(c, i));
    const Fabric f(c.spec);
    CollectiveModel model(f, communication);
    for (int op = 0; op < 5; ++op) {
      Seconds before(0);
      for (const double bytes : {1.0, 1e3, 1e5, 1e7, 1e9}) {
        const Seconds now = model.time(static_cast<CollectiveOp>(op), Bytes(bytes), c.group);
        EXPECT_GT(now, before);
        before = now;
      }
    }
  }
}

}  // namespace
}  // namespace shardscape::network
