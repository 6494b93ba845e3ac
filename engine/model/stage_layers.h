// The blocks of a model, of a pipeline stage or of a chunk: how many of each kind.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace shardscape::model {

/// Kinds of block in one model (block_kinds.h numbers them).
inline constexpr std::size_t kMostBlockKinds = 4;

struct BlockRun {
  std::size_t kind = 0;
  std::int32_t count = 0;
  friend bool operator==(const BlockRun&, const BlockRun&) = default;
};

/// Runs of equal blocks in the order of the forward pass. Blocks of one kind are one run, though others lie
/// between them: they add up all the same.
class StageLayers {
 public:
  StageLayers() = default;
  StageLayers(std::size_t kind, std::int32_t count) { add(kind, count); }

  void add(std::size_t kind, std::int32_t count) {
    if (count <= 0) return;
    std::size_t run = 0;
    while (run < size_ && runs_[run].kind != kind) ++run;
    if (run == size_) runs_[size_++] = {kind, 0};
    runs_[run].count += count;
  }
  [[nodiscard]] const BlockRun* begin() const { return runs_.data(); }
  [[nodiscard]] const BlockRun* end() const { return runs_.data() + size_; }
  [[nodiscard]] std::int32_t count() const {
    std::int32_t sum = 0;
    for (const BlockRun& run : *this) sum += run.count;
    return sum;
  }
  /// `count` blocks from the `first` on, as many of them as there are.
  [[nodiscard]] StageLayers slice(std::int32_t first, std::int32_t count) const {
    StageLayers result;
    std::int32_t begin = 0;
    for (const BlockRun& run : *this) {
      const std::int32_t from = std::max(first, begin), to = std::min(first + count, begin + run.count);
      result.add(run.kind, to - from);
      begin += run.count;
    }
    return result;
  }
  friend bool operator==(const StageLayers&, const StageLayers&) = default;
  /// visit(kind) of every block in order.
  template <class Visit>
  void each(Visit visit) const {
    for (const BlockRun& run : *this)
      for (std::int32_t i = 0; i < run.count; ++i) visit(run.kind);
  }

 private:
  std::array<BlockRun, kMostBlockKinds> runs_{};
  std::size_t size_ = 0;
};

}  // namespace shardscape::model
