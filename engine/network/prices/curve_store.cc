#include "engine/network/prices/curve_store.h"

#include <bit>

#include "engine/base/hash.h"

namespace shardscape::network {

std::size_t CurveKeyHash::operator()(const CurveKey& key) const {
  std::uint64_t hash = hash_word(0, static_cast<std::uint64_t>(key.op));
  const auto add = [&](std::int32_t word) { hash = hash_word(hash, static_cast<std::uint32_t>(word)); };
  const auto add_level = [&](const RankGroup::Level& level) {
    add(level.extent);
    add(level.stride);
  };
  add(static_cast<std::int32_t>(key.choice.algorithm));
  add(static_cast<std::int32_t>(key.choice.ring_order));
  add(key.choice.channels);
  for (std::int32_t i = 0; i < key.group.depth; ++i) add_level(key.group.levels[static_cast<std::size_t>(i)]);
  add_level(key.group.mirror);
  add(key.boundary);
  add_level(key.slice);
  hash = hash_word(hash, std::bit_cast<std::uint64_t>(key.rank_step.value()));
  hash = hash_word(hash, std::bit_cast<std::uint64_t>(key.rank_step_scale_out.value()));
  return hash;
}

}  // namespace shardscape::network
