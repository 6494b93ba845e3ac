// shardscape new: writes a first study, from options or from answers on a terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>

#include "engine/base/safe_text.h"
#include "engine/base/words.h"
#include "results_schema/disk/output_file.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/study/load_study.h"
#include "sweep/study/starter.h"
#include "sweep/yaml/huggingface.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/loader.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNewFooter =
    R"(Examples:
  shardscape new                                         asks, on a terminal
  shardscape new --model llama3.1-70b --cluster dgx-h100 --gpus 64 --phase training
  shardscape new --model llama3.1-8b --cluster dgx-h100 --gpus 64 --phase training --sequence-length 32768
  shardscape new --model llama3.1-70b --cluster dgx-h100 --gpus 8 --phase serving --precision fp8
  shardscape new --model Llama-3.1-8B/config.json --cluster dgx-h100 --gpus 8 --phase serving \
      --request-rate '4 /s' --promises 'ttft_p95: 2 s, tpot_p95: 40 ms' -o serve.yaml

The study has a comment on every key, and is ready for 'check', 'sweep' and 'search'; 'launch' then prints what runs
its best plan.)";

/// A study of more points than this is better searched than swept: a sweep takes minutes.
constexpr std::uint64_t kSweepable = 200'000;

struct NewArguments {
  std::string model, cluster, gpus, phase, stack;
  std::array<std::string, sweep::kStarterKeys.size()> keys;  ///< in that order
  fs::path output = "study.yaml";
  bool force = false;
};

/// Takes each value from its option or, on a terminal, from an answer.
class Answers {
 public:
  explicit Answers(yaml::Catalog catalog) : catalog_(std::move(catalog)) {}

  /// `check` says what is wrong with a value, or nothing. A value that is missing and can't be asked for is a problem,
  /// which says what is `due`. Of one that is `optional` an empty answer will do, and it is asked for only beside
  /// others.
  void take(std::string& value, const char* option, const std::string& due,
            const std::function<std::string(const std::string&)>& check, bool optional = false) {
    const bool ask =
        value.empty() && (asked_ || !optional) && isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
    std::string wrong = !value.empty() ? check(value) : optional && !ask ? "" : "is missing; " + due;
    while (ask && !wrong.empty() && problems_.empty()) {
      asked_ = true;
      std::cout << option + 2 << " (" << due << (optional ? "; or nothing" : "") << "): " << std::flush;
      if (!std::getline(std::cin, value)) break;
      value = std::string(trimmed(value));
      wrong = !value.empty() ? check(value) : optional ? "" : "is missing";
      if (!wrong.empty() && !value.empty()) std::cout << "  " << message_line(wrong) << '\n';
    }
    if (!wrong.empty()) problems_.add(fmt::format("{}: {}", option, wrong));
  }
  void finish() const { problems_.finish(); }
  [[nodiscard]] const yaml::Catalog& catalog() const { return catalog_; }

 private:
  yaml::Catalog catalog_;
  ProblemList problems_;
  bool asked_ = false;
};

/// The option of a key, with its dashes.
std::string option_of(const sweep::StarterKey& key) {
  std::string option = "--" + std::string(key.name);
  std::ranges::replace(option, '_', '-');
  return option;
}

/// A value as YAML: a list or a map may come without its brackets.
std::string yaml_value(const std::string& text, const sweep::StarterKey& key) {
  if (text.empty() || text.front() == '[' || text.front() == '{') return text;
  if (key.name == "promises") return '{' + text + '}';
  return text.find(',') == std::string::npos ? text : '[' + text + ']';
}

/// Loads a preset into `spec`; what is wrong, as lines of one message.
template <class Spec>
std::string load_into(std::optional<Spec>& spec, yaml::Loaded<Spec> loaded) {
  if (loaded) return spec = *std::move(loaded), "";
  std::string text;
  for (const yaml::Diagnostic& problem : loaded.error().list())
    text += (text.empty() ? "" : "; ") + yaml::to_string(problem);
  return text;
}

