// Sizes and ports of the dimensions of a fabric, and fabrics made from a template: the open dimension is sized for the
// number of GPUs, and settings that have no effect at that size are dropped.
#include "engine/spec/fabric_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardscape {

namespace {

constexpr std::int64_t kManyRanks = std::int64_t{1} << 40;

/// Product of non-negative numbers that stops growing at kManyRanks.
std::int64_t capped_product(std::int64_t a, std::int64_t b) {
  if (a != 0 && b > kManyRanks / a) return kManyRanks;
  return a * b;
}

bool may_be_partly_used(DimensionKind kind) {
  return kind == DimensionKind::switched || kind == DimensionKind::fully_connected ||
         kind == DimensionKind::fat_tree;
}

void drop_trivial_dimensions(FabricSpec& fabric) {
  std::erase_if(fabric.dimensions, [](const DimensionSpec& d) { return d.size() == 1; });
}

/// Number of endpoints of one tree of a dimension: the adapters of a rail.
std::int64_t tree_endpoints(const DimensionSpec& dimension, std::int64_t gpus_per_node) {
  const NodePorts ports = NodePorts::of(dimension, gpus_per_node);
  return capped_product(dimension.size(), gpus_per_node / ports.sharing / ports.rails);
}

/// Drops what a dimension of the chosen size does not need, so that every setting that is left has an effect.
void fit_to_size(DimensionSpec& dimension, std::int64_t gpus_per_node) {
  if (dimension.kind == DimensionKind::fat_tree) {
    FatTreeSpec& tree = dimension.fat_tree;
    const std::int64_t endpoints = tree_endpoints(dimension, gpus_per_node);
    if (tree.levels > 1 && endpoints <= tree.capacity(tree.levels)) tree.levels = tree.levels_for(endpoints);
    if (tree.levels == 1) {
      FatTreeSpec leaf;
      leaf.levels = 1;
      leaf.radix = tree.radix;
      tree = leaf;
    }
  }
  if (dimension.kind == DimensionKind::dragonfly) {
    DragonflySpec& dragonfly = dimension.dragonfly;
    if (dimension.size() == dragonfly.routers_per_group * dragonfly.hosts_per_router) {
      dragonfly.global_bandwidth.reset();
      dragonfly.global_latency.reset();
    }
  }
}

/// The most GPUs per switch, in whole trays, that divide `gpus`; 0 where no such number exists.
std::int64_t even_share(const DimensionSpec& dimension, std::int64_t gpus) {
  const std::int64_t tray = dimension.gpus_per_tray.value_or(0);
  if (tray < 1) return 0;
  for (std::int64_t share = dimension.size() / tray * tray; share > 0; share -= tray) {
    if (gpus % share == 0) return share;
  }
  return 0;
}

}  // namespace

std::optional<std::int64_t> FatTreeSpec::leaf_ports_down() const {
  if (levels == 1) return radix;
  const double most = static_cast<double>(radix) / (1 + oversubscription);
  for (auto up = static_cast<std::int64_t>(most * (1 + 1e-9)); up >= 1; --up) {
    if (const auto down = whole_ports_down(up)) return down;
  }
  return std::nullopt;
}

std::optional<std::int64_t> FatTreeSpec::whole_ports_down(std::int64_t up) const {
  const double down = oversubscription * static_cast<double>(up);
  if (!(std::abs(down - std::round(down)) < 1e-9 * down)) return std::nullopt;
  return std::llround(down);
}

std::int64_t FatTreeSpec::leaf_ports_up() const {
  const std::int64_t down = leaf_ports_down().value();
  return levels == 1 ? 0 : std::llround(static_cast<double>(down) / oversubscription);
}

std::int64_t FatTreeSpec::capacity(std::int64_t with_levels) const {
  std::int64_t product = leaf_ports_down().value();
  if (with_levels == 1) return product;
  for (std::int64_t level = 2; level < with_levels; ++level) product = capped_product(product, radix / 2);
  return capped_product(product, radix);
}

std::int64_t FatTreeSpec::levels_for(std::int64_t endpoints) const {
  std::int64_t needed = 1;
  while (needed < levels && capacity(needed) < endpoints) ++needed;
  return needed;
}

std::int64_t DimensionSpec::size() const {
  std::int64_t product = 1;
  for (const std::int64_t extent : shape) {
    product = capped_product(product, std::max<std::int64_t>(extent, 0));
  }
  return product;
}

bool DimensionSpec::shaped() const {
  return kind == DimensionKind::mesh || kind == DimensionKind::torus || kind == DimensionKind::king_mesh;
}

