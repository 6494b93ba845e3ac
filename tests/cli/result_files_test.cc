// Do merge, verify and diff tell good result files from bad ones?
#include <hdf5.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "results_schema/reading/reader.h"
#include "tests/cli/program_under_test.h"
#include "tests/support/datasets_equal.h"
#include "tests/support/result_changes.h"

namespace shardscape::cli {
namespace {

class ResultFilesTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("study.yaml", std::string(kSmallStudy) +
                            "faults: {kind: [soft_link, slow_device], samples: 12, simultaneous: 2, derate: "
                            "{distribution: uniform, min: 0.3, max: 0.9}, seed: 3}\n");
  }
  void sweep(const std::string& output, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"sweep", "study.yaml", "-o", output, "--progress", "none"});
    const Finished finished = run(more);
    ASSERT_EQ(finished.code, 0) << finished.err;
  }
};

// What `top` prints of a point is enough to look closer at it, with the file or with its study.
TEST_F(ResultFilesTest, PointsAreFoundByTheirIds) {
  sweep("out.h5", {"--confirm", "0"});
  const auto two = nlohmann::json::parse(run({"top", "out.h5", "-n", "2", "--format", "json"}).out);
  const auto best = two.at(0);
  const std::string id = best.at("point_id").dump();
  for (const char* file : {"study.yaml", "out.h5"}) {
    const Finished shown = run({"simulate", file, "--point", id, "--json"});
    ASSERT_EQ(shown.code, 0) << shown.err;
    EXPECT_NEAR(nlohmann::json::parse(shown.out).at("step_time_s"), best.at("step_time_s"),
                1e-6 * best.at("step_time_s").get<double>())
        << file;
    EXPECT_EQ(run({"launch", file, "--point", id}).code, 0) << file;
    EXPECT_EQ(run({"compare", file, "--point", id, "--point", two.at(1).at("point_id").dump()}).code, 0)
        << file;
    const Finished none = run({"simulate", file, "--point", "99999999"});
    EXPECT_EQ(none.code, 2);
    EXPECT_TRUE(contains(none.err, "--point: 99999999 is no point: the study has ")) << none.err;
    EXPECT_EQ(run({"simulate", file, "--point", "99999999999999999999999"}).code, 2);
  }
  // Without a point it is the best of the file.
  EXPECT_EQ(
      nlohmann::json::parse(run({"simulate", "out.h5", "--json"}).out).at("step_time_s"),
      nlohmann::json::parse(run({"simulate", "out.h5", "--point", id, "--json"}).out).at("step_time_s"));
  EXPECT_EQ(run({"launch", "out.h5"}).out, run({"launch", "out.h5", "--point", id}).out);
  // An id tells the setting, too.
  sweep("batches.h5", {"--confirm", "0", "--set", "workload.global_batch=[32, 64]"});
  const auto last =
      nlohmann::json::parse(
          run({"top", "batches.h5", "-n", "1", "--where", "global_batch == 64", "--format", "json"}).out)
          .at(0);
  const Finished shown = run({"simulate", "batches.h5", "--point", last.at("point_id").dump()});
  EXPECT_TRUE(contains(shown.out, "global batch 64,")) << shown.out;
  EXPECT_TRUE(contains(shown.out, "launch batches.h5 --point " + last.at("point_id").dump() + " --for"))
      << shown.out;
  EXPECT_EQ(shown.err, "");
  write("text.h5", kSmallStudy);
  for (const char* file : {"text.h5", "missing.h5"}) EXPECT_NE(run({"simulate", file}).code, 0) << file;
}

TEST_F(ResultFilesTest, TheCheckpointsNameIsInTheFile) {
  write("served.yaml", R"(model: llama3.1-8b
cluster: dgx-h100
gpus: 8
stack: vllm
workload: {phase: inference, prompt_tokens: 512, output_tokens: 64, concurrency: 8, precision: bf16}
space: {tensor_parallel: [2, 8], data_parallel: fill}
)");
  ASSERT_EQ(run({"sweep", "served.yaml", "-o", "served.h5", "--progress", "none"}).code, 0);
  const Finished launched = run({"launch", "served.h5", "--for", "vllm"});
  EXPECT_EQ(launched.code, 0) << launched.err;
  EXPECT_TRUE(contains(launched.out, " meta-llama/Llama-3.1-8B ")) << launched.out;
}

