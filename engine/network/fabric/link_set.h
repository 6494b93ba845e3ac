// Sets of links of one fabric.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardscape::network {

/// A set of links as bits in chunks; chunks without any link take no memory, since what a group uses lies in a few
/// places of each dimension's links. O(1) for one link, O(links of the fabric / 512 + chunks) for two sets.
class LinkSet {
 public:
  void insert(std::int32_t link) { chunk(number(link))[word(link)] |= bit(link); }
  /// Inserts all links from `link` up to, but not, `end`.
  void insert(std::int32_t link, std::int32_t end) {
    while (link < end) {
      const std::int32_t next = std::min(end, (link / 64 + 1) * 64);
      const std::uint64_t below = next % 64 == 0 ? 0 : bit(next);  // 0 - 1: all bits
      chunk(number(link))[word(link)] |= (below - 1) & ~(bit(link) - 1);
      link = next;
    }
  }
  [[nodiscard]] bool contains(std::int32_t link) const {
    const Chunk* chunk = find(number(link));
    return chunk != nullptr && ((*chunk)[word(link)] & bit(link)) != 0;
  }
  void insert_all(const LinkSet& other) {
    if (empty()) {
      *this = other;
      return;
    }
    for (std::size_t i = 0; i < other.place_.size(); ++i) {
      const Chunk* theirs = other.find(i);
      if (theirs == nullptr) continue;
      Chunk& mine = chunk(i);
      for (std::size_t w = 0; w < kWords; ++w) mine[w] |= (*theirs)[w];
    }
  }
  [[nodiscard]] bool contains_all(const LinkSet& other) const {
    for (std::size_t i = 0; i < other.place_.size(); ++i) {
      const Chunk *theirs = other.find(i), *mine = find(i);
      if (theirs == nullptr) continue;
      if (mine == nullptr) return false;
      for (std::size_t w = 0; w < kWords; ++w) {
        if (((*theirs)[w] & ~(*mine)[w]) != 0) return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool intersects(const LinkSet& other) const {
    for (std::size_t i = 0; i < other.place_.size(); ++i) {
      const Chunk *theirs = other.find(i), *mine = find(i);
      if (theirs == nullptr || mine == nullptr) continue;
      for (std::size_t w = 0; w < kWords; ++w) {
        if (((*theirs)[w] & (*mine)[w]) != 0) return true;
      }
    }
    return false;
  }
  [[nodiscard]] bool empty() const { return chunks_.empty(); }
  /// Frees memory that was kept for more links.
  void shrink_to_fit() {
    place_.shrink_to_fit();
    chunks_.shrink_to_fit();
  }
  /// Calls visit(link) for each link, in ascending order.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::size_t i = 0; i < place_.size(); ++i) {
      const Chunk* chunk = find(i);
      for (std::size_t w = 0; chunk != nullptr && w < kWords; ++w) {
        for (std::uint64_t rest = (*chunk)[w]; rest != 0; rest &= rest - 1)
          visit(static_cast<std::int32_t>(64 * (kWords * i + w) +
                                          static_cast<std::size_t>(std::countr_zero(rest))));
      }
    }
  }

 private:
  static constexpr std::size_t kWords = 8;  ///< a chunk fills one cache line
  using Chunk = std::array<std::uint64_t, kWords>;

  static std::size_t number(std::int32_t link) { return static_cast<std::size_t>(link) / (64 * kWords); }
  static std::size_t word(std::int32_t link) { return static_cast<std::size_t>(link) / 64 % kWords; }
  static std::uint64_t bit(std::int32_t link) {
    return std::uint64_t{1} << (static_cast<unsigned>(link) % 64);
  }
  [[nodiscard]] const Chunk* find(std::size_t number) const {
    if (number >= place_.size() || place_[number] < 0) return nullptr;
    return &chunks_[static_cast<std::size_t>(place_[number])];
  }
  Chunk& chunk(std::size_t number) {
    if (number >= place_.size()) place_.resize(number + 1, -1);
    std::int32_t& place = place_[number];
    if (place < 0) {
      place = static_cast<std::int32_t>(chunks_.size());
      chunks_.push_back({});
    }
    return chunks_[static_cast<std::size_t>(place)];
  }

  std::vector<std::int32_t> place_;  ///< index: number of a chunk; its place in memory; -1: it has no link
  std::vector<Chunk> chunks_;
};

}  // namespace shardscape::network
