// A queue in a ring buffer that is kept when it is emptied: no allocation in steady state.
#pragma once

#include <cstddef>
#include <vector>

namespace shardscape::execution {

template <class T>
class Fifo {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void clear() { first_ = size_ = 0; }
  T& front() { return ring_[first_]; }
  [[nodiscard]] T& operator[](std::size_t i) { return ring_[(first_ + i) & (ring_.size() - 1)]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return ring_[(first_ + i) & (ring_.size() - 1)]; }

  void push(const T& value) {
    if (size_ == ring_.size()) grow();
    ring_[(first_ + size_++) & (ring_.size() - 1)] = value;
  }
  T pop() {
    const T value = ring_[first_];
    first_ = (first_ + 1) & (ring_.size() - 1);
    --size_;
    return value;
  }

 private:
  void grow() {
    std::vector<T> larger(ring_.empty() ? 4 : 2 * ring_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    ring_.swap(larger);
    first_ = 0;
  }
  std::vector<T> ring_;  ///< its size is a power of two
  std::size_t first_ = 0, size_ = 0;
};

}  // namespace shardscape::execution
