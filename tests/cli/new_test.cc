// Does `new` write a study that the other commands take as it stands, and say what it lacks?
#include <pty.h>

#include <cstdlib>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

class NewTest : public ProgramTest {
 protected:
  Finished write_study(const std::string& model, const std::string& cluster, const std::string& gpus,
                       const std::string& phase, const std::string& file = "study.yaml") {
    return run({"new", "--model", model, "--cluster", cluster, "--gpus", gpus, "--phase", phase, "-o", file});
  }

  /// What the program says on a terminal where a user types these answers.
  std::string dialogue(const std::string& answers) {
    std::string program = test::program(), word = "new";
    char* const argv[] = {program.data(), word.data(), nullptr};
    const std::string folder = work().string();
    int terminal = -1;
    const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
    if (pid == 0) {
      if (chdir(folder.c_str()) != 0) _exit(125);
      execv(argv[0], argv);
      _exit(126);
    }
    EXPECT_EQ(::write(terminal, answers.data(), answers.size()), static_cast<ssize_t>(answers.size()));
    std::string text;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(terminal, buffer, sizeof buffer)) > 0;)
      text.append(buffer, static_cast<std::size_t>(got));
    int status = 0;
    waitpid(pid, &status, 0);
    close(terminal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
    return text;
  }
};

TEST_F(NewTest, FirstHour) {
  const Finished written = write_study("llama3.1-8b", "dgx-h100", "16", "training");
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_TRUE(contains(written.out, "study.yaml: llama3.1-8b on 16 x h100-sxm-80gb, training, "))
      << written.out;
  for (const char* command : {"shardscape check study.yaml\n", "shardscape sweep study.yaml -o study.h5\n",
                              "shardscape top study.h5\n"})
    EXPECT_TRUE(contains(written.out, command)) << written.out;
  EXPECT_TRUE(contains(run({"check", "study.yaml"}).out, "  ok "));
  EXPECT_EQ(run({"sweep", "study.yaml", "-o", "study.h5", "--progress", "none"}).code, 0);
  EXPECT_TRUE(contains(run({"top", "study.h5", "-n", "1"}).out, "best by step_time_s"));
  EXPECT_EQ(run({"search", "study.yaml", "-n", "1", "--progress", "none"}).code, 0);
}

// Megatron FSDP does not go with pipeline stages; sharding by FSDP2 has them.
TEST_F(NewTest, PlansThatTheFrameworkRefusesAreLeftOut) {
  for (const auto& [stack, left_out] : {std::pair("megatron-core", true), std::pair("torchtitan", false)}) {
    ASSERT_EQ(run({"new", "--model", "llama3.1-8b", "--cluster", "dgx-h100", "--gpus", "32", "--phase",
                   "training", "--stack", stack, "-o", "study.yaml", "--force"})
                  .code,
              0);
    ASSERT_EQ(run({"sweep", "study.yaml", "-o", "study.h5", "--force", "--progress", "none"}).code, 0);
    const auto count = [&](const std::string& where) {
      return nlohmann::json::parse(
                 run({"top", "study.h5", "-n", "2", "--where", where, "--format", "json"}).out)
          .size();
    };
    EXPECT_EQ(count("zero == 3 and pp > 1"), left_out ? 0U : 2U) << stack;
    EXPECT_EQ(count("zero == 3 and pp == 1"), 2U) << stack;
    EXPECT_EQ(count("zero == 1 and pp > 1"), 2U) << stack;
  }
}

// Of small machines and large models some have no plan that fits; check says so, and why.
TEST_F(NewTest, StudiesHaveFeasiblePointsOrSayWhyNot) {
  struct Case {
    const char *model, *cluster, *gpus, *phase;
    bool fits;
  };
  for (const Case& one : {Case{"deepseek-v3", "dgx-h200", "16", "serving", true},
                          Case{"gpt-oss-120b", "dgx-b200", "8", "serving", true},
                          Case{"mixtral-8x7b", "dgx-h100", "64", "training", true},
                          Case{"opt-1.3b", "dgx-1v", "8", "training", true},
                          Case{"llama3.1-405b", "gb200-nvl72", "1152", "training", true},
                          Case{"kimi-k2", "dgx-h100", "1", "serving", false},
                          Case{"llama3.1-405b", "dgx-a100", "8", "training", false}}) {
    SCOPED_TRACE(one.model);
    fs::remove(work() / "study.yaml");
    const Finished written = write_study(one.model, one.cluster, one.gpus, one.phase);
    ASSERT_EQ(written.code, 0) << written.err;
    const Finished check = run({"check", "study.yaml"});
    EXPECT_EQ(check.code, 0) << check.err;
    EXPECT_EQ(contains(check.out, "\n  ok "), one.fits) << check.out;
    EXPECT_TRUE(one.fits || contains(check.out, "needs more memory")) << check.out;
  }
}

