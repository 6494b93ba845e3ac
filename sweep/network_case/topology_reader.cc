// Reads the `topology` and the `faults` of a case, and bounds the size of a fabric before it is built.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/network/fabric/faulty_fabric.h"
#include "engine/spec/ranges.h"
#include "sweep/network_case/readers.h"

namespace shardscape::network_case {

namespace {

constexpr std::array<std::pair<std::string_view, DimensionKind>, 7> kKinds = {
    {{"ring", DimensionKind::ring},
     {"fullyconnected", DimensionKind::fully_connected},
     {"switch", DimensionKind::switched},
     {"mesh", DimensionKind::mesh},
     {"torus", DimensionKind::torus},
     {"kingmesh", DimensionKind::king_mesh},
     {"hypercube", DimensionKind::hypercube}}};

std::optional<std::vector<std::int64_t>> read_extents(const JsonReader& dimension) {
  std::vector<std::int64_t> shape;
  const auto shape_value = dimension.optional_member("shape");
  const auto size_value = dimension.optional_member("size");
  if (!shape_value && !size_value) {
    dimension.fail("needs a size, or a shape (a list of extents)");
    return std::nullopt;
  }
  bool sound = true;
  const auto add = [&](const JsonReader& value) {
    const auto extent = value.integer();
    if (extent && *extent < 1) value.fail(fmt::format("must be at least 1, not {}", *extent));
    sound &= extent && *extent >= 1;
    if (extent) shape.push_back(*extent);
  };
  if (shape_value) {
    const auto list = shape_value->elements();
    if (list && list->empty()) shape_value->fail("needs at least one extent");
    if (!list || list->empty()) return std::nullopt;
    for (const JsonReader& extent : *list) add(extent);
  }
  const std::size_t extents = shape.size();
  if (size_value) add(*size_value);
  if (!sound) return std::nullopt;
  if (!shape_value || !size_value) return shape;

  const std::int64_t size = shape.back();
  shape.resize(extents);
  DimensionSpec dimension_of_shape;
  dimension_of_shape.shape = shape;
  if (dimension_of_shape.size() == size) return shape;
  shape_value->fail(fmt::format("multiplies to {}, but the size is {}", dimension_of_shape.size(), size));
  return std::nullopt;
}

void check_shape(const JsonReader& reader, const DimensionSpec& dimension) {
  if (dimension.kind == DimensionKind::hypercube &&
      !std::has_single_bit(static_cast<std::uint64_t>(dimension.size()))) {
    reader.fail(fmt::format("a hypercube's size is a power of two, not {}", dimension.size()));
  }
  if (!dimension.shaped() && dimension.shape.size() != 1) {
    reader.fail("only mesh, torus and kingmesh take several extents");
  }
}

DimensionSpec read_dimension(const JsonReader& reader, std::size_t index) {
  static constexpr std::string_view kReduction = "in_network_reduction";
  DimensionSpec dimension;
  dimension.name = fmt::format("dim{}", index);
  if (!reader.object({"type", "size", "shape", "bw", "lat", "name", kReduction}) && !reader.has("type")) {
    return dimension;
  }
  if (const auto name = reader.optional_member("name")) {
    if (const auto text = name->string()) dimension.name = *text;
    if (dimension.name.empty()) name->fail("must not be empty");
  }
  const auto type = reader.member("type");
  const auto kind = type ? read_name(*type, kKinds, "type") : std::nullopt;
  if (kind) dimension.kind = *kind;
  if (auto shape = read_extents(reader)) {
    dimension.shape = std::move(*shape);
    if (kind) check_shape(reader, dimension);
  }
  if (const auto bandwidth = reader.member("bw")) {
    dimension.bandwidth = BytesPerSecond(bandwidth->within(ranges::kBandwidth).value_or(1));
  }
  if (const auto latency = reader.member("lat")) {
    dimension.latency = Seconds(latency->within(ranges::kTime).value_or(0));
  }
  if (const auto reduces = reader.optional_member(kReduction)) {
    dimension.in_network_reduction = reduces->boolean().value_or(false);
    if (kind && *kind != DimensionKind::switched) reduces->fail("is for dimensions of type switch only");
  }
  return dimension;
}

/// An upper bound of the number of directed links.
double link_bound(const FabricSpec& spec) {
  double per_rank = 0;
  for (const DimensionSpec& dimension : spec.dimensions) {
    double neighbours = 1;
    if (dimension.kind == DimensionKind::king_mesh) {
      for (const std::int64_t extent : dimension.shape) neighbours *= extent == 1 ? 1 : 3;
    } else if (dimension.kind == DimensionKind::mesh) {
      neighbours =
          2 * static_cast<double>(std::ranges::count_if(dimension.shape, [](auto e) { return e > 1; }));
    } else {
      neighbours = 2 * static_cast<double>(dimension.links_per_rank().value_or(1));
    }
    per_rank += neighbours;
  }
  return per_rank * static_cast<double>(spec.size());
}

/// Adds the problems that the engine's own rules find beyond those of this reader.
void check_spec(const FabricSpec& spec, Problems& problems) {
  const Problems found = spec.validate();
  for (const Problem& problem : found.list()) {
    const std::string prefix = "dimensions";
    const bool dimension = problem.field.starts_with(prefix);
    problems.add("topology." + (dimension ? "dims" + problem.field.substr(prefix.size()) : problem.field),
                 problem.message);
  }
}

enum class LinkState { derate, remove, delay };
constexpr std::array<std::pair<std::string_view, LinkState>, 3> kLinkStates = {
    {{"derate", LinkState::derate}, {"remove", LinkState::remove}, {"delay", LinkState::delay}}};

/// Finds the directed link from a to b; -1, with a problem noted, where there is none.
std::int32_t read_link(const JsonReader& fault, const network::Fabric& fabric) {
  const auto a_value = fault.member("a"), b_value = fault.member("b");
  const auto a = a_value ? a_value->integer() : std::nullopt;
  const auto b = b_value ? b_value->integer() : std::nullopt;
  if (!a || !b) return -1;
  const std::int32_t link = fabric.find_link(*a, *b);
  if (link >= 0) return link;
  std::string neighbours;
  for (const network::Link& wire : fabric.links()) {
    if (wire.source != *a) continue;
    neighbours += fmt::format("{}{}", neighbours.empty() ? "" : ", ", wire.destination);
    if (neighbours.size() > 80) {
      neighbours += ", ...";
      break;
    }
  }
  fault.fail(fmt::format("there is no link from {} to {}; {}", *a, *b,
                         neighbours.empty() ? fmt::format("vertices are 0 .. {}", fabric.vertices() - 1)
                                            : fmt::format("links of {} lead to {}", *a, neighbours)));
  return -1;
}

void read_fault(const JsonReader& reader, const network::Fabric& fabric, FaultSet& faults) {
  if (!reader.object({"kind", "a", "b", "both", "factor", "lat"}) && !reader.has("kind")) return;
  const auto kind_value = reader.member("kind");
  const auto kind = kind_value ? read_name(*kind_value, kLinkStates, "kind") : std::nullopt;
  LinkFault fault;
  fault.link = read_link(reader, fabric);
  bool both = true;
  if (const auto value = reader.optional_member("both")) both = value->boolean().value_or(true);
  const auto has_no_effect = [&](std::string_view key) {
    if (const auto value = reader.optional_member(key)) value->fail("has no effect on a fault of this kind");
  };
  if (kind == LinkState::derate) {
    const auto factor = reader.member("factor");
    fault.derate = factor ? factor->within(ranges::kShare).value_or(1) : 1;
  } else if (kind) {
    has_no_effect("factor");
  }
  if (kind == LinkState::delay) {
    const auto latency = reader.member("lat");
    fault.added_latency = Seconds(latency ? latency->within(ranges::kPositiveTime).value_or(0) : 0);
  } else if (kind) {
    has_no_effect("lat");
  }
  fault.removed = kind == LinkState::remove;
  if (kind && fault.link >= 0 && fault.derate <= 1) {
    network::add_fault(faults, fabric, fault,
                       both ? network::FaultDirections::both : network::FaultDirections::one);
  }
}

}  // namespace

std::optional<FabricSpec> read_topology(const JsonReader& topology, const CaseLimits& limits,
                                        Problems& problems) {
  const std::size_t before = problems.list().size();
  (void)topology.object({"dims"});
  const auto dims = topology.member("dims");
  const auto list = dims ? dims->elements() : std::nullopt;
  if (!list) return std::nullopt;
  if (list->empty()) dims->fail("needs at least one dimension");
  FabricSpec spec;
  spec.name = "case";
  for (std::size_t d = 0; d < list->size(); ++d) spec.dimensions.push_back(read_dimension((*list)[d], d));
  if (problems.list().size() == before && spec.size() > limits.ranks) {
    dims->fail(fmt::format("have more than {} ranks, the most that are simulated", limits.ranks));
  }
  if (problems.list().size() == before && link_bound(spec) > static_cast<double>(limits.links)) {
    dims->fail(fmt::format("have more than {} links, the most that are simulated", limits.links));
  }
  if (problems.list().size() == before) check_spec(spec, problems);
  if (problems.list().size() != before) return std::nullopt;
  return spec;
}

FaultSet read_faults(const JsonReader& faults, const network::Fabric& fabric) {
  FaultSet set;
  if (const auto list = faults.elements()) {
    for (const JsonReader& fault : *list) read_fault(fault, fabric, set);
  }
  return set;
}

}  // namespace shardscape::network_case
