// Where the program and its MPI module meet. Private to this folder.
#pragma once

#include "sweep/ranks/ranks.h"

namespace shardscape::ranks {

inline constexpr const char* kMpiModule = "shardscape_mpi.so";
/// The number changes with ranks.h.
inline constexpr const char* kMpiEntry = "shardscape_join_ranks_2";
/// Starts MPI and gives the ranks to the caller, who deletes them.
using MpiEntry = Ranks*();

}  // namespace shardscape::ranks
