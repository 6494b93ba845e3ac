// Are rows of measurements predicted as a study would predict them, grouped and ranked, and are their problems located?
#include "sweep/validate/evaluation.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/compute/gemm.h"
#include "engine/simulate.h"
#include "sweep/space/point_text.h"
#include "sweep/study/load_study.h"
#include "tests/support/paths.h"
#include "tests/support/plan_table.h"

namespace shardscape::validate {
namespace {

yaml::Catalog catalog() { return yaml::Catalog({test::source_dir()}); }

Evaluation evaluated(const std::string& rows, const std::string& header = test::kPlanHeader) {
  Presets presets(catalog());
  return evaluate(parse_csv(header + rows, "t.csv"), presets, {});
}

/// The prediction by a study, which is another way to the same setting.
Prediction by_study(const std::string& study_text, const std::string& point) {
  const auto study = sweep::parse_study(study_text, "study.yaml", {}, catalog());
  EXPECT_TRUE(study) << study.error().to_string();
  const auto plan = sweep::parse_point(point, study->space, study->gpus, study->phase());
  EXPECT_TRUE(plan);
  const Setting setting = study->setting(0);
  return Simulator(setting, {.time_infeasible = true}).run(plan->plan);
}

std::vector<std::string> problems_of(const Evaluation& evaluation) {
  std::vector<std::string> texts;
  for (const TableProblem& problem : evaluation.problems) texts.push_back(to_string(problem));
  return texts;
}

/// Memory without what lies outside the framework's allocator.
double allocated(const Prediction& prediction) {
  const MemoryUse& use = prediction.memory;
  return (use.weights + use.gradients + use.optimizer + use.activations + use.logits + use.kv_cache +
          use.buffers)
      .value();
}

std::vector<std::string> without_memory(std::vector<std::string> cells) {
  cells.erase(cells.begin() + 1);
  return cells;
}

double value(const Evaluation& evaluation, const std::string& path) {
  const std::vector<Statistic> all = statistics(evaluation);
  const auto found = std::ranges::find(all, path, &Statistic::path);
  EXPECT_NE(found, all.end()) << path;
  return found == all.end() ? -1 : found->value.value_or(-1);
}

TEST(EvaluatePlans, TrainingRowsArePredictedAsAStudyWould) {
  const Evaluation evaluation = evaluated(
      "a,training,llama3.1-8b,dgx-a100,megatron-lm,16,4,1,1,2,2,1,selective,1f1b,1,2,8,32,4096,,,,2.5,6e10,0,"
      ",,,\n");
  ASSERT_EQ(problems_of(evaluation), std::vector<std::string>{});
  const Prediction expected = by_study(
      "model: llama3.1-8b\ncluster: dgx-a100\ngpus: 16\nstack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 32}\n",
      "tp=4,sp=1,pp=2,dp=2,zero=1,recompute=selective,mbs=2,schedule=1f1b");
  ASSERT_EQ(evaluation.rows.size(), 1U);
  EXPECT_NEAR(std::stod(evaluation.predictions[0][1]), allocated(expected), 1e-6 * allocated(expected));
  EXPECT_EQ(without_memory(evaluation.predictions[0]),
            (std::vector<std::string>{cell(expected.step_time.value()), "0", "", "", ""}));
  EXPECT_DOUBLE_EQ(value(evaluation, "step_time.bias"), expected.step_time.value() / 2.5 - 1);
  EXPECT_NEAR(value(evaluation, "memory.bias"), allocated(expected) / 6e10 - 1, 1e-9);
  EXPECT_EQ(value(evaluation, "oom.accuracy"), 1);
  EXPECT_EQ(value(evaluation, "ttft.n"), 0);
}

// What tensors take on the last stage, which is not the fullest: as were the allocator without fragmentation.
TEST(EvaluatePlans, MemoryIsComparedWithThatOfTheRankThatLoggedIt) {
  std::string header = test::kPlanHeader;
  header.insert(header.size() - 1, ",memory_of");
  const std::string plan =
      "a,training,llama3.1-8b,dgx-a100,megatron-lm,16,4,1,1,2,2,1,selective,1f1b,1,2,8,32,4096,,,,2.5,6e10,0,"
      ",,,";
  const Evaluation last = evaluated(plan + ",last_stage_allocated\n", header);
  const Evaluation fullest = evaluated(plan + ",fullest_reserved\n", header);
  ASSERT_EQ(problems_of(last), std::vector<std::string>{});
  const auto study = sweep::parse_study(
      "model: llama3.1-8b\ncluster: dgx-a100\ngpus: 16\nstack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 32}\n",
      "study.yaml", {}, catalog());
  const auto point = sweep::parse_point("tp=4,sp=1,pp=2,dp=2,zero=1,recompute=selective,mbs=2,schedule=1f1b",
                                        study->space, study->gpus, study->phase());
  Setting setting = study->setting(0);
  EXPECT_GT(setting.system.stack.memory.fragmentation, 1);
  setting.system.stack.memory.fragmentation = 1;
  Details details;
  Simulator(setting).run(point->plan, {}, &details);
  const MemoryUse& use = details.stage_memory.back();
  const double expected = (use.total() - use.reserve).value();
  EXPECT_NEAR(std::stod(last.predictions[0][1]), expected, 1e-6 * expected);
  EXPECT_LT(std::stod(last.predictions[0][1]), std::stod(fullest.predictions[0][1]));
  EXPECT_EQ(without_memory(last.predictions[0]), without_memory(fullest.predictions[0]));
}

TEST(EvaluatePlans, InferenceRowsArePredictedAsAStudyWould) {
  const Evaluation evaluation =
      evaluated("a,inference,llama3.1-8b,dgx-h100,nim,8,4,,1,1,2,,,,,,,,,1000,200,8,,,,0.1,0.01,2,\n");
  ASSERT_EQ(problems_of(evaluation), std::vector<std::string>{});
  const Prediction expected = by_study(
      "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 8\nstack: nim\n"
      "workload: {phase: inference, prompt_tokens: 1000, output_tokens: 200, concurrency: 8}\n",
      "tp=4,dp=2");
  ASSERT_EQ(evaluation.rows.size(), 1U);
  EXPECT_NEAR(std::stod(evaluation.predictions[0][1]), allocated(expected), 1e-6 * allocated(expected));
  EXPECT_EQ(without_memory(evaluation.predictions[0]),
            (std::vector<std::string>{"", "0", cell(expected.ttft.value()), cell(expected.itl.value()),
                                      cell(expected.e2e.value())}));
  EXPECT_DOUBLE_EQ(value(evaluation, "itl.bias"), expected.itl.value() / 0.01 - 1);
}

// In iterations that read a prompt tokens come later: they are fewer than the others, and the median gap is without.
TEST(EvaluatePlans, ItlAloneIsTheMedianGap) {
  const std::string header =
      "id,model,device,gpus,tensor_parallel,precision,output_tokens,"
      "software,mode,mean_batch,measured_itl_s\n";
  const Evaluation evaluation =
      evaluated("a,llama3.1-8b,h100-sxm-80gb,2,2,bfloat16,200,vllm,energy,512,0.01\n", header);
  ASSERT_EQ(problems_of(evaluation), std::vector<std::string>{});
  const Prediction expected = by_study(
      "model: llama3.1-8b\ncluster: dgx-h100\ngpus: 2\nstack: vllm\n"
      "workload: {phase: inference, prompt_tokens: 100, output_tokens: 200, concurrency: 512}\n",
      "tp=2");
  EXPECT_LT(expected.itl_spread.p50, 0.99 * expected.itl);
  EXPECT_DOUBLE_EQ(value(evaluation, "itl.bias"), expected.itl_spread.p50.value() / 0.01 - 1);
}

// 175 billion parameters on one node of 8: far out of memory, timed all the same.
TEST(EvaluatePlans, TimeIsPredictedWhateverTheMemoryVerdict) {
  const Evaluation evaluation = evaluated(
      "a,training,gpt-175b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,none,1f1b,1,1,,8,2048,,,,100,,1,,,,\n");
  ASSERT_EQ(evaluation.rows.size(), 1U);
  EXPECT_EQ(evaluation.rows[0].predicted_oom, true);
  EXPECT_EQ(evaluation.predictions[0][2], "1");
  EXPECT_EQ(value(evaluation, "step_time.n"), 1);
  EXPECT_EQ(value(evaluation, "oom.recall"), 1);
}

TEST(EvaluatePlans, ProblemsNameLineAndColumnAndOtherRowsStay) {
  const Evaluation evaluation = evaluated(
      "a,training,gpt-22b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,,1.4,,,,,,\n"
      "b,training,gpt-22c,dgx-a10,megatron,8,8,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,,1.4,,,,,,\n"
      "c,training,gpt-22b,dgx-a100,megatron-lm,7,7,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,,1.4,,,,,,\n"
      "a,training,gpt-22b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,,1.4,,,,,,\n"
      "e,training,gpt-22b,dgx-a100,megatron-lm,12,4,1,1,3,1,0,full,1f1b,1,4,1,4,4096,,,,1.4,,,,,,\n");
  const std::vector<std::string> problems = problems_of(evaluation);
  const auto reports = [&](const std::string& start) {
    return std::ranges::any_of(problems, [&](const std::string& text) { return text.starts_with(start); });
  };
  EXPECT_EQ(problems.size(), 7U) << problems.size();
  for (const char* start :
       {"t.csv:3: model: ", "t.csv:3: cluster: ", "t.csv:3: stack: ",
        "t.csv:4: tensor_parallel: impossible plan", "t.csv:5: id: 'a' is the name of line 2",
        "t.csv:6: gpus: ", "t.csv:6: sequence_length: 4096 tokens are more than the 2048"}) {
    EXPECT_TRUE(reports(start)) << start;
  }
  EXPECT_TRUE(std::ranges::is_sorted(evaluation.problems, {}, &TableProblem::line));
  ASSERT_EQ(evaluation.rows.size(), 1U);
  EXPECT_EQ(evaluation.rows[0].id, "a");
}

TEST(EvaluatePlans, RankingGroupsAreRowsOfOneTask) {
  std::string rows;
  int id = 0;
  for (const int batch : {32, 64}) {
    for (const char* degrees : {"1,0,1,1,8", "2,0,1,1,4", "4,0,1,1,2", "8,0,1,1,1", "2,0,1,2,2"}) {
      ++id;
      rows += std::to_string(id) + ",training,llama3.1-8b,dgx-a100,megatron-lm,8," + degrees +
              ",0,full,1f1b,1,1,," + std::to_string(batch) + ",4096,,,," + std::to_string(id) + ",,,,,,\n";
    }
  }
  const Evaluation evaluation = evaluated(rows);
  ASSERT_EQ(evaluation.rows.size(), 10U) << (evaluation.problems.empty() ? "" : problems_of(evaluation)[0]);
  EXPECT_EQ(evaluation.rows[0].group, evaluation.rows[4].group);
  EXPECT_NE(evaluation.rows[0].group, evaluation.rows[5].group);
  EXPECT_EQ(value(evaluation, "ranking.groups"), 2);
  EXPECT_EQ(
      value(subset(evaluation, [](const EvaluatedRow& row) { return row.id != "7"; }), "ranking.groups"), 1);
}

TEST(Evaluation, HeadersAreCheckedByKind) {
  std::string header = test::kPlanHeader;
  header.replace(header.find("tensor_parallel"), 15, "tensor_paralel");
  const Evaluation evaluation = evaluated(
      "a,training,gpt-22b,dgx-a100,megatron-lm,8,,1,1,1,8,0,full,1f1b,1,1,1,8,2048,,,,1.4,,,,,,\n", header);
  const std::vector<std::string> problems = problems_of(evaluation);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_TRUE(problems[0].starts_with("t.csv:1: tensor_paralel: unknown column")) << problems[0];
  EXPECT_NE(problems[0].find("did you mean 'tensor_parallel'?"), std::string::npos);
  EXPECT_EQ(evaluation.rows.size(), 1U);

  const Evaluation strange = evaluated("1,2\n", "alpha,beta\n");
  ASSERT_EQ(strange.problems.size(), 1U);
  EXPECT_TRUE(statistics(strange).empty());
}

TEST(Evaluation, MeasuredColumnsMayBeAbsent) {
  std::string header = test::kPlanHeader;
  header = header.substr(0, header.find(",measured_step_time_s")) + "\n";
  const Evaluation evaluation =
      evaluated("a,training,gpt-22b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,\n", header);
  EXPECT_EQ(problems_of(evaluation), std::vector<std::string>{});
  ASSERT_EQ(evaluation.rows.size(), 1U);
  EXPECT_EQ(value(evaluation, "step_time.n"), 0);
}

TEST(EvaluateGemms, RowsAreNumberedAndSplitByLength) {
  const Evaluation evaluation = evaluated(
      "8192,8192,8192,128,128,32,3,4096,1.0e9,0.0051,,,\n"
      "1024,128,1024,64,64,64,5,32,,1.3e-5,,,\n"
      "1024,0,1024,64,64,64,5,32,,1.3e-5,,,\n",
      "m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s,measured_dram_read_bytes,"
      "measured_dram_write_bytes,measured_l2_hit_percent\n");
  EXPECT_EQ(evaluation.kind, TableKind::gemm);
  ASSERT_EQ(evaluation.problems.size(), 1U);
  EXPECT_EQ(evaluation.problems[0].line, 4);
  EXPECT_EQ(evaluation.problems[0].column, "n");
  ASSERT_EQ(evaluation.rows.size(), 2U);
  EXPECT_EQ(evaluation.rows[1].id, "2");
  EXPECT_EQ(value(evaluation, "time.n"), 2);
  EXPECT_EQ(value(evaluation, "time_long.n"), 1);
  EXPECT_EQ(value(evaluation, "time_row_tile.n"), 2);
  Presets presets(catalog());
  const DeviceSpec& device = **presets.device("a100-sxm-80gb");
  compute::GemmRequest request{.tile = std::nullopt, .locked_clock = Hertz(1e9)};
  const auto time = [&] {
    return compute::gemm({8192, 8192, 8192, 1}, Precision::bf16, device, {}, request).time.value();
  };
  EXPECT_EQ(evaluation.predictions[0][0], cell(time()));
  request.tile = compute::GemmTile{128, 128, 32, 3};
  EXPECT_EQ(evaluation.predictions[0][1], cell(time()));
  // 1.1e12 FLOPs at 108 SMs x 2,048 FLOPs per clock x 1 GHz take 4.97 ms at the very least.
  EXPECT_GT(std::stod(evaluation.predictions[0][0]), 2.0 * 8192 * 8192 * 8192 / (108 * 2048 * 1e9));
}

TEST(EvaluateCollectives, RowsInsideOneNodeAreApart) {
  const Evaluation evaluation = evaluated(
      "dgx-a100,all_reduce,8,8,100000000,0.00085,,\n"
      "dgx-a100,all_reduce,16,8,100000000,0.0095,,\n"
      "dgx-a100,send_recv,2,2,2048,1e-5,,\n"
      "dgx-a100,all_reduce,16,16,2048,1e-5,,\n"
      "dgx-a100,all_redduce,16,8,2048,1e-5,,\n",
      "cluster,collective,gpus,gpus_per_node,bytes,median_s,min_s,max_s\n");
  EXPECT_EQ(evaluation.kind, TableKind::collectives);
  EXPECT_EQ(value(evaluation, "time.n"), 3);
  EXPECT_EQ(value(evaluation, "time_node.n"), 1);
  ASSERT_EQ(evaluation.problems.size(), 2U);
  EXPECT_EQ(evaluation.problems[0].column, "gpus_per_node");
  EXPECT_EQ(evaluation.problems[1].column, "collective");
  // An all-reduce moves each byte out of and into each rank 2 x 7/8 times over 300 GB/s at best.
  EXPECT_GT(std::stod(evaluation.predictions[0][0]), 1e8 * 2 * 7 / 8 / 300e9);
}

TEST(Predictions, OneRowPerRowInOrder) {
  const Evaluation plans = evaluated(
      "\"x,1\",training,gpt-22b,dgx-a100,megatron-lm,8,8,1,1,1,1,0,full,1f1b,1,4,1,4,2048,,,,1.4,,,,,,\n");
  const Evaluation gemms =
      evaluated("8192,8192,8192,128,128,32,3,4096,1.0e9,0.0051\n",
                "m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s\n");
  const NamedEvaluation one[] = {{"p.csv", &plans}};
  const std::string single = predictions_csv(one);
  EXPECT_TRUE(single.starts_with(
      "line,id,predicted_step_time_s,predicted_memory_peak_bytes,predicted_oom,predicted_ttft_s,"
      "predicted_itl_s,predicted_e2e_s,reason\n2,\"x,1\","))
      << single;
  EXPECT_TRUE(single.ends_with(",,,,\n")) << single;
  const NamedEvaluation both[] = {{"p.csv", &plans}, {"g.csv", &gemms}};
  const Table table = parse_csv(predictions_csv(both), "out.csv");
  EXPECT_TRUE(table.problems.empty());
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.columns[0], "file");
  EXPECT_EQ(table.rows[1].cells[0], "g.csv");
  EXPECT_EQ(table.rows[1].cells[1], "2");
  EXPECT_EQ(table.rows[1].cells[2], "");  // no id
  EXPECT_EQ(table.rows[1].cells[3], "");
  const auto time = std::ranges::find(table.columns, "predicted_time_s") - table.columns.begin();
  EXPECT_EQ(table.rows[1].cells[static_cast<std::size_t>(time)], gemms.predictions[0][0]);
}

// One bad row, one that is not modelled, one good: each line of the table has its line, blank with a reason.
TEST(Predictions, EveryLineHasItsLine) {
  const Evaluation evaluation = evaluated(
      "h100-sxm-80gb,bfloat16,4096,4096,4096,1e-3\n"
      "l40s,bfloat16,64,64,64,1e-5\n"
      "h100,bfloat16,64,64,64,1e-5\n"
      "short\n"
      "v100-sxm-32gb,bfloat16,64,64,64,\n",
      "device,gemm_dtype,m,n,k,measured_time_s\n");
  EXPECT_EQ(evaluation.kind, TableKind::gemm_alone);
  EXPECT_EQ(evaluation.rows.size(), 1U);
  EXPECT_EQ(evaluation.unpredicted.size(), 2U);
  EXPECT_EQ(evaluation.problems.size(), 2U);
  EXPECT_EQ(value(evaluation, "time_long.n"), 1);
  const NamedEvaluation one[] = {{"g.csv", &evaluation}};
  const Table table = parse_csv(predictions_csv(one), "out.csv");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"line", "id", "predicted_time_s", "reason"}));
  ASSERT_EQ(table.rows.size(), 5U);
  const char* const reasons[] = {"", "no preset describes the device l40s",
                                 "device: no device is called 'h100'", "has 1 cells", "has no unit for bf16"};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(table.rows[i].cells[0], std::to_string(i + 2));
    EXPECT_EQ(table.rows[i].cells[2].empty(), i > 0);
    EXPECT_NE(table.rows[i].cells[3].find(reasons[i]), std::string::npos) << table.rows[i].cells[3];
  }
}

