// Is damage found, named, and never followed into a loop or a crash?
#include <hdf5.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstring>

#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/reading/isolated.h"
#include "tests/support/datasets_equal.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

class DamageTest : public ResultsTest {
 protected:
  [[nodiscard]] fs::path parts() const { return file("out.h5.parts"); }
  static std::string bytes_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void zero(const fs::path& path, std::size_t at, std::size_t count) {
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out << std::string(count, '\0');
  }
  static void flip(const fs::path& path, std::size_t at) {
    const char byte = bytes_of(path).at(at);
    std::fstream out(path, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out.put(static_cast<char>(~byte));
  }
};

TEST_F(DamageTest, ResumeNamesEveryDamagedSegmentAndRepairComputesThemAgain) {
  const Manifest manifest = fake_manifest(40, 4);
  (void)SegmentStore::create(parts(), manifest);
  seal(SegmentStore::resume(parts(), manifest), {{0, 2}, {2, 2}, {4, 3}});
  // A byte of one, the last byte of the other.
  const fs::path second = parts() / "blocks-000000000002-000000000002.h5";
  const fs::path third = parts() / "blocks-000000000004-000000000003.h5";
  flip(second, fs::file_size(second) / 2);
  fs::resize_file(third, fs::file_size(third) - 1);
  const std::string message = store_error([&] { (void)SegmentStore::resume(parts(), manifest); });
  EXPECT_TRUE(contains(message, "--resume --repair")) << message;
  EXPECT_TRUE(contains(message, "blocks-000000000002-000000000002.h5: is not what its checksum says"));
  EXPECT_TRUE(contains(message, "blocks-000000000004-000000000003.h5: is not what its checksum says"));
  EXPECT_FALSE(contains(message, "blocks-000000000000")) << message;
  EXPECT_TRUE(fs::exists(second));
  EXPECT_EQ(verify(parts()).problems.size(), 2U);

  SegmentStore store = SegmentStore::resume(parts(), manifest, Damaged::recompute);
  EXPECT_EQ(store.removed(), (std::vector<std::string>{second.filename(), third.filename()}));
  EXPECT_EQ(store.missing(), (std::vector<BlockRange>{{2, 8}}));
  seal(store, {{2, 8}});
  assemble(std::move(store), file("out.h5"), {});
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(file("out.h5"), finished("whole.h5", manifest, {{0, 10}}), &difference))
      << difference;
}

TEST_F(DamageTest, DamagedManifestsAreNotFollowed) {
  const Manifest manifest = fake_manifest(40, 4);
  (void)SegmentStore::create(parts(), manifest);
  flip(parts() / "manifest.h5", 600);
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), manifest); }),
                       "manifest.h5: is damaged"));
  EXPECT_EQ(verify(parts()).problems,
            (std::vector<std::string>{"manifest.h5 is not what its checksum says"}));
}

// Earlier versions wrote parts folders without checksums.
TEST_F(DamageTest, VerifySaysWhatToDoWithFoldersOfEarlierVersions) {
  const Manifest manifest = fake_manifest(40, 4);
  (void)SegmentStore::create(parts(), manifest);
  seal(SegmentStore::resume(parts(), manifest), {{0, 2}, {2, 2}});
  constexpr std::size_t kLine = 1 + 7 + 64 + 1;  // newline, "sha256:", digits, newline
  const auto cut = [&](const fs::path& path) { fs::resize_file(path, fs::file_size(path) - kLine); };
  cut(parts() / "manifest.h5");
  EXPECT_EQ(
      verify(parts()).problems,
      (std::vector<std::string>{"manifest.h5 is not what its checksum says"}));  // the others have theirs
  cut(parts() / "blocks-000000000000-000000000002.h5");
  cut(parts() / "blocks-000000000002-000000000002.h5");
  for (const fs::path& path : {parts(), file("out.h5")}) {
    const Verification found = verify(path);
    ASSERT_EQ(found.problems.size(), 1U);
    for (const char* part :
         {"earlier versions", "finish the sweep with the version that began it", "--force"})
      EXPECT_TRUE(contains(found.problems.front(), part)) << found.problems.front();
  }
  EXPECT_EQ(ResultReader(parts()).row_count(), 16U);  // the rows that are there can be read
  const std::string message = store_error([&] { (void)SegmentStore::resume(parts(), manifest); });
  EXPECT_TRUE(contains(message, "of an earlier version of the program; finish the sweep with that version"));
}

/// Where the global heaps of a file are.
std::vector<std::size_t> heaps_in(const std::string& bytes) {
  std::vector<std::size_t> found;
  for (std::size_t at = bytes.find("GCOL"); at != std::string::npos; at = bytes.find("GCOL", at + 1))
    found.push_back(at);
  return found;
}

