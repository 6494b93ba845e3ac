// What the program and its MPI module agree on. Private to this folder.
#pragma once

#include "sweep/ranks/ranks.h"

namespace shardscape::ranks {

inline constexpr const char* kMpiModule = "shardscape_mpi.so";
/// Name of the module's entry function; its number must grow whenever ranks.h changes.
inline constexpr const char* kMpiEntry = "shardscape_join_ranks_2";
/// The function that starts MPI and returns the ranks; the caller deletes them.
using MpiEntry = Ranks*();

}  // namespace shardscape::ranks
