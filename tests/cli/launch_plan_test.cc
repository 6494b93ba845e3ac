// Does `launch` give what the frameworks' own documents have for plans that they publish, and say what it cannot?
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kTrained = R"(model: llama3.1-70b
cluster: dgx-h100
gpus: 64
stack: megatron-core
workload: {phase: training, sequence_length: 8192, global_batch: 512, precision: bf16}
space: {tensor_parallel: [4, 8], sequence_parallel: [true], pipeline_parallel: [1, 4], context_parallel: [1, 2], data_parallel: fill, zero_stage: [1, 3]}
)";
constexpr const char* kServed = R"(model: deepseek-v3
cluster: dgx-h200
gpus: 8
stack: vllm
workload: {phase: inference, prompt_tokens: 4096, output_tokens: 1024, concurrency: 64, precision: fp8}
space: {tensor_parallel: [1, 8], data_parallel: fill, expert_parallel: [1, 8]}
)";

constexpr const char* kExperts = R"(model: deepseek-v3
cluster: dgx-h100
gpus: 64
stack: megatron-core
workload: {phase: training, sequence_length: 4096, global_batch: 512, precision: bf16}
space: {tensor_parallel: [1, 4], pipeline_parallel: [1, 4], data_parallel: fill, expert_parallel: [1, 8]}
)";

constexpr const char* kPools = R"(model: llama3.1-70b
cluster: dgx-h200
gpus: 8
stack: vllm
workload: {phase: inference, prompt_tokens: 4096, output_tokens: 1024, concurrency: 64, precision: bf16}
space: {tensor_parallel: [2, 4], data_parallel: fill, prefill_gpus: [4], prefill_tensor_parallel: [2]}
)";

class LaunchTest : public ProgramTest {
 protected:
  void SetUp() override {
    write("train.yaml", kTrained);
    write("experts.yaml", kExperts);
    write("serve.yaml", kServed);
  }
  Finished launch(std::vector<std::string> more) {
    more.insert(more.begin(), "launch");
    return run(more);
  }
  json launched(std::vector<std::string> more) {
    more.emplace_back("--json");
    const Finished finished = launch(std::move(more));
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out);
  }
};

void expect_lines(const std::string& command, const std::vector<std::string>& lines) {
  for (const std::string& line : lines)
    EXPECT_TRUE(command.find("\n  " + line + " \\\n") != std::string::npos ||
                command.ends_with("  " + line + '\n'))
        << line << "\n"
        << command;
}

// NeMo's recipe of Llama 3 70B (llama3_70b.pretrain_recipe: tp 4, pp 4, vp 5, cp 2, sequence parallel, batches of 1 and
// 512) with Megatron-LM's flags, and the model's shape by Megatron-LM's names.
TEST_F(LaunchTest, MegatronRunsLlama70BAsPublished) {
  const json made =
      launched({"train.yaml", "--point", "tp=4,pp=4,cp=2,dp=2,zero=1,schedule=interleaved,vpp=5,mbs=1"});
  EXPECT_EQ(made.at("for"), "megatron-lm");
  const auto command = made.at("command").get<std::string>();
  expect_lines(command, {"--tensor-model-parallel-size 4",
                         "--pipeline-model-parallel-size 4",
                         "--context-parallel-size 2",
                         "--num-layers-per-virtual-pipeline-stage 4",
                         "--sequence-parallel",
                         "--micro-batch-size 1",
                         "--global-batch-size 512",
                         "--seq-length 8192",
                         "--use-distributed-optimizer",
                         "--overlap-grad-reduce",
                         "--overlap-param-gather",
                         "--bf16",
                         "--num-layers 80",
                         "--hidden-size 8192",
                         "--ffn-hidden-size 28672",
                         "--num-attention-heads 64",
                         "--group-query-attention",
                         "--num-query-groups 8",
                         "--swiglu",
                         "--normalization RMSNorm",
                         "--position-embedding-type rope",
                         "--disable-bias-linear",
                         "--untie-embeddings-and-output-weights",
                         "--rotary-base 500000",
                         "--use-rope-scaling",
                         "--rope-scaling-factor 8",
                         "--norm-epsilon 1e-05",
                         "--vocab-size 128255",
                         "--make-vocab-size-divisible-by 1",
                         "--log-throughput"});
  EXPECT_NE(command.find("torchrun --nproc-per-node 8 --nnodes 8 "), std::string::npos);
  EXPECT_NE(command.find("export CUDA_DEVICE_MAX_CONNECTIONS=1\n"), std::string::npos);
}

