// shardscape calibrate: fits the constants of a stack profile to measurements.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "engine/base/safe_text.h"
#include "engine/base/suggest.h"
#include "results_schema/disk/output_file.h"
#include "sweep/calibrate/preset_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/calibrate_report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/yaml/loader.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;
using calibrate::Constant;

constexpr const char* kCalibrateExamples =
    R"(Examples:
  shardscape calibrate --template > runs.csv   a table to fill in
  shardscape calibrate --list                  what can be fitted, and how far
  shardscape calibrate runs.csv --stack nanotron-a -o nanotron-a.yaml
  shardscape calibrate runs.csv --stack pytorch --rows-of my-stack --hold-out 1/3 -o my-stack.yaml
  shardscape calibrate runs.csv --stack megatron-core --only host.forward_layer,host.backward_layer -o m.yaml
  shardscape calibrate nccl.csv --stack nccl-tests --where "gpus == gpus_per_node" -o nccl.yaml
  shardscape calibrate kernels.csv --stack pytorch --device a100-sxm-80gb -o out.yaml    also writes out.device.yaml
  shardscape calibrate gemm.csv attention.csv nccl.csv --device my-gpu.yaml -o my-gpu.fitted.yaml    the device alone

Tables are those of 'shardscape validate'. Bounded least squares on the logarithm of predicted over measured,
soft-L1 loss (errors above 5 % count linearly), weak priors around the profile's own values. A constant that
the rows cannot identify (no dependence, at an end of its range, or seen only together with another) keeps
its value and is said to. One that is 0 stands for a mechanism that is off, and stays 0 unless --start gives
it a value. Of fewer than 10 measurements, and 3 for each constant, constants keep within two widths of their
priors, and the worst error may not grow. Standard errors are relative.)";

struct CalibrateArguments {
  std::vector<fs::path> files;
  std::string stack, device, where, hold_out, table;
  std::vector<std::string> rows_of, only, keep, start;
  bool all = false, list = false, json = false, force = false, quiet = false;
  int folds = calibrate::CalibrateOptions{}.folds;
  std::string folds_by = "plan";
  fs::path output, device_output;
};

/// Reads the options, and collects what is wrong with them.
class OptionReader {
 public:
  const Constant* constant(const std::string& option, const std::string& path) {
    const Constant* const found = calibrate::find_constant(path);
    if (found == nullptr) {
      std::vector<std::string_view> names;
      for (const Constant& one : calibrate::constants()) names.push_back(one.path);
      bad(option, "'" + path + "' is no fittable constant" + did_you_mean(path, names) +
                      "; 'shardscape calibrate --list' lists them");
    }
    return found;
  }

  std::vector<const Constant*> constants(const std::string& option, const std::vector<std::string>& paths) {
    std::vector<const Constant*> list;
    for (const std::string& path : paths) {
      if (const Constant* const found = constant(option, path)) list.push_back(found);
    }
    return list;
  }

  std::vector<std::pair<const Constant*, double>> starts(const std::vector<std::string>& texts) {
    std::vector<std::pair<const Constant*, double>> list;
    for (const std::string& text : texts) {
      const std::size_t sign = text.find('=');
      if (sign == std::string::npos) {
        bad("--start", "'" + text + "': write it as CONSTANT=VALUE, such as \"communication.call=14 us\"");
        continue;
      }
      const Constant* const found = constant("--start", text.substr(0, sign));
      if (found == nullptr) continue;
      const auto value = calibrate::parse_value(*found, text.substr(sign + 1));
      if (!value) {
        bad("--start", text + ": " + value.error());
      } else if (*value < found->low || *value > found->high) {
        bad("--start", text + ": outside its physical range, " + format_value(*found, found->low) + " to " +
                           format_value(*found, found->high));
      } else {
        list.emplace_back(found, *value);
      }
    }
    return list;
  }

  void bad(const std::string& option, const std::string& message) { problems_.add(option + ": " + message); }
  void bad(const results::OutputRefused& refused) { problems_.add(refused.what()); }
  void finish() const { problems_.finish(); }

 private:
  ProblemList problems_;
};

/// Where this is thrown, what the command was asked to stop for is known to who asked.
void stop_where_asked(const CommonOptions& common) {
  if (common.stop != nullptr && *common.stop) throw Failure("stopped: nothing was written", "");
}

void report_progress(const calibrate::CalibrateProgress& progress) {
  std::cerr << progress.what << ": iteration " << progress.fit.iteration << ", objective "
            << format_fixed(progress.fit.objective, 3) << ", " << progress.fit.evaluations
            << " evaluations\n";
}

fs::path device_output(const CalibrateArguments& arguments) {
  if (!arguments.device_output.empty()) return arguments.device_output;
  fs::path path = arguments.output;
  return path.replace_extension(".device" + arguments.output.extension().string());
}

/// Places of the fitted profile and, if a device is fitted, of the device.
using Outputs = std::vector<results::OutputPath>;

