#include "results_schema/dimensions_io.h"

#include <hdf5_hl.h>

#include <array>
#include <cstdio>

#include "results_schema/samples_io.h"

namespace shardscape::results {

namespace {

Hid create_scale(const H5File& file, const std::string& path, std::uint64_t length) {
  const hsize_t size = length;
  const Hid space(H5Screate_simple(1, &size, nullptr));
  const Hid creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_obj_track_times(creation.get(), false);
  H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  Hid scale(file.check(H5Dcreate2(file.id(), path.c_str(), H5T_IEEE_F32BE, space.get(), H5P_DEFAULT,
                                  creation.get(), H5P_DEFAULT),
                       "can't write " + path));
  std::array<char, 80> name;
  std::snprintf(name.data(), name.size(), "This is a netCDF dimension but not a netCDF variable.%10llu",
                static_cast<unsigned long long>(length));
  if (H5DSset_scale(scale.get(), name.data()) < 0) file.fail("can't write " + path);
  return scale;
}

/// Gives all columns of a group one dimension.
void share_dimension(const H5File& file, const std::string& group, const std::string& dimension) {
  const std::vector<std::string> columns = file.children(group);
  if (columns.empty()) return;
  const Hid scale = create_scale(file, dimension, file.dataset(group + "/" + columns.front()).rows());
  for (const std::string& name : columns) {
    const Dataset column = file.dataset(group + "/" + name);
    if (H5DSattach_scale(column.id(), scale.get(), 0) < 0) column.fail("can't write its dimension");
  }
}

}  // namespace

void write_dimensions(const H5File& file) {
  share_dimension(file, "/points", "/point");
  if (file.has(kSamplesGroup)) share_dimension(file, kSamplesGroup, "/fault_sample");
  share_dimension(file, "/links", "/link");
  share_dimension(file, "/summary/status_counts", "/summary/status_count");
  share_dimension(file, "/summary/reason_counts", "/summary/reason_count");
  share_dimension(file, "/summary/pareto", "/summary/pareto_point");
  share_dimension(file, "/summary/top", "/summary/top_point");
}

}  // namespace shardscape::results