// Megatron Core: cp_comm_type p2p goes round a ring, all_gather gathers keys and values before attention.
TEST_F(LaunchTest, TheExchangeOfAContextGroupIsTheStacks) {
  write(
      "stack.yaml",
      "base: megatron-core\nname: gathers\ncommunication: {context_exchange: gather, context_overlap: 0}\n");
  for (const auto& [stack, exchange] : {std::pair{"megatron-core", "p2p"}, {"stack.yaml", "all_gather"}}) {
    std::string study = kTrained;
    study.replace(study.find("megatron-core"), 13, stack);
    write("study.yaml", study);
    for (const std::string degrees : {"cp=1,dp=4", "cp=2,dp=2"}) {
      const json made =
          launched({"study.yaml", "--point", "tp=4,pp=4,zero=1," + degrees, "--for", "megatron-lm"});
      const std::string line = std::string("--cp-comm-type ") + exchange;
      EXPECT_EQ(made.at("command").get<std::string>().find(line) != std::string::npos,
                degrees.starts_with("cp=2"))
          << made;
    }
  }
}

// Gemma 3: five layers with a window, which gather, for each that goes round the ring.
TEST_F(LaunchTest, LayersWithAWindowGather) {
  std::string study = kTrained;
  study.replace(study.find("llama3.1-70b"), 12, "gemma-3-27b");
  write("study.yaml", study);
  const std::vector<std::string> words = {"study.yaml", "--point", "tp=4,pp=1,cp=4,dp=4,zero=1", "--for"};
  const auto launch = [&](const char* framework) {
    std::vector<std::string> all = words;
    all.emplace_back(framework);
    return launched(all);
  };
  const std::string command = launch("megatron-lm").at("command");
  const std::string five = "all_gather all_gather all_gather all_gather all_gather p2p ";
  EXPECT_NE(command.find("--cp-comm-type " + five + five), std::string::npos) << command;
  std::size_t rings = 0, gathers = 0;
  for (std::size_t at = 0; (at = command.find(" p2p", at)) != std::string::npos; ++at) ++rings;
  for (std::size_t at = 0; (at = command.find(" all_gather", at)) != std::string::npos; ++at) ++gathers;
  EXPECT_EQ(rings, 10U);  // of 62 layers
  EXPECT_EQ(gathers, 52U);
}

// vLLM's recipes of DeepSeek-V3 on one node of H200: tensor parallelism with experts dealt, or data parallelism.
TEST_F(LaunchTest, VllmServesDeepSeekAsDocumented) {
  const auto tensor = launched({"serve.yaml", "--point", "tp=8,dp=1,ep=8"}).at("command").get<std::string>();
  EXPECT_NE(tensor.find("vllm serve \\\n  deepseek-ai/DeepSeek-V3 \\\n"), std::string::npos) << tensor;
  expect_lines(tensor, {"--tensor-parallel-size 8", "--enable-expert-parallel"});
  EXPECT_EQ(tensor.find("--data-parallel-size"), std::string::npos);
  const auto data = launched({"serve.yaml", "--point", "tp=1,dp=8,ep=8"}).at("command").get<std::string>();
  expect_lines(data, {"--tensor-parallel-size 1", "--data-parallel-size 8", "--enable-expert-parallel"});
}