TEST_F(ResultFilesTest, MergedShardsAreTheUnshardedSweep) {
  sweep("whole.h5");
  for (const char* part : {"1", "2", "3"})
    sweep(std::string(part) + ".h5", {"--shard", std::string(part) + "/3"});
  const Finished merged = run({"merge", "3.h5", "1.h5", "2.h5", "-o", "all.h5"});
  ASSERT_EQ(merged.code, 0) << merged.err;
  std::string difference;
  EXPECT_TRUE(test::datasets_equal(work() / "whole.h5", work() / "all.h5", &difference)) << difference;
  EXPECT_EQ(run({"verify", "all.h5"}).code, 0);
  EXPECT_EQ(run({"diff", "whole.h5", "all.h5"}).code, 0);
  // Two of three make a larger shard.
  ASSERT_EQ(run({"merge", "1.h5", "2.h5", "-o", "some.h5"}).code, 0);
  EXPECT_EQ(results::ResultReader(work() / "some.h5").row_count() +
                results::ResultReader(work() / "3.h5").row_count(),
            results::ResultReader(work() / "whole.h5").row_count());
  ASSERT_EQ(run({"merge", "some.h5", "3.h5", "-o", "all.h5", "--force"}).code, 0);
  EXPECT_TRUE(test::datasets_equal(work() / "whole.h5", work() / "all.h5", &difference)) << difference;
}

/// Both go through every column of every row; `top` makes each cell by itself.
TEST_F(ResultFilesTest, ExportWritesEveryRowAsTopDoes) {
  sweep("out.h5");
  const auto lines = [](const std::string& text) {
    std::vector<std::string> list;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) list.push_back(line);
    return list;
  };
  const Finished exported = run({"export", "out.h5", "--csv", "-"});
  const Finished top = run({"top", "out.h5", "-n", "1000000", "--where", "status == ok or status != ok",
                            "--by", "point_id", "--format", "csv"});
  ASSERT_EQ(exported.code, 0) << exported.err;
  ASSERT_EQ(top.code, 0) << top.err;
  const auto rows = lines(exported.out);
  EXPECT_EQ(rows, lines(top.out));
  EXPECT_EQ(rows.size(), results::ResultReader(work() / "out.h5").row_count() + 1);
  EXPECT_TRUE(contains(exported.out, ",memory,") && contains(exported.out, ",ok,"));
}

TEST_F(ResultFilesTest, MergeRefusesWhatDoesNotFitAndWritesNothing) {
  for (const char* part : {"1", "2", "3"})
    sweep(std::string(part) + ".h5", {"--shard", std::string(part) + "/3"});
  sweep("other.h5", {"--shard", "2/3", "--set", "workload.global_batch=64"});
  sweep("limited.h5", {"--limit", "100"});
  const auto before = left_behind();
  const auto refused = [&](std::vector<std::string> words, const std::string& reason) {
    words.insert(words.begin(), "merge");
    words.insert(words.end(), {"-o", "all.h5"});
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << reason;
    EXPECT_TRUE(contains(finished.err, reason)) << finished.err;
    EXPECT_EQ(left_behind(), before) << reason;
  };
  refused({"1.h5", "3.h5"}, "3.h5: points ");
  refused({"1.h5", "3.h5"}, "are in none of the files");
  refused({"1.h5", "2.h5", "2.h5"}, "are in another of the files, too");
  refused({"1.h5", "other.h5"}, "other.h5: belongs to another study than 1.h5");
  refused({"1.h5", "limited.h5"}, "points, ");
  EXPECT_EQ(run({"merge", "1.h5", "2.h5", "-o", "3.h5"}).code, 2);
  EXPECT_EQ(run({"merge", "1.h5", "2.h5", "-o", "2.h5", "--force"}).code, 2);
  EXPECT_EQ(run({"merge", "1.h5", "none.h5", "-o", "all.h5"}).code, 1);
  EXPECT_EQ(left_behind(), before);
}

