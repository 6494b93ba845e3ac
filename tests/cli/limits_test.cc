// Does an input that asks for too much end soon, in little memory, with a message that names what is too large? Limits
// are the kernel's, on CPU time and address space, never on the clock.
#include <sys/resource.h>

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

constexpr rlim_t kGibibyte = rlim_t{1} << 30U;

class LimitsTest : public ProgramTest {
 protected:
  /// A few times of what is needed, a tenth and less of what an endless input takes.
  Running start_bounded(const std::vector<std::string>& words, rlim_t cpu_seconds,
                        rlim_t memory = 2 * kGibibyte) {
    const rlimit seconds{cpu_seconds, cpu_seconds}, bytes{memory, memory};
    Running running = start(words);
    (void)prlimit(running.pid(), RLIMIT_CPU, &seconds, nullptr);
    (void)prlimit(running.pid(), RLIMIT_AS, &bytes, nullptr);
    return running;
  }
  /// Returns once a program that was started first has said something, or has ended.
  void await_output(const Running& first) const {
    const fs::path out = work().parent_path() / "stdout-0";
    std::error_code not_yet;
    while (!first.ended() && (!fs::exists(out) || fs::file_size(out, not_yet) == 0))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void expect_refused(const std::vector<std::string>& words, const std::string& gist) {
    const Finished finished = start_bounded(words, 10).wait();
    EXPECT_EQ(finished.signal, 0) << gist;
    EXPECT_EQ(finished.code, 2) << finished.err;
    EXPECT_TRUE(contains(finished.err, gist)) << finished.err;
  }
  /// Mixtral on 64 H100 with 95 depths of interleaving and so many sizes of microbatches.
  void write_large_study(int microbatches, const std::string& degrees = "powers_of_two",
                         int gpus = 64) const {
    write("study.yaml",
          fmt::format(
              "study: big\nmodel: {{base: mixtral-8x7b, layers: 96}}\ncluster: {{name: c, device: "
              "h100-sxm-80gb,\n"
              "  dimensions: [{{name: a, kind: switch, size: fill, bandwidth: 100 GB/s, latency: 1 us}}]}}\n"
              "gpus: {1}\nstack: megatron-core\n"
              "workload: {{phase: training, sequence_length: 4096, global_batch: 4096, precision: [bf16, "
              "fp8]}}\n"
              "space:\n  tensor_parallel: {2}\n  context_parallel: {2}\n  pipeline_parallel: {2}\n"
              "  data_parallel: fill\n  expert_parallel: {2}\n  expert_tensor_parallel: {2}\n"
              "  zero_stage: [0, 1, 2, 3]\n  sequence_parallel: [true, false]\n"
              "  recompute: [none, selective, full]\n  microbatch_size: {{from: 1, to: {0}, step: 1}}\n"
              "  schedule: [1f1b, interleaved, gpipe, zero_bubble, dualpipe]\n"
              "  virtual_stages: {{from: 2, to: 96, step: 1}}\n"
              "  rank_order: [tp-cp-dp-pp, tp-cp-pp-dp, tp-dp-cp-pp, pp-dp-cp-tp]\n",
              microbatches, gpus, degrees));
  }
};

TEST_F(LimitsTest, SpacesThatCannotBeListedNameTheLongestAxis) {
  write_large_study(4096, "{from: 1, to: 4096, step: 1}", 65536);
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"check", "study.yaml"},
                                             {"search", "study.yaml"},
                                             {"sweep", "study.yaml", "-o", "out.h5", "--sample", "10"},
                                             {"sweep", "study.yaml", "-o", "out.h5", "--limit", "10"}}) {
    expect_refused(words, "study.yaml:8:1: space: makes too many combinations of its axes");
  }
  expect_refused({"check", "study.yaml"}, "give fewer values of ");
  EXPECT_EQ(left_behind(), std::vector<std::string>{"study.yaml"});
}

TEST_F(LimitsTest, RegionsThatCannotBeSearchedNameWhatIsTooLarge) {
  write_large_study(4096);
  const Finished finished = start_bounded({"search", "study.yaml", "--set", "space.expert_parallel=divisors",
                                           "--set", "gpus=4096", "--set", "space.virtual_stages=[2]", "--set",
                                           "space.zero_stage=[1]", "--set", "space.rank_order=[tp-cp-dp-pp]"},
                                          10)
                                .wait();
  EXPECT_EQ(finished.code, 2) << finished.err;
  EXPECT_TRUE(contains(finished.err, "study.yaml:8:1: space: its 4096 values of microbatch_size on up to "))
      << finished.err;
}

