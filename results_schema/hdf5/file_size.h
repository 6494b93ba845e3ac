// How large a finished file is going to be, before there is any row of it.
#pragma once

#include <cstdint>

#include "results_schema/hdf5/manifest.h"

namespace shardscape::results {

/// Bytes of a finished file beside its packed chunks: headers, texts, the links, the indices of chunks and their
/// checksums. `rows`, `samples`: the rows that /points and /fault_samples are going to have.
std::uint64_t bytes_beside_chunks(const Manifest& manifest, std::uint64_t rows, std::uint64_t samples);

}  // namespace shardscape::results
