// Are the cells of measured plans read as documented, are blanks filled with what is usual, and are problems named by
// column?
#include "sweep/validate/plan_row.h"

#include <gtest/gtest.h>

#include <array>

#include "sweep/validate/table_columns.h"
#include "tests/support/paths.h"

namespace shardscape::validate {
namespace {

/// One row of the given cells, every other column blank.
class PlanRowTest : public testing::Test {
 protected:
  std::optional<PlanRow> read(const std::map<std::string, std::string>& cells) {
    return read(cells, columns_of(TableKind::plans), [](std::string_view) { return true; });
  }

  /// A row of other people's table, every column of theirs there; `release` where the row has it.
  std::optional<PlanRow> read_public(const std::map<std::string, std::string>& cells, bool training) {
    return read(cells, public_plan_columns(), [&](std::string_view name) {
      const bool ours = name == "cluster" || name == "stack" || name == "phase" || name == "schedule";
      if (name == "release" && !cells.contains("release")) return false;
      return !ours && (training || name != "sequence_length");
    });
  }

  /// A row of the columns whose names `keep` takes.
  template <class Keep>
  std::optional<PlanRow> read(const std::map<std::string, std::string>& cells,
                              std::span<const Column> columns, const Keep& keep) {
    problems_.clear();
    Table table;
    table.file = "t.csv";
    TableRow row{2, {}};
    for (const Column& column : columns) {
      if (!keep(column.name)) continue;
      table.columns.emplace_back(column.name);
      const auto found = cells.find(table.columns.back());
      row.cells.push_back(found == cells.end() ? "" : found->second);
    }
    const ColumnIndex index(table);
    RowReader reader(table, index, row, problems_);
    return read_plan_row(reader, names_);
  }

  [[nodiscard]] std::vector<std::string> blamed() const {
    std::vector<std::string> columns;
    for (const TableProblem& problem : problems_) columns.push_back(problem.column);
    return columns;
  }

  static std::map<std::string, std::string> training(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> cells = {
        {"id", "r"},    {"phase", "training"},     {"model", "m"},       {"cluster", "c"},
        {"stack", "s"}, {"sequence_length", "64"}, {"global_batch", "8"}};
    for (const auto& [column, cell] : more) cells[column] = cell;
    return cells;
  }
  static std::map<std::string, std::string> inference(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> cells = {
        {"id", "r"},    {"phase", "inference"},  {"model", "m"},        {"cluster", "c"},
        {"stack", "s"}, {"prompt_tokens", "20"}, {"output_tokens", "5"}};
    for (const auto& [column, cell] : more) cells[column] = cell;
    return cells;
  }

  std::vector<TableProblem> problems_;
  Presets presets_{yaml::Catalog({test::source_dir()})};
  TableNames names_{presets_};
};

/// Other people's tables: device and software in place of cluster and stack.
class PublicRowTest : public PlanRowTest {
 protected:
  PublicRowTest() {
    yaml::StackPreset recipes;
    recipes.name = "recipes";
    recipes.tables.usual_zero_stage = 1;
    recipes.tables.usual_recompute = Recompute::selective;
    recipes.tables.usual_sequence_parallel = true;
    presets_.replace_stack("recipes", recipes);
  }

