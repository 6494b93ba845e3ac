// Makes the file in memory without its chunks, and counts what their indices take.
#include "results_schema/hdf5/file_size.h"

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/tables_io.h"

namespace shardscape::results {

namespace {

/// Bytes of the index of a column (HDF5 File Format Specification, "Version 1 B-trees"): nodes of up to 64 entries, of
/// which those that are full have given a tenth to the next.
std::uint64_t index_bytes(std::uint64_t rows, std::uint64_t chunk_rows) {
  constexpr std::uint64_t kEntries = 64, kFilled = 58, kNode = 24 + (kEntries + 1) * 24 + kEntries * 8;
  const std::uint64_t chunks = rows / chunk_rows + (rows % chunk_rows != 0 ? 1 : 0);
  std::uint64_t nodes = 0;
  for (std::uint64_t level = chunks; level > 0;) {
    const std::uint64_t here = level <= kEntries ? 1 : level / kFilled + 1;
    nodes += here;
    level = here == 1 ? 0 : here;
  }
  return nodes * kNode;
}

}  // namespace

std::uint64_t bytes_beside_chunks(const Manifest& manifest, std::uint64_t rows, std::uint64_t samples) {
  const QuietErrors quiet;
  H5File file = H5File::create_image("size");
  write_manifest(file, kResultsSchema, manifest, manifest.run, true);
  std::uint64_t indices = 0;
  for (const ColumnInfo& column : manifest.columns) {
    const Dataset made = file.create_column("/points", column, rows, manifest.layout.rows_per_block);
    indices += index_bytes(rows, made.chunk_rows());
  }
  if (!manifest.sample_columns.empty()) {
    for (const Dataset& column : create_samples(file, manifest.sample_columns, samples))
      indices += index_bytes(samples, column.chunk_rows());
  }
  write_summary(file, {}, manifest.study.objectives, manifest.columns);
  write_dimensions(file);
  return file.image().size() + indices;
}

}  // namespace shardscape::results
