// Result files as programs of schema version 1 wrote them.
#pragma once

#include <hdf5.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "results_schema/columns.h"
#include "results_schema/reader.h"

namespace shardscape::test {

/// Turns a finished file of version 2, in place, into what version 1 made of the same rows: nothing says how
/// the points were chosen; no dimension scales, missing marks or ordered columns; booleans are numbers of one
/// byte; /fault_samples/link_id is called link.
class OldLayout {
 public:
  static void convert(const std::filesystem::path& path) {
    std::vector<results::ColumnInfo> columns;
    {
      const results::ResultReader reader(path);
      columns = reader.columns();
    }
    OldLayout(path).run(columns);
  }

 private:
  explicit OldLayout(const std::filesystem::path& path)
      : file_(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)) {
    require(file_ >= 0, path.string());
  }
  ~OldLayout() { H5Fclose(file_); }

  void run(std::vector<results::ColumnInfo> columns) const {
    constexpr std::uint64_t kOne = 1;
    for (const char* name : {"study_points", "selection", "sample_seed", "shard"})
      require(H5Adelete(file_, name) >= 0, name);
    overwrite("schema_version", H5T_NATIVE_UINT64, &kOne);
    for (const char* group : {"/points", "/fault_samples", "/links", "/summary/status_counts",
                              "/summary/reason_counts", "/summary/pareto", "/summary/top"})
      strip(group);
    for (const char* scale : {"/boolean", "/point", "/fault_sample", "/link", "/summary/status_count",
                              "/summary/reason_count", "/summary/pareto_point", "/summary/top_point"}) {
      if (H5Lexists(file_, scale, H5P_DEFAULT) > 0) require(H5Ldelete(file_, scale, H5P_DEFAULT) >= 0, scale);
    }
    if (H5Lexists(file_, "/fault_samples", H5P_DEFAULT) > 0) {
      for (const results::ColumnInfo& column : results::fault_sample_columns())
        to_the_end("/fault_samples/" + column.name,
                   column.name == "link_id" ? "/fault_samples/link" : "/fault_samples/" + column.name);
    }
    plain_booleans(columns);
    for (const results::ColumnInfo& column : columns)
      to_the_end("/points/" + column.name, "/points/" + column.name);
    const std::string sum = results::columns_sha256(columns);
    const char* text = sum.c_str();
    const hid_t attribute = H5Aopen(file_, "columns_sha256", H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    require(H5Awrite(attribute, type, static_cast<const void*>(&text)) >= 0, "columns_sha256");
    H5Tclose(type);
    H5Aclose(attribute);
  }

  static void require(bool done, const std::string& what) {
    if (!done) throw std::runtime_error("old layout: " + what);
  }

  void overwrite(const char* name, hid_t type, const void* value) const {
    const hid_t attribute = H5Aopen(file_, name, H5P_DEFAULT);
    require(H5Awrite(attribute, type, value) >= 0, name);
    H5Aclose(attribute);
  }

  /// Attributes that version 1 did not write.
  void strip(const char* group) const {
    if (H5Lexists(file_, group, H5P_DEFAULT) <= 0) return;
    const hid_t object = H5Gopen2(file_, group, H5P_DEFAULT);
    const auto strip_one = [](hid_t parent, const char* name, const H5L_info_t*, void*) -> herr_t {
      const hid_t dataset = H5Dopen2(parent, name, H5P_DEFAULT);
      for (const char* attribute : {"DIMENSION_LIST", "_FillValue", "ordered", "valid_min", "valid_max"}) {
        if (H5Aexists(dataset, attribute) > 0) H5Adelete(dataset, attribute);
      }
      return H5Dclose(dataset);
    };
    require(H5Literate(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, strip_one, nullptr) >= 0, group);
    H5Gclose(object);
  }

  /// The stored bytes are the same; the dataset takes its old place at the end of the group.
  void plain_booleans(std::vector<results::ColumnInfo>& columns) const {
    for (results::ColumnInfo& column : columns) {
      if (column.type != results::ColumnType::boolean) continue;
      column.type = results::ColumnType::u8;
      const std::string path = "/points/" + column.name;
      const hid_t boolean = H5Dopen2(file_, path.c_str(), H5P_DEFAULT);
      const hid_t space = H5Dget_space(boolean), creation = H5Dget_create_plist(boolean);
      std::vector<std::uint8_t> values(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
      const hid_t type = H5Dget_type(boolean);
      require(H5Dread(boolean, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, path);
      const hid_t number =
          H5Dcreate2(file_, "/plain", H5T_NATIVE_UINT8, space, H5P_DEFAULT, creation, H5P_DEFAULT);
      require(H5Dwrite(number, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()) >= 0, path);
      const auto copy = [](hid_t from, const char* name, const H5A_info_t*, void* to) -> herr_t {
        const hid_t old = H5Aopen(from, name, H5P_DEFAULT);
        const hid_t kind = H5Aget_type(old), shape = H5Aget_space(old);
        const hid_t fresh = H5Acreate2(*static_cast<hid_t*>(to), name, kind, shape, H5P_DEFAULT, H5P_DEFAULT);
        char* text = nullptr;  // units, long_name and group: all texts
        H5Aread(old, kind, static_cast<void*>(&text));
        H5Awrite(fresh, kind, static_cast<const void*>(&text));
        H5free_memory(text);
        for (const hid_t attribute : {old, fresh}) H5Aclose(attribute);
        H5Tclose(kind);
        H5Sclose(shape);
        return 0;
      };
      hid_t target = number;
      H5Aiterate2(boolean, H5_INDEX_NAME, H5_ITER_INC, nullptr, copy, &target);
      for (const hid_t dataset : {boolean, number}) H5Dclose(dataset);
      H5Tclose(type);
      H5Sclose(space);
      H5Pclose(creation);
      require(H5Ldelete(file_, path.c_str(), H5P_DEFAULT) >= 0, path);
      require(H5Lmove(file_, "/plain", file_, path.c_str(), H5P_DEFAULT, H5P_DEFAULT) >= 0, path);
    }
  }

  /// Columns are listed in the order of their creation, and a moved one counts as new.
  void to_the_end(const std::string& path, const std::string& name) const {
    require(H5Lmove(file_, path.c_str(), file_, "/moving", H5P_DEFAULT, H5P_DEFAULT) >= 0, path);
    require(H5Lmove(file_, "/moving", file_, name.c_str(), H5P_DEFAULT, H5P_DEFAULT) >= 0, name);
  }

  hid_t file_;
};

}  // namespace shardscape::test
