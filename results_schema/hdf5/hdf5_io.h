// The small part of HDF5 that result files need; its errors become StoreError. Private to this folder.
//
// Public entry points of the folder open a QuietErrors first: HDF5 then prints nothing, and the innermost
// reason of its error stack goes into the exception instead.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "results_schema/disk/files.h"
#include "results_schema/hdf5/checksums.h"
#include "results_schema/rows/block.h"
#include "results_schema/rows/columns.h"

namespace shardscape::results {

/// Turns off HDF5's printing of errors on this thread within a scope. The first one also keeps HDF5 from cleaning up at
/// exit, as this folder closes what it opens.
class QuietErrors {
 public:
  QuietErrors();
  ~QuietErrors();
  QuietErrors(const QuietErrors&) = delete;
  QuietErrors& operator=(const QuietErrors&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// Owns one HDF5 identifier of any kind.
class Hid {
 public:
  Hid() = default;
  explicit Hid(hid_t id) : id_(id) {}
  ~Hid() { reset(); }
  Hid(Hid&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Hid& operator=(Hid&& other) noexcept {
    if (this != &other) {
      reset();
      id_ = std::exchange(other.id_, H5I_INVALID_HID);
    }
    return *this;
  }
  [[nodiscard]] hid_t get() const { return id_; }
  void reset() {
    if (id_ >= 0) H5Idec_ref(id_);
    id_ = H5I_INVALID_HID;
  }

 private:
  hid_t id_ = H5I_INVALID_HID;
};

/// A list of properties for creating a file, group or dataset, by which a checksum covers all of its attributes.
Hid checked_creation(hid_t kind);

/// The HDF5 type of a C++ type in memory.
template <class T>
hid_t native_type() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::is_same_v<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::is_same_v<T, std::uint32_t>) return H5T_NATIVE_UINT32;
  if constexpr (std::is_same_v<T, std::int64_t>) return H5T_NATIVE_INT64;
  if constexpr (std::is_same_v<T, std::uint64_t>) return H5T_NATIVE_UINT64;
  if constexpr (std::is_same_v<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::is_same_v<T, double>) return H5T_NATIVE_DOUBLE;
}
/// The HDF5 type in memory of a column's values; owned, so that no handle outlives its use.
Hid memory_type(ColumnType type);

/// The most bytes that are read at once of a text, or of another dataset in one piece.
inline constexpr std::uint64_t kMostTextBytes = std::uint64_t{64} << 20U;

class H5File;
class OutputDevice;

/// A 1-D dataset, found by name in a file that must outlive it. Every function that reads holds what is stored against
/// its checksums.
class Dataset {
 public:
  /// `creation`: the properties that it was created with.
  Dataset(const H5File& file, std::string path, Hid id, const Hid& creation);

