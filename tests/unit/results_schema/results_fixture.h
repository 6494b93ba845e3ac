// Made-up sweeps for the tests of the result store: every value is a function of the point id, so that any
// row can be checked alone.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "engine/base/counter_rng.h"
#include "results_schema/reading/reader.h"
#include "results_schema/rows/block.h"
#include "results_schema/segments/assemble.h"
#include "results_schema/segments/segments.h"

namespace shardscape::results {

inline const std::vector<HardwareColumn>& fake_hardware() {
  static const std::vector<HardwareColumn> columns = {
      {"device_hbm_bandwidth_bytes_per_s", "byte s-1", "HBM bandwidth", {}},
      {"fabric_algorithm", "1", "collective algorithm", {"ring", "tree", "in network"}}};
  return columns;
}

/// A point with all that a PointRecord borrows.
struct FakePoint {
  std::uint64_t id = 0;
  ParallelPlan plan;
  WorkloadSpec workload;
  std::array<double, 2> hardware{};
  Prediction prediction;

  explicit FakePoint(std::uint64_t point_id) : id(point_id) {
    CounterRng rng(7, point_id);
    const auto pick = [&](int n) {
      return static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(n)));
    };
    plan.tensor = 1 << pick(4);
    plan.pipeline = 1 << pick(3);
    plan.data = 1 << pick(5);
    plan.zero_stage = pick(4);
    plan.recompute = static_cast<Recompute>(pick(3));
    plan.order = {PlanAxis::pipeline, PlanAxis::tensor, PlanAxis::data, PlanAxis::context};
    workload.sequence_length = 4096;
    workload.global_batch = 128;
    hardware = {1e12 * (1 + pick(3)), static_cast<double>(pick(3))};
    prediction.status =
        pick(3) == 0 ? static_cast<Status>(pick(static_cast<int>(enum_names<Status>().size()))) : Status::ok;
    if (prediction.status != Status::ok)
      prediction.reason = static_cast<Reason>(1 + pick(static_cast<int>(enum_names<Reason>().size()) - 1));
    prediction.microbatches = 1 + pick(8);
    prediction.peak_stage = pick(4);
    // Few distinct values, so that ties happen.
    prediction.step_time = Seconds(1 + 0.125 * pick(200));
    prediction.tokens_per_s_per_gpu = 50.0 + pick(50);
    prediction.mfu = rng.uniform();
    prediction.memory_peak = Bytes(1e9 * (1 + pick(100)));
    prediction.memory.weights = Bytes(1e9 * rng.uniform());
    prediction.breakdown[TimeClass::compute] = Seconds(rng.uniform());
  }
  [[nodiscard]] PointRecord record() const { return {id, plan, workload, hardware, prediction}; }
};

/// The points of one block and their records.
struct FakeBlock {
  FakeBlock(const BlockLayout& layout, std::uint64_t block) {
    for (std::uint32_t i = 0; i < layout.rows_of(block); ++i)
      points.emplace_back(layout.point(layout.first_row(block) + i));
    for (const FakePoint& point : points) records.push_back(point.record());
  }
  std::deque<FakePoint> points;
  std::vector<PointRecord> records;
};

inline Manifest fake_manifest(std::uint64_t points, std::uint32_t rows_per_block) {
  Manifest manifest;
  manifest.study.title = "made up";
  manifest.study.resolved_yaml = "study: made up\nmodel: none\n";
  manifest.study.sources = {{"study.yaml", "study: made up # verbatim\n"},
                            {"models/none.yaml", "layers: 0\n"}};
  manifest.study.objectives = {"step_time_s", "memory_peak_bytes"};
  manifest.study.seed = 42;
  manifest.study.dimensions = {"nvlink", "rail"};
  manifest.study.links = std::vector<LinkRecord>{{0, 0, 1, 0, 300e9, 1e-6}, {1, 1, 0, 1, 25e9, 5e-6}};
  manifest.run = {"2024-01-02T03:04:05Z", "0.1.0", "abc123", "g++ 12", "host", "shardscape sweep", 2};
  manifest.layout = BlockLayout::whole(points, rows_per_block);
  const ColumnTable table(Phase::training, fake_hardware());
  manifest.columns.assign(table.columns().begin(), table.columns().end());
  return manifest;
}

/// A temporary folder per test.
class ResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() /
              ("shardscape-" + std::string(info->name()) + "-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path file(const std::string& name) const { return folder_ / name; }

  /// Appends blocks [range) at one instant.
  void append(SegmentWriter& writer, const Manifest& manifest, BlockRange range) {
    BlockEncoder encoder(table_, manifest.layout.rows_per_block, manifest.study.objectives);
    for (std::uint64_t block = range.first; block < range.end(); ++block) {
      writer.append(encoder.encode(block, FakeBlock(manifest.layout, block).records), {});
    }
  }
  /// Seals one segment for each range.
  void seal(const SegmentStore& store, const std::vector<BlockRange>& ranges) {
    for (const BlockRange range : ranges) {
      SegmentWriter writer(store, {std::numeric_limits<std::uint64_t>::max(), std::chrono::hours(1)});
      append(writer, store.manifest(), range);
      writer.seal();
    }
  }
  /// A finished file made of the given segments.
  std::filesystem::path finished(const std::string& name, const Manifest& manifest,
                                 const std::vector<BlockRange>& ranges, const RunInfo& run = {}) {
    const auto path = file(name);
    SegmentStore store = SegmentStore::create(parts_folder(path), manifest);
    seal(store, ranges);
    assemble(std::move(store), path, run);
    return path;
  }

  ColumnTable table_{Phase::training, fake_hardware()};
  std::filesystem::path folder_;
};

/// The message of the StoreError that `work` throws; a failure where it throws none.
template <class Work>
std::string store_error(const Work& work) {
  try {
    work();
  } catch (const StoreError& error) {
    return error.what();
  }
  ADD_FAILURE() << "no StoreError was thrown";
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace shardscape::results
