// The cache of prefixes by brute force. The oracle of engine/serving/live/prefix_cache.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "engine/serving/live/prefix_cache.h"

namespace shardscape::serving {

/// Every block by itself, with the owner of each looked up anew; the least recently used one is searched for.
class BlockList {
 public:
  BlockList(std::int64_t block, std::array<std::int64_t, kCacheTiers - 1> lower)
      : block_(block), room_{0, lower[0], lower[1]} {}

  using Name = std::pair<std::int64_t, std::int64_t>;  ///< owner, number
  struct Block {
    std::int64_t pins = 0, used = 0;
    std::size_t tier = 0;
  };
  [[nodiscard]] Name name(const PrefixPath& path, std::int64_t number) const {
    for (const PrefixPiece& piece : path.shared)
      if (number < piece.end / block_) return {path.offset + piece.owner, number};
    return {path.owner, number};
  }
  [[nodiscard]] std::int64_t blocks(const PrefixPath& path) const { return path.end / block_; }

  [[nodiscard]] TierBlocks match(const PrefixPath& path, std::int64_t most) const {
    TierBlocks found{};
    for (std::int64_t b = 0; b < std::min(most, blocks(path)); ++b) {
      const auto at = blocks_.find(name(path, b));
      if (at == blocks_.end()) break;
      ++found[at->second.tier];
    }
    return found;
  }
  /// Of the first blocks of a path, which are there: those that nobody has pinned.
  [[nodiscard]] std::int64_t unpinned(const PrefixPath& path, std::int64_t most) const {
    std::int64_t count = 0;
    for (std::int64_t b = 0; b < most; ++b) count += blocks_.at(name(path, b)).pins == 0 ? 1 : 0;
    return count;
  }
  void pin(const PrefixPath& path, std::int64_t from, std::int64_t to) {
    for (std::int64_t b = from; b < to; ++b) {
      Block& block = blocks_[name(path, b)];
      ++block.pins;
      block.tier = 0;
    }
  }
  void unpin(const PrefixPath& path, std::int64_t to) {
    ++count_;
    for (std::int64_t b = 0; b < to; ++b) {
      Block& block = blocks_[name(path, b)];
      --block.pins;
      block.used = count_;
    }
  }
  [[nodiscard]] std::int64_t count(bool pinned, std::size_t tier) const {
    return std::ranges::count_if(blocks_, [&](const auto& b) {
      return (b.second.pins > 0) == pinned && (pinned || b.second.tier == tier);
    });
  }
  void shrink(std::int64_t room) {
    if (count(false, 0) <= room) return;
    for (std::size_t tier = 0; tier < kCacheTiers; ++tier) {
      while (count(false, tier) > (tier == 0 ? room : room_[tier])) {
        auto first = blocks_.end();
        const auto key = [](const auto& b) {
          return std::tuple(b->second.used, -b->first.second, b->first.first);
        };
        for (auto b = blocks_.begin(); b != blocks_.end(); ++b)
          if (b->second.pins == 0 && b->second.tier == tier &&
              (first == blocks_.end() || key(b) < key(first)))
            first = b;
        if (tier + 1 < kCacheTiers && (room_[tier + 1] > 0 || (tier == 0 && room_[2] > 0))) {
          ++first->second.tier;
        } else {
          blocks_.erase(first);
        }
      }
    }
  }

 private:
  const std::int64_t block_;
  const TierBlocks room_;
  std::map<Name, Block> blocks_;
  std::int64_t count_ = 0;
};

}  // namespace shardscape::serving
