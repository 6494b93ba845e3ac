#include "engine/timeline/execution_trace.h"

#include <utility>

namespace shardscape::timeline {

TraceNode compute_node(std::string name, double seconds, const Work& work) {
  TraceNode node;
  node.name = std::move(name);
  node.kind = NodeKind::compute;
  node.seconds = seconds;
  node.operations = work.flops.value();
  node.tensor_bytes = work.bytes.value();
  return node;
}

TraceNode message_node(NodeKind kind, std::string name, std::int32_t peer, std::int32_t tag, double bytes) {
  TraceNode node;
  node.name = std::move(name);
  node.kind = kind;
  node.peer = peer;
  node.tag = tag;
  node.bytes = bytes;
  return node;
}

std::uint64_t RankTrace::add(TraceNode node, std::span<const std::uint64_t> on) {
  node.id = nodes.size();
  node.dependencies_begin = static_cast<std::uint32_t>(dependencies.size());
  dependencies.insert(dependencies.end(), on.begin(), on.end());
  node.dependencies_end = static_cast<std::uint32_t>(dependencies.size());
  nodes.push_back(std::move(node));
  return nodes.back().id;
}

}  // namespace shardscape::timeline
