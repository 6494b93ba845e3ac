// One node of an execution trace as a Chakra message, and back.
//
// Written are the attributes that simulators of Chakra traces read, each with the type that Chakra's own C++
// feeder asks for (src/feeder/et_feeder_node.cpp; it takes 0 where the type is another one):
//
//   int64   comm_type, comm_size, num_ops          bool    is_cpu_op, and involved_dim as a list
//   int32   comm_src, comm_dst, comm_tag           string  pg_name
//   uint64  tensor_size
//
// comm_size of a collective is what one rank puts in (for all_gather its own part), as ASTRA-sim takes it.
// Process groups are numbers from 1 up, since readers make integers of their names and take 0 for all ranks.
// duration_micros is rounded, but 1 at least where something takes time: to readers 0 means that there is
// nothing to do. Likewise num_ops and tensor_size of compute are at least 1, for rooflines divide one by the
// other. Names begin with the type of the node, by which Chakra's timeline visualizer sorts them, and hold
// neither ',' nor '=', at which it splits the simulator's log.
//
// Attributes of our own are shardscape_duration_ns (a double, the exact duration), shardscape_group (a string, the
// group's readable name) and, of sends and receives where it is not 0, shardscape_channel.
//
// The reader takes numbers of any type. A collective, send or receive whose is_cpu_op says that it runs on the
// host is the call that starts a kernel, not the traffic itself: it counts as compute of the host.
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/timeline/execution_trace.h"
#include "execution_trace.pb.h"

namespace shardscape::chakra {

constexpr const char* kDurationAttribute = "shardscape_duration_ns";
constexpr const char* kChannelAttribute = "shardscape_channel";
constexpr const char* kGroupAttribute = "shardscape_group";

/// The number by which files name the group of that index in the trace; it counts from 1.
std::string group_number(std::size_t index);

/// Makes the message of a node. `dimensions` is the number of dimensions of the fabric, for the attribute involved_dim.
ChakraProtoMsg::Node encode(const timeline::TraceNode& node, const timeline::RankTrace& rank,
                            std::int32_t own_rank, const std::vector<timeline::ProcessGroup>& groups,
                            std::size_t dimensions);

/// The name of a collective's group: that of a process group or, where it is empty, the dimensions it spans.
struct GroupName {
  std::string name;
  std::vector<bool> dimensions;
  friend auto operator<=>(const GroupName&, const GroupName&) = default;
};
/// Finds the index of a group in the trace by its name.
using GroupLookup = std::function<std::int32_t(const GroupName&)>;

/// The attribute of that name; null where there is none.
const ChakraProtoMsg::AttributeProto* find_attribute(const ChakraProtoMsg::Node& message, const char* name);

/// Whether the type of the node says that it moves data between ranks.
bool communicates(const ChakraProtoMsg::Node& message);

/// Appends the decoded node to the trace. On failure the error says what is wrong with it, and nothing is appended.
tl::expected<void, std::string> decode(const ChakraProtoMsg::Node& message, std::int32_t own_rank,
                                       const GroupLookup& group, timeline::RankTrace& rank);

}  // namespace shardscape::chakra
