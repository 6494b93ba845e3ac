#include "sweep/ranks/launch.h"

#include "engine/base/words.h"
#include "sweep/modules/module.h"
#include "sweep/ranks/mpi_entry.h"

namespace shardscape::ranks {

namespace fs = std::filesystem;

namespace {

std::optional<int> number_in(const Environment& environment, const char* name) {
  const char* const text = environment(name);
  if (text == nullptr) return std::nullopt;
  const auto number = to_number<int>(text);
  return number >= 1 ? number : std::nullopt;
}

Launch of_size(Start start, int size) { return size == 1 ? Launch{} : Launch{start, size}; }

}  // namespace

Launch launch_of(const Environment& environment) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    if (const auto size = number_in(environment, name)) return of_size(Start::together, *size);
  }
  const auto tasks = number_in(environment, "SLURM_STEP_NUM_TASKS");
  if (environment("PMIX_RANK") != nullptr) return of_size(Start::together, tasks.value_or(0));
  return of_size(Start::copies, tasks.value_or(1));
}

std::optional<fs::path> mpi_module() { return modules::find(kMpiModule); }

std::unique_ptr<Ranks> join_with_mpi(const fs::path& module) {
  return std::unique_ptr<Ranks>(modules::entry<MpiEntry>(module, kMpiEntry, modules::Symbols::shared)());
}

}  // namespace shardscape::ranks
