// A study as the program uses it: everything parsed, every default filled in, every preset resolved.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/serving/load/longest_drawn.h"
#include "engine/spec/execution_mode.h"
#include "engine/spec/scenario.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/limits.h"
#include "results_schema/rows/stored_rows.h"
#include "sweep/evidence/evidence_table.h"
#include "sweep/faults/fault_study.h"
#include "sweep/faults/reliability.h"
#include "sweep/space/design_space.h"
#include "sweep/space/space_spec.h"

namespace shardscape::sweep {

/// An axis of `hardware:`: a setting of device, fabric or stack by its path, whole parts, or named variants.
struct HardwareAxis {
  std::string path;  ///< its key: "device.hbm.bandwidth", "cluster", "variant"
  std::string
      column;  ///< column name, a Python identifier that ends in its unit: "device_hbm_bandwidth_bytes_per_s"
  std::string unit;  ///< UDUNITS-style: "byte s-1", "s", "Hz", "1"
  std::string long_name;
  std::vector<std::string> labels;  ///< values as the study writes them; names of parts and variants
  /// Numbers in SI units; for choices, parts and variants the codes of `choices`.
  std::vector<double> values;
  std::vector<std::string> choices;  ///< names of the codes; empty for numbers
};

/// An input, kept word for word in the result file.
struct SourceText {
  std::string name;  ///< "study.yaml", "models/llama3.1-70b.yaml", ...
  std::string text;
  std::filesystem::path path;  ///< path from which it was read; for the study itself the path as given
};

/// The requests of an open loop that count, and those before them, where they follow from its rate: those of so many
/// seconds, kFewest at least, since a run that is short beside the stay of a request serves fewer a second than come,
/// until the last ones have left.
struct TimedRequests {
  static constexpr std::int64_t kFewest = 2000;
  double seconds = 0;           ///< 0: their number is known
  bool tenth_warms_up = false;  ///< the warm-up is a tenth of the requests that count
  /// Sets the numbers of a load at its rate.
  void count(LoadSpec& load) const;
};

struct Study {
  std::string title;
  std::string checkpoint;  ///< the name of the model's `also` list that the study means; empty: none of them
  std::string model_name, cluster_name, stack_name;
  ModelSpec model;
  std::int64_t gpus = 0;  ///< the number of GPUs, of several the least
  std::vector<std::int64_t>
      gpu_counts;                      ///< all of them, ascending; with several the first axis of `hardware`
  std::vector<HardwareAxis> hardware;  ///< first axis slowest
  /// Product of the hardware axes in that order, as many for each number of GPUs; at least one.
  std::vector<System> systems;
  std::vector<WorkloadSpec>
      workloads;                 ///< product of the listed workload keys; at least one, all of one phase
  TimedRequests timed_requests;  ///< of their loads
  /// Of each of their loads, before it was cut to what a run draws; empty where there are none.
  std::vector<serving::LengthLaws> length_laws;
  SpaceSpec space;
  ExecutionMode mode = ExecutionMode::hierarchical;
  std::optional<FaultStudy> faults;
  std::optional<Reliability> reliability;
  std::vector<results::Limit> limits;   ///< promises, then constraints on results, in their order
  std::vector<std::string> objectives;  ///< names of columns, minimised unless the column improves by growing
  /// Columns in the result file beside those that every file has; nothing: all columns.
  std::optional<std::vector<std::string>> stored_columns;
  results::StoredRows stored_rows;  ///< which points become rows of the result file
  std::string resolved_yaml;        ///< every default filled in; parses back to the same study
  /// Where the study, its keys and the items of its lists stand ("study.yaml:3:1"), the study under "", others under
  /// their paths: ".store.columns", ".store.columns.mfu".
  std::map<std::string, std::string> places;
  std::vector<SourceText> sources;
  std::vector<std::filesystem::path> tables;  ///< tables that were read: of requests, of accepted lengths
  /// The assumptions that results rest on beyond the inputs, one per line: first those for which the inputs should say
  /// more, `warned_of` of them, then what the stack decides.
  std::vector<std::string> assumptions;
  std::size_t warned_of = 0;
  /// Evidence of the preset folders; null where none has any.
  std::shared_ptr<const evidence::Table> measured;
  /// Presets whose names the settings' devices and stacks have: name -> YAML.
  std::map<std::string, std::string> device_presets, stack_presets;
  /// Names of devices known by their data sheets, some of whose shares of peaks are typical of others. A resolved study
  /// writes these shares out and no longer tells.
  std::set<std::string> sheet_devices;

  /// The beginning of a message about a key or an item of its list, at the study as a whole where it lacks the key:
  /// "study.yaml:3:1: space: ".
  [[nodiscard]] std::string at(const std::string& key, const std::string& item = "") const {
    std::string path = '.' + key + '.' + item;
    while (!places.contains(path)) path.resize(path.rfind('.'));
    return places.at(path) + ": " + key + ": ";
  }
  [[nodiscard]] Phase phase() const { return workloads.front().phase; }
  /// The parts of the study that need columns of their own.
  [[nodiscard]] results::StudyExtras extras() const {
    const std::optional<LoadSpec>& load = workloads.front().load;
    results::StudyExtras all{faults.has_value(),
                             reliability.has_value(),
                             load.has_value(),
                             load && load->promised != LatencyBounds(),
                             {}};
    for (const results::Limit& limit : limits) all.limits.push_back(results::limit_name(limit));
    return all;
  }
  [[nodiscard]] std::size_t setting_count() const { return systems.size() * workloads.size(); }
  [[nodiscard]] std::int64_t gpus_of(std::size_t setting) const {
    return gpu_counts.size() < 2 ? gpus : gpu_counts[setting / (setting_count() / gpu_counts.size())];
  }
  [[nodiscard]] DesignSpace design_space() const {
    return {space, gpu_counts.size() < 2 ? std::vector{gpus} : gpu_counts, phase(), setting_count()};
  }
  /// The workload of the setting with index = system * workloads.size() + workload.
  [[nodiscard]] const WorkloadSpec& workload_of(std::size_t index) const {
    return workloads[index % workloads.size()];
  }
  /// That setting.
  [[nodiscard]] Setting setting(std::size_t index) const {
    return {model, systems[index / workloads.size()], workload_of(index)};
  }
};

}  // namespace shardscape::sweep
