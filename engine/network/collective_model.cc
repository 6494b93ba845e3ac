#include "engine/network/collective_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "engine/network/placement.h"

namespace shardscape::network {

namespace {

/// The rank of member `index` of the group that `origin` starts.
std::int32_t member(const RankGroup& group, std::int32_t origin, std::int32_t index) {
  std::int32_t rank = origin;
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    rank += index % level.extent * level.stride;
    index /= level.extent;
  }
  return rank;
}

/// True where `rank` has coordinate 0 in every level, that is where it starts a group.
bool starts_group(const RankGroup& group, std::int32_t rank) {
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    if (rank / level.stride % level.extent != 0) return false;
  }
  return true;
}

/// Adds up what a set of simultaneous flows puts on each link.
class LinkLoads {
 public:
  LinkLoads(const Fabric& fabric, const std::vector<double>& seconds_per_byte,
            const std::vector<Seconds>& latency)
      : fabric_(fabric),
        seconds_per_byte_(seconds_per_byte),
        latency_(latency),
        flows_(fabric.links().size(), 0) {}

  void add_flow(std::int32_t source, std::int32_t destination) {
    path_.clear();
    fabric_.append_route(source, destination, path_);
    Seconds path_latency;
    for (const std::int32_t link : path_) {
      const auto index = static_cast<std::size_t>(link);
      path_latency += latency_[index];
      if (fabric_.spec().dimensions[static_cast<std::size_t>(fabric_.links()[index].dimension)].scope ==
          LinkScope::scale_out)
        scale_out_ = true;
      worst_.seconds_per_byte = std::max(worst_.seconds_per_byte, ++flows_[index] * seconds_per_byte_[index]);
    }
    worst_.latency = std::max(worst_.latency, path_latency);
  }
  [[nodiscard]] AffineCost worst() const { return worst_; }
  [[nodiscard]] bool scale_out() const { return scale_out_; }

 private:
  const Fabric& fabric_;
  const std::vector<double>& seconds_per_byte_;
  const std::vector<Seconds>& latency_;
  std::vector<std::int32_t> flows_;
  std::vector<std::int32_t> path_;
  AffineCost worst_;
  bool scale_out_ = false;
};

}  // namespace

std::size_t CollectiveModel::GroupHash::operator()(const RankGroup& group) const {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (std::int32_t i = 0; i < group.depth; ++i) {
    const RankGroup::Level& level = group.levels[static_cast<std::size_t>(i)];
    hash ^= (static_cast<std::uint64_t>(level.extent) << 32) | static_cast<std::uint32_t>(level.stride);
    hash *= 0xFF51AFD7ED558CCDULL;
    hash ^= hash >> 32;
  }
  return hash;
}

CollectiveModel::CollectiveModel(const Fabric& fabric, const StackProfile::Communication& communication)
    : fabric_(fabric), communication_(communication) {
  double nodes = 1;
  for (const DimensionSpec& dimension : fabric.spec().dimensions) {
    if (dimension.scope == LinkScope::scale_out) nodes *= static_cast<double>(dimension.size());
  }
  const double scale_out = communication_.scale_out_fraction *
                           std::pow(communication_.scale_out_scaling, std::max(0.0, std::log2(nodes) - 1));
  for (const Link& link : fabric.links()) {
    const LinkScope scope = fabric.spec().dimensions[static_cast<std::size_t>(link.dimension)].scope;
    const double fraction = scope == LinkScope::scale_up ? communication_.scale_up_fraction : scale_out;
    healthy_.seconds_per_byte.push_back(1 / (fraction * link.bandwidth.value()));
    healthy_.latency.push_back(link.latency);
  }
  actual_ = healthy_;
}

void CollectiveModel::set_faults(const FaultSet& faults) {
  if (faults.empty() && !faulty_) return;
  memo_.clear();
  faulty_ = !faults.empty();
  actual_ = healthy_;
  for (const LinkFault& fault : faults.links) {
    const auto link = static_cast<std::size_t>(fault.link);
    SHARDSCAPE_CHECK(link < actual_.latency.size() && fault.derate > 0, fault.link, fault.derate);
    actual_.seconds_per_byte[link] /= fault.derate;
    actual_.latency[link] += fault.added_latency;
  }
}

void CollectiveModel::set_placement(std::vector<std::int32_t> placement) {
  SHARDSCAPE_CHECK(is_placement(placement, fabric_.ranks()), placement.size(), fabric_.ranks());
  memo_.clear();
  placement_ = std::move(placement);
}

