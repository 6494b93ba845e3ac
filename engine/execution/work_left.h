// A lower bound on the end of programs while they are executed: no rank ends before it has done the compute work that
// its program still holds, however early the things it waits for come.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "engine/execution/program.h"
#include "engine/execution/state.h"

namespace shardscape::execution {

class WorkLeft {
 public:
  /// Sets the programs, which must outlive this use. O(instructions + blocks in all sequences).
  void reset(const Programs& programs) {
    programs_ = &programs;
    before_.assign(1, 0);
    for (const Instruction& one : programs.instructions) {
      const bool works = one.kind == Instruction::Kind::compute;
      before_.push_back(before_.back() + (works ? one.value : 0));
    }
    after_.resize(programs.sequences.size());
    for (std::size_t s = 0; s < after_.size(); ++s) {
      const std::vector<std::int32_t>& sequence = programs.sequences[s];
      after_[s].assign(sequence.size() + 1, 0);
      for (std::size_t i = sequence.size(); i-- > 0;) {
        const Block& block = programs.blocks[static_cast<std::size_t>(sequence[i])];
        after_[s][i] = after_[s][i + 1] + between(block.begin, block.end);
      }
    }
  }

  /// A time before which not all ranks in these states can have ended. Seconds, O(ranks).
  [[nodiscard]] double least_end(std::span<const RankState> ranks) const {
    double least = 0;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const RankState& rank = ranks[r];
      const std::vector<double>& after = after_[static_cast<std::size_t>(programs_->sequence_of[r])];
      least = std::max(least, rank.clock + between(rank.next, rank.block_end) + after[rank.position]);
    }
    return least;
  }

 private:
  [[nodiscard]] double between(std::int32_t begin, std::int32_t end) const {
    return before_[static_cast<std::size_t>(end)] - before_[static_cast<std::size_t>(begin)];
  }

  const Programs* programs_ = nullptr;
  std::vector<double> before_;              ///< compute seconds of all instructions before each one
  std::vector<std::vector<double>> after_;  ///< by sequence: compute seconds of the blocks from each one on
};

}  // namespace shardscape::execution
