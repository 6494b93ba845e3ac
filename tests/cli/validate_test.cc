// Does `validate` read, judge, report and exit as its help says?
#include <algorithm>
#include <array>
#include <initializer_list>
#include <nlohmann/json.hpp>

#include "tests/cli/program_under_test.h"
#include "tests/support/csv.h"
#include "tests/support/plan_table.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;

constexpr const char* kTraining =
    "fast,training,llama3.1-8b,dgx-a100,megatron-lm,8,2,1,1,1,4,1,selective,1f1b,1,1,8,32,4096,,,,5,,0,,,,"
    "here\n"
    "slow,training,llama3.1-8b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,1,32,32,4096,,,,9,,,,,,\"a, "
    "b\"\n";

class ValidateTest : public ProgramTest {};

TEST_F(ValidateTest, JsonHasEveryStatistic) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--json", "--rows", "--hold-out", "1/2"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("path"), "runs.csv");
  EXPECT_EQ(file.at("kind"), "plans");
  const json& step_time = file.at("step_time");
  EXPECT_EQ(step_time.at("n"), 2);
  const json& rows = file.at("row_list");
  ASSERT_EQ(rows.size(), 2U);
  double sum = 0;
  for (const json& row : rows) {
    const json& pair = row.at("step_time");
    EXPECT_NEAR(pair.at("error"), pair.at("predicted").get<double>() / pair.at("measured").get<double>() - 1,
                1e-12);
    sum += std::abs(pair.at("error").get<double>());
  }
  EXPECT_NEAR(step_time.at("mape"), sum / 2, 1e-12);
  for (const char* name : {"median", "p90", "max"}) EXPECT_TRUE(step_time.at(name).is_number()) << name;
  EXPECT_EQ(file.at("memory").at("n"), 0);
  EXPECT_TRUE(file.at("memory").at("mape").is_null());
  EXPECT_EQ(file.at("oom").at("n"), 1);
  EXPECT_TRUE(file.at("oom").at("recall").is_null());
  EXPECT_EQ(file.at("ranking").at("groups"), 0);
  const json& parts = file.at("parts");
  EXPECT_EQ(parts.at("fitted").at("step_time").at("n").get<int>() +
                parts.at("held_out").at("step_time").at("n").get<int>(),
            2);
}

TEST_F(ValidateTest, PredictionsAreThoseOfTheReport) {
  write("runs.csv",
        std::string(test::kPlanHeader) + kTraining +
            "chat,inference,llama3.1-8b,dgx-a100,nim,8,8,,1,1,1,,,,,,,,,1000,200,4,,,,0.2,0.02,,\n");
  const Finished finished = run({"validate", "runs.csv", "--json", "--rows", "--predictions", "out.csv"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(left_behind(), (std::vector<std::string>{"out.csv", "runs.csv"}));
  const std::vector<test::CsvRow> rows = test::read_csv(work() / "out.csv");
  ASSERT_EQ(rows.size(), 3U);
  const json list = json::parse(finished.out).at("files").at(0).at("row_list");
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(rows[i].at("id"), list[i].at("id"));
    EXPECT_EQ(std::stod(rows[i].at("predicted_step_time_s")),
              list[i].at("step_time").at("predicted").get<double>());
    EXPECT_GT(std::stod(rows[i].at("predicted_memory_peak_bytes")), 1e9);
    EXPECT_EQ(rows[i].at("predicted_itl_s"), "");
  }
  EXPECT_EQ(rows[2].at("predicted_step_time_s"), "");
  EXPECT_EQ(std::stod(rows[2].at("predicted_itl_s")), list[2].at("itl").at("predicted").get<double>());
  EXPECT_TRUE(rows[2].at("predicted_oom") == "0" || rows[2].at("predicted_oom") == "1");
}

TEST_F(ValidateTest, ReferencePathPredictsTheSame) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  ASSERT_EQ(run({"validate", "runs.csv", "--predictions", "a.csv"}).code, 0);
  ASSERT_EQ(run({"validate", "runs.csv", "--predictions", "b.csv", "--reference"}).code, 0);
  const std::vector<test::CsvRow> fast = test::read_csv(work() / "a.csv"),
                                  plain = test::read_csv(work() / "b.csv");
  ASSERT_EQ(fast.size(), 2U);
  ASSERT_EQ(plain.size(), fast.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    for (const char* column : {"predicted_step_time_s", "predicted_memory_peak_bytes"}) {
      const double value = std::stod(plain[i].at(column));
      EXPECT_NEAR(std::stod(fast[i].at(column)), value, 1e-12 * value);  // sums in another order
    }
    EXPECT_EQ(fast[i].at("predicted_oom"), plain[i].at("predicted_oom"));
  }
}

