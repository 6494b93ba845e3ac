// Ranges of blocks lie in ordered maps, by owner: pinning and unpinning split a range at the ends of a path and move
// it between the pinned ones and those in the order of their last use, from whose old end eviction takes what room
// needs, tier by tier.
#include "engine/serving/live/prefix_cache.h"

#include <algorithm>

#include "engine/base/check.h"

namespace shardscape::serving {

template <class Visit>
void PrefixCache::each_piece(const PrefixPath& path, std::int64_t from, std::int64_t to,
                             const Visit& visit) const {
  std::int64_t begin = 0;
  const auto piece = [&](std::int64_t owner, std::int64_t end) {
    const std::int64_t low = std::max(begin, from), high = std::min(end / block_, to);
    begin = std::max(begin, end / block_);
    return low >= high || visit(owner, low, high);
  };
  for (const PrefixPiece& shared : path.shared)
    if (begin >= to || !piece(path.offset + shared.owner, shared.end)) return;
  piece(path.owner, path.end);
}

TierBlocks PrefixCache::match(const PrefixPath& path, std::int64_t most) const {
  TierBlocks found{};
  each_piece(path, 0, most, [&](std::int64_t owner, std::int64_t from, std::int64_t to) {
    const auto ranges = owners_.find(owner);
    if (ranges == owners_.end()) return false;
    auto range = ranges->second.upper_bound(from);
    if (range == ranges->second.begin()) return false;
    --range;
    for (; range != ranges->second.end() && range->first <= from && from < to; ++range) {
      const std::int64_t end = std::min(range->second.end, to);
      if (end <= from) return false;
      found[range->second.tier] += end - from;
      from = end;
    }
    return from == to;
  });
  return found;
}

std::int64_t PrefixCache::unpinned(const PrefixPath& path, std::int64_t blocks) const {
  std::int64_t sum = 0;
  each_piece(path, 0, blocks, [&](std::int64_t owner, std::int64_t from, std::int64_t to) {
    const auto ranges = owners_.find(owner);
    if (ranges == owners_.end()) return true;
    for (const auto& [begin, range] : ranges->second) {
      const std::int64_t common = std::min(range.end, to) - std::max(begin, from);
      if (range.pins == 0 && common > 0) sum += common;
    }
    return true;
  });
  return sum;
}

/// A boundary between ranges lies at block `at`, where there are any.
void PrefixCache::split(Ranges& ranges, std::int64_t owner, std::int64_t at) {
  auto range = ranges.upper_bound(at);
  if (range == ranges.begin()) return;
  --range;
  if (range->first >= at || range->second.end <= at) return;
  Range tail = range->second;
  book(owner, range->first, range->second, false);
  range->second.end = at;
  book(owner, range->first, range->second, true);
  ranges.emplace(at, tail);
  book(owner, at, tail, true);
}

/// Counts a range, or does so no more.
void PrefixCache::book(std::int64_t owner, std::int64_t begin, const Range& range, bool add) {
  const std::int64_t blocks = (add ? 1 : -1) * (range.end - begin);
  if (range.pins > 0) {
    pinned_ += blocks;
    return;
  }
  idle_[range.tier] += blocks;
  const Key key{range.used, -begin, owner};
  if (add) {
    order_[range.tier].insert(key);
  } else {
    order_[range.tier].erase(key);
  }
}

void PrefixCache::pin(const PrefixPath& path, std::int64_t from, std::int64_t blocks) {
  each_piece(path, from, blocks, [&](std::int64_t owner, std::int64_t low, std::int64_t high) {
    Ranges& ranges = owners_[owner];
    split(ranges, owner, low);
    split(ranges, owner, high);
    for (std::int64_t at = low; at < high;) {
      auto range = ranges.lower_bound(at);
      if (range == ranges.end() || range->first > at) {
        const std::int64_t end = range == ranges.end() ? high : std::min(high, range->first);
        range = ranges.emplace_hint(range, at, Range{end, 0, 0, 0});
      } else {
        book(owner, at, range->second, false);
      }
      ++range->second.pins;
      range->second.tier = 0;
      book(owner, at, range->second, true);
      at = range->second.end;
    }
    return true;
  });
}

void PrefixCache::unpin(const PrefixPath& path, std::int64_t blocks) {
  ++count_;
  each_piece(path, 0, blocks, [&](std::int64_t owner, std::int64_t low, std::int64_t high) {
    Ranges& ranges = owners_[owner];
    split(ranges, owner, low);
    split(ranges, owner, high);
    for (auto range = ranges.lower_bound(low); range != ranges.end() && range->first < high; ++range) {
      SHARDSCAPE_CHECK(range->second.pins > 0, owner, range->first);
      book(owner, range->first, range->second, false);
      --range->second.pins;
      range->second.used = count_;
      book(owner, range->first, range->second, true);
    }
    return true;
  });
}

void PrefixCache::shrink(std::int64_t room) {
  if (idle_[0] <= room) return;
  evict(0, room);
  for (std::size_t tier = 1; tier < kCacheTiers; ++tier) evict(tier, room_[tier]);
}

/// What is too much in a tier goes to the next one, the ends of ranges first.
void PrefixCache::evict(std::size_t tier, std::int64_t room) {
  while (idle_[tier] > room) {
    const auto [used, depth, owner] = *order_[tier].begin();
    const auto ranges = owners_.find(owner);
    const std::int64_t begin = -depth, excess = idle_[tier] - room;
    const std::int64_t end = ranges->second.at(begin).end;
    const std::int64_t cut = std::max(begin, end - excess);
    split(ranges->second, owner, cut);
    const auto range = ranges->second.find(cut);
    book(owner, cut, range->second, false);
    if (tier + 1 < kCacheTiers && (room_[tier + 1] > 0 || (tier == 0 && room_[2] > 0))) {
      ++range->second.tier;
      book(owner, cut, range->second, true);
      continue;
    }
    ranges->second.erase(range);
    if (ranges->second.empty()) owners_.erase(ranges);
  }
}

}  // namespace shardscape::serving
