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
// (communication.expert_overlap, overlap.h); of what is hidden, 1 - communication.expert_hidden is lost again, as in
// training (paired_passes.h). What it costs: products of half as many rows, the weights of experts read twice, two
// launches.
//
// Layers without a dispatch over ranks of experts work on whole batches, as embedding and head do. An iteration of one
// token is not split; of an odd number both halves count as the larger one.
//
// Left out: calls of other groups (of tensor groups, of ranks that split an expert) hide nothing and count with the
// layer that they are of; executed, what is under way goes on beside them, too.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/serving/server.h"

namespace shardscape::step {

/// A layer on one half of a batch, cut at its exchanges of experts: what it computes, and the exchanges.
template <class Compute, class Exchange>
struct HalfLayer {
  Compute head{}, experts{}, tail{};
  Exchange dispatch{}, combine{};
};

/// Where a layer stands in a run of such layers.
struct PlaceInRun {
  bool first = false, last = false;
};

/// Visits the steps of one layer in order: step(exchange, before, compute), where `exchange` is under way while
/// `before` and then `compute` run; the first two are null where there is none. `previous`: the layer before in the
/// run.
template <class Compute, class Exchange, class Step>
void each_half_step(const HalfLayer<Compute, Exchange>& layer, const HalfLayer<Compute, Exchange>& previous,
                    PlaceInRun place, const Step& step) {
  const Exchange* const none = nullptr;
  const Compute *const tail = place.first ? nullptr : &previous.tail, *const nothing = nullptr;
  step(place.first ? none : &previous.combine, tail, layer.head);
  step(&layer.dispatch, tail, layer.head);
  step(&layer.dispatch, nothing, layer.experts);
  step(&layer.combine, nothing, layer.experts);
  if (!place.last) return;
  step(&layer.combine, nothing, layer.tail);
  step(none, nothing, layer.tail);
}

/// The largest of `parts` equal parts of an iteration.
inline serving::Iteration part_of(const serving::Iteration& all, std::int64_t parts) {
  const auto number = static_cast<double>(parts);
  serving::Iteration part = all;
  part.decoding = std::ceil(all.decoding / number);
  if (all.decoding > 0) part.cached = all.cached * (part.decoding / all.decoding);
  for (double* const amount :
       {&part.prompt_tokens, &part.prompt_pairs, &part.masked_pairs, &part.window_pairs})
    *amount /= number;
  return part;
}
inline serving::Iteration half_of(const serving::Iteration& all) { return part_of(all, 2); }
/// The number of tokens of the larger half.
constexpr std::int64_t half_of(std::int64_t tokens) { return (tokens + 1) / 2; }

}  // namespace shardscape::step
