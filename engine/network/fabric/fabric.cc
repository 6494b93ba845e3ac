// Builds the fabric from its specification: axes, the wiring of one line of each kind, and links and switches line by
// line; finds routes axis by axis, and names links and vertices.
#include "engine/network/fabric/fabric.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

/// The place of a rank on an axis: its line, and its lane there. GPU i of `stride` uses adapter i / sharing, and
/// adapter j is in rail j % rails; a line's endpoints are numbered by coordinate, then by adapter, then by GPU.
struct Place {
  std::int32_t line = 0;
  std::int32_t lane = 0;
};

Place place_of(const Fabric::Axis& axis, std::int32_t rank) {
  const std::int32_t inner = rank % axis.stride;
  const std::int32_t outer = rank / (axis.stride * axis.size);
  const std::int32_t adapter = inner / axis.sharing;
  return {outer * axis.rails + adapter % axis.rails,
          adapter / axis.rails * axis.sharing + inner % axis.sharing};
}

std::int32_t rank_at(const Fabric::Axis& axis, std::int32_t line, std::int32_t endpoint) {
  const std::int32_t coordinate = endpoint / axis.lanes;
  const std::int32_t lane = endpoint % axis.lanes;
  const std::int32_t adapter = lane / axis.sharing * axis.rails + line % axis.rails;
  const std::int32_t inner = adapter * axis.sharing + lane % axis.sharing;
  return (line / axis.rails * axis.size + coordinate) * axis.stride + inner;
}

WireRate rate_of(const DimensionSpec& dimension, std::int32_t stride) {
  BytesPerSecond bandwidth = dimension.bandwidth;
  const NodePorts ports = NodePorts::of(dimension, stride);
  if (dimension.basis == BandwidthBasis::gpu) {
    bandwidth *= static_cast<double>(ports.sharing);
    bandwidth /= static_cast<double>(dimension.links_per_rank().value());
  } else {
    bandwidth *= ports.width;
  }
  return {bandwidth, dimension.latency};
}

std::shared_ptr<const LineGraph> wire_line(const DimensionSpec& dimension, DimensionKind kind,
                                           const Fabric::Axis& axis) {
  const WireRate rate = rate_of(dimension, axis.stride);
  switch (kind) {
    case DimensionKind::ring:
    case DimensionKind::torus:
      return make_ring(axis.size, rate);
    case DimensionKind::mesh:
      return make_open_line(axis.size, rate);
    case DimensionKind::fully_connected:
      return make_full_mesh(axis.size, rate);
    case DimensionKind::switched:
      return make_crossbar(axis.size * axis.lanes, axis.sharing, rate);
    case DimensionKind::king_mesh:
      return make_king_mesh(dimension.shape, rate);
    case DimensionKind::hypercube:
      return make_hypercube(axis.size, rate);
    case DimensionKind::fat_tree: {
      const FatTreeSpec& tree = dimension.fat_tree;
      const double width = NodePorts::of(dimension, axis.stride).width;
      const WireRate uplink{tree.uplink_bandwidth ? *tree.uplink_bandwidth * width : rate.bandwidth,
                            tree.uplink_latency.value_or(rate.latency)};
      return make_fat_tree(tree, axis.size * axis.lanes, axis.sharing, rate, uplink);
    }
    case DimensionKind::dragonfly:
      return make_dragonfly(dimension.dragonfly, axis.size, rate);
    case DimensionKind::custom:
      return make_custom(dimension.custom, axis.size);
  }
  return nullptr;
}

}  // namespace

Fabric::Fabric(const FabricSpec& spec) : spec_(spec), ranks_(static_cast<std::int32_t>(spec.size())) {
  vertices_ = ranks_;
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < spec_.dimensions.size(); ++d) {
    const DimensionSpec& dimension = spec_.dimensions[d];
    const bool axis_by_axis = dimension.kind == DimensionKind::mesh || dimension.kind == DimensionKind::torus;
    const std::vector<std::int64_t> extents =
        axis_by_axis ? dimension.shape : std::vector<std::int64_t>{dimension.size()};
    for (const std::int64_t extent : extents) {
      const auto size = static_cast<std::int32_t>(extent);
      if (size > 1) add_axis(static_cast<std::int32_t>(d), dimension.kind, size, stride);
      stride *= size;
    }
  }
}

