// Number formats that tensors are stored and multiplied in.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Precision : std::uint8_t { fp32, tf32, bf16, fp16, fp8, fp4 };
inline constexpr std::size_t kPrecisionCount = 6;

/// Storage of one element in bytes (tf32 is a multiply format of fp32 storage).
constexpr double bytes_per_element(Precision p) {
  constexpr double kBytes[kPrecisionCount] = {4, 4, 2, 2, 1, 0.5};
  return kBytes[static_cast<std::size_t>(p)];
}

/// Bytes of an element as the operand of a product, in SRAM, L2 and HBM: fp4 carries an 8-bit scale per 16 elements
/// (NVFP4, Blackwell architecture; OCP Microscaling 1.0 uses one per 32), fp8 one scale per tensor, which is nothing.
constexpr double operand_bytes(Precision p) {
  return bytes_per_element(p) + (p == Precision::fp4 ? 1.0 / 16 : 0);
}

}  // namespace shardscape