  [[nodiscard]] hid_t id() const { return id_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::uint64_t rows() const;
  /// Rows per chunk; 0 where the dataset has no chunks.
  [[nodiscard]] std::uint64_t chunk_rows() const { return chunk_rows_; }
  /// The type of the dataset as a column type (u8 for the booleans of a segment); StoreError where it is none.
  [[nodiscard]] ColumnType column_type() const;
  [[nodiscard]] bool has_type(ColumnType type) const;

  /// Rows [begin, end) as packed values; StoreError unless they exist and all their chunks are stored.
  void read_rows(ColumnType type, std::uint64_t begin, std::uint64_t end, void* values) const;
  void write_chunk(std::uint64_t row, std::span<const std::byte> bytes) const;
  /// A function that calls write_chunk(), for interfaces that hand out chunks.
  [[nodiscard]] auto chunk_writer() const {
    return [this](std::uint64_t row, std::span<const std::byte> bytes) { write_chunk(row, bytes); };
  }
  /// Reads the stored bytes of the chunk that starts at `row`; more than `limit` of them is an error. Overwrites
  /// `bytes`.
  void read_chunk(std::uint64_t row, std::size_t limit, std::vector<std::byte>& bytes) const;
  /// As read_chunk(), but false where the chunk is missing, longer, unreadable, stored without one of the filters or
  /// not what its checksum says.
  bool try_read_chunk(std::uint64_t row, std::size_t limit, std::vector<std::byte>& bytes) const;
  /// Whether its filters are those that create_column() sets for the type.
  [[nodiscard]] bool is_packed_as_block(ColumnType type) const;
  /// StoreError unless rows [begin, end) exist and all chunks of the dataset are stored.
  void check_stored(std::uint64_t begin, std::uint64_t end) const;

  /// Converts rows [begin, end) to T; StoreError unless they exist and all their chunks are stored.
  template <class T>
  [[nodiscard]] std::vector<T> read(std::uint64_t begin, std::uint64_t end) const {
    std::vector<T> values;
    append(begin, end, values);
    return values;
  }
  /// Appends rows [begin, end), converted to T, to `values`.
  template <class T>
  void append(std::uint64_t begin, std::uint64_t end, std::vector<T>& values) const {
    check_stored(begin, end);
    if (begin == end) return;
    const std::size_t before = values.size();
    values.resize(before + (end - begin));
    read_into(native_type<T>(), begin, end, values.data() + before);
  }
  /// Reads rows from `begin` on into `values`, converted to T; the caller knows that all chunks are stored.
  template <class T>
  void read_to(std::uint64_t begin, std::span<T> values) const {
    read_into(native_type<T>(), begin, begin + values.size(), values.data());
  }
  template <class T>
  [[nodiscard]] std::vector<T> read_all() const {
    return read<T>(0, rows());
  }

  void set_attribute(const char* name, std::string_view text) const;
  [[nodiscard]] std::string text_attribute(const char* name, std::string_view otherwise = {}) const;
  /// A numeric attribute; nothing where there is none.
  [[nodiscard]] std::optional<double> number_attribute(const char* name) const;
  /// An integer attribute; nothing where there is none.
  [[nodiscard]] std::optional<std::uint64_t> integer_attribute(const char* name) const;
  /// Throws StoreError with the file, this dataset and the innermost HDF5 reason.
  [[noreturn]] void fail(const std::string& what) const;
  /// fail() of the chunk that starts at `row`.
  [[noreturn]] void fail_chunk(std::uint64_t row) const;

 private:
  friend class H5File;
  [[nodiscard]] std::uint64_t chunk_rows_of(const Hid& creation) const;
  /// Makes room for the checksums of its chunks, of a dataset that has just been created.
  void add_checksums();
  /// StoreError unless rows [begin, end) are stored as their checksums say.
  void check_sums(std::uint64_t begin, std::uint64_t end) const;
  void check_whole() const;
  void read_into(hid_t memory_type, std::uint64_t begin, std::uint64_t end, void* out) const;

  std::filesystem::path file_path_;
  std::shared_ptr<const OutputDevice> output_;  ///< shared with the file
  std::shared_ptr<ChunkChecksums> sums_;        ///< shared with the file
  std::string path_;
  Hid id_;
  std::uint64_t chunk_rows_ = 0;
  std::optional<std::uint64_t> first_sum_;  ///< place of the first checksum, of a dataset in chunks
  mutable bool whole_ = false;              ///< whether a dataset in one piece has been checked
};

/// An open HDF5 file. Files are written in the default (earliest) format, without time stamps, with children
/// in order of creation, and with checksums of all that they hold (checksums.h). What lies outside of the file, or
/// under another name in it, is not followed: such links and datasets are errors.
class H5File {
 public:
  /// Creates a file on the disk and replaces what lies at `path`. Data are on the disk only after close().
  static H5File create(const std::filesystem::path& path);
  /// Creates a file in memory; `label` is its name in error messages.
  static H5File create_image(const std::filesystem::path& label);
  static H5File open(const std::filesystem::path& path);
  /// Opens a file after reading all of it into memory.
  static H5File open_whole(const std::filesystem::path& path);

  [[nodiscard]] hid_t id() const { return id_.get(); }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The bytes of the whole file.
  [[nodiscard]] std::vector<std::byte> image();
  /// Writes out and closes the file; StoreError where that fails.
  void close();