TEST_F(NewTest, SaysWhatIsMissingOrWrong) {
  const Finished nothing = run({"new"});
  EXPECT_EQ(nothing.code, 2);
  for (const char* option : {"--model: is missing; ", "--cluster: is missing; ", "--gpus: is missing; ",
                             "--phase: is missing; training or serving"})
    EXPECT_TRUE(contains(nothing.err, option)) << nothing.err;
  const Finished wrong =
      run({"new", "--model", "llama3.1-70", "--cluster", "dgx-h100", "--gpus", "12", "--phase", "trainin"});
  EXPECT_EQ(wrong.code, 2);
  EXPECT_TRUE(contains(wrong.err, "--model: ") && contains(wrong.err, "llama3.1-70b")) << wrong.err;
  EXPECT_TRUE(contains(wrong.err, "--gpus: ")) << wrong.err;
  EXPECT_TRUE(contains(wrong.err, "--phase: 'trainin' is not one of training")) << wrong.err;
  for (const char* gpus : {"0", "-8", "x", "8.5", "99999999999999999999", "4000000000"})
    EXPECT_EQ(write_study("llama3.1-8b", "dgx-h100", gpus, "training").code, 2) << gpus;
  EXPECT_TRUE(left_behind().empty());
}

TEST_F(NewTest, ReplacesNothingUnasked) {
  write("study.yaml", "mine");
  EXPECT_EQ(write_study("llama3.1-8b", "dgx-h100", "8", "serving").code, 2);
  EXPECT_EQ(read_file(work() / "study.yaml"), "mine");
}

// A file of the user's is named by its path from the study, wherever that is.
TEST_F(NewTest, OwnFilesAreNamedFromTheStudy) {
  fs::create_directories(work() / "configs");
  fs::create_directories(work() / "studies");
  write(
      "configs/config.json",
      R"({"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 1024, "vocab_size": 32000,
            "intermediate_size": 4096, "num_hidden_layers": 8, "num_attention_heads": 8})");
  const Finished written =
      write_study("configs/config.json", "dgx-h100", "8", "serving", "studies/mine.yaml");
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_TRUE(contains(read_file(work() / "studies/mine.yaml"), "model: ../configs/config.json"));
  EXPECT_EQ(run({"check", "studies/mine.yaml"}).code, 0);
}

TEST_F(NewTest, AsksOnATerminal) {
  const std::string text =
      dialogue("llama3.1-8\nllama3.1-8b\ndgx-h100\n12\n16\nserving\n\n128\nfast\n4 /s\nttft_p95: 2 s\n");
  EXPECT_TRUE(contains(text, "model (a name of 'shardscape presets'")) << text;
  EXPECT_TRUE(contains(text, "unknown model")) << text;  // the misspelt one is asked for again
  EXPECT_TRUE(contains(text, "study.yaml: llama3.1-8b on 16 x h100-sxm-80gb, serving")) << text;
  EXPECT_TRUE(contains(text, "prompt-tokens (tokens of each request; or nothing): ")) << text;
  EXPECT_TRUE(contains(text, "is no rate of requests, such as 3 /s")) << text;  // asked for again
  EXPECT_FALSE(contains(text, "concurrency (")) << text;
  const std::string study = read_file(work() / "study.yaml");
  for (const char* line : {"gpus: 16 ", "prompt_tokens: 2048 ", "output_tokens: 128 ", "request_rate: 4 /s ",
                           "promises: {ttft_p95: 2 s} "})
    EXPECT_TRUE(contains(study, line)) << line << study;
}

