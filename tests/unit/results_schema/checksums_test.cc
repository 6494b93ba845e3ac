// Is everything that a result file holds covered by a checksum, and is nothing outside of the file followed?
#include "results_schema/hdf5/checksums.h"

#include <fmt/format.h>
#include <hdf5.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <set>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/reading/verify.h"
#include "tests/support/result_changes.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void put_content(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

void read_everything(const fs::path& path) {
  const ResultReader reader(path);
  for (const ColumnInfo& column : reader.columns()) (void)reader.read(column.name);
  for (const ColumnInfo& column : reader.samples().columns()) (void)reader.samples().read(column.name);
  (void)reader.summary();
}

/// What reading all of the file says where it refuses; empty where it does not.
std::string refusal(const fs::path& path) {
  try {
    read_everything(path);
  } catch (const StoreError& error) {
    return error.what();
  }
  return "";
}

/// The places of a number's bytes in a file.
std::vector<std::size_t> places_of(const std::string& bytes, std::uint64_t number) {
  std::string text(sizeof number, '\0');
  std::memcpy(text.data(), &number, sizeof number);
  std::vector<std::size_t> places;
  for (std::size_t at = bytes.find(text); at != std::string::npos; at = bytes.find(text, at + 1))
    places.push_back(at);
  return places;
}

/// Where the index of a column has the address of each chunk. Before it lies the key: length and filters of four bytes
/// each, the first row and a zero of eight bytes each.
std::vector<std::size_t> entries_of(const fs::path& path, const std::string& column) {
  std::vector<std::size_t> entries;
  const std::string bytes = content_of(path);
  test::change_file(path, [&](hid_t file) {
    const Hid dataset(H5Dopen2(file, column.c_str(), H5P_DEFAULT)), space(H5Dget_space(dataset.get()));
    hsize_t count = 0;
    H5Dget_num_chunks(dataset.get(), space.get(), &count);
    for (hsize_t i = 0; i < count; ++i) {
      hsize_t row = 0, size = 0;
      haddr_t address = 0;
      H5Dget_chunk_info(dataset.get(), space.get(), i, &row, nullptr, &address, &size);
      const std::vector<std::size_t> places = places_of(bytes, address);
      ASSERT_EQ(places.size(), 1U) << column << ' ' << i;
      entries.push_back(places.front());
    }
  });
  return entries;
}

constexpr std::size_t kKey = 24;

/// The bytes of one entry: length and filters, and the address.
struct Entry {
  std::string length, address;
};
Entry entry_at(const std::string& bytes, std::size_t at) {
  return {bytes.substr(at - kKey, 8), bytes.substr(at, 8)};
}
void put_entry(std::string& bytes, std::size_t at, const Entry& entry) {
  bytes.replace(at - kKey, 8, entry.length);
  bytes.replace(at, 8, entry.address);
}

TEST_F(ResultsTest, ChunksThatTheIndexHasElsewhereAreErrors) {
  const fs::path good = finished("good.h5", fake_manifest(300, 64), {{0, 5}}), bad = file("bad.h5");
  const std::string bytes = content_of(good);
  for (const std::string column : {"/points/mfu", "/points/point_id", "/points/status"}) {
    const std::vector<std::size_t> entries = entries_of(good, column);
    ASSERT_EQ(entries.size(), 5U);
    const auto expect_refused = [&](const char* what, std::string changed, const std::string& row) {
      put_content(bad, changed);
      const std::string expected =
          fmt::format("{}: the chunk of row {} is missing, or not what its checksum says", column, row);
      EXPECT_TRUE(contains(refusal(bad), expected)) << what << ": " << refusal(bad);
      EXPECT_TRUE(contains(store_error([&] { (void)verify(bad); }), expected)) << what;
      const auto parts = open_parts(std::array{bad});
      EXPECT_TRUE(contains(store_error([&] { merge(parts, file("all.h5"), {}); }), expected)) << what;
      EXPECT_FALSE(fs::exists(file("all.h5"))) << what;
    };
    std::string changed = bytes;
    put_entry(changed, entries[1], entry_at(bytes, entries[2]));
    put_entry(changed, entries[2], entry_at(bytes, entries[1]));
    expect_refused("swapped", changed, "64");
    changed = bytes;
    put_entry(changed, entries[3], entry_at(bytes, entries[0]));
    expect_refused("the wrong chunk", changed, "192");
    changed = bytes;
    changed[entries[4] - 2 * sizeof(std::uint64_t)] = 64;  // the lowest byte: row 256 becomes row 320
    expect_refused("of rows that are not there", changed, "256");
  }
}