// SGLang's of the same: attention data parallel over the ranks of one tensor group.
TEST_F(LaunchTest, SglangServesDeepSeekAsDocumented) {
  const auto made = launched({"serve.yaml", "--point", "tp=1,dp=8,ep=8", "--for", "sglang"});
  expect_lines(made.at("command").get<std::string>(),
               {"--model-path deepseek-ai/DeepSeek-V3", "--tp-size 8", "--dp-size 8", "--enable-dp-attention",
                "--ep-size 8", "--chunked-prefill-size 65536", "--max-running-requests 8192"});
}

TEST_F(LaunchTest, PlansThatAFrameworkCannotRunAreBadInput) {
  write("dense.yaml", R"(model: llama3.1-70b
cluster: dgx-h200
gpus: 24
stack: vllm
workload: {phase: inference, prompt_tokens: 4096, output_tokens: 1024, concurrency: 96, precision: fp8}
space: {tensor_parallel: [8], data_parallel: fill}
)");
  std::string kernels = kServed;
  kernels.replace(kernels.find("stack: vllm"), 11, "stack: {base: vllm, serving: {dispatch: kernels}}");
  write("kernels.yaml", kernels);
  const auto refused = [&](const std::vector<std::string>& words, const std::string& why) {
    const Finished finished = launch(words);
    EXPECT_EQ(finished.code, 2);
    EXPECT_NE(finished.err.find(why), std::string::npos) << finished.err;
    EXPECT_EQ(finished.out, "");
  };
  refused({"train.yaml", "--point", "tp=4,pp=4,dp=4,schedule=dualpipe"},
          "--point: schedule=dualpipe: Megatron-LM cannot run it: it runs 1f1b");
  refused({"train.yaml", "--point", "tp=4,pp=4,dp=4,zero=1", "--for", "torchtitan"},
          "zero=1: torchtitan cannot run it");
  refused({"train.yaml", "--point", "tp=4,pp=4,dp=4,zero=0", "--for", "torchtitan"},
          "zero=0: torchtitan cannot run it: weights that all ranks keep are for data parallelism alone");
  refused(
      {"experts.yaml", "--point", "tp=4,pp=4,dp=4,ep=2,zero=3,sp=1", "--for", "torchtitan"},
      "ep=2: torchtitan cannot run it: with these degrees expert_parallel_degree is 1, or a multiple of 4");
  refused({"experts.yaml", "--point", "tp=4,pp=4,dp=4,ep=1,sp=0"},
          "sp=0: Megatron-LM cannot run it: with experts it asks for --sequence-parallel");
  refused({"dense.yaml", "--point", "tp=8,dp=3", "--gpus-per-node", "12"},
          "dp=3: vLLM cannot run it: each node has --data-parallel-size-local whole replicas");
  refused({"kernels.yaml", "--point", "tp=1,dp=8,ep=4,etp=2", "--for", "sglang"},
          "ep=4: SGLang cannot run it: --moe-a2a-backend deepep");
  refused({"serve.yaml", "--point", "tp=8,dp=1,ep=8", "--for", "dynamo", "--gpus-per-node", "3"},
          "gpus=8: NVIDIA Dynamo with vLLM cannot run it: they make no whole nodes of 3");
  refused({"train.yaml", "--point", "tp=3"}, "--point: tp");
  refused({"train.yaml", "--for", "vllm"}, "--for: vLLM is for inference; the study is one of training");
  refused({"train.yaml", "--for", "vlm"}, "--for");
  refused({"train.yaml", "--point", "tp=4,pp=4,dp=4,mbs=7"}, "the global batch does not divide");
  refused({"train.yaml", "--gpus-per-node", "0"}, "--gpus-per-node");
  refused({"train.yaml", "--gpus-per-node", "3"},
          "gpus=64: Megatron-LM cannot run it: they make no whole nodes of 3");
  refused({}, "STUDY: missing");
  refused({"--options"}, "--options: say whose, with --for");
}