TEST(Benchmarks, MessagesAreCountedInElements) {
  const std::string header = "device,op_name,nccl_dtype,num_gpus,message_size,measured_time_s\n";
  const Evaluation evaluation = evaluated(
      "h100-sxm-80gb,all_reduce,half,8,1048576,1e-4\nh100-sxm-80gb,all_reduce,int8,8,2097152,1e-4\n"
      "h100-sxm-80gb,alltoall,int8,8,1024,1e-5\n",
      header);
  ASSERT_EQ(evaluation.kind, TableKind::nccl);
  ASSERT_EQ(evaluation.rows.size(), 3U) << (evaluation.problems.empty() ? "" : problems_of(evaluation)[0]);
  EXPECT_EQ(evaluation.predictions[0], evaluation.predictions[1]);
  EXPECT_EQ(value(evaluation, "time_large.n"), 2);
  EXPECT_EQ(value(evaluation, "time_small.n"), 1);
  EXPECT_EQ(regime_part(evaluation.rows[0].regime, "gpus"), "8");
}

TEST(Benchmarks, ExchangesHaveTwoTimes) {
  const Evaluation evaluation = evaluated(
      "b200-sxm-180gb,ll,1,7168,1,8,256,,,,,,,20,21\n"
      "h100-sxm-80gb,normal,2,7168,128,8,256,20,50,30,20,100,0.0,,\n"
      "b200-sxm-180gb,ll,2,7168,1,8,256,,,,,,,20,21\n"
      "h100-sxm-80gb,normal,2,7168,128,8,256,,50,30,20,100,0.0,,\n",
      "device,op_name,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,dispatch_transmit_us,"
      "dispatch_notify_us,combine_sms,combine_transmit_us,combine_notify_us,dispatch_avg_t_us,combine_avg_t_"
      "us\n");
  EXPECT_EQ(evaluation.kind, TableKind::expert_exchange);
  EXPECT_EQ(evaluation.prediction_columns,
            (std::vector<std::string>{"predicted_dispatch_s", "predicted_combine_s"}));
  ASSERT_EQ(evaluation.rows.size(), 2U);
  EXPECT_EQ(evaluation.predictions[0].size(), 2U);
  EXPECT_NE(evaluation.predictions[0][0], evaluation.predictions[0][1]);
  // The row without the SMs that its kernel ran on is a fault; Blackwell's low latency between nodes is not
  // known.
  ASSERT_EQ(evaluation.problems.size(), 1U);
  EXPECT_EQ(evaluation.problems[0].line, 5);
  ASSERT_EQ(evaluation.unpredicted.size(), 1U);
  EXPECT_NE(evaluation.unpredicted[0].reason.find("between nodes"), std::string::npos);
  const auto measured = [&](const char* key) {
    return std::ranges::find(evaluation.metrics, key, &Metric::key)->pairs.at(0).measured;
  };
  EXPECT_DOUBLE_EQ(measured("dispatch_low_latency"), 20e-6);
  EXPECT_DOUBLE_EQ(measured("combine_low_latency"), 21e-6);
  EXPECT_DOUBLE_EQ(measured("dispatch_normal"), 80e-6);
  EXPECT_DOUBLE_EQ(measured("combine_normal"), 100e-6);
}