void Fabric::add_axis(std::int32_t dimension, DimensionKind kind, std::int32_t size, std::int32_t stride) {
  const DimensionSpec& spec = spec_.dimensions[static_cast<std::size_t>(dimension)];
  Axis axis;
  axis.dimension = dimension;
  axis.kind = kind == DimensionKind::torus ? DimensionKind::ring : kind;
  axis.size = size;
  axis.stride = stride;
  const NodePorts ports = NodePorts::of(spec, stride);
  axis.sharing = static_cast<std::int32_t>(ports.sharing);
  axis.rails = static_cast<std::int32_t>(ports.rails);
  axis.lanes = stride / axis.rails;
  axis.lines = ranks_ / size / axis.lanes;
  std::shared_ptr<const LineGraph> wiring = wire_line(spec, kind, axis);
  axis.first_link = static_cast<std::int32_t>(links_.size());
  axis.links_per_line = static_cast<std::int32_t>(wiring->wires().size());
  axis.first_switch = vertices_;
  vertices_ += axis.lines * wiring->switches();
  axes_.push_back(axis);
  wiring_.push_back(std::move(wiring));
  seats_.reserve(seats_.size() + static_cast<std::size_t>(ranks_));
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    const std::int32_t coordinate = rank / stride % size;
    const Place place = place_of(axis, rank);
    seats_.push_back({coordinate, coordinate * axis.lanes + place.lane,
                      axis.first_link + place.line * axis.links_per_line});
  }
  links_.reserve(links_.size() +
                 static_cast<std::size_t>(axis.lines) * static_cast<std::size_t>(axis.links_per_line));
  for (std::int32_t line = 0; line < axis.lines; ++line) add_line(axes_.size() - 1, line);
}

void Fabric::add_line(std::size_t index, std::int32_t line) {
  const Axis& axis = axes_[index];
  const LineGraph& wiring = *wiring_[index];
  const std::int32_t endpoints = wiring.endpoints();
  const std::int32_t first_switch = axis.first_switch + line * wiring.switches();
  const auto vertex = [&](std::int32_t local) {
    return local < endpoints ? rank_at(axis, line, local) : first_switch + local - endpoints;
  };
  for (const Wire& wire : wiring.wires()) {
    links_.push_back({vertex(wire.source), vertex(wire.destination), axis.dimension, wire.rate.bandwidth,
                      wire.rate.latency, wire.strands});
  }
}

void Fabric::append_route(std::int32_t source, std::int32_t destination,
                          std::vector<std::int32_t>& path) const {
  SHARDSCAPE_CHECK(source >= 0 && source < ranks_ && destination >= 0 && destination < ranks_, source,
                   destination);
  std::int32_t at = source;
  for (std::size_t i = 0; i < axes_.size(); ++i) at = append_leg(i, at, destination, path);
}

std::int32_t Fabric::append_leg(std::size_t index, std::int32_t from, std::int32_t destination,
                                std::vector<std::int32_t>& path) const {
  const Axis& axis = axes_[index];
  const Seat* const seats = seats_.data() + index * static_cast<std::size_t>(ranks_);
  const Seat& seat = seats[from];
  const std::int32_t steps = seats[destination].coordinate - seat.coordinate;
  if (steps == 0) return from;
  wiring_[index]->append_route(seat.endpoint, seat.endpoint + steps * axis.lanes, seat.first_link, path);
  return from + steps * axis.stride;
}

std::int32_t Fabric::find_link(std::int32_t source, std::int32_t destination) const {
  const auto found = std::ranges::find_if(
      links_, [&](const Link& l) { return l.source == source && l.destination == destination; });
  return found == links_.end() ? -1 : static_cast<std::int32_t>(found - links_.begin());
}

std::int32_t Fabric::end_of_dimension(std::int32_t link) const {
  const std::int32_t dimension = links_[static_cast<std::size_t>(link)].dimension;
  std::int32_t end = 0;
  for (const Axis& axis : axes_)
    if (axis.dimension == dimension) end = axis.first_link + axis.lines * axis.links_per_line;
  return end;
}

std::int32_t Fabric::reverse_of(std::int32_t link) const {
  SHARDSCAPE_CHECK(link >= 0 && static_cast<std::size_t>(link) < links_.size(), link);
  std::size_t index = axes_.size() - 1;
  while (axes_[index].first_link > link) --index;
  const Axis& axis = axes_[index];
  const std::int32_t wire = (link - axis.first_link) % axis.links_per_line;
  const std::int32_t reverse = wiring_[index]->wires()[static_cast<std::size_t>(wire)].reverse;
  return reverse < 0 ? -1 : link - wire + reverse;
}

std::string Fabric::vertex_name(std::int32_t vertex) const {
  if (vertex < ranks_) return std::to_string(vertex);
  for (std::size_t i = axes_.size(); i-- > 0;) {
    const std::int32_t switches = wiring_[i]->switches();
    if (switches == 0 || vertex < axes_[i].first_switch || vertex >= vertices_) continue;
    const std::int32_t number = vertex - axes_[i].first_switch;
    const std::string name = wiring_[i]->switch_name(number % switches);
    if (name.empty()) return fmt::format("switch {}", number);
    return axes_[i].lines == 1 ? name : fmt::format("{}.{}", number / switches, name);
  }
  return "?";
}

std::string Fabric::link_name(std::int32_t link) const {
  const Link& l = links_.at(static_cast<std::size_t>(link));
  return spec_.dimensions[static_cast<std::size_t>(l.dimension)].name + ": " + vertex_name(l.source) +
         " -> " + vertex_name(l.destination);
}

}  // namespace shardscape::network