TEST_F(LaunchTest, WhatIsNotExpressedIsNamedWithWhy) {
  const json made = launched({"train.yaml", "--point", "tp=8,pp=1,dp=8,zero=3", "--for", "torchtitan"});
  bool found = false;
  for (const json& one : made.at("not_expressed")) {
    EXPECT_FALSE(one.at("why").get<std::string>().empty());
    found |= one.at("what") == "stack.communication.bucket";
  }
  EXPECT_TRUE(found);
  EXPECT_EQ(made.at("files").at(0).at("name"), "train.toml");
  EXPECT_NE(
      made.at("files").at(0).at("text").get<std::string>().find("fsdp_reshard_after_forward = \"always\""),
      std::string::npos);
}

// Megatron Core stops where an option is asked for without what it needs.
TEST_F(LaunchTest, OptionsThatThePlanHasNoPlaceForAreNamed) {
  const std::string plan = "tp=1,pp=4,dp=16,ep=8", option = "--overlap-moe-expert-parallel-comm";
  const auto why = [&](const std::string& more) {
    const json made = launched({"experts.yaml", "--point", plan + more});
    EXPECT_EQ(made.at("command").get<std::string>().find(option), std::string::npos) << more;
    for (const json& one : made.at("not_expressed"))
      if (one.at("what") == "stack.communication.expert_overlap") return one.at("why").get<std::string>();
    return std::string();
  };
  EXPECT_EQ(why(",recompute=full"), option + " excludes --recompute-granularity full");
  EXPECT_EQ(why(",recompute=none"), option + " needs virtual stages in a pipeline (schedule=interleaved)");
}

TEST_F(LaunchTest, FilesAreWrittenOnceAndRunAsTheyArePrinted) {
  const std::vector<std::string> words = {"train.yaml", "--point", "tp=8,pp=1,dp=8,zero=3", "--for",
                                          "torchtitan"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return launch(all);
  };
  ASSERT_EQ(with({"-o", "job"}).code, 0);
  const std::string toml = read_file(work() / "job/train.toml"), shell = read_file(work() / "job/launch.sh");
  EXPECT_NE(with({}).out.find(toml), std::string::npos);
  // The script says what the command leaves out, as is printed; what it runs comes last there, too.
  EXPECT_TRUE(shell.starts_with("#!/bin/sh\n# ")) << shell;
  const std::size_t begin = shell.find('\n', shell.rfind("\n#") + 1) + 1;
  EXPECT_TRUE(with({}).out.ends_with(shell.substr(begin))) << shell;
  EXPECT_EQ(with({"-o", "job"}).code, 2);
  EXPECT_EQ(with({"-o", "job", "--force"}).code, 0);
  EXPECT_EQ(with({"-o", "no/such/folder"}).code, 1);
  EXPECT_EQ(with({"-o", "train.yaml"}).code, 1);
}

// Whoever stops launch.sh stops the servers that it started, which would keep their GPUs.
TEST_F(LaunchTest, StoppingTheScriptStopsItsServers) {
  write("pools.yaml", kPools);
  fs::create_directory(work() / "bin");
  write("bin/python3",
        "#!/bin/sh\ntrap 'echo ended >> ended.txt; kill $!; exit' TERM\necho up >> up.txt\nsleep 300 "
        "&\nwait\n");
  fs::permissions(work() / "bin/python3", fs::perms::owner_all);
  const Finished made = launch(
      {"pools.yaml", "--point", "tp=4,pp=1,dp=1,prefill_tp=2,prefill_dp=2", "--for", "sglang", "-o", "job"});
  ASSERT_EQ(made.code, 0) << made.err;
  // Two servers that read, one that decodes, and the router.
  const Finished ran = start_words({"timeout", "60", "sh", "-c",
                                    "cd job && PATH=\"$PWD/../bin:$PATH\"\n"
                                    "sh launch.sh & script=$!\n"
                                    "until [ \"$(grep -c up up.txt)\" = 4 ]; do sleep 0.05; done\n"
                                    "kill -TERM $script; wait $script\n"
                                    "until [ \"$(grep -c ended ended.txt)\" = 4 ]; do sleep 0.05; done\n"})
                           .wait();
  EXPECT_EQ(ran.code, 0) << ran.err;
}

