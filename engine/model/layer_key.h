// What of a plan shapes the operators of one rank.
#pragma once

#include <cstdint>

namespace shardscape::model {

/// How the experts of a layer lie on ranks: dealt over `ranks` of them, each split over `tensor`.
struct ExpertSplit {
  std::int32_t ranks = 1;
  std::int32_t tensor = 1;
  friend bool operator==(const ExpertSplit&, const ExpertSplit&) = default;
};

/// Without a plan's word for it, a tensor group splits experts as it splits all else.
constexpr ExpertSplit experts_by_tensor(std::int32_t tensor) { return {1, tensor}; }

/// Plans that agree in it share their operators and what those cost.
struct LayerKey {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t microbatch = 1;  ///< sequences
  bool sequence_parallel = false;

  [[nodiscard]] ExpertSplit experts() const { return experts_by_tensor(tensor); }
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};

/// Training: operators keep what backward needs. Prefill: whole prompts. Decode: one new token per sequence.
enum class Mode : std::uint8_t { training, prefill, decode };

}  // namespace shardscape::model
