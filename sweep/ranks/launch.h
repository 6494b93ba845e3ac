// Tells how this process was started: by itself, or as one of several, by mpirun or srun.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

#include "sweep/ranks/ranks.h"

namespace shardscape::ranks {

enum class Start {
  alone,
  together,  ///< as one of the ranks of an MPI program
  copies     ///< as one of several tasks of Slurm that can't talk to each other
};

struct Launch {
  Start start = Start::alone;
  int size = 1;  ///< number of processes; 0 where only MPI can tell
};

/// Looks up a variable of the environment; null where it is not set.
using Environment = std::function<const char*(const char*)>;

/// Reads what launchers leave in the environment of what they start: OMPI_COMM_WORLD_SIZE (Open MPI's mpirun),
/// PMI_SIZE (MPICH's, Slurm's --mpi=pmi2), PMIX_RANK (Slurm's --mpi=pmix), SLURM_STEP_NUM_TASKS (tasks of
/// srun). A batch script of Slurm itself, whose environment speaks of all tasks of its job, is alone.
Launch launch_of(const Environment& environment);

/// Finds the module that speaks MPI (sweep/modules/module.h). Empty where the program was built without it.
std::optional<std::filesystem::path> mpi_module();

/// Joins the ranks of an MPI program. Throws std::runtime_error where the module can't be opened or MPI fails.
std::unique_ptr<Ranks> join_with_mpi(const std::filesystem::path& module);

}  // namespace shardscape::ranks
