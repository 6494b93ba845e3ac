// Does `shardscape gemm` print what it promises, and refuse what it should?
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

class GemmTest : public ProgramTest {};

TEST_F(GemmTest, JsonHasTheEightFigures) {
  const Finished finished = run({"gemm", "1", "16384", "16384", "--device", "a100-sxm-80gb", "--json"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(finished.err, "");
  const json result = json::parse(finished.out);
  std::set<std::string> keys;
  for (const auto& item : result.items()) keys.insert(item.key());
  EXPECT_EQ(keys, (std::set<std::string>{"time_s", "tile", "waves", "split_k", "bound", "hbm_bytes",
                                         "l2_bytes", "sram_bytes"}));
  // Every weight is read for one row: 2 x 16384^2 bytes at no more than 2039 GB/s.
  const double bytes = 2.0 * 16384 * 16384 + 4.0 * 16384;
  EXPECT_DOUBLE_EQ(result.at("hbm_bytes").get<double>(), bytes);
  EXPECT_GT(result.at("time_s").get<double>(), bytes / 2039e9);
  EXPECT_LT(result.at("time_s").get<double>(), 1.5 * bytes / 2039e9);
  EXPECT_EQ(result.at("bound"), "hbm");
}

TEST_F(GemmTest, TileAndClockAreTaken) {
  const auto time = [&](const std::string& clock) {
    const Finished finished = run({"gemm", "8192", "8192", "8192", "--device", "a100-sxm-80gb", "--tile",
                                   "128x128x32", "--clock", clock, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    const json result = json::parse(finished.out);
    EXPECT_EQ(result.at("tile"), "128x128x32");
    EXPECT_EQ(result.at("waves"), 38);  // 64 x 64 tiles on 108 SMs
    return result.at("time_s").get<double>();
  };
  EXPECT_EQ(time("1e9"), time("1 GHz"));
  EXPECT_NEAR(time("0.5 GHz") / time("1 GHz"), 2, 0.01);
}

TEST_F(GemmTest, ABurstDrawsMoreThanAStep) {
  const auto time = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"gemm", "8192", "8192", "8192", "--device", "h100-sxm-80gb", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).at("time_s").get<double>();
  };
  // cuBLAS reaches 750 to 800 TFLOP/s for a moment.
  EXPECT_NEAR(2 * std::pow(8192.0, 3) / time({"--burst"}), 775e12, 40e12);
  EXPECT_LT(time({"--burst"}), 0.9 * time({}));
  const Finished locked =
      run({"gemm", "64", "64", "64", "--device", "v100-sxm-32gb", "--burst", "--clock", "1 GHz"});
  EXPECT_EQ(locked.code, 2);
  EXPECT_TRUE(contains(locked.err, "--burst: --clock locks the clock")) << locked.err;
  EXPECT_TRUE(contains(locked.err, "--burst: v100-sxm-32gb does not say its 'energy'")) << locked.err;
}

TEST_F(GemmTest, TextNamesTheBound) {
  const Finished finished = run({"gemm", "64", "64", "64", "--device", "h100-sxm-80gb", "--dtype", "fp8"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "bound by  launch")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "fp8, on h100-sxm-80gb")) << finished.out;
}

TEST_F(GemmTest, AllProblemsAtOnce) {
  const Finished finished = run({"gemm", "0", "many", "1.5", "--device", "a100-sxm-80gb", "--dtype", "fp8",
                                 "--tile", "128x128", "--clock", "fast", "--json"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  for (const char* part : {"M: ", "N: ", "K: ", "--dtype: a100-sxm-80gb has no unit for fp8; it has",
                           "--tile: '128x128' must be MxNxK", "--clock: ", "6 problems"}) {
    EXPECT_TRUE(contains(finished.err, part)) << part << '\n' << finished.err;
  }
}

TEST_F(GemmTest, UnknownNamesAreSuggested) {
  const Finished device = run({"gemm", "8", "8", "8", "--device", "a100-sxm"});
  EXPECT_EQ(device.code, 2);
  EXPECT_TRUE(contains(device.err, "a100-sxm-80gb")) << device.err;
  const Finished type = run({"gemm", "8", "8", "8", "--device", "a100-sxm-80gb", "--dtype", "bf61"});
  EXPECT_EQ(type.code, 2);
  EXPECT_TRUE(contains(type.err, "did you mean 'bf16'?")) << type.err;
}

TEST_F(GemmTest, ATileThatDoesNotFit) {
  const Finished finished = run({"gemm", "8", "8", "8", "--device", "a100-sxm-80gb", "--tile", "512x512x64"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "--tile: an SM of a100-sxm-80gb can't hold 512x512x64")) << finished.err;
}

}  // namespace
}  // namespace shardscape::cli
