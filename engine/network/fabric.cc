#include "engine/network/fabric.h"

#include "engine/base/check.h"

namespace shardscape::network {

namespace {

std::int32_t links_in_line(DimensionKind kind, std::int32_t size) {
  switch (kind) {
    case DimensionKind::ring:
    case DimensionKind::torus:
      return size == 2 ? 2 : 2 * size;  // a ring of two has one pair of links
    case DimensionKind::mesh:
      return 2 * (size - 1);
    case DimensionKind::fully_connected:
      return size * (size - 1);
    case DimensionKind::switched:
      return 2 * size;
  }
  return 0;
}

/// The rank with coordinate 0 of a line; lines are numbered by their lowest rank.
std::int32_t line_origin(const Fabric::Axis& axis, std::int32_t line) {
  return line / axis.stride * axis.stride * axis.size + line % axis.stride;
}

}  // namespace

Fabric::Fabric(const FabricSpec& spec) : spec_(spec), ranks_(static_cast<std::int32_t>(spec.size())) {
  vertices_ = ranks_;
  std::int32_t stride = 1;
  for (std::size_t d = 0; d < spec_.dimensions.size(); ++d) {
    const DimensionSpec& dimension = spec_.dimensions[d];
    for (const std::int64_t extent : dimension.shape) {
      const auto size = static_cast<std::int32_t>(extent);
      if (size > 1) add_axis(static_cast<std::int32_t>(d), dimension.kind, size, stride);
      stride *= size;
    }
  }
}

void Fabric::add_axis(std::int32_t dimension, DimensionKind kind, std::int32_t size, std::int32_t stride) {
  const DimensionKind line_kind = kind == DimensionKind::torus ? DimensionKind::ring : kind;
  const Axis axis{dimension,
                  line_kind,
                  size,
                  stride,
                  static_cast<std::int32_t>(links_.size()),
                  vertices_,
                  links_in_line(line_kind, size)};
  axes_.push_back(axis);
  const std::int32_t lines = ranks_ / size;
  if (line_kind == DimensionKind::switched) vertices_ += lines;
  for (std::int32_t line = 0; line < lines; ++line) add_line(axis, line);
}

void Fabric::add_line(const Axis& axis, std::int32_t line) {
  const DimensionSpec& dimension = spec_.dimensions[static_cast<std::size_t>(axis.dimension)];
  const std::int32_t origin = line_origin(axis, line);
  const auto rank = [&](std::int32_t i) { return origin + i * axis.stride; };
  const auto add_pair = [&](std::int32_t a, std::int32_t b) {
    links_.push_back({a, b, axis.dimension, dimension.bandwidth, dimension.latency});
    links_.push_back({b, a, axis.dimension, dimension.bandwidth, dimension.latency});
  };
  switch (axis.kind) {
    case DimensionKind::ring:
    case DimensionKind::torus: {
      const std::int32_t pairs = axis.size == 2 ? 1 : axis.size;
      for (std::int32_t i = 0; i < pairs; ++i) add_pair(rank(i), rank((i + 1) % axis.size));
      break;
    }
    case DimensionKind::mesh:
      for (std::int32_t i = 0; i + 1 < axis.size; ++i) add_pair(rank(i), rank(i + 1));
      break;
    case DimensionKind::fully_connected:
      for (std::int32_t i = 0; i < axis.size; ++i) {
        for (std::int32_t j = i + 1; j < axis.size; ++j) add_pair(rank(i), rank(j));
      }
      break;
    case DimensionKind::switched:
      for (std::int32_t i = 0; i < axis.size; ++i) add_pair(rank(i), axis.first_switch + line);
      break;
  }
}

void Fabric::append_route(std::int32_t source, std::int32_t destination,
                          std::vector<std::int32_t>& path) const {
  SHARDSCAPE_CHECK(source >= 0 && source < ranks_ && destination >= 0 && destination < ranks_, source,
                   destination);
  std::int32_t at = source;
  for (const Axis& axis : axes_) {
    const std::int32_t from = at / axis.stride % axis.size;
    const std::int32_t to = destination / axis.stride % axis.size;
    if (from == to) continue;
    const std::int32_t line = at / (axis.stride * axis.size) * axis.stride + at % axis.stride;
    append_axis_route(axis, line, from, to, path);
    at += (to - from) * axis.stride;
  }
}

void Fabric::append_axis_route(const Axis& axis, std::int32_t line, std::int32_t from, std::int32_t to,
                               std::vector<std::int32_t>& path) const {
  const std::int32_t base = axis.first_link + line * axis.links_per_line;
  switch (axis.kind) {
    case DimensionKind::ring:
    case DimensionKind::torus: {
      if (axis.size == 2) {
        path.push_back(base + (from == 0 ? 0 : 1));
        return;
      }
      const std::int32_t forward = (to - from + axis.size) % axis.size;
      if (2 * forward <= axis.size) {
        for (std::int32_t i = from; i != to; i = (i + 1) % axis.size) path.push_back(base + 2 * i);
      } else {
        for (std::int32_t i = from; i != to; i = (i + axis.size - 1) % axis.size) {
          path.push_back(base + 2 * ((i + axis.size - 1) % axis.size) + 1);
        }
      }
      return;
    }
    case DimensionKind::mesh:
      for (std::int32_t i = from; i < to; ++i) path.push_back(base + 2 * i);
      for (std::int32_t i = from; i > to; --i) path.push_back(base + 2 * (i - 1) + 1);
      return;
    case DimensionKind::fully_connected: {
      const std::int32_t low = from < to ? from : to;
      const std::int32_t high = from < to ? to : from;
      // Pairs (i, j), i < j, are numbered row by row: row `low` starts after low * (2n - low - 1) / 2 pairs.
      const std::int32_t pair = low * (2 * axis.size - low - 1) / 2 + (high - low - 1);
      path.push_back(base + 2 * pair + (from < to ? 0 : 1));
      return;
    }
    case DimensionKind::switched:
      path.push_back(base + 2 * from);
      path.push_back(base + 2 * to + 1);
      return;
  }
}

std::string Fabric::vertex_name(std::int32_t vertex) const {
  if (vertex < ranks_) return std::to_string(vertex);
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis) {
    if (axis->kind == DimensionKind::switched && vertex >= axis->first_switch) {
      return "switch " + std::to_string(vertex - axis->first_switch);
    }
  }
  return "?";
}

std::string Fabric::link_name(std::int32_t link) const {
  const Link& l = links_.at(static_cast<std::size_t>(link));
  return spec_.dimensions[static_cast<std::size_t>(l.dimension)].name + ": " + vertex_name(l.source) +
         " -> " + vertex_name(l.destination);
}

}  // namespace shardscape::network
