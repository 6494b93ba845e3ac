// Calls the HDF5 C library for the few things that result files need, checks every call, and refuses datasets whose
// headers promise more than the file holds.
#include "results_schema/hdf5/hdf5_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "results_schema/hdf5/column_attributes.h"
#include "results_schema/hdf5/output_device.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

// What xarray takes for a boolean: a number of one byte with this attribute.
constexpr const char* kDtype = "dtype";
constexpr const char* kBooleanDtype = "bool";

herr_t innermost(unsigned depth, const H5E_error2_t* error, void* text) {
  if (depth == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

[[noreturn]] void throw_store_error(const fs::path& path, std::string what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &reason);
  if (!reason.empty()) what += " (" + reason + ")";
  throw StoreError(path, what);
}

bool write_number_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  const Hid space(H5Screate(H5S_SCALAR));
  const Hid attribute(H5Acreate2(object, name, type, space.get(), H5P_DEFAULT, H5P_DEFAULT));
  return attribute.get() >= 0 && H5Awrite(attribute.get(), type, value) >= 0;
}

/// Writes a text as UTF-8 of a fixed length, its own or 1 if it is empty. (Of variable length HDF5 reads a damaged text
/// forever.)
bool write_text_attribute(hid_t object, const char* name, std::string_view text) {
  const std::string terminated(text);
  const Hid type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), std::max<std::size_t>(1, text.size()));
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  return write_number_attribute(object, name, type.get(), terminated.c_str());
}

/// The attribute of that name; StoreError where there is none.
Hid open_attribute(const H5File& file, const char* name) {
  if (H5Aexists(file.id(), name) <= 0) file.fail(std::string("has no attribute ") + name);
  return Hid(H5Aopen(file.id(), name, H5P_DEFAULT));
}

/// Writes a number as an attribute of the given integer or float type.
bool write_converted_attribute(hid_t object, const char* name, hid_t type, double value) {
  std::array<double, 1> bytes = {value};
  return H5Tconvert(H5T_NATIVE_DOUBLE, type, 1, bytes.data(), nullptr, H5P_DEFAULT) >= 0 &&
         write_number_attribute(object, name, type, bytes.data());
}

bool is_scalar(hid_t space) { return H5Sget_simple_extent_npoints(space) == 1; }

template <class T>
bool read_number_attribute(hid_t attribute, T& value) {
  const Hid type(H5Aget_type(attribute));
  const Hid space(H5Aget_space(attribute));
  return H5Tget_class(type.get()) == H5T_INTEGER && is_scalar(space.get()) &&
         H5Aread(attribute, native_type<T>(), &value) >= 0;
}

/// The text of an attribute; nothing where it is no text of fixed length, is too long, or HDF5 can't read it.
std::optional<std::string> read_text_attribute(hid_t attribute) {
  const Hid type(H5Aget_type(attribute));
  const Hid space(H5Aget_space(attribute));
  if (H5Tget_class(type.get()) != H5T_STRING || H5Tis_variable_str(type.get()) != 0 ||
      !is_scalar(space.get()))
    return std::nullopt;
  const std::size_t size = H5Tget_size(type.get());
  if (size > kMostTextBytes) return std::nullopt;
  std::string text(size, '\0');
  if (H5Aread(attribute, type.get(), text.data()) < 0) return std::nullopt;
  return text.substr(0, text.find('\0'));
}

constexpr unsigned kCompact = 4096;  // attributes or links of an object that lie in its header

