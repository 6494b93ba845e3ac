#include "tests/support/datasets_equal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <vector>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"

namespace shardscape::test {
namespace {

using namespace results;

H5O_type_t object_type(const H5File& file, const std::string& path) {
  H5O_info_t info;
  if (H5Oget_info_by_name2(file.id(), path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT) < 0)
    file.fail("can't open " + path);
  return info.type;
}

void collect_datasets(const H5File& file, const std::string& group, std::vector<std::string>& paths) {
  for (const std::string& name : file.children(group.empty() ? "/" : group)) {
    const std::string path = group + "/" + name;
    if (path == kChecksumsGroup) continue;  // they follow from all else
    const H5O_type_t type = object_type(file, path);
    if (type == H5O_TYPE_GROUP) collect_datasets(file, path, paths);
    if (type == H5O_TYPE_DATASET) paths.push_back(path);
  }
}

std::vector<std::string> datasets_of(const H5File& file) {
  std::vector<std::string> paths;
  collect_datasets(file, "", paths);
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::byte> raw_rows(const Dataset& dataset, std::uint64_t begin, std::uint64_t end,
                                std::size_t width) {
  const Hid type(H5Dget_type(dataset.id()));
  const Hid space(H5Dget_space(dataset.id()));
  const hsize_t start = begin;
  const hsize_t count = end - begin;
  const Hid memory(H5Screate_simple(1, &count, nullptr));
  std::vector<std::byte> bytes(count * width);
  if (H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, &start, nullptr, &count, nullptr) < 0 ||
      H5Dread(dataset.id(), type.get(), memory.get(), space.get(), H5P_DEFAULT, bytes.data()) < 0) {
    dataset.fail("can't be read");
  }
  return bytes;
}

std::string show(const Dataset& dataset, std::uint64_t row) {
  std::ostringstream text;
  text.precision(17);
  text << dataset.read<double>(row, row + 1).front();
  return text.str();
}

std::optional<std::string> numbers_differ(const Dataset& a, const Dataset& b) {
  const Hid type_a(H5Dget_type(a.id()));
  const Hid type_b(H5Dget_type(b.id()));
  if (H5Tequal(type_a.get(), type_b.get()) <= 0) return a.path() + ": types differ";
  const std::uint64_t rows = a.rows();
  if (rows != b.rows()) {
    return fmt::format("{}: {} and {} rows", a.path(), rows, b.rows());
  }
  const std::size_t width = H5Tget_size(type_a.get());
  for (std::uint64_t begin = 0; begin < rows; begin += kMaxRowsPerBlock) {
    const std::uint64_t end = std::min<std::uint64_t>(rows, begin + kMaxRowsPerBlock);
    const auto bytes_a = raw_rows(a, begin, end, width);
    const auto bytes_b = raw_rows(b, begin, end, width);
    const auto at = std::ranges::mismatch(bytes_a, bytes_b).in1;
    if (at == bytes_a.end()) continue;
    const std::uint64_t row = begin + static_cast<std::uint64_t>(at - bytes_a.begin()) / width;
    return fmt::format("{} row {}: {} and {}", a.path(), row, show(a, row), show(b, row));
  }
  return std::nullopt;
}

std::optional<std::string> dataset_differs(const H5File& a, const H5File& b, const std::string& path) {
  const Dataset in_a = a.dataset(path);
  const Dataset in_b = b.dataset(path);
  if (in_a.text_attribute("units") != in_b.text_attribute("units")) return path + ": units differ";
  return numbers_differ(in_a, in_b);
}

std::optional<std::string> first_difference(const H5File& a, const H5File& b) {
  const auto paths_a = datasets_of(a);
  const auto paths_b = datasets_of(b);
  std::vector<std::string> only;
  std::ranges::set_symmetric_difference(paths_a, paths_b, std::back_inserter(only));
  if (!only.empty()) {
    const bool first = std::ranges::binary_search(paths_a, only.front());
    return only.front() + ": only in the " + (first ? "first" : "second") + " file";
  }
  for (const std::string& path : paths_a) {
    if (auto difference = dataset_differs(a, b, path)) return difference;
  }
  return std::nullopt;
}

}  // namespace

bool datasets_equal(const std::filesystem::path& a, const std::filesystem::path& b, std::string* difference) {
  const QuietErrors quiet;
  const H5File file_a = H5File::open(a);
  const H5File file_b = H5File::open(b);
  check_schema(file_a, kResultsSchema);
  check_schema(file_b, kResultsSchema);
  const auto found = first_difference(file_a, file_b);
  if (found && difference != nullptr) *difference = *found;
  return !found;
}

}  // namespace shardscape::test