// The first study of a question finds what the study that was written by hand for it finds.
TEST_F(NewTest, FindsWhatAStudyByHandFinds) {
  const std::string study = test::source_dir() + "/sweep/studies/llama3.1-70b-64xa100.yaml";
  const Finished written = run({"new", "--model", "llama3.1-70b", "--cluster", "a100-torus2d-ring-64",
                                "--phase", "training", "--sequence-length", "4096", "--global-batch", "128"});
  ASSERT_EQ(written.code, 0) << written.err;
  const auto best = [&](const std::string& file) {
    const Finished found = run({"search", file, "-n", "1", "--format", "json", "--progress", "none"});
    EXPECT_EQ(found.code, 0) << found.err;
    return nlohmann::json::parse(found.out).at(0).at("step_time_s").get<double>();
  };
  EXPECT_LE(best("study.yaml"), best(study));
}

TEST_F(NewTest, TakesTheLoadFromOptions) {
  const auto study_with = [&](const char* phase, const std::vector<std::string>& options) {
    fs::remove(work() / "study.yaml");
    std::vector<std::string> words = {"new",    "--model", "llama3.1-8b", "--cluster", "dgx-h100",
                                      "--gpus", "64",      "--phase",     phase};
    words.insert(words.end(), options.begin(), options.end());
    const Finished written = run(words);
    return written.code == 0 ? written.out + read_file(work() / "study.yaml") : written.err;
  };
  const auto expect = [&](const char* phase, const std::vector<std::string>& options,
                          const std::vector<std::string>& parts) {
    const std::string text = study_with(phase, options);
    for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << part << '\n' << text;
  };
  expect("training", {}, {"context_parallel: [1, 2] "});
  expect("training", {"--sequence-length", "32768", "--global-batch", "64,128"},
         {"sequence_length: 32768 ", "global_batch: [64,128] ", "context_parallel: [1, 2, 4, 8, 16] "});
  expect("serving", {"--concurrency", "8"}, {"concurrency: 8 ", "# request_rate: ", "# promises: "});
  expect("serving", {"--request-rate", "2 /s, 8 /s", "--promises", "ttft_p95: 2 s, tpot_p95: 40 ms"},
         {"request_rate: [2 /s, 8 /s] ", "promises: {ttft_p95: 2 s, tpot_p95: 40 ms} ",
          "shardscape capacity study.yaml\n", "top study.h5 --per request_rate\n"});
  expect("serving", {"--request-rate", "2 /s", "--concurrency", "8"},
         {"--concurrency: excludes request_rate"});
  expect("serving", {"--promises", "ttft_p95: 2 s"}, {"--promises: "});
  expect("serving", {"--global-batch", "8"}, {"--global-batch: is no key of serving studies"});
  expect("training", {"--global-batch", "0"}, {"--global-batch: "});
  expect("training", {"--global-batch", "8]\nmodel: x"}, {"--global-batch: has several lines"});
  expect("training", {"--sequence-length", "999999999999999999999999"}, {"--sequence-length: "});
}

