// An HDF5 file driver that writes through a descriptor of its own and never tells HDF5 that a write failed.
//
// HDF5 1.10 cannot close a file that it cannot flush: its memory is lost, the file stays open, and cleaning up at exit
// crashes over it. So a failed write (a full disk) is kept here, with what was to be written, as if it had succeeded:
// HDF5 reads back what it wrote and closes in order, and whoever writes the file asks failed() before trusting it.
// Private to this folder.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "results_schema/disk/files.h"

namespace shardscape::results {

/// The descriptor that the bytes of an HDF5 file go to. It must outlive the file's identifier in HDF5.
class OutputDevice {
 public:
  /// Creates `path`, which must not exist; StoreError where that fails.
  explicit OutputDevice(const std::filesystem::path& path);

  /// Whether any write failed, so that the file on the disk is not what HDF5 wrote.
  [[nodiscard]] bool failed() const { return error_ != 0; }
  /// The system's reason for the first failed write.
  [[nodiscard]] std::string failure() const;

  /// Creates the HDF5 file on this device with a creation property list; negative where HDF5 cannot.
  [[nodiscard]] hid_t create_file(hid_t creation);

  // Called by the driver.
  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> bytes) const;
  void resize(std::uint64_t size);

 private:
  /// Bytes that belong at an offset of the file but could not be written.
  struct Unwritten {
    std::uint64_t offset;
    std::vector<std::byte> bytes;
  };

  std::filesystem::path path_;
  Descriptor file_;
  int error_ = 0;                     ///< errno of the first call that failed; nothing is written after it
  std::vector<Unwritten> unwritten_;  ///< writes since then, in order
};

}  // namespace shardscape::results
