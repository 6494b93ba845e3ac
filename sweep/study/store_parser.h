// The `store:` part of a study file: which of its results the file holds.
//
//   columns  names of columns beside those that every file has; default: all
//   rows     all (default), feasible, pareto (the front of the objectives) or {pareto: [columns]}, top N or {top: N}
#pragma once

#include <optional>

#include "sweep/study/load_study.h"
#include "sweep/study/study.h"
#include "sweep/yaml/diagnostics.h"
#include "sweep/yaml/node.h"

namespace shardscape::sweep {

/// The most rows that `top` may ask for, as their ids and values are in memory when the file is put together.
inline constexpr std::int64_t kMostTopRows = 10'000'000;

/// Reads what the study stores, once its hardware axes and objectives are known. All problems are reported.
void parse_store(const yaml::Node& node, const StudyOptions& options, Study& study,
                 yaml::Diagnostics& diagnostics);

/// The part as YAML, which parses back to an equal study; nothing where all is stored.
std::optional<yaml::Node> write_store(const Study& study);

}  // namespace shardscape::sweep
