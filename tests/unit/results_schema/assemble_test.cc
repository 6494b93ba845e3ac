// Is the finished file a function of the study alone, complete or absent?
#include "results_schema/segments/assemble.h"

#include <cmath>

#include "results_schema/hdf5/hdf5_io.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/result_changes.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

TEST_F(ResultsTest, SegmentsDoNotShow) {
  const Manifest manifest = fake_manifest(1001, 64);  // 16 blocks, the last of 41 rows
  const auto one = finished("one.h5", manifest, {{0, 16}});
  const auto many = finished("many.h5", manifest, {{9, 4}, {15, 1}, {0, 1}, {13, 2}, {1, 8}},
                             {"2031-01-01T00:00:00Z", "0.1.0", "abc123", "g++", "elsewhere", "other", 64});
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(one, many, &difference)) << difference;
  EXPECT_FALSE(fs::exists(parts_folder(one)));
  EXPECT_EQ(ResultReader(many).attributes().at("threads"), "64");
}

TEST_F(ResultsTest, EveryValueComesBack) {
  const Manifest manifest = fake_manifest(1001, 64);
  const ResultReader reader(finished("out.h5", manifest, {{0, 16}}));
  ASSERT_EQ(reader.row_count(), 1001U);
  const auto ids = reader.point_ids();
  const auto status = reader.read("status"), tensor = reader.read("tensor_parallel"),
             time = reader.read("step_time_s"), weights = reader.read("weights_bytes"),
             algorithm = reader.read("fabric_algorithm");
  for (std::uint64_t i = 0; i < 1001; ++i) {
    const FakePoint point(i);
    ASSERT_EQ(ids[i], i);
    ASSERT_EQ(status[i], static_cast<double>(point.prediction.status));
    ASSERT_EQ(tensor[i], point.plan.tensor);
    ASSERT_EQ(algorithm[i], point.hardware[1]);
    if (is_timed(point.prediction.status)) {
      ASSERT_EQ(time[i], point.prediction.step_time.value());
      ASSERT_EQ(weights[i], static_cast<double>(static_cast<float>(point.prediction.memory.weights.value())));
    } else {
      ASSERT_TRUE(std::isnan(time[i]));
    }
  }
}

TEST_F(ResultsTest, MoreRowsThanOneSegmentHolds) {
  const Manifest manifest = fake_manifest(70001, 8192);
  const fs::path output = file("big.h5");
  SegmentStore store = SegmentStore::create(parts_folder(output), manifest);
  SegmentWriter writer(store);
  append(writer, manifest, manifest.layout.blocks);
  EXPECT_EQ(writer.sealed_rows(), 65536U);
  writer.seal();
  EXPECT_EQ(writer.sealed_rows(), 70001U);
  assemble(std::move(store), output, {});
  const ResultReader reader(output);
  EXPECT_EQ(reader.row_count(), 70001U);
  EXPECT_EQ(reader.point_ids({70000, 80000}), std::vector<std::uint64_t>{70000});
  EXPECT_EQ(reader.read("memory_peak_bytes", {65535, 65537}).size(), 2U);
}

TEST_F(ResultsTest, SummaryIsThatOfTheRows) {
  const Manifest manifest = fake_manifest(1001, 64);
  const ResultReader reader(finished("out.h5", manifest, {{0, 16}}));
  SummaryBuilder builder({Better::smaller, Better::smaller});
  for (std::uint64_t i = 0; i < 1001; ++i) {
    const Prediction prediction = FakePoint(i).prediction;
    builder.add(i, prediction.status, prediction.reason,
                std::vector<double>{prediction.step_time.value(), prediction.memory_peak.value()});
  }
  const Summary expected = builder.finish();
  const Summary summary = reader.summary();
  EXPECT_GT(summary.pareto.size(), 1U);
  EXPECT_EQ(summary.pareto, expected.pareto);
  EXPECT_EQ(summary.top, expected.top);
  EXPECT_EQ(summary.statuses, expected.statuses);
  EXPECT_EQ(summary.reasons, expected.reasons);
}

