// Does `shardscape collective` print what it promises, and refuse what it should?
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class CollectiveTest : public ProgramTest {
 protected:
  double seconds(const std::vector<std::string>& words) {
    std::vector<std::string> all = {"collective", "--device", "h100-sxm-80gb", "--json"};
    all.insert(all.end(), words.begin(), words.end());
    const Finished finished = run(all);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return nlohmann::json::parse(finished.out).at("time_s").get<double>();
  }
};

TEST_F(CollectiveTest, LargeMessagesTakeWhatTheLinkTakes) {
  // 2 x 7/8 of a gigabyte over 450 GB/s are 3.9 ms; nccl-tests shows bus bandwidths of 340 to 480 GB/s on DGX H100.
  const double reduced = seconds({"all_reduce", "1GB", "--gpus", "8"});
  EXPECT_GT(reduced, 2 * 7.0 / 8 * 1e9 / 480e9);
  EXPECT_LT(reduced, 2 * 7.0 / 8 * 1e9 / 320e9);
  // Half of it is a reduce-scatter.
  EXPECT_NEAR(seconds({"reduce_scatter", "1GB", "--gpus", "8"}) / reduced, 0.5, 0.1);
}

TEST_F(CollectiveTest, EnginesReduceSmallTensorsFaster) {
  const double library = seconds({"all_reduce", "32KiB", "--gpus", "4"});
  const double engine = seconds({"all_reduce", "32KiB", "--gpus", "4", "--kernels", "trtllm"});
  EXPECT_LT(engine, 0.7 * library);
  EXPECT_GT(seconds({"all_reduce", "32KiB", "--gpus", "4", "--kernels", "trtllm", "--eager"}), 2 * engine);
}

// A DGX H100 has 8 GPUs; racks of GB200 have 72.
TEST_F(CollectiveTest, ANodeThatNoClusterHasIsSaidNotToExist) {
  const auto warned = [&](const std::string& device, const std::string& gpus) {
    const Finished finished =
        run({"collective", "all_reduce", "1GB", "--device", device, "--gpus", gpus, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    EXPECT_TRUE(nlohmann::json::parse(finished.out).contains("time_s"));
    return finished.err;
  };
  EXPECT_EQ(warned("h100-sxm-80gb", "8"), "");
  EXPECT_EQ(warned("gb200-186gb", "72"), "");
  EXPECT_TRUE(contains(warned("h100-sxm-80gb", "16"),
                       "no cluster of the presets has more than 8 h100-sxm-80gb in a node"));
  EXPECT_TRUE(contains(warned("gb200-186gb", "73"), "has more than 72 gb200-186gb"));
}

TEST_F(CollectiveTest, AllProblemsAtOnce) {
  const Finished finished = run(
      {"collective", "all_redcue", "-3 MB", "--device", "h100-sxm-80gb", "--gpus", "1", "--kernels", "nccl"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "all_reduce")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "--gpus: ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "--kernels: no 'nccl'")) << finished.err;
  const Finished bare = run({"collective", "all_reduce", "1MB", "--device", "v100-sxm-32gb", "--gpus", "4"});
  EXPECT_EQ(bare.code, 2);
  EXPECT_TRUE(contains(bare.err, "v100-sxm-32gb has no constants of collectives")) << bare.err;
}

}  // namespace
}  // namespace shardscape::cli