  static std::map<std::string, std::string> step(const std::map<std::string, std::string>& more = {}) {
    std::map<std::string, std::string> cells = {{"id", "r"},
                                                {"model", "llama3.1-8b"},
                                                {"device", "gb200"},
                                                {"software", "recipes"},
                                                {"gpus", "16"},
                                                {"tensor_parallel", "2"},
                                                {"precision", "bfloat16"},
                                                {"global_batch", "64"},
                                                {"sequence_length", "4096"}};
    for (const auto& [column, cell] : more) cells[column] = cell;
    return cells;
  }
};

TEST_F(PublicRowTest, BlanksMeanWhatTheStackSaysIsUsual) {
  const auto row =
      read_public(step({{"software", "recipes"}, {"pipeline_parallel", "2"}, {"virtual_stages", "4"}}), true);
  ASSERT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_[0]));
  EXPECT_EQ(row->cluster, "gb200-nvl72");
  EXPECT_EQ(row->stack, "recipes");
  EXPECT_EQ(row->workload.phase, Phase::training);
  EXPECT_EQ(row->workload.precision, PolicyName::bf16);
  EXPECT_EQ(row->plan.data, 4);
  EXPECT_EQ(row->plan.zero_stage, 1);
  EXPECT_TRUE(row->plan.sequence_parallel);
  EXPECT_EQ(row->plan.recompute, Recompute::selective);
  EXPECT_TRUE(row->recompute_unstated);
  EXPECT_EQ(row->plan.schedule, ScheduleKind::interleaved);
  EXPECT_FALSE(row->unmodelled);
}

// Where a table has a column for it, words of `source` do not change a prediction.
TEST_F(PublicRowTest, ReleasesHaveAColumn) {
  const auto stack_of = [&](const std::map<std::string, std::string>& more) {
    std::map<std::string, std::string> cells = {
        {"model", "qwen3-30b-a3b"}, {"software", "nemo"}, {"device", "h100-sxm-80gb"}};
    for (const auto& [column, cell] : more) cells[column] = cell;
    const auto row = read_public(step(cells), true);
    return row ? row->stack : std::string("none");
  };
  const char* const recipes = "dgxc-benchmarking v25.05";
  const std::string early = stack_of({{"source", recipes}});
  const std::string late = stack_of({{"source", ""}});
  EXPECT_NE(early, late);
  EXPECT_EQ(stack_of({{"source", ""}, {"release", "25.05"}}), early);
  EXPECT_EQ(stack_of({{"source", recipes}, {"release", ""}}), late);
  EXPECT_EQ(stack_of({{"release", "May"}}), "none");
}

TEST_F(PublicRowTest, StatedCellsStandAgainstWhatIsUsual) {
  const auto row = read_public(
      step({{"software", "recipes"}, {"zero_stage", "3"}, {"recompute", "full"}, {"sequence_parallel", "0"}}),
      true);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->plan.zero_stage, 3);
  EXPECT_FALSE(row->plan.sequence_parallel);
  EXPECT_EQ(row->plan.recompute, Recompute::full);
  EXPECT_FALSE(row->recompute_unstated);
  EXPECT_EQ(row->plan.schedule, ScheduleKind::one_f_one_b);
}

TEST_F(PublicRowTest, WhatIsNotModelledIsAReasonAndNoProblem) {
  for (const auto& [column, cell, why] :
       std::vector<std::array<std::string, 3>>{{"device", "l40s", "no preset describes the device l40s"}}) {
    const auto row = read_public(step({{"software", "recipes"}, {column, cell}}), true);
    ASSERT_TRUE(row) << cell << (problems_.empty() ? "" : to_string(problems_[0]));
    ASSERT_TRUE(row->unmodelled) << cell;
    EXPECT_NE(row->unmodelled->find(why), std::string::npos) << *row->unmodelled;
    EXPECT_TRUE(problems_.empty());
  }
  EXPECT_FALSE(read_public(step({{"software", "recipes"}, {"expert_parallel", "0"}}), true)->unmodelled);
  const auto experts = read_public(step({{"software", "recipes"}, {"expert_parallel", "4"}}), true);
  ASSERT_TRUE(experts);
  EXPECT_FALSE(experts->unmodelled);
  EXPECT_EQ(experts->plan.expert, 4);
  EXPECT_EQ(experts->plan.expert_tensor, 1);
}

