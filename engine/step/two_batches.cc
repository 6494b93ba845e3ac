#include "engine/step/two_batches.h"

#include <cmath>

#include "engine/step/overlap.h"

namespace shardscape::step {

boost::container::static_vector<TwoBatchStep, 6> two_batch_steps(PlaceInRun place) {
  using Exchange = TwoBatchStep::Exchange;
  const bool follows = !place.first;
  boost::container::static_vector<TwoBatchStep, 6> steps;
  steps.push_back({follows ? Exchange::combine : Exchange::none, follows, follows, HalfPiece::head});
  steps.push_back({Exchange::dispatch, false, follows, HalfPiece::head});
  steps.push_back({Exchange::dispatch, false, false, HalfPiece::experts});
  steps.push_back({Exchange::combine, false, false, HalfPiece::experts});
  if (!place.last) return steps;
  steps.push_back({Exchange::combine, false, false, HalfPiece::tail});
  steps.push_back({Exchange::none, false, false, HalfPiece::tail});
  return steps;
}

double hidden_by_half(const StackProfile::Communication& stack, double comm, double compute) {
  return hide(comm, stack.expert_overlap, compute);
}

serving::Iteration half_of(const serving::Iteration& all) {
  serving::Iteration half = all;
  half.decoding = std::ceil(all.decoding / 2);
  if (all.decoding > 0) half.cached = all.cached * (half.decoding / all.decoding);
  half.prompt_tokens = all.prompt_tokens / 2;
  half.prompt_pairs = all.prompt_pairs / 2;
  half.masked_pairs = all.masked_pairs / 2;
  half.window_pairs = all.window_pairs / 2;
  return half;
}

}  // namespace shardscape::step
