// Does the set of sealed segments survive whatever happens to the writer?
#include "results_schema/segments/segments.h"

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>

#include "results_schema/segments/rank_notes.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class SegmentsTest : public ResultsTest {
 protected:
  [[nodiscard]] fs::path parts() const { return file("out.h5.parts"); }
  EncodedBlock block(const Manifest& manifest, std::uint64_t index) {
    return BlockEncoder(table_, manifest.layout.rows_per_block, manifest.study.objectives)
        .encode(index, FakeBlock(manifest.layout, index).records);
  }
};

std::vector<BlockRange> ranges(const SegmentStore& store) {
  std::vector<BlockRange> list;
  for (const Segment& segment : store.segments()) list.push_back(segment.blocks);
  return list;
}

using Ranges = std::vector<BlockRange>;

TEST_F(SegmentsTest, SealsByRowsByAgeAndAtGaps) {
  const Manifest manifest = fake_manifest(100, 4);
  SegmentStore store = SegmentStore::create(parts(), manifest);
  SegmentWriter writer(store, {12, seconds(5)});
  const SegmentWriter::Time start{};
  for (std::uint64_t b = 0; b < 3; ++b) writer.append(block(manifest, b), start);  // 12 rows
  EXPECT_EQ(writer.sealed_rows(), 12U);
  writer.append(block(manifest, 3), start + seconds(1));
  writer.append(block(manifest, 4), start + seconds(5));  // four seconds old
  EXPECT_EQ(writer.sealed_rows(), 12U);
  writer.append(block(manifest, 10), start + seconds(6));  // a gap
  EXPECT_EQ(writer.sealed_rows(), 12U + 8U);
  writer.append(block(manifest, 11), start + seconds(11));  // five seconds old
  EXPECT_EQ(writer.sealed_rows(), 12U + 8U + 8U);
  writer.append(block(manifest, 24), start + seconds(12));
  writer.seal();
  writer.seal();
  EXPECT_EQ(writer.sealed_rows(), 12U + 8U + 8U + 4U);
  store.scan();
  EXPECT_EQ(ranges(store), (Ranges{{0, 3}, {3, 2}, {10, 2}, {24, 1}}));
  EXPECT_EQ(store.missing(), (Ranges{{5, 5}, {12, 12}}));
  EXPECT_EQ(store.sealed_rows(), 32U);
}

// Four blocks are a segment, unless they come within a second: then up to sixteen.
TEST_F(SegmentsTest, QuickRowsMakeLongerSegments) {
  const Manifest manifest = fake_manifest(400, 4);
  SegmentStore store = SegmentStore::create(parts(), manifest);
  SegmentWriter writer(store, {.rows = 16, .age = seconds(5), .least_age = seconds(1)});
  const SegmentWriter::Time start{};
  for (std::uint64_t b = 0; b < 5; ++b) writer.append(block(manifest, b), start);
  EXPECT_EQ(writer.sealed_rows(), 0U);
  writer.append(block(manifest, 5), start + seconds(1));
  EXPECT_EQ(writer.sealed_rows(), 24U);
  for (std::uint64_t b = 6; b < 24; ++b) writer.append(block(manifest, b), start + seconds(2));
  EXPECT_EQ(writer.sealed_rows(), 24U + 64U);
  writer.seal();
  store.scan();
  EXPECT_EQ(ranges(store), (Ranges{{0, 6}, {6, 16}, {22, 2}}));
}

TEST_F(SegmentsTest, CrashLeavesSealedSegmentsOnly) {
  const Manifest manifest = fake_manifest(40, 4);
  {
    const SegmentStore store = SegmentStore::create(parts(), manifest);
    SegmentWriter writer(store, {8, seconds(5)});
    append(writer, manifest, {0, 5});  // the fifth block is never sealed
  }
  // A segment and an assembly that were being written.
  std::ofstream(parts() / "blocks-000000000004-000000000002.h5.tmp") << "half";
  std::ofstream(parts() / "assembled.h5.tmp") << "half";
  EXPECT_EQ(ranges(SegmentStore::open(parts())), (Ranges{{0, 2}, {2, 2}}));
  const SegmentStore store = SegmentStore::resume(parts(), manifest);
  EXPECT_EQ(store.missing(), (Ranges{{4, 6}}));
  for (const auto& entry : fs::directory_iterator(parts())) EXPECT_NE(entry.path().extension(), ".tmp");
}