TEST_F(PublicRowTest, TrainingOfExpertsIsRead) {
  const auto read_step = [&](std::map<std::string, std::string> more) {
    more["software"] = "recipes";
    const auto row = read_public(step(more), true);
    EXPECT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_[0]));
    return row.value_or(PlanRow{});
  };
  const PlanRow experts = read_step({{"model", "deepseek-v3"}, {"expert_parallel", "4"}});
  EXPECT_FALSE(experts.unmodelled);
  EXPECT_FALSE(experts.experts_unstated);
  EXPECT_EQ(experts.plan.data, 8);
  // Degrees stand in columns: what a comment says changes nothing.
  for (const char* comment : {"", "a list, line 3; ETP=2", "a list, ETP=", "ETP=99"}) {
    EXPECT_EQ(read_step({{"expert_parallel", "4"}, {"source", comment}}).plan.expert_tensor, 1) << comment;
    EXPECT_EQ(read_step({{"expert_parallel", "4"}, {"source", comment}, {"expert_tensor_parallel", "2"}})
                  .plan.expert_tensor,
              2)
        << comment;
  }
  // Old tables count replicas of experts: 16 GPUs of tp 2 are 2 of them with ep 4.
  const PlanRow old = read_step({{"expert_parallel", "4"}, {"data_parallel", "2"}});
  EXPECT_EQ(old.plan.data, 8);
  EXPECT_EQ(old.plan.expert, 4);
  EXPECT_FALSE(
      read_public(step({{"software", "recipes"}, {"data_parallel", "2"}, {"expert_parallel", "2"}}), true));
}

// Beside `device` a column `cluster` says in words where it ran; whose memory was logged has a column.
TEST_F(PublicRowTest, WordsAboutAMachineAndWhoseMemoryItIsAreRead) {
  const auto read_all = [&](std::map<std::string, std::string> more) {
    return read(step(more), public_plan_columns(), [](std::string_view name) {
      return name != "stack" && name != "phase" && name != "schedule";
    });
  };
  const auto row = read_all({{"cluster", "4 nodes x 4; Nyx"},
                             {"measured_memory_peak_bytes", "1e10"},
                             {"memory_of", "last_stage_allocated"},
                             {"n_runs", "3"},
                             {"spread", "0.01"}});
  ASSERT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_[0]));
  EXPECT_EQ(row->cluster, "gb200-nvl72");
  EXPECT_EQ(row->memory_of, MemoryOf::last_stage_allocated);
  EXPECT_EQ(read_all({{"measured_memory_peak_bytes", "1e10"}})->memory_of, MemoryOf::fullest_reserved);
  EXPECT_FALSE(read_all({{"measured_memory_peak_bytes", "1e10"}, {"memory_of", "somewhere"}}));
  EXPECT_EQ(blamed(), std::vector<std::string>{"memory_of"});
  EXPECT_FALSE(read_all({{"memory_of", "last_stage_allocated"}}));
  EXPECT_EQ(blamed(), std::vector<std::string>{"memory_of"});
}

TEST_F(PublicRowTest, UnknownNamesAreProblemsThatSayWhatThereIs) {
  EXPECT_FALSE(
      read_public(step({{"device", "h100-sxm-80g"}, {"software", "nemoo"}, {"precision", "bf61"}}), true));
  EXPECT_EQ(blamed(), (std::vector<std::string>{"device", "software", "precision"}));
  EXPECT_NE(problems_[0].message.find("did you mean 'h100-sxm-80gb'"), std::string::npos)
      << problems_[0].message;
  EXPECT_NE(problems_[0].message.find("gb200"), std::string::npos);
  EXPECT_NE(problems_[1].message.find("there are"), std::string::npos) << problems_[1].message;
  EXPECT_NE(problems_[2].message.find("bfloat16"), std::string::npos) << problems_[2].message;
}

