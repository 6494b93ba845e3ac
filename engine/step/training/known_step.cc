#include "engine/step/training/known_step.h"

#include <algorithm>

namespace shardscape::step {

void PartsToPrice::find(const TrainingStep& in, const network::CollectivePrices& collectives,
                        const KnownStep* known) {
  stages_.assign(static_cast<std::size_t>(in.plan.pipeline), {});
  boundaries_ = pipeline_ = true;
  known_ = known;
  if (known == nullptr) return;
  boundaries_ = pipeline_ = !in.sick.empty() || collectives.touched(known->boundaries);
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const bool sick = std::ranges::any_of(in.sick, [&](const SickStage& of) { return of.stage == s; });
    const KnownStep::Links& links = known->links[s];
    Stage& stage = stages_[s];
    stage.passes = sick || collectives.touched(links.passes);
    stage.beside = stage.passes || collectives.touched(links.beside);
    stage.tail = sick || collectives.touched(links.tail);
    stage.data = collectives.touched(links.data);
    pipeline_ = pipeline_ || stage.beside;
  }
}

}  // namespace shardscape::step