Hid ordered_creation(hid_t kind) {
  Hid list = checked_creation(kind);
  H5Pset_link_creation_order(list.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  H5Pset_link_phase_change(list.get(), kCompact, kCompact);
  return list;
}

Hid dataset_creation(std::uint64_t chunk_rows, std::size_t width) {
  Hid list = checked_creation(H5P_DATASET_CREATE);
  if (chunk_rows == 0) return list;
  const hsize_t chunk = chunk_rows;
  H5Pset_chunk(list.get(), 1, &chunk);
  if (width > 1) H5Pset_shuffle(list.get());
  H5Pset_deflate(list.get(), 1);
  return list;
}

/// Access properties of files that lie in memory.
Hid access_in_memory() {
  constexpr std::size_t kGrowth = 1U << 20U;
  Hid access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_fapl_core(access.get(), kGrowth, false);
  return access;
}

/// Writes values in memory as chunks that we pack ourselves: HDF5's packing, by zlib, takes many times as long.
void write_packed(const Dataset& dataset, std::span<const std::byte> values, std::size_t width,
                  std::uint64_t chunk_rows) {
  ChunkPacker packer;
  std::vector<std::byte> plain(chunk_rows * width);
  for (std::uint64_t row = 0; row * width < values.size(); row += chunk_rows) {
    const auto rest = values.subspan(row * width);
    const auto rows = rest.first(std::min(rest.size(), plain.size()));
    std::ranges::fill(std::ranges::copy(rows, plain.begin()).out, plain.end(), std::byte{0});
    dataset.write_chunk(row, packer.pack(plain, width));
  }
}

std::vector<std::string> attribute_names(const H5File& file, hid_t object) {
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names) < 0)
    file.fail("can't list its attributes");
  return names;
}

}  // namespace

