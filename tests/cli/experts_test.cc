// Do `shardscape experts`, `attention --latent` and `collective dispatch` print what they promise, and refuse what
// they should?
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class ExpertsTest : public ProgramTest {
 protected:
  nlohmann::json answer(std::vector<std::string> words) {
    words.push_back("--json");
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return nlohmann::json::parse(finished.out);
  }
  double experts(const std::vector<std::string>& more) {
    std::vector<std::string> words = {"experts", "--device",  "h100-sxm-80gb", "--hidden", "7168", "--inner",
                                      "2048",    "--experts", "256",           "--top-k",  "8"};
    words.insert(words.end(), more.begin(), more.end());
    return answer(words).at("time_s").get<double>();
  }
};

TEST_F(ExpertsTest, WeightsOfActiveExpertsBoundAFewTokens) {
  // 8 of 256 experts on a rank of 32: 44 MB a matrix triple, 88 MB each; all are met by 64 tokens' 512 choices.
  const double weights = 8 * 3.0 * 7168 * 2048 * 2;
  const double time = experts({"--tokens", "64", "--ep", "32"});
  EXPECT_GT(time, weights / 3350e9);
  EXPECT_LT(time, 1.6 * weights / 3350e9);
  EXPECT_GT(experts({"--tokens", "8192", "--ep", "32", "--power-law", "1.2"}),
            1.5 * experts({"--tokens", "8192", "--ep", "32"}));
}

TEST_F(ExpertsTest, AllProblemsAtOnce) {
  const Finished finished =
      run({"experts", "--device", "a100-sxm-80gb", "--tokens", "0", "--hidden", "7168", "--inner", "2048",
           "--experts", "6", "--top-k", "8", "--ep", "4", "--power-law", "steep", "--dtype", "fp8"});
  EXPECT_EQ(finished.code, 2);
  for (const char* part :
       {"--tokens: ", "--top-k: must not exceed --experts", "--ep: must divide the 6 experts",
        "--power-law: 'steep' must be 0 to 10", "--dtype: a100-sxm-80gb has no unit for fp8"})
    EXPECT_TRUE(contains(finished.err, part)) << part << '\n' << finished.err;
}

TEST_F(ExpertsTest, LatentDecodeStreamsOneCacheForAllHeads) {
  const std::vector<std::string> words = {"attention", "--latent", "--device", "h200-sxm-141gb",
                                          "--batch",   "128",      "--seq",    "8192",
                                          "--phase",   "decode",   "--heads"};
  auto few = words, many = words;
  few.push_back("8");
  many.push_back("16");
  const double cache = 2.0 * 576 * 128 * 8192;
  const auto narrow = answer(few), wide = answer(many);
  EXPECT_NEAR(narrow.at("hbm_bytes").get<double>(), cache, 0.02 * cache);
  EXPECT_GT(narrow.at("time_s").get<double>(), cache / 4800e9);
  EXPECT_LT(wide.at("time_s").get<double>(), 1.2 * narrow.at("time_s").get<double>());
  const Finished refused =
      run({"attention", "--latent", "--device", "h200-sxm-141gb", "--seq", "8", "--heads", "8", "--kv-heads",
           "8", "--phase", "backward", "--kernel", "flash3"});
  EXPECT_EQ(refused.code, 2);
  for (const char* part : {"--kv-heads: has no meaning with --latent", "--phase: with --latent there are",
                           "--kernel: has no meaning with --latent"})
    EXPECT_TRUE(contains(refused.err, part)) << part << '\n' << refused.err;
}

TEST_F(ExpertsTest, DispatchOverNodesTakesWhatTheNetworkTakes) {
  const auto dispatched = [&](const char* gpus, const char* nodes) {
    return answer({"collective", "dispatch", "--device", "h100-sxm-80gb", "--gpus", gpus, "--nodes", nodes,
                   "--tokens", "128", "--hidden", "7168", "--top-k", "8", "--experts", "256"})
        .at("time_s")
        .get<double>();
  };
  // DeepEP's README (2025), H800, 128 tokens to 8 experts each: 77 us on 8 ranks, all by RDMA, 173 us on 64.
  EXPECT_LT(dispatched("8", "1"), 77e-6);
  EXPECT_NEAR(dispatched("64", "8"), 173e-6, 0.2 * 173e-6);
  const Finished refused =
      run({"collective", "combine", "16MB", "--device", "b200-sxm-180gb", "--gpus", "16", "--nodes", "3",
           "--tokens", "8", "--hidden", "7168", "--top-k", "16", "--experts", "8"});
  EXPECT_EQ(refused.code, 2);
  for (const char* part : {"size: follows from", "--nodes: must divide", "--top-k: must not exceed"})
    EXPECT_TRUE(contains(refused.err, part)) << part << '\n' << refused.err;
  const Finished unknown =
      run({"collective", "combine", "--device", "b200-sxm-180gb", "--gpus", "16", "--nodes", "2", "--tokens",
           "8", "--hidden", "7168", "--top-k", "8", "--experts", "64"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(contains(unknown.err, "no constants of expert dispatch between nodes")) << unknown.err;
  const Finished missing =
      run({"collective", "all_reduce", "--device", "h100-sxm-80gb", "--gpus", "8", "--sms", "4"});
  EXPECT_TRUE(contains(missing.err, "size: is missing")) << missing.err;
  EXPECT_TRUE(contains(missing.err, "--sms: has a meaning for dispatch")) << missing.err;
}

}  // namespace
}  // namespace shardscape::cli
