// Counter-based random numbers (Philox4x32-10, Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2,
// 3").
//
// A generator is a pure function of (seed, stream, position): any draw can be recomputed alone, on any thread
// and in any order. The cipher is Random123's; this class only counts and converts.
#pragma once

#include <Random123/philox.h>

#include <cstdint>

namespace shardscape {

class CounterRng {
 public:
  /// Independent sequences for different (seed, stream) pairs.
  CounterRng(std::uint64_t seed, std::uint64_t stream)
      : key_{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}}, stream_(stream) {}

  /// The next 64 uniformly distributed bits.
  std::uint64_t bits() {
    if (used_ == 2) refill();
    const std::size_t word = 2U * used_++;
    return static_cast<std::uint64_t>(block_[word]) | (static_cast<std::uint64_t>(block_[word + 1]) << 32);
  }

  /// Uniform in [0, 1), 53 significant bits.
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

  /// Uniform integer in [0, n), n >= 1, without modulo bias (Lemire 2019, multiply-shift with rejection).
  std::uint64_t below(std::uint64_t n) {
    const std::uint64_t threshold = (0 - n) % n;
    for (;;) {
      const auto product = static_cast<unsigned __int128>(bits()) * n;
      if (static_cast<std::uint64_t>(product) >= threshold) return static_cast<std::uint64_t>(product >> 64);
    }
  }

 private:
  using Cipher = r123::Philox4x32;

  void refill() {
    const Cipher::ctr_type counter{
        {static_cast<std::uint32_t>(block_index_), static_cast<std::uint32_t>(block_index_ >> 32),
         static_cast<std::uint32_t>(stream_), static_cast<std::uint32_t>(stream_ >> 32)}};
    block_ = Cipher()(counter, key_);
    ++block_index_;
    used_ = 0;
  }

  Cipher::key_type key_;
  std::uint64_t stream_;
  std::uint64_t block_index_ = 0;
  Cipher::ctr_type block_{};
  unsigned used_ = 2;
};

}  // namespace shardscape
