// What of a plan shapes the operators of one rank.
#pragma once

#include <cstdint>

namespace shardscape::model {

/// Plans that agree in it share their operators and what those cost.
struct LayerKey {
  std::int32_t tensor = 1;
  std::int32_t context = 1;
  std::int32_t microbatch = 1;  ///< sequences
  bool sequence_parallel = false;
  friend bool operator==(const LayerKey&, const LayerKey&) = default;
};

/// Training: operators keep what backward needs. Prefill: whole prompts. Decode: one new token per sequence.
enum class Mode : std::uint8_t { training, prefill, decode };

}  // namespace shardscape::model
