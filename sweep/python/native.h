// The native module of the Python package: what its files share. It holds no rules of its own; what it does are the
// program's commands, and the engine that they stand on.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/simulate.h"
#include "sweep/cli/command.h"
#include "sweep/python/check_failed.h"
#include "sweep/runner/sweep_job.h"
#include "sweep/study/choose_point.h"

namespace shardscape::python {

namespace py = pybind11;

/// Forbids Python to make objects of a class that hold nothing, as its `__new__` would: their methods would read what is
/// not there.
inline void never_empty(py::object type) {
  type.attr("__new__") = py::cpp_function([](const py::args&, const py::kwargs&) -> py::object {
    throw py::type_error("objects of this class are made by the package alone");
  });
}

/// Calls `work` without the interpreter's lock.
template <class Work>
auto unlocked(const Work& work) {
  const py::gil_scoped_release release;
  return work();
}

/// A study as it was read, which nothing changes any more, and what evaluates its points. Any number of threads may use
/// one object.
class Inputs {
 public:
  /// Reads and checks a study; BadInput with all that is wrong.
  Inputs(cli::GivenStudy given, std::vector<std::filesystem::path> presets);

  [[nodiscard]] const cli::GivenStudy& given() const { return given_; }
  [[nodiscard]] const std::vector<std::filesystem::path>& presets() const { return presets_; }
  [[nodiscard]] const sweep::Study& study() const { return *given_.study; }
  /// All points, with every column that does not need fault samples. Made at the first call.
  [[nodiscard]] const sweep::SweepJob& job() const;

  /// One plan, simulated as `simulate` does. Simulators are kept, so that the next plan of the setting is cheap.
  /// `watch` is asked while an execution lasts. To be called without the interpreter's lock.
  Prediction simulate(const sweep::ChosenPlan& point, ExecutionMode mode, const FaultSet& faults,
                      const StepWatch& watch) const;

 private:
  struct Bound;
  using Key =
      std::tuple<std::size_t, ExecutionMode, double>;  ///< setting, mode, rate of requests (0: the study's)

  cli::GivenStudy given_;
  std::vector<std::filesystem::path> presets_;
  mutable std::mutex mutex_;
  mutable std::map<Key, std::shared_ptr<Bound>> bound_;
  mutable std::mutex job_mutex_;
  mutable std::unique_ptr<const sweep::Study> all_columns_;
  mutable std::unique_ptr<const sweep::SweepJob> job_;
};

/// One simulated point: its columns are read when they are asked for.
class Result {
 public:
  Result(std::shared_ptr<const Inputs> inputs, std::string text, sweep::ChosenPlan point,
         Prediction prediction);

  /// The value of a column; KeyError's message where there is none.
  [[nodiscard]] py::object get(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] py::dict units() const;
  [[nodiscard]] py::dict row() const;
  [[nodiscard]] std::string plan() const;                          ///< "tp=8,pp=4", as readers write it
  [[nodiscard]] const std::string& text() const { return text_; }  ///< as it was asked for
  [[nodiscard]] const std::shared_ptr<const Inputs>& inputs() const { return inputs_; }

 private:
  [[nodiscard]] const std::vector<double>& values() const;
  [[nodiscard]] py::object value(std::size_t column) const;

  std::shared_ptr<const Inputs> inputs_;
  std::string text_;
  sweep::ChosenPlan point_;
  Prediction prediction_;
  mutable std::vector<double> values_;  ///< of all columns; empty until one is asked for
};

/// Each adds its part to the module.
void add_study(py::module_& module);
void add_result(py::module_& module);
void add_command_run(py::module_& module);

}  // namespace shardscape::python
