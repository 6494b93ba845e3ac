// Reads the keys of `workload:` that describe a load which is simulated request by request: request_rate, arrivals,
// trace, speed_up, client, and random lengths and sessions; speculation has a reader of its own.
#pragma once

#include <array>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "engine/spec/model.h"
#include "engine/spec/request_load.h"
#include "engine/spec/scenario.h"
#include "sweep/study/study.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

/// The keys that no other workload has.
inline constexpr std::array<const char*, 7> kLoadKeys = {"request_rate", "arrivals", "trace",      "speed_up",
                                                         "client",       "sessions", "speculation"};
/// Whether a workload has any of these keys, or random lengths.
bool describes_load(const yaml::Node& workload);

struct ParsedLoad {
  LoadSpec load;
  double length_ratio = 1;  ///< the client's ratio, for lengths that are written as a number
  TimedRequests timed;
  yaml::Node resolved;                        ///< the keys that were read, in full
  std::vector<std::filesystem::path> tables;  ///< those that were read
};
/// Reads what all workloads have in common: everything but rates and lengths. Files lie relative to `folder`.
ParsedLoad parse_load(const yaml::Node& workload, const std::filesystem::path& folder, yaml::Reader& reader,
                      yaml::ReadState& state);

/// The lengths that a map stands for: {mean, length_ratio}, {longest, length_ratio}, {lognormal: {mean, cv}}. Problems
/// go to `state`.
std::optional<Lengths> parse_lengths(const yaml::Node& node, const std::string& path, yaml::ReadState& state);

/// Why a trace has a request that is too long for the model; empty where it has none.
std::string too_long_request(const Trace& trace, const ModelSpec& model);

/// Why requests have no priorities, though the queue of some system goes by them; empty where all is well.
std::string idle_priorities(const LoadSpec& load, const std::vector<System>& systems);

/// Requests per second of "3 /s", "3/s", "180 /min".
yaml::Parsed<double> parse_rate(const yaml::Node& node);
std::string rate_text(double per_second);

/// Requests per second over all replicas at which those of a run that count are sent (serving::drawn_rate()); nothing
/// where it is no matter of chance: in closed loops, at a constant rate, by a trace; or not known beforehand: sessions.
std::optional<double> sent_rate(const LoadSpec& load);

}  // namespace shardscape::sweep
