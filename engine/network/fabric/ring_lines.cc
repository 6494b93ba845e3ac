// Ring and open line. Pair i joins endpoints i and i+1 (on a ring modulo the size); a ring of two has one
// pair.
#include "engine/network/fabric/line_graph.h"

namespace shardscape::network {

namespace {

class Ring : public LineGraph {
 public:
  Ring(std::int32_t size, WireRate rate) : LineGraph(size, 0), size_(size) {
    const std::int32_t pairs = size == 2 ? 1 : size;
    for (std::int32_t i = 0; i < pairs; ++i) add_pair(i, (i + 1) % size, rate);
  }

  /// Goes the shorter way round; if both are equally long, in the + direction.
  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    if (size_ == 2) {
      path.push_back(base + from);
      return;
    }
    const std::int32_t forward = (to - from + size_) % size_;
    if (2 * forward <= size_) {
      for (std::int32_t i = from; i != to; i = i + 1 == size_ ? 0 : i + 1) path.push_back(base + 2 * i);
      return;
    }
    for (std::int32_t i = from; i != to;) {
      i = i == 0 ? size_ - 1 : i - 1;
      path.push_back(base + 2 * i + 1);
    }
  }

  /// Within half a ring, the shorter way stays inside it.
  [[nodiscard]] bool alike_by_blocks(std::int32_t endpoints) const override { return 2 * endpoints <= size_; }

 private:
  std::int32_t size_;
};

class OpenLine : public LineGraph {
 public:
  OpenLine(std::int32_t size, WireRate rate) : LineGraph(size, 0) {
    for (std::int32_t i = 0; i + 1 < size; ++i) add_pair(i, i + 1, rate);
  }

  void append_route(std::int32_t from, std::int32_t to, std::int32_t base,
                    std::vector<std::int32_t>& path) const override {
    for (std::int32_t i = from; i < to; ++i) path.push_back(base + 2 * i);
    for (std::int32_t i = from; i > to; --i) path.push_back(base + 2 * (i - 1) + 1);
  }
  [[nodiscard]] bool alike_by_blocks(std::int32_t /*endpoints*/) const override { return true; }
};

}  // namespace

std::unique_ptr<LineGraph> make_ring(std::int32_t size, WireRate rate) {
  return std::make_unique<Ring>(size, rate);
}

std::unique_ptr<LineGraph> make_open_line(std::int32_t size, WireRate rate) {
  return std::make_unique<OpenLine>(size, rate);
}

}  // namespace shardscape::network
