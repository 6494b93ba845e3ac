// What the host of a rank takes, in training and in servers: nothing else in the engine reads StackProfile::Host.
//
//   training   a pass through a layer is launched in what its kernels take and its calls; where the host drives each
//              rank's transfers, by a second thread, in the longer of the two. Some time goes by once per step. Where
//              passes are CUDA graphs, nothing is launched, and less goes by (Setting::training_host())
//   servers    a block is launched at once, with its calls, for each batch that it works on (two_batches.h), and each
//              pays the gap between its kernels; embedding and head are part of what goes by once per iteration:
//              scheduling, and sampling and streaming a token of each sequence; one process may do the latter for all
//              replicas
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/spec/scenario.h"
#include "engine/step/layers/layer_parts.h"

namespace shardscape::step {

struct LayerKind;
struct TrainingStep;

/// Time of the host once per training step, before everything else.
Seconds once_per_step(const Setting& setting);
/// Seconds of the host before each pass of a chunk, where there is a pipeline.
Seconds pass_lead(const TrainingStep& in);

/// Host time of a pass through a layer. For each part this is its launches and those of its calls or, if longer, what
/// the library's thread needs to serve the calls. Of a backward that is cut the host launches both parts in proportion
/// to their kernels, those of shared experts left out; every call goes with the input gradient. An attention core that
/// is computed again is launched with the backward that needs it.
Seconds pass_launch(const TrainingStep& inputs, LayerKind kind, Pass pass);

/// The same as pass_launch(), for a pass that consists of these segments.
Seconds segments_launch(const TrainingStep& inputs, LayerKind kind, const Segments& segments);

/// How far the host is ahead of the device within a pass, at whose beginning they meet.
class HostLead {
 public:
  /// Moves on by `count` layers that run and launch alike. `meets`: the host meets the device in each of them. Returns
  /// how long the device waited for their launches.
  Seconds launch(double count, Seconds runs, Seconds launches, bool meets = false) {
    const Seconds ahead = meets ? runs - launches : lead_ + count * (runs - launches);
    lead_ = std::max(Seconds(0), ahead);
    return (meets ? count : 1) * std::max(Seconds(0), -1.0 * ahead);
  }

 private:
  Seconds lead_;
};

/// Seconds of the host in a server's block with so many calls in each of its batches.
struct BlockHost {
  double launch = 0, gap = 0;
};
BlockHost host_of_block(const StackProfile& stack, double calls, std::int64_t batches);

/// Seconds of the host between two iterations of the same sequences, of which `rows` get a token. `batches`: number of
/// batches of as many sequences that decode at once, of all replicas and of the groups that take turns on their stages.
struct IterationHost {
  double scheduling = 0, tokens = 0;
  [[nodiscard]] double total() const { return scheduling + tokens; }
};
IterationHost host_of_iteration(const StackProfile& stack, double batches, double rows);

}  // namespace shardscape::step