// A study for 64 GPUs answers for fewer: as if its lists had been cut by hand, and it says what no plan has.
TEST_F(NewTest, StudiesTakeOtherNumbersOfGpus) {
  ASSERT_EQ(write_study("llama3.1-8b", "dgx-h100", "64", "training").code, 0);
  const std::string study = read_file(work() / "study.yaml");
  const auto rows = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "search");
    words.insert(words.end(), {"-n", "20", "--format", "csv", "--confirm", "0", "--progress", "none"});
    const Finished found = run(words);
    EXPECT_EQ(found.code, 0) << found.err;
    return found.out;
  };
  const auto cut = [&](std::string text, const std::vector<std::pair<std::string, std::string>>& changes) {
    for (const auto& [from, to] : changes) {
      EXPECT_NE(text.find(from), std::string::npos) << from << text;
      text.replace(text.find(from), from.size(), to);
    }
    return text;
  };
  write("four.yaml", cut(study, {{"gpus: 64", "gpus: 4"},
                                 {"tensor_parallel: [1, 2, 4, 8]", "tensor_parallel: [1, 2, 4]"},
                                 {"pipeline_parallel: [1, 2, 4, 8, 16]", "pipeline_parallel: [1, 2, 4]"}}));
  EXPECT_EQ(rows({"study.yaml", "--set", "gpus=4"}), rows({"four.yaml"}));
  const Finished fewer = run({"simulate", "study.yaml", "--set", "gpus=4", "--point", "tp=4"});
  EXPECT_EQ(fewer.code, 0) << fewer.err;
  EXPECT_TRUE(contains(fewer.err,
                       "warning: --set gpus=4: no plan on so many GPUs has these values of space, which "
                       "are left out: tensor_parallel 8, pipeline_parallel [8, 16]\n"))
      << fewer.err;
  const Finished listed = run({"simulate", "study.yaml", "--set", "gpus=[2,\n4]", "--json"});
  EXPECT_TRUE(contains(listed.err, "warning: --set gpus=[2,\\n4]: ")) << listed.err;
  EXPECT_EQ(nlohmann::json::parse(listed.out).at("assumptions").size(), 2U) << listed.out;
  // On one GPU whole axes have no effect.
  const Finished one = run({"check", "study.yaml", "--set", "gpus=1"});
  EXPECT_EQ(one.code, 0) << one.err;
  for (const char* part :
       {"tensor_parallel [2, 4, 8]", ", sequence_parallel", ", zero_stage", ", schedule",
        ", virtual_stages"})  // without a pipeline nothing is interleaved, and nothing cut for it
    EXPECT_TRUE(contains(one.err, part)) << part << one.err;
  const Finished seven = run({"check", "study.yaml", "--set", "gpus=7"});
  EXPECT_EQ(seven.code, 0) << seven.err;
  EXPECT_TRUE(contains(seven.err, ", schedule, virtual_stages\n")) << seven.err;
  const Finished asked = run({"check", "study.yaml", "--set", "gpus=7", "--set", "space.virtual_stages=3"});
  EXPECT_EQ(asked.code, 2);
  EXPECT_TRUE(contains(asked.err, "space.virtual_stages: has no effect without interleaved in schedule"))
      << asked.err;
  EXPECT_TRUE(contains(run({"check", "study.yaml", "--set", "gpus=[4, 64]"}).out, "  ok "));
  EXPECT_EQ(run({"check", "study.yaml", "--set", "gpus=[4, 64]"}).err, "");
}

// What serves the user stays an error: a number in the file itself, one on the command line, and a key of which
// nothing is left.
TEST_F(NewTest, DegreesThatNothingIsLeftOfAreRefused) {
  ASSERT_EQ(write_study("llama3.1-8b", "dgx-h100", "16", "serving").code, 0);
  std::string study = read_file(work() / "study.yaml");
  const auto refused = [&](const std::vector<std::string>& set, const std::string& part) {
    std::vector<std::string> words = {"check", "study.yaml"};
    for (const std::string& change : set) words.insert(words.end(), {"--set", change});
    const Finished finished = run(words);
    EXPECT_EQ(finished.code, 2) << part;
    EXPECT_TRUE(contains(finished.err, part)) << finished.err;
  };
  refused({"gpus=4", "space.tensor_parallel=8"},
          "space.tensor_parallel: must be an integer from 1 to 4, not 8");
  refused({"gpus=6", "space.tensor_parallel=[4, 8]", "space.data_parallel=1"},
          "space.tensor_parallel: must be an integer from 1 to 6, not 8");
  study.replace(study.find("tensor_parallel: ["), std::string("tensor_parallel: [1, ").size(),
                "tensor_parallel: [8, ");
  study.replace(study.find("2, 4, 8]"), 8, "16]");
  write("study.yaml", study);
  refused(
      {"gpus=4"},
      "space.tensor_parallel: --set gpus=4 leaves none of its values: no plan on so many GPUs has [8, 16]");
  study.replace(study.find("gpus: 16"), 8, "gpus: 4 ");
  write("study.yaml", study);
  refused({}, "space.tensor_parallel: must be an integer from 1 to 4, not 8");
}

