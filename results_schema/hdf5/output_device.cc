#include "results_schema/hdf5/output_device.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "results_schema/hdf5/hdf5_io.h"

namespace shardscape::results {

namespace {

/// HDF5's state of a file of this driver; its first member is the part that HDF5 knows.
struct OpenFile {
  H5FD_t known_to_hdf5{};
  OutputDevice* device = nullptr;
  haddr_t allocated = 0;  ///< end of what HDF5 has allocated
  haddr_t written = 0;    ///< end of what has been written
};

OpenFile& open_file(H5FD_t* file) { return *reinterpret_cast<OpenFile*>(file); }
const OpenFile& open_file(const H5FD_t* file) { return *reinterpret_cast<const OpenFile*>(file); }

constexpr haddr_t kMostBytes = (haddr_t{1} << 62U) - 1;

H5FD_t* open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* const device = static_cast<OutputDevice* const*>(H5Pget_driver_info(access));
  if (device == nullptr) return nullptr;
  return &(new OpenFile{{}, *device, 0, 0})->known_to_hdf5;
}

herr_t close(H5FD_t* file) {
  delete &open_file(file);
  return 0;
}

/// The flags of HDF5's own driver of plain files, so that files are the same byte for byte.
herr_t features(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
           H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  return 0;
}

haddr_t allocated(const H5FD_t* file, H5FD_mem_t) { return open_file(file).allocated; }
herr_t set_allocated(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  open_file(file).allocated = end;
  return 0;
}
haddr_t written(const H5FD_t* file, H5FD_mem_t) { return open_file(file).written; }

herr_t read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, void* bytes) {
  return open_file(file).device->read(offset, {static_cast<std::byte*>(bytes), size}) ? 0 : -1;
}

herr_t write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t offset, std::size_t size, const void* bytes) {
  OpenFile& open = open_file(file);
  open.device->write(offset, {static_cast<const std::byte*>(bytes), size});
  open.written = std::max(open.written, offset + size);
  return 0;
}

herr_t truncate(H5FD_t* file, hid_t, hbool_t) {
  OpenFile& open = open_file(file);
  if (open.written != open.allocated) open.device->resize(open.allocated);
  open.written = open.allocated;
  return 0;
}

hid_t register_driver() {
  H5FD_class_t driver{};
  driver.name = "shardscape-output";
  driver.maxaddr = kMostBytes;
  driver.fc_degree = H5F_CLOSE_WEAK;
  driver.fapl_size = sizeof(OutputDevice*);
  driver.open = open;
  driver.close = close;
  driver.query = features;
  driver.get_eoa = allocated;
  driver.set_eoa = set_allocated;
  driver.get_eof = written;
  driver.read = read;
  driver.write = write;
  driver.truncate = truncate;
  constexpr H5FD_mem_t kFreeLists[] = H5FD_FLMAP_DICHOTOMY;
  std::ranges::copy(kFreeLists, driver.fl_map);
  return H5FDregister(&driver);
}

}  // namespace

OutputDevice::OutputDevice(const std::filesystem::path& path)
    : path_(path), file_(Descriptor::create(path)) {}

std::string OutputDevice::failure() const { return std::generic_category().message(error_); }

hid_t OutputDevice::create_file(hid_t creation) {
  static const hid_t kDriver = register_driver();
  const Hid access(H5Pcreate(H5P_FILE_ACCESS));
  OutputDevice* const self = this;
  if (H5Pset_driver(access.get(), kDriver, &self) < 0) return H5I_INVALID_HID;
  return H5Fcreate(path_.c_str(), H5F_ACC_TRUNC, creation, access.get());
}

void OutputDevice::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!failed() && !bytes.empty()) {
    const ssize_t count = ::pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error_ = count < 0 ? errno : EIO;
      break;
    }
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  if (!bytes.empty()) unwritten_.push_back({offset, {bytes.begin(), bytes.end()}});
}

bool OutputDevice::read(std::uint64_t offset, std::span<std::byte> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count =
        ::pread(file_.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  std::ranges::fill(bytes.subspan(done), std::byte{0});  // bytes allocated but not written yet read as zeros
  const std::uint64_t end = offset + bytes.size();
  for (const Unwritten& block : unwritten_) {
    const std::uint64_t from = std::max(offset, block.offset);
    const std::uint64_t to = std::min<std::uint64_t>(end, block.offset + block.bytes.size());
    if (from >= to) continue;
    std::ranges::copy(std::span(block.bytes).subspan(from - block.offset, to - from),
                      bytes.begin() + static_cast<std::ptrdiff_t>(from - offset));
  }
  return true;
}

void OutputDevice::resize(std::uint64_t size) {
  if (!failed() && ::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) error_ = errno;
}

}  // namespace shardscape::results