TEST_F(PublicRowTest, AMeanBatchStandsInForRequestsInFlight) {
  const std::map<std::string, std::string> load = {
      {"id", "r"},   {"model", "llama3.1-8b"}, {"device", "h100-sxm-80gb"}, {"software", "recipes"},
      {"gpus", "2"}, {"tensor_parallel", "2"}, {"mean_batch", "31.6"},      {"output_tokens", "637.7"}};
  auto cells = load;
  const auto energy = read_public(cells, false);
  ASSERT_TRUE(energy) << (problems_.empty() ? "" : to_string(problems_[0]));
  EXPECT_EQ(energy->workload.phase, Phase::inference);
  EXPECT_EQ(energy->workload.concurrency, 32);
  EXPECT_EQ(energy->workload.output_tokens, 638);
  EXPECT_TRUE(energy->itl_only);
  EXPECT_FALSE(energy->median_itl);
  cells["mode"] = "energy";
  EXPECT_TRUE(read_public(cells, false)->median_itl);
  cells.erase("mode");
  cells["prompt_tokens"] = "1000";
  cells["concurrency"] = "64";
  const auto full = read_public(cells, false);
  ASSERT_TRUE(full);
  EXPECT_EQ(full->workload.concurrency, 64);
  EXPECT_FALSE(full->itl_only);
  cells.erase("concurrency");
  cells.erase("mean_batch");
  const auto none = read_public(cells, false);
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->unmodelled);
}

/// A server of a public table.
std::map<std::string, std::string> server_row(const std::map<std::string, std::string>& more) {
  std::map<std::string, std::string> cells = {{"id", "r"},
                                              {"model", "deepseek-v3"},
                                              {"device", "h100-sxm-80gb"},
                                              {"software", "recipes"},
                                              {"prompt_tokens", "1000"},
                                              {"output_tokens", "100"},
                                              {"concurrency", "64"}};
  for (const auto& [column, cell] : more) cells[column] = cell;
  return cells;
}

TEST_F(PublicRowTest, ServersHaveTheirExpertsWhereTheTableSaysSo) {
  const auto plan_of_row = [&](const std::map<std::string, std::string>& cells) {
    const auto row = read_public(server_row(cells), false);
    EXPECT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_.front()));
    EXPECT_FALSE(row && row->unmodelled) << row->unmodelled.value_or("");
    return row ? row->plan : ParallelPlan{};
  };
  const auto expect = [](const ParallelPlan& plan, std::array<std::int32_t, 4> degrees) {
    EXPECT_EQ((std::array{plan.tensor, plan.data, plan.expert, plan.expert_tensor}), degrees);
  };
  // Attention over 8 tensor ranks, or over 8 replicas; experts over all 8 in both.
  expect(plan_of_row({{"gpus", "8"}, {"tensor_parallel", "8"}, {"expert_parallel", "8"}}), {8, 1, 8, 1});
  expect(plan_of_row({{"gpus", "8"}, {"tensor_parallel", "1"}, {"expert_parallel", "8"}}), {1, 8, 8, 1});
  expect(plan_of_row({{"gpus", "8"},
                      {"tensor_parallel", "1"},
                      {"attention_data_parallel", "8"},
                      {"expert_parallel", "4"},
                      {"moe_tensor_parallel", "2"}}),
         {1, 8, 4, 2});
  expect(plan_of_row({{"gpus", "4"},
                      {"tensor_parallel", "1"},
                      {"attention_data_parallel", "4"},
                      {"expert_parallel", "1"},
                      {"moe_tensor_parallel", "4"}}),
         {1, 4, 1, 4});
  // Counted twice: 8 ranks for experts times 8 for each of them.
  expect(plan_of_row({{"gpus", "64"},
                      {"tensor_parallel", "64"},
                      {"expert_parallel", "8"},
                      {"moe_tensor_parallel", "8"}}),
         {8, 1, 8, 1});
}