TEST_F(SegmentsTest, FolderWithoutManifestStartsAnew) {
  fs::create_directory(parts());
  std::ofstream(parts() / "manifest.h5.tmp") << "half";
  const SegmentStore store = SegmentStore::resume(parts(), fake_manifest(40, 4));
  EXPECT_EQ(store.missing(), (Ranges{{0, 10}}));
}

TEST_F(SegmentsTest, ManifestReadsBack) {
  const Manifest written = fake_manifest(40, 4);
  const Manifest manifest = (SegmentStore::create(parts(), written), SegmentStore::open(parts()).manifest());
  EXPECT_EQ(manifest.study.title, written.study.title);
  EXPECT_EQ(manifest.study.resolved_yaml, written.study.resolved_yaml);
  EXPECT_EQ(manifest.study.sources, written.study.sources);
  EXPECT_EQ(manifest.study.objectives, written.study.objectives);
  EXPECT_EQ(manifest.study.dimensions, written.study.dimensions);
  EXPECT_EQ(manifest.layout, written.layout);
  EXPECT_EQ(study_sha256(manifest.study), study_sha256(written.study));
  EXPECT_EQ(columns_sha256(manifest.columns).size(), 64U);
}

TEST_F(SegmentsTest, RefusesAnotherSweep) {
  const Manifest manifest = fake_manifest(40, 4);
  (void)SegmentStore::create(parts(), manifest);
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::create(parts(), manifest); }), "--resume"));

  Manifest other = manifest;
  other.study.resolved_yaml += "gpus: 8\n";
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), other); }), "different study"));
  other = manifest;
  other.layout = BlockLayout::whole(36, 4);
  EXPECT_TRUE(
      contains(store_error([&] { (void)SegmentStore::resume(parts(), other); }), "40 points, not 36"));
  other = manifest;
  other.columns.pop_back();
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), other); }), "columns"));
  other = manifest;
  other.run.git_commit = "def456";
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), other); }), "abc123"));
  other = manifest;
  other.run.threads = 64;
  other.run.hostname = "elsewhere";
  EXPECT_EQ(SegmentStore::resume(parts(), other).missing(), (Ranges{{0, 10}}));
}

TEST_F(SegmentsTest, OneSweepAtATime) {
  const Manifest manifest = fake_manifest(40, 4);
  const SegmentStore store = SegmentStore::create(parts(), manifest);
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), manifest); }), "in use"));
  EXPECT_TRUE(contains(store_error([&] { SegmentStore::discard(parts()); }), "in use"));
  EXPECT_TRUE(SegmentStore::open(parts()).segments().empty());  // readers are welcome
}

/// What another process does between its making of the folder and its lock, or after it has lost the race.
TEST_F(SegmentsTest, NobodyRemovesAFolderThatAnotherHasLocked) {
  const Manifest manifest = fake_manifest(40, 4);
  fs::create_directory(parts());  // made by the process that will lose
  const SegmentStore winner = SegmentStore::create(parts(), manifest);
  seal(winner, {{0, 2}});
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::create(parts(), manifest); }), "in use"));
  EXPECT_EQ(ranges(SegmentStore::open(parts())), (Ranges{{0, 2}}));
}

TEST_F(SegmentsTest, PermissionToReplaceStaysWithTheSweep) {
  const Manifest manifest = fake_manifest(40, 4);
  EXPECT_TRUE(SegmentStore::create(parts(), manifest, true).is_new());
  const SegmentStore again = SegmentStore::resume(parts(), manifest);
  EXPECT_TRUE(again.replaces_output());
  EXPECT_FALSE(again.is_new());
}

TEST_F(SegmentsTest, AbandonedFoldersAndForeignOnes) {
  const Manifest manifest = fake_manifest(40, 4);
  SegmentStore::create(parts(), manifest).abandon();
  EXPECT_TRUE(fs::is_empty(folder_));
  fs::create_directory(parts());
  std::ofstream(parts() / "letter.txt") << "not ours";
  for (const auto& work : {std::function<void()>([&] { SegmentStore::discard(parts()); }),
                           std::function<void()>([&] { (void)SegmentStore::create(parts(), manifest); }),
                           std::function<void()>([&] { (void)SegmentStore::resume(parts(), manifest); })}) {
    EXPECT_TRUE(contains(store_error(work), "holds letter.txt, which no sweep has written"));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(parts()), fs::directory_iterator()), 1);
}