// Each file is read by a process of its own: HDF5 keeps some memory of an object whose header it refuses, which is not
// ours to return.
TEST_F(ResultsTest, AFlippedByteOfAnAttributeIsSeen) {
  Manifest manifest = fake_manifest(300, 64);
  manifest.study.title = "the title of it all";
  manifest.study.assumptions = "assumed " + std::string(20'000, 'a') + " indeed";
  RunInfo run = manifest.run;
  run.command_line = "shardscape sweep --set " + std::string(5'000, 'x') + " ended";
  run.git_commit = "0123456789abcdef";
  const fs::path good = finished("good.h5", manifest, {{0, 5}}, run), bad = file("bad.h5");
  const std::string bytes = content_of(good), sha = study_sha256(manifest.study);
  for (const std::string& text : {manifest.study.title, std::string("a indeed"), std::string("x ended"),
                                  run.git_commit, sha, std::string("byte s-1"), std::string("long_name"),
                                  std::string("schema_version"), std::string("HBM bandwidth")}) {
    int places = 0;
    for (std::size_t at = bytes.find(text); at != std::string::npos;
         at = bytes.find(text, at + 1), ++places) {
      std::string changed = bytes;
      changed[at] = static_cast<char>(changed[at] ^ 1);
      put_content(bad, changed);
      EXPECT_EXIT(std::_Exit(refusal(bad).empty() ? 1 : 0), testing::ExitedWithCode(0), "")
          << text << " at " << at;
    }
    EXPECT_GT(places, 0) << text;
  }
}

/// What a walk over all objects of a file finds wrong.
using Found = std::vector<std::string>;

// A checksum of HDF5 covers what lies in the header of an object, and nothing that lies elsewhere.
herr_t find_uncovered(hid_t root, const char* name, const H5O_info_t* info, void* list) {
  auto& found = *static_cast<Found*>(list);
  if (info->hdr.version < 2) found.push_back(std::string(name) + ": its header has no checksum");
  if (info->meta_size.attr.heap_size > 0)
    found.push_back(std::string(name) + ": attributes outside its header");
  if (info->type != H5O_TYPE_DATASET) return 0;
  const Hid dataset(H5Dopen2(root, name, H5P_DEFAULT));
  const bool dimension = H5Aexists(dataset.get(), "CLASS") > 0;  // no values
  if (!dimension && H5Aexists(dataset.get(), kChecksum) <= 0 && H5Aexists(dataset.get(), kFirstChecksum) <= 0)
    found.push_back(std::string(name) + ": no checksum");
  return 0;
}

TEST_F(ResultsTest, EveryDatasetAndAttributeOfEveryFileIsCovered) {
  Manifest manifest = fake_manifest(300, 64);
  manifest.sample_columns.assign(fault_sample_columns().begin(), fault_sample_columns().end());
  manifest.search = SearchInfo{};
  const fs::path parts = parts_folder(file("out.h5"));
  SegmentStore store = SegmentStore::create(parts, manifest);
  seal(store, {{0, 2}, {2, 3}});
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(parts)) {
    if (entry.path().extension() != ".h5") continue;
    files.push_back(file(entry.path().filename()));
    fs::copy(entry.path(), files.back());
  }
  assemble(std::move(store), file("out.h5"), {});
  files.push_back(file("out.h5"));
  ASSERT_EQ(files.size(), 4U);
  for (const fs::path& path : files) {
    const Hid opened(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
    Found found;
    H5Ovisit2(opened.get(), H5_INDEX_NAME, H5_ITER_INC, find_uncovered, &found, H5O_INFO_ALL);
    EXPECT_EQ(found, Found()) << path;
  }
}

/// Collects where datasets in one piece lie in the file.
herr_t collect_pieces(hid_t root, const char* name, const H5O_info_t* info, void* map) {
  if (info->type != H5O_TYPE_DATASET) return 0;
  const Hid dataset(H5Dopen2(root, name, H5P_DEFAULT));
  const haddr_t at = H5Dget_offset(dataset.get());
  if (at != HADDR_UNDEF) (*static_cast<std::map<std::string, haddr_t>*>(map))[std::string("/") + name] = at;
  return 0;
}

TEST_F(ResultsTest, AFlippedByteOfASmallTableOrATextIsSeen) {
  const fs::path good = finished("good.h5", fake_manifest(300, 64), {{0, 5}}), bad = file("bad.h5");
  std::map<std::string, haddr_t> pieces;
  test::change_file(good, [&](hid_t opened) {
    H5Ovisit2(opened, H5_INDEX_NAME, H5_ITER_INC, collect_pieces, &pieces, H5O_INFO_BASIC);
  });
  const std::string bytes = content_of(good);
  std::set<std::string> groups;
  for (const auto& [path, at] : pieces) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 4);
    put_content(bad, changed);
    EXPECT_TRUE(contains(refusal(bad), path + ": is not what its checksum says"))
        << path << ": " << refusal(bad);
    groups.insert(path.substr(0, path.find('/', 1)));
  }
  EXPECT_EQ(groups, (std::set<std::string>{"/checksums", "/links", "/study", "/summary"}));
}

