// Reads a study file into a Study: strictly, and with all problems and their places at once.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {

/// The most settings (systems x workloads) that a study may have.
inline constexpr std::size_t kMaxSettings = 100'000;
/// The most GPUs.
inline constexpr std::int64_t kMostGpus = 1 << 30;

struct StudyOptions {
  /// Texts `KEY=VALUE`, applied in order before anything is checked. KEY is a dotted path inside the study file
  /// ("workload.global_batch", "gpus", "hardware.device.hbm.bandwidth"), VALUE is YAML. Their problems are located at
  /// "--set KEY=VALUE".
  std::vector<std::string> overrides;
  /// Columns that `objectives:` may name; not checked where the list is empty.
  std::vector<std::string> objective_columns;
  /// Columns that all results have. No axis of `hardware:` may take their names; `store.columns` may name them and the
  /// axes. Not checked where the list is empty.
  std::vector<std::string> fixed_columns;
  /// Of a cluster of any size, `gpus: N` stands for all numbers up to N that the cluster comes in.
  bool all_counts = false;
  /// `workload.request_rate` takes the place of `workload.concurrency`, where there is one.
  bool rates_instead = false;
  /// One plan is asked for by its axes, so that values of `space` which an override of `gpus` leaves no plan for are no
  /// loss that whoever asks should hear of.
  bool one_plan = false;
};

/// Reads and checks a study with its model, cluster, device and stack. The result is complete and valid: DesignSpace
/// and Simulator need no further checks. Writes nothing; safe to call from any thread.
tl::expected<Study, yaml::Diagnostics> load_study(const std::filesystem::path& file,
                                                  const yaml::Catalog& catalog,
                                                  const StudyOptions& options = {});

/// Reads a study from text: `name` stands for the file in messages and sources, relative paths start at `folder`.
tl::expected<Study, yaml::Diagnostics> parse_study(const std::string& text, const std::string& name,
                                                   const std::filesystem::path& folder,
                                                   const yaml::Catalog& catalog,
                                                   const StudyOptions& options = {});

}  // namespace shardscape::sweep
