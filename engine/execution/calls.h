// Keeps the calls that are under way: for each gate of a call, how many counts it still waits for.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/execution/program.h"
#include "engine/execution/state.h"

namespace shardscape::execution {

class CallBoard {
 public:
  /// Reports a member that makes another call than the members that entered before it.
  struct Mismatch {
    std::int32_t communicator = 0, lane = 0, rank = 0, call = 0, expected = 0, number = 0;
  };

  void reset(const Programs& programs);

  /// Enters the communicator's `number`-th call and returns its instance, which the first member creates. kNone where
  /// `call` is not the one that earlier members make.
  std::int32_t enter(std::int32_t communicator, std::int32_t call, std::int32_t lane, std::int32_t rank,
                     std::int32_t number);
  /// Counts one down at a gate; true where the gate opens now.
  bool count_down(std::int32_t instance, std::int32_t gate) {
    return --instances_[static_cast<std::size_t>(instance)].waiting[static_cast<std::size_t>(gate)] == 0;
  }

  /// The effect of a received message on a gate that opens several times.
  enum class Turn : std::uint8_t { held, opens, last };
  Turn take_turn(std::int32_t instance, std::int32_t gate) {
    Instance& i = instances_[static_cast<std::size_t>(instance)];
    Turns& turns = i.turns[static_cast<std::size_t>(gate)];
    if (++turns.receipts == i.traffic->gates[static_cast<std::size_t>(gate)].times) return Turn::last;
    if (turns.open) return Turn::opens;
    ++turns.held;
    return Turn::held;
  }
  /// Notes that a gate that opens several times has opened. Receipts from before its first opening take effect one by
  /// one: true where the gate opens again now.
  bool resume_turns(std::int32_t instance, std::int32_t gate) {
    Turns& turns = instances_[static_cast<std::size_t>(instance)].turns[static_cast<std::size_t>(gate)];
    turns.open = true;
    if (turns.held == 0) return false;
    --turns.held;
    return true;
  }
  /// Notes one received message or one member that is done; the last of them ends the call.
  void settle(std::int32_t instance) {
    if (--instances_[static_cast<std::size_t>(instance)].pending == 0) end(instance);
  }

  /// Notes that all messages of the call were received, before any member is done.
  void settle_messages(std::int32_t instance) {
    Instance& i = instances_[static_cast<std::size_t>(instance)];
    i.pending -= i.traffic->sent();
  }

  [[nodiscard]] std::int32_t call(std::int32_t instance) const {
    return instances_[static_cast<std::size_t>(instance)].call;
  }
  [[nodiscard]] const CallTraffic& traffic(std::int32_t instance) const {
    return *instances_[static_cast<std::size_t>(instance)].traffic;
  }
  [[nodiscard]] std::int32_t lane(std::int32_t instance) const {
    return instances_[static_cast<std::size_t>(instance)].lane;
  }
  [[nodiscard]] std::int32_t rank(std::int32_t instance, std::int32_t member) const {
    const Instance& i = instances_[static_cast<std::size_t>(instance)];
    return programs_->communicators[static_cast<std::size_t>(i.communicator)]
        .ranks[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] const std::vector<Mismatch>& mismatches() const { return mismatches_; }

 private:
  /// State of a gate that opens several times.
  struct Turns {
    std::int32_t receipts = 0;
    std::int32_t held = 0;  ///< receipts before the first opening
    bool open = false;      ///< the gate has opened once
  };
  struct Instance {
    const CallTraffic* traffic = nullptr;
    std::int32_t communicator = 0, call = 0, lane = 0, number = 0;
    std::int64_t pending = 0;           ///< messages not received and members not done
    std::vector<std::int32_t> waiting;  ///< counts that each gate waits for
    std::vector<Turns> turns;           ///< state of each gate, if any gate opens several times
  };
  /// The calls of one communicator, from the oldest that is under way.
  struct Window {
    std::int32_t first = 0;        ///< number of the oldest call
    Fifo<std::int32_t> instances;  ///< instances by number of the call; kNone: ended, or not begun
  };
  void end(std::int32_t instance);

  const Programs* programs_ = nullptr;
  std::vector<Instance> instances_;
  std::vector<std::int32_t> free_;
  std::vector<Window> windows_;  ///< by communicator
  std::vector<Mismatch> mismatches_;
};

}  // namespace shardscape::execution
