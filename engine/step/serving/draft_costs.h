// What speculative decoding costs: drafts by the iterations of a model of their own, and decode iterations that verify
// them.
//
//   verify  a decode iteration of s sequences works on s (1 + n) tokens; attention reads the cache of a sequence once
//           for all of its tokens (token_costs.h). What the host then does with each sequence (host.draft_sequence)
//           nothing hides
//   draft   n decode iterations of the drafting model, the first of them with the prompts that are read beside, whose
//           cache it needs, too. The host launches them like others, but schedules nothing in between
//
// A model's own module is its last layer with embedding and head; the projection in front of it is left out. A draft
// model has no experts over ranks, and as many ranks of a tensor group as its heads and widths divide by.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/serving/server.h"
#include "engine/spec/prediction.h"
#include "engine/step/serving/token_costs.h"

namespace shardscape::step {

/// Whether a load has drafts.
inline bool has_drafts(const WorkloadSpec& workload) {
  return workload.load && workload.load->speculation.draft_tokens > 0;
}

/// The model that drafts, and what plans share of its costs. Must not move.
struct Draft {
  explicit Draft(const Setting& target);
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  /// The plan by which it runs beside a plan of the model that it drafts for.
  [[nodiscard]] ParallelPlan plan(ParallelPlan target) const;

  Setting setting;
  std::vector<model::StageLayers> layers;  ///< of its one stage
  bool shares_ends;  ///< has embedding and head in common with the model that it drafts for
  /// Key: tensor, expert and expert tensor degree, redundant experts.
  std::map<std::array<std::int32_t, 4>, TokenCosts> costs;
};

/// Seconds of the host for each token that an iteration without drafts counts, and for each sequence whose drafts it
/// verifies.
struct SequenceHost {
  double token, accepted;
};

/// The time of an iteration with its drafts. `verify` gives the time of one that works on so many tokens; `draft` that
/// of one of the drafting model.
serving::Timer with_drafts(std::int64_t draft_tokens, SequenceHost host, serving::Timer verify,
                           serving::Timer draft);

/// The memory of the drafting model on a rank of a server's last stage: its weights, and its cache of so many requests
/// of `tokens` each.
MemoryUse draft_memory(const Draft& draft, const ParallelPlan& target, double requests, double tokens);

}  // namespace shardscape::step
