// Does a person with a rate and promises get the fewest GPUs in one command, and hear why where there are none?
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kServed = R"(model: llama3.1-8b
cluster: dgx-h100
gpus: 16
stack: vllm
workload: {phase: inference, precision: bf16, prompt_tokens: 1000, output_tokens: 100, request_rate: 8 /s, client: {requests: 300}}
space: {tensor_parallel: [1, 2, 4, 8]}
promises: {ttft_p95: 1 s, tpot_p95: 25 ms}
)";

class CapacityTest : public ProgramTest {
 protected:
  void SetUp() override { write("study.yaml", kServed); }
  Finished capacity(std::vector<std::string> more) {
    more.insert(more.begin(), {"capacity", "study.yaml", "--progress", "none"});
    return run(more);
  }
  json answers(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Finished finished = capacity(more);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).at("answers");
  }
};

TEST_F(CapacityTest, TheAnswerIsThatOfASweepOverNumbersOfGpus) {
  const json found = answers({"--rate", "8,40"});
  ASSERT_EQ(found.size(), 2U);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--set", "gpus=[1, 2, 4, 8, 16]", "--set",
                 "workload.request_rate=[8 /s, 40 /s]", "--confirm", "0"})
                .code,
            0);
  for (const json& answer : found) {
    const auto rate = answer.at("request_rate").get<double>();
    const Finished top = run({"top", "out.h5", "--where", "request_rate_per_s == " + std::to_string(rate),
                              "--by", "gpus", "-n", "1", "--format", "json"});
    ASSERT_EQ(top.code, 0) << top.err;
    // The sweep has powers of two alone, so that it may only need more.
    EXPECT_LE(answer.at("gpus"), json::parse(top.out).at(0).at("gpus")) << rate;
    EXPECT_LE(answer.at("ttft_p95_s"), 1.0);
    EXPECT_LE(answer.at("tpot_p95_s"), 0.025);
    EXPECT_TRUE(answer.at("promises_kept").get<bool>());
    EXPECT_TRUE(answer.at("certificate").at("exact").get<bool>());
  }
  EXPECT_LT(found.at(0).at("gpus"), found.at(1).at("gpus"));
  EXPECT_EQ(run({"verify", "out.h5"}).code, 0);
}

TEST_F(CapacityTest, WhereNothingFitsItSaysWhatWouldHaveToChange) {
  const json answer = answers({"--set", "promises.ttft_p95=1 ms"}).at(0);
  EXPECT_TRUE(answer.at("gpus").is_null());
  EXPECT_EQ(answer.at("missed").at(0).at("bound"), "ttft_p95_s<=0.001");
  EXPECT_GT(answer.at("missed").at(0).at("least_by").get<double>(), 0);
  EXPECT_EQ(answer.at("certificate").at("plans").at("simulated"), 0) << "no prompt is read in a millisecond";
  const Finished text = capacity({"--set", "promises.ttft_p95=1 ms"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_TRUE(contains(text.out, "instead of ttft_p95 <= 1 ms")) << text.out;
}

TEST_F(CapacityTest, WritesAPageThatNeedsNothingElse) {
  const Finished finished = capacity({"--rate", "8", "--report", "page.html"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const std::string page = read_file(work() / "page.html");
  EXPECT_TRUE(contains(page, "\"ttft_p95_s\""));
  EXPECT_FALSE(contains(page, "{{"));
  EXPECT_FALSE(contains(page, "src=\"http"));
  EXPECT_EQ(capacity({"--report", "page.html"}).code, 2) << "it is there already";
}

TEST_F(CapacityTest, NeedsARateAndPromises) {
  write("study.yaml", std::string(kServed).substr(0, std::string(kServed).find("promises")));
  EXPECT_TRUE(contains(capacity({}).err, "promises: missing")) << capacity({}).err;
  write("study.yaml", std::string(kServed));
  EXPECT_TRUE(contains(capacity({"--rate", "fast"}).err, "request_rate")) << capacity({"--rate", "fast"}).err;
  EXPECT_EQ(capacity({"--rate", "fast"}).code, 2);
}

}  // namespace
}  // namespace shardscape::cli
