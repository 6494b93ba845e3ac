// Blocks of the key-value cache that requests left behind, for later ones that begin with the same tokens: what vLLM
// finds by hashes of blocks (automatic prefix caching) and SGLang in a radix tree (Zheng et al. 2024, section 3).
//
// The tokens of a request are a path of pieces (load/drawn_requests.h): up to some end they are those of an earlier
// request, its owner. A block is an owner and a number, and blocks that are used together are kept as one range, so
// that work goes with the number of pieces and not with that of tokens.
//
//   in use   blocks of running requests are pinned; a block that several use counts once
//   LRU      others go when room is needed: of those that were let go longest ago the deepest first, as vLLM's queue of
//            free blocks has it. A prefix is let go with what follows it or later, so what is left can be reached
//   tiers    blocks that leave the device go to the memory of the host and from there to a disk, each with room of its
//            own and the same order; a request that needs them brings them back
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <unordered_map>

#include "engine/serving/load/drawn_requests.h"

namespace shardscape::serving {

/// The device, the host, a disk.
inline constexpr std::size_t kCacheTiers = 3;
using TierBlocks = std::array<std::int64_t, kCacheTiers>;

class PrefixCache {
 public:
  /// `block`: tokens. `lower`: blocks that host and disk have room for.
  PrefixCache(std::int64_t block, std::array<std::int64_t, kCacheTiers - 1> lower)
      : block_(block), room_{0, lower[0], lower[1]} {}

  /// How many of the first `most` blocks of a path are there without a gap, by tier.
  [[nodiscard]] TierBlocks match(const PrefixPath& path, std::int64_t most) const;
  /// Of the first `blocks` of a path, which are there: those that nobody has pinned.
  [[nodiscard]] std::int64_t unpinned(const PrefixPath& path, std::int64_t blocks) const;
  /// Pins the first `blocks` of a path from `from` on; what is not on the device comes there.
  void pin(const PrefixPath& path, std::int64_t from, std::int64_t blocks);
  /// Lets go of them.
  void unpin(const PrefixPath& path, std::int64_t blocks);
  /// Blocks that are pinned, each once, and others on the device.
  [[nodiscard]] std::int64_t pinned() const { return pinned_; }
  [[nodiscard]] std::int64_t idle() const { return idle_[0]; }
  /// Takes blocks off the device until no more than `room` idle ones are left.
  void shrink(std::int64_t room);

 private:
  struct Range {
    std::int64_t end = 0, pins = 0, used = 0;  ///< `used`: when it was let go, by count
    std::size_t tier = 0;
  };
  using Ranges = std::map<std::int64_t, Range>;                      ///< of an owner, by the first block
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t>;  ///< used, -first block, owner

  /// visit(owner, from, to) for the pieces of blocks [from, to) of a path; stops where it returns false.
  template <class Visit>
  void each_piece(const PrefixPath& path, std::int64_t from, std::int64_t to, const Visit& visit) const;
  void split(Ranges& ranges, std::int64_t owner, std::int64_t at);
  void book(std::int64_t owner, std::int64_t begin, const Range& range, bool add);
  void evict(std::size_t tier, std::int64_t room);

  const std::int64_t block_;
  const TierBlocks room_;
  std::unordered_map<std::int64_t, Ranges> owners_;
  std::array<std::set<Key>, kCacheTiers> order_;  ///< idle ranges, the first to go first
  TierBlocks idle_{};
  std::int64_t pinned_ = 0, count_ = 0;
};

}  // namespace shardscape::serving
