// The commands on whole result files. Each function adds its subcommand to `app` and sets `action` if that is chosen.
#pragma once

#include "sweep/cli/commands.h"

namespace shardscape::cli {

void add_merge_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_verify_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_diff_command(CLI::App& app, const CommonOptions& common, Action& action);
void add_report_command(CLI::App& app, const CommonOptions& common, Action& action);

}  // namespace shardscape::cli
