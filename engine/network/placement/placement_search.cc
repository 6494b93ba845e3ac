// Improves placements by swaps of two ranks: keeps the flows on each link up to date under swaps, descends from each
// start, and shakes the best placement until the budget is spent.
#include "engine/network/placement/placement_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/counter_rng.h"

namespace shardscape::network {

namespace {

constexpr std::int32_t kRanksWithTable = 1024;

Placement plain_order(std::int32_t ranks) {
  Placement placement(static_cast<std::size_t>(ranks));
  std::iota(placement.begin(), placement.end(), 0);
  return placement;
}

/// Routes between all pairs of ranks; kept in a table where that fits in memory, and computed when asked for elsewhere.
class Routes {
 public:
  explicit Routes(const Fabric& fabric) : fabric_(fabric), ranks_(static_cast<std::size_t>(fabric.ranks())) {
    if (fabric.ranks() > kRanksWithTable) return;
    begin_.push_back(0);
    for (std::int32_t source = 0; source < fabric.ranks(); ++source) {
      for (std::int32_t destination = 0; destination < fabric.ranks(); ++destination) {
        fabric.append_route(source, destination, links_);
        begin_.push_back(links_.size());
      }
    }
  }

  /// The links of the route; valid until the next call.
  std::span<const std::int32_t> between(std::int32_t source, std::int32_t destination) {
    if (begin_.empty()) {
      links_.clear();
      fabric_.append_route(source, destination, links_);
      return links_;
    }
    const std::size_t pair =
        static_cast<std::size_t>(source) * ranks_ + static_cast<std::size_t>(destination);
    return std::span<const std::int32_t>(links_).subspan(begin_[pair], begin_[pair + 1] - begin_[pair]);
  }

 private:
  const Fabric& fabric_;
  std::size_t ranks_;
  std::vector<std::size_t> begin_;
  std::vector<std::int32_t> links_;
};

/// How many links carry how many flows of one traffic class, among the links of one bandwidth.
struct LoadHistogram {
  std::vector<std::int32_t> links_with;  ///< index: number of flows
  std::int32_t top = 0;                  ///< number of flows on the most loaded link
  std::int64_t fourth_powers = 0;        ///< sum of flows^4 over the links

  void move(std::int32_t from, std::int32_t to) {
    --links_with[static_cast<std::size_t>(from)];
    ++links_with[static_cast<std::size_t>(to)];
    top = std::max(top, to);
    while (top > 0 && links_with[static_cast<std::size_t>(top)] == 0) --top;
    fourth_powers += fourth(to) - fourth(from);
  }
  static std::int64_t fourth(std::int64_t n) { return n * n * n * n; }
};

struct ClassLoads {
  double bytes = 0;
  std::int64_t hops = 0;
  std::vector<std::int32_t> flows;        ///< index: link
  std::vector<LoadHistogram> histograms;  ///< index: bandwidth
};

}  // namespace

struct PlacementLoads::Impl {
  struct Incident {
    std::int32_t traffic_class = 0;
    RankFlow flow;
  };

  Impl(const Fabric& f, const PlacementDemand& d) : fabric(f), demand(d), routes(f) {
    std::map<double, std::int32_t> ids;
    for (const Link& link : fabric.links()) {
      const auto [entry, fresh] =
          ids.emplace(link.bandwidth.value(), static_cast<std::int32_t>(inverse_bandwidth.size()));
      if (fresh) inverse_bandwidth.push_back(1 / link.bandwidth.value());
      bandwidth_of.push_back(entry->second);
    }
    incident.resize(static_cast<std::size_t>(fabric.ranks()));
    for (std::size_t c = 0; c < demand.size(); ++c) {
      for (const RankFlow& flow : demand[c].flows) {
        if (flow.source == flow.destination) continue;
        incident[static_cast<std::size_t>(flow.source)].push_back({static_cast<std::int32_t>(c), flow});
        incident[static_cast<std::size_t>(flow.destination)].push_back({static_cast<std::int32_t>(c), flow});
      }
    }
  }