// Tracking the order of attributes gives object headers a checksum, and compact attributes and links stay inside such a
// header. So HDF5 reports damage instead of following garbage.
Hid checked_creation(hid_t kind) {
  Hid list(H5Pcreate(kind));
  H5Pset_attr_creation_order(list.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  H5Pset_attr_phase_change(list.get(), kCompact, kCompact);
  H5Pset_obj_track_times(list.get(), false);
  return list;
}

QuietErrors::QuietErrors() {
  static const herr_t kNoExitHandler = H5dont_atexit();  // fails without harm where HDF5 is already in use
  (void)kNoExitHandler;
  H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

QuietErrors::~QuietErrors() {
  H5Eclear2(H5E_DEFAULT);
  H5Eset_auto2(H5E_DEFAULT, function_, data_);
}

Hid memory_type(ColumnType type) {
  const auto copy = [](hid_t of) { return Hid(H5Tcopy(of)); };
  switch (type) {
    case ColumnType::u8:
    case ColumnType::boolean:
      return copy(native_type<std::uint8_t>());
    case ColumnType::i32:
      return copy(native_type<std::int32_t>());
    case ColumnType::u64:
      return copy(native_type<std::uint64_t>());
    case ColumnType::f4:
      return copy(native_type<float>());
    case ColumnType::f8:
      return copy(native_type<double>());
  }
  return Hid();
}

// ---- Dataset ----

Dataset::Dataset(const H5File& file, std::string path, Hid id, const Hid& creation)
    : file_path_(file.path()),
      output_(file.output_),
      sums_(file.sums_),
      path_(std::move(path)),
      id_(std::move(id)),
      chunk_rows_(chunk_rows_of(creation)) {}

void Dataset::fail(const std::string& what) const { throw_store_error(file_path_, path_ + ": " + what); }

std::uint64_t Dataset::rows() const {
  const Hid space(H5Dget_space(id()));
  hsize_t rows = 0;
  if (H5Sget_simple_extent_ndims(space.get()) != 1 ||
      H5Sget_simple_extent_dims(space.get(), &rows, nullptr) < 0) {
    fail("is not one-dimensional");
  }
  return rows;
}

std::uint64_t Dataset::chunk_rows_of(const Hid& creation) const {
  if (H5Pget_layout(creation.get()) != H5D_CHUNKED) return 0;
  hsize_t rows = 0;
  if (H5Pget_chunk(creation.get(), 1, &rows) != 1 || rows == 0) fail("has no readable chunk length");
  return rows;
}

ColumnType Dataset::column_type() const {
  if (text_attribute(kDtype) == kBooleanDtype && has_type(ColumnType::boolean)) return ColumnType::boolean;
  for (const auto type : {ColumnType::u8, ColumnType::i32, ColumnType::u64, ColumnType::f4, ColumnType::f8})
    if (has_type(type)) return type;
  fail("has a type that no column has");
}

bool Dataset::has_type(ColumnType type) const {
  const Hid own(H5Dget_type(id()));
  return H5Tequal(own.get(), memory_type(type).get()) > 0;
}

void Dataset::write_chunk(std::uint64_t row, std::span<const std::byte> bytes) const {
  const hsize_t offset = row;
  if (H5Dwrite_chunk(id(), H5P_DEFAULT, 0, &offset, bytes.size(), bytes.data()) < 0) fail("can't write");
  sums_->set(*first_sum_ + row / chunk_rows_, checksum_of(bytes));
  if (output_ != nullptr && output_->failed()) fail("can't write: " + output_->failure());
}

void Dataset::read_rows(ColumnType type, std::uint64_t begin, std::uint64_t end, void* values) const {
  check_stored(begin, end);
  if (begin < end) read_into(memory_type(type).get(), begin, end, values);
}

bool Dataset::is_packed_as_block(ColumnType type) const {
  const Hid list(H5Dget_create_plist(id()));
  const auto filter = [&](unsigned index) {
    unsigned flags = 0;
    std::size_t values = 0;
    return H5Pget_filter2(list.get(), index, &flags, &values, nullptr, 0, nullptr, nullptr);
  };
  const int filters = H5Pget_nfilters(list.get());
  if (size_of(type) == 1) return filters == 1 && filter(0) == H5Z_FILTER_DEFLATE;
  return filters == 2 && filter(0) == H5Z_FILTER_SHUFFLE && filter(1) == H5Z_FILTER_DEFLATE;
}

void Dataset::check_stored(std::uint64_t begin, std::uint64_t end) const {
  const std::uint64_t count = rows();
  if (begin > end || end > count) {
    fail(fmt::format("has {} rows, not {}", count, end));
  }
  // A damaged header may promise more rows than are stored: contiguous data would then read as zeros, missing chunks as
  // fill values.
  const std::uint64_t chunk = chunk_rows_;
  if (chunk == 0) {
    const Hid type(H5Dget_type(id()));
    if (count > 0 && H5Dget_storage_size(id()) / H5Tget_size(type.get()) != count) {
      fail("is not stored in full");
    }
    return;
  }
  const Hid space(H5Dget_space(id()));
  hsize_t stored = 0;
  if (H5Dget_num_chunks(id(), space.get(), &stored) < 0) fail("has no readable chunk index");
  if (stored != count / chunk + (count % chunk != 0 ? 1 : 0)) fail("is not stored in full");
}

void Dataset::read_into(hid_t memory_type, std::uint64_t begin, std::uint64_t end, void* out) const {
  check_sums(begin, end);
  const hsize_t start = begin;
  const hsize_t count = end - begin;
  const Hid file_space(H5Dget_space(id()));
  const Hid memory_space(H5Screate_simple(1, &count, nullptr));
  if (H5Sselect_hyperslab(file_space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr) < 0 ||
      H5Dread(id(), memory_type, memory_space.get(), file_space.get(), H5P_DEFAULT, out) < 0) {
    fail(fmt::format("can't read rows {} to {}", begin, end));
  }
}

std::optional<double> Dataset::number_attribute(const char* name) const {
  if (H5Aexists(id(), name) <= 0) return std::nullopt;
  const Hid attribute(H5Aopen(id(), name, H5P_DEFAULT));
  const Hid space(H5Aget_space(attribute.get()));
  double value = 0;
  if (!is_scalar(space.get()) || H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value) < 0)
    fail(fmt::format("attribute {} is not a number", name));
  return value;
}

std::optional<std::uint64_t> Dataset::integer_attribute(const char* name) const {
  if (H5Aexists(id(), name) <= 0) return std::nullopt;
  const Hid attribute(H5Aopen(id(), name, H5P_DEFAULT));
  std::uint64_t value = 0;
  if (!read_number_attribute(attribute.get(), value))
    fail(fmt::format("attribute {} is not an integer", name));
  return value;
}

void Dataset::add_checksums() {
  const std::uint64_t count = rows();
  first_sum_ = sums_->add(count / chunk_rows_ + (count % chunk_rows_ != 0 ? 1 : 0));
  if (!write_number_attribute(id(), kFirstChecksum, H5T_NATIVE_UINT64, &*first_sum_)) fail("can't write");
}

void Dataset::set_attribute(const char* name, std::string_view text) const {
  if (!write_text_attribute(id(), name, text)) fail(std::string("can't write attribute ") + name);
}

std::string Dataset::text_attribute(const char* name, std::string_view otherwise) const {
  if (H5Aexists(id(), name) <= 0) return std::string(otherwise);
  const Hid attribute(H5Aopen(id(), name, H5P_DEFAULT));
  const auto text = read_text_attribute(attribute.get());
  if (!text) fail(std::string("can't read attribute ") + name);
  return *text;
}

// ---- H5File ----

void H5File::fail(const std::string& what) const { throw_store_error(path_, what); }

hid_t H5File::check(hid_t id, const std::string& what) const {
  if (id < 0) fail(what);
  return id;
}

H5File H5File::create(const fs::path& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
  const auto output = std::make_shared<OutputDevice>(path);
  const Hid creation = ordered_creation(H5P_FILE_CREATE);
  H5File file(path, Hid(output->create_file(creation.get())), output);
  file.check(file.id(), "can't create");
  return file;
}

H5File H5File::create_image(const fs::path& label) {
  const Hid creation = ordered_creation(H5P_FILE_CREATE);
  const Hid access = access_in_memory();
  H5File file(label, Hid(H5Fcreate(label.c_str(), H5F_ACC_TRUNC, creation.get(), access.get())));
  file.check(file.id(), "can't build in memory");
  return file;
}

H5File H5File::open(const fs::path& path) { return open(path, H5P_DEFAULT); }

H5File H5File::open_whole(const fs::path& path) {
  const Hid access = access_in_memory();
  return open(path, access.get());
}

H5File H5File::open(const fs::path& path, hid_t access) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    const bool absent = status.type() == fs::file_type::not_found;
    throw StoreError(path, absent ? "no such file" : "can't open: " + error.message());
  }
  if (fs::is_directory(status)) throw StoreError(path, "is a folder, not a result file");
  if (!fs::is_regular_file(status)) throw StoreError(path, "is not a regular file");
  H5File file(path, Hid(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access)));
  file.check(file.id(), "is not a readable HDF5 file");
  file.read_checksums();
  return file;
}