void check_outputs(const CalibrateArguments& arguments, OptionReader& reader, Outputs& checked) {
  std::vector<fs::path> outputs = {arguments.output};
  const bool both = !arguments.device.empty() && !arguments.stack.empty();
  if (both) outputs.push_back(device_output(arguments));
  if (outputs.size() == 2 && outputs[0] == outputs[1]) {
    reader.bad("--device-output", "the stack goes to the same file");
  }
  if (!both && !arguments.device_output.empty()) {
    reader.bad("--device-output", "has no effect without --device and --stack");
  }
  std::vector<fs::path> inputs = arguments.files;
  inputs.insert(inputs.end(), {arguments.stack, arguments.device});  // they count where they are files
  for (const fs::path& output : outputs) {
    try {
      checked.emplace_back(output, arguments.force, inputs);
    } catch (const results::OutputRefused& refused) {
      reader.bad(refused);
    }
  }
}

calibrate::CalibrateOptions read_options(const CalibrateArguments& arguments, const CommonOptions& common,
                                         Outputs& outputs) {
  OptionReader reader;
  if (arguments.files.empty()) reader.bad("MEASUREMENTS", "is required");
  if (arguments.stack.empty() && arguments.device.empty())
    reader.bad("--stack", "is required; or --device, to fit the device alone to kernels and collectives");
  if (arguments.output.empty()) {
    reader.bad("-o", "is required");
  } else {
    check_outputs(arguments, reader, outputs);
  }
  calibrate::CalibrateOptions options;
  options.device_alone = arguments.stack.empty();
  options.stack = options.device_alone ? validate::EvaluateOptions{}.collective_stack : arguments.stack;
  if (!arguments.device.empty()) options.device = arguments.device;
  options.rows.all = arguments.all;
  options.rows.where = arguments.where;
  options.rows.stacks = arguments.rows_of;
  if (arguments.rows_of.empty()) options.rows.stacks = {options.stack};
  if (arguments.all && !arguments.rows_of.empty()) reader.bad("--rows-of", "has no effect beside --all");
  options.only = reader.constants("--only", arguments.only);
  options.keep = reader.constants("--keep", arguments.keep);
  options.start = reader.starts(arguments.start);
  options.folds = arguments.folds;
  if (arguments.folds_by == "model") options.folds_by = calibrate::FoldsBy::model;
  options.reference = common.reference;
  if (!arguments.hold_out.empty()) {
    const auto hold_out = validate::parse_hold_out(arguments.hold_out);
    if (hold_out) {
      options.hold_out = *hold_out;
    } else {
      reader.bad("--hold-out", hold_out.error());
    }
  }
  options.progress = [&common, quiet = arguments.quiet](const calibrate::CalibrateProgress& progress) {
    stop_where_asked(common);
    if (!quiet) report_progress(progress);
  };
  reader.finish();
  return options;
}

std::vector<validate::Table> read_tables(const std::vector<fs::path>& files) {
  std::vector<validate::Table> tables;
  ProblemList problems;
  for (const fs::path& file : files) {
    const auto text = validate::read_table(file);
    if (text) {
      tables.push_back(validate::parse_csv(*text, file.string()));
    } else {
      problems.add(file.string() + ": " + text.error());
    }
  }
  problems.finish();
  return tables;
}

/// The start values that were given, and those at which every other constant that moved began, so that the fitted
/// profile can replace the one that the fit started from.
std::vector<std::string> recorded_starts(const CalibrateArguments& arguments,
                                         const calibrate::Calibration& calibration) {
  std::vector<std::string> starts = arguments.start;
  for (const calibrate::ConstantResult& result : calibration.constants) {
    const std::string name = fmt::format("{}=", result.constant->path);
    const bool given = std::ranges::any_of(arguments.start,
                                           [&](const std::string& start) { return start.starts_with(name); });
    if (given || result.after == result.before) continue;
    starts.push_back(name + calibrate::exact_value(*result.constant, result.prior));
  }
  return starts;
}

/// The command with file names only, which reproduces the file in a folder that has its inputs.
std::string reproducing_command(const CalibrateArguments& arguments,
                                const calibrate::Calibration& calibration) {
  const auto name = [](const fs::path& path) { return path.filename().string(); };
  std::vector<std::string> words = {"shardscape", "calibrate"};
  for (const fs::path& file : arguments.files) words.push_back(name(file));
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  add("--stack", name(arguments.stack));
  add("--device", name(arguments.device));
  for (const std::string& stack : arguments.rows_of) add("--rows-of", stack);
  if (arguments.all) words.emplace_back("--all");
  add("--where", arguments.where);
  for (const std::string& path : arguments.only) add("--only", path);
  for (const std::string& path : arguments.keep) add("--keep", path);
  for (const std::string& start : recorded_starts(arguments, calibration)) add("--start", start);
  add("--hold-out", arguments.hold_out);
  if (arguments.folds != calibrate::CalibrateOptions{}.folds) add("--folds", std::to_string(arguments.folds));
  if (arguments.folds_by != "plan") add("--folds-by", arguments.folds_by);
  add("-o", name(arguments.output));
  if (!arguments.device_output.empty()) add("--device-output", name(arguments.device_output));
  return shell_line(words);
}