  void count_all() {
    std::vector<std::int32_t> links_of(inverse_bandwidth.size(), 0);
    for (const std::int32_t bandwidth : bandwidth_of) ++links_of[static_cast<std::size_t>(bandwidth)];
    classes.clear();
    for (const TrafficClass& traffic : demand) {
      ClassLoads loads;
      loads.bytes = traffic.bytes;
      loads.flows.assign(fabric.links().size(), 0);
      for (const std::int32_t links : links_of) {
        LoadHistogram histogram;
        histogram.links_with.assign(traffic.flows.size() + 1, 0);
        histogram.links_with[0] = links;
        loads.histograms.push_back(std::move(histogram));
      }
      classes.push_back(std::move(loads));
      for (const RankFlow& flow : traffic.flows)
        count(static_cast<std::int32_t>(classes.size()) - 1, flow, 1);
    }
  }

  void count(std::int32_t traffic_class, const RankFlow& flow, std::int32_t sign) {
    ClassLoads& loads = classes[static_cast<std::size_t>(traffic_class)];
    const auto path = routes.between(placement[static_cast<std::size_t>(flow.source)],
                                     placement[static_cast<std::size_t>(flow.destination)]);
    for (const std::int32_t link : path) {
      std::int32_t& flows = loads.flows[static_cast<std::size_t>(link)];
      loads.histograms[static_cast<std::size_t>(bandwidth_of[static_cast<std::size_t>(link)])].move(
          flows, flows + sign);
      flows += sign;
    }
    loads.hops += sign * static_cast<std::int64_t>(path.size());
  }

  void count_incident(std::int32_t a, std::int32_t b, std::int32_t sign) {
    for (const Incident& i : incident[static_cast<std::size_t>(a)]) count(i.traffic_class, i.flow, sign);
    for (const Incident& i : incident[static_cast<std::size_t>(b)]) {
      const bool counted = i.flow.source == a || i.flow.destination == a;
      if (!counted) count(i.traffic_class, i.flow, sign);
    }
  }

  const Fabric& fabric;
  const PlacementDemand& demand;
  Routes routes;
  std::vector<double> inverse_bandwidth;   ///< inverse of each distinct bandwidth
  std::vector<std::int32_t> bandwidth_of;  ///< index: link; place of its bandwidth in inverse_bandwidth
  std::vector<std::vector<Incident>> incident;
  std::vector<ClassLoads> classes;
  Placement placement;
};

PlacementLoads::PlacementLoads(const Fabric& fabric, const PlacementDemand& demand,
                               const Placement& placement)
    : impl_(std::make_unique<Impl>(fabric, demand)) {
  set(placement);
}
PlacementLoads::~PlacementLoads() = default;

void PlacementLoads::set(const Placement& placement) {
  SHARDSCAPE_CHECK(is_placement(placement, impl_->fabric.ranks()), placement.size(), impl_->fabric.ranks());
  impl_->placement = placement.empty() ? plain_order(impl_->fabric.ranks()) : placement;
  impl_->count_all();
}

void PlacementLoads::swap(std::int32_t a, std::int32_t b) {
  if (a == b) return;
  impl_->count_incident(a, b, -1);
  std::swap(impl_->placement[static_cast<std::size_t>(a)], impl_->placement[static_cast<std::size_t>(b)]);
  impl_->count_incident(a, b, 1);
}

const Placement& PlacementLoads::placement() const { return impl_->placement; }

PlacementCost PlacementLoads::cost() const {
  PlacementCost cost;
  for (const ClassLoads& loads : impl_->classes) {
    double worst = 0;
    for (std::size_t b = 0; b < loads.histograms.size(); ++b) {
      worst = std::max(worst, loads.histograms[b].top * impl_->inverse_bandwidth[b]);
    }
    cost.congestion_s += loads.bytes * worst;
    cost.byte_hops += loads.bytes * static_cast<double>(loads.hops);
  }
  return cost;
}

double PlacementLoads::smooth() const {
  double sum = 0;
  for (const ClassLoads& loads : impl_->classes) {
    double fourth = 0;
    for (std::size_t b = 0; b < loads.histograms.size(); ++b) {
      const double square = impl_->inverse_bandwidth[b] * impl_->inverse_bandwidth[b];
      fourth += static_cast<double>(loads.histograms[b].fourth_powers) * square * square;
    }
    sum += loads.bytes * std::sqrt(std::sqrt(fourth));
  }
  return sum;
}

std::int32_t PlacementLoads::flows(std::size_t traffic_class, std::int32_t link) const {
  return impl_->classes[traffic_class].flows[static_cast<std::size_t>(link)];
}

namespace {

/// Descends from starts, and keeps the best placements met.
class Search {
 public:
  Search(const Fabric& fabric, const PlacementDemand& demand, const PlacementSearch& search)
      : ranks_(fabric.ranks()), kept_(search.candidates), rng_(search.seed, 0), loads_(fabric, demand, {}) {
    result_.plain = loads_.cost();
    keep();
  }

