// Looks whether a context group's ring lies unevenly over domains, writes who waits for whom in a layer as a small
// matrix of weights, multiplies it for the layer's passes (max-plus), and takes the greatest mean weight of its
// cycles.
#include "engine/step/layers/context_drift.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "engine/model/layer_key.h"

namespace shardscape::step {

namespace {

using network::CollectiveOp;
using network::RankGroup;

/// How many members of a group a domain of scale-up links holds: `mean` over the domains of the group that spans most
/// of them, `most` in any one. Both are 1 where links or ranks are not laid out in such domains.
struct InDomains {
  double mean = 1;
  std::int32_t most = 1;
};
InDomains in_domains(const FabricSpec& fabric, const RankGroup& group) {
  std::int64_t domain = 1;
  auto dimension = fabric.dimensions.begin();
  for (; dimension != fabric.dimensions.end() && dimension->scope == LinkScope::scale_up; ++dimension)
    domain *= dimension->size();
  const bool leaves = std::all_of(dimension, fabric.dimensions.end(),
                                  [](const DimensionSpec& d) { return d.scope == LinkScope::scale_out; });
  if (!leaves || group.depth != 1 || group.mirror.extent != 1) return {};
  const auto [extent, stride] = group.levels.front();
  if (domain % stride != 0 || stride == domain) return {};
  // Groups lie in consecutive blocks of ranks; within a block they begin at consecutive ranks. Check the first and last
  // of each block.
  const std::int64_t block = static_cast<std::int64_t>(extent) * stride;
  const std::int64_t blocks = std::min(fabric.size() / block, domain / std::gcd(block, domain));
  std::int64_t most_domains = 1;
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (const std::int64_t first : {b * block, b * block + stride - 1})
      most_domains = std::max(most_domains, (first + block - stride) / domain - first / domain + 1);
  }
  return {static_cast<double>(extent) / static_cast<double>(most_domains),
          static_cast<std::int32_t>(std::min<std::int64_t>(extent, domain / stride))};
}

bool lies_unevenly(const InDomains& inside, const RankGroup& context) {
  return inside.most != 1 && inside.most != context.size();
}

/// The share of what drift spares that is lost where calls of the tensor group leave domains as well: ranks that have
/// drifted apart meet each other's calls on these links. Executed, 0.23 to 0.59 of it is lost in 24 plans of Llama 2
/// 13B on 32 A100 (tensor 2; context 4 and 8; recomputing or not), 0.42 in the mean.
constexpr double kLostToTensor = 0.42;

/// Number of consecutive members of the context group, from the first on, that hold experts together.
std::int32_t together(const RankGroup& experts, const RankGroup::Level& context) {
  std::int32_t last = 0;  // highest place along the context axis that a member of the first expert group has
  for (std::int32_t l = 0; l < experts.depth; ++l) {
    const auto [extent, stride] = experts.levels[static_cast<std::size_t>(l)];
    for (std::int32_t i = 1; i < extent && last + 1 < context.extent; ++i) {
      const std::int32_t place = i * stride / context.stride % context.extent;
      last = std::max(last, place);
    }
  }
  return last + 1;
}

/// A ring whose ranks drift apart, by the header's names: n, g, s, f, u, the time u of a hop inside a domain, and e.
struct Drifting {
  double n = 2, members = 1;
  Seconds slow, fast, busy, busy_fast;
  std::int32_t last = 1;
  double kept = 1;  ///< share of what drift spares that is not lost
  friend bool operator==(const Drifting&, const Drifting&) = default;
};
std::optional<Drifting> drifting(const model::CollectiveCall& call, const CallPrices& prices) {
  const FabricSpec& fabric = prices.setting.system.fabric;
  const network::CollectivePrices& collectives = prices.collectives;
  const network::CollectiveKey pass = prices.healthy(call);
  const RankGroup& group = pass.group;
  if (call.op != CollectiveOp::ring_pass || call.repeats + 1 != group.size()) return std::nullopt;
  const InDomains inside = in_domains(fabric, group);
  if (!lies_unevenly(inside, group)) return std::nullopt;
  const bool dispatches = model::layer_key(prices.plan, prices.plan.microbatch).dispatches;
  const std::int32_t last =
      dispatches ? together(prices.groups[ParallelGroup::expert], group.levels.front()) : 1;
  network::CollectiveKey near = pass;
  near.group.levels.front().extent = inside.most;
  const Seconds spared = prices.spared_in_turn(call.group, pass);
  const Seconds slow = collectives.time_without_faults(pass) - spared,
                fast = collectives.time_without_faults(near),
                busy = std::max(collectives.healthy().time_on_links(pass) - spared,
                                collectives.time_at_ranks(pass));
  if (slow <= fast) return std::nullopt;
  const Seconds busy_fast =
      std::max(collectives.healthy().time_on_links(near), collectives.time_at_ranks(near));
  const RankGroup& tensor = prices.groups[ParallelGroup::tensor];
  const bool leaves = in_domains(fabric, tensor).most < tensor.size();
  return Drifting{static_cast<double>(group.size()), inside.mean, slow, fast, busy, busy_fast, last,
                  leaves ? 1 - kLostToTensor : 1};
}

constexpr double kNoWay = -std::numeric_limits<double>::infinity();

/// Seconds of the longest way through an exchange from one place in a domain to another one, in whichever domain;
/// [from][to], kNoWay where there is none. Empty: of no exchange.
class Weights {
 public:
  Weights() = default;
  Weights(std::size_t rows, std::size_t places) : places_(places), seconds_(rows * places, kNoWay) {}
  [[nodiscard]] std::size_t places() const { return places_; }
  [[nodiscard]] double* operator[](std::size_t from) { return seconds_.data() + from * places_; }
  [[nodiscard]] const double* operator[](std::size_t from) const { return seconds_.data() + from * places_; }

