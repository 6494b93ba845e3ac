// Does the table of columns say what a row holds, for both phases?
#include "results_schema/rows/columns.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "results_schema/disk/sha256.h"
#include "results_schema/schema_doc.h"
#include "tests/support/paths.h"
#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

template <class T>
T value_of(const ColumnTable& table, std::string_view name, const FakePoint& point) {
  const auto columns = table.columns();
  const auto at = std::ranges::find(columns, name, &ColumnInfo::name) - columns.begin();
  EXPECT_EQ(size_of(columns[static_cast<std::size_t>(at)].type), sizeof(T)) << name;
  const std::vector<PointRecord> rows = {point.record()};
  T value{};
  table.put(static_cast<std::size_t>(at), rows, reinterpret_cast<std::byte*>(&value));
  return value;
}

TEST(Columns, PhasesHaveTheirOwn) {
  const ColumnTable training(Phase::training), inference(Phase::inference);
  for (const char* name :
       {"step_time_s", "mfu", "zero_stage", "global_batch", "optimizer_bytes", "recompute_s"}) {
    EXPECT_NE(training.find(name), nullptr) << name;
    EXPECT_EQ(inference.find(name), nullptr) << name;
  }
  for (const char* name : {"ttft_s", "itl_s", "e2e_s", "concurrency", "prompt_tokens", "kv_cache_bytes"}) {
    EXPECT_EQ(training.find(name), nullptr) << name;
    EXPECT_NE(inference.find(name), nullptr) << name;
  }
}

TEST(Columns, NamesAreIdentifiersThatEndInTheirUnit) {
  for (const Phase phase : {Phase::training, Phase::inference}) {
    const ColumnTable table(phase, fake_hardware());
    for (const ColumnInfo& column : table.columns()) {
      EXPECT_TRUE(std::ranges::all_of(column.name, [](char c) {
        return std::islower(c) || std::isdigit(c) || c == '_';
      })) << column.name;
      EXPECT_FALSE(column.unit.empty()) << column.name;
      EXPECT_FALSE(column.long_name.empty()) << column.name;
      const std::string ending = column.unit == "s" ? "_s" : column.unit == "byte" ? "_bytes" : "";
      EXPECT_TRUE(column.name.ends_with(ending)) << column.name;
      for (const std::string& meaning : column.meanings) EXPECT_FALSE(meaning.empty());
    }
  }
}

TEST(Columns, HardwareStandsBeforeTheOutputs) {
  const ColumnTable table(Phase::training, fake_hardware());
  const FakePoint point(11);
  EXPECT_EQ(value_of<double>(table, "device_hbm_bandwidth_bytes_per_s", point), point.hardware[0]);
  EXPECT_EQ(value_of<std::uint8_t>(table, "fabric_algorithm", point), point.hardware[1]);
  EXPECT_LT(table.find("fabric_algorithm"), table.find("step_time_s"));
  EXPECT_EQ(table.find("fabric_algorithm")->meanings.size(), 3U);
}

// What is left of a table holds what it held: also the second hardware axis where the first is gone.
TEST(Columns, FewerColumnsHoldTheSame) {
  const ColumnTable all(Phase::training, fake_hardware(), {.faults = true});
  ColumnTable some = all;
  const std::vector<std::string> names = {"fabric_algorithm", "recompute"}, objectives = {"mfu"};
  some.keep_only(names, objectives);
  std::vector<std::string> left;
  for (const ColumnInfo& column : some.columns()) left.push_back(column.name);
  EXPECT_EQ(left, (std::vector<std::string>{"point_id", "status", "reason", "recompute", "fabric_algorithm",
                                            "step_time_s", "mfu", "memory_peak_bytes", "peak_stage",
                                            "fault_samples", "slowdown_mean"}));
  const FakePoint point(11);
  const std::vector<PointRecord> rows = {point.record()};
  const auto value = [&](const ColumnTable& table, std::string_view name) {
    const auto at = static_cast<std::size_t>(table.find(name) - table.columns().data());
    std::vector<std::byte> bytes(size_of(table.columns()[at].type));
    table.put(at, rows, bytes.data());
    return bytes;
  };
  for (const std::string& name : left) {
    EXPECT_EQ(*some.find(name), *all.find(name)) << name;
    EXPECT_EQ(value(some, name), value(all, name)) << name;
  }
}

TEST(Columns, PointIdKeepsAll64Bits) {
  const ColumnTable table(Phase::training);
  const FakePoint point((std::uint64_t{1} << 60U) + 1);
  EXPECT_EQ(value_of<std::uint64_t>(table, "point_id", point), (std::uint64_t{1} << 60U) + 1);
}

