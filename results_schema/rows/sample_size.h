// The size of fault samples in a file.
#pragma once

#include <cstdint>
#include <span>

#include "results_schema/rows/records.h"

namespace shardscape::results {

/// Bytes that these rows of /fault_samples take in all columns, packed as blocks are.
std::uint64_t packed_bytes(std::span<const FaultSampleRecord> rows);

}  // namespace shardscape::results
