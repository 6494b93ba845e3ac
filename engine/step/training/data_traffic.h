// The data-parallel traffic of one stage of one replica, before any of it is hidden: a list that all read which price,
// emit or count it.
#pragma once

#include <boost/container/static_vector.hpp>
#include <span>

#include "engine/network/prices/collective_setup.h"
#include "engine/step/layers/training_step.h"

namespace shardscape::step {

struct DataTraffic {
  /// An operation over the ranks that hold copies of some parameters (under dualpipe those of two stages), cut into
  /// `calls` buckets.
  struct Part {
    ParallelGroup group = ParallelGroup::data_shard;
    network::CollectiveOp op = network::CollectiveOp::all_reduce;
    Bytes bytes;
    double calls = 1;
    Pass pass = Pass::forward;  ///< beside which it lies, of every microbatch
    bool once = false;          ///< sent once in a step instead, with or for such a pass
    [[nodiscard]] network::CollectiveKey key(const network::RankGroups& groups,
                                             const network::Slice& slice = {}) const {
      return {op, bytes, groups[group], calls, slice};
    }
  };
  /// At most one part of a kind for each group of parameters: the groups that send anything. Those of one pass stand
  /// together.
  boost::container::static_vector<Part, 3 * kCopyGroups.size()> parts;

  /// What lies beside a pass of every microbatch: gathers of weights, and scatters of gradients with the pass that
  /// computes weight gradients.
  [[nodiscard]] std::span<const Part> beside(Pass pass) const {
    return parts_where([&](const Part& part) { return !part.once && part.pass == pass; });
  }
  /// Gradients that are sent once in a step, with the last microbatch's pass that computes weight gradients.
  [[nodiscard]] std::span<const Part> gradients() const {
    return parts_where([](const Part& part) { return part.once && part.pass != Pass::forward; });
  }
  /// Weights that are gathered once in a step, after the optimizer.
  [[nodiscard]] std::span<const Part> weights() const {
    return parts_where([](const Part& part) { return part.once && part.pass == Pass::forward; });
  }

 private:
  template <class Belongs>
  [[nodiscard]] std::span<const Part> parts_where(const Belongs& belongs) const {
    const Part *first = parts.data(), *const end = first + parts.size();
    while (first != end && !belongs(*first)) ++first;
    const Part* last = first;
    while (last != end && belongs(*last)) ++last;
    return {first, last};
  }
};

/// Whether traffic goes beside the passes of every microbatch; otherwise all of it goes once, at the end of a step.
bool sends_beside_passes(const TrainingStep& inputs);

/// Lists the traffic of a stage.
DataTraffic data_traffic(const TrainingStep& inputs, std::int32_t stage);

}  // namespace shardscape::step
