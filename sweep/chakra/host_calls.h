// Collectives that a trace has twice: as calls of the host and as the kernels that they start.
//
// PyTorch's observer records c10d and nccl operators, which Chakra's converter makes communication nodes of
// the CPU; what moves the data are the kernels of the GPU that its trace linker hangs below them, through
// nested calls or the operator record_param_comms. A call with no kernel below it is traffic that the trace
// lacks.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/timeline/execution_trace.h"

namespace shardscape::chakra {

/// Returns those of `calls` (ids of host nodes) below which no communication of the device hangs. O(nodes +
/// dependencies).
std::vector<std::uint64_t> calls_without_kernels(const timeline::RankTrace& rank,
                                                 const std::vector<std::uint64_t>& calls);

}  // namespace shardscape::chakra
