// Does `calibrate` write what it reports, and refuse what it should?
#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>

#include "tests/cli/program_under_test.h"
#include "tests/support/csv.h"
#include "tests/support/paths.h"
#include "tests/support/profile_text.h"

namespace shardscape::cli {
namespace {

using nlohmann::json;
using List = std::vector<std::string>;

constexpr const char* kHeader =
    "id,phase,model,cluster,stack,gpus,tensor_parallel,sequence_parallel,context_parallel,pipeline_parallel,"
    "data_parallel,zero_stage,recompute,schedule,virtual_stages,microbatch_size,num_microbatches,global_"
    "batch,"
    "sequence_length,prompt_tokens,output_tokens,concurrency,measured_step_time_s,measured_memory_peak_bytes,"
    "measured_oom,source\n";

class CalibrateTest : public ProgramTest {
 protected:
  /// Twelve steps of a small model on one node, times as the program predicts them under a profile with slow
  /// hosts, scattered by some percent.
  void write_runs() {
    write_runs_of("stacks/nanotron-a.yaml", {{"forward_layer: [0-9.]+ ms", "forward_layer: 1 ms"},
                                             {"backward_layer: [0-9.]+ ms", "backward_layer: 4 ms"}});
  }
  /// The same under a preset with some of its texts replaced.
  void write_runs_of(const std::string& preset,
                     const std::vector<std::pair<std::string, std::string>>& slower) {
    std::string text_of_preset = read_file(fs::path(test::source_dir()) / "hw_presets" / preset);
    for (const auto& [from, to] : slower)
      text_of_preset = std::regex_replace(text_of_preset, std::regex(from), to);
    fs::create_directories((work() / "slow/hw_presets" / preset).parent_path());
    write("slow/hw_presets/" + preset, text_of_preset);
    std::string rows;
    int number = 0;
    for (const auto& [tp, pp, dp] : std::vector<std::array<int, 3>>{{1, 1, 1},
                                                                    {1, 1, 2},
                                                                    {1, 1, 4},
                                                                    {1, 1, 8},
                                                                    {2, 1, 1},
                                                                    {2, 1, 2},
                                                                    {4, 1, 1},
                                                                    {4, 1, 2},
                                                                    {8, 1, 1},
                                                                    {1, 2, 1},
                                                                    {1, 4, 1},
                                                                    {2, 2, 2}}) {
      rows += "r" + std::to_string(number++) + ",training,nanotron-1.3b,dgx-h100,nanotron-a,," +
              std::to_string(tp) + ",1,1," + std::to_string(pp) + ',' + std::to_string(dp) +
              ",0,none,1f1b,1,1,," + std::to_string(8 * dp) + ",4096,,,,@,,,\n";
    }
    std::string first = kHeader + rows;
    for (std::size_t at = 0; (at = first.find('@')) != std::string::npos;) first.replace(at, 1, "1");
    write("runs.csv", first);
    const Finished predicted =
        run({"validate", "runs.csv", "--presets", "slow", "--predictions", "predicted.csv"});
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    std::string text = kHeader + rows;
    double scatter = 0.97;
    for (const test::CsvRow& row : test::read_csv(work() / "predicted.csv")) {
      const double time = std::stod(row.at("predicted_step_time_s")) * scatter;
      text.replace(text.find('@'), 1, std::to_string(time));
      scatter = 2 - scatter;
    }
    write("runs.csv", text);
    fs::remove(work() / "predicted.csv");
    fs::remove_all(work() / "slow");
  }
};

TEST_F(CalibrateTest, TheFileGivesTheReportedErrors) {
  write_runs();
  const Finished finished =
      run({"calibrate", "runs.csv", "--stack", "nanotron-a", "-o", "out.yaml", "--json", "--folds", "3"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.err, "time, round 1: iteration 0, objective ")) << finished.err;
  EXPECT_EQ(left_behind(), (List{"out.yaml", "runs.csv"}));
  const json report = json::parse(finished.out);
  const json& file = report.at("files").at(0);
  EXPECT_GT(file.at("before").at("step_time").at("mape"), 0.3);
  EXPECT_LT(file.at("after").at("step_time").at("mape"), 0.06);
  EXPECT_LT(file.at("cross_validated").at("step_time").at("mape"), 0.2);
  fs::create_directories(work() / "p/hw_presets/stacks");
  fs::copy(work() / "out.yaml", work() / "p/hw_presets/stacks/nanotron-a.yaml");
  const Finished validated = run({"validate", "runs.csv", "--json", "--presets", "p"});
  ASSERT_EQ(validated.code, 0) << validated.err;
  const json expected = json::parse(validated.out).at("files").at(0).at("step_time");
  for (const char* name : {"n", "mape", "median", "p90", "max"}) {
    EXPECT_EQ(file.at("after").at("step_time").at(name), expected.at(name)) << name;
  }
}

TEST_F(CalibrateTest, AProgramWithoutItsModuleSaysSo) {
  write_runs();
  fs::create_directories(work() / "bin");  // modules are looked for in the folder above, too: none is there
  const fs::path bare = work() / "bin/shardscape";
  fs::copy_file(test::program(), bare);
  const List words = {bare.string(), "calibrate", "runs.csv", "--stack",
                      "nanotron-a",  "--quiet",   "-o",       "out.yaml"};
  const Finished missing = start_words(words).wait();
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(contains(missing.err, "shardscape_fit.so: is not beside the program")) << missing.err;
  write("bin/shardscape_fit.so", "no module");
  const Finished broken = start_words(words).wait();
  EXPECT_EQ(broken.code, 1);
  EXPECT_TRUE(contains(broken.err, "bin/shardscape_fit.so: can't be opened: ")) << broken.err;
  fs::remove(work() / "bin/shardscape_fit.so");
  fs::create_directories(work() / "lib/shardscape");  // where `cmake --install` puts modules
  fs::copy_file(fs::path(test::program()).parent_path() / "shardscape_fit.so",
                work() / "lib/shardscape/shardscape_fit.so");
  EXPECT_EQ(start_words(words).wait().code, 0);
}

TEST_F(CalibrateTest, TheFileSaysWhereItComesFrom) {
  write_runs();
  fs::create_directories(work() / "data");
  fs::rename(work() / "runs.csv", work() / "data/runs.csv");
  const List command = {"calibrate", "data/runs.csv", "--stack", "nanotron-a",
                        "--quiet",   "--folds",       "0",       "-o"};
  List first = command, second = command;
  first.emplace_back("data/out.yaml");
  second.emplace_back("out.yaml");
  ASSERT_EQ(run(first).code, 0);
  const Finished finished = run(second);
  ASSERT_EQ(finished.code, 0);
  EXPECT_EQ(finished.err, "");
  const std::string text = read_file(work() / "out.yaml");
  EXPECT_EQ(text, read_file(work() / "data/out.yaml"));
  EXPECT_TRUE(
      std::regex_search(text, std::regex("^# Fitted: shardscape calibrate runs.csv --stack nanotron-a "
                                         "(--start '?[a-z_.]+=[0-9.]+( [mun]?s)?'? )+--folds 0 -o out.yaml\n"
                                         "#   runs.csv: 12 rows")))
      << text;
  EXPECT_TRUE(contains(text, "attention: flash                 # [1] FlashAttention-2\n")) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex("# fitted from [0-9.]+ [mu]s, \\+- "))) << text;
}

