// Runs execution traces on a fabric: every message of every rank in one fluid simulation.
//
//   compute      takes its time on its rank's device (or host), one node at a time; starts when everything it
//                depends on has ended. Which of several goes first: see ReplayOrder
//   send         enters the network a call after it is ready and ends when the message has been received; it
//                doesn't wait for its receive. Messages of one channel share a connection from rank to rank
//   receive      ends when its message is there, a call after it is ready at the earliest
//   collective   a rank enters a call after its node is ready, and its node ends when it has received
//                everything it is owed; algorithms of replay_network.h. The collectives of one group share
//                connections, so that they follow each other where they would overlap
//   memory       takes its time beside everything else: its duration, or else its bytes at the rate of HBM
//
// Left out: limits on messages in flight, power.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <tl/expected.hpp>
#include <vector>

#include "engine/base/enum_names.h"
#include "engine/network/collectives/traffic.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/device.h"
#include "engine/spec/fault.h"
#include "engine/spec/stack.h"
#include "engine/timeline/linked_trace.h"

namespace shardscape::timeline {

/// How one rank spent the replay, in seconds; compute + exposed + idle = the step.
struct RankUse {
  double compute = 0;        ///< the device is busy
  double communication = 0;  ///< something of this rank is on its way: sends, messages coming in, collectives
                             ///< that all members have entered
  double exposed = 0;        ///< the part of `communication` in which the device is not busy
  double idle = 0;           ///< neither computing nor communicating
  double end = 0;            ///< end of the rank's last node
};

struct Replay {
  double step_time = 0;  ///< seconds to the end of the last node
  std::vector<RankUse> ranks;
  std::int64_t nodes = 0, messages = 0, events = 0;
};

/// The rule by which a free device (or host) chooses among compute nodes that could run. Neither can deadlock.
enum class ReplayOrder : std::uint8_t {
  node_id,  ///< when it becomes free, the lowest id of those that are ready, as in ASTRA-sim 2
  /// Fixed beforehand: the order in which nodes would be ready if communication were free, then by id.
  ready_first
};
SHARDSCAPE_ENUM_NAMES(ReplayOrder, "id", "ready");

/// Runs traffic on links of these bytes per second, and tells the observer when gates open.
using TrafficSimulator = std::function<network::FlowResult(const network::Traffic&, std::span<const double>,
                                                           network::GateObserver*)>;

struct ReplayOptions {
  StackProfile::Communication stack = {};  ///< default: bare links and calls without cost
  BytesPerSecond memory_rate = {};         ///< peak rate of the ranks' memory; for stack.local_copy
  NodeCollectives node = {};               ///< constants of the ranks' devices; for stack.protocols
  FaultSet faults =
      {};  ///< only device faults of memory count, and of those the share of its rate, for stack.local_copy
  ReplayOrder order = ReplayOrder::node_id;
  TrafficSimulator simulator = {};  ///< none: network::FlowSimulator; tests pass a plain reference simulator
};

/// Sets the duration of compute and memory nodes that have none but have operations or bytes: the larger of operations
/// over the device's bf16 peak and bytes over its HBM bandwidth. Returns the number of nodes set.
std::int64_t estimate_durations(ExecutionTrace& trace, const DeviceSpec& device);

/// Replays a trace. Problems: those of link(), more ranks than the fabric has, pairs of ranks that dead links cut off
/// from each other, more messages than a simulation takes.
tl::expected<Replay, TraceProblems> replay(const ExecutionTrace& trace, const network::Fabric& fabric,
                                           const ReplayOptions& options);

}  // namespace shardscape::timeline
