// The least of some numbers that change one by one: a tree of winners. A change costs the logarithm of their number, a
// look nothing. Of equal ones the first wins.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace shardscape::serving {

template <class T>
class Least {
 public:
  /// `count` > 0 numbers, all the same.
  Least(std::size_t count, T value)
      : leaves_(std::bit_ceil(count)), values_(leaves_, none()), winners_(leaves_, 0) {
    for (std::size_t i = 0; i < count; ++i) values_[i] = value;
    for (std::size_t node = leaves_ - 1; node > 0; --node) winners_[node] = play(node);
  }

  /// Larger than all that compete.
  static constexpr T none() {
    return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                                : std::numeric_limits<T>::max();
  }

  [[nodiscard]] T operator[](std::size_t i) const { return values_[i]; }
  [[nodiscard]] std::size_t index() const { return leaves_ > 1 ? static_cast<std::size_t>(winners_[1]) : 0; }
  [[nodiscard]] T value() const { return values_[index()]; }

  void set(std::size_t i, T value) {
    values_[i] = value;
    const auto changed = static_cast<std::int32_t>(i);
    for (std::size_t node = (leaves_ + i) / 2; node > 0; node /= 2) {
      const std::int32_t winner = play(node);
      // Another one than this won here before and does so now: nothing changes above.
      if (winner == winners_[node] && winner != changed) return;
      winners_[node] = winner;
    }
  }

 private:
  /// The winner of a node: its children are nodes, or places from leaves_ on.
  [[nodiscard]] std::int32_t play(std::size_t node) const {
    const std::int32_t left = entrant(2 * node), right = entrant(2 * node + 1);
    return values_[static_cast<std::size_t>(right)] < values_[static_cast<std::size_t>(left)] ? right : left;
  }
  [[nodiscard]] std::int32_t entrant(std::size_t node) const {
    return node >= leaves_ ? static_cast<std::int32_t>(node - leaves_) : winners_[node];
  }

  std::size_t leaves_;  ///< a power of two
  std::vector<T> values_;
  std::vector<std::int32_t> winners_;  ///< by node; the root is 1
};

}  // namespace shardscape::serving
