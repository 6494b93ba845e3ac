// The commands on whole result files. Each adds its subcommand to `app` and, where that is chosen, sets
// `action`.
#pragma once

#include "sweep/program/program.h"

namespace shardscape::program {

void add_merge_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_verify_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_diff_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_report_command(CLI::App& app, const CommonOptions& common, Action& action);

}  // namespace shardscape::program
