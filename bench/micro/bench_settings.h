// Settings that several benchmarks share.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string_view>

#include "engine/spec/scenario.h"
#include "sweep/yaml/load.h"

namespace shardscape::bench {

/// A training step of `model` on `gpus` devices of `cluster`.
inline Setting training_setting(std::string_view model, std::string_view cluster, std::string_view stack,
                                std::int64_t gpus, std::int64_t sequence_length, std::int64_t global_batch) {
  const yaml::Catalog catalog({std::filesystem::path(SHARDSCAPE_SOURCE_DIR)});
  const yaml::Cluster hardware = yaml::load_cluster(catalog, cluster).value();
  Problems problems;
  Setting setting;
  setting.model = yaml::load_model(catalog, model).value();
  setting.system.device = hardware.device;
  setting.system.fabric = hardware.fabric.instantiate(gpus, problems);
  if (!problems.empty()) throw std::runtime_error(problems.list().front().message);
  setting.system.stack = yaml::load_stack(catalog, stack).value();
  setting.workload.sequence_length = sequence_length;
  setting.workload.global_batch = global_batch;
  return setting;
}

}  // namespace shardscape::bench
