// A lower bound on the end of programs while they are executed: no rank ends before it has done the blocks that its
// program still holds, however early the things that it waits for come. A block takes at least what its compute work
// and the calls that it both starts and joins take for a rank alone; the last blocks, in which gradients are sent that
// are waited for at the very end, take that as if they were one. Of a block that is under way only the work counts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
    std::vector<double> alone;  // by block
    for (const Block& block : programs.blocks) {
      begin_alone();
      alone.push_back(run(block, 0));
    }
    after_.resize(programs.sequences.size());
    for (std::size_t s = 0; s < after_.size(); ++s) {
      const std::vector<std::int32_t>& sequence = programs.sequences[s];
      after_[s].assign(sequence.size() + 1, 0);
      for (std::size_t i = sequence.size(); i-- > 0;) {
        after_[s][i] = after_[s][i + 1] + alone[static_cast<std::size_t>(sequence[i])];
        if (sequence.size() - i > kLast) continue;
        begin_alone();
        double clock = 0;
        for (std::size_t b = i; b < sequence.size(); ++b)
          clock = run(programs.blocks[static_cast<std::size_t>(sequence[b])], clock);
        after_[s][i] = std::max(after_[s][i], clock);
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

  /// Begins with lanes that are free.
  void begin_alone() { lanes_.assign(static_cast<std::size_t>(programs_->lanes), kJoined); }
  /// When a block that begins at `clock` ends for a rank that waits for nobody else. Calls on a lane that has not been
  /// joined since the one before count as further ones of a row: others may still be at it, however early it may end.
  [[nodiscard]] double run(const Block& block, double clock) {
    for (std::int32_t i = block.begin; i < block.end; ++i) {
      const Instruction& one = programs_->instructions[static_cast<std::size_t>(i)];
      if (one.kind == Instruction::Kind::compute) clock += one.value;
      if (one.kind != Instruction::Kind::join && one.kind != Instruction::Kind::start) continue;
      double& lane = lanes_[static_cast<std::size_t>(programs_->turns[one.lane])];
      if (one.kind == Instruction::Kind::join) {
        clock = std::max(clock, lane);
        lane = kJoined;
        continue;
      }
      const network::LeastOfRow least = least_of(one.lane, one.what);
      lane = lane == kJoined ? clock + least.of(one.repeats).value()
                             : std::max(lane, clock) + (one.repeats * least.next).value();
    }
    return clock;
  }
  [[nodiscard]] network::LeastOfRow least_of(std::int32_t lane, std::int32_t call) const {
    const auto of = static_cast<std::size_t>(lane), number = static_cast<std::size_t>(call);
    if (of >= programs_->least_times.size() || call < 0) return {};
    return number < programs_->least_times[of].size() ? programs_->least_times[of][number]
                                                      : network::LeastOfRow();
  }

  static constexpr double kJoined = -1;     ///< of a lane: no call is under way
  static constexpr std::size_t kLast = 32;  ///< blocks of a sequence that are looked at together
  const Programs* programs_ = nullptr;
  std::vector<double> before_;              ///< compute seconds of all instructions before each one
  std::vector<std::vector<double>> after_;  ///< by sequence: least seconds of the blocks from each one on
  std::vector<double> lanes_;               ///< when their calls end; scratch memory
};

}  // namespace shardscape::execution
