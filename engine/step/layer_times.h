// What plans share of the times of their layers. On a healthy machine a pass of one microbatch through a layer
// depends on the degrees of the plan, the order of its ranks, the microbatch and what is recomputed, but not on the
// ZeRO stage, not on how the layers lie on stages and chunks, and of the schedule only on what it puts off.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/network/flow_set.h"
#include "engine/spec/plan.h"
#include "engine/step/pass_time.h"
#include "engine/step/price_layers.h"

namespace shardscape::step {

struct TrainingStep;

/// Of one layer. `weight` and `input` where some backward of it is cut.
struct LayerPasses {
  PassTime forward, backward, weight, input;
};

/// What contended_share() needs to know of the calls of a stage with these layers.
struct ContendedCalls {
  struct Sent {
    const model::CollectiveCall* call = nullptr;
    Seconds seconds;  ///< of all microbatches
  };
  /// Which of the calls share links with traffic over these.
  struct Meeting {
    const network::LinkSet* links = nullptr;  ///< of the collective model
    std::vector<char> meets;
  };
  model::StageLayers layers;
  Seconds siblings;  ///< what of all calls is due to the groups of other stages
  std::vector<Sent> sent;
  std::vector<Meeting> meetings;
};

/// What is known of the layers of some plans; each entry is filled when it is first asked for.
struct LayerTimes {
  std::uint64_t id = 0;  ///< in a LayerTimesMemo: above 0, and of no other layers
  std::array<std::optional<LayerPasses>, kLayerKinds> layers;  ///< by LayerKind::index()
  std::vector<ContendedCalls> contended;                       ///< of the stages that were asked for

  void forget() {
    for (std::optional<LayerPasses>& layer : layers) layer.reset();
    contended.clear();
  }
};

/// Exact: times are shared only by plans that agree in everything that they depend on. For one setting on one healthy
/// machine. Bounded: of plans with the same place in the table the last one is remembered.
class LayerTimesMemo {
 public:
  /// Valid until the next call.
  LayerTimes& of(const TrainingStep& inputs);

 private:
  struct Slot {
    ParallelPlan plan;  ///< with what layers do not mind set idle
    bool defers = false, used = false;
    LayerTimes times;
  };
  std::vector<Slot> slots_;
  std::uint64_t last_id_ = 0;
};

}  // namespace shardscape::step