TEST(Benchmarks, ExpertsGoByTheirLoads) {
  const char* const header =
      "device,num_tokens,hidden_size,inter_size,topk,num_experts,moe_tp_size,moe_ep_size,distribution,"
      "measured_time_s\n";
  const Evaluation evaluation = evaluated(
      "h100-sxm-80gb,8192,4096,1536,8,128,1,8,balanced,1e-3\nh100-sxm-80gb,8192,4096,1536,8,128,1,8,power_"
      "law_1.2,1e-3\n"
      "h100-sxm-80gb,8192,4096,1536,8,128,1,3,balanced,1e-3\nh100-sxm-80gb,8192,4096,1536,8,128,1,8,zipf,1e-"
      "3\n"
      "h100-sxm-80gb,8192,4096,1536,8,4,1,4,balanced,1e-3\n",
      header);
  ASSERT_EQ(evaluation.kind, TableKind::experts);
  ASSERT_EQ(evaluation.rows.size(), 2U);
  EXPECT_LT(std::stod(evaluation.predictions[0][0]), std::stod(evaluation.predictions[1][0]));
  ASSERT_EQ(evaluation.problems.size(), 3U);
  EXPECT_EQ(evaluation.problems[0].column, "moe_ep_size");
  EXPECT_EQ(evaluation.problems[1].column, "distribution");
  EXPECT_EQ(evaluation.problems[2].column, "topk");
  EXPECT_EQ(value(evaluation, "time_50us.n"), 2);
}

