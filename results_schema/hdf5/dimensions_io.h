// HDF5 dimension scales, by which netCDF readers (xarray, netCDF4, h5netcdf, ncdump) know which columns form a table.
// Private to this folder.
#pragma once

#include "results_schema/hdf5/hdf5_io.h"

namespace shardscape::results {

/// Adds the dimensions `point`, `fault_sample` and `link` to the root, where netCDF looks for what its groups
/// share, those of the summary's tables beside them, and gives each column its own. Call once, when all
/// tables are there.
///
/// A dimension is a dataset without storage whose NAME says that it is no variable (NetCDF-4 file format,
/// "Dimensions without HDF5 dimension scale variables"; HDF5 Dimension Scale Specification).
void write_dimensions(const H5File& file);

/// StoreError unless each column still has its dimension. HDF5 keeps no checksum of the references from a column to its
/// dimension, and may never return from following damaged ones.
void check_dimensions(const H5File& file);

}  // namespace shardscape::results
