#include "engine/network/curve_store.h"

#include <vector>

#include "engine/base/hash.h"

namespace shardscape::network {

std::size_t CurveStore::Hash::operator()(const Key& key) const {
  std::uint64_t hash = hash_word(0, static_cast<std::uint64_t>(key.op));
  const auto add = [&](std::int32_t word) { hash = hash_word(hash, static_cast<std::uint32_t>(word)); };
  add(static_cast<std::int32_t>(key.choice.algorithm));
  add(static_cast<std::int32_t>(key.choice.ring_order));
  for (std::int32_t i = 0; i < key.group.depth; ++i) {
    add(key.group.levels[static_cast<std::size_t>(i)].extent);
    add(key.group.levels[static_cast<std::size_t>(i)].stride);
  }
  add(key.boundary);
  add(key.slice.extent);
  add(key.slice.stride);
  return hash;
}

const CostCurve* CurveStore::find(const Key& key) const {
  const auto found = curves_.find(key);
  return found == curves_.end() ? nullptr : &found->second;
}

void CurveStore::keep(const Key& key, const CostCurve& curve) {
  if (curve.needs_no_simulation()) curves_.try_emplace(key, curve);
}

}  // namespace shardscape::network
