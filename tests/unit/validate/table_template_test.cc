// Does every table to begin with stand for its kind, and are short tables told apart?
#include "sweep/validate/table_columns.h"

#include <gtest/gtest.h>

#include <set>

#include "engine/base/words.h"
#include "sweep/validate/evaluation.h"
#include "tests/support/paths.h"

namespace shardscape::validate {
namespace {

TEST(TableTemplate, EveryKindHasOneThatIsRead) {
  Presets presets(yaml::Catalog({test::source_dir()}));
  std::set<TableKind> kinds;
  for (const TableTemplate& one : table_templates()) {
    SCOPED_TRACE(one.name);
    kinds.insert(one.kind);
    const Table table = parse_csv(one.csv, "t.csv");
    EXPECT_EQ(recognise(table.columns), one.kind);
    const Evaluation evaluation = evaluate(table, presets, {});
    for (const TableProblem& problem : evaluation.problems) ADD_FAILURE() << to_string(problem);
    EXPECT_EQ(evaluation.rows.size(), 1U);
    double measured = 0;  // the example is plausible
    for (const Metric& metric : evaluation.metrics)
      for (const Pair& pair : metric.pairs) {
        ++measured;
        EXPECT_NEAR(pair.predicted / pair.measured, 1, 0.2) << metric.name;
      }
    EXPECT_GE(measured, 1);
    for (const std::string& column : table.columns)
      EXPECT_NE(column_meanings(one).find("  " + column + ' '), std::string::npos) << column;
  }
  EXPECT_EQ(kinds.size(), enum_values<TableKind>().size());
}

// Of the columns that a kind may have only the needed ones tell it apart.
TEST(TableTemplate, ShortHeadersAreRecognised) {
  const auto kind_of = [](std::string_view header) {
    std::vector<std::string> columns;
    for (const std::string_view name : split(header, ',')) columns.emplace_back(name);
    return recognise(columns);
  };
  EXPECT_EQ(kind_of("id,phase,model,cluster,stack,sequence_length,global_batch,measured_step_time_s"),
            TableKind::plans);
  EXPECT_EQ(kind_of("id,model,device,software,gpus,tensor_parallel,measured_itl_s"), TableKind::plans);
  EXPECT_EQ(kind_of("id,model,device,software,gpus,tensor_parallel,requested_rate"), TableKind::open_loop);
  EXPECT_EQ(kind_of("id,model,scenario,device,software,tokens_per_s"), TableKind::mlperf);
  EXPECT_EQ(kind_of("m,n,k,measured_time_s"), TableKind::gemm);
  EXPECT_EQ(kind_of("device,gemm_dtype,m,n,k,measured_time_s"), TableKind::gemm_alone);
  EXPECT_EQ(kind_of("alpha,beta"), std::nullopt);
  EXPECT_EQ(kind_of("id,source"), std::nullopt);
}

}  // namespace
}  // namespace shardscape::validate