TEST_F(SegmentsTest, JoinedProcessesSealForTheOneThatLeads) {
  const Manifest manifest = fake_manifest(40, 4);
  EXPECT_TRUE(
      contains(store_error([&] { (void)SegmentStore::join(parts(), manifest); }), "not there; all ranks"));
  EXPECT_FALSE(fs::exists(parts()));
  SegmentStore leader = SegmentStore::create(parts(), manifest);
  seal(SegmentStore::join(parts(), manifest), {{4, 2}});
  seal(SegmentStore::join(parts(), manifest), {{1, 2}});
  leader.scan();
  EXPECT_EQ(ranges(leader), (Ranges{{1, 2}, {4, 2}}));
  Manifest other = manifest;
  other.study.resolved_yaml += "gpus: 8\n";
  EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::join(parts(), other); }), "different study"));
}

TEST_F(SegmentsTest, NotesOfProcessesThatWereKilledSayWhatTheyLeft) {
  const Manifest manifest = fake_manifest(80, 4);
  {
    const SegmentStore leader = SegmentStore::create(parts(), manifest);
    RankNote killed(parts(), 2, "rank 2 of 3 (node7), process 4711"), orderly(parts(), 1, "rank 1 of 3");
    RankNote late(parts(), 0, "rank 0 of 3 (node5), process 12");
    for (const BlockRange blocks : {BlockRange{0, 4}, {6, 3}, {12, 2}}) killed.took(blocks);
    orderly.took({4, 2});
    orderly.remove();
    late.took({9, 3});
    seal(leader, {{0, 4}, {4, 2}, {6, 1}, {9, 3}});
  }
  const SegmentStore store = SegmentStore::resume(parts(), manifest);
  EXPECT_EQ(store.unfinished(),
            (std::vector<std::string>{
                "rank 0 of 3 (node5), process 12 did not end in order; all its blocks are sealed",
                "rank 2 of 3 (node7), process 4711 did not end in order; of its blocks these "
                "are not all sealed: 6 to 8, 12 to 13"}));
  EXPECT_FALSE(fs::exists(parts() / "rank-000002"));
}

/// The one that led and held the folder's lock is gone, one that worked for it still runs.
TEST_F(SegmentsTest, NobodyGoesOnWhileARankStillRuns) {
  const Manifest manifest = fake_manifest(40, 4);
  (void)SegmentStore::create(parts(), manifest);
  {
    const RankNote running(parts(), 1, "rank 1 of 2 (node7), process 4711");
    const std::string in_use = "is in use by rank 1 of 2 (node7), process 4711";
    EXPECT_TRUE(contains(store_error([&] { (void)SegmentStore::resume(parts(), manifest); }), in_use));
    EXPECT_TRUE(contains(store_error([&] { SegmentStore::discard(parts()); }), in_use));
    EXPECT_TRUE(contains(store_error([&] { (void)RankNote(parts(), 1, "another"); }), "is in use"));
  }
  EXPECT_EQ(SegmentStore::resume(parts(), manifest).missing(), (Ranges{{0, 10}}));
}

TEST_F(SegmentsTest, DiscardRemovesTheFolder) {
  SegmentStore::discard(parts());
  (void)SegmentStore::create(parts(), fake_manifest(40, 4));
  SegmentStore::discard(parts());
  EXPECT_FALSE(fs::exists(parts()));
  EXPECT_TRUE(fs::is_empty(folder_));
}

