// A network case: one fabric, its faults, and the patterns that run on it; read from a JSON file.
//
//   {"name"?: "...",
//    "topology": {"dims": [{"type", "size" | "shape": [..], "bw": bytes/s, "lat": s,
//                           "name"?, "in_network_reduction"?}, ..]},
//    "faults": [{"kind": "derate", "a", "b", "factor", "both"?}, {"kind": "remove", "a", "b", "both"?},
//               {"kind": "delay", "a", "b", "lat": s, "both"?}, ..],
//    "patterns": [..]}
//
// A key with a question mark may be left out, and so may `faults`.
//
// Topology types: ring, fullyconnected, switch, mesh, torus, kingmesh, hypercube, dimension 0 innermost; `bw`
// and `lat` are those of each link and direction. Faults name a link by its two vertices (ranks, then
// switches) and hit both directions unless `both` is false.
//
// Patterns, each with optional `start` (seconds) and `after` (list of earlier patterns):
//   {"op": "allreduce" | "reducescatter" | "allgather" | "alltoall" | "broadcast", "algo"?, "groups": [[..]],
//    "bytes", "order"?, "chunks"?, "partners"?}
//   {"op": "pipeline", "chains": [[..]], "bytes", "microbatches"?, "interval"?, "compute"?}
//   {"op": "p2p", "list": [[source, destination, bytes, start?], ..]}
//
// `algo` is ring by default; `hd` stands for halving_doubling. An all-to-all is direct unless it is pairwise.
// `order`: near_first or far_first (hd), listed or hamiltonian (rings). `partners`: shift or xor (pairwise).
// Letter case, '_' and '-' do not count in names of types, operations and algorithms.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "engine/base/problems.h"
#include "engine/network/collectives/patterns.h"
#include "engine/network/fabric/fabric.h"
#include "engine/spec/fault.h"

namespace shardscape::network_case {

struct NetworkCase {
  std::string name;
  network::Fabric fabric;
  FaultSet faults;
  std::vector<network::Pattern> patterns;
};

/// Limits on the size of the fabric that is built for a case.
struct CaseLimits {
  std::int64_t ranks = std::int64_t{1} << 20;
  std::int64_t links = std::int64_t{1} << 24;
};

/// The case, ready for build_traffic(), or every problem, one per line: "FILE: path: message", for violations
/// of the syntax "FILE:LINE:COLUMN: message".
tl::expected<NetworkCase, std::string> parse_case(std::string_view text, const std::string& file,
                                                  const CaseLimits& limits = {});
/// Loads a case from a file; a file that can't be read counts as a problem, too.
tl::expected<NetworkCase, std::string> load_case(const std::filesystem::path& file);

/// Lists problems of build_traffic() in the form of parse_case()'s error.
std::string located(const Problems& problems, const std::string& file);

}  // namespace shardscape::network_case
