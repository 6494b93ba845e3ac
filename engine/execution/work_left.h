// A lower bound on the end of programs while they are executed: no rank ends before it has done the blocks that its
// program still holds, however early the things that it waits for come. A block takes at least what its compute work
// and the calls that it both starts and joins take for a rank alone; of a block that is under way only the work counts.
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
    alone_.clear();
    for (const Block& block : programs.blocks) alone_.push_back(alone(block));
    after_.resize(programs.sequences.size());
    for (std::size_t s = 0; s < after_.size(); ++s) {
      const std::vector<std::int32_t>& sequence = programs.sequences[s];
      after_[s].assign(sequence.size() + 1, 0);
      for (std::size_t i = sequence.size(); i-- > 0;)
        after_[s][i] = after_[s][i + 1] + alone_[static_cast<std::size_t>(sequence[i])];
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

  /// Seconds of a block for a rank that waits for nobody else. Of the calls that one instruction starts in a row one
  /// counts: those after it may begin while other members are still at it.
  [[nodiscard]] double alone(const Block& block) {
    double clock = 0;
    lanes_.assign(static_cast<std::size_t>(programs_->lanes), 0);
    const auto lane_of = [&](const Instruction& one) -> double& {
      return lanes_[static_cast<std::size_t>(programs_->turns[one.lane])];
    };
    for (std::int32_t i = block.begin; i < block.end; ++i) {
      const Instruction& one = programs_->instructions[static_cast<std::size_t>(i)];
      if (one.kind == Instruction::Kind::compute) clock += one.value;
      if (one.kind == Instruction::Kind::join) clock = std::max(clock, lane_of(one));
      if (one.kind == Instruction::Kind::start) lane_of(one) = std::max(lane_of(one), clock) + least(one);
    }
    return clock;
  }
  [[nodiscard]] double least(const Instruction& start) const {
    const auto lane = static_cast<std::size_t>(start.lane), call = static_cast<std::size_t>(start.what);
    if (lane >= programs_->least_seconds.size() || start.what < 0) return 0;
    return call < programs_->least_seconds[lane].size() ? programs_->least_seconds[lane][call] : 0;
  }

  const Programs* programs_ = nullptr;
  std::vector<double> before_;              ///< compute seconds of all instructions before each one
  std::vector<double> alone_;               ///< least seconds of each block
  std::vector<std::vector<double>> after_;  ///< by sequence: least seconds of the blocks from each one on
  std::vector<double> lanes_;               ///< scratch memory
};

}  // namespace shardscape::execution
