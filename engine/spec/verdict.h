// Whether a design point is a result, and if not, which rule it breaks.
#pragma once

#include <cstdint>

#include "engine/base/enum_names.h"

namespace shardscape {

enum class Status : std::uint8_t {
  ok,
  indivisible,
  constraint,
  memory,
  unreachable,
  unsupported,
  out_of_range,
  missed
};

/// Whether a point has a time: it is feasible, though it may miss what the study promises or asks for.
constexpr bool is_timed(Status status) { return status == Status::ok || status == Status::missed; }

/// Which rule a point that is not `ok` breaks first. Codes from the number of names on are bounds of a study
/// (results_schema/rows/limits.h): the one that the point misses by most.
enum class Reason : std::uint8_t {
  none,
  heads_by_tensor,           ///< heads % tp != 0
  kv_heads_by_tensor,        ///< neither kv_heads % tp == 0 nor tp % kv_heads == 0
  ffn_by_tensor,             ///< ffn_hidden % tp != 0, or the width of experts that the tensor group splits
  sequence_by_context,       ///< sequence_length % (2 * cp) != 0, or % (cp * tp) with sequence parallelism
  fewer_layers_than_stages,  ///< layers < pp * virtual_stages
  layers_by_pipeline,        ///< layers % (pp * virtual_stages) != 0 under a uniform partition
  batch_by_data,             ///< global_batch % (dp * microbatch) != 0
  microbatches_by_stages,    ///< interleaved: microbatches % pp != 0
  requests_by_data,          ///< concurrency % dp != 0
  constraint,                ///< a constraint of the study rejects it
  memory_capacity,           ///< the fullest device needs more than it has
  no_route,                  ///< a group has ranks that no route connects
  precision,                 ///< the device has no unit for the compute type
  schedule,                  ///< the schedule is not modelled for this plan
  out_of_range,              ///< a figure is infinite, no number, or beyond what is a result (see in_range)
  no_experts,                ///< the model has no experts for ep, etp or ffn_gpus
  experts_by_ranks,          ///< experts % ep != 0
  expert_width_by_ranks,     ///< expert_ffn_hidden % etp != 0
  ranks_by_experts,          ///< tp * cp * dp % (ep * etp) != 0; inference: ep * etp is not the tensor group
  repeated_tokens,           ///< experts beside tp without sequence parallelism
  layout,  ///< the stack's pipeline_layout is for other layers, or for another pp * virtual_stages
  microbatches_by_directions,  ///< dualpipe: an odd number of microbatches, or fewer than 2 * pp
  slots_by_ranks,  ///< (experts + redundant_experts) % ep != 0, or more than one of each for every rank
  overloaded,      ///< more requests come than servers with promises keep up with
  split_pool,      ///< ffn_gpus beside pp, cp or drafts, or with a single one
  no_steady_state,  ///< statistic: steady, and the requests that count show no steady state (LoadPrediction::unsteady)
};

}  // namespace shardscape
