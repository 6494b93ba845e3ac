#include "results_schema/hdf5/dimensions_io.h"

#include <hdf5_hl.h>

#include <array>
#include <cstdio>

#include "results_schema/hdf5/samples_io.h"

namespace shardscape::results {

namespace {

Hid create_scale(const H5File& file, const std::string& path, std::uint64_t length) {
  const hsize_t size = length;
  const Hid space(H5Screate_simple(1, &size, nullptr));
  const Hid creation = checked_creation(H5P_DATASET_CREATE);
  Hid scale(file.check(H5Dcreate2(file.id(), path.c_str(), H5T_IEEE_F32BE, space.get(), H5P_DEFAULT,
                                  creation.get(), H5P_DEFAULT),
                       "can't write " + path));
  std::array<char, 80> name;
  std::snprintf(name.data(), name.size(), "This is a netCDF dimension but not a netCDF variable.%10llu",
                static_cast<unsigned long long>(length));
  if (H5DSset_scale(scale.get(), name.data()) < 0) file.fail("can't write " + path);
  return scale;
}

struct SharedDimension {
  const char* group;
  const char* scale;
};

/// The dimension that all columns of a group share. Some of the groups are not in every file.
constexpr std::array kDimensions = {SharedDimension{"/points", "/point"},
                                    SharedDimension{kSamplesGroup, "/fault_sample"},
                                    SharedDimension{"/links", "/link"},
                                    SharedDimension{"/summary/status_counts", "/summary/status_count"},
                                    SharedDimension{"/summary/reason_counts", "/summary/reason_count"},
                                    SharedDimension{"/summary/pareto", "/summary/pareto_point"},
                                    SharedDimension{"/summary/top", "/summary/top_point"}};

std::vector<Dataset> columns_of(const H5File& file, const std::string& group) {
  std::vector<Dataset> columns;
  if (!file.has(group)) return columns;
  for (const std::string& name : file.children(group)) columns.push_back(file.dataset(group + "/" + name));
  return columns;
}

}  // namespace

void write_dimensions(const H5File& file) {
  for (const auto& [group, path] : kDimensions) {
    const std::vector<Dataset> columns = columns_of(file, group);
    if (columns.empty()) continue;
    const Hid scale = create_scale(file, path, columns.front().rows());
    for (const Dataset& column : columns)
      if (H5DSattach_scale(column.id(), scale.get(), 0) < 0) column.fail("can't write its dimension");
  }
}

void check_dimensions(const H5File& file) {
  for (const auto& [group, path] : kDimensions) {
    const std::vector<Dataset> columns = columns_of(file, group);
    if (columns.empty()) continue;
    const Dataset scale = file.dataset(path);
    for (const Dataset& column : columns)
      if (H5DSis_attached(column.id(), scale.id(), 0) <= 0)
        column.fail("has lost its dimension " + scale.path());
  }
}

}  // namespace shardscape::results