std::vector<std::byte> H5File::image() {
  write_checksums();
  if (H5Fflush(id(), H5F_SCOPE_LOCAL) < 0) fail("can't build in memory");
  const ssize_t size = H5Fget_file_image(id(), nullptr, 0);
  if (size <= 0) fail("can't build in memory");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  if (H5Fget_file_image(id(), bytes.data(), bytes.size()) != size) fail("can't build in memory");
  return bytes;
}

void H5File::close() {
  write_checksums();
  if (H5Fflush(id(), H5F_SCOPE_LOCAL) < 0) fail("can't write");
  id_.reset();
  if (output_ != nullptr && output_->failed()) fail("can't write: " + output_->failure());
}

void H5File::check_link(const std::string& path) const {
  H5L_info_t info;
  if (H5Lget_info(id(), path.c_str(), &info, H5P_DEFAULT) < 0) fail("can't open " + path);
  if (info.type == H5L_TYPE_HARD) return;
  fail(fmt::format("{} is {} link; a result file holds all its data itself", path,
                   info.type == H5L_TYPE_SOFT ? "a soft" : "an external"));
}

bool H5File::has(const std::string& object) const {
  // HDF5 can only be asked about a path if each part before exists.
  for (std::size_t slash = object.find('/', 1);; slash = object.find('/', slash + 1)) {
    const std::string part = object.substr(0, slash);
    if (H5Lexists(id(), part.c_str(), H5P_DEFAULT) <= 0) return false;
    check_link(part);
    if (slash == std::string::npos) return true;
  }
}