AffineCost CollectiveModel::step(const RankGroup& group, Pattern pattern, const LinkCosts& links) const {
  LinkLoads loads(fabric_, links.seconds_per_byte, links.latency);
  const auto place = [&](std::int32_t rank) {
    return placement_.empty() ? rank : placement_[static_cast<std::size_t>(rank)];
  };
  const std::int32_t size = group.size();
  for (std::int32_t origin = 0; origin < fabric_.ranks(); ++origin) {
    if (!starts_group(group, origin)) continue;
    for (std::int32_t i = 0; i < size; ++i) {
      const bool last = i + 1 == size;
      if (pattern == Pattern::chain && last) break;
      const std::int32_t from = place(member(group, origin, i));
      const std::int32_t to = place(member(group, origin, last ? 0 : i + 1));
      loads.add_flow(from, to);
      if (pattern == Pattern::chain) loads.add_flow(to, from);
    }
  }
  AffineCost cost = loads.worst();
  const bool far = loads.scale_out() && communication_.rank_step_scale_out > Seconds(0);
  cost.latency += far ? communication_.rank_step_scale_out : communication_.rank_step;
  return cost;
}

bool CollectiveModel::split_by_axis(const RankGroup& group, std::vector<RankGroup>& factors) const {
  for (std::int32_t i = 0; i < group.depth; ++i) {
    std::int32_t extent = group.levels[static_cast<std::size_t>(i)].extent;
    std::int32_t stride = group.levels[static_cast<std::size_t>(i)].stride;
    for (const Fabric::Axis& axis : fabric_.axes()) {
      const std::int32_t end = axis.stride * axis.size;
      if (extent == 1) break;
      if (stride >= end) continue;
      if (stride < axis.stride || stride % axis.stride != 0 || end % stride != 0) return false;
      const std::int32_t room = end / stride;
      const std::int32_t here = std::min(room, extent);
      if (extent % here != 0) return false;
      RankGroup factor;
      factor.push(here, stride);
      factors.push_back(factor);
      extent /= here;
      stride = end;
    }
    if (extent != 1) return false;
  }
  return true;
}

std::vector<AffineCost> CollectiveModel::sweeps(const RankGroup& group, const LinkCosts& links) const {
  const double n = group.size();
  const AffineCost hop = step(group, Pattern::ring, links);
  std::vector<AffineCost> costs = {{(n - 1) * hop.latency, (n - 1) / n * hop.seconds_per_byte}};

  std::vector<RankGroup> factors;
  if (!split_by_axis(group, factors) || factors.size() < 2) return costs;
  AffineCost sum;
  double share = 1;  // of the buffer that is left when this axis has its turn
  for (const RankGroup& factor : factors) {
    const double extent = factor.size();
    const AffineCost one = step(factor, Pattern::ring, links);
    sum.latency += (extent - 1) * one.latency;
    sum.seconds_per_byte += share * (extent - 1) / extent * one.seconds_per_byte;
    share /= extent;
  }
  costs.push_back(sum);
  return costs;
}

CollectiveModel::GroupCosts CollectiveModel::analyse(const RankGroup& group) const {
  GroupCosts costs;
  if (group.size() == 1) return costs;
  costs.ring_pass = step(group, Pattern::ring, actual_);
  costs.chain_pass = step(group, Pattern::chain, actual_);
  const std::vector<AffineCost> healthy = sweeps(group, healthy_);
  const std::vector<AffineCost> actual = faulty_ ? sweeps(group, actual_) : healthy;
  for (std::size_t i = 0; i < healthy.size(); ++i) costs.sweeps.push_back({healthy[i], actual[i]});
  return costs;
}

Seconds CollectiveModel::price(CollectiveOp op, Bytes bytes, const GroupCosts& costs, double calls) const {
  const auto affine = [&](const AffineCost& cost) {
    return calls * (communication_.call + cost.latency) + Seconds(cost.seconds_per_byte * bytes.value());
  };
  if (op == CollectiveOp::ring_pass) return affine(costs.ring_pass);
  if (op == CollectiveOp::chain_pass) return affine(costs.chain_pass);
  const double repeats = op == CollectiveOp::all_reduce ? 2 : 1;
  const auto total = [&](const AffineCost& sweep) {
    return affine({repeats * sweep.latency, repeats * sweep.seconds_per_byte});
  };
  const Sweep* best = &costs.sweeps.front();
  for (const Sweep& sweep : costs.sweeps) {
    if (total(sweep.healthy) < total(best->healthy)) best = &sweep;
  }
  return total(best->actual);
}

Seconds CollectiveModel::time(CollectiveOp op, Bytes bytes, const RankGroup& group, double calls) {
  if (group.depth == 0 || bytes <= Bytes(0)) return Seconds(0);
  if (!memoise_) return price(op, bytes, analyse(group), calls);
  auto entry = memo_.find(group);
  if (entry == memo_.end()) entry = memo_.emplace(group, analyse(group)).first;
  return price(op, bytes, entry->second, calls);
}

}  // namespace shardscape::network
