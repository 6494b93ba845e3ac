#include "engine/step/training/known_step.h"

#include <algorithm>
#include <array>

#include "engine/base/hash.h"

namespace shardscape::step {

namespace {
// A power of two: room for some hundred draws of faults for the plans of one choice of degrees; some megabytes.
constexpr std::size_t kSickPasses = 8192;
/// A power of two: room for the draws of faults for one choice of degrees.
constexpr std::size_t kSickStages = 1024;
}  // namespace

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
    pipeline_ = pipeline_ || stage.beside;
  }
}

SickPassesMemo::Place SickPassesMemo::passes_for(const Key& key) {
  slots_.resize(kSickPasses);
  const std::array<std::int64_t, 4> words = {static_cast<std::int64_t>(key.layers_id),
                                             static_cast<std::int64_t>(key.faults), key.stage, key.chunk};
  Slot& slot = slots_[hash_words(words) % kSickPasses];
  const bool known = slot.key == key;
  slot.key = key;
  return {slot.passes, known};
}

LayerTimes& SickPassesMemo::layers(const Key& key) {
  stages_.resize(kSickStages);
  const std::array<std::int64_t, 3> of = {static_cast<std::int64_t>(key.layers_id),
                                          static_cast<std::int64_t>(key.faults), key.stage};
  Stage& stage = stages_[hash_words(of) % kSickStages];
  if (stage.key != of) stage.layers.forget();
  stage.key = of;
  return stage.layers;
}

TrainingScratch::TrainingScratch()
    : known(std::make_unique<KnownStep>()),
      parts(std::make_unique<PartsToPrice>()),
      sick_passes(std::make_unique<SickPassesMemo>()),
      data_costs(std::make_unique<DataCostsMemo>()) {}
TrainingScratch::~TrainingScratch() = default;

const KnownStep* begin_step(const TrainingStep& in, const network::PlanLayout& layout,
                            const network::CollectivePrices& collectives, TrainingScratch& scratch,
                            bool anew) {
  KnownStep& known = *scratch.known;
  const KnownStep* use = nullptr;
  if (const network::LinkRecorder* const recorder = collectives.recorder()) {
    known = KnownStep();
    known.plan = in.plan;
    known.groups = layout.groups();
    known.layers_id =
        scratch.turns.any ? scratch.layer_times.next_id() : scratch.layer_times.times_for(in).id;
    known.links.resize(static_cast<std::size_t>(in.plan.pipeline));
    for (KnownStep::Links& links : known.links) links.passes = links.beside = links.tail = recorder->all();
    known.boundaries = recorder->all();
  } else if (!anew && known.layers_id > 0 && known.plan == in.plan && !scratch.reference &&
             !scratch.every_tail && !collectives.detours()) {
    use = &known;
    static_cast<StageTimes&>(scratch) = known.passes;
  }
  scratch.parts->find(in, collectives, use);
  return use;
}

void keep_pipeline(TrainingScratch& scratch) {
  scratch.known->transfer = scratch.transfer;
  scratch.known->end = scratch.end;
  scratch.known->end_without_transfers = scratch.end_without_transfers;
  scratch.known->chunk_end = scratch.chunk_end;
}

}  // namespace shardscape::step
