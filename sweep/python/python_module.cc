// The native module: its parts, and the exceptions of Python that failures become.
#include <exception>
#include <filesystem>

#include "engine/base/check.h"
#include "engine/base/safe_text.h"
#include "results_schema/disk/output_file.h"
#include "sweep/cli/terminal/failure_text.h"
#include "sweep/python/native.h"

namespace shardscape::python {

namespace {

/// Raises shardscape.errors.NAME(message, problems).
void raise(const char* name, const std::vector<std::string>& problems) {
  std::vector<std::string> lines;
  std::string message;
  for (const std::string& problem : problems) {
    lines.push_back(message_line(problem));
    message += (message.empty() ? "" : "\n") + lines.back();
  }
  const py::object type = py::module_::import("shardscape.errors").attr(name);
  PyErr_SetObject(type.ptr(), type(message, lines).ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const cli::BadInput& bad) {
    std::vector<std::string> problems = bad.problems();
    if (bad.further() > 0) problems.emplace_back("and more like these");
    raise("InputError", problems);
  } catch (const results::OutputRefused& refused) {
    raise("InputError", {refused.what()});
  } catch (const CheckFailed& failed) {
    raise("InternalError", {failed.what});
  } catch (const cli::Failure& failure) {
    raise("RunError", {failure.what()});
  } catch (const std::filesystem::filesystem_error& failure) {
    raise("RunError", {failure.path1().string() + ": " + failure.code().message()});
  } catch (const py::builtin_exception&) {
    throw;  // pybind11 knows which of Python's it is
  } catch (const std::exception& failure) {
    raise("RunError", {cli::failure_text(failure)});
  }
}

}  // namespace

PYBIND11_MODULE(_shardscape, module) {
  module.doc() = "Shardscape's engine and commands; use the package shardscape, which stands on it.";
  module.attr("version") = std::string(cli::version());
  py::register_exception_translator(translate);
  add_study(module);
  add_result(module);
  add_command_run(module);
  module.def(
      "fail_check", [](int value) { SHARDSCAPE_CHECK(value < 0, value); }, py::arg("value"),
      "Fails as a check of the engine does, for tests.");
}

}  // namespace shardscape::python