TEST_F(LimitsTest, ASearchKeepsItsBudgetWithinTheFirstRegion) {
  write_large_study(512);
  const Finished finished =
      start_bounded(
          {"search", "study.yaml", "--budget", "1s", "-n", "1", "--progress", "none", "--confirm", "0"}, 6)
          .wait();
  EXPECT_EQ(finished.signal, 0);
  EXPECT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out + finished.err, "stopped")) << finished.out << finished.err;
}

TEST_F(LimitsTest, ASearchStopsWithinTheFirstRegionAndSaysThatNothingWasSealed) {
  write_large_study(512);
  Running search =
      start_bounded({"search", "study.yaml", "-n", "1", "--progress", "json", "--confirm", "0"}, 10);
  await_output(search);
  search.send(SIGTERM);
  const Finished finished = search.wait();
  EXPECT_EQ(finished.signal, 0);
  EXPECT_EQ(finished.code, 130) << finished.err;
  EXPECT_TRUE(contains(finished.err, "stopping; what was found so far follows")) << finished.err;
  EXPECT_FALSE(contains(finished.err, "sealed")) << finished.err;
}

TEST_F(LimitsTest, StepsAndServersThatAreWalkedThroughForeverAreOutOfRange) {
  const std::string machine =
      "cluster: {name: c, device: h100-sxm-80gb, dimensions: [{name: a, kind: switch, size: fill, "
      "bandwidth: 100 GB/s, latency: 1 us}]}\ngpus: 8\n";
  write("passes.yaml", "study: x\nmodel: llama3.1-8b\nstack: megatron-core\n" + machine +
                           "workload: {phase: training, sequence_length: 4096, global_batch: 1000000000}\n"
                           "space: {pipeline_parallel: 8, data_parallel: fill, schedule: dualpipe}\n");
  write("prompts.yaml", "study: x\nmodel: llama3.1-8b\nstack: vllm\n" + machine +
                            "workload: {phase: inference, prompt_tokens: 1000000000, output_tokens: 1, "
                            "concurrency: 1000000}\nspace: {tensor_parallel: 8}\n");
  for (const char* study : {"passes.yaml", "prompts.yaml"}) {
    const Finished finished = start_bounded({"simulate", study, "--json"}, 10).wait();
    ASSERT_EQ(finished.code, 0) << study << finished.err;
    EXPECT_EQ(nlohmann::json::parse(finished.out).at("status"), "out_of_range") << study;
  }
}

TEST_F(LimitsTest, FilesThatRestOnEachOtherAreSixtyFourAtMost) {
  constexpr int kFiles = 2000;
  write("study.yaml",
        std::string(kSmallStudy)
            .replace(std::string(kSmallStudy).find("stack: megatron-lm"), 18, "stack: ./k0.yaml"));
  for (int i = 0; i < kFiles; ++i)
    write(fmt::format("k{}.yaml", i),
          fmt::format("base: {}\nname: k{}\n",
                      i + 1 < kFiles ? fmt::format("./k{}.yaml", i + 1) : "megatron-lm", i));
  expect_refused({"check", "study.yaml"}, "is file 65 of a chain in which each rests on the next; 64 may");
}

TEST_F(LimitsTest, UnknownKeysOfAConfigAreCountedOnceTheyAreMany) {
  std::string text = R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama")";
  for (int i = 0; i < 40000; ++i) text += fmt::format(",\n\"unknown_{}\": 1", i);
  write("config.json", text + "}");
  expect_refused(
      {"check", write("study.yaml", std::string("study: s\nmodel: ./config.json\ncluster: dgx-a100\n"
                                                "gpus: 8\nstack: megatron-lm\nworkload: {phase: "
                                                "training, sequence_length: 4096, global_batch: 32}\n"
                                                "space: {tensor_parallel: [8]}\n"))
                    .string()},
      "more like these");
}

TEST_F(LimitsTest, TablesHaveFourThousandColumnsAtMost) {
  std::string header = "id,phase";
  for (int i = 0; i < 60000; ++i) header += fmt::format(",unknown_{}", i);
  write("table.csv", header + "\n");
  expect_refused({"validate", "table.csv"}, "table.csv:1: names 60002 columns; a table has at most 4096");
}