 private:
  std::size_t places_ = 0;
  std::vector<double> seconds_;
};

Weights weights_of(const Drifting& ring) {
  const auto places = static_cast<std::size_t>(std::lround(ring.members));
  // By the place where they end, then by that where they begin, since all ways to a place go on alike.
  Weights longest(places, places);
  for (std::size_t from = 0; from < places; ++from) longest[from][from] = 0;
  std::vector<double> round(places);
  const auto step = [&](double stay_inside, double stay_last) {
    std::copy_n(longest[places - 1], places, round.begin());
    for (std::size_t place = places; place-- > 0;) {
      const double* const before = place > 0 ? longest[place - 1] : round.data();
      const double hop = (place > 0 ? ring.fast : ring.slow).value(),
                   stay = place + 1 < places ? stay_inside : stay_last;
      double* const ways = longest[place];
      for (std::size_t from = 0; from < places; ++from)
        ways[from] = std::max(before[from] + hop, ways[from] + stay);
    }
  };
  for (double message = 2; message < ring.n; ++message) step(ring.busy_fast.value(), ring.busy.value());
  step(kNoWay, kNoWay);
  Weights all(places, places);
  for (std::size_t from = 0; from < places; ++from)
    for (std::size_t to = 0; to < places; ++to) all[from][to] = longest[to][from];
  return all;
}

/// The longest way behind each of some ways, by one more way: `ahead` has a value for each place where they end.
void append_ways(const double* ahead, const Weights& ways, double* longest) {
  for (std::size_t by = 0; by < ways.places(); ++by) {
    const double* const from = ways[by];
    for (std::size_t to = 0; to < ways.places(); ++to)
      longest[to] = std::max(longest[to], ahead[by] + from[to]);
  }
}

Weights one_after_the_other(const Weights& first, const Weights& second) {
  Weights both(first.places(), first.places());
  for (std::size_t from = 0; from < first.places(); ++from) append_ways(first[from], second, both[from]);
  return both;
}

/// The greatest mean weight of a cycle (Karp 1978, "A characterization of the minimum cycle mean in a digraph").
double mean_cycle(const Weights& weights) {
  const std::size_t n = weights.places();
  Weights longest(n + 1, n);  // from any place, by so many ways
  std::fill_n(longest[0], n, 0.0);
  for (std::size_t k = 0; k < n; ++k) append_ways(longest[k], weights, longest[k + 1]);
  double mean = kNoWay;
  for (std::size_t to = 0; to < n; ++to) {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < n; ++k)
      least = std::min(least, (longest[n][to] - longest[k][to]) / static_cast<double>(n - k));
    mean = std::max(mean, least);
  }
  return mean;
}

}  // namespace

double drifting_members(const FabricSpec& fabric, const RankGroup& context) {
  const InDomains inside = in_domains(fabric, context);
  return lies_unevenly(inside, context) ? inside.mean : 1;
}

Seconds spared_by_drift(const model::CollectiveCall& call, const CallPrices& prices) {
  const std::optional<Drifting> ring = drifting(call, prices);
  if (!ring) return Seconds(0);
  const auto& [n, members, slow, fast, busy, busy_fast, last, kept] = *ring;
  const double domains = n / members, apart = std::max(0.0, members - last);
  const double crossed = last > 1 ? domains : domains * (n - 1) / n;
  const Seconds goes_on = crossed * slow + (n - 1 - crossed) * fast;
  const Seconds waits = slow + apart * fast + (n - 2 - apart) * busy;
  return kept * std::max(Seconds(0), (n - 1) * slow - std::max(goes_on, waits));
}

Seconds added_by_turns(std::span<const model::CollectiveCall* const> exchanges, const CallPrices& prices) {
  Weights all, own;
  double apart = 0, kept = 1, cycle = 0;
  std::optional<Drifting> before;
  for (const model::CollectiveCall* const call : exchanges) {
    const std::optional<Drifting> ring = drifting(*call, prices);
    if (!ring || ring->last > 1) return Seconds(0);
    if (ring != before) {  // most exchanges are like the one before
      own = weights_of(*ring);
      cycle = mean_cycle(own);
      before = ring;
    }
    apart += cycle;
    kept = ring->kept;
    all = all.places() == 0 ? own : one_after_the_other(all, own);
  }
  return Seconds(kept * std::max(0.0, mean_cycle(all) - apart));
}

}  // namespace shardscape::step
