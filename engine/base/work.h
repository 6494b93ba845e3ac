// What a kernel does, however long it takes: the two numbers that a roofline weighs against each other
// (Williams, Waterman and Patterson 2009).
#pragma once

#include "engine/base/quantity.h"

namespace shardscape {

struct Work {
  Flops flops;  ///< floating-point operations of all kinds, those of vector units included
  Bytes bytes;  ///< moved from and to HBM

  constexpr Work& operator+=(const Work& o) { return flops += o.flops, bytes += o.bytes, *this; }
  constexpr Work& operator-=(const Work& o) { return flops -= o.flops, bytes -= o.bytes, *this; }
  friend constexpr Work operator+(Work a, const Work& b) { return a += b; }
  friend constexpr Work operator-(Work a, const Work& b) { return a -= b; }
  friend constexpr Work operator*(double n, const Work& w) { return {n * w.flops, n * w.bytes}; }
  friend constexpr bool operator==(const Work&, const Work&) = default;
};

}  // namespace shardscape