TEST_F(ValidateTest, BadRowsAreLocatedAndTheOthersReported) {
  write(
      "runs.csv",
      std::string(test::kPlanHeader) + kTraining +
          "odd,training,llama3.1-8c,dgx-a100,megatron-lm,8,2,1,1,1,4,x,full,1f1b,1,1,8,32,4096,,,,5,,,,,,\n"
          "few,training,llama3.1-8b,dgx-a100,megatron-lm,8,2,1,1,1,2,1,full,1f1b,1,1,,32,4096,,,,5,,,,,,\n"
          "who,training,llama3.1-8c,dgx-a100,megatron-lm,8,2,1,1,1,4,1,full,1f1b,1,1,8,32,4096,,,,5,,,,,,\n");
  const Finished finished = run({"validate", "runs.csv", "--json", "--predictions", "out.csv"});
  EXPECT_EQ(finished.code, 2);
  for (const char* part : {"runs.csv:4: zero_stage: 'x'", "runs.csv:5: gpus: there are 8",
                           "runs.csv:4: model: ", "runs.csv:6: model: ", "llama3.1-8b", "4 problems"}) {
    EXPECT_TRUE(contains(finished.err, part)) << part << " not in\n" << finished.err;
  }
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("step_time").at("n"), 2);
  EXPECT_EQ(file.at("problems").size(), 4U);
  const std::vector<test::CsvRow> lines = test::read_csv(work() / "out.csv");
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_TRUE(contains(lines[3].at("reason"), "gpus: there are 8")) << lines[3].at("reason");
  EXPECT_EQ(lines[3].at("predicted_step_time_s"), "");
  EXPECT_EQ(lines[0].at("reason"), "");
}