TEST(Columns, OutputsOfRejectedPointsAreNaN) {
  const ColumnTable table(Phase::training);
  FakePoint point(3);
  point.prediction.memory_peak = Bytes(9e10);
  point.prediction.peak_stage = 2;
  point.prediction.step_time = Seconds(1.5);
  const auto time = [&] { return value_of<double>(table, "step_time_s", point); };
  const auto share = [&] { return value_of<float>(table, "compute_s", point); };
  const auto memory = [&] { return value_of<double>(table, "memory_peak_bytes", point); };

  point.prediction.status = Status::ok;
  EXPECT_EQ(time(), 1.5);
  EXPECT_EQ(memory(), 9e10);
  for (const Status status : {Status::memory, Status::unreachable}) {
    point.prediction.status = status;
    EXPECT_TRUE(std::isnan(time()));
    EXPECT_TRUE(std::isnan(share()));
    EXPECT_EQ(memory(), 9e10);
    EXPECT_EQ(value_of<std::int32_t>(table, "peak_stage", point), 2);
  }
  for (const Status status :
       {Status::indivisible, Status::constraint, Status::unsupported, Status::out_of_range}) {
    point.prediction.status = status;
    EXPECT_TRUE(std::isnan(time()));
    EXPECT_TRUE(std::isnan(memory()));
    EXPECT_EQ(value_of<std::int32_t>(table, "peak_stage", point), -1);
  }
}

TEST(Columns, EvidenceIsThatOfTimesThereAre) {
  const ColumnTable table(Phase::training);
  FakePoint point(3);
  PointRecord record = point.record();
  record.assessment = {0.0625, Evidence::near, EvidenceGap::stack};
  const auto put = [&](std::string_view name, auto value) {
    const auto at = std::ranges::find(table.columns(), name, &ColumnInfo::name) - table.columns().begin();
    table.put(static_cast<std::size_t>(at), {&record, 1}, reinterpret_cast<std::byte*>(&value));
    return value;
  };
  point.prediction.status = Status::ok;
  EXPECT_EQ(put("expected_error", 0.0F), 0.0625F);
  EXPECT_EQ(table.find("evidence")->meanings.at(put("evidence", std::uint8_t{9})), "near");
  EXPECT_EQ(table.find("evidence_gap")->meanings.at(put("evidence_gap", std::uint8_t{9})), "stack");
  point.prediction.status = Status::memory;
  EXPECT_TRUE(std::isnan(put("expected_error", 0.0F)));
  EXPECT_EQ(put("evidence", std::uint8_t{9}), 0);
  EXPECT_EQ(put("evidence_gap", std::uint8_t{9}), 0);
}

TEST(Columns, SharesReadInPercent) {
  const ColumnTable table(Phase::training, {}, {.faults = true, .reliability = true});
  const auto digits = [&](std::string_view name) { return percent_digits(*table.find(name)); };
  EXPECT_EQ(digits("mfu"), 1);
  EXPECT_EQ(digits("expected_error"), 1);
  for (const char* name :
       {"slowdown_mean", "slowdown_above_1pct_share", "unreachable_share", "goodput_share"})
    EXPECT_EQ(digits(name), 2) << name;
  for (const char* name : {"point_id", "tensor_parallel", "step_time_s", "evidence", "fault_samples"})
    EXPECT_EQ(digits(name), std::nullopt) << name;
  // Times over another time, which are factors where they are many; not what may be wrong with one.
  EXPECT_TRUE(is_slowdown(*table.find("slowdown_mean")));
  for (const char* name : {"slowdown_standard_error", "slowdown_above_1pct_share", "mfu"})
    EXPECT_FALSE(is_slowdown(*table.find(name))) << name;
}

TEST(Columns, RankOrderCodesAreIndicesOfTheSortedPermutations) {
  const auto names = rank_order_names();
  ASSERT_EQ(names.size(), 24U);
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), 24U);
  EXPECT_EQ(names.front(), "tp-cp-dp-pp");
  EXPECT_EQ(names[1], "tp-cp-pp-dp");
  EXPECT_EQ(names.back(), "pp-dp-cp-tp");
  for (std::size_t code = 0; code < names.size(); ++code) {
    const auto order = parse_rank_order(names[code]);
    ASSERT_TRUE(order.has_value()) << names[code];
    EXPECT_EQ(rank_order_code(*order), static_cast<std::int32_t>(code)) << names[code];
    EXPECT_EQ(rank_order_of(static_cast<std::int32_t>(code)), *order) << names[code];
  }
}

TEST(Columns, FingerprintSeesUnitsTypesAndCodes) {
  const ColumnTable table(Phase::training);
  std::vector<ColumnInfo> columns(table.columns().begin(), table.columns().end());
  const std::string original = columns_sha256(columns);
  const ColumnTable again(Phase::training);
  EXPECT_EQ(original, columns_sha256(again.columns()));
  columns[1].meanings[0] = "fine";
  EXPECT_NE(original, columns_sha256(columns));
}

TEST(Columns, SchemaDocumentIsUpToDate) {
  std::ifstream file(test::source_dir() + "/results_schema/SCHEMA.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_TRUE(text.str() == with_tables(text.str())) << "run: cmake --build <build> --target schema_docs";
}

TEST(Sha256, KnownDigests) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace shardscape::results