TEST_F(ResultsTest, IncompleteSweepIsNotAssembled) {
  const Manifest manifest = fake_manifest(100, 16);
  const fs::path output = file("out.h5");
  {
    SegmentStore store = SegmentStore::create(parts_folder(output), manifest);
    seal(store, {{0, 2}, {3, 4}});
    EXPECT_TRUE(
        contains(store_error([&] { assemble(std::move(store), output, {}); }), "16 points are missing"));
  }
  EXPECT_FALSE(fs::exists(output));
  SegmentStore store = SegmentStore::resume(parts_folder(output), manifest);
  ASSERT_EQ(store.missing(), (std::vector<BlockRange>{{2, 1}}));
  seal(store, store.missing());
  assemble(std::move(store), output, {});
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(output, finished("whole.h5", manifest, {{0, 7}}), &difference))
      << difference;
}

/// Samples of the points of a block: every seventh block has none, the others so many that chunks end within them.
std::vector<FaultSampleRecord> fake_samples(const BlockLayout& layout, std::uint64_t block) {
  std::vector<FaultSampleRecord> samples;
  if (block % 7 == 3) return samples;
  for (std::uint32_t i = 0; i < layout.rows_of(block); ++i) {
    const std::uint64_t id = layout.point(layout.first_row(block) + i);
    for (std::int32_t k = 0; k < 300; ++k) {
      samples.push_back({id, k, 0, Status::ok, FaultKind::soft_link, k % 17, -1, 1.0 / (k + 1),
                         static_cast<double>(id) + k / 1024.0, k / 64.0});
    }
  }
  return samples;
}

TEST_F(ResultsTest, SamplesComeBackWhereverSegmentsAndChunksEnd) {
  Manifest manifest = fake_manifest(500, 32);
  const ColumnTable table(Phase::training, fake_hardware(), {.faults = true});
  manifest.columns.assign(table.columns().begin(), table.columns().end());
  const auto columns = fault_sample_columns();
  manifest.sample_columns.assign(columns.begin(), columns.end());
  FaultSummary sampled;
  sampled.samples = 300;
  const fs::path output = file("sampled.h5");
  SegmentStore store = SegmentStore::create(parts_folder(output), manifest);
  BlockEncoder encoder(table, 32, {});
  std::vector<FaultSampleRecord> all;
  for (const BlockRange range : std::vector<BlockRange>{{0, 3}, {3, 1}, {4, 12}}) {
    SegmentWriter writer(store, {std::numeric_limits<std::uint64_t>::max(), std::chrono::hours(1)});
    for (std::uint64_t block = range.first; block < range.end(); ++block) {
      FakeBlock points(manifest.layout, block);
      const std::vector<FaultSampleRecord> samples = fake_samples(manifest.layout, block);
      for (PointRecord& record : points.records) record.faults = samples.empty() ? nullptr : &sampled;
      EncodedBlock encoded = encoder.encode(block, points.records);
      encoded.samples = samples;
      all.insert(all.end(), encoded.samples.begin(), encoded.samples.end());
      writer.append(std::move(encoded), {});
    }
    writer.seal();
  }
  assemble(std::move(store), output, {});
  const ResultReader reader(output);
  const auto ids = reader.samples().point_ids();
  const auto sample = reader.samples().read("sample"), link = reader.samples().read("link_id"),
             time = reader.samples().read("step_time_s"), slowdown = reader.samples().read("slowdown");
  ASSERT_EQ(ids.size(), all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(ids[i], all[i].point_id) << i;
    ASSERT_EQ(sample[i], all[i].sample) << i;
    ASSERT_EQ(link[i], all[i].link) << i;
    ASSERT_EQ(time[i], all[i].step_time_s) << i;
    ASSERT_EQ(slowdown[i], all[i].slowdown) << i;
  }
}

