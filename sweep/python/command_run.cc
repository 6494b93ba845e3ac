// Runs the program's commands inside the interpreter. A command works in a thread of its own; the thread that called
// waits for it without the interpreter's lock, and looks now and then whether Ctrl-C was hit and what progress there is
// to tell.
#include <chrono>
#include <future>
#include <iostream>
#include <streambuf>
#include <thread>

#include "engine/base/words.h"
#include "engine/spec/time_class.h"
#include "sweep/cli/run_command.h"
#include "sweep/python/native.h"
#include "sweep/yaml/node.h"

namespace shardscape::python {

namespace {

/// Keeps what a command writes to a stream of the program, for another thread to read. While it exists the stream
/// writes here, so that there is one at a time.
class Tap : public std::streambuf {
 public:
  explicit Tap(std::ostream& stream) : stream_(stream), before_(stream.rdbuf(this)) { stream.clear(); }
  ~Tap() override { stream_.rdbuf(before_); }
  Tap(const Tap&) = delete;
  Tap& operator=(const Tap&) = delete;

  /// All that was written and not taken yet.
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(text_, {});
  }

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    xsputn(&one, 1);
    return c;
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    const std::lock_guard lock(mutex_);
    text_.append(text, static_cast<std::size_t>(size));
    return size;
  }

 private:
  std::ostream& stream_;
  std::streambuf* before_;
  std::mutex mutex_;
  std::string text_;
};

/// The one command that may run: its streams, and the stop that it hears, are those of the process.
std::timed_mutex one_command;
std::atomic<std::thread::id> who_runs;  ///< the thread that called

constexpr auto kMoment = std::chrono::milliseconds(50);

/// Waits, without the interpreter's lock, for its turn; throws where Ctrl-C is hit meanwhile.
std::unique_lock<std::timed_mutex> my_turn() {
  if (who_runs == std::this_thread::get_id())
    throw std::runtime_error("a command is running: it cannot be called again from within");
  std::unique_lock lock(one_command, std::defer_lock);
  while (!unlocked([&] { return lock.try_lock_for(kMoment); })) {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
  return lock;
}

/// Splits off the lines that tell progress, which are objects of JSON with an "event"; the rest stays in `text`.
std::vector<std::string> take_events(std::string& text) {
  std::vector<std::string> events;
  std::string rest;
  std::size_t at = 0;
  for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("{\"event\":"))
      events.push_back(line);
    else
      rest += line + '\n';
    at = end + 1;
  }
  text = rest + text.substr(at);
  return events;
}

/// Runs a command; returns its exit code, and what it wrote to stdout and stderr. `tell` gets each line of progress.
/// Where Ctrl-C is hit, or `tell` throws, the command is asked to stop, and the exception is passed on when it has.
py::tuple run(std::vector<std::string> words, const std::shared_ptr<const Inputs>& inputs,
              const std::vector<std::filesystem::path>& presets, const py::object& tell) {
  const auto lock = my_turn();
  std::atomic<bool> stop{false};
  cli::CommonOptions common;
  common.command_line = std::move(words);
  common.command_line.insert(common.command_line.begin(), "shardscape");
  common.presets = inputs ? inputs->presets() : presets;
  common.stop = &stop;
  if (inputs) common.given = &inputs->given();
  who_runs = std::this_thread::get_id();
  const auto done =
      std::unique_ptr<void, void (*)(void*)>(&common, [](void*) { who_runs = std::thread::id(); });
  std::optional<py::error_already_set> failure;
  std::string out, notes;
  int code = 0;
  std::exception_ptr thrown;
  {
    Tap results(std::cout), said(std::cerr);
    std::future<int> command =
        unlocked([&] { return std::async(std::launch::async, [&] { return cli::run_command(common); }); });
    const auto look = [&] {
      try {
        if (PyErr_CheckSignals() != 0) throw py::error_already_set();
        out += results.take();
        for (const std::string& line : take_events(out)) {
          if (!tell.is_none()) tell(line);
        }
      } catch (py::error_already_set& error) {
        stop = true;
        if (!failure) failure.emplace(std::move(error));
      }
    };
    while (unlocked([&] { return command.wait_for(kMoment); }) != std::future_status::ready) look();
    try {
      code = command.get();
    } catch (...) {
      thrown = std::current_exception();
    }
    look();
    notes = said.take();
  }
  who_runs = std::thread::id();
  if (failure) throw std::move(*failure);
  if (thrown) std::rethrow_exception(thrown);
  const auto text = [](const std::string& bytes) {
    return py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(bytes.data(), static_cast<Py_ssize_t>(bytes.size()), "surrogateescape"));
  };
  return py::make_tuple(code, text(out), text(notes));
}

/// A value of YAML as Python's: what is written without quotes is a number or a truth where it reads as one.
py::object value_of(const yaml::Node& node) {
  switch (node.kind) {
    case yaml::Node::Kind::null:
      return py::none();
    case yaml::Node::Kind::list: {
      py::list list;
      for (const yaml::Node& item : node.items) list.append(value_of(item));
      return list;
    }
    case yaml::Node::Kind::map: {
      py::dict map;
      for (const yaml::Entry& entry : node.entries) map[py::str(entry.key)] = value_of(entry.value);
      return map;
    }
    case yaml::Node::Kind::scalar:
      break;
  }
  if (!node.quoted) {
    if (node.text == "true" || node.text == "false") return py::bool_(node.text == "true");
    if (const auto whole = to_number<std::int64_t>(node.text)) return py::int_(*whole);
    if (const auto number = to_number<double>(node.text)) return py::float_(*number);
  }
  return py::str(node.text);
}

py::object parse_yaml(const std::string& text, const std::string& name) {
  yaml::Diagnostics diagnostics;
  const auto node = yaml::parse(text, name, diagnostics);
  if (!node) throw cli::BadInput(diagnostics);
  return value_of(*node);
}

py::list list_presets(const std::vector<std::filesystem::path>& presets) {
  cli::CommonOptions common;
  common.presets = presets;
  const yaml::Catalog catalog = cli::make_catalog(common);
  py::list list;
  for (const yaml::PresetKind kind : enum_values<yaml::PresetKind>()) {
    for (const yaml::Catalog::Entry& entry : catalog.list(kind))
      list.append(py::make_tuple(std::string(name_of(kind)), entry.name, entry.file.string()));
  }
  return list;
}

/// (column, label) of every class of time, in their order.
py::list breakdown_columns() {
  py::list list;
  for (const TimeClassRow& row : kTimeClasses) list.append(py::make_tuple(row.column, row.label));
  return list;
}

}  // namespace

void add_command_run(py::module_& module) {
  module.def("run", &run, py::arg("words"), py::arg("study") = py::none(),
             py::arg("presets") = std::vector<std::string>(), py::arg("tell") = py::none(),
             "Run a command of the program: (exit code, stdout, stderr).");
  module.def("parse_yaml", &parse_yaml, py::arg("text"), py::arg("name"), "A YAML text as values of Python.");
  module.def("breakdown_columns", &breakdown_columns, "(column, label) of every class of time.");
  module.def("list_presets", &list_presets, py::arg("presets"), "(kind, name, file) of every preset.");
}

}  // namespace shardscape::python