/// What a study in `folder` calls a preset: its name, or for a file of the user's the path from there.
std::string reference_from(const fs::path& folder, const std::string& name) {
  std::error_code error;
  if (!yaml::is_path(name) || !fs::exists(name, error)) return name;
  const fs::path path = fs::proximate(name, folder, error);
  const bool plain = path.string().find('/') == std::string::npos && path.extension() == "";
  return (plain ? "./" : "") + path.string();
}

/// What the machine does not multiply of what the study asks for; empty where it does all.
std::string unsupported_precision(const sweep::Study& study) {
  for (std::size_t i = 0; i < study.workloads.size(); ++i) {
    const Setting setting = study.setting(i);
    const DeviceSpec& device = setting.system.device;
    for (const Precision precision : setting.policy().multiplied())
      if (!device.supports(precision))
        return fmt::format("{} has no matrix units for {}", device.name, name_of(precision));
  }
  return "";
}

std::string gpus_problem(const std::string& text, const yaml::Cluster& cluster) {
  const auto gpus = to_number<std::int64_t>(text);
  if (!gpus || *gpus < 1 || *gpus > sweep::kMostGpus) return "'" + text + "' is no number of GPUs";
  Problems problems;
  (void)cluster.fabric.instantiate(*gpus, problems);
  return problems.empty() ? "" : problems.list().front().message;
}

/// Takes the value of a key into `starter`; what is wrong with it, as `study_of` the text says.
template <class StudyOf>
std::string key_problem(const sweep::StarterKey& key, const std::string& value, sweep::Starter& starter,
                        const StudyOf& study_of) {
  if (!applies(key.phases, starter.phase))
    return fmt::format("is no key of {} studies", sweep::user_word(starter.phase));
  if (std::ranges::any_of(value, [](char c) { return c == '\n' || c == '\r'; })) return "has several lines";
  const auto place = starter.given.insert_or_assign(std::string(key.name), yaml_value(value, key)).first;
  const auto study = study_of(sweep::starter_text(starter));
  const std::string wrong = !study                    ? study.error().list().front().message
                            : key.name == "precision" ? unsupported_precision(*study)
                                                      : "";
  if (!wrong.empty()) starter.given.erase(place);
  return wrong;
}

void print_next(const fs::path& file, const sweep::Study& study) {
  const std::uint64_t points = study.design_space().size();
  std::cout << fmt::format("{}: {} on {} x {}, {}, {}\n", printable(file.string()), study.model_name,
                           format_count(study.gpus), study.systems.front().device.name,
                           sweep::user_word(study.phase()), counted(points, "point"));
  const std::string name = shell_line({file.string()}), out = shell_line({file.stem().string() + ".h5"});
  const char* const run = points > kSweepable ? "search" : "sweep";
  const char* const per = study.phase() == Phase::training      ? ""
                          : study.workloads.front().open_loop() ? " --per request_rate"
                                                                : " --per concurrency";
  std::cout << "next\n  shardscape check " << name << "\n  shardscape " << run << ' ' << name << " -o " << out
            << "\n  shardscape top " << out << per << '\n';
  if (!study.limits.empty()) std::cout << "  shardscape capacity " << name << '\n';
}

