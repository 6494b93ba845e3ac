// Fat trees as extended generalised fat trees (Oehring et al. 1995, "On generalized fat trees").
//
// Endpoint numbers have one digit per level: m_1 children of a leaf, m_i of a switch of level i. A switch of
// level i stands over one block of m_1 .. m_i endpoints and is one of W_i = w_2 .. w_i copies (a leaf has one
// copy); it is linked to the copies c + W_i * b, b = 0 .. w_{i+1}-1, of the block above it. Going down is
// unique, going up from level i chooses b. Switches are numbered level by level, in a level block by block,
// in a block copy by copy; blocks without endpoints are left out.
//
// Adaptive routing sends each packet up by the port with the shortest queue, as InfiniBand switches do where NCCL asks
// for it (NCCL_IB_ADAPTIVE_ROUTING, on by default). In the limit of many packets all W_{i+1} wires up from a block
// carry the same: flows share them as one link of their summed bandwidth, and the copies of a switch are one vertex.
// Then a tree with as many ports up as down is never busier inside than at its endpoints, whatever is sent.
#pragma once

#include <cstdint>

namespace shardscape::network {

/// The ECMP choice: the last mix of SplitMix64 (Steele et al. 2014) over source * 2^32 + destination +
/// level * 0x9E3779B97F4A7C15, modulo the ports up. Endpoint numbers are those inside the tree, so that
/// trees side by side choose alike.
inline std::uint64_t ecmp_hash(std::int32_t source, std::int32_t destination, std::int32_t level) {
  std::uint64_t x = (static_cast<std::uint64_t>(source) << 32) + static_cast<std::uint64_t>(destination) +
                    static_cast<std::uint64_t>(level) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace shardscape::network