// The pool of the template works as it stands there, with its degree, and is left out where it has no room.
TEST_F(NewTest, ThePoolOfATemplateHasItsDegree) {
  ASSERT_EQ(write_study("llama3.1-70b", "dgx-h100", "16", "serving").code, 0);
  std::string study = read_file(work() / "study.yaml");
  for (const char* key : {"# prefill_gpus: ", "# prefill_tensor_parallel: "}) {
    ASSERT_TRUE(contains(study, key)) << study;
    study.erase(study.find(key), 2);
  }
  write("study.yaml", study);
  ASSERT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--confirm", "0", "--progress", "none"}).code, 0);
  const Finished found = run({"top", "out.h5", "--where", "prefill_tp >= 2", "-n", "1", "--format", "json"});
  ASSERT_EQ(found.code, 0) << found.err;
  ASSERT_EQ(nlohmann::json::parse(found.out).size(), 1U) << found.out;
  const Finished one = run({"check", "study.yaml", "--set", "gpus=8"});
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_TRUE(contains(one.err, "prefill_gpus 8, prefill_tensor_parallel")) << one.err;
  // A degree needs a pool that is left and that it divides.
  study.replace(study.find("prefill_gpus: [0, 8]"), 20, "prefill_gpus: [0, 4, 8]");
  write("study.yaml", study);
  const Finished smaller = run({"check", "study.yaml", "--set", "gpus=8"});
  EXPECT_EQ(smaller.code, 0) << smaller.err;
  EXPECT_TRUE(contains(smaller.err, "prefill_gpus 8, prefill_tensor_parallel 8")) << smaller.err;
}

TEST_F(NewTest, TakesAPrecisionThatTheDeviceHas) {
  const auto with = [&](const char* cluster, const char* phase, const char* precision) {
    fs::remove(work() / "study.yaml");
    return run({"new", "--model", "llama3.1-8b", "--cluster", cluster, "--gpus", "8", "--phase", phase,
                "--precision", precision});
  };
  for (const char* phase : {"training", "serving"})
    for (const char* name : {"fp8", "mxfp8", "nvfp4", "bf16, fp8"}) {
      const Finished made = with("dgx-b200", phase, name);
      ASSERT_EQ(made.code, 0) << made.err;
      EXPECT_TRUE(contains(made.out, std::string(" x b200-sxm-180gb, ") + phase)) << made.out;
      EXPECT_TRUE(contains(read_file(work() / "study.yaml"),
                           std::string("  precision: ") + (contains(name, ",") ? "[bf16, fp8] " : name)))
          << name;
      EXPECT_EQ(run({"check", "study.yaml"}).code, 0);
    }
  // What may stand there instead is something else.
  ASSERT_EQ(with("dgx-b200", "training", "[bf16,fp8]").code, 0);
  const std::string several = read_file(work() / "study.yaml");
  const std::size_t line = several.find("  precision: [bf16, fp8] ");
  ASSERT_NE(line, std::string::npos) << several;
  const std::string comment =
      several.substr(several.find('#', line), several.find('\n', line) - several.find('#', line));
  EXPECT_EQ(comment, "# or fp16, fp4");
  for (const char* name : {"nvfp4", "fp4", "bf16, fp4"}) {
    const Finished none = with("dgx-h100", "serving", name);
    EXPECT_EQ(none.code, 2);
    EXPECT_TRUE(contains(none.err, "--precision: h100-sxm-80gb has no matrix units for fp4")) << none.err;
    EXPECT_FALSE(fs::exists(work() / "study.yaml"));
  }
  for (const char* name : {"fp9", "8", "bf16\nmodel: x", "{a: b}", "[]"})
    EXPECT_EQ(with("dgx-h100", "training", name).code, 2) << name;
  ASSERT_EQ(with("dgx-h100", "training", "bf16").code, 0);
  for (const char* set : {"precision=fp8", "global_batch=8", "recompute=full"}) {
    const std::string key = std::string(set).substr(0, std::string(set).find('='));
    const std::string path = (key == "recompute" ? "space." : "workload.") + key;
    const Finished hint = run({"check", "study.yaml", "--set", set});
    EXPECT_EQ(hint.code, 2);
    EXPECT_TRUE(contains(hint.err, "unknown key; did you mean \"" + path + "\"?")) << hint.err;
  }
}

}  // namespace
}  // namespace shardscape::cli