/// Why `read` refuses; empty where it does not. Where HDF5 never comes back, SIGPROF ends the process.
template <class Read>
std::string refusal_in_time(const Read& read) {
  constexpr itimerval kSeconds = {{0, 0}, {10, 0}};  // limit of CPU time
  constexpr itimerval kOff = {{0, 0}, {0, 0}};
  ::setitimer(ITIMER_PROF, &kSeconds, nullptr);
  std::string message;
  try {
    read();
  } catch (const StoreError& error) {
    message = error.what();
  }
  ::setitimer(ITIMER_PROF, &kOff, nullptr);
  return message;
}

void read_all(const fs::path& path) {
  const ResultReader reader(path);
  for (const ColumnInfo& column : reader.columns()) (void)reader.read(column.name);
  (void)reader.summary();
}

// HDF5 1.10 reads a heap forever where an object has no length. Only the references of columns to their dimensions
// lie in one: this program's readers do not follow them, and verification does so in a process of its own.
TEST_F(DamageTest, ReadersFollowNoHeapAndVerifyEndsWhereHdf5Loops) {
  const fs::path good = finished("good.h5", fake_manifest(40, 4), {{0, 10}});
  const fs::path bad = file("bad.h5");
  const std::vector<std::size_t> heaps = heaps_in(bytes_of(good));
  ASSERT_EQ(heaps.size(), 1U);
  const std::vector<std::string> known = verify(good).problems;  // the rows are made up
  ASSERT_FALSE(known.empty());
  EXPECT_EQ(verify_isolated(good).problems, known);
  for (const std::size_t from : {heaps[0], heaps[0] + 8, heaps[0] + 16, heaps[0] + 512}) {
    fs::copy_file(good, bad, fs::copy_options::overwrite_existing);
    zero(bad, from, 512);
    read_all(bad);
    EXPECT_EQ(verify(bad).problems, known);
    // What was found before the dimensions is told, too.
    const std::vector<std::string> found = verify_isolated(bad, std::chrono::seconds(1)).problems;
    ASSERT_EQ(found.size(), known.size() + 1) << from - heaps[0];
    EXPECT_TRUE(std::ranges::equal(std::span(found).first(known.size()), known)) << from - heaps[0];
  }
}

TEST_F(DamageTest, FilesOfARunningSweepHaveNoHeaps) {
  const Manifest manifest = fake_manifest(40, 4);
  seal(SegmentStore::create(parts(), manifest), {{0, 10}});
  for (const auto& entry : fs::directory_iterator(parts()))
    EXPECT_EQ(heaps_in(bytes_of(entry.path())), std::vector<std::size_t>()) << entry.path();
}

// HDF5 finds its part of a file behind whatever else begins it, and counts addresses from there.
TEST_F(DamageTest, TextsAreFoundBehindAUserBlock) {
  const fs::path path = finished("out.h5", fake_manifest(40, 4), {{0, 10}});
  const fs::path later = file("later.h5");
  std::ofstream(later, std::ios::binary) << std::string(512, '#') << bytes_of(path);
  const ResultReader here(path), there(later);
  EXPECT_EQ(there.attributes(), here.attributes());
  EXPECT_EQ(there.resolved_yaml(), here.resolved_yaml());
  EXPECT_EQ(there.columns(), here.columns());
  EXPECT_EQ(verify(later).problems, verify(path).problems);
}

