// Are the residuals of the fit those of `validate`, whatever the grouping?
#include "sweep/calibrate/dataset.h"

#include <gtest/gtest.h>

#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>

#include "tests/support/synthetic_runs.h"

namespace shardscape::calibrate {
namespace {

const auto kEveryRow = [](const std::string&) { return true; };

struct Fixture {
  validate::Presets presets = shipped_presets();
  Candidate candidate{*presets.stack("nanotron-b").value(), std::nullopt};
  std::vector<SourceTable> sources;

  void add(const validate::Table& table, validate::TableKind kind, const std::string& stack) {
    SourceTable source{kind, select_rows(table, kind, {{stack}, false}), {}};
    source.options.collective_stack = kFittedStack;
    sources.push_back(source);
    install(presets, candidate);
  }
  validate::Evaluation evaluation(std::size_t source = 0) {
    install(presets, candidate);
    return validate::evaluate(sources[source].table, presets, sources[source].options);
  }
};

std::vector<double> logarithms(const std::vector<validate::Pair>& pairs) {
  std::vector<double> list;
  for (const validate::Pair& pair : pairs) list.push_back(std::log(pair.predicted / pair.measured));
  return list;
}

std::vector<double> sorted(std::vector<double> values) {
  std::ranges::sort(values);
  return values;
}

TEST(Dataset, ResidualsAreThoseOfTheErrorTable) {
  Fixture fixture;
  fixture.add(measured(runs_in_nodes(), *fixture.presets.stack("nanotron-a").value(), 0.2, true),
              validate::TableKind::plans, "nanotron-a");
  const validate::Evaluation expected = fixture.evaluation();
  const Dataset times(fixture.sources, FitActsOn::time, fixture.presets, kEveryRow);
  EXPECT_EQ(sorted(times.residuals({fixture.candidate})[0]), sorted(logarithms(expected.metrics[0].pairs)));
  // Memory: one residual per measurement and one per verdict, which is 0 where the run fits and did fit.
  const Dataset memory(fixture.sources, FitActsOn::memory, fixture.presets, kEveryRow);
  std::vector<double> due = logarithms(expected.metrics[1].pairs);
  const std::size_t runs = due.size();
  for (const validate::EvaluatedRow& row : expected.rows) ASSERT_FALSE(row.predicted_oom.value());
  due.resize(2 * runs);
  EXPECT_EQ(sorted(memory.residuals({fixture.candidate})[0]), sorted(due));
}

TEST(Dataset, ExchangesOfExpertsAreResidualsBothWays) {
  Fixture fixture;
  fixture.candidate.device = *fixture.presets.device("h100-sxm-80gb", "").value();
  validate::Table table = validate::parse_csv(
      "id,device,op_name,node_num,hidden_size,num_token,num_topk,num_experts,dispatch_sms,dispatch_transmit_"
      "us,"
      "dispatch_notify_us,combine_sms,combine_transmit_us,combine_notify_us,dispatch_avg_t_us,combine_avg_t_"
      "us\n"
      "a,h100-sxm-80gb,ll,1,7168,1,8,256,,,,,,,20,21\n"
      "b,h100-sxm-80gb,normal,2,7168,128,8,256,20,50,30,20,100,0.0,,\n",
      "t.csv");
  SourceTable source{validate::TableKind::expert_exchange, table, {}};
  fixture.sources.push_back(source);
  const validate::Evaluation expected = fixture.evaluation();
  std::vector<double> due;
  for (const validate::Metric& metric : expected.metrics) {
    for (const double one : logarithms(metric.pairs)) due.push_back(one);
  }
  ASSERT_EQ(due.size(), 4U);
  const Dataset data(fixture.sources, FitActsOn::time, fixture.presets, kEveryRow);
  EXPECT_EQ(sorted(data.residuals({fixture.candidate})[0]), sorted(due));
  // A start that is longer lengthens the one call that has it.
  Candidate slower = fixture.candidate;
  slower.device->node.experts.normal.combine_start *= 2;
  const auto before = data.residuals({fixture.candidate})[0], after = data.residuals({slower})[0];
  int changed = 0;
  for (std::size_t i = 0; i < before.size(); ++i) changed += after[i] > before[i] ? 1 : 0;
  EXPECT_EQ(changed, 1);
}

TEST(Dataset, VerdictsPullWhereTheyAreWrong) {
  Fixture fixture;
  validate::Table table = measured({{1, 1, 1, 0, 4}}, fixture.candidate.stack, 0, true, "nanotron-b");
  table.rows[0].cells[23] = "";  // memory not measured
  const auto residual = [&](const char* oom, double reserve) {
    Fixture other;
    validate::Table changed = table;
    changed.rows[0].cells[24] = oom;
    other.add(changed, validate::TableKind::plans, "nanotron-b");
    other.candidate.stack.memory.reserve = Bytes(reserve);
    const Dataset data(other.sources, FitActsOn::memory, other.presets, kEveryRow);
    return data.residuals({other.candidate})[0].at(0);
  };
  EXPECT_EQ(residual("0", 1e9), 0);
  EXPECT_LT(residual("1", 1e9), 0);
  EXPECT_GT(residual("0", 100e9), 0);
  EXPECT_EQ(residual("1", 100e9), 0);
}

TEST(Dataset, ThreadsAndSubsetsChangeNothing) {
  Fixture fixture;
  std::vector<Layout> runs = runs_in_nodes();
  for (const Layout& run : runs_across_nodes()) runs.push_back(run);
  fixture.add(measured(runs, *fixture.presets.stack("nanotron-a").value(), 0.2), validate::TableKind::plans,
              "nanotron-a");
  Candidate other = fixture.candidate;
  other.stack.host.step_fixed = Seconds(1);
  const Dataset all(fixture.sources, FitActsOn::time, fixture.presets, kEveryRow);
  const auto results = all.residuals({fixture.candidate, other, fixture.candidate});
  EXPECT_EQ(results[0], results[2]);
  EXPECT_NE(results[0], results[1]);
  {
    const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
    EXPECT_EQ(all.residuals({other})[0], results[1]);
  }
  std::vector<double> parts;
  for (const bool held : {false, true}) {
    const Dataset part(fixture.sources, FitActsOn::time, fixture.presets, [&](const std::string& id) {
      return validate::is_held_out(id, {1, 3}) == held;
    });
    const auto residuals = part.residuals({other})[0];
    parts.insert(parts.end(), residuals.begin(), residuals.end());
  }
  EXPECT_EQ(sorted(parts), sorted(results[1]));
}

TEST(Dataset, KernelsAndCollectives) {
  Fixture fixture;
  fixture.candidate.device = *fixture.presets.device("a100-sxm-80gb").value();
  fixture.candidate.device->sustained.hbm = 0.5;
  fixture.add(validate::parse_csv("m,n,k,tile_m,tile_n,tile_k,stages,grid_size,sm_clock_hz,measured_time_s\n"
                                  "4096,4096,4096,128,128,32,3,1024,1.2e9,1e-3\n"
                                  "64,64,8192,,,,,,,2e-5\n",
                                  "g.csv"),
              validate::TableKind::gemm, "any");
  fixture.add(validate::parse_csv("cluster,collective,gpus,gpus_per_node,bytes,median_s\n"
                                  "dgx-a100,all_reduce,8,8,1000000,1e-4\n"
                                  "dgx-a100,all_gather,4,4,50000000,1e-3\n",
                                  "c.csv"),
              validate::TableKind::collectives, "any");
  ASSERT_EQ(fixture.sources[0].table.rows.size(), 2U);
  const validate::Evaluation kernels = fixture.evaluation(0), collectives = fixture.evaluation(1);
  ASSERT_EQ(kernels.problems.size() + collectives.problems.size(), 0U);
  const Dataset data(fixture.sources, FitActsOn::time, fixture.presets, kEveryRow);
  const std::vector<double> found = data.residuals({fixture.candidate})[0];
  ASSERT_EQ(found.size(), 4U);
  EXPECT_EQ(found[0], logarithms(kernels.metrics[2].pairs)[0]);  // the row's own tile
  EXPECT_EQ(found[1], logarithms(kernels.metrics[0].pairs)[1]);
  EXPECT_EQ(found[2], logarithms(collectives.metrics[0].pairs)[0]);
  EXPECT_EQ(found[3], logarithms(collectives.metrics[0].pairs)[1]);
  const Dataset memory(fixture.sources, FitActsOn::memory, fixture.presets, kEveryRow);
  EXPECT_EQ(memory.size(), 0U);
}

TEST(Dataset, SelectionByStack) {
  validate::Table table = validate::parse_csv("id,stack\na,x\nb,y\nc,x\n", "t.csv");
  const auto ids = [&](const RowSelection& selection) {
    std::string text;
    for (const auto& row : select_rows(table, validate::TableKind::plans, selection).rows) {
      text += row.cells[0];
      EXPECT_EQ(row.cells[1], kFittedStack);
    }
    return text;
  };
  EXPECT_EQ(ids({{"x"}, false}), "ac");
  EXPECT_EQ(ids({{"x", "y"}, false}), "abc");
  EXPECT_EQ(ids({{}, true}), "abc");
  const validate::Table none = select_rows(table, validate::TableKind::plans, {{"z"}, false});
  ASSERT_EQ(none.problems.size(), 1U);
  EXPECT_NE(none.problems[0].message.find("x (2 rows), y (1 rows)"), std::string::npos)
      << none.problems[0].message;
}

}  // namespace
}  // namespace shardscape::calibrate