// A server does not end: each pool is a script of its own, and one for the router knows where they are.
TEST_F(LaunchTest, TwoPoolsStartBesideEachOther) {
  write("pools.yaml", kPools);
  fs::create_directory(work() / "bin");
  for (const char* name : {"vllm", "trtllm-serve", "python3"}) {
    write(std::string("bin/") + name,
          "#!/bin/sh\necho \"$CUDA_VISIBLE_DEVICES $PORT\" $0 \"$@\" >> started.txt\n");
    fs::permissions(work() / "bin" / name, fs::perms::owner_all);
  }
  struct Case {
    const char* framework;
    std::vector<std::string> gpus;  ///< of each server, and its port
    std::vector<std::string> parts;
  };
  for (const Case& one :
       {Case{"vllm",  // one program runs both replicas that read
             {"0,1,2,3 10000 ", "4,5,6,7 20000 "},
             {"--data-parallel-size 2", "--port 20000",
              "toy_proxy_server.py --port 8000 --prefiller-hosts localhost --prefiller-ports 10000 "
              "--decoder-hosts localhost --decoder-ports 20000"}},
        Case{"sglang",
             {"0,1 10000 ", "2,3 10500 ", "4,5,6,7 20000 "},
             {"--disaggregation-mode prefill --disaggregation-bootstrap-port 10550 --host 0.0.0.0 --port "
              "10500",
              "--disaggregation-mode decode --host 0.0.0.0 --port 20000",
              "--port 8000 --prefill http://localhost:10000 10050 --prefill http://localhost:10500 10550 "
              "--decode http://localhost:20000"}},
        Case{"trtllm",
             {"0,1 10000 ", "2,3 10500 ", "4,5,6,7 20000 "},
             {"--port 10500", "--port 20000", "disaggregated -c router.yaml"}}}) {
    SCOPED_TRACE(one.framework);
    fs::remove_all(work() / "job");
    const Finished made = launch({"pools.yaml", "--point", "tp=4,pp=1,dp=1,prefill_tp=2,prefill_dp=2",
                                  "--for", one.framework, "-o", "job"});
    ASSERT_EQ(made.code, 0) << made.err;
    const Finished ran =
        start_words(
            {"sh", "-c", "cd job && PATH=\"$PWD/../bin:$PATH\" VLLM_SOURCE=. timeout 60 sh launch.sh"})
            .wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    const std::string started = read_file(work() / "job/started.txt");
    EXPECT_EQ(std::ranges::count(started, '\n'), std::ssize(one.gpus) + 1) << started;
    for (const std::string& gpus : one.gpus) EXPECT_TRUE(contains('\n' + started, '\n' + gpus)) << started;
    for (const std::string& part : one.parts) EXPECT_TRUE(contains(started, part)) << part << '\n' << started;
  }
  EXPECT_TRUE(contains(read_file(work() / "job/router.yaml"),
                       "context_servers: {num_instances: 2, urls: [localhost:10000, localhost:10500]}"));
  // Of several machines it is said what each starts, and the router asks for the servers.
  const Finished apart = launch({"pools.yaml", "--point", "tp=4,pp=1,dp=1,prefill_tp=2,prefill_dp=2",
                                 "--gpus-per-node", "4", "-o", "apart"});
  ASSERT_EQ(apart.code, 0) << apart.err;
  const Finished asks = start_words({"sh", "-c", "cd apart && sh launch.sh"}).wait();
  EXPECT_NE(asks.code, 0);
  EXPECT_TRUE(contains(asks.err, "PREFILL: their addresses")) << asks.err;
}

