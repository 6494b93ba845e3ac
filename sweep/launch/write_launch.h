// From a plan and a framework's table to what starts it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sweep/launch/framework.h"

namespace shardscape::launch {

/// Lines of shell that go to the script's own folder, wherever it is started, where that has `file`. A copy of the
/// script, such as Slurm's sbatch runs, stays where it is started.
std::string to_own_folder(const std::string& file);

struct LaunchFile {
  std::string name, text;
};
/// A part of the plan that runs otherwise than it says, and why.
struct NotExpressed {
  std::string what, value, why;
  friend bool operator==(const NotExpressed&, const NotExpressed&) = default;
};

struct Launch {
  std::vector<LaunchFile> files;
  std::string command;  ///< lines of a POSIX shell, ready to paste where the files are
  std::vector<NotExpressed> not_expressed;
  /// Why the framework cannot run the plan, an axis each: "schedule=dualpipe: ..."; empty where it can.
  std::vector<std::string> refused;
};

struct LaunchWish {
  const Setting& setting;  ///< its workload is of the framework's phase
  const ParallelPlan& plan;
  std::int64_t gpus_per_node = 8;
  std::string model;  ///< as Case::model; without control characters
};
/// Every item of the plan and its setting (said_items.h) is in the files and the command, or in `not_expressed`, or
/// `refused`, or the framework does so unasked.
Launch write_launch(const Framework& framework, const LaunchWish& wish);

/// GPUs of a machine of this system: its innermost scale-up domain, of racks those of one host.
std::int64_t usual_gpus_per_node(const System& system);

}  // namespace shardscape::launch