TEST_F(SegmentsTest, BrokenSegmentsAreNamed) {
  const Manifest manifest = fake_manifest(40, 4);
  seal(SegmentStore::create(parts(), manifest), {{0, 2}, {2, 3}});
  const fs::path victim = parts() / "blocks-000000000002-000000000003.h5";
  ASSERT_TRUE(fs::exists(victim));
  const auto message = [&] { return store_error([&] { (void)SegmentStore::open(parts()); }); };

  fs::copy_file(victim, parts() / "blocks-000000000003-000000000003.h5");
  EXPECT_TRUE(contains(message(), "blocks-000000000003-000000000003.h5: holds other blocks"));
  fs::remove(parts() / "blocks-000000000003-000000000003.h5");

  seal(SegmentStore::resume(parts(), manifest), {{4, 2}});
  EXPECT_TRUE(contains(message(), "blocks-000000000004-000000000002.h5"));
  EXPECT_TRUE(contains(message(), "blocks-000000000002-000000000003.h5 holds, too"));
  fs::remove(parts() / "blocks-000000000004-000000000002.h5");

  fs::resize_file(victim, fs::file_size(victim) / 2);
  EXPECT_TRUE(contains(message(), "blocks-000000000002-000000000003.h5: is not a readable HDF5 file"));
  std::ofstream(victim, std::ios::trunc) << "not HDF5 at all";
  EXPECT_TRUE(contains(message(), "blocks-000000000002-000000000003.h5"));

  fs::remove(victim);
  fs::create_directory(victim);
  EXPECT_TRUE(contains(message(), "blocks-000000000002-000000000003.h5: is a folder")) << message();
}

TEST_F(SegmentsTest, BadManifestListsEveryProblemAndWritesNothing) {
  Manifest manifest = fake_manifest(40, 4);
  manifest.study.objectives = {"speed", "tensor_parallel"};
  const std::string message = store_error([&] { (void)SegmentStore::create(parts(), manifest); });
  EXPECT_TRUE(contains(message, "speed is not a column"));
  EXPECT_TRUE(contains(message, "tensor_parallel has no better direction"));
  EXPECT_FALSE(fs::exists(parts()));
}

TEST_F(SegmentsTest, UnwritablePlaceIsAnError) {
  const auto message =
      store_error([&] { (void)SegmentStore::create(file("no/such/out.parts"), fake_manifest(4, 4)); });
  EXPECT_TRUE(contains(message, "No such file or directory"));
}

/// Files may not grow beyond `bytes` while this lives: every longer write fails as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_F(SegmentsTest, FullDiskKeepsWhatIsSealedAndWhatIsOpen) {
  const Manifest manifest = fake_manifest(40, 4);
  SegmentStore store = SegmentStore::create(parts(), manifest);
  seal(store, {{0, 2}});
  SegmentWriter writer(store, {1000, seconds(5)});
  append(writer, manifest, {2, 8});
  {
    const FullDisk full(1000);
    EXPECT_TRUE(contains(store_error([&] { writer.seal(); }), "can't write: File too large"));
  }
  EXPECT_EQ(ranges(SegmentStore::open(parts())), (Ranges{{0, 2}}));
  EXPECT_EQ(writer.sealed_rows(), 0U);
  writer.seal();
  EXPECT_EQ(writer.sealed_rows(), 32U);
  store.scan();
  EXPECT_TRUE(store.missing().empty());
}

/// HDF5 closes no file that it cannot flush; the program must still end as it wants to, and nothing may be lost.
TEST_F(SegmentsTest, FullDiskDuringAssemblyLeavesAnOrderlyExit) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [&] {
    const Manifest manifest = fake_manifest(20000, 1024);
    SegmentStore store = SegmentStore::create(parts(), manifest);
    seal(store, {{0, 20}});
    const FullDisk full(100000);
    try {
      assemble(std::move(store), file("out.h5"), {});
    } catch (const StoreError& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::filesystem::remove_all(folder_);
      std::exit(1);
    }
    std::exit(0);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(1), "/points/.*can't write");
}

TEST_F(SegmentsTest, FullDiskDuringAssemblyKeepsTheSegments) {
  const Manifest manifest = fake_manifest(40, 4);
  const fs::path output = file("out.h5");
  std::ofstream(output) << "the result of before";
  {
    SegmentStore store = SegmentStore::create(parts(), manifest);
    seal(store, {{0, 10}});
    const FullDisk full(5000);
    EXPECT_FALSE(store_error([&] { assemble(std::move(store), {output, true}, {}); }).empty());
  }
  EXPECT_EQ(fs::file_size(output), 20U);
  EXPECT_FALSE(fs::exists(parts() / "assembled.h5.tmp"));
  assemble(SegmentStore::resume(parts(), manifest), {output, true}, {});
  EXPECT_EQ(ResultReader(output).row_count(), 40U);
}

}  // namespace
}  // namespace shardscape::results