std::optional<std::int64_t> DimensionSpec::links_per_rank() const {
  switch (kind) {
    case DimensionKind::ring:
    case DimensionKind::torus: {
      std::int64_t links = 0;
      for (const std::int64_t extent : shape) links += extent == 1 ? 0 : extent == 2 ? 1 : 2;
      return links;
    }
    case DimensionKind::fully_connected:
      return size() - 1;
    case DimensionKind::hypercube:
      return std::bit_width(static_cast<std::uint64_t>(size())) - 1;
    case DimensionKind::switched:
    case DimensionKind::fat_tree:
    case DimensionKind::dragonfly:
      return 1;
    case DimensionKind::mesh:
    case DimensionKind::king_mesh:
    case DimensionKind::custom:
      return std::nullopt;
  }
  return std::nullopt;
}

NodePorts NodePorts::of(const DimensionSpec& dimension, std::int64_t gpus) {
  NodePorts ports;
  std::int64_t adapters = gpus;
  if (dimension.nics_per_node) {
    const std::int64_t nics = *dimension.nics_per_node;
    if (nics < gpus) adapters = nics;
    if (nics > gpus) ports.width = static_cast<double>(nics) / static_cast<double>(gpus);
  }
  ports.sharing = gpus / adapters;
  ports.rails = dimension.rails.value_or(adapters);
  return ports;
}

std::int64_t FabricSpec::size() const {
  std::int64_t product = 1;
  for (const DimensionSpec& dimension : dimensions) product = capped_product(product, dimension.size());
  return product;
}

bool FabricTemplate::open() const {
  if (fabric.dimensions.empty()) return false;
  const std::vector<std::int64_t>& shape = fabric.dimensions.back().shape;
  return shape.size() == 1 && shape.front() == kFill;
}

FabricTemplate FabricTemplate::with_domain(std::int64_t gpus_per_domain, Problems& problems) const {
  FabricTemplate result = *this;
  if (!open() || fabric.dimensions.size() < 2 || fabric.dimensions.front().kind != DimensionKind::switched) {
    problems.add("gpus_per_domain", "has no effect on cluster " + fabric.name +
                                        ", which has no innermost switch below a dimension that fills");
    return result;
  }
  DimensionSpec& domain = result.fabric.dimensions.front();
  const std::int64_t size = domain.size(), tray = domain.gpus_per_tray.value_or(1);
  if (gpus_per_domain < 1 || gpus_per_domain > size || gpus_per_domain % tray != 0) {
    problems.add("gpus_per_domain", fmt::format("is {}, but a {} of cluster {} has {} GPUs in trays of {}",
                                                gpus_per_domain, domain.name, fabric.name, size, tray));
    return result;
  }
  domain.shape = {gpus_per_domain};
  domain.gpus_per_tray.reset();
  return result;
}

FabricSpec FabricTemplate::instantiate(std::int64_t gpus, Problems& problems) const {
  FabricSpec result = fabric;
  if (gpus < 1) {
    problems.add("gpus", fmt::format("is {}, but must be at least 1", gpus));
    return result;
  }
  if (!open()) {
    problems.require(gpus == fabric.size(), "gpus",
                     fmt::format("is {}, but cluster {} has exactly {}", gpus, fabric.name, fabric.size()));
    drop_trivial_dimensions(result);
    return result;
  }
  DimensionSpec& outermost = result.dimensions.back();
  outermost.shape = {1};
  const std::int64_t unit = result.size();
  if (unit < 1) {  // an inner dimension has no ranks: nothing to divide by
    const Problems broken = fabric.validate();
    for (const Problem& problem : broken.list()) problems.add(problem.field, problem.message);
    return result;
  }
  DimensionSpec& innermost = result.dimensions.front();
  const std::int64_t share = result.dimensions.size() == 2 && gpus > unit ? even_share(innermost, gpus) : 0;
  innermost.gpus_per_tray.reset();
  if (gpus % unit == 0) {
    outermost.shape = {gpus / unit};
    fit_to_size(outermost, unit);
  } else if (result.dimensions.size() == 2 && gpus < unit && may_be_partly_used(innermost.kind)) {
    innermost.shape = {gpus};
    fit_to_size(innermost, 1);
  } else if (share > 0) {
    innermost.shape = {share};
    outermost.shape = {gpus / share};
    fit_to_size(outermost, share);
  } else {
    problems.add("gpus", fmt::format("is {}, but cluster {} grows in units of {}", gpus, fabric.name, unit));
    return result;
  }
  drop_trivial_dimensions(result);
  if (result.dimensions.empty()) return result;
  const Problems misfits = result.validate();
  for (const Problem& problem : misfits.list()) {
    problems.add("gpus", fmt::format("is {}, which does not fit cluster {}: {}: {}", gpus, fabric.name,
                                     problem.field, problem.message));
  }
  return result;
}

}  // namespace shardscape