std::vector<std::string> H5File::children(const std::string& group) const {
  if (group != "/" && !has(group)) fail("has no " + group);
  const Hid object(check(H5Gopen2(id(), group.c_str(), H5P_DEFAULT), group + " is not a group"));
  const Hid creation(H5Gget_create_plist(object.get()));
  unsigned flags = 0;
  H5Pget_link_creation_order(creation.get(), &flags);
  const H5_index_t index = (flags & H5P_CRT_ORDER_INDEXED) != 0 ? H5_INDEX_CRT_ORDER : H5_INDEX_NAME;
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  if (H5Literate(object.get(), index, H5_ITER_INC, nullptr, collect, &names) < 0) fail("can't list " + group);
  for (const std::string& name : names) check_link((group == "/" ? group : group + "/") + name);
  return names;
}

void H5File::create_group(const std::string& path) const {
  const Hid creation = ordered_creation(H5P_GROUP_CREATE);
  const Hid group(
      check(H5Gcreate2(id(), path.c_str(), H5P_DEFAULT, creation.get(), H5P_DEFAULT), "can't write " + path));
}

Dataset H5File::create_dataset(const std::string& path, hid_t type, hsize_t rows, const hsize_t* most,
                               std::uint64_t chunk_rows) const {
  const Hid space(H5Screate_simple(1, &rows, most)),
      creation = dataset_creation(chunk_rows, H5Tget_size(type));
  Hid created(
      check(H5Dcreate2(id(), path.c_str(), type, space.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT),
            "can't write " + path));
  return {*this, path, std::move(created), creation};
}

Dataset H5File::create_bare_column(const std::string& group, const ColumnInfo& column, std::uint64_t rows,
                                   std::uint64_t chunk_rows) const {
  const hsize_t unlimited = H5S_UNLIMITED;  // only with this may a chunk be longer than the table
  Dataset dataset =
      create_dataset(group + "/" + column.name, memory_type(column.type).get(), rows, &unlimited, chunk_rows);
  dataset.add_checksums();
  return dataset;
}

Dataset H5File::create_column(const std::string& group, const ColumnInfo& column, std::uint64_t rows,
                              std::uint64_t chunk_rows) const {
  Dataset dataset = create_bare_column(group, column, rows, chunk_rows);
  dataset.set_attribute("units", column.unit);
  dataset.set_attribute("long_name", column.long_name);
  dataset.set_attribute("group", name_of(column.group));
  if (column.type == ColumnType::boolean) dataset.set_attribute(kDtype, kBooleanDtype);
  if (column.better != Better::neither) dataset.set_attribute("better", name_of(column.better));
  if (!column.meanings.empty()) set_codes(dataset, column.type, column.meanings);
  const auto number = [&](const char* name, hid_t kind, double value) {
    if (!write_converted_attribute(dataset.id(), name, kind, value)) fail("can't write " + dataset.path());
  };
  if (column.fill) number("_FillValue", memory_type(column.type).get(), *column.fill);
  if (column.ordered) number("ordered", H5T_NATIVE_INT32, 1);
  if (column.levels > 0) {
    number("valid_min", memory_type(column.type).get(), 0);
    number("valid_max", memory_type(column.type).get(), column.levels - 1);
  }
  return dataset;
}

Dataset H5File::dataset(const std::string& path) const {
  if (!has(path)) fail("has no " + path);
  Hid opened(check(H5Dopen2(id(), path.c_str(), H5P_DEFAULT), path + " is not a readable dataset"));
  const Hid list(H5Dget_create_plist(opened.get()));
  if (H5Pget_external_count(list.get()) != 0 || H5Pget_layout(list.get()) == H5D_VIRTUAL)
    fail(path + " has its values in other files; a result file holds all its data itself");
  Dataset dataset(*this, path, std::move(opened), list);
  if (dataset.chunk_rows() > 0) dataset.first_sum_ = dataset.integer_attribute(kFirstChecksum);
  return dataset;
}