TEST_F(PublicRowTest, PoolsHaveServersOfTheirOwnKind) {
  const std::map<std::string, std::string> pools = {{"mode", "disagg"},
                                                    {"prefill_workers", "3"},
                                                    {"prefill_tensor_parallel", "1"},
                                                    {"prefill_attention_data_parallel", "4"},
                                                    {"prefill_expert_parallel", "4"},
                                                    {"decode_workers", "2"},
                                                    {"decode_tensor_parallel", "8"},
                                                    {"decode_attention_data_parallel", "1"},
                                                    {"decode_expert_parallel", "8"}};
  const auto row = read_public(server_row(pools), false);
  ASSERT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_.front()));
  EXPECT_EQ(row->plan.prefill, (PrefillPool{1, 1, 12, 4, 1}));
  EXPECT_EQ((std::array{row->plan.tensor, row->plan.data, row->plan.expert}), (std::array{8, 2, 8}));
  EXPECT_EQ(row->gpus, 3 * 4 + 2 * 8);
  for (const char* column : {"prefill_workers", "decode_workers"}) {
    auto unsaid = pools;
    unsaid[column] = "";
    const auto incomplete = read_public(server_row(unsaid), false);
    ASSERT_TRUE(incomplete) << column;
    ASSERT_TRUE(incomplete->unmodelled) << column;
    EXPECT_NE(incomplete->unmodelled->find("how many servers"), std::string::npos);
    unsaid[column] = "0";
    EXPECT_FALSE(read_public(server_row(unsaid), false)) << column;
    problems_.clear();
  }
  // Mean lengths are rounded, as those of one server; dense models have no experts to split.
  auto dense = pools;
  dense["model"] = "llama3.1-70b";
  dense["prompt_tokens"] = "1000.4";
  for (const char* column :
       {"prefill_expert_parallel", "decode_expert_parallel", "prefill_attention_data_parallel"})
    dense[column] = "";
  dense["prefill_tensor_parallel"] = "4";
  const auto plain = read_public(server_row(dense), false);
  ASSERT_TRUE(plain) << (problems_.empty() ? "" : to_string(problems_.front()));
  EXPECT_EQ(plain->workload.prompt_tokens, 1000);
  EXPECT_EQ(plain->plan.prefill, (PrefillPool{4, 1, 3, 1, 1}));
  auto unknown = pools;
  unknown["mode"] = "Disagg";
  EXPECT_FALSE(read_public(server_row(unknown), false)) << "no mode";
}

TEST_F(PlanRowTest, BlanksTakeTheDocumentedDefaults) {
  const auto row = read(training());
  ASSERT_TRUE(row);
  EXPECT_EQ(row->gpus, 1);
  EXPECT_EQ(row->plan, ParallelPlan{});
  EXPECT_EQ(row->workload.precision, PolicyName::bf16);
  EXPECT_EQ(row->workload.global_batch, 8);
  EXPECT_FALSE(row->step_time_s);
  EXPECT_FALSE(row->oom);
}

TEST_F(PlanRowTest, EveryCellArrives) {
  const auto row = read(training({{"gpus", "32"},
                                  {"tensor_parallel", "2"},
                                  {"sequence_parallel", "1"},
                                  {"context_parallel", "2"},
                                  {"pipeline_parallel", "4"},
                                  {"data_parallel", "2"},
                                  {"zero_stage", "2"},
                                  {"recompute", "selective"},
                                  {"schedule", "interleaved"},
                                  {"virtual_stages", "3"},
                                  {"rank_order", "dp-tp-cp-pp"},
                                  {"precision", "fp16"},
                                  {"microbatch_size", "2"},
                                  {"num_microbatches", "4"},
                                  {"global_batch", "16"},
                                  {"measured_step_time_s", "1.5"},
                                  {"measured_memory_peak_bytes", "7e9"},
                                  {"measured_oom", "0"}}));
  ASSERT_TRUE(row) << (problems_.empty() ? "" : to_string(problems_.front()));
  EXPECT_EQ(row->plan.tensor, 2);
  EXPECT_TRUE(row->plan.sequence_parallel);
  EXPECT_EQ(row->plan.context, 2);
  EXPECT_EQ(row->plan.pipeline, 4);
  EXPECT_EQ(row->plan.data, 2);
  EXPECT_EQ(row->plan.zero_stage, 2);
  EXPECT_EQ(row->plan.recompute, Recompute::selective);
  EXPECT_EQ(row->plan.schedule, ScheduleKind::interleaved);
  EXPECT_EQ(row->plan.virtual_stages, 3);
  EXPECT_EQ(row->plan.microbatch, 2);
  EXPECT_EQ(to_string(row->plan.order), "dp-tp-cp-pp");
  EXPECT_EQ(row->workload.precision, PolicyName::fp16);
  EXPECT_EQ(row->step_time_s, 1.5);
  EXPECT_EQ(row->memory_peak_bytes, 7e9);
  EXPECT_EQ(row->oom, false);
}