TEST_F(CalibrateTest, TheFirstLineReproducesTheProfileFromItself) {
  write_runs();
  const auto fitted = [&](List command) {
    command.insert(command.end(), {"--quiet", "--force"});
    const Finished finished = run(command);
    EXPECT_EQ(finished.code, 0) << finished.err;
    return read_file(work() / "out.yaml");
  };
  const std::string first = fitted({"calibrate", "runs.csv", "--stack", "nanotron-a", "--start",
                                    "communication.call=40 us", "--folds", "0", "-o", "out.yaml"});
  fs::create_directories(work() / "p/hw_presets/stacks");
  fs::copy(work() / "out.yaml", work() / "p/hw_presets/stacks/nanotron-a.yaml");
  const std::string mark = test::kFittedBy;
  ASSERT_TRUE(first.starts_with(mark));
  List command = test::words_of(first.substr(mark.size(), first.find('\n') - mark.size()));
  command.insert(command.end(), {"--presets", "p"});
  EXPECT_EQ(test::keys_of(fitted(command)), test::keys_of(first));
  // From the profile alone, without where it began, the fit goes on from there.
  EXPECT_NE(test::keys_of(fitted({"calibrate", "runs.csv", "--stack", "nanotron-a", "--folds", "0", "-o",
                                  "out.yaml", "--presets", "p"})),
            test::keys_of(first));
}