// A model may be called anything: a shell and a file read it as a name.
TEST_F(LaunchTest, NamesAreQuoted) {
  fs::create_directory(work() / "models");
  write("models/it's $(touch owned).yaml", R"(name: it's $(touch owned)
layers: 8
hidden: 1024
heads: 16
ffn_hidden: 4096
vocabulary: 32000
max_positions: 8192
)");
  std::string study = kServed;
  study.replace(study.find("deepseek-v3"), 11, "\"it's $(touch owned)\"");
  study.replace(study.find("[1, 8]}"), 7, "[1]}");
  write("own.yaml", study);
  const Finished shown = launch({"own.yaml", "--point", "tp=8,dp=1", "--presets", "."});
  ASSERT_EQ(shown.code, 0) << shown.err;
  write("run.sh", "vllm() { echo \"$2\"; }\n" + shown.out);
  const Finished ran = start_words({"sh", "run.sh"}).wait();
  EXPECT_EQ(ran.out, "it's $(touch owned)\n") << shown.out;
  EXPECT_FALSE(fs::exists(work() / "owned"));
}

TEST_F(LaunchTest, SimulateShowsTheCommandThatGivesThem) {
  const Finished shown = run(
      {"simulate", "train.yaml", "--point", "tp=4,pp=4,dp=4,zero=1", "--set", "workload.global_batch=256"});
  const std::size_t at = shown.out.find("\nlaunch    shardscape launch train.yaml ");
  ASSERT_NE(at, std::string::npos) << shown.out;
  const std::string line = shown.out.substr(at + 11, shown.out.find('\n', at + 1) - at - 11);
  const Finished ran =
      start_words({"sh", "-c", test::program() + line.substr(std::string("shardscape").size())}).wait();
  ASSERT_EQ(ran.code, 0) << line << ran.err;
  expect_lines(ran.out, {"--tensor-model-parallel-size 4", "--global-batch-size 256"});
}

// A script goes to its files, wherever it is started, and whatever a folder is called; one without files stays where it
// is started.
TEST_F(LaunchTest, ScriptsStartFromAnywhere) {
  write("pools.yaml", kPools);
  fs::create_directory(work() / "bin");
  for (const char* name : {"vllm", "trtllm-serve", "python3", "torchrun"}) {
    write(std::string("bin/") + name, "#!/bin/sh\npwd >> \"$STARTED\"\nls >> \"$STARTED\"\n");
    fs::permissions(work() / "bin" / name, fs::perms::owner_all);
  }
  const auto started_from = [&](const std::string& folder, const std::string& script) {
    fs::remove(work() / "started.txt");
    const std::string here = work().string();
    const Finished ran = start_words({"sh", "-c",
                                      "mkdir -p other && cd " + folder + " && CDPATH=/ STARTED='" + here +
                                          "/started.txt' PATH='" + here +
                                          "/bin':\"$PATH\" VLLM_SOURCE=. timeout 60 sh " + script})
                             .wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    return read_file(work() / "started.txt");
  };
  for (const char* framework : {"vllm", "sglang", "trtllm"}) {
    SCOPED_TRACE(framework);
    const std::string job = std::string("my job ") + framework;
    ASSERT_EQ(launch({"pools.yaml", "--point", "tp=4,pp=1,dp=1,prefill_tp=2,prefill_dp=2", "--for", framework,
                      "-o", job})
                  .code,
              0);
    for (const auto& [folder, script] : {std::pair<std::string, std::string>(".", "'" + job + "/launch.sh'"),
                                         {"other", "'../" + job + "/launch.sh'"},
                                         {"/", "'" + (work() / job / "launch.sh").string() + "'"},
                                         {"'" + job + "'", "launch.sh"}}) {
      const std::string started = started_from(folder, script);
      EXPECT_TRUE(contains(started, job + "\n") && contains(started, "prefill.sh\n")) << script << started;
      EXPECT_FALSE(contains(started, "other\n")) << started;
    }
  }
  ASSERT_EQ(
      launch({"train.yaml", "--point", "tp=8,pp=1,dp=8,zero=3", "--for", "torchtitan", "-o", "job"}).code, 0);
  EXPECT_TRUE(contains(started_from(".", "job/launch.sh"), "train.toml\n"));
  ASSERT_EQ(
      launch({"train.yaml", "--point", "tp=8,pp=1,dp=8,zero=1", "--for", "megatron-lm", "-o", "alone"}).code,
      0);
  EXPECT_TRUE(contains(started_from("other", "../alone/launch.sh"), "other\n"));  // beside pretrain_gpt.py
}