Dataset H5File::write_piece(const std::string& path, hid_t type, std::size_t count,
                            const void* values) const {
  Dataset dataset = create_dataset(path, type, count, nullptr, 0);
  if (count > 0 && H5Dwrite(dataset.id(), type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
    fail("can't write " + path);
  const std::uint32_t sum = checksum_of({static_cast<const std::byte*>(values), count * H5Tget_size(type)});
  if (!write_number_attribute(dataset.id(), kChecksum, H5T_NATIVE_UINT32, &sum)) fail("can't write " + path);
  return dataset;
}

Dataset H5File::write_chunks(const std::string& path, hid_t type, std::size_t count,
                             const void* values) const {
  const std::uint64_t chunk = std::min<std::size_t>(count, kMaxRowsPerBlock);
  const std::size_t width = H5Tget_size(type);
  Dataset dataset = create_dataset(path, type, count, nullptr, chunk);
  dataset.add_checksums();
  write_packed(dataset, {static_cast<const std::byte*>(values), count * width}, width, chunk);
  return dataset;
}

Dataset H5File::write_values(const std::string& path, hid_t type, std::size_t count, const void* values,
                             std::string_view unit, std::string_view long_name) const {
  constexpr std::size_t kCompressFrom = 1024;
  Dataset dataset = count < kCompressFrom ? write_piece(path, type, count, values)
                                          : write_chunks(path, type, count, values);
  dataset.set_attribute("units", unit);
  dataset.set_attribute("long_name", long_name);
  return dataset;
}

Dataset H5File::write_text(const std::string& path, std::string_view text, std::string_view long_name) const {
  return write_values(path, native_type<std::uint8_t>(), text.size(), text.data(), "1", long_name);
}

std::string H5File::read_text(const std::string& path) const {
  const Dataset text = dataset(path);
  if (!text.has_type(ColumnType::u8)) text.fail("is not a text");
  if (text.rows() > kMostTextBytes)
    text.fail(fmt::format("is a text of {} bytes; no text is longer than {}", text.rows(), kMostTextBytes));
  const std::vector<std::uint8_t> bytes = text.read_all<std::uint8_t>();
  return {bytes.begin(), bytes.end()};
}

void H5File::set_attribute(const char* name, std::string_view text) const {
  if (!write_text_attribute(id(), name, text)) fail(std::string("can't write attribute ") + name);
}
void H5File::set_attribute(const char* name, std::int64_t value) const {
  if (!write_number_attribute(id(), name, H5T_NATIVE_INT64, &value))
    fail(std::string("can't write attribute ") + name);
}
void H5File::set_attribute(const char* name, std::uint64_t value) const {
  if (!write_number_attribute(id(), name, H5T_NATIVE_UINT64, &value))
    fail(std::string("can't write attribute ") + name);
}

std::string H5File::text_attribute(const char* name) const {
  const auto text = read_text_attribute(open_attribute(*this, name).get());
  if (!text) fail(fmt::format("attribute {} is not a text", name));
  return *text;
}

std::uint64_t H5File::number_attribute(const char* name) const {
  std::uint64_t value = 0;
  if (!read_number_attribute(open_attribute(*this, name).get(), value))
    fail(fmt::format("attribute {} is not an integer", name));
  return value;
}

std::map<std::string, std::string> H5File::attributes() const {
  std::map<std::string, std::string> found;
  for (const std::string& name : attribute_names(*this, id())) {
    const Hid attribute(H5Aopen(id(), name.c_str(), H5P_DEFAULT));
    std::uint64_t number = 0;
    if (const auto text = read_text_attribute(attribute.get()))
      found[name] = *text;
    else if (read_number_attribute(attribute.get(), number))
      found[name] = std::to_string(number);
  }
  return found;
}

}  // namespace shardscape::results
