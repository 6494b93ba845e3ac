// Finds the least of some numbers that change one by one, by a tree of winners. A change takes time logarithmic in
// their number, a look-up none. Of equal numbers the first wins.
#pragma once

#include <bit>
#include <cstddef>
#include <limits>
#include <vector>

namespace shardscape::serving {

template <class T>
class Least {
 public:
  /// `count` > 0 numbers, all with the same value. `last`: larger than any number that competes.
  Least(std::size_t count, T value, T last = none()) : leaves_(std::bit_ceil(count)), nodes_(2 * leaves_) {
    for (std::size_t i = 0; i < leaves_; ++i) nodes_[leaves_ + i] = {i < count ? value : last, i};
    for (std::size_t node = leaves_ - 1; node > 0; --node) nodes_[node] = winner_below(node);
  }

  /// A value larger than any number that competes.
  static constexpr T none() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }

  [[nodiscard]] T operator[](std::size_t i) const { return nodes_[leaves_ + i].value; }
  [[nodiscard]] std::size_t index() const { return nodes_[1].index; }
  [[nodiscard]] T value() const { return nodes_[1].value; }

  void set(std::size_t i, T value) {
    std::size_t node = leaves_ + i;
    if (nodes_[node].value == value) return;
    nodes_[node].value = value;
    while (node > 1) {
      node /= 2;
      const Node winner = winner_below(node);
      const bool same = winner.index == nodes_[node].index && winner.value == nodes_[node].value;
      nodes_[node] = winner;
      if (same) return;
    }
  }

 private:
  /// The winner below a node; at a leaf the number itself.
  struct Node {
    T value{};
    std::size_t index = 0;
  };
  [[nodiscard]] const Node& winner_below(std::size_t node) const {
    const Node& left = nodes_[2 * node];
    const Node& right = nodes_[2 * node + 1];
    return right.value < left.value ? right : left;
  }

  std::size_t leaves_;  ///< number of leaves, a power of two
  std::vector<Node>
      nodes_;  ///< the root is 1, the children of n are 2 n and 2 n + 1, the last nodes are the numbers
};

}  // namespace shardscape::serving