TEST_F(ResultsTest, NothingOutsideOfAFileIsFollowed) {
  const fs::path good = finished("good.h5", fake_manifest(300, 64), {{0, 5}}), bad = file("bad.h5");
  const auto refused = [&](const std::function<void(hid_t)>& change) {
    fs::copy_file(good, bad, fs::copy_options::overwrite_existing);
    test::change_file(bad, change);
    return refusal(bad);
  };
  const std::string soft = refused([](hid_t opened) {
    H5Ldelete(opened, "/points/mfu", H5P_DEFAULT);
    H5Lcreate_soft("/points/step_time_s", opened, "/points/mfu", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(soft, "bad.h5: /points/mfu is a soft link; a result file holds all its data itself"))
      << soft;
  const std::string external = refused([&](hid_t opened) {
    H5Ldelete(opened, "/links", H5P_DEFAULT);
    H5Lcreate_external(good.c_str(), "/links", opened, "/links", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_TRUE(contains(external, "bad.h5: /links is an external link;")) << external;
  std::ofstream(file("values.raw")) << std::string(2 * sizeof(double), '\1');
  const std::string values = refused([&](hid_t opened) {
    H5Ldelete(opened, "/links/latency_s", H5P_DEFAULT);
    const hsize_t count = 2;
    const Hid space(H5Screate_simple(1, &count, nullptr)), list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_external(list.get(), file("values.raw").c_str(), 0, H5F_UNLIMITED);
    const Hid made(H5Dcreate2(opened, "/links/latency_s", H5T_NATIVE_DOUBLE, space.get(), H5P_DEFAULT,
                              list.get(), H5P_DEFAULT));
    ASSERT_GE(made.get(), 0);
  });
  EXPECT_TRUE(contains(values, "bad.h5: /links/latency_s has its values in other files;")) << values;
}

TEST_F(ResultsTest, TextsOfMoreThanAnyTextAreNotRead) {
  const fs::path path = finished("out.h5", fake_manifest(300, 64), {{0, 5}});
  test::change_file(path, [](hid_t opened) {
    H5Ldelete(opened, "/study/resolved_yaml", H5P_DEFAULT);
    const hsize_t count = kMostTextBytes + 1, chunk = 1U << 20U;
    const Hid space(H5Screate_simple(1, &count, nullptr)), list(H5Pcreate(H5P_DATASET_CREATE));
    H5Pset_chunk(list.get(), 1, &chunk);
    const Hid made(H5Dcreate2(opened, "/study/resolved_yaml", H5T_NATIVE_UINT8, space.get(), H5P_DEFAULT,
                              list.get(), H5P_DEFAULT));
    ASSERT_GE(made.get(), 0);
  });
  const std::string message = refusal(path);
  EXPECT_TRUE(
      contains(message, "/study/resolved_yaml: is a text of 67108865 bytes; no text is longer than 67108864"))
      << message;
}

}  // namespace
}  // namespace shardscape::results
