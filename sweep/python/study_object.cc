// A study that was read, and the simulation of its points.
#include <fmt/format.h>

#include <pybind11/numpy.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <tuple>

#include "engine/base/suggest.h"
#include "sweep/cli/commands/chosen_point.h"
#include "sweep/cli/commands/fault_parser.h"
#include "sweep/cli/reports/top_rows.h"
#include "sweep/python/native.h"
#include "sweep/runner/shared_networks.h"
#include "sweep/space/axis_names.h"
#include "sweep/space/expression.h"
#include "sweep/study/column_names.h"
#include "sweep/yaml/loader.h"

namespace shardscape::python {

/// A simulator, and the setting that it refers to.
struct Inputs::Bound {
  Bound(Setting of, SimulateOptions options)
      : setting(std::move(of)), simulator(setting, std::move(options)) {}
  Setting setting;  ///< its concurrency changes with the points
  Simulator simulator;
  std::mutex mutex;
};

Inputs::Inputs(cli::GivenStudy given, std::vector<std::filesystem::path> presets)
    : given_(std::move(given)), presets_(std::move(presets)) {
  cli::CommonOptions common;
  common.presets = presets_;
  common.given = &given_;
  given_.study = cli::load({}, common, true);
}

const sweep::SweepJob& Inputs::job() const {
  const std::lock_guard lock(job_mutex_);
  if (!job_) {
    auto study = std::make_unique<sweep::Study>(*given_.study);
    study->stored_columns.reset();
    study->stored_rows = {};
    study->faults.reset();
    all_columns_ = std::move(study);
    job_ = std::make_unique<const sweep::SweepJob>(*all_columns_);
  }
  return *job_;
}

Prediction Inputs::simulate(const sweep::ChosenPlan& point, ExecutionMode mode, const FaultSet& faults,
                            const StepWatch& watch) const {
  constexpr std::size_t kMostKept = 64;
  std::shared_ptr<Bound> bound;
  {
    const std::lock_guard lock(mutex_);
    const std::optional<LoadSpec>& load = point.workload.load;
    const Key key{point.at, mode, load ? load->request_rate : 0};
    if (bound_.size() >= kMostKept && !bound_.contains(key)) bound_.clear();
    std::shared_ptr<Bound>& kept = bound_[key];
    if (!kept) {
      Setting setting = study().setting(point.at);
      setting.workload = point.workload;
      kept =
          std::make_shared<Bound>(std::move(setting), SimulateOptions{.time_infeasible = true, .mode = mode});
    }
    bound = kept;
  }
  const std::lock_guard lock(bound->mutex);
  WorkloadSpec& workload = bound->setting.workload;
  workload.concurrency = point.workload.concurrency;
  if (mode != ExecutionMode::hierarchical || workload.load) bound->simulator.watch(watch);
  return bound->simulator.run(point.plan, faults);
}

namespace {

std::string_view utf8(py::handle text) {
  Py_ssize_t size = 0;
  const char* const bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
  if (bytes == nullptr) throw py::error_already_set();
  return {bytes, static_cast<std::size_t>(size)};
}

/// The words of a point: "tp=8,pp=4". None is as if it were not there.
std::string point_text(const py::dict& axes) {
  std::string text;
  for (const auto& [key, value] : axes) {
    if (value.is_none()) continue;
    if (!text.empty()) text += ',';
    text.append(utf8(key)).append(1, '=');
    const std::size_t word = text.size();
    if (PyBool_Check(value.ptr()))
      text += value.is(py::bool_(true)) ? '1' : '0';
    else if (PyUnicode_Check(value.ptr()))
      text += utf8(value);
    else
      text += utf8(py::str(value));
    if (text.find(',', word) != std::string::npos)
      throw cli::BadInput(fmt::format("simulate: {}: '{}' is not one value", utf8(key), text.substr(word)));
  }
  return text;
}

ExecutionMode mode_of(const std::optional<std::string>& text, const sweep::Study& study) {
  if (!text) return study.mode;
  const auto mode = cli::parse_choice<ExecutionMode>("simulate: mode", *text);
  if (mode == ExecutionMode::checked && study.phase() == Phase::inference)
    throw cli::BadInput("simulate: mode: checked is of training; servers are hierarchical or flattened");
  return mode;
}

/// Asks now and then whether Ctrl-C was hit, of a thread that does not hold the interpreter's lock.
class SignalWatch {
 public:
  [[nodiscard]] bool go_on() {
    const auto now = std::chrono::steady_clock::now();
    if (failure_ || now < next_) return !failure_;
    next_ = now + std::chrono::milliseconds(50);
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) failure_.emplace();
    return !failure_;
  }
  /// Throws what was found; with the interpreter's lock.
  void finish() {
    if (failure_) throw std::move(*failure_);
  }