// A result file holds its model in full, and which checkpoint of it was meant.
TEST_F(LaunchTest, ResultsLaunchTheCheckpointOfTheirStudy) {
  for (const char* model : {"Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "qwen/qwen3-30b-a3b-fp8", "qwen3-30b-a3b",
                            "{base: Qwen/Qwen3-30B-A3B-Thinking-2507, layers: 12}"}) {
    SCOPED_TRACE(model);
    const std::string set = std::string("model=") + model;
    ASSERT_EQ(run({"sweep", "serve.yaml", "-o", "out.h5", "--force", "--confirm", "0", "--progress", "none",
                   "--set", set})
                  .code,
              0);
    const json from_study = launched({"serve.yaml", "--set", set, "--point", "tp=1,dp=8,ep=1"});
    EXPECT_EQ(launched({"out.h5", "--point", "tp=1,dp=8,ep=1"}).at("command"), from_study.at("command"));
    // A sweep of what a file holds is the same study again.
    EXPECT_EQ(launched({"out.h5", "--set", "workload.concurrency=64", "--point", "tp=1,dp=8,ep=1"}),
              launched({"serve.yaml", "--set", set, "--point", "tp=1,dp=8,ep=1"}));
  }
  EXPECT_TRUE(contains(launched({"out.h5", "--point", "tp=1,dp=8,ep=1"}).at("command").get<std::string>(),
                       "Qwen/Qwen3-30B-A3B-Thinking-2507 "));
}

// Slurm's sbatch runs a copy of a script, from another folder, where the job was sent: that of the files.
TEST_F(LaunchTest, CopiesOfAScriptStayWhereTheyAreStarted) {
  fs::create_directory(work() / "bin");
  write("bin/torchrun", "#!/bin/sh\npwd\nls\n");
  fs::permissions(work() / "bin/torchrun", fs::perms::owner_all);
  fs::create_directory(work() / "spool");
  for (const char* job : {"job", "other job"})
    ASSERT_EQ(
        launch({"train.yaml", "--point", "tp=8,pp=1,dp=8,zero=3", "--for", "torchtitan", "-o", job}).code, 0);
  fs::copy_file(work() / "job/launch.sh", work() / "spool/slurm_script");
  const auto started_from = [&](const std::string& folder, const std::string& script) {
    const Finished ran = start_words({"sh", "-c",
                                      "cd '" + folder + "' && PATH='" + work().string() +
                                          "/bin':\"$PATH\" timeout 60 sh " + script})
                             .wait();
    EXPECT_EQ(ran.code, 0) << ran.err;
    return ran.out;
  };
  const std::string copied = started_from("job", "../spool/slurm_script");
  EXPECT_TRUE(contains(copied, "/job\n") && contains(copied, "train.toml\n")) << copied;
  // One that lies beside its files takes these, and not those of the job where it is started.
  const std::string beside = started_from("other job", "../job/launch.sh");
  EXPECT_TRUE(contains(beside, "/job\n")) << beside;
}

