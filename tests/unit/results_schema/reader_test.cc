// Does the reader see the same in parts and in the finished file, and does it refuse what it can't read?
#include "results_schema/reading/reader.h"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>

#include "results_schema/reading/verify.h"
#include "tests/support/paths.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

/// NaNs compare by their bits.
bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

TEST_F(ResultsTest, PartsReadAsTheFinishedFile) {
  const Manifest manifest = fake_manifest(1001, 64);
  const fs::path running = file("running.h5");
  const SegmentStore store = SegmentStore::create(parts_folder(running), manifest);
  seal(store, {{9, 7}, {0, 4}, {4, 5}});
  const ResultReader parts(running);  // only running.h5.parts exists
  const ResultReader done(finished("done.h5", manifest, {{0, 16}}));
  EXPECT_FALSE(parts.complete());
  EXPECT_TRUE(done.complete());
  EXPECT_EQ(parts.row_count(), done.row_count());
  EXPECT_EQ(parts.columns(), done.columns());
  EXPECT_EQ(done.columns(), manifest.columns);
  for (const ColumnInfo& column : done.columns()) {
    EXPECT_TRUE(same_bits(parts.read(column.name), done.read(column.name))) << column.name;
    EXPECT_TRUE(same_bits(parts.read(column.name, {200, 700}), done.read(column.name, {200, 700})))
        << column.name;
  }
  EXPECT_EQ(parts.point_ids(), done.point_ids());
  EXPECT_EQ(parts.resolved_yaml(), done.resolved_yaml());
  EXPECT_EQ(parts.sources(), done.sources());
  EXPECT_EQ(parts.objectives(), done.objectives());
  EXPECT_EQ(parts.links().size(), 2U);
  EXPECT_EQ(done.links()[1].latency_s, 5e-6);
  EXPECT_EQ(done.link_dimensions(), (std::vector<std::string>{"nvlink", "rail"}));
  EXPECT_EQ(parts.summary().pareto, done.summary().pareto);
  EXPECT_EQ(parts.summary().statuses, done.summary().statuses);
  EXPECT_EQ(parts.attributes().at("study_sha256"), done.attributes().at("study_sha256"));
  EXPECT_EQ(parts.attributes().at("complete"), "0");
  EXPECT_EQ(done.attributes().at("complete"), "1");
}

/// A finished file of version 2 of the schema: that of the fuzzers, which put a byte in front.
fs::path old_file(const fs::path& path) {
  std::ifstream in(fs::path(test::source_dir()) / "tests/fuzz/corpus/result/finished_version_2.bin",
                   std::ios::binary);
  in.ignore(1);
  std::ofstream(path, std::ios::binary) << in.rdbuf();
  return path;
}