TEST_F(PlanRowTest, WhatIsGivenFillsWhatIsNot) {
  EXPECT_EQ(read(training({{"gpus", "8"}, {"tensor_parallel", "2"}}))->plan.data, 4);
  EXPECT_EQ(read(training({{"data_parallel", "4"}, {"pipeline_parallel", "2"}}))->gpus, 8);
  const auto derived =
      read(training({{"global_batch", ""}, {"microbatch_size", "3"}, {"num_microbatches", "5"}}));
  EXPECT_EQ(derived->workload.global_batch, 15);
  EXPECT_EQ(read(training({{"num_microbatches", "4"}}))->plan.microbatch, 2);
}

TEST_F(PlanRowTest, AxesWithoutEffectAreIdle) {
  const auto row =
      read(training({{"sequence_parallel", "1"}, {"zero_stage", "1"}, {"schedule", "interleaved"}}));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->plan, ParallelPlan{});
}

TEST_F(PlanRowTest, ImpossiblePlansNameTheirColumn) {
  const auto blames = [&](const std::map<std::string, std::string>& cells, const std::string& column) {
    EXPECT_FALSE(read(cells));
    EXPECT_EQ(blamed(), std::vector<std::string>{column});
  };
  blames(training({{"gpus", "8"}, {"tensor_parallel", "3"}}), "gpus");
  blames(training({{"gpus", "8"}, {"tensor_parallel", "2"}, {"data_parallel", "2"}}), "gpus");
  blames(training({{"num_microbatches", "3"}, {"microbatch_size", "1"}}), "num_microbatches");
  blames(training({{"global_batch", ""}}), "global_batch");
  blames(training({{"virtual_stages", "2"}, {"gpus", "2"}, {"pipeline_parallel", "2"}}), "virtual_stages");
  blames(training({{"sequence_length", ""}}), "sequence_length");
  blames(training({{"prompt_tokens", "7"}}), "prompt_tokens");
  blames(training({{"measured_itl_s", "0.1"}}), "measured_itl_s");
  blames(inference({{"global_batch", "8"}}), "global_batch");
  blames(inference({{"recompute", "full"}}), "recompute");
  blames(inference({{"measured_step_time_s", "3"}}), "measured_step_time_s");
  blames(inference({{"output_tokens", ""}}), "output_tokens");
}

TEST_F(PlanRowTest, EveryUnreadableCellIsReported) {
  EXPECT_FALSE(read(training({{"tensor_parallel", "two"},
                              {"zero_stage", "4"},
                              {"recompute", "ful"},
                              {"measured_oom", "maybe"},
                              {"measured_step_time_s", "-1"}})));
  EXPECT_EQ(blamed(), (std::vector<std::string>{"tensor_parallel", "zero_stage", "recompute",
                                                "measured_step_time_s", "measured_oom"}));
  EXPECT_NE(problems_[2].message.find("did you mean 'full'?"), std::string::npos) << problems_[2].message;
}

TEST_F(PlanRowTest, InferenceNeedsNoTrainingCells) {
  const auto row = read(inference({{"gpus", "8"}, {"tensor_parallel", "8"}, {"measured_itl_s", "0.02"}}));
  ASSERT_TRUE(row);
  EXPECT_EQ(row->workload.phase, Phase::inference);
  EXPECT_EQ(row->workload.concurrency, 1);
  EXPECT_EQ(row->plan.data, 1);
  EXPECT_EQ(row->itl_s(), 0.02);
}

}  // namespace
}  // namespace shardscape::validate
