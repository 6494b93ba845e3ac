// Do readers of results survive any bytes? The first byte chooses what the rest stands for: a finished file,
// or a sweep that is running: the length of its manifest (four bytes, the lowest first), the manifest and its
// only sealed segment. Whatever is refused is refused by a StoreError; what is verified has problems that can
// be told.
#include <hdf5.h>
#include <sys/types.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "engine/base/check.h"
#include "results_schema/disk/files.h"
#include "results_schema/reading/reader.h"
#include "results_schema/reading/verify.h"
#include "tests/fuzz/scratch_file.h"

using namespace shardscape;

/// Read by the leak checker. HDF5 loses the block that it reads an object header into when its checksum is wrong
/// (H5O__chunk_deserialize), which no call gives back: some hundred bytes for each, and nothing else in files with bits
/// turned over; the corpus loses nothing. Only what its free lists hold is left out; handles are counted below.
extern "C" const char* __lsan_default_suppressions() { return "leak:H5FL_"; }

namespace {

std::size_t open_handles() {
  const ssize_t count = H5Fget_obj_count(static_cast<hid_t>(H5F_OBJ_ALL), H5F_OBJ_ALL);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

void read_everything(const std::filesystem::path& path) {
  try {
    const results::ResultReader reader(path);
    for (const results::ColumnInfo& column : reader.columns()) {
      const auto values = reader.read(column.name, {0, 1000});
      SHARDSCAPE_CHECK(values.size() <= 1000, column.name);
    }
    for (const results::ColumnInfo& column : reader.samples().columns())
      (void)reader.samples().read(column.name, {0, 1000});
    (void)reader.objectives();
    (void)reader.resolved_yaml();
    (void)reader.sources();
    (void)reader.links();
    (void)reader.link_dimensions();
    (void)reader.summary();
  } catch (const results::StoreError&) {  // refused, with a message
  }
}

void verify_everything(const std::filesystem::path& path) {
  try {
    for (const std::string& problem : results::verify(path).problems)
      SHARDSCAPE_CHECK(!problem.empty() && problem.find('\n') == std::string::npos, problem);
  } catch (const results::StoreError&) {  // refused, with a message
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const fuzz::ScratchFolder kFolder;
  if (data[0] % 2 == 0) {
    const std::filesystem::path file = kFolder.write("done.h5", data + 1, size - 1);
    read_everything(file);
    verify_everything(file);
    SHARDSCAPE_CHECK(open_handles() == 0, open_handles());
    return 0;
  }
  constexpr std::size_t kHead = 5;
  if (size < kHead) return 0;
  std::size_t manifest = 0;
  for (std::size_t byte = kHead; byte-- > 1;) manifest = manifest << 8 | data[byte];
  manifest = std::min(manifest, size - kHead);
  const std::filesystem::path parts = kFolder.path() / "run.h5.parts";
  std::filesystem::create_directories(parts);
  kFolder.write("run.h5.parts/manifest.h5", data + kHead, manifest);
  kFolder.write("run.h5.parts/blocks-000000000000-000000000009.h5", data + kHead + manifest,
                size - kHead - manifest);
  read_everything(parts);
  verify_everything(parts);
  SHARDSCAPE_CHECK(open_handles() == 0, open_handles());
  return 0;
}
