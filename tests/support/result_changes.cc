#include "tests/support/result_changes.h"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "results_schema/hdf5/checksums.h"
#include "results_schema/hdf5/hdf5_io.h"

namespace shardscape::test {

namespace {

using namespace results;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error("can't renew checksums: " + what);
}

void write_number(hid_t object, const char* name, hid_t type, const void* value) {
  const Hid attribute(H5Aopen(object, name, H5P_DEFAULT));
  require(H5Awrite(attribute.get(), type, value) >= 0, name);
}

hsize_t rows_of(hid_t dataset) {
  const Hid space(H5Dget_space(dataset));
  return static_cast<hsize_t>(H5Sget_simple_extent_npoints(space.get()));
}

/// Of a dataset in one piece.
void renew_piece(hid_t dataset) {
  const Hid type(H5Dget_type(dataset));
  std::vector<std::byte> bytes(rows_of(dataset) * H5Tget_size(type.get()));
  require(bytes.empty() || H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()) >= 0,
          "values");
  const std::uint32_t sum = checksum_of(bytes);
  write_number(dataset, kChecksum, H5T_NATIVE_UINT32, &sum);
}

void add_chunks(hid_t dataset, hsize_t chunk, std::vector<std::uint32_t>& sums) {
  const std::uint64_t first = sums.size();
  for (hsize_t row = 0; row < rows_of(dataset); row += chunk) {
    hsize_t size = 0;
    std::uint32_t filters = 0;
    require(H5Dget_chunk_storage_size(dataset, &row, &size) >= 0, "size of a chunk");
    std::vector<std::byte> bytes(size);
    require(H5Dread_chunk(dataset, H5P_DEFAULT, &row, &filters, bytes.data()) >= 0, "chunk");
    sums.push_back(checksum_of(bytes));
  }
  write_number(dataset, kFirstChecksum, H5T_NATIVE_UINT64, &first);
}

herr_t renew(hid_t file, const char* name, const H5O_info_t* info, void* sums) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  const Hid dataset(H5Dopen2(file, name, H5P_DEFAULT)), list(H5Dget_create_plist(dataset.get()));
  hsize_t chunk = 0;
  if (H5Aexists(dataset.get(), kFirstChecksum) > 0 && H5Pget_chunk(list.get(), 1, &chunk) == 1)
    add_chunks(dataset.get(), chunk, *static_cast<std::vector<std::uint32_t>*>(sums));
  else if (H5Aexists(dataset.get(), kChecksum) > 0 && std::string("/") + name != kChunkChecksums)
    renew_piece(dataset.get());
  return 0;
}

}  // namespace

void change_file(const std::filesystem::path& path, const std::function<void(hid_t file)>& change) {
  const Hid file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT));
  require(file.get() >= 0, path.string());
  change(file.get());
}

void change_and_renew(const std::filesystem::path& path, const std::function<void(hid_t file)>& change) {
  change_file(path, change);
  change_file(path, [](hid_t file) {
    std::vector<std::uint32_t> sums;
    require(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, renew, &sums, H5O_INFO_BASIC) >= 0, "datasets");
    const Hid table(H5Dopen2(file, kChunkChecksums, H5P_DEFAULT));
    require(rows_of(table.get()) == sums.size(), "another number of chunks");
    require(H5Dwrite(table.get(), H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, sums.data()) >= 0,
            "sums");
    renew_piece(table.get());
  });
}

}  // namespace shardscape::test
