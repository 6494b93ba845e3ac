// King meshes and hypercubes: one line is the whole dimension. Pairs are numbered by their lower endpoint,
// then by the direction in which they leave it.
#include <bit>

#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

/// A king mesh. A move is a number in base 3, one digit per axis: 0, 1, 2 for -1, 0, +1; axis 0 is the lowest digit.
class KingMesh : public LineGraph {
 public:
  KingMesh(const std::vector<std::int64_t>& shape, WireRate rate) : LineGraph(product(shape), 0) {
    for (const std::int64_t extent : shape) shape_.push_back(static_cast<std::int32_t>(extent));
    for (std::size_t i = 0; i < shape_.size(); ++i) moves_ *= 3;
    wire_of_.assign(static_cast<std::size_t>(endpoints()) * static_cast<std::size_t>(moves_), -1);
    const std::int32_t still = moves_ / 2;
    for (std::int32_t at = 0; at < endpoints(); ++at) {
      for (std::int32_t move = still + 1; move < moves_; ++move) {
        const std::int32_t to = neighbour(at, move);
        if (to < 0) continue;
        slot(at, move) = static_cast<std::int32_t>(wires().size());
        slot(to, moves_ - 1 - move) = slot(at, move) + 1;
        add_pair(at, to, rate);
      }
    }
  }

  /// Steps along every axis that still differs: diagonal steps come first, straight ones last.
  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    for (std::int32_t at = from; at != to;) {
      std::int32_t move = 0, digit = 1, step = 0, stride = 1;
      std::int32_t here = at, there = to;
      for (const std::int32_t extent : shape_) {
        const std::int32_t a = here % extent, b = there % extent;
        const std::int32_t sign = a < b ? 1 : a > b ? -1 : 0;
        move += (sign + 1) * digit;
        step += sign * stride;
        digit *= 3;
        stride *= extent;
        here /= extent;
        there /= extent;
      }
      path.push_back(base + wire_of_[index(at, move)]);
      at += step;
    }
  }

 private:
  static std::int32_t product(const std::vector<std::int64_t>& shape) {
    std::int64_t result = 1;
    for (const std::int64_t extent : shape) result *= extent;
    return static_cast<std::int32_t>(result);
  }
  [[nodiscard]] std::size_t index(std::int32_t at, std::int32_t move) const {
    return static_cast<std::size_t>(at) * static_cast<std::size_t>(moves_) + static_cast<std::size_t>(move);
  }
  std::int32_t& slot(std::int32_t at, std::int32_t move) { return wire_of_[index(at, move)]; }

  /// The endpoint to which a move leads, or -1 where it leaves the grid.
  [[nodiscard]] std::int32_t neighbour(std::int32_t at, std::int32_t move) const {
    std::int32_t to = at, stride = 1;
    for (const std::int32_t extent : shape_) {
      const std::int32_t step = move % 3 - 1;
      const std::int32_t coordinate = at / stride % extent + step;
      if (coordinate < 0 || coordinate >= extent) return -1;
      to += step * stride;
      move /= 3;
      stride *= extent;
    }
    return to;
  }

  std::vector<std::int32_t> shape_;
  std::int32_t moves_ = 1;
  std::vector<std::int32_t> wire_of_;  ///< index: endpoint, move
};

class Hypercube : public LineGraph {
 public:
  Hypercube(std::int32_t size, WireRate rate) : LineGraph(size, 0) {
    first_pair_.reserve(static_cast<std::size_t>(size));
    for (std::int32_t at = 0; at < size; ++at) {
      first_pair_.push_back(static_cast<std::int32_t>(wires().size() / 2));
      for (std::int32_t bit = 1; bit < size; bit <<= 1) {
        if ((at & bit) == 0) add_pair(at, at | bit, rate);
      }
    }
  }

  /// Changes the lowest differing bit first.
  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    for (std::int32_t at = from; at != to;) {
      const std::int32_t differing = at ^ to;
      const std::int32_t bit = differing & -differing;
      const std::int32_t low = at & ~bit;
      const auto zeros_below = std::popcount(static_cast<std::uint32_t>(~low & (bit - 1)));
      const std::int32_t pair = first_pair_[static_cast<std::size_t>(low)] + zeros_below;
      path.push_back(base + 2 * pair + ((at & bit) == 0 ? 0 : 1));
      at ^= bit;
    }
  }
  /// A wire keeps all bits of its ends but one, and source and destination differ in that one: so the digits in which
  /// these agree are the same at every vertex on the way.
  [[nodiscard]] bool alike_by_digits() const override { return true; }

 private:
  std::vector<std::int32_t> first_pair_;  ///< index: endpoint; the first pair whose lower end it is
};

}  // namespace

std::unique_ptr<LineGraph> make_king_mesh(const std::vector<std::int64_t>& shape, WireRate rate) {
  return std::make_unique<KingMesh>(shape, rate);
}

std::unique_ptr<LineGraph> make_hypercube(std::int32_t size, WireRate rate) {
  return std::make_unique<Hypercube>(size, rate);
}

}  // namespace shardscape::network
