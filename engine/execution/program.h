// The programs that a machine executes: one per rank, and the traffic of the calls that they make.
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
#include "engine/network/collectives/traffic.h"
#include "engine/network/prices/collective_prices.h"
#include "engine/network/prices/least_time.h"
#include "engine/spec/time_class.h"

namespace shardscape::execution {

/// The class that a time is booked on.
using Account = TimeClass;

struct Instruction {
  enum class Kind : std::uint8_t { compute, sync_host, launch, start, join, send, sent, receive };
  Kind kind = Kind::compute;
  Account account = Account::compute;
  std::uint16_t lane = 0;    ///< start, join: lane; send, sent, receive: channel; compute: bound
  std::int32_t what = 0;     ///< compute: index in Programs::names; start: call of the communicator
  std::int32_t repeats = 1;  ///< start: number of calls
  double value = 0;          ///< compute, launch: seconds; send: bytes
};

/// The work of an operator and the seconds that it takes; a part of that time does that share of the work.
struct OperatorWork {
  Work work = {};
  double seconds = 0;  ///< 0: not known
  [[nodiscard]] Work in(double part) const { return seconds > 0 ? part / seconds * work : Work{}; }
  friend bool operator==(const OperatorWork&, const OperatorWork&) = default;
};

struct Block {
  std::int32_t begin = 0, end = 0;  ///< range in Programs::instructions
};

/// One call of one communicator as messages and gates. A member that enters counts down its entry, which
/// waits for nothing else, and its exit, which also waits for what it is owed; it is done when its exit
/// opens. Gates that open several times are those of network/collectives/traffic.h: the steps of a ring.
struct CallTraffic {
  struct Gate {
    std::int32_t waiting = 0;
    std::int32_t first_message = 0;
    std::int32_t messages = 0;
    std::int32_t next_gate = -1;
    std::int32_t leaves = -1;  ///< the member whose exit this gate is
    std::int32_t times = 1;    ///< number of times that it opens
  };
  std::vector<Gate> gates;
  std::vector<network::Message> messages;  ///< over connections of Programs::wires; bytes per call
  std::vector<std::int32_t> entry, exit;   ///< gates of each member
  /// Seconds by which a member enters later because of its own copies.
  double copy_seconds = 0;
  double node_seconds = 0;  ///< more such seconds: what a call inside a node takes beside messages and copies

  /// Number of messages sent: each counts as often as its gate opens.
  [[nodiscard]] std::int64_t sent() const {
    std::int64_t count = 0;
    for (const Gate& gate : gates) count += std::int64_t{gate.messages} * gate.times;
    return count;
  }
};

/// The kind of a call, for readers; `bytes` as in CollectiveKey.
struct CallKind {
  network::CollectiveOp op = network::CollectiveOp::all_reduce;
  double bytes = 0;
  double wire = 0;      ///< bytes that go over the network: fewer than `bytes` in exchanges
  network::Skew parts;  ///< the parts in which an exchange with unequal loads is sent
};

/// Ranks that make calls together: the k-th call of each member is the same call.
struct Communicator {
  std::vector<std::int32_t> ranks;
  std::vector<CallTraffic> calls;
};

/// Marks an entry of a table that points to nothing.
inline constexpr std::int32_t kNone = -1;

struct Programs {
  static constexpr std::int32_t kNone = execution::kNone;

  std::int32_t ranks = 0;
  std::int32_t lanes = 0;
  std::int32_t channels = 0;
  std::vector<Instruction> instructions;
  std::vector<Block> blocks;
  std::vector<std::vector<std::int32_t>> sequences;  ///< lists of blocks, each shared by ranks
  std::vector<std::int32_t> sequence_of;             ///< the sequence of each rank
  [[nodiscard]] const std::vector<std::int32_t>& sequence(std::int32_t rank) const {
    return sequences[static_cast<std::size_t>(sequence_of[static_cast<std::size_t>(rank)])];
  }
  /// Names of operators; the same name may occur with several works.
  std::vector<std::string> names;
  std::vector<OperatorWork> works;  ///< work of the operator of each name
  std::vector<std::string> bounds;  ///< what limits an operator, by Instruction::lane

  // Names for readers of programs only. The '#' in a block's name stands for the number of earlier blocks of that name.
  std::vector<std::string> block_names, sequence_names, lane_names, channel_names;
  std::vector<std::vector<CallKind>> call_kinds;  ///< by lane and call

  /// By lane and call: what a member of the call takes from its entry to its exit at least, whatever others do; may be
  /// shorter or empty (0). Read only where a watch follows the execution.
  std::vector<std::vector<network::LeastOfRow>> least_times;

  std::vector<Communicator> communicators;
  std::vector<std::vector<std::string>> call_names;  ///< by lane and call
  std::vector<std::int32_t> communicator_of;         ///< [lane * ranks + rank]; kNone: makes no calls there
  /// [lane * ranks + rank]: index in the communicator's ranks.
  std::vector<std::int32_t> member_of;
  /// By lane: the lane whose order its calls follow, at most the lane itself. Calls of lanes that take turns run one
  /// after the other in the order in which they were started.
  std::vector<std::int32_t> turns;
  std::vector<std::int32_t> outgoing;  ///< [channel * ranks + rank]: the connection it sends on; kNone
  std::vector<std::int32_t> incoming;  ///< [channel * ranks + rank]: the connection it receives on; kNone
  /// The connections of all calls and channels; it has no messages or gates.
  network::Traffic wires;
  double call_seconds = 0;  ///< seconds before the first byte of every call and message
  /// By rank: the factor by which a slow memory stretches the rank's own copies in collectives; empty: 1 for all.
  std::vector<double> copy_stretch;

  [[nodiscard]] std::size_t at(std::int32_t lane, std::int32_t rank) const {
    return static_cast<std::size_t>(lane) * static_cast<std::size_t>(ranks) + static_cast<std::size_t>(rank);
  }
};

}  // namespace shardscape::execution
