// Iterations of a server as two half batches (two-batch overlap: SGLang's; DeepSeek 2025, "DeepSeek-V3/R1 inference
// system overview"): while the tokens of one half are on their way to their experts or back, the other half computes.
//
// A layer of experts on one half is  head | dispatch | experts | combine | tail,  and a run of such layers, for the
// halves A and B, in turn on every rank:
//
//   under way                    computes meanwhile
//   combine of B, layer before   tail of A of the layer before, head of A       (first layer: nothing is under way)
//   dispatch of A                tail of B of the layer before, head of B
//   dispatch of B                experts of A
//   combine of A                 experts of B
//   and behind the last layer
//   combine of B                 tail of A
//                                tail of B
//
// Every step of this list takes the longer of the two, for the share of an exchange that can hide
// (communication.expert_overlap); of what is hidden, 1 - communication.expert_hidden is lost again, as in training
// (paired_passes.h). What it costs: products of half as many rows, the weights of experts read twice, two launches.
//
// Layers without a dispatch over ranks of experts work on whole batches, as embedding and head do. An iteration of one
// token is not split; of an odd number both halves count as the larger one.
//
// Left out: calls of other groups (of tensor groups, of ranks that split an expert) hide nothing and count with the
// layer that they are of; executed, what is under way goes on beside them, too.
#pragma once

#include <array>
#include <boost/container/static_vector.hpp>
#include <cstdint>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/serving/server.h"
#include "engine/spec/stack.h"

namespace shardscape::step {

/// The pieces of a layer, which its exchanges separate.
enum class HalfPiece : std::uint8_t { head, experts, tail };
inline constexpr std::size_t kHalfPieces = 3;

struct TwoBatchStep {
  enum class Exchange : std::uint8_t { none, dispatch, combine };
  Exchange exchange = Exchange::none;  ///< the exchange that is under way during the step
  bool of_previous = false;            ///< the exchange belongs to the layer before
  bool tail_of_previous = false;       ///< compute begins with the tail of the layer before
  HalfPiece piece = HalfPiece::head;   ///< the piece of this layer that is computed then
};

/// Where a layer stands in a run of such layers.
struct PlaceInRun {
  bool first = false, last = false;
};

/// The steps of one layer, in order.
boost::container::static_vector<TwoBatchStep, 6> two_batch_steps(PlaceInRun place);

/// How much of an exchange of `comm` seconds hides beside `compute` seconds of the other half.
double hidden_by_half(const StackProfile::Communication& stack, double comm, double compute);

/// The larger half of an iteration.
serving::Iteration half_of(const serving::Iteration& iteration);
/// The number of tokens of the larger half.
constexpr std::int64_t half_of(std::int64_t tokens) { return (tokens + 1) / 2; }
/// Whether an iteration of so many tokens is split.
constexpr bool splits(double tokens) { return tokens >= 2; }

/// Visits the layers of a stage in order: calls whole(kind) for those that work on whole batches, and split(kind,
/// previous, place) for the others, where `previous` is the kind of the layer before in the run, or its own.
/// `in_halves(kind)` says which are split.
template <class InHalves, class Whole, class Split>
void each_layer(const model::StageLayers& layers, const InHalves& in_halves, const Whole& whole,
                const Split& split) {
  std::vector<std::size_t> kinds;
  layers.each([&](std::size_t kind) { kinds.push_back(kind); });
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (!in_halves(kinds[i])) {
      whole(kinds[i]);
      continue;
    }
    const bool first = i == 0 || !in_halves(kinds[i - 1]);
    const bool last = i + 1 == kinds.size() || !in_halves(kinds[i + 1]);
    split(kinds[i], first ? kinds[i] : kinds[i - 1], PlaceInRun{first, last});
  }
}

}  // namespace shardscape::step
