// What a machine is to execute: one program per rank, and the traffic of the calls they make.
//
// A rank is a host beside a device. The device works through its program in order; what the program starts on
// a lane (collective calls) or sends through a channel (messages to one other rank) goes on beside it until
// the program waits for it. Programs are lists of blocks and blocks lists of instructions, both shared: a
// pipeline stage's forward is one block however many microbatches and ranks run it, so a step of tens of
// millions of messages is held in a few megabytes and unfolds while it is executed.
//
//   compute    the device is busy for `value` seconds
//   sync_host  the host has nothing launched ahead: its clock is the device's
//   launch     the host works for `value` seconds; the device does not get past it
//   start      `repeats` calls number `what` of the rank's communicator on that lane, one after the other,
//              behind those started before
//   join       wait for everything started on the lane, and on the lanes that take turns with it
//   send       `value` bytes through the channel
//   sent       wait until everything sent through the channel has been received
//   receive    wait for the next message through the channel
//
// Times spent are booked on the instruction's account; waiting for a message is pipeline_comm while it is on
// its way and bubble before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/work.h"
#include "engine/network/collective_model.h"
#include "engine/network/traffic.h"
#include "engine/spec/time_class.h"

namespace shardscape::execution {

/// What a time is booked on.
using Account = TimeClass;

struct Instruction {
  enum class Kind : std::uint8_t { compute, sync_host, launch, start, join, send, sent, receive };
  Kind kind = Kind::compute;
  Account account = Account::compute;
  std::uint16_t lane = 0;    ///< start, join: lane; send, sent, receive: channel; compute: bound
  std::int32_t what = 0;     ///< compute: index in Programs::names; start: call of the communicator
  std::int32_t repeats = 1;  ///< start
  double value = 0;          ///< compute, launch: seconds; send: bytes
};

/// What an operator does in so many seconds; where it is cut in time, each part does its share.
struct OperatorWork {
  Work work = {};
  double seconds = 0;  ///< 0: not known
  [[nodiscard]] Work in(double part) const { return seconds > 0 ? part / seconds * work : Work{}; }
  friend bool operator==(const OperatorWork&, const OperatorWork&) = default;
};

struct Block {
  std::int32_t begin = 0, end = 0;  ///< in Programs::instructions
};

/// One call of one communicator as messages and gates. A member that enters counts down its entry, which
/// waits for nothing else, and its exit, which also waits for what it is owed; it is done when its exit
/// opens. Gates that open several times are those of network/traffic.h: the steps of a ring.
struct CallTraffic {
  struct Gate {
    std::int32_t waiting = 0;
    std::int32_t first_message = 0;
    std::int32_t messages = 0;
    std::int32_t next_gate = -1;
    std::int32_t leaves = -1;  ///< member whose exit this is
    std::int32_t times = 1;    ///< openings
  };
  std::vector<Gate> gates;
  std::vector<network::Message> messages;  ///< on Programs::wires, bytes of one call
  std::vector<std::int32_t> entry, exit;   ///< gates of each member
  double copy_seconds = 0;                 ///< of each member's own copies: it enters so much later
  double node_seconds = 0;  ///< likewise, of what a call inside a node takes beside messages and copies

  /// Messages that are sent, each as often as its gate opens.
  [[nodiscard]] std::int64_t sent() const {
    std::int64_t count = 0;
    for (const Gate& gate : gates) count += std::int64_t{gate.messages} * gate.times;
    return count;
  }
};

/// What a call of a lane is, for readers: bytes as in CollectiveModel::time.
struct CallKind {
  network::CollectiveOp op = network::CollectiveOp::all_reduce;
  double bytes = 0;
  double wire = 0;      ///< what of them goes over the network: of exchanges less
  network::Skew parts;  ///< in which it is sent
};

/// Ranks that make calls together: the k-th call that each makes is the same one.
struct Communicator {
  std::vector<std::int32_t> ranks;
  std::vector<CallTraffic> calls;
};

/// No entry of a table.
inline constexpr std::int32_t kNone = -1;

struct Programs {
  static constexpr std::int32_t kNone = execution::kNone;

  std::int32_t ranks = 0;
  std::int32_t lanes = 0;
  std::int32_t channels = 0;
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  std::vector<std::vector<std::int32_t>> sequences;  ///< of blocks
  std::vector<std::int32_t> sequence_of;             ///< by rank
  std::vector<std::string> names;                    ///< of operators; the same one may differ in its work
  std::vector<OperatorWork> works;                   ///< likewise
  std::vector<std::string> bounds;                   ///< of operators: what limits them

  // For readers only. The '#' in the name of a block stands for the number of blocks of that name before it.
  std::vector<std::string> block_names, sequence_names, lane_names, channel_names;
  std::vector<std::vector<CallKind>> call_kinds;  ///< by lane and call

  std::vector<Communicator> communicators;
  std::vector<std::vector<std::string>> call_names;  ///< by lane and call
  std::vector<std::int32_t> communicator_of;         ///< [lane * ranks + rank]; kNone
  std::vector<std::int32_t> member_of;               ///< likewise: index in the communicator's ranks
  /// By lane: the lane in whose order of calls its own stand, at most itself. Calls of lanes that take turns run one
  /// after the other, as they were started.
  std::vector<std::int32_t> turns;
  std::vector<std::int32_t> outgoing;  ///< [channel * ranks + rank]: connection; kNone
  std::vector<std::int32_t> incoming;  ///< likewise: what the other rank sends through it
  network::Traffic wires;              ///< every connection of calls and channels; no messages, no gates
  double call_seconds = 0;             ///< before the first byte of every call and message
  /// By rank: by how much a slow memory stretches its own copies in collectives; empty: by nothing.
  std::vector<double> copy_stretch;

  [[nodiscard]] std::size_t at(std::int32_t lane, std::int32_t rank) const {
    return static_cast<std::size_t>(lane) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
  }
};

}  // namespace shardscape::execution