TEST_F(LimitsTest, TracesAreReadNoFurtherThanTwoHundredProblems) {
  fs::create_directory(work() / "t");
  for (const char* name : {"t/p.0.et", "t/p.1.et"}) {
    write(name, "");
    fs::resize_file(work() / name, 4U << 20U);
  }
  expect_refused({"replay", "t", "--cluster", "dgx-a100", "--gpus", "8"},
                 "t: and 180 more problems, or more still: the rest was not read");
}

TEST_F(LimitsTest, ASparseSegmentIsNotReadToSeeThatItHasNoChecksum) {
  Running sweep = start(long_sweep("out.h5", {"--threads", "1"}));
  await_segment(sweep, "out.h5");
  sweep.send(SIGKILL);
  (void)sweep.wait();
  fs::path segment;
  for (const auto& entry : fs::directory_iterator(work() / "out.h5.parts"))
    if (entry.path().extension() == ".h5" && entry.path().filename() != "manifest.h5") segment = entry.path();
  ASSERT_FALSE(segment.empty()) << "it ended before it could be killed";
  fs::resize_file(segment, 0);
  fs::resize_file(segment, std::uintmax_t{40} << 30U);
  const Finished finished = start_bounded({"verify", "out.h5.parts"}, 10).wait();
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(contains(finished.out + finished.err, segment.filename().string())) << finished.err;
  EXPECT_FALSE(contains(finished.out + finished.err, "bad_alloc")) << finished.err;
}

TEST_F(LimitsTest, ASegmentThatVanishesOnOneMachineIsMissedAtOnceAndNamed) {
  Running sweep = start(long_sweep("out.h5", {"--threads", "1"}));
  await_segment(sweep, "out.h5");
  for (const auto& entry : fs::directory_iterator(work() / "out.h5.parts")) {
    if (!entry.path().filename().string().starts_with("blocks-") || entry.path().extension() != ".h5")
      continue;
    fs::remove(entry.path());
    break;
  }
  const Finished finished = sweep.wait();
  EXPECT_EQ(finished.code, 1) << finished.out;
  EXPECT_TRUE(contains(finished.err, "points that were sealed and lacks block")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "segments were removed while the sweep ran")) << finished.err;
}

TEST_F(LimitsTest, NothingIsWrittenThroughLinksAmongTheFilesOfASweep) {
  write("study.yaml", kSmallStudy);
  for (const char* name :
       {"assembled.h5.tmp", "manifest.h5", "manifest.h5.tmp", "lock", "replace", "rank-000000",
        "blocks-000000000000-000000000004.h5", "blocks-000000000000-000000000004.h5.tmp"}) {
    SCOPED_TRACE(name);
    const fs::path parts = work() / "o.h5.parts";
    fs::create_directory(parts);
    write("gold.txt", "gold\n");
    if (std::string(name) != "lock") write("o.h5.parts/lock", "");
    fs::create_symlink("../gold.txt", parts / name);
    const Finished finished = run({"sweep", "study.yaml", "-o", "o.h5", "--progress", "none", "--resume"});
    EXPECT_NE(finished.code, 0);
    EXPECT_TRUE(contains(finished.err, name)) << finished.err;
    EXPECT_EQ(read_file(work() / "gold.txt"), "gold\n");
    EXPECT_FALSE(fs::is_symlink(fs::symlink_status(work() / "o.h5")));
    EXPECT_TRUE(fs::is_symlink(fs::symlink_status(parts / name)));
    fs::remove_all(parts);
  }
}

TEST_F(LimitsTest, AFolderOfSegmentsIsNoLink) {
  write("study.yaml", kSmallStudy);
  fs::create_directory(work() / "elsewhere");
  fs::create_directory_symlink("elsewhere", work() / "o.h5.parts");
  for (const char* how : {"--resume", "--force"}) {
    const Finished finished = run({"sweep", "study.yaml", "-o", "o.h5", "--progress", "none", how});
    EXPECT_NE(finished.code, 0) << how;
    EXPECT_TRUE(contains(finished.err, "o.h5.parts: is a link")) << finished.err;
  }
  EXPECT_TRUE(fs::is_empty(work() / "elsewhere"));
  EXPECT_TRUE(fs::is_symlink(fs::symlink_status(work() / "o.h5.parts")));
}

}  // namespace
}  // namespace shardscape::cli