  PlacementCost cost_of(const Placement& placement) {
    loads_.set(placement);
    return loads_.cost();
  }

  /// Improves a start until no swap helps, or until `budget` swaps have been tried over all starts.
  void descend_from(const Placement& start, std::int64_t budget) {
    loads_.set(start);
    keep();
    descend(budget);
  }

  /// Shakes the best placement and improves it again, until the budget is spent.
  void shake(std::int64_t budget) {
    if (ranks_ < 3) return;
    const auto ranks = static_cast<std::uint64_t>(ranks_);
    while (result_.swaps < budget) {
      loads_.set(result_.best().placement);
      for (int i = 0; i < kShakes; ++i) {
        const auto a = static_cast<std::int32_t>(rng_.below(ranks));
        loads_.swap(a, static_cast<std::int32_t>(rng_.below(ranks)));
      }
      ++result_.swaps;
      descend(budget);
    }
  }

  [[nodiscard]] const PlacementResult& result() const { return result_; }

 private:
  static constexpr int kShakes = 3;

  void descend(std::int64_t budget) {
    descend_by([this] { return std::pair(loads_.smooth(), loads_.cost().byte_hops); }, budget);
    keep();
    descend_by([this] { return loads_.cost(); }, budget);
    keep();
  }

  template <class Value>
  void descend_by(Value value, std::int64_t budget) {
    auto current = value();
    for (bool improved = true; improved;) {
      improved = false;
      for (std::int32_t a = 0; a < ranks_; ++a) {
        for (std::int32_t b = a + 1; b < ranks_; ++b) {
          if (result_.swaps >= budget) return;
          ++result_.swaps;
          loads_.swap(a, b);
          const auto next = value();
          if (next < current) {
            current = next;
            improved = true;
          } else {
            loads_.swap(a, b);
          }
        }
      }
    }
  }

  /// Keeps the present placement if it is good enough. Candidates of equal cost mostly differ by a symmetry of the
  /// fabric only, so the first one stays.
  void keep() {
    const PlacementCost cost = loads_.cost();
    std::vector<PlacementCandidate>& kept = result_.candidates;
    const auto at = std::ranges::lower_bound(kept, cost, {}, &PlacementCandidate::cost);
    if (at == kept.end() ? kept.size() >= kept_ : at->cost == cost) return;
    kept.insert(at, {loads_.placement(), cost});
    if (kept.size() > kept_) kept.pop_back();
  }

  std::int32_t ranks_;
  std::size_t kept_;
  CounterRng rng_;
  PlacementLoads loads_;
  PlacementResult result_;
};

}  // namespace

PlacementResult improve_placement(const Fabric& fabric, const PlacementDemand& demand,
                                  std::span<const Placement> starts, const PlacementSearch& search) {
  SHARDSCAPE_CHECK(search.candidates > 0, search.candidates);
  Search state(fabric, demand, search);
  if (demand.empty()) return state.result();
  std::vector<PlacementCandidate> queue = state.result().candidates;
  for (const Placement& start : starts) queue.push_back({start, state.cost_of(start)});
  std::ranges::stable_sort(queue, {}, &PlacementCandidate::cost);
  const auto same = [](const auto& a, const auto& b) { return a.cost == b.cost; };
  queue.erase(std::unique(queue.begin(), queue.end(), same), queue.end());

  for (const PlacementCandidate& start : queue) state.descend_from(start.placement, search.max_swaps / 2);
  state.shake(search.max_swaps);
  return state.result();
}

}  // namespace shardscape::network
