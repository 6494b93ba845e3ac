// One node of an execution trace as a Chakra message, and back.
//
// Written are the attributes that simulators of Chakra traces read, and shardscape_duration_ns: durations are
// whole microseconds in the format, the attribute (a double, nanoseconds) has the exact one. comm_size of a
// collective is what one rank puts in (for all_gather its own part), as ASTRA-sim takes it. Sends and
// receives have shardscape_channel where it is not 0.
#pragma once

#include <functional>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "engine/trace/execution_trace.h"
#include "execution_trace.pb.h"

namespace shardscape::chakra {

constexpr const char* kDurationAttribute = "shardscape_duration_ns";
constexpr const char* kChannelAttribute = "shardscape_channel";

/// `dimensions` of the fabric, for involved_dim.
ChakraProtoMsg::Node encode(const trace::TraceNode& node, const trace::RankTrace& rank, std::int32_t own_rank,
                            const std::vector<trace::ProcessGroup>& groups, std::size_t dimensions);

/// How a collective names its group: a process group, or (where the name is empty) dimensions.
struct GroupName {
  std::string name;
  std::vector<bool> dimensions;
  friend auto operator<=>(const GroupName&, const GroupName&) = default;
};
/// The index of a group in the trace; -1 and a message where there is none.
using GroupLookup = std::function<std::int32_t(const GroupName&, std::string& problem)>;

/// Appends the node. The text is what is wrong with it; then nothing is appended.
tl::expected<void, std::string> decode(const ChakraProtoMsg::Node& message, std::int32_t own_rank,
                                       const GroupLookup& group, trace::RankTrace& rank);

}  // namespace shardscape::chakra
