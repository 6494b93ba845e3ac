// From a study file to a Study: strict, located, every problem at once.
#pragma once

#include <filesystem>
#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/study/study.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::sweep {

/// The largest number of settings (systems x workloads) a study may have.
inline constexpr std::size_t kMaxSettings = 100'000;

struct StudyOptions {
  /// `KEY=VALUE` each, applied in order before anything is checked. KEY is a dotted path inside the study
  /// file ("workload.global_batch", "gpus", "hardware.device.hbm.bandwidth"), VALUE is YAML. Their problems
  /// are located as "--set KEY=VALUE".
  std::vector<std::string> overrides;
  /// Columns that `objectives:` may name; not checked where the list is empty.
  std::vector<std::string> objective_columns;
  /// Columns that results have whatever the study; no axis of `hardware:` may take their names, and `store.columns` may
  /// name them and the axes, unless the list is empty.
  std::vector<std::string> fixed_columns;
};

/// Reads and checks a study together with its model, cluster, device and stack. The study that comes back is
/// complete and valid: DesignSpace and Simulator need no further checks. Writes nothing; safe to call from
/// any thread.
tl::expected<Study, yaml::Diagnostics> load_study(const std::filesystem::path& file,
                                                  const yaml::Catalog& catalog,
                                                  const StudyOptions& options = {});

/// The same from text: `name` stands for the file in messages and sources, relative paths start at `folder`.
tl::expected<Study, yaml::Diagnostics> parse_study(const std::string& text, const std::string& name,
                                                   const std::filesystem::path& folder,
                                                   const yaml::Catalog& catalog,
                                                   const StudyOptions& options = {});

}  // namespace shardscape::sweep
