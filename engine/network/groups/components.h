// Finds groups that are connected by shared links.
#pragma once

#include <numeric>
#include <vector>

namespace shardscape::network {

/// Disjoint sets of the numbers 0 .. n-1.
class UnionFind {
 public:
  explicit UnionFind(std::size_t n) : parent_(n) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(b)] = root(a); }
  /// The sets, in the order of their first members; members ascend.
  std::vector<std::vector<std::size_t>> sets() {
    std::vector<std::vector<std::size_t>> result;
    std::vector<std::size_t> number(parent_.size(), parent_.size());
    for (std::size_t i = 0; i < parent_.size(); ++i) {
      std::size_t& set = number[root(i)];
      if (set == parent_.size()) {
        set = result.size();
        result.emplace_back();
      }
      result[set].push_back(i);
    }
    return result;
  }

 private:
  std::vector<std::size_t> parent_;
};

}  // namespace shardscape::network
