// The blocks of a model, of a pipeline stage or of a chunk: how many of each kind, and how many modules that predict
// further tokens.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace shardscape::model {

/// The most kinds of block in one model (block_kinds.h numbers them).
inline constexpr std::size_t kMostBlockKinds = 4;

struct BlockRun {
  std::uint32_t kind = 0;
  std::int32_t count = 0;
  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

/// Counts of blocks, one run per kind in the order in which kinds first occur. Blocks of one kind that lie apart are in
/// one run, as only sums over blocks are taken. Small, since many are compared.
class StageLayers {
 public:
  StageLayers() = default;
  StageLayers(std::size_t kind, std::int32_t count) { add(kind, count); }

  void add(std::size_t kind, std::int32_t count) {
    if (count <= 0) return;
    std::uint32_t run = 0;
    while (run < size_ && runs_[run].kind != kind) ++run;
    if (run == size_) runs_[size_++] = {static_cast<std::uint32_t>(kind), 0};
    runs_[run].count += count;
  }
  /// Adds modules that predict further tokens (model/head.h), which are not blocks and lie behind all of them.
  void add_further(std::int32_t modules) { further_ += modules; }
  [[nodiscard]] std::int32_t further() const { return further_; }
  StageLayers& operator+=(const StageLayers& o) {
    for (const BlockRun& run : o) add(run.kind, run.count);
    further_ += o.further_;
    return *this;
  }
  [[nodiscard]] const BlockRun* begin() const { return runs_.data(); }
  [[nodiscard]] const BlockRun* end() const { return runs_.data() + size_; }
  [[nodiscard]] std::int32_t count() const {
    std::int32_t sum = 0;
    for (const BlockRun& run : *this) sum += run.count;
    return sum;
  }
  friend bool operator==(const StageLayers& a, const StageLayers& b) {
    // Word by word, which is faster by far than run by run; runs that are not used are zero.
    using Words = std::array<std::uint64_t, sizeof(StageLayers) / sizeof(std::uint64_t)>;
    const Words left = std::bit_cast<Words>(a), right = std::bit_cast<Words>(b);
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < left.size(); ++i) different |= left[i] ^ right[i];
    return different == 0;
  }
  /// Calls visit(kind) once for every block, run by run.
  template <class Visit>
  void each(Visit visit) const {
    for (const BlockRun& run : *this)
      for (std::int32_t i = 0; i < run.count; ++i) visit(run.kind);
  }

 private:
  std::array<BlockRun, kMostBlockKinds> runs_{};
  std::uint32_t size_ = 0;
  std::int32_t further_ = 0;
};

}  // namespace shardscape::model
