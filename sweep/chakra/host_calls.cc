#include "sweep/chakra/host_calls.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace shardscape::chakra {

namespace {

constexpr const char* kCallRecord = "record_param_comms";

/// Climbs the dependencies from each kernel to the host calls that led to it, and notes which calls it has met.
class KernelLinks {
 public:
  KernelLinks(const timeline::RankTrace& rank, const std::vector<std::uint64_t>& calls)
      : rank_(rank), calls_(calls.begin(), calls.end()) {
    for (std::size_t i = 0; i < rank.nodes.size(); ++i) index_.emplace(rank.nodes[i].id, i);
    for (const timeline::TraceNode& node : rank.nodes) {
      const bool kernel = node.kind == timeline::NodeKind::collective ||
                          node.kind == timeline::NodeKind::send || node.kind == timeline::NodeKind::receive;
      if (kernel) climb(node);
    }
  }

  [[nodiscard]] bool linked(std::uint64_t call) const { return seen_.contains(call); }

 private:
  void climb(const timeline::TraceNode& kernel) {
    std::vector<const timeline::TraceNode*> open = {&kernel};
    while (!open.empty()) {
      const timeline::TraceNode& node = *open.back();
      open.pop_back();
      for (const std::uint64_t id : rank_.dependencies_of(node)) {
        const auto found = index_.find(id);
        if (found == index_.end() || !leads(rank_.nodes[found->second]) || !seen_.insert(id).second) continue;
        open.push_back(&rank_.nodes[found->second]);
      }
    }
  }
  [[nodiscard]] bool leads(const timeline::TraceNode& node) const {
    return calls_.contains(node.id) || (node.host && node.name.find(kCallRecord) != std::string::npos);
  }

  const timeline::RankTrace& rank_;
  std::unordered_set<std::uint64_t> calls_, seen_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
};

}  // namespace

std::vector<std::uint64_t> calls_without_kernels(const timeline::RankTrace& rank,
                                                 const std::vector<std::uint64_t>& calls) {
  std::vector<std::uint64_t> lone;
  if (calls.empty()) return lone;
  const KernelLinks links(rank, calls);
  std::ranges::copy_if(calls, std::back_inserter(lone), [&](std::uint64_t id) { return !links.linked(id); });
  return lone;
}

}  // namespace shardscape::chakra
