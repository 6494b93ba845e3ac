// What an iteration of a server runs, in order, told once: prices (price_iterations.h), programs of ranks
// (emit_iterations.h) and the operator table (inference_explain.cc) read it.
//
//   stage     the embedding on the first one, its blocks, the head on the last one where sequences get a token; then
//             the message to the next stage, which the sender waits for unless sends are asynchronous, or from the
//             last stage the tokens, back to the first
//   block     operators and calls of forward, in the order of layer_parts.h and hidden as overlap.h says; whole, or as
//             two half batches (two_batches.h), layer by layer
//   host      launches a block with nothing launched ahead, so that it ends not before it is launched; the gap between
//             its kernels follows; and it has a step of its own before the next iteration of the same sequences
//             (host_work.h says how long these are)
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/block_kinds.h"
#include "engine/model/stage_layers.h"
#include "engine/step/layers/two_batches.h"
#include "engine/step/serving/token_costs.h"

namespace shardscape::step {

/// How the requests of one replica are served.
struct ServingShape {
  std::int64_t groups = 1;    ///< groups per replica, 1..pipeline stages
  std::int64_t clients = 1;   ///< requests per group
  std::int64_t slots = 1;     ///< requests per group that are admitted at once
  std::int64_t resident = 1;  ///< requests per replica whose cache is kept in memory
  double cache_tokens = 0;    ///< tokens that the cache of one group has room for
  double token_bytes = 0;     ///< of one token's cache on the device with most; of a simulated load
  std::int64_t coupled = 1;   ///< replicas whose iterations go together (coupled_replicas)
};

/// One replica of a deployment.
struct InferenceInputs {
  const Setting& setting;
  const ParallelPlan& plan;
  const std::vector<model::StageLayers>& layers;  ///< index: stage
  ServingShape shape;
  /// Batches of the whole deployment that decode at once: of all replicas, idle or not, and of their groups.
  [[nodiscard]] double batches() const {
    return static_cast<double>(plan.data) * static_cast<double>(shape.groups);
  }
};

class IterationStream {
 public:
  /// All references must outlive this object.
  IterationStream(const InferenceInputs& inputs, TokenCosts& costs)
      : in_(inputs),
        costs_(costs),
        stack_(inputs.setting.system.stack),
        all_(model::all_layers(inputs.setting.model)) {}

  /// All blocks of the model.
  [[nodiscard]] const model::StageLayers& all_blocks() const { return all_; }

  /// The number of batches, 1 or 2, as which blocks of a kind run in an iteration of so many tokens.
  [[nodiscard]] std::int64_t batches(std::size_t kind, double tokens) const {
    return stack_.serving.two_batch_overlap && tokens >= 2 && costs_.deals(kind) ? 2 : 1;
  }
  [[nodiscard]] bool has_halves(double tokens) const {
    return std::ranges::any_of(all_,
                               [&](const model::BlockRun& run) { return batches(run.kind, tokens) > 1; });
  }
  /// How blocks of a kind run in an iteration of so many tokens: the tokens of each batch, and the member of the expert
  /// groups that takes longest.
  struct BlockWork {
    std::int64_t batches = 1, tokens = 1;
    std::int32_t slowest = model::LayerKey::kBusiest;
  };
  [[nodiscard]] BlockWork work_of(TokenTable table, std::size_t kind, std::int64_t tokens) const {
    const std::int64_t of_kind = batches(kind, static_cast<double>(tokens));
    const std::int64_t each = of_kind > 1 ? half_of(tokens) : tokens;
    return {of_kind, each, costs_.slowest_member(table, kind, each)};
  }
  /// Attention of one block on each of its batches.
  [[nodiscard]] AttentionSeconds attention(std::size_t kind, const serving::Iteration& iteration) const {
    const bool halves = batches(kind, iteration.prompt_tokens + iteration.decoding) > 1;
    return costs_.attention(kind, halves ? half_of(iteration) : iteration);
  }

  /// Reads the blocks of a stage in an iteration of so many tokens: whole(kind, count) for equal blocks one after the
  /// other (count = 1 in iterations with half batches), and halves(kind, previous, place) for each that runs as two
  /// half batches, where `previous` is the kind of the layer before in their run, or its own.
  template <class Whole, class Halves>
  void blocks(const model::StageLayers& layers, double tokens, const Whole& whole,
              const Halves& halves) const {
    if (!has_halves(tokens)) {
      for (const auto& [kind, count] : layers) whole(kind, count);
      return;
    }
    const std::span<const model::BlockRun> runs(layers.begin(), layers.end());
    const auto split = [&](std::size_t run) {
      return run < runs.size() && batches(runs[run].kind, tokens) > 1;
    };
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const auto [kind, count] = runs[run];
      const bool joins = run > 0 && split(run - 1), joined = split(run + 1);
      for (std::int32_t i = 0; i < count; ++i) {
        if (!split(run)) {
          whole(kind, 1);
          continue;
        }
        const PlaceInRun place{i == 0 && !joins, i + 1 == count && !joined};
        halves(kind, i == 0 && joins ? runs[run - 1].kind : kind, place);
      }
    }
  }

  /// Reads what a stage runs in an iteration in which `rows` sequences get a token, with calls of `reader` in order:
  /// end(layer) for embedding and head, blocks(layers), pass_on(stage, waits) for the message to the next stage, or
  /// tokens_back() for that from the last one to the first.
  template <class Reader>
  void stage(std::size_t stage, double rows, Reader& reader) const {
    const bool last = stage + 1 == in_.layers.size();
    if (stage == 0) reader.end(kEmbeddingLayer);
    reader.blocks(in_.layers[stage]);
    if (last && rows > 0) reader.end(kHeadLayer);
    if (!last) reader.pass_on(stage, !stack_.communication.pipeline_async);
    if (last) reader.tokens_back();
  }

 private:
  const InferenceInputs in_;
  TokenCosts& costs_;
  const StackProfile& stack_;
  const model::StageLayers all_;
};

}  // namespace shardscape::step
