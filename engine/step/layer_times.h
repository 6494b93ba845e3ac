// What plans share of the times of their layers. On a healthy machine a pass of one microbatch through a layer
// depends on the degrees of the plan, the order of its ranks, the microbatch and what is recomputed, but not on the
// ZeRO stage, not on how the layers lie on stages and chunks, and of the schedule only on what it puts off. So do the
// passes through a stage of the same layers, and the messages between stages.
#pragma once

#include <array>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/model/stage_layers.h"
#include "engine/network/flow_set.h"
#include "engine/network/rank_group.h"
#include "engine/schedule/pipeline.h"
#include "engine/spec/plan.h"
#include "engine/step/pass_time.h"
#include "engine/step/price_layers.h"

namespace shardscape::step {

struct TrainingStep;

/// Of one layer. `weight` and `input` where some backward of it is cut.
struct LayerPasses {
  PassTime forward, backward, weight, input;
};

/// Backward of layers, one microbatch (the head's on average), each for itself: within a pass some wait less for the
/// host. 0 where the stage has none.
struct EndLayers {
  Seconds head, embedding;
  Seconds further;  ///< of all modules of further tokens
  Seconds blocks;   ///< likewise
};

/// One microbatch over all chunks of a stage, or over one.
struct StagePasses {
  PassTime forward, backward;
  Seconds weight,
      weight_host;  ///< the part of backward that zero_bubble puts off; of it what waits for the host
  EndLayers ends;
  PassTime deferred;  ///< once per step: weight gradients of the head
  Seconds hidden;     ///< by a pair of them
};

/// What the passes of a stage, or of a chunk, depend on beside the times of its layers.
struct StageKind {
  model::StageLayers layers;
  bool first = false, last = false;  ///< whether embedding and head are among them
  bool overlaps = false;             ///< forwards and backwards run in pairs
  std::int32_t deferred = 0;         ///< TrainingStep::deferred()
  friend bool operator==(const StageKind&, const StageKind&) = default;
};
struct KnownPasses {
  StageKind kind;
  StagePasses passes;
};
/// Of a chunk, no more than is asked for: there are many, and memory that is looked through takes time.
struct KnownChunk {
  StageKind kind;
  PassTime forward, backward;
  Seconds weight;
};
/// What a forward through one chunk and a backward through another hide of each other.
struct KnownPair {
  StageKind forward, backward;
  Seconds hidden;
};

/// What contention_of() needs to know of the calls of a stage with these layers.
struct ContendedCalls {
  struct Sent {
    std::size_t call = 0;  ///< of `calls`
    Seconds seconds;       ///< of all microbatches
    double shown = 1;      ///< what of a longer call work beside it does not hide
  };
  /// How the calls share links with traffic over these, where that lies beside all of the passes.
  struct Meeting {
    const network::LinkSet* links = nullptr;  ///< of the collective model
    Breakdown longer = {};                    ///< calls, by their classes
    Seconds late = {};                        ///< the sum of that
    Seconds done = {};  ///< of the traffic, beyond what it would have done alone in the time of the passes
  };
  model::StageLayers layers;
  bool first = false, last = false;  ///< as in StageKind
  Seconds siblings = {};             ///< what of all calls is due to the groups of other stages
  Seconds time = {};                 ///< of all calls, one after the other
  boost::container::small_vector<Meeting, 2> meetings = {};
  boost::container::small_vector<const model::CollectiveCall*, 8> calls = {};  ///< different ones
  boost::container::small_vector<Sent, 24> sent = {};  ///< few models have more: no memory is asked for
  boost::container::small_vector<Sent, 8> ends = {};  ///< of embedding, head and what predicts further tokens
  [[nodiscard]] bool of(const model::StageLayers& of_layers, bool begins, bool ends_there) const {
    return first == begins && last == ends_there && layers == of_layers;
  }
};

/// What is known of the layers of some plans; each entry is filled when it is first asked for.
struct LayerTimes {
  std::uint64_t id = 0;  ///< in a LayerTimesMemo: above 0, and of no other layers
  std::array<std::optional<LayerPasses>, kLayerKinds> layers;  ///< by LayerKind::index()
  std::vector<ContendedCalls> contended;                       ///< of the stages that were asked for
  std::vector<KnownPasses> stages;                             ///< likewise
  std::vector<KnownChunk> chunks;                              ///< of stages of several
  std::vector<KnownPair> pairs;                                ///< of their chunks
  std::optional<network::RankGroups> groups;
  std::array<std::optional<schedule::Transfer>, 2> transfers;  ///< between stages: of a chain, of a ring

  void forget() {
    for (std::optional<LayerPasses>& layer : layers) layer.reset();
    contended.clear();
    stages.clear();
    pairs.clear();
    chunks.clear();
    groups.reset();
    for (std::optional<schedule::Transfer>& transfer : transfers) transfer.reset();
  }
};

/// Of what training plans differ in.
std::uint64_t hash_of(const ParallelPlan& plan);

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
