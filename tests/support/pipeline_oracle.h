// The end times of a pipeline schedule as longest paths in its dependency graph, by repeated relaxation until
// nothing moves (Bellman-Ford): slow, and free of any assumption about the order of evaluation.
#pragma once

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "engine/schedule/pipeline.h"

namespace shardscape::test {

/// End of the last operation of each stage. An operation starts after its predecessor on the stage (and after
/// that one's message has left, if transfers block) and after its input has arrived. Virtual stage g = chunk
/// * stages + stage: forwards go g -> g + 1, backwards g -> g - 1, the last virtual stage turns round. A
/// message takes `transfer.seconds` wherever it leaves its virtual stage.
inline std::vector<double> longest_paths(const schedule::PipelineShape& shape,
                                         const std::vector<schedule::StageTime>& times,
                                         schedule::Transfer transfer) {
  using Key = std::tuple<bool, int, int>;  // backward, virtual stage, microbatch
  const int p = shape.stages, last = p * shape.virtual_stages - 1;
  std::map<Key, double> end;  // of the work
  std::vector<std::vector<Key>> orders;
  for (int s = 0; s < p; ++s) {
    std::vector<schedule::PipelineOperation> list;
    schedule::stage_order(shape, s, list);
    orders.emplace_back();
    for (const auto& op : list) {
      orders.back().push_back({op.backward, op.chunk * p + s, op.microbatch});
      end[orders.back().back()] = 0;
    }
  }
  const auto sends = [&](const Key& key) {
    const auto& [backward, g, microbatch] = key;
    return backward ? g > 0 : g < last;
  };
  const auto arrival = [&](const Key& key) { return end.at(key) + (sends(key) ? transfer.seconds : 0); };
  const auto free_again = [&](const Key& key) { return transfer.blocking ? arrival(key) : end.at(key); };
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < p; ++s) {
      const auto& order = orders[static_cast<std::size_t>(s)];
      for (std::size_t i = 0; i < order.size(); ++i) {
        const auto& [backward, g, microbatch] = order[i];
        double start = i > 0 ? free_again(order[i - 1]) : 0;
        if (!backward && g > 0) start = std::max(start, arrival({false, g - 1, microbatch}));
        if (backward) {
          start =
              std::max(start, g < last ? arrival({true, g + 1, microbatch}) : end.at({false, g, microbatch}));
        }
        const auto& time = times[static_cast<std::size_t>(s)];
        const double ends = start + (backward ? time.backward : time.forward);
        if (ends > end.at(order[i])) end.at(order[i]) = ends, moved = true;
      }
    }
  }
  std::vector<double> result;
  for (const auto& order : orders) result.push_back(free_again(order.back()));
  return result;
}

}  // namespace shardscape::test
