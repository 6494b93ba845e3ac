// Measurements that the engine itself makes, under a profile that the test knows.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sweep/calibrate/calibrate.h"
#include "sweep/validate/evaluation.h"
#include "tests/support/paths.h"

namespace shardscape::calibrate {

inline validate::Presets shipped_presets() { return validate::Presets(yaml::Catalog({test::source_dir()})); }

struct Layout {
  int tp, pp, dp, zero, batch;
  const char* model = "nanotron-1.3b";
};

/// Plans that show different constants: with and without tensor, pipeline and data parallelism and ZeRO.
inline std::vector<Layout> runs_in_nodes() {
  return {{1, 1, 1, 0, 4},  {1, 1, 2, 0, 8},  {1, 1, 2, 1, 8},  {1, 1, 4, 1, 16}, {1, 1, 8, 0, 32},
          {1, 1, 8, 1, 32}, {2, 1, 1, 0, 4},  {2, 1, 2, 1, 8},  {2, 1, 4, 0, 64}, {4, 1, 1, 0, 4},
          {4, 1, 2, 0, 8},  {4, 2, 1, 0, 16}, {8, 1, 1, 0, 4},  {8, 1, 1, 0, 64}, {1, 2, 1, 0, 8},
          {1, 4, 1, 0, 16}, {1, 8, 1, 0, 8},  {2, 2, 2, 1, 16}, {1, 4, 2, 0, 32}, {2, 4, 1, 0, 8}};
}
inline std::vector<Layout> runs_across_nodes() {
  return {{1, 1, 16, 0, 64}, {1, 1, 16, 1, 16}, {8, 1, 2, 0, 16},  {8, 1, 4, 1, 64}, {4, 1, 8, 0, 32},
          {2, 1, 16, 0, 32}, {8, 2, 2, 0, 32},  {1, 1, 32, 0, 32}, {4, 4, 2, 0, 16}, {2, 1, 64, 0, 64}};
}

/// Step times (and, with `memory`, reserved memory) under `truth`, each times exp(noise * x) with x in -1..1
/// from the row's id.
inline validate::Table measured(const std::vector<Layout>& runs, const yaml::StackPreset& truth,
                                double noise = 0, bool memory = false,
                                const std::string& stack = "nanotron-a") {
  std::string text =
      "id,phase,model,cluster,stack,gpus,tensor_parallel,sequence_parallel,context_parallel,pipeline_"
      "parallel,"
      "data_parallel,zero_stage,recompute,schedule,virtual_stages,microbatch_size,num_microbatches,global_"
      "batch,"
      "sequence_length,prompt_tokens,output_tokens,concurrency,measured_step_time_s,measured_memory_peak_"
      "bytes,"
      "measured_oom,source\n";
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Layout& run = runs[i];
    text += "run-" + std::to_string(i) + ",training," + run.model + ",dgx-h100," + stack + ",," +
            std::to_string(run.tp) + ",1,1," + std::to_string(run.pp) + ',' + std::to_string(run.dp) + ',' +
            std::to_string(run.zero) + ",none,1f1b,1,1,," + std::to_string(run.batch) + ",4096,,,,1," +
            (memory ? "1,0" : ",") + ",synthetic\n";
  }
  validate::Table table = validate::parse_csv(text, "runs.csv");
  validate::Presets presets = shipped_presets();
  presets.replace_stack(stack, truth);
  const validate::Evaluation made = validate::evaluate(table, presets, {});
  for (const validate::Metric& metric : made.metrics) {
    for (const validate::Pair& pair : metric.pairs) {
      const std::string& id = made.rows[pair.row].id;
      const double x = 2 * static_cast<double>(validate::id_hash(id + metric.key) % 1001) / 1000 - 1;
      const std::size_t column = metric.key == "step_time" ? 22 : 23;
      table.rows[pair.row].cells[column] = validate::cell(pair.predicted * std::exp(noise * x));
    }
  }
  return table;
}

inline const ConstantResult& result_of(const Calibration& calibration, std::string_view path) {
  for (const ConstantResult& found : calibration.constants) {
    if (found.constant->path == path) return found;
  }
  throw std::runtime_error("no result of " + std::string(path));
}

inline yaml::StackPreset shipped(const std::string& name) { return *shipped_presets().stack(name).value(); }

inline std::vector<const Constant*> some(std::initializer_list<const char*> paths) {
  std::vector<const Constant*> list;
  for (const char* path : paths) list.push_back(find_constant(path));
  return list;
}

inline CalibrateOptions options_of(std::vector<const Constant*> only) {
  CalibrateOptions options;
  options.stack = "nanotron-a";
  options.rows.stacks = {"nanotron-a"};
  options.only = std::move(only);
  options.folds = 0;
  return options;
}

inline Calibration calibrated(const validate::Table& table, const CalibrateOptions& options) {
  validate::Presets presets = shipped_presets();
  auto result = calibrate({table}, presets, options);
  if (!result) {
    for (const auto& problem : result.error()) ADD_FAILURE() << to_string(problem);
  }
  return *std::move(result);
}

/// A profile whose constants all show: host launch bound blocks, slow links.
inline yaml::StackPreset truth() {
  yaml::StackPreset stack = shipped("nanotron-a");
  stack.host.forward_layer = Seconds(2e-3);
  stack.host.backward_layer = Seconds(5e-3);
  stack.host.per_collective = Seconds(0.9e-3);
  stack.host.step_fixed = Seconds(120e-3);
  stack.communication.scale_out_fraction = 0.31;
  stack.zero_slice = Seconds(40e-6);
  return stack;
}

}  // namespace shardscape::calibrate