TEST_F(ResultsTest, DamagedChunkStopsAssemblyAndKeepsTheParts) {
  const Manifest manifest = fake_manifest(512, 512);
  const fs::path output = file("out.h5");
  SegmentStore store = SegmentStore::create(parts_folder(output), manifest);
  seal(store, {{0, 1}});
  store.scan();
  const fs::path segment = store.segments().front().path;
  // The chunk of a column is found by its bytes.
  BlockEncoder encoder(table_, 512, {});
  const auto chunk = encoder.encode(0, FakeBlock(manifest.layout, 0).records).chunks.back();
  std::fstream stream(segment, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  const std::string needle(reinterpret_cast<const char*>(chunk.data()), chunk.size());
  const std::size_t at = bytes.rfind(needle);
  ASSERT_NE(at, std::string::npos);
  stream.clear();
  stream.seekp(static_cast<std::streamoff>(at + needle.size() / 2));
  stream.put(static_cast<char>(~bytes[at + needle.size() / 2]));
  stream.close();
  const std::string message = store_error([&] { assemble(std::move(store), output, {}); });
  EXPECT_TRUE(contains(message, segment.string())) << message;
  EXPECT_TRUE(contains(message, "damaged")) << message;
  EXPECT_FALSE(fs::exists(output));
  EXPECT_TRUE(fs::exists(segment));
}

TEST_F(ResultsTest, ShardHoldsItsRangeOfTheSpace) {
  Manifest manifest = fake_manifest(100, 16);
  manifest.layout.blocks = {4, 3};
  const ResultReader reader(finished("shard.h5", manifest, {{4, 1}, {5, 2}}));
  EXPECT_EQ(reader.row_count(), 36U);
  EXPECT_EQ(reader.point_ids().front(), 64U);
  EXPECT_EQ(reader.point_ids().back(), 99U);
}

TEST_F(ResultsTest, EmptySpaceGivesAnEmptyTable) {
  const ResultReader reader(finished("empty.h5", fake_manifest(0, 16), {}));
  EXPECT_EQ(reader.row_count(), 0U);
  EXPECT_TRUE(reader.read("step_time_s").empty());
  EXPECT_TRUE(reader.summary().statuses.empty());
}

TEST_F(ResultsTest, DifferencesAreNamed) {
  const Manifest manifest = fake_manifest(100, 16);
  const auto a = finished("a.h5", manifest, {{0, 7}});
  Manifest other = manifest;
  std::vector<LinkRecord> links = other.study.links.records();
  links[1].latency_s = 6e-6;
  other.study.links = std::move(links);
  std::string difference;
  EXPECT_FALSE(test::datasets_equal(a, finished("b.h5", other, {{0, 7}}), &difference));
  EXPECT_TRUE(contains(difference, "/links/latency_s row 1")) << difference;
  other = manifest;
  other.study.sources.pop_back();
  EXPECT_FALSE(test::datasets_equal(a, finished("c.h5", other, {{0, 7}}), &difference));
  EXPECT_TRUE(contains(difference, "/study/sources/models:none.yaml: only in the first")) << difference;
  EXPECT_FALSE(test::datasets_equal(a, finished("d.h5", fake_manifest(99, 16), {{0, 7}}), &difference));
  EXPECT_TRUE(contains(difference, "100 and 99 rows")) << difference;
  EXPECT_THROW((void)test::datasets_equal(a, file("none.h5")), StoreError);
}

/// One block of a study of eight, as a shard.
Manifest shard_manifest(std::uint64_t block) {
  Manifest manifest = fake_manifest(32, 4);
  manifest.layout.blocks = {block, 1};
  manifest.shards = {block + 1, block + 1, 8};
  return manifest;
}

TEST_F(ResultsTest, MergeNamesWhichFingerprintsDiffer) {
  Manifest other = shard_manifest(1);
  other.study.title = "made up again";
  other.study.sources[1].text = "layers: 1\n";
  other.run.git_commit = "def456";
  const fs::path a = finished("a.h5", shard_manifest(0), {{0, 1}}, shard_manifest(0).run);
  const fs::path b = finished("b.h5", other, {{1, 1}}, other.run);
  const std::vector<std::string> problems = merge_problems(open_parts(std::array{a, b}));
  ASSERT_EQ(problems.size(), 1U);
  for (const std::string& part : {"b.h5: belongs to another study than " + a.string() + " (study_sha256 ",
                                  study_sha256(other.study).substr(0, 12) + ", not " +
                                      study_sha256(shard_manifest(0).study).substr(0, 12),
                                  std::string("the title and models/none.yaml differ"),
                                  std::string("comes from version 0.1.0 (def456) of the program")})
    EXPECT_TRUE(contains(problems.front(), part)) << part << " in " << problems.front();
}

TEST_F(ResultsTest, MergeRefusesPartsThatAreNotWhatTheirFingerprintsSay) {
  for (const char* name : {"study_sha256", "columns_sha256"}) {
    const fs::path part = finished(std::string(name) + ".h5", shard_manifest(0), {{0, 1}});
    test::change_file(part, [&](hid_t opened) {
      const Hid attribute(H5Aopen(opened, name, H5P_DEFAULT)), type(H5Aget_type(attribute.get()));
      H5Awrite(attribute.get(), type.get(), std::string(64, '0').c_str());
    });
    const std::string message = store_error([&] { (void)open_parts(std::array{part}); });
    EXPECT_TRUE(contains(message, part.string() + ": ") && contains(message, name)) << message;
  }
}

}  // namespace
}  // namespace shardscape::results