 private:
  std::chrono::steady_clock::time_point next_ = std::chrono::steady_clock::now();
  std::optional<py::error_already_set> failure_;
};

Result simulate(const std::shared_ptr<Inputs>& inputs, const std::optional<std::string>& mode,
                const std::vector<std::string>& faults, const py::dict& axes) {
  const sweep::Study& study = inputs->study();
  std::string text = point_text(axes);
  sweep::ChosenPlan point = cli::choose_plan(study, text, "simulate");
  const ExecutionMode how = mode_of(mode, study);
  FaultSet sick;
  if (!faults.empty()) sick = cli::parse_faults(faults, study.setting(point.at).system.fabric);
  if (!sick.devices.empty() && study.phase() == Phase::inference)
    throw cli::BadInput("simulate: faults: a sick device is what training alone models");
  SignalWatch watch;
  Prediction prediction =
      unlocked([&] { return inputs->simulate(point, how, sick, [&](Seconds) { return watch.go_on(); }); });
  watch.finish();
  return {inputs, std::move(text), std::move(point), std::move(prediction)};
}

/// Columns of a frame: name, unit, names of the codes, and which end is better ("": neither).
using Columns = std::vector<std::tuple<std::string, std::string, std::vector<std::string>, std::string>>;

std::vector<results::ColumnInfo> infos(const Columns& columns) {
  std::vector<results::ColumnInfo> list;
  for (const auto& [name, unit, meanings, better] : columns) {
    results::ColumnInfo& column = list.emplace_back();
    column.name = name;
    column.unit = unit;
    column.meanings = meanings;
    column.better = parse_enum<results::Better>(better).value_or(results::Better::neither);
  }
  return list;
}

py::array_t<bool> rows_where(const std::string& text, const Columns& columns,
                             const std::vector<py::array_t<double>>& values) {
  std::vector<sweep::ExpressionName> names;
  std::vector<std::size_t> sources;
  const std::vector<results::ColumnInfo> list = infos(columns);
  for (std::size_t i = 0; i < std::min(list.size(), values.size()); ++i) {
    for (sweep::ExpressionName& name : cli::condition_names(list[i])) {
      names.push_back(std::move(name));
      sources.push_back(i);
    }
  }
  const auto condition = sweep::Expression::parse(text, names);
  if (!condition)
    throw cli::BadInput(fmt::format("where: position {} of \"{}\": {}", condition.error().offset + 1, text,
                                    condition.error().message));
  const py::ssize_t rows = values.empty() ? 0 : values.front().size();
  py::array_t<bool> holds(rows);
  std::vector<double> row(names.size());
  for (py::ssize_t i = 0; i < rows; ++i) {
    for (const std::size_t name : condition->references()) row[name] = values[sources[name]].at(i);
    holds.mutable_at(i) = condition->holds(row);
  }
  return holds;
}

/// The settings of the workload that have one value in the whole study, by the names of columns.
py::dict workload(const Inputs& inputs) {
  const sweep::Study& study = inputs.study();
  py::dict settings;
  const auto add = [&](const char* name, auto WorkloadSpec::*member) {
    const auto value = study.workloads.front().*member;
    for (const WorkloadSpec& other : study.workloads) {
      if (other.*member != value) return;
    }
    if constexpr (std::is_enum_v<decltype(value)>)
      settings[name] = std::string(name_of(value));
    else
      settings[name] = value;
  };
  add("precision", &WorkloadSpec::precision);
  const bool training = study.phase() == Phase::training;
  add(training ? "sequence_length" : "prompt_tokens",
      training ? &WorkloadSpec::sequence_length : &WorkloadSpec::prompt_tokens);
  add(training ? "global_batch" : "output_tokens",
      training ? &WorkloadSpec::global_batch : &WorkloadSpec::output_tokens);
  if (!training) add("concurrency", &WorkloadSpec::concurrency);
  return settings;
}

/// CPU seconds that the engine alone takes for these points, with a simulator that knows nothing yet.
double engine_seconds(const Inputs& inputs, const std::vector<std::string>& points) {
  std::vector<ParallelPlan> plans;
  for (const std::string& text : points)
    plans.push_back(cli::choose_plan(inputs.study(), text, "simulate").plan);
  const std::clock_t start = std::clock();
  const Setting setting = inputs.study().setting(0);
  Simulator simulator(setting, {.time_infeasible = true, .mode = inputs.study().mode});
  for (const ParallelPlan& plan : plans) simulator.run(plan);
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::shared_ptr<Inputs> make(cli::GivenStudy given, std::vector<std::filesystem::path> presets) {
  return unlocked([&] { return std::make_shared<Inputs>(std::move(given), std::move(presets)); });
}

std::vector<std::filesystem::path> paths(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

}  // namespace

void add_study(py::module_& module) {
  py::class_<Inputs, std::shared_ptr<Inputs>> inputs_class(module, "Inputs", "A study that was read.");
  never_empty(inputs_class);
  inputs_class
      // The axes are one argument: of names that are no UTF-8, pybind11 would end the interpreter.
      .def("simulate", &simulate, py::arg("mode"), py::arg("faults"), py::arg("axes"))
      .def_property_readonly("title", [](const Inputs& inputs) { return inputs.study().title; })
      .def_property_readonly(
          "phase", [](const Inputs& inputs) { return std::string(name_of(inputs.study().phase())); })
      .def_property_readonly("gpus", [](const Inputs& inputs) { return inputs.study().gpu_counts; })
      .def_property_readonly("model", [](const Inputs& inputs) { return inputs.study().model_name; })
      .def_property_readonly("cluster", [](const Inputs& inputs) { return inputs.study().cluster_name; })
      .def_property_readonly("stack", [](const Inputs& inputs) { return inputs.study().stack_name; })
      .def("workload", &workload)
      .def("engine_seconds", &engine_seconds, py::arg("points"))
      .def_property_readonly("objectives", [](const Inputs& inputs) { return inputs.study().objectives; })
      .def_property_readonly("assumptions", [](const Inputs& inputs) { return inputs.study().assumptions; })
      .def_property_readonly("warned_of", [](const Inputs& inputs) { return inputs.study().warned_of; })
      .def_property_readonly("resolved_yaml",
                             [](const Inputs& inputs) { return inputs.study().resolved_yaml; })
      .def_property_readonly("overrides", [](const Inputs& inputs) { return inputs.given().overrides; })
      .def("counts", [](const Inputs& inputs) {
        const sweep::DesignSpace& space = inputs.job().space();
        py::dict counts;
        counts["tuples"] = space.tuples();
        counts["plans"] = space.plans();
        counts["settings"] = space.settings();
        counts["points"] = space.size();
        return counts;
      });
  module.def(
      "read_study",
      [](const std::string& text, const std::string& file, const std::vector<std::string>& overrides,
         const std::vector<std::string>& presets) {
        return make({file, text, overrides}, paths(presets));
      },
      py::arg("text"), py::arg("file"), py::arg("overrides"), py::arg("presets"));
  module.def(
      "column_meant",
      [](const std::string& text, const Columns& columns) {
        for (const results::ColumnInfo& column : infos(columns)) {
          const std::vector<std::string> names = sweep::names_of_column(column);
          if (std::ranges::find(names, sweep::without_path(text)) != names.end()) return column.name;
        }
        return text;
      },
      py::arg("text"), py::arg("columns"), "The column that a name means; the text itself where it is none.");
  module.def(
      "rows_where", rows_where, py::arg("text"), py::arg("columns"), py::arg("values"),
      "Whether the condition of `top --where` holds, by row; `values`: an array of numbers for each column.");
  module.def("ready_studies", [] {
    const auto published = cli::published_folder();
    if (!published) throw std::runtime_error("the studies that belong to this package are gone");
    return (published->parent_path() / "studies").string();
  });
  module.def("read_text", [](const std::string& file) {
    const auto text = yaml::read_text(file);
    if (!text) throw cli::BadInput(file + ": " + text.error());
    return py::bytes(*text);
  });
}

}  // namespace shardscape::python
