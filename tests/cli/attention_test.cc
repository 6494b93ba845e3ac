// Does `shardscape attention` print what it promises, and refuse what it should?
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class AttentionTest : public ProgramTest {
 protected:
  nlohmann::json attention(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"attention", "--device", "h100-sxm-80gb", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return nlohmann::json::parse(finished.out);
  }
};

TEST_F(AttentionTest, BackwardTakesTwoAndAHalfTimesTheFlops) {
  const std::vector<std::string> shape = {"--seq", "8192", "--heads", "32", "--kv-heads", "8", "--phase"};
  auto forward = shape, backward = shape;
  forward.push_back("forward");
  backward.push_back("backward");
  const auto ahead = attention(forward), back = attention(backward);
  // Causal: half of 4 x 128 x 32 x 8192^2.
  EXPECT_DOUBLE_EQ(ahead.at("flops").get<double>(), 2.0 * 128 * 32 * 8192 * 8192);
  EXPECT_DOUBLE_EQ(back.at("flops").get<double>(), 2.5 * ahead.at("flops").get<double>());
  EXPECT_GT(back.at("time_s").get<double>(), 2.5 * ahead.at("time_s").get<double>());
  EXPECT_EQ(ahead.at("bound"), "compute");
}

TEST_F(AttentionTest, DecodeStreamsTheCache) {
  const auto token = attention({"--batch", "64", "--seq", "8192", "--heads", "32", "--kv-heads", "8",
                                "--phase", "decode", "--kernel", "trtllm"});
  const double cache = 2 * 2.0 * 64 * 8 * 8192 * 128;
  EXPECT_NEAR(token.at("hbm_bytes").get<double>(), cache, 0.01 * cache);
  EXPECT_GT(token.at("time_s").get<double>(), cache / 3350e9);
  EXPECT_EQ(token.at("bound"), "hbm");
}

TEST_F(AttentionTest, AFewFlopsAreBoundByTheirLaunch) {
  // One token of one head has 4 x 128 / 2 = 256 FLOPs, as many as a product of this command's neighbour `gemm`.
  const auto token = attention({"--seq", "1", "--heads", "1"});
  EXPECT_EQ(token.at("flops"), 256);
  EXPECT_EQ(token.at("bound"), "launch");
  EXPECT_EQ(attention({"--seq", "64", "--heads", "1", "--latent"}).at("bound"), "launch");
}

TEST_F(AttentionTest, TextNamesKernelAndDevice) {
  const Finished finished = run({"attention", "--device", "h100-sxm-80gb", "--seq", "2048", "--heads", "16"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "cudnn forward, bf16, on h100-sxm-80gb")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "1 x 2,048 tokens, 16 heads over 16 of keys, 128 wide")) << finished.out;
}

TEST_F(AttentionTest, AllProblemsAtOnce) {
  const Finished finished = run({"attention", "--device", "h100", "--seq", "0", "--heads", "30", "--kv-heads",
                                 "8", "--phase", "prefil", "--kernel", "naive", "--dtype", "fp7"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(finished.out, "");
  for (const char* part : {"--device: ", "--seq: ", "--kv-heads: must divide --heads", "--phase: no 'prefil'",
                           "--kernel: naive attention", "--dtype: no type 'fp7'"}) {
    EXPECT_TRUE(contains(finished.err, part)) << part << '\n' << finished.err;
  }
}

}  // namespace
}  // namespace shardscape::cli
