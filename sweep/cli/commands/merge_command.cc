// shardscape merge: joins the shards of a sweep into one result file.
#include <iostream>

#include "results_schema/segments/assemble.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/selection_text.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kMergeFooter =
    R"(Examples:
  shardscape sweep study.yaml -o a.h5 --shard 1/2        on one machine
  shardscape sweep study.yaml -o b.h5 --shard 2/2        on another
  shardscape merge a.h5 b.h5 -o all.h5                   as if one had done it all

The files are finished shards of one study by one version of the program, neighbours without a gap, in any order.
They stay as they are. Some of the shards make a larger shard.)";

struct MergeArguments {
  std::vector<fs::path> files;
  fs::path output;
  bool force = false;
};

results::OutputPath merge_output(const MergeArguments& arguments) {
  std::error_code error;
  if (fs::exists(results::parts_folder(arguments.output), error)) {
    throw BadInput(results::parts_folder(arguments.output).string() +
                   ": holds an unfinished sweep; choose another output\n");
  }
  return {arguments.output, arguments.force, arguments.files};
}

int run_merge(const MergeArguments& arguments, const CommonOptions& common) {
  for (const fs::path& file : arguments.files) prepare_results(file);
  results::remove_leftovers(arguments.output);
  const std::vector<results::SweepPart> parts = results::open_parts(arguments.files);
  if (auto problems = results::merge_problems(parts); !problems.empty()) throw BadInput(std::move(problems));
  results::RunInfo run = run_info(common, 1);
  run.command_line = parts.front().manifest.run.command_line;  // names the study and what it changes
  results::merge(parts, merge_output(arguments), run);
  std::uint64_t rows = 0;
  for (const results::SweepPart& part : parts) rows += part.manifest.layout.rows();
  std::cout << "merged " << counted(parts.size(), "file") << ": " << format_count(rows) << " of "
            << counted(parts.front().manifest.layout.total_points, "point")
            << in_brackets(of_the_study(results::ResultReader(arguments.output))) << " in "
            << arguments.output.string() << " ("
            << format_bytes(static_cast<double>(fs::file_size(arguments.output))) << ")\n";
  return kDone;
}

}  // namespace

void add_merge_command(const Program& program) {
  const auto [command, arguments] =
      program.add("merge", "Put the shards of a sweep together into one file", kMergeFooter, run_merge);
  command->add_option("RESULTS", arguments->files, "The shards' files")->required()->type_name("PART.h5");
  add_value(*command, "-o,--output", arguments->output, "ALL.h5", "The file to write")->required();
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