// Their texts are not read: they are of variable length.
TEST_F(ResultsTest, FilesOfOtherVersionsAreRefusedBeforeTheirTextsAreRead) {
  const fs::path old = old_file(file("old.h5"));
  const auto refused = [](const std::string& message, const std::string& version) {
    for (const std::string& part : {"has schema version " + version + "; this program reads version 4",
                                    std::string("make the sweep again"), std::string("the release")})
      EXPECT_TRUE(contains(message, part)) << message;
  };
  refused(store_error([&] { const ResultReader reader(old); }), "2");
  refused(store_error([&] { (void)verify(old); }), "2");
  refused(store_error([&] { (void)open_parts(std::array{old}); }), "2");

  const fs::path later = finished("later.h5", fake_manifest(64, 64), {{0, 1}});
  const hid_t id = H5Fopen(later.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t attribute = H5Aopen(id, "schema_version", H5P_DEFAULT);
  constexpr std::uint64_t kVersion = 5;
  H5Awrite(attribute, H5T_NATIVE_UINT64, &kVersion);
  H5Aclose(attribute);
  H5Fclose(id);
  refused(store_error([&] { const ResultReader reader(later); }), "5");
}

// Fuzzers change what is readable: files of another version would end at the first look.
TEST_F(ResultsTest, SeedsOfTheFuzzersAreOfThisVersion) {
  const fs::path corpus = fs::path(test::source_dir()) / "tests/fuzz/corpus/result";
  for (const char* name : {"finished.bin", "stored_top.bin", "faults.bin"}) {
    std::ifstream in(corpus / name, std::ios::binary);
    in.ignore(1);
    std::ofstream(file(name), std::ios::binary) << in.rdbuf();
    EXPECT_GT(ResultReader(file(name)).row_count(), 0U) << name;
  }
  std::ifstream in(corpus / "running.bin", std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  std::uint32_t manifest = 0;
  std::memcpy(&manifest, bytes.data() + 1, sizeof manifest);
  fs::create_directory(file("run.h5.parts"));
  std::ofstream(file("run.h5.parts/manifest.h5"), std::ios::binary) << bytes.substr(5, manifest);
  std::ofstream(file("run.h5.parts/blocks-000000000000-000000000009.h5"), std::ios::binary)
      << bytes.substr(5 + manifest);
  EXPECT_GT(ResultReader(file("run.h5.parts")).row_count(), 0U);
}

// Whatever lies in an attribute or a dataset: nothing, letters of more than one byte, more than an object header holds.
TEST_F(ResultsTest, TextsOfAnyLengthReadBack) {
  Manifest manifest = fake_manifest(40, 4);
  manifest.study.title = "80 GB at 2 \xe2\x82\xac";
  manifest.study.resolved_yaml = std::string(100'000, 'x');
  manifest.study.sources = {{"empty.yaml", ""}, {"zero.yaml", std::string("a\0b", 3)}};
  ColumnInfo& codes = *std::ranges::find(manifest.columns, "fabric_algorithm", &ColumnInfo::name);
  codes.long_name = "";
  codes.meanings = {std::string(70'000, 'y'), "tree", "z"};
  const ResultReader reader(finished("out.h5", manifest, {{0, 10}}));
  EXPECT_EQ(reader.attributes().at("title"), manifest.study.title);
  EXPECT_EQ(reader.attributes().at("command_line"), "");
  EXPECT_EQ(reader.resolved_yaml(), manifest.study.resolved_yaml);
  EXPECT_EQ(reader.sources(), manifest.study.sources);
  EXPECT_EQ(reader.columns(), manifest.columns);
}

TEST_F(ResultsTest, RunningSweepShowsItsSealedRows) {
  const Manifest manifest = fake_manifest(100, 16);
  const SegmentStore store = SegmentStore::create(parts_folder(file("out.h5")), manifest);
  seal(store, {{0, 1}, {6, 1}});
  for (const fs::path& path : {file("out.h5"), file("out.h5.parts"), file("out.h5.parts/")}) {
    const ResultReader reader(path);
    EXPECT_EQ(reader.row_count(), 20U);
    EXPECT_EQ(reader.total_points(), 100U);
    EXPECT_EQ(reader.point_ids({15, 17}), (std::vector<std::uint64_t>{15, 96}));
  }
}

TEST_F(ResultsTest, UnknownColumnListsTheKnown) {
  const ResultReader reader(finished("out.h5", fake_manifest(10, 16), {{0, 1}}));
  const std::string message = store_error([&] { (void)reader.read("steptime"); });
  EXPECT_TRUE(contains(message, "has no column steptime")) << message;
  EXPECT_TRUE(contains(message, "step_time_s")) << message;
}

TEST_F(ResultsTest, ForeignFilesAreRefused) {
  EXPECT_TRUE(contains(store_error([&] { ResultReader{file("none.h5")}; }), "no such file"));
  std::ofstream(file("text.h5")) << "hello";
  EXPECT_TRUE(contains(store_error([&] { ResultReader{file("text.h5")}; }), "not a readable HDF5 file"));
  std::ofstream(file("nothing.h5")).flush();
  EXPECT_TRUE(contains(store_error([&] { ResultReader{file("nothing.h5")}; }), "not a readable HDF5 file"));
  fs::create_directory(file("folder"));
  EXPECT_TRUE(contains(store_error([&] { ResultReader{file("folder")}; }), "manifest.h5"));
  H5Fclose(H5Fcreate(file("other.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_TRUE(
      contains(store_error([&] { ResultReader{file("other.h5")}; }), "not a shardscape-results file"));
}

/// Every way of cutting a file short either reads as before or is an error; nothing crashes.
TEST_F(ResultsTest, TruncatedFilesAreErrors) {
  const fs::path whole = finished("out.h5", fake_manifest(300, 64), {{0, 5}});
  const auto size = fs::file_size(whole);
  for (int part = 0; part < 24; ++part) {
    const fs::path cut = file("cut.h5");
    fs::copy_file(whole, cut, fs::copy_options::overwrite_existing);
    fs::resize_file(cut, size * static_cast<std::uintmax_t>(part) / 24);
    EXPECT_THROW(ResultReader{cut}, StoreError) << part;
  }
}

/// Position and size in the file of the only chunk of a column.
std::pair<std::size_t, std::size_t> chunk_bytes(const fs::path& path, const std::string& column) {
  const hid_t hdf5 = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t dataset = H5Dopen2(hdf5, ("/points/" + column).c_str(), H5P_DEFAULT);
  const hsize_t offset = 0;
  unsigned mask = 0;
  haddr_t address = 0;
  hsize_t size = 0;
  H5Dget_chunk_info_by_coord(dataset, &offset, &mask, &address, &size);
  H5Dclose(dataset);
  H5Fclose(hdf5);
  return {address, size};
}

TEST_F(ResultsTest, DamagedDataIsAnErrorOrHarmless) {
  const fs::path whole = finished("out.h5", fake_manifest(60, 64), {{0, 1}});
  const ResultReader original(whole);
  std::ifstream in(whole, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(in)), {});
  CounterRng rng(5, 0);
  std::size_t errors = 0;
  for (const ColumnInfo& column : original.columns()) {
    const auto [address, size] = chunk_bytes(whole, column.name);
    ASSERT_GT(size, 0U);
    std::string broken = bytes;
    const auto bit = static_cast<unsigned>(rng.below(8));
    broken[address + rng.below(size)] ^= static_cast<char>(1U << bit);
    std::ofstream(file("broken.h5"), std::ios::binary) << broken;
    const ResultReader reader(file("broken.h5"));
    try {
      EXPECT_TRUE(same_bits(reader.read(column.name), original.read(column.name))) << column.name;
    } catch (const StoreError& error) {
      EXPECT_TRUE(contains(error.what(), "/points/" + column.name)) << error.what();
      ++errors;
    }
  }
  EXPECT_GT(errors, original.columns().size() * 3 / 4);
}

TEST_F(ResultsTest, MissingChunksAreNotFillValues) {
  const fs::path path = finished("out.h5", fake_manifest(300, 64), {{0, 5}});
  const hid_t hdf5 = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(hdf5, "/points/mfu", H5P_DEFAULT);
  const hsize_t size = 300, chunk = 64, unlimited = H5S_UNLIMITED;
  const hid_t space = H5Screate_simple(1, &size, &unlimited), creation = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(creation, 1, &chunk);
  H5Dclose(H5Dcreate2(hdf5, "/points/mfu", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Pclose(creation);
  H5Sclose(space);
  H5Fclose(hdf5);
  const ResultReader reader(path);
  EXPECT_TRUE(contains(store_error([&] { (void)reader.read("mfu"); }), "/points/mfu: is not stored in full"));
}

}  // namespace
}  // namespace shardscape::results