  /// StoreError where a soft or external link leads there.
  [[nodiscard]] bool has(const std::string& object) const;
  [[nodiscard]] std::vector<std::string> children(const std::string& group) const;
  void create_group(const std::string& path) const;

  /// Creates a column whose chunks come already packed: shuffle (unless one byte wide) + deflate.
  [[nodiscard]] Dataset create_column(const std::string& group, const ColumnInfo& column, std::uint64_t rows,
                                      std::uint64_t chunk_rows) const;
  /// Creates a column without attributes, for a segment, whose columns the manifest describes.
  [[nodiscard]] Dataset create_bare_column(const std::string& group, const ColumnInfo& column,
                                           std::uint64_t rows, std::uint64_t chunk_rows) const;
  [[nodiscard]] Dataset dataset(const std::string& path) const;

  /// Writes a column of a small table; compressed from 1,024 values on.
  template <class T>
  Dataset write_values(const std::string& path, std::span<const T> values, std::string_view unit,
                       std::string_view long_name) const {
    return write_values(path, native_type<T>(), values.size(), values.data(), unit, long_name);
  }
  /// As the other write_values(), with one value of each row: `get` is a member of the rows, or a function of a row.
  template <class T, class Row, class Get>
  Dataset write_values(const std::string& path, const std::vector<Row>& rows, const Get& get,
                       std::string_view unit, std::string_view long_name) const {
    std::vector<T> values;
    values.reserve(rows.size());
    for (const Row& row : rows) values.push_back(std::invoke(get, row));
    return write_values<T>(path, values, unit, long_name);
  }
  /// The bytes of a text, which may be as long as kMostTextBytes.
  Dataset write_text(const std::string& path, std::string_view text, std::string_view long_name) const;
  [[nodiscard]] std::string read_text(const std::string& path) const;

  void set_attribute(const char* name, std::string_view text) const;
  void set_attribute(const char* name, std::int64_t value) const;
  void set_attribute(const char* name, std::uint64_t value) const;
  [[nodiscard]] std::string text_attribute(const char* name) const;
  [[nodiscard]] std::uint64_t number_attribute(const char* name) const;
  /// Attributes of the root as text; those that are neither text nor integers are left out.
  [[nodiscard]] std::map<std::string, std::string> attributes() const;

  /// Throws StoreError with this file's path and the innermost HDF5 reason.
  [[noreturn]] void fail(const std::string& what) const;
  hid_t check(hid_t id, const std::string& what) const;

 private:
  static H5File open(const std::filesystem::path& path, hid_t access);
  void read_checksums();
  void write_checksums() const;
  /// StoreError where the path, which exists, is a link that HDF5 would follow.
  void check_link(const std::string& path) const;
  /// Creates a dataset. `most`: rows that it may grow to; null: none. In one piece where `chunk_rows` is 0.
  [[nodiscard]] Dataset create_dataset(const std::string& path, hid_t type, hsize_t rows, const hsize_t* most,
                                       std::uint64_t chunk_rows) const;
  /// Creates a dataset in one piece, with its checksum.
  [[nodiscard]] Dataset write_piece(const std::string& path, hid_t type, std::size_t count,
                                    const void* values) const;
  /// Creates a dataset in packed chunks; `count` is not 0.
  [[nodiscard]] Dataset write_chunks(const std::string& path, hid_t type, std::size_t count,
                                     const void* values) const;
  H5File(std::filesystem::path path, Hid id, std::shared_ptr<const OutputDevice> output = nullptr)
      : path_(std::move(path)), output_(std::move(output)), id_(std::move(id)) {}
  Dataset write_values(const std::string& path, hid_t type, std::size_t count, const void* values,
                       std::string_view unit, std::string_view long_name) const;

  friend class Dataset;

  std::filesystem::path path_;
  /// Device of a file that is created on the disk; must outlive `id_`.
  std::shared_ptr<const OutputDevice> output_;
  std::shared_ptr<ChunkChecksums> sums_ = std::make_shared<ChunkChecksums>();  ///< of a new file those so far
  Hid id_;
};

}  // namespace shardscape::results