// HDF5 checks what has a checksum, and decodes the rest as it is.
TEST_F(DamageTest, EveryObjectHeaderHasAChecksum) {
  const fs::path path = finished("out.h5", fake_manifest(40, 4), {{0, 10}});
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  std::vector<std::string> without;
  const auto look = [](hid_t, const char* name, const H5O_info_t* info, void* list) -> herr_t {
    if (info->hdr.version < 2) static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  EXPECT_GE(H5Ovisit2(id, H5_INDEX_NAME, H5_ITER_INC, look, &without, H5O_INFO_HDR), 0);
  H5Fclose(id);
  EXPECT_EQ(without, std::vector<std::string>());
}

// Whatever byte or word of a file is another: readers end, and throw nothing but a StoreError.
TEST_F(DamageTest, NoWordOfAFileKeepsReadersFromEnding) {
  const fs::path good = finished("good.h5", fake_manifest(40, 4), {{0, 10}});
  const std::string bytes = bytes_of(good);
  const fs::path bad = file("bad.h5");
  fs::copy_file(good, bad);
  constexpr int kChanges = 300;
  constexpr std::uint64_t kSeed = 20261122;
  const auto in_a_child = [&] {
    CounterRng rng(kSeed, 0);
    std::fstream out(bad, std::ios::binary | std::ios::in | std::ios::out);
    const auto put = [&](std::size_t at, const std::string& word) {
      out.seekp(static_cast<std::streamoff>(at));
      out << word << std::flush;
    };
    int refused = 0;
    for (int change = 0; change < kChanges; ++change) {
      const std::size_t size = rng.below(2) == 0 ? 1 : 8;
      const std::size_t at = rng.below(bytes.size() / size) * size;
      std::string word(size, '\0');
      const auto kind = rng.below(4);  // 0: zeros, 1: ones, 2: a small number, 3: anything
      for (std::size_t i = 0; i < size; ++i) {
        const bool any = kind == 3 || (kind == 2 && i == 0);
        word[i] = kind == 1 ? '\xff' : any ? static_cast<char>(rng.below(256)) : '\0';
      }
      std::cerr << at << ' ' << size << ' ' << kind << '\n';
      put(at, word);
      if (!refusal_in_time([&] { read_all(bad); }).empty()) ++refused;
      put(at, bytes.substr(at, size));
    }
    const bool both = refused > 0 && refused < kChanges && refusal_in_time([&] { read_all(bad); }).empty();
    ::_exit(both ? 0 : 1);
  };
  EXPECT_EXIT(in_a_child(), testing::ExitedWithCode(0), "");
}

TEST_F(DamageTest, VerificationInAProcessOfItsOwnSaysTheSame) {
  const Manifest manifest = fake_manifest(40, 4);
  const fs::path good = finished("good.h5", manifest, {{0, 10}});
  EXPECT_EQ(verify_isolated(good).rows, 40U);
  EXPECT_EQ(verify_isolated(good).problems, verify(good).problems);
  const auto none = [&] { (void)verify_isolated(file("none.h5")); };
  EXPECT_EQ(store_error(none), store_error([&] { (void)verify(file("none.h5")); }));
}

/// Changes a finished file with HDF5's own functions.
template <class Change>
void change(const fs::path& path, const Change& with) {
  const hid_t id = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  ASSERT_GE(id, 0);
  with(id);
  H5Fclose(id);
}

void set_text(hid_t id, const char* name, const char* text) {
  H5Adelete(id, name);
  const hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
  H5Tset_size(type, std::strlen(text));
  H5Tset_cset(type, H5T_CSET_UTF8);
  const hid_t attribute = H5Acreate2(id, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, text);
  H5Aclose(attribute), H5Sclose(space), H5Tclose(type);
}

TEST_F(DamageTest, MissingColumnsAndUnknownObjectivesAreErrors) {
  const Manifest manifest = fake_manifest(40, 4);
  for (const char* column : {"point_id", "status", "reason", "step_time_s"}) {
    const fs::path path = finished(std::string(column) + ".h5", manifest, {{0, 10}});
    change(path, [&](hid_t id) { H5Ldelete(id, (std::string("/points/") + column).c_str(), H5P_DEFAULT); });
    const std::string name = std::string(column) == "step_time_s" ? "e2e_s" : column;
    for (const auto& message : {store_error([&] { (void)ResultReader(path); }),
                                store_error([&] { (void)verify_isolated(path); })}) {
      EXPECT_TRUE(contains(message, "has no column /points/" + name)) << message;
    }
  }
  const fs::path path = finished("objectives.h5", manifest, {{0, 10}});
  change(path, [](hid_t id) { set_text(id, "objectives", "speed"); });
  EXPECT_TRUE(contains(store_error([&] { (void)verify(path); }), "objective speed is not a column"));
  EXPECT_TRUE(contains(store_error([&] { (void)open_parts(std::array{path}); }), "objective speed"));
  change(path, [](hid_t id) { set_text(id, "objectives", "tensor_parallel"); });
  EXPECT_TRUE(contains(store_error([&] { (void)ResultReader(path); }), "has no better direction"));
}

TEST_F(DamageTest, LeftoversOfAKillDuringDeletionAreCleared) {
  const fs::path dying = file("out.h5.parts.deleting");
  fs::create_directory(dying);
  std::ofstream(dying / "lock");
  std::ofstream(dying / "blocks-000000000002-000000000003.h5") << "rows";
  remove_leftovers(file("out.h5"));
  EXPECT_FALSE(fs::exists(dying));
  fs::create_directory(dying);
  std::ofstream(dying / "letter.txt") << "not ours";
  remove_leftovers(file("out.h5"));
  EXPECT_TRUE(fs::exists(dying / "letter.txt"));
}

}  // namespace
}  // namespace shardscape::results