/// A table that is wrong in one way; `good` of its rows are predicted all the same.
struct Broken {
  const char* name;
  std::string text;
  int good;
  std::vector<std::string> said;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

/// test::kPlanHeader, two good rows, and another: kTraining's first with these changes.
std::string with_row(std::initializer_list<std::array<const char*, 2>> changes) {
  const std::string rows = kTraining;
  std::string row = replaced(rows.substr(0, rows.find('\n') + 1), "fast", "third");
  for (const auto& [from, to] : changes) row = replaced(row, from, to);
  return std::string(test::kPlanHeader) + kTraining + row;
}

const std::string kChat =
    "chat,inference,llama3.1-8b,dgx-a100,nim,8,8,,1,1,1,,,,,,,,,1000,200,4,,,,0.2,0.02,,\n";

/// Tables whose form is wrong.
std::vector<Broken> broken_forms() {
  const std::string header = test::kPlanHeader, rows = kTraining;
  return {
      {"no rows", header, 0, {"runs.csv:1: names the columns, but no row follows"}},
      {"blank file", "\n", 0, {"runs.csv:1: the header is that of no measurement table"}},
      {"missing column",
       replaced(header, "model,", "") + replaced(rows, "llama3.1-8b,", ""),
       0,
       {"runs.csv:1: model: missing column"}},
      {"unknown column",
       replaced(header, "recompute", "recomputed") + rows,
       2,
       {"runs.csv:1: recomputed: unknown column of a table of plans (did you mean 'recompute'?)"}},
      {"column twice", replaced(header, "source", "id") + rows, 2, {"runs.csv:1: id: is named twice"}},
      {"short row", header + rows + "a,training\n", 2, {"runs.csv:4: has 2 cells"}},
      {"open quote", header + rows + "\"a,training\n", 2, {"runs.csv:4: a quote is never closed"}},
      {"no UTF-8", header + rows + replaced(rows, "fast", "f\xFF"), 2, {"runs.csv:4: is not UTF-8 text"}},
      {"no UTF-8 in the header", replaced(header, "id", "i\xC0\xAF") + rows, 0, {"runs.csv:1: is not UTF-8"}},
      {"id twice", header + rows + rows, 2, {"runs.csv:4: id: 'fast' is the name of line 2"}},
      {"phase",
       with_row({{"training", "trainig"}}),
       2,
       {"runs.csv:4: phase: unknown 'trainig' (did you mean"}},
      {"number", with_row({{"8,2,1", "8,2.5,1"}}), 2, {"runs.csv:4: tensor_parallel: '2.5'"}},
  };
}

/// Tables of plans with a row that cannot be predicted.
std::vector<Broken> broken_plans() {
  const std::string header = test::kPlanHeader, rows = kTraining;
  return {
      {"presets",
       with_row({{"llama3.1-8b", "llama"}, {"dgx-a100", "dgx"}, {"megatron-lm", "megatron"}}),
       2,
       {"runs.csv:4: model: unknown model", "runs.csv:4: cluster: unknown cluster",
        "runs.csv:4: stack: unknown stack", "did you mean megatron-lm,"}},
      {"presets beside cells",
       with_row({{"llama3.1-8b", "llama"}, {"selective", "half"}}),
       2,
       {"runs.csv:4: model: unknown model", "runs.csv:4: recompute: unknown 'half'"}},
      {"degrees",
       with_row({{",8,2,", ",8,4,"}}),
       2,
       {"runs.csv:4: gpus: there are 8, but tp * cp * pp * dp = "}},
      {"GPUs of the cluster",
       with_row({{",8,2,1,1,1,4", ",12,2,1,1,1,6"}, {"1,8,32", "1,8,48"}}),
       2,
       {"runs.csv:4: gpus: is 12, but cluster dgx-a100 grows in units of 8"}},
      {"heads",
       with_row({{",8,2,1,1,1,4", ",24,3,1,1,1,8"}, {"1,8,32", "1,4,32"}}),
       2,
       {"runs.csv:4: tensor_parallel: impossible plan: the 32 heads of llama3.1-8b do not divide by tp 3"}},
      {"layers",
       with_row({{",8,2,1,1,1,4", ",24,1,0,1,3,8"}, {"1,8,32", "1,4,32"}}),
       2,
       {"runs.csv:4: pipeline_parallel: impossible plan: the 32 layers of llama3.1-8b do not divide by "
        "pp * virtual_stages = 3"}},
      {"interleaving",
       with_row({{",8,2,1,1,1,4", ",16,1,0,1,4,4"}, {"1f1b,1,1,8,32", "interleaved,2,1,6,24"}}),
       2,
       {"runs.csv:4: num_microbatches: impossible plan: the interleaved schedule needs a number that divides "
        "by "
        "pp 4, not 6"}},
      {"batch",
       with_row({{"1,1,8,32", "1,3,,32"}}),
       2,
       {"runs.csv:4: global_batch: impossible plan: 32 does not divide by dp * microbatch_size = 12"}},
      {"too many samples",
       with_row({{"1,1,8,32", "1,2147483647,2147483647,"}}),
       2,
       {"runs.csv:4: num_microbatches: dp * microbatch_size * num_microbatches is more than"}},
      {"sequence",
       with_row({{"4096", "4097"}}),
       2,
       {"runs.csv:4: sequence_parallel: impossible plan: the sequence of 4097 tokens does not divide by cp * "
        "tp"}},
      {"precision",
       replaced(header, "gpus,", "precision,gpus,") + replaced(rows, "-lm,8,2", "-lm,fp8,8,2"),
       0,
       {"runs.csv:2: precision: device a100-sxm-80gb has no unit for fp8", "runs.csv:3: has 29 cells"}},
      {"measured", with_row({{",,,,5,", ",,,,-5,"}}), 2, {"runs.csv:4: measured_step_time_s: '-5'"}},
      {"training settings",
       header + rows + replaced(kChat, "1,1,1,,", "1,1,1,2,"),
       2,
       {"runs.csv:4: zero_stage: has no effect in inference"}},
      {"load without end",
       header + rows + replaced(kChat, "200,4,", "200,2147483647,"),
       2,
       {"runs.csv:4: concurrency: must be from 1 to 1e+06"}},
      {"requests",
       header + rows + replaced(kChat, "8,8,,1,1,1", "8,1,,1,1,8"),
       2,
       {"runs.csv:4: concurrency: impossible plan: 4 does not divide by dp 8"}},
  };
}

/// Tables of kernels, of public names and of calls with a wrong row.
std::vector<Broken> broken_benchmarks() {
  const std::string kernels = "id,m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s\n";
  const std::string calls = "id,cluster,stack,collective,gpus,gpus_per_node,bytes,median_s\n";
  return {
      {"kernel",
       kernels + "a,64,64,64,,,,,,,1e-5\nb,64,0,64,,,,,,,1e-5\nc,64,64,64,128,,32,,,,1e-5\n",
       1,
       {"runs.csv:3: n: '0'", "runs.csv:4: tile_m: give tile_m, tile_n and tile_k, or none"}},
      {"kernel on no device",
       "device," + kernels + "a100,a,64,64,64,,,,,,,1e-5\n",
       0,
       {"runs.csv:2: device: unknown device"}},
      {"names of others",
       "id,model,device,gpus,software,precision,global_batch,sequence_length\n"
       "a,llama3.1-8b,h100,8,nemo-x,fp9,8,4096\n",
       0,
       {"runs.csv:2: device: no device is called 'h100'",
        "runs.csv:2: software: no software or stack is called", "runs.csv:2: precision: unknown 'fp9'"}},
      {"call",
       calls + "a,dgx-a100,nccl-tests,all_reduce,8,8,1e6,1e-4\nb,dgx,nope,all_reduc,8,3,-1,1e-4\n",
       1,
       {"runs.csv:3: cluster: unknown cluster", "runs.csv:3: stack: unknown stack",
        "runs.csv:3: collective: unknown 'all_reduc' (did you mean 'all_reduce'?)",
        "runs.csv:3: gpus_per_node: 8 GPUs do not divide by 3", "runs.csv:3: bytes: '-1'"}},
  };
}

std::vector<Broken> broken_tables() {
  std::vector<Broken> all = broken_forms();
  for (const auto& more : {broken_plans(), broken_benchmarks()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_F(ValidateTest, BrokenTablesNameRowAndColumn) {
  for (const Broken& broken : broken_tables()) {
    SCOPED_TRACE(broken.name);
    write("runs.csv", broken.text);
    const Finished finished = run({"validate", "runs.csv", "--json"});
    EXPECT_EQ(finished.code, 2);
    for (const std::string& part : broken.said) {
      EXPECT_TRUE(contains(finished.err, part)) << part << " not in\n" << finished.err;
    }
    const json document = json::parse(finished.out, nullptr, false);
    ASSERT_FALSE(document.is_discarded()) << finished.out;
    const json& file = document.at("files").at(0);
    EXPECT_EQ(file.at("rows"), broken.good);
    EXPECT_GE(file.at("problems").size(), broken.said.size() > 1 ? 2U : 1U);
  }
}

TEST_F(ValidateTest, MillisecondsInAColumnOfSecondsAreAskedFor) {
  const std::string row = "llama3.1-8b,h100-sxm-80gb,2,2,0,bfloat16,1000,200,8,nim 1.2,agg,";
  const std::string header =
      "id,model,device,gpus,tensor_parallel,expert_parallel,precision,prompt_tokens,output_tokens,"
      "concurrency,software,mode,measured_ttft_s,measured_itl_s,mean_batch\n";
  const auto said = [&](const std::vector<std::string>& gaps) {
    std::string text = header;
    for (std::size_t i = 0; i < gaps.size(); ++i)
      text += static_cast<char>('a' + i) + ("," + row) + "0.2," + gaps[i] + ",\n";
    write("runs.csv", text);
    const Finished finished = run({"validate", "runs.csv"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return finished.out;
  };
  const char* const asked = "are they in milliseconds? measured_itl_s is in seconds";
  EXPECT_TRUE(contains(said({"8.5"}), asked));
  EXPECT_FALSE(contains(said({"0.0085"}), "are they in"));
  EXPECT_FALSE(contains(said({"0.1"}), "are they in"));
  // It is most of the rows that count, whatever others are off by.
  EXPECT_TRUE(contains(said({"8.5", "8.5", "0.00001"}), asked));
  EXPECT_FALSE(contains(said({"0.0085", "0.0085", "0.000003"}), "are they in"));
}

TEST_F(ValidateTest, AxesMayHaveTheirShortNames) {
  const std::string row =
      ",recompute,measured_step_time_s\na,training,llama3.1-8b,dgx-h100,megatron-core,8,2,1,128,4096,1,full,"
      "6.4\n";
  const std::string head = "id,phase,model,cluster,stack,gpus,", end = ",global_batch,sequence_length,";
  write("long.csv", head + "tensor_parallel,pipeline_parallel" + end + "zero_stage" + row);
  write("short.csv", head + "tp,pp" + end + "zero" + row);
  const auto errors = [&](const char* file) {
    const Finished finished = run({"validate", file, "--json"});
    EXPECT_EQ(finished.code, 0) << finished.err;
    return json::parse(finished.out).at("files").at(0).at("step_time");
  };
  EXPECT_EQ(errors("short.csv"), errors("long.csv"));
  write("twice.csv", head + "tp,tensor_parallel" + end + "zero" + row);
  EXPECT_TRUE(contains(run({"validate", "twice.csv"}).err, "tensor_parallel: is named twice in the header"));
}

// Nothing lies between the tokens of requests of one, so that no time is predicted there.
TEST_F(ValidateTest, OneTokenHasNoTimePerToken) {
  write("one.csv",
        "id,model,device,software,gpus,tensor_parallel,requested_rate,prompt_tokens_mean,"
        "output_tokens_requested,ttft_mean_s,tpot_derived_s,e2e_mean_s\n"
        "a,llama3.1-8b,h100-sxm-80gb,vllm 0.9,1,1,2,1024,1,0.05,0.008,0.05\n"
        "b,llama3.1-8b,h100-sxm-80gb,vllm 0.9,1,1,2,1024,64,0.05,0.008,0.55\n");
  const Finished finished = run({"validate", "one.csv", "--json"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("ttft").at("n"), 2);
  EXPECT_EQ(file.at("tpot").at("n"), 1);
  EXPECT_LT(file.at("tpot").at("max"), 0.5) << "0 s is no prediction";
}

TEST_F(ValidateTest, PublicTablesAreReadByDeviceAndSoftware) {
  write("runs.csv",
        "id,model,device,gpus,tensor_parallel,expert_parallel,precision,prompt_tokens,output_tokens,"
        "concurrency,"
        "software,mode,measured_ttft_s,measured_itl_s,mean_batch\n"
        "a,llama3.1-8b,h100-sxm-80gb,2,2,0,bfloat16,1000,200,8,nim 1.2,agg,0.2,0.01,\n"
        "b,deepseek-v3,l40s,8,8,8,fp8,1000,200,8,nim,agg,0.2,0.01,\n"
        "c,llama3.1-8b,h100-sxm-80gb,2,2,0,bfloat16,1000,200,,nim,agg,0.2,0.01,\n");
  const Finished finished = run({"validate", "runs.csv", "--json", "--by", "device,model", "--by", "software",
                                 "--predictions", "out.csv"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("rows"), 1);
  EXPECT_EQ(file.at("not_predicted"), 2);
  EXPECT_EQ(file.at("itl").at("n"), 1);
  EXPECT_EQ(file.at("groups").at(0).at("device"), "h100-sxm-80gb");
  EXPECT_EQ(file.at("groups").at(0).at("model"), "llama3.1-8b");
  EXPECT_EQ(file.at("groups").at(0).at("n"), 1);
  EXPECT_FALSE(file.at("groups").at(0).contains("software"));
  EXPECT_EQ(file.at("groups").back().at("software"), "nim");
  EXPECT_FALSE(file.at("groups").back().contains("device"));
  const std::vector<test::CsvRow> lines = test::read_csv(work() / "out.csv");
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_NE(lines[0].at("predicted_itl_s"), "");
  EXPECT_TRUE(contains(lines[1].at("reason"), "no preset describes the device l40s"));
  EXPECT_TRUE(contains(lines[2].at("reason"), "how many requests"));
  const Finished text = run({"validate", "runs.csv", "--by", "device"});
  EXPECT_TRUE(contains(text.out, "not predicted: 2 rows")) << text.out;
  const Finished bad = run({"validate", "runs.csv", "--by", "devise"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_TRUE(contains(bad.err, "did you mean 'device'?")) << bad.err;
}

TEST_F(ValidateTest, RatesAreNoTimes) {
  write("runs.csv",
        "id,model,scenario,device,software,gpus,precision,mean_output_tokens,completed_requests_per_s,"
        "tokens_per_s\n"
        "slow,llama2-70b,Offline,h100-sxm-80gb,TensorRT 10.8,8,fp8,292,0.9,11189\n");
  const Finished finished = run({"validate", "runs.csv"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, " 0.900 /s ")) << finished.out;
  EXPECT_TRUE(contains(finished.out, " 11,189.000 /s ")) << finished.out;
}

TEST_F(ValidateTest, TtftAloneIsThatOfConcurrencyOne) {
  const std::string alone = replaced(replaced(kChat, "chat", "alone"), "200,4,", "200,1,");
  write("runs.csv", std::string(test::kPlanHeader) + kChat + alone);
  const Finished finished = run({"validate", "runs.csv", "--json", "--rows"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_EQ(file.at("ttft").at("n"), 2);
  EXPECT_EQ(file.at("ttft_alone").at("n"), 1);
  EXPECT_FALSE(file.at("row_list").at(0).contains("ttft_alone"));
  EXPECT_EQ(file.at("row_list").at(1).at("ttft_alone"), file.at("row_list").at(1).at("ttft"));
  const double error = file.at("ttft_alone").at("mape");
  EXPECT_NEAR(error, std::abs(file.at("row_list").at(1).at("ttft").at("error").get<double>()), 1e-12);
  const Finished strict =
      run({"validate", "runs.csv", "--check", "--bar", "ttft_alone.mape=" + std::to_string(0.9 * error)});
  EXPECT_EQ(strict.code, 3);
  EXPECT_TRUE(contains(strict.out, "TTFT at concurrency 1")) << strict.out;
}

TEST_F(ValidateTest, NothingIsWrittenWhereNothingIsPredicted) {
  write("runs.csv", "alpha,beta\n1,2\n");
  const Finished finished = run({"validate", "runs.csv", "absent.csv", "--predictions", "out.csv"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_TRUE(contains(finished.err, "runs.csv:1: ")) << finished.err;
  EXPECT_TRUE(contains(finished.err, "absent.csv: ")) << finished.err;
  EXPECT_EQ(left_behind(), std::vector<std::string>{"runs.csv"});
}

TEST_F(ValidateTest, MeasurementsAreNeverOverwritten) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--predictions", "./runs.csv"});
  EXPECT_EQ(finished.code, 2);
  EXPECT_EQ(read_file(work() / "runs.csv"), std::string(test::kPlanHeader) + kTraining);
}

TEST_F(ValidateTest, UnwritablePredictionsAreAnEnvironmentFailure) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  const Finished finished = run({"validate", "runs.csv", "--predictions", "absent/out.csv"});
  EXPECT_EQ(finished.code, 1);
  EXPECT_TRUE(contains(finished.err, "absent/out.csv: the folder absent does not exist")) << finished.err;
}

TEST_F(ValidateTest, CheckMissesBarsWithCodeThree) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  const std::vector<std::string> loose = {"validate", "runs.csv", "--check", "--bar", "step_time.mape=1000%"};
  EXPECT_EQ(run(loose).code, 0);
  const Finished strict = run({"validate", "runs.csv", "--check", "--bar", "step_time.mape=0.0001%"});
  EXPECT_EQ(strict.code, 3);
  EXPECT_TRUE(contains(strict.out, "MISSED")) << strict.out;
  EXPECT_TRUE(contains(strict.err, "runs.csv: step_time.mape: outside tolerance")) << strict.err;
  EXPECT_EQ(run({"validate", "runs.csv", "--bar", "step_time.mape=0.0001%"}).code,
            0);  // only told, not asked
}

TEST_F(ValidateTest, SaysWhetherRowsKeepTheExpectedError) {
  /// The two rows, measured so many times what is predicted of them.
  const auto measured = [&](double times) {
    write("runs.csv", std::string(test::kPlanHeader) + kTraining);
    const json list = json::parse(run({"validate", "runs.csv", "--json", "--rows"}).out).at("files").at(0);
    std::string rows = kTraining;
    const char* const cells[] = {",5,,0,", ",9,,,"};
    for (std::size_t i = 0; i < 2; ++i) {
      const double predicted = list.at("row_list").at(i).at("step_time").at("predicted");
      std::string cell = cells[i];
      cell.replace(1, 1, std::to_string(times * predicted));
      rows.replace(rows.find(cells[i]), std::string_view(cells[i]).size(), cell);
    }
    write("runs.csv", std::string(test::kPlanHeader) + rows);
    return json::parse(run({"validate", "runs.csv", "--json"}).out).at("files").at(0).at("expected_error");
  };
  const json kept = measured(1);
  EXPECT_EQ(
      kept,
      (json{
          {"rows", 2}, {"within", 2}, {"beyond_twice", 0}, {"measured_slower", 0}, {"measured_faster", 0}}));
  const json slower = measured(1.6);  // 38 % too fast, where evidence promises less than half of that
  EXPECT_EQ(
      slower,
      (json{
          {"rows", 2}, {"within", 0}, {"beyond_twice", 2}, {"measured_slower", 2}, {"measured_faster", 0}}));
  const Finished text = run({"validate", "runs.csv"});
  EXPECT_TRUE(
      contains(text.out,
               "  expected error: 0 of 2 rows within it (68 % should be), 2 beyond twice that (5 %); of "
               "those not within 2 measured slower, 0 faster\n"))
      << text.out;
}

TEST_F(ValidateTest, BadOptionsAreExplained) {
  write("runs.csv", std::string(test::kPlanHeader) + kTraining);
  const Finished bar =
      run({"validate", "runs.csv", "--check", "--bar", "step_tim.mape=5%", "--bar", "ttft.mape=x"});
  EXPECT_EQ(bar.code, 2);
  EXPECT_TRUE(contains(bar.err, "did you mean 'step_time.mape'?")) << bar.err;
  EXPECT_TRUE(contains(bar.err, "2 problems")) << bar.err;
  const Finished idle = run({"validate", "runs.csv", "--check", "--bar", "ttft.mape=5%"});
  EXPECT_EQ(idle.code, 2);
  EXPECT_TRUE(contains(idle.err, "ttft.mape: has no effect")) << idle.err;
  EXPECT_EQ(run({"validate", "runs.csv", "--hold-out", "2"}).code, 2);
}

TEST_F(ValidateTest, PublishedFiguresComeWithTheProgram) {
  const Finished finished = run({"validate", "--json", "--check"});
  EXPECT_EQ(finished.code, 0) << finished.err;
  const json files = json::parse(finished.out).at("files");
  ASSERT_GE(files.size(), 3U);
  for (const json& file : files) {
    EXPECT_FALSE(file.at("source").get<std::string>().empty());
    EXPECT_FALSE(file.at("checks").empty());
    EXPECT_GT(file.at("rows").get<int>(), 0);
  }
}

TEST_F(ValidateTest, HelpIsShortAndATopicListsTheColumns) {
  const Finished finished = run({"validate", "--help"});
  EXPECT_EQ(finished.code, 0);
  for (const char* part : {"--bar", "Examples", "--template", "shardscape help tables"})
    EXPECT_TRUE(contains(finished.out, part)) << part;
  EXPECT_LT(std::ranges::count(finished.out, '\n'), 80) << finished.out;
  const Finished tables = run({"help", "tables"});
  EXPECT_EQ(tables.code, 0);
  for (const char* part : {"measured_memory_peak_bytes", "sm_clock_hz", "gpus_per_node"})
    EXPECT_TRUE(contains(tables.out, part)) << part;
}

}  // namespace
}  // namespace shardscape::cli
