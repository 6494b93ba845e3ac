// Attention apart from experts in the pool that decodes (attention-FFN disaggregation): some of its GPUs hold
// attention, caches, embedding, head and layers without experts, the others nothing but experts (Zhu et al. 2025,
// "MegaScale-Infer", arXiv:2504.02263; StepFun 2025, "Step-3 is Large yet Affordable", arXiv:2507.19427).
//
//   ranks     the first data * tensor ranks of the pool are replicas of attention, the next `ffn` deal the experts of
//             every layer. All replicas send to all ranks of experts, so their iterations go together
//   batches   an iteration works on its sequences in `serving.ffn_batches` batches in turn: while the experts have one,
//             attention has another. A layer of a batch is
//
//               attention | dispatch | experts | combine | what follows the experts, with attention of the next layer
//
//             Attention, experts and either direction of the fabric take one batch at a time, in the order in which
//             they come
//   dispatch  a token goes to each rank that has one of its experts, once, and comes back from there once
//             (spec/token_copies.h); all pairs of ranks send equally much at once, so that the exchange lasts as long
//             as the link with most to carry. (Under max-min fair shares the flows of that link get the least of all,
//             and end last.)
//
// Balanced stages of MegaScale-Infer: with times a, f of attention and experts, c of one exchange, m batches and L
// layers, where a = f >= c and m f >= a + f + 2 c the iteration takes (a + f + 2 c) + f (m L - 1) (its equation 5).
//
// Left out: execution (iterations are priced in both modes), ranks of experts that get more tokens than others in the
// exchange, its traffic beside that of caches from the other pool, and the operator table of such a pool.
#pragma once

#include <span>

#include "engine/network/prices/collective_prices.h"
#include "engine/step/serving/inference.h"

namespace shardscape::step {

/// The plan whose layers the ranks of attention run; the plan itself where nothing is split.
ParallelPlan attention_side(ParallelPlan plan);
/// The plan whose layers the ranks of experts run: alone, with as many tokens each as they get from all replicas.
ParallelPlan expert_side(const ParallelPlan& plan);

/// One layer of one batch.
struct SplitLayer {
  serving::IterationTime attention{};  ///< seconds on the ranks of attention, up to its dispatch or its end
  bool deals = false;                  ///< whether it has experts; else the rest is not used
  double dispatch = 0, combine = 0;    ///< seconds
  serving::IterationTime experts{};    ///< seconds on the ranks of experts
  serving::IterationTime behind{};     ///< seconds on the ranks of attention after the combine
};
struct SplitRun {
  SplitLayer layer;
  std::int32_t count = 1;
};
/// Seconds of `batches` >= 1 batches through these layers, by what the last of them to end waits for.
serving::IterationTime run_split(std::span<const SplitRun> layers, std::int64_t batches);

/// Exchanges between the two kinds of ranks.
struct SplitFabric {
  double dispatch = 0, combine = 0;  ///< seconds for each byte of all ranks together
  double latency = 0;                ///< seconds of an exchange besides its bytes
  bool unreachable = false;          ///< dead links cut ranks off that have to talk
};
/// `pool`: the ranks of the fabric that decode, those of attention first.
SplitFabric split_fabric(const Setting& setting, const ParallelPlan& plan, std::span<const std::int32_t> pool,
                         network::PricedNetwork& network);

/// Prices iterations of the busiest replica of attention. All references must outlive the result.
serving::Timer split_timer(const InferenceInputs& inputs, const network::CollectivePrices& collectives,
                           InferenceMemo& memo, const SplitFabric& fabric);

/// Bytes of a rank of experts, where each replica of attention decodes at most `sequences` at once.
MemoryUse expert_ranks_memory(const Setting& setting, const ParallelPlan& plan,
                              const std::vector<model::StageLayers>& layers, std::int64_t sequences);

}  // namespace shardscape::step