TEST_F(ResultFilesTest, VerifyFindsDamage) {
  sweep("out.h5");
  ASSERT_EQ(run({"verify", "out.h5"}).code, 0);
  const std::string good = read_file(work() / "out.h5");
  // One byte in the middle of compressed chunks, which begin as zlib streams of the fastest level do. Damage
  // elsewhere meets HDF5 1.10, which may crash over its own headers.
  std::vector<std::size_t> chunks;
  const std::string zlib_header = "\x78\x01";
  for (std::size_t at = good.find(zlib_header); at != std::string::npos && at + 21 < good.size();
       at = good.find(zlib_header, at + 1))
    chunks.push_back(at + 20);
  ASSERT_GT(chunks.size(), 40U);
  int found = 0, tried = 0;
  for (std::size_t i = 0; i < chunks.size(); i += chunks.size() / 20) {
    std::string bad = good;
    bad[chunks[i]] = static_cast<char>(bad[chunks[i]] ^ 0x55);
    write("bad.h5", bad);
    const Finished finished = run({"verify", "bad.h5"});
    ASSERT_NE(finished.code, -1) << "at byte " << chunks[i];
    ++tried;
    if (finished.code != 0) ++found;
    if (finished.code == 0) {
      EXPECT_EQ(run({"diff", "out.h5", "bad.h5"}).code, 0) << "byte " << chunks[i];
    }
  }
  EXPECT_GT(found, tried / 2);
  write("cut.h5", good.substr(0, good.size() / 2));
  EXPECT_EQ(run({"verify", "cut.h5"}).code, 1);
  EXPECT_EQ(run({"verify", "none.h5"}).code, 1);
}

TEST_F(ResultFilesTest, DiffNamesWhatDiffersBesideTheTitle) {
  std::string other = kSmallStudy;
  other.replace(other.find("study: small"), 12, "study: large")
      .replace(other.find("batch: 32"), 9, "batch: 64");
  write("other.yaml", other);
  write("first.yaml", kSmallStudy);
  for (const std::string name : {"first", "other"})
    ASSERT_EQ(run({"sweep", name + ".yaml", "-o", name + ".h5", "--confirm", "0"}).code, 0);
  const Finished refused = run({"diff", "first.h5", "other.h5"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.err.find("global_batch"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("shardscape compare"), std::string::npos) << refused.err;
}

TEST_F(ResultFilesTest, DiffComparesTheFastPathWithThePlainOne) {
  sweep("fast.h5", {"--limit", "200"});
  sweep("plain.h5", {"--limit", "200", "--reference"});
  const Finished finished = run({"diff", "fast.h5", "plain.h5", "--tolerance", "1e-9", "--json"});
  const auto differences = nlohmann::json::parse(finished.out).at("differences");
  EXPECT_EQ(finished.code, differences.empty() ? 0 : 3);
  // A bubble or a slowdown of nothing at all may be rounding: a difference of its whole size, and tiny.
  for (const auto& column : differences)
    EXPECT_NEAR(column.at("a").get<double>(), column.at("b").get<double>(), 1e-9) << column.dump();
}

TEST_F(ResultFilesTest, DiffSaysWhatDiffersAndRefusesOtherStudies) {
  sweep("a.h5");
  const results::ResultReader reader(work() / "a.h5");
  sweep("half.h5", {"--shard", "1/2"});
  sweep("other.h5", {"--set", "workload.global_batch=64"});
  const Finished other = run({"diff", "a.h5", "other.h5"});
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(contains(other.err, "'  global_batch: [32]' and '  global_batch: [64]'")) << other.err;
  const Finished half = run({"diff", "a.h5", "half.h5"});
  EXPECT_EQ(half.code, 2);
  EXPECT_TRUE(contains(half.err, "is in one of them only")) << half.err;
  EXPECT_EQ(run({"diff", "a.h5", "a.h5"}).code, 0);
}

/// A file that names points which its study does not have is refused where they are looked up.
TEST_F(ResultFilesTest, PointsThatTheStudyDoesNotHaveAreAnErrorOfTheFile) {
  write("study.yaml", kSmallStudy);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "none.h5", "--set", "hardware.device.hbm.capacity=1 GiB"}).code,
            0);
  test::change_and_renew(work() / "none.h5", [](hid_t file) {
    const hid_t column = H5Dopen2(file, "/points/point_id", H5P_DEFAULT), space = H5Dget_space(column);
    std::vector<std::uint64_t> ids(static_cast<std::size_t>(H5Sget_simple_extent_npoints(space)));
    ASSERT_GE(H5Dread(column, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data()), 0);
    for (std::uint64_t& id : ids) id += 1'000'000'000'000;
    ASSERT_GE(H5Dwrite(column, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, ids.data()), 0);
    H5Sclose(space);
    H5Dclose(column);
  });
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"top", "none.h5"}, {"report", "none.h5", "-o", "none.html"}}) {
    const Finished finished = run(command);
    EXPECT_EQ(finished.code, 1) << finished.err;
    EXPECT_TRUE(contains(finished.err, "row 0 has point_id 1000000000000, but the study has"))
        << finished.err;
  }
}

}  // namespace
}  // namespace shardscape::cli