// Checkpoints of a model may differ in a key that a framework is told: the command is of the one that the study names.
TEST_F(LaunchTest, CheckpointsHaveTheirOwnName) {
  const auto command = [&](const std::string& study, const std::string& model, const std::string& point) {
    return launched({study, "--set", "model=" + model, "--point", point}).at("command").get<std::string>();
  };
  std::string sharded = kTrained;
  sharded.replace(sharded.find("[4, 8]"), 6, "[4]");
  write("moe.yaml", sharded);
  const std::string first = command("moe.yaml", "Qwen/Qwen3-235B-A22B", "tp=4,pp=1,zero=1");
  EXPECT_TRUE(contains(first, "--rotary-base 1000000 ")) << first;
  const std::string later = command("moe.yaml", "Qwen/Qwen3-235B-A22B-Instruct-2507", "tp=4,pp=1,zero=1");
  EXPECT_TRUE(contains(later, "--rotary-base 5000000 ")) << later;
  const std::string unknown = command("moe.yaml", "qwen/qwen3-30b-a3b-thinking-2507", "tp=4,pp=1,zero=1");
  EXPECT_FALSE(contains(unknown, "--rotary-base")) << unknown;
  const std::string served = command("serve.yaml", "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8", "tp=1");
  EXPECT_TRUE(contains(served, "vllm serve ") && contains(served, "Qwen/Qwen3-30B-A3B-Instruct-2507-FP8"))
      << served;
  EXPECT_TRUE(contains(command("serve.yaml", "qwen3-30b-a3b", "tp=1"), "Qwen/Qwen3-30B-A3B ")) << served;
  // A study that brings its own weights names them.
  EXPECT_TRUE(
      contains(command("serve.yaml", "{base: qwen3-30b-a3b, also: mine/tuned}", "tp=1"), "mine/tuned "));
  // Megatron FSDP does not start without its own kind of checkpoints.
  EXPECT_TRUE(
      contains(launched({"train.yaml", "--point", "tp=8,pp=1,zero=3", "--for", "megatron-lm"}).at("command"),
               "--ckpt-format fsdp_dtensor"));
  EXPECT_FALSE(
      contains(launched({"train.yaml", "--point", "tp=8,pp=1,zero=1", "--for", "megatron-lm"}).at("command"),
               "--ckpt-format"));
}

// A plan that does not fit is launched with a warning on top; without --point the first that fits is taken.
TEST_F(LaunchTest, PlansThatDoNotFitSaySoFirst) {
  const std::vector<std::string> plan = {"train.yaml", "--for", "megatron-lm", "--point",
                                         "tp=4,pp=1,cp=1,dp=16,zero=1"};
  const Finished shown = launch(plan);
  EXPECT_TRUE(shown.out.starts_with("# this plan does not fit: it needs ")) << shown.out;
  const json document = launched(plan);
  EXPECT_EQ(document.at("status"), "memory");
  EXPECT_NE(document.at("reason"), "none");
  EXPECT_FALSE(document.at("memory_tight").get<bool>()) << "what does not fit is not tight, as in simulate";
  std::vector<std::string> files = plan;
  files.insert(files.end(), {"-o", "job"});
  EXPECT_EQ(launch(files).code, 0);
  EXPECT_TRUE(
      contains(read_file(work() / "job/launch.sh"), "#!/bin/sh\n# this plan does not fit: it needs "));
  const json fits = launched({"train.yaml", "--for", "megatron-lm"});
  EXPECT_EQ(fits.at("status"), "ok");
  const Finished first = run({"launch", "train.yaml", "--for", "megatron-lm", "--json"});
  EXPECT_TRUE(contains(first.err, "the study's first plan is not feasible; this is the first that is, tp="))
      << first.err;
  // Where none fits it is the first, as it stands.
  const Finished none = run({"launch", "train.yaml", "--for", "megatron-lm", "--json", "--set",
                             "hardware.device.hbm.capacity=1 GB"});
  EXPECT_EQ(json::parse(none.out).at("status"), "memory") << none.err;
  EXPECT_FALSE(contains(none.err, "first that is")) << none.err;
}

}  // namespace
}  // namespace shardscape::cli