std::string original_text(const yaml::Catalog& catalog, yaml::PresetKind kind, const std::string& name) {
  const auto file = catalog.find(kind, name, {});
  return file ? yaml::read_text(*file).value_or("") : "";
}

int run_calibrate(const CalibrateArguments& arguments, const CommonOptions& common) {
  if (!arguments.table.empty()) return print_template(arguments.table), kDone;
  if (arguments.list) {
    if (common.reference) throw BadInput("--reference: has no effect beside --list, which predicts nothing");
    print_constants(std::cout);
    return kDone;
  }
  Outputs outputs;
  const calibrate::CalibrateOptions options = read_options(arguments, common, outputs);
  const std::vector<validate::Table> tables = read_tables(arguments.files);
  validate::Presets presets(make_catalog(common));
  const auto calibration = calibrate::calibrate(tables, presets, options);
  if (!calibration) {
    std::vector<std::string> problems;
    for (const validate::TableProblem& problem : calibration.error()) problems.push_back(to_string(problem));
    throw BadInput(std::move(problems));
  }
  const std::vector<std::string> header =
      calibration_header(*calibration, reproducing_command(arguments, *calibration));
  const auto write = [&](yaml::PresetKind kind, const results::OutputPath& file, const std::string& name) {
    const std::string original = original_text(presets.catalog(), kind, name);
    results::write_output(file, calibrate::preset_text(*calibration, kind, original, header));
  };
  if (!options.device_alone) write(yaml::PresetKind::stack, outputs[0], arguments.stack);
  if (options.device) write(yaml::PresetKind::device, outputs.back(), *options.device);
  for (const validate::TableProblem& problem : calibration->left_out) {
    print_problems(std::cerr, std::vector{to_string(problem) + "; left out"});
  }
  if (arguments.json) {
    std::cout << json_text(calibration_json(*calibration), 2) << '\n';
  } else {
    print_calibration(std::cout, *calibration);
  }
  return kDone;
}

}  // namespace

void add_calibrate_command(const Program& program) {
  const auto [command, arguments] = program.add(
      "calibrate", "Fit a software stack's constants to measurements", kCalibrateExamples, run_calibrate);
  command->add_option("MEASUREMENTS", arguments->files, "Tables (CSV), see 'shardscape help tables'");
  add_template(*command, arguments->table);
  add_value(*command, "--stack", arguments->stack, "STACK", "The profile to start from: a preset or a path");
  add_value(
      *command, "--device", arguments->device, "DEVICE",
      "Fit this device's sustained shares and latencies, too; also the device of GEMM rows that name none");
  add_value(*command, "-o,--output", arguments->output, "OUT.yaml", "Where the fitted profile goes");
  add_value(*command, "--device-output", arguments->device_output, "OUT.yaml",
            "Where the fitted device goes; default: beside the profile, as OUT.device.yaml");
  add_force(*command, arguments->force);
  add_value(*command, "--rows-of", arguments->rows_of, "STACK",
            "Take the rows whose stack column says this; repeatable; default: that of --stack");
  command->add_flag("--all", arguments->all, "Take the rows of every stack");
  add_value(
      *command, "--where", arguments->where, "EXPRESSION",
      "Of these rows take those for which this holds, in terms of the table's columns, such as \"gpus == "
      "gpus_per_node and bytes >= 1e6\"");
  add_value(*command, "--only", arguments->only, "CONSTANT,...", "Fit these constants only; repeatable")
      ->delimiter(',');
  add_value(*command, "--keep", arguments->keep, "CONSTANT,...", "Leave these constants alone; repeatable")
      ->delimiter(',');
  add_value(*command, "--start", arguments->start, "CONSTANT=VALUE",
            "Start (and centre the prior) there instead of at the profile's own value; repeatable");
  add_value(*command, "--hold-out", arguments->hold_out, "N/M",
            "Keep this share of the rows out of the fit and report them apart");
  add_value(*command, "--folds", arguments->folds, "K", "Folds of the cross-validation; 0: none")
      ->capture_default_str()
      ->check(whole_number(0, 1000));
  add_value(*command, "--folds-by", arguments->folds_by, "plan|model",
            "What is never split: plans and shape groups, or whole models, each a fold of its own")
      ->capture_default_str()
      ->check(CLI::IsMember({"plan", "model"}));
  command->add_flag("--list", arguments->list, "List the constants that can be fitted, with their ranges");
  add_json(*command, arguments->json);
  command->add_flag("--quiet", arguments->quiet, "No progress on stderr");
}

}  // namespace shardscape::cli