TEST(Benchmarks, LatentAttentionIsPromptsOrTokens) {
  const Evaluation evaluation = evaluated(
      "h200-sxm-141gb,mla_context,bfloat16,fp8,4,4096,0,16,8,1e-3\n"
      "h200-sxm-141gb,mla_generation,bfloat16,fp8,4,1,4095,16,8,1e-4\n"
      "h200-sxm-141gb,mla_generation,bfloat16,int3,4,1,4095,16,8,1e-4\n",
      "device,op_name,mla_dtype,kv_cache_dtype,batch_size,isl,step,num_heads,tp_size,measured_time_s\n");
  ASSERT_EQ(evaluation.kind, TableKind::latent_attention);
  ASSERT_EQ(evaluation.rows.size(), 2U);
  EXPECT_EQ(evaluation.rows[1].what, "4 x 4096 tokens, 16 heads, latent decode");
  EXPECT_GT(std::stod(evaluation.predictions[0][0]), 10 * std::stod(evaluation.predictions[1][0]));
  ASSERT_EQ(evaluation.problems.size(), 1U);
  EXPECT_EQ(evaluation.problems[0].column, "kv_cache_dtype");
}

// A table of decoding has every column of one of prompts, and the step.
TEST(Benchmarks, DecodingIsToldFromPrompts) {
  const std::string prompts = "device,batch_size,isl,num_heads,num_key_value_heads,head_dim,measured_time_s";
  const Evaluation prefill = evaluated("h100-sxm-80gb,1,4096,32,8,128,1e-3\n", prompts + "\n");
  const Evaluation decode = evaluated("h100-sxm-80gb,64,1,32,8,128,1e-3,4095\n", prompts + ",step\n");
  EXPECT_EQ(prefill.kind, TableKind::attention_prefill);
  EXPECT_EQ(decode.kind, TableKind::attention_decode);
  ASSERT_EQ(decode.rows.size(), 1U);
  EXPECT_EQ(decode.rows[0].what, "64 x 4096 tokens, 32/8 heads of 128");
  // Keys and values of 64 x 4096 tokens in bf16 cannot come faster than memory gives them.
  EXPECT_GT(std::stod(decode.predictions[0][0]), 64.0 * 4096 * 2 * 8 * 128 * 2 / 3.35e12);
}

