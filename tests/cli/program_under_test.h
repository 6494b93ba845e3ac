// Runs the real program in a folder of its own and looks at what it says and leaves behind.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/paths.h"

namespace shardscape::cli {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

struct Finished {
  int code = -1;    ///< exit code; -1 where a signal ended it
  int signal = 0;   ///< number of the signal that ended it, or 0
  std::string out;  ///< stdout
  std::string err;  ///< stderr
};

/// A started program; wait() exactly once.
class Running {
 public:
  Running(pid_t pid, fs::path out, fs::path err) : pid_(pid), out_(std::move(out)), err_(std::move(err)) {}
  void send(int signal) const { kill(pid_, signal); }
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// True once it has ended; wait() still has to be called.
  [[nodiscard]] bool ended() const {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == pid_;
  }
  Finished wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    Finished finished;
    if (WIFEXITED(status)) finished.code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) finished.signal = WTERMSIG(status);
    finished.out = read_file(out_);
    finished.err = read_file(err_);
    std::error_code ignored;
    fs::remove(out_, ignored);
    fs::remove(err_, ignored);
    return finished;
  }

 private:
  pid_t pid_;
  fs::path out_, err_;
};

class ProgramTest : public testing::Test {
 protected:
  ProgramTest() {
    std::string pattern = (fs::temp_directory_path() / "shardscape-cli-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    fs::create_directory(folder_ / "work");
  }
  ~ProgramTest() override {
    std::error_code error;
    fs::remove_all(folder_, error);
  }

  /// Starts the program in the work folder.
  Running start(const std::vector<std::string>& arguments) {
    std::vector<std::string> words = {test::program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return start_words(std::move(words));
  }
  /// Any program, by its path or as the shell finds it, with its arguments.
  Running start_words(std::vector<std::string> words) {
    const std::string number = std::to_string(started_++);  // several may run at once
    const fs::path out = folder_ / ("stdout-" + number), err = folder_ / ("stderr-" + number);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const std::string work_folder = work().string();
    const rlimit limit{file_limit_, RLIM_INFINITY};
    const pid_t pid = fork();
    if (pid == 0) {  // only async-signal-safe calls from here on
      const int out_file = open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      const int err_file = open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out_file, STDOUT_FILENO);
      dup2(err_file, STDERR_FILENO);
      if (chdir(work_folder.c_str()) != 0) _exit(125);
      if (file_limit_ != RLIM_INFINITY) setrlimit(RLIMIT_FSIZE, &limit);
      execvp(argv[0], argv.data());
      _exit(126);
    }
    return {pid, out, err};
  }
  Finished run(const std::vector<std::string>& arguments) { return start(arguments).wait(); }
  /// Of every program from now on: no file may grow beyond this, as on a full disk.
  void limit_files(rlim_t bytes) { file_limit_ = bytes; }

  [[nodiscard]] fs::path work() const { return folder_ / "work"; }
  /// A sweep of two CPU-seconds and more: on one thread there is time enough to signal it after its first segment.
  static std::vector<std::string> long_sweep(const std::string& output,
                                             const std::vector<std::string>& more = {}) {
    std::vector<std::string> words = {"sweep",      test::source_dir() + "/sweep/studies/million.yaml",
                                      "--limit",    std::to_string(kLongSweep),
                                      "-o",         output,
                                      "--progress", "none"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  static constexpr int kLongSweep = 600000;
  /// Number of segments that the unfinished sweep into this output has sealed.
  [[nodiscard]] int sealed_segments(const std::string& output) const {
    int count = 0;
    std::error_code error;
    for (fs::directory_iterator it(work() / (output + ".parts"), error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().filename().string();
      count += name.starts_with("blocks-") && name.ends_with(".h5") ? 1 : 0;
    }
    return count;
  }
  /// Returns once the sweep has sealed a segment or has ended.
  void await_segment(const Running& sweep, const std::string& output) const {
    while (sealed_segments(output) == 0 && !sweep.ended()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  /// Files and folders in the work folder, sorted.
  [[nodiscard]] std::vector<std::string> left_behind() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(work()))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(work() / name) << text;
    return work() / name;
  }

  /// A study of 8 GPUs with a few hundred points.
  static constexpr const char* kSmallStudy =
      "study: small\n"
      "model: llama3.1-8b\n"
      "cluster: dgx-a100\n"
      "gpus: 8\n"
      "stack: megatron-lm\n"
      "workload: {phase: training, sequence_length: 4096, global_batch: 32, precision: bf16}\n"
      "space:\n"
      "  tensor_parallel: powers_of_two\n"
      "  sequence_parallel: [true]\n"
      "  pipeline_parallel: powers_of_two\n"
      "  data_parallel: fill\n"
      "  zero_stage: [0, 1, 3]\n"
      "  recompute: [none, selective, full]\n"
      "  microbatch_size: [1, 2, 4]\n"
      "  schedule: [1f1b, interleaved]\n"
      "  virtual_stages: [2, 4]\n"
      "objectives: [step_time_s, memory_peak_bytes]\n";
  static constexpr const char* kInferenceStudy =
      "study: serving\n"
      "model: llama3.1-8b\n"
      "cluster: dgx-h100\n"
      "gpus: 8\n"
      "stack: nim\n"
      "workload: {phase: inference, prompt_tokens: 1000, output_tokens: 200, concurrency: [8, 32], "
      "precision: bf16}\n"
      "space:\n"
      "  tensor_parallel: powers_of_two\n"
      "  data_parallel: fill\n"
      "objectives: [e2e_s]\n";

 private:
  fs::path folder_;
  rlim_t file_limit_ = RLIM_INFINITY;
  int started_ = 0;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The sum of the numbers in an object.
inline double sum(const nlohmann::json& object) {
  double total = 0;
  for (const auto& [key, value] : object.items()) {
    if (value.is_number()) total += value.get<double>();
  }
  return total;
}

}  // namespace shardscape::cli