TEST_F(CalibrateTest, ExistingFilesStay) {
  write_runs();
  write("out.yaml", "mine\n");
  const List command = {
      "calibrate", "runs.csv", "--stack", "nanotron-a", "-o",
      "out.yaml",  "--folds",  "0",       "--only",     "host.forward_layer,host.backward_layer"};
  const Finished refused = run(command);
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "out.yaml: exists; --force replaces it")) << refused.err;
  EXPECT_EQ(read_file(work() / "out.yaml"), "mine\n");
  List forced = command;
  forced.emplace_back("--force");
  EXPECT_EQ(run(forced).code, 0);
  EXPECT_NE(read_file(work() / "out.yaml"), "mine\n");
}

TEST_F(CalibrateTest, BadInputIsLocatedAndNothingWritten) {
  write_runs();
  write("broken.csv", "id,phase\na,training\n");
  write("cell.csv", std::string(kHeader) +
                        "x,training,nanotron-1.3b,dgx-h100,nanotron-a,8,two,1,1,1,4,0,none,1f1b,1,"
                        "1,,8,4096,,,,1,,,\n");
  struct Case {
    List arguments;
    const char* says;
  };
  const List runs = {"calibrate", "runs.csv", "-o", "out.yaml", "--stack"};
  const auto with = [&](List more) {
    List all = runs;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  const std::vector<Case> cases = {
      {with({"nanotron-b"}), "runs.csv: stack: no row has nanotron-b; there are nanotron-a (12 rows)"},
      {with({"nanotron-c"}), "--stack nanotron-c: "},
      {with({"nanotron-a", "--device", "h100"}), "--device h100: "},
      {with({"nanotron-a", "--only", "host.forward_leyer"}), "(did you mean 'host.forward_layer'?)"},
      {with({"nanotron-a", "--start", "communication.call=14"}), "--start: communication.call=14: "},
      {with({"nanotron-a", "--start", "communication.call=1 s"}),
       "outside its physical range, 1 us to 200 us"},
      {with({"nanotron-a", "--start", "device.sustained.hbm=0.8"}), "has no effect without --device"},
      {with({"nanotron-a", "--hold-out", "3"}), "--hold-out: '3' is no share"},
      {with({"nanotron-a", "--all", "--rows-of", "x"}), "--rows-of: has no effect beside --all"},
      {with({"nanotron-a", "--where", "tensor_paralel > 1"}),
       "runs.csv: --where: 'tensor_paralel > 1', character 1: "},
      {with({"nanotron-a", "--where", "tensor_parallel > 64"}),
       "--where: 'tensor_parallel > 64' holds for no row"},
      {{"calibrate", "broken.csv", "-o", "out.yaml", "--stack", "nanotron-a"}, "broken.csv:1: "},
      {{"calibrate", "cell.csv", "-o", "out.yaml", "--stack", "nanotron-a"}, "cell.csv:2: tensor_parallel: "},
      {{"calibrate", "gone.csv", "-o", "out.yaml", "--stack", "nanotron-a"}, "gone.csv: "},
      {{"calibrate", "runs.csv", "--stack", "nanotron-a"}, "-o: is required"},
      {{"calibrate", "runs.csv", "-o", "runs.csv", "--force", "--stack", "nanotron-a"},
       "runs.csv: is an input of this very command"},
  };
  for (const Case& c : cases) {
    const Finished finished = run(c.arguments);
    EXPECT_EQ(finished.code, 2) << c.says << '\n' << finished.err;
    EXPECT_TRUE(contains(finished.err, c.says)) << c.says << '\n' << finished.err;
    EXPECT_EQ(finished.out, "");
    EXPECT_EQ(left_behind(), (List{"broken.csv", "cell.csv", "runs.csv"}));
  }
}

TEST_F(CalibrateTest, DevicesGoToAFileOfTheirOwn) {
  write("kernels.csv",
        "m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s\n"
        "16384,12288,4096,,,,,,1e9,0.0080\n8192,8192,8192,,,,,,1e9,0.0054\n4096,8192,8192,,,,,,1e9,0.0027\n");
  const Finished finished = run({"calibrate", "kernels.csv", "--stack", "pytorch", "--device",
                                 "a100-sxm-80gb", "-o", "out.yaml", "--folds", "0", "--quiet"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_EQ(left_behind(), (List{"kernels.csv", "out.device.yaml", "out.yaml"}));
  EXPECT_TRUE(contains(read_file(work() / "out.device.yaml"), "tensor_efficiency: 0.9")) << finished.out;
  EXPECT_TRUE(contains(finished.out, "device.sm.tensor_efficiency")) << finished.out;
}

// Kernels as they would be on a card that starts them slowly: the fit finds the start, in folds of whole shapes.
TEST_F(CalibrateTest, KernelsAloneFitADeviceAlone) {
  const fs::path card = fs::path(test::source_dir()) / "hw_presets/devices/h200-sxm-141gb.yaml";
  const std::string mine =
      std::regex_replace(read_file(card), std::regex("\nname: [^\n]*"), "\nname: my-gpu");
  const std::regex latency("\n  latency: [0-9.]+ us");
  ASSERT_TRUE(std::regex_search(mine, latency));
  write("my-gpu.yaml", mine);
  write("slow.yaml", std::regex_replace(mine, latency, "\n  latency: 6 us"));
  std::vector<std::string> rows;
  for (const int m : {1, 16, 64}) {
    for (const int n : {512, 1024, 2048}) {
      for (const int k : {512, 2048})
        rows.push_back("my-gpu,bfloat16," + std::to_string(m) + ',' + std::to_string(n) + ',' +
                       std::to_string(k) + ',');
    }
  }
  const auto lines = [&](const std::vector<std::string>& times) {
    std::string text = "device,gemm_dtype,m,n,k,measured_time_s\n";
    for (std::size_t i = 0; i < rows.size(); ++i) text += rows[i] + (times.empty() ? "" : times[i]) + '\n';
    return text;
  };
  write("gemm.csv", lines({}));
  const Finished predicted =
      run({"validate", "gemm.csv", "--device", "./slow.yaml", "--predictions", "p.csv"});
  ASSERT_EQ(predicted.code, 0) << predicted.err;
  std::vector<std::string> times;
  for (const test::CsvRow& row : test::read_csv(work() / "p.csv"))
    times.push_back(row.at("predicted_time_s"));
  ASSERT_EQ(times.size(), rows.size());
  write("gemm.csv", lines(times));
  const Finished finished = run({"calibrate", "gemm.csv", "--device", "./my-gpu.yaml", "--only",
                                 "device.products.latency", "--folds", "2", "--json", "-o", "fitted.yaml"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_FALSE(fs::exists(work() / "fitted.device.yaml"));
  const std::string fitted = read_file(work() / "fitted.yaml");
  EXPECT_TRUE(fitted.starts_with("# Fitted: shardscape calibrate gemm.csv --device my-gpu.yaml")) << fitted;
  const json file = json::parse(finished.out).at("files").at(0);
  EXPECT_GT(file.at("before").at("time").at("mape"), 0.1);
  EXPECT_LT(file.at("after").at("time").at("mape"), 0.01);
  EXPECT_LT(file.at("cross_validated").at("time").at("mape"), 0.01);
}

// Likewise kernels of attention and of all-reduce of a card on which they run at half the rate.
TEST_F(CalibrateTest, AttentionAndEnginesFitADeviceAlone) {
  const fs::path card = fs::path(test::source_dir()) / "hw_presets/devices/h200-sxm-141gb.yaml";
  const std::string mine =
      std::regex_replace(read_file(card), std::regex("\nname: [^\n]*"), "\nname: my-gpu");
  write("my-gpu.yaml", mine);
  std::string slow =
      std::regex_replace(mine, std::regex("\n  forward: "), "\n  decode_rate: 0.5\n  forward: ");
  slow = std::regex_replace(slow, std::regex("vllm: \\{start: [0-9.]+ us"), "vllm: {start: 9 us");
  ASSERT_NE(slow.find("vllm: {start: 9 us"), std::string::npos);
  write("slow.yaml", slow);
  const auto timed = [&](const std::string& name, const std::string& header,
                         const std::vector<std::string>& rows) {
    const auto lines = [&](const std::vector<std::string>& times) {
      std::string text = header + ",measured_time_s\n";
      for (std::size_t i = 0; i < rows.size(); ++i)
        text += rows[i] + ',' + (times.empty() ? "" : times[i]) + '\n';
      return text;
    };
    write(name, lines({}));
    const Finished predicted =
        run({"validate", name, "--device", "./slow.yaml", "--predictions", name + ".out"});
    ASSERT_EQ(predicted.code, 0) << predicted.err;
    std::vector<std::string> times;
    for (const test::CsvRow& row : test::read_csv(work() / (name + ".out")))
      times.push_back(row.at("predicted_time_s"));
    ASSERT_EQ(times.size(), rows.size());
    write(name, lines(times));
  };
  std::vector<std::string> decode, reduce;
  for (const int batch : {4, 32, 256}) {
    for (const int cached : {1024, 4096, 16384}) {
      for (const int heads : {8, 32})
        decode.push_back("my-gpu," + std::to_string(batch) + ",1," + std::to_string(heads) + ",8,128," +
                         std::to_string(cached));
    }
  }
  for (const int gpus : {2, 4, 8}) {
    for (const int elements : {512, 4096, 32768})
      reduce.push_back("my-gpu,all_reduce,vLLM_custom_graph,bfloat16," + std::to_string(gpus) + ',' +
                       std::to_string(elements) + ",comm/vllm/0.19.0/x");
  }
  timed("decode.csv", "device,batch_size,isl,num_heads,num_key_value_heads,head_dim,step", decode);
  timed("allreduce.csv", "device,op_name,kernel_source,allreduce_dtype,num_gpus,message_size,file", reduce);
  const Finished finished = run({"calibrate", "decode.csv", "allreduce.csv", "--device", "./my-gpu.yaml",
                                 "--only", "device.attention.decode_rate,device.custom_all_reduce.vllm.start",
                                 "--folds", "5", "--json", "-o", "fitted.yaml"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  const json files = json::parse(finished.out).at("files");
  EXPECT_EQ(files.size(), 2U);
  for (const json& file : files) {
    EXPECT_GT(file.at("before").at("time").at("mape"), 0.1);
    EXPECT_LT(file.at("after").at("time").at("mape"), 0.01);
    EXPECT_LT(file.at("cross_validated").at("time").at("mape"), 0.01);
  }
}

TEST_F(CalibrateTest, ConditionsSelectRows) {
  write("nccl.csv",
        "cluster,collective,gpus,gpus_per_node,bytes,median_s\n"
        "dgx-a100,all_reduce,8,8,1000000,6.2e-5\ndgx-a100,all_reduce,8,8,50000000,6.1e-4\n"
        "dgx-a100,all_reduce,4,4,20000000,2.3e-4\ndgx-a100,all_reduce,16,8,1000000,1\n");
  const Finished finished = run({"calibrate", "nccl.csv", "--stack", "nccl-tests", "--where",
                                 "gpus == gpus_per_node", "-o", "out.yaml", "--folds", "0", "--quiet"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "nccl.csv: 3 rows, 3 in the fit")) << finished.out;
  EXPECT_TRUE(contains(read_file(work() / "out.yaml"), "--where 'gpus == gpus_per_node'"))
      << read_file(work() / "out.yaml");
}

TEST_F(CalibrateTest, TheListNamesEveryConstant) {
  const Finished finished = run({"calibrate", "--list"});
  EXPECT_EQ(finished.code, 0);
  for (const char* path :
       {"host.forward_layer", "communication.scale_out_scaling", "memory.reserve", "device.kernel_latency"}) {
    EXPECT_TRUE(contains(finished.out, path)) << path;
  }
}

TEST_F(CalibrateTest, FewRowsAreSaid) {
  write_runs();
  const std::string text = read_file(work() / "runs.csv");
  std::size_t end = 0;
  for (int line = 0; line < 4; ++line) end = text.find('\n', end) + 1;
  write("three.csv", text.substr(0, end));
  const Finished finished =
      run({"calibrate", "three.csv", "--stack", "nanotron-a", "-o", "out.yaml", "--quiet"});
  ASSERT_EQ(finished.code, 0) << finished.err;
  EXPECT_TRUE(contains(finished.out, "few measurements: constants keep within 2 widths of their priors"))
      << finished.out;
  const Finished whole =
      run({"calibrate", "runs.csv", "--stack", "nanotron-a", "-o", "whole.yaml", "--quiet"});
  EXPECT_FALSE(contains(whole.out, "few measurements")) << whole.out;
}

// Rows that are all slower than predicted look like a slower device, but where a fit of the stack explains them; with
// rows on both sides they do not.
TEST_F(CalibrateTest, ErrorsOfOneSignThatTheFitLeavesLookLikeTheDevice) {
  const std::string said = ", which looks like the device: --device NAME fits its shares, too";
  write_runs();  // of a stack that is slower throughout
  const Finished stack = run({"calibrate", "runs.csv", "--stack", "nanotron-a", "-o", "s.yaml", "--quiet"});
  ASSERT_EQ(stack.code, 0) << stack.err;
  EXPECT_FALSE(contains(stack.out, said)) << stack.out;
  write_runs_of("devices/h100-sxm-80gb.yaml",
                {{"clock: 1.83 GHz", "clock: 0.3 GHz"}, {"bandwidth: 3350 GB/s", "bandwidth: 600 GB/s"}});
  const Finished slow = run({"calibrate", "runs.csv", "--stack", "nanotron-a", "-o", "a.yaml", "--quiet"});
  EXPECT_TRUE(contains(slow.out, "every step time was measured ")) << slow.out;
  EXPECT_TRUE(contains(slow.out, " longer than predicted, and the fit leaves more than half of that" + said))
      << slow.out;
  const Finished device = run({"calibrate", "runs.csv", "--stack", "nanotron-a", "--device", "h100-sxm-80gb",
                               "-o", "b.yaml", "--device-output", "c.yaml", "--quiet"});
  EXPECT_FALSE(contains(device.out, said)) << device.out << device.err;
  EXPECT_EQ(device.code, 0) << device.err;
  ASSERT_EQ(run({"validate", "runs.csv", "--predictions", "predicted.csv"}).code, 0);
  std::string text = read_file(work() / "runs.csv");
  const test::CsvRow first = test::read_csv(work() / "predicted.csv").front();
  const test::CsvRow row = test::read_csv(work() / "runs.csv").front();
  const std::string measured = row.at("measured_step_time_s");
  text.replace(text.find(measured), measured.size(),
               std::to_string(0.9 * std::stod(first.at("predicted_step_time_s"))));
  write("runs.csv", text);
  const Finished both = run({"calibrate", "runs.csv", "--stack", "nanotron-a", "-o", "d.yaml", "--quiet"});
  EXPECT_FALSE(contains(both.out, said)) << both.out;
}

// A table to begin with goes through both commands as it stands.
TEST_F(CalibrateTest, TemplatesAreTables) {
  const Finished table = run({"calibrate", "--template"});
  ASSERT_EQ(table.code, 0) << table.err;
  EXPECT_EQ(table.out, run({"validate", "--template", "training"}).out);
  EXPECT_TRUE(contains(table.err, "  measured_step_time_s         training step, seconds")) << table.err;
  write("runs.csv", table.out);
  EXPECT_EQ(run({"validate", "runs.csv"}).code, 0);
  EXPECT_EQ(run({"calibrate", "runs.csv", "--stack", "megatron-core", "-o", "out.yaml", "--quiet"}).code, 0);
  EXPECT_TRUE(contains(run({"validate", "--template", "servin"}).err, "did you mean 'serving'?"));
}

// What three rows leave open by more than half of itself is no finding.
TEST_F(CalibrateTest, NoConstantIsFoundWithAnErrorOfMoreThanHalf) {
  write_runs();
  const std::string text = read_file(work() / "runs.csv");
  std::size_t end = 0;
  for (int line = 0; line < 4; ++line) end = text.find('\n', end) + 1;
  write("three.csv", text.substr(0, end));
  int left_alone = 0, found = 0;
  for (const char* const rows : {"three.csv", "runs.csv"}) {
    const Finished finished =
        run({"calibrate", rows, "--stack", "nanotron-a", "-o", "out.yaml", "--quiet", "--json", "--force"});
    ASSERT_EQ(finished.code, 0) << finished.err;
    const json constants = json::parse(finished.out).at("constants");
    for (const json& constant : constants) {
      const bool identified = constant.at("identified").get<bool>();
      ++(identified ? found : left_alone);
      if (!identified) {
        EXPECT_EQ(constant.at("after"), constant.at("before")) << constant.dump();
      } else {
        EXPECT_LE(constant.at("standard_error").get<double>(), 0.5 * constant.at("after").get<double>())
            << constant.dump();
      }
    }
  }
  EXPECT_GT(left_alone, 0);
  EXPECT_GT(found, 0);
}

}  // namespace
}  // namespace shardscape::cli