TEST(ErrorGroups, SplitTheRowsOfEveryMetric) {
  const Evaluation evaluation = evaluated(
      "h100-sxm-80gb,bfloat16,4096,4096,4096,1e-3\nb200-sxm-180gb,bfloat16,4096,4096,4096,1e-3\n"
      "b200-sxm-180gb,bfloat16,8192,4096,4096,1e-3\n",
      "device,gemm_dtype,m,n,k,measured_time_s\n");
  const auto keys = parse_regime_keys("device,precision");
  ASSERT_TRUE(keys);
  const std::vector<ErrorGroup> groups = error_groups(evaluation, *keys);
  ASSERT_EQ(groups.size(), 2U * 3U);  // all, over 0.1 ms, over 10 us
  EXPECT_EQ(groups[0].key, (std::vector<std::string>{"b200-sxm-180gb", "bf16"}));
  EXPECT_EQ(groups[0].errors.n, 2U);
  EXPECT_EQ(groups[1].errors.n, 1U);
  EXPECT_DOUBLE_EQ(groups[1].errors.bias, evaluation.metrics[0].pairs[0].error());
  EXPECT_FALSE(parse_regime_keys("device,devise"));
  EXPECT_FALSE(parse_regime_keys("device,device"));
  EXPECT_FALSE(parse_regime_keys(""));
}

}  // namespace
}  // namespace shardscape::validate