int run_new(const NewArguments& arguments, const CommonOptions& common) {
  NewArguments given = arguments;
  Answers answers(make_catalog(common));
  std::optional<ModelSpec> model;
  std::optional<yaml::Cluster> cluster;
  std::optional<yaml::StackPreset> stack;
  answers.take(
      given.model, "--model", "a name of 'shardscape presets', or the path of a config.json or YAML",
      [&](const std::string& name) { return load_into(model, yaml::load_model(answers.catalog(), name)); });
  answers.take(given.cluster, "--cluster",
               "a name of 'shardscape presets', such as dgx-h100, or the path of a YAML",
               [&](const std::string& name) {
                 return load_into(cluster, yaml::load_cluster(answers.catalog(), name));
               });
  if (cluster && !cluster->fabric.open() && given.gpus.empty())
    given.gpus = std::to_string(cluster->fabric.fabric.size());
  answers.take(given.gpus, "--gpus", "how many GPUs",
               [&](const std::string& text) { return cluster ? gpus_problem(text, *cluster) : ""; });
  answers.take(given.phase, "--phase", "training or serving", [](const std::string& text) {
    return one_of({"training", "serving", "inference"})(text);
  });
  const Phase phase = given.phase == "training" ? Phase::training : Phase::inference;
  if (given.stack.empty()) given.stack = phase == Phase::training ? "megatron-core" : "vllm";
  answers.take(given.stack, "--stack", "", [&](const std::string& name) {
    return load_into(stack, yaml::load_stack(answers.catalog(), name));
  });
  answers.finish();
  const results::OutputPath output(given.output, given.force);
  const fs::path folder = fs::absolute(output.folder());
  sweep::Starter starter{*model,
                         *cluster,
                         to_number<std::int64_t>(given.gpus).value(),
                         phase,
                         reference_from(folder, given.model),
                         reference_from(folder, given.cluster),
                         reference_from(folder, given.stack)};
  if (given.model.ends_with(".json"))
    if (const auto text = yaml::read_text(given.model))
      starter.checkpoint = yaml::checkpoint_precision(*text);
  const auto study_of = [&](const std::string& text) {
    return sweep::parse_study(text, given.output.string(), folder, answers.catalog());
  };
  for (std::size_t i = 0; i < given.keys.size(); ++i) {
    const sweep::StarterKey& key = sweep::kStarterKeys[i];
    const bool rate = starter.given.contains("request_rate");
    const bool fits = key.phases != Phases::both && applies(key.phases, phase) &&
                      (rate ? key.name != "concurrency" : key.name != "promises");
    if (given.keys[i].empty() && !fits) continue;  // not asked for
    answers.take(
        given.keys[i], option_of(key).c_str(), key.meaning,
        [&](const std::string& value) { return key_problem(key, value, starter, study_of); }, true);
  }
  answers.finish();
  const std::string text = sweep::starter_text(starter);
  const auto study = study_of(text);
  if (!study) throw BadInput(study.error());
  results::write_output(output, text);
  print_next(given.output, *study);
  return kDone;
}

}  // namespace

void add_new_command(const Program& program) {
  const auto [command, arguments] =
      program.add("new", "Write a first study, with a comment on every key", kNewFooter, run_new);
  add_value(*command, "--model", arguments->model, "MODEL",
            "A preset, a Hugging Face config.json, or a YAML");
  add_value(*command, "--cluster", arguments->cluster, "CLUSTER", "A preset, or a YAML");
  add_value(*command, "--gpus", arguments->gpus, "N",
            "How many GPUs; not needed where the cluster has its size");
  add_value(*command, "--phase", arguments->phase, "training|serving", "What the GPUs are for");
  add_value(*command, "--stack", arguments->stack, "STACK",
            "The software; default: megatron-core, or vllm to serve");
  add_value(*command, "-o,--output", arguments->output, "STUDY.yaml",
            "Where the study goes; default: study.yaml");
  for (std::size_t i = 0; i < sweep::kStarterKeys.size(); ++i) {
    const sweep::StarterKey& key = sweep::kStarterKeys[i];
    add_value(*command, option_of(key).c_str(), arguments->keys[i], "VALUE",
              fmt::format("{}{}",
                          key.phases == Phases::both       ? ""
                          : key.phases == Phases::training ? "Training: "
                                                           : "Serving: ",
                          key.meaning));
  }
  add_force(*command, arguments->force);
}

}  // namespace shardscape::cli
