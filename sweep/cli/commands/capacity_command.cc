// shardscape capacity: how many GPUs a load needs so that promises are kept.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "engine/base/safe_text.h"
#include "results_schema/disk/output_file.h"
#include "results_schema/report/page.h"
#include "sweep/capacity/find_capacity.h"
#include "sweep/cli/command.h"
#include "sweep/cli/ranks/rank_part.h"
#include "sweep/cli/reports/capacity_report.h"
#include "sweep/cli/reports/launch_report.h"
#include "sweep/cli/terminal/cpu_time.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/interrupt.h"
#include "sweep/cli/terminal/progress.h"
#include "sweep/cli/terminal/usage.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kCapacityFooter =
    R"(Examples:
  shardscape capacity sweep/studies/llama3.1-70b-rate-h100.yaml
  shardscape capacity study.yaml --rate 2,4,8,16                requests per second, over all replicas
  shardscape capacity study.yaml --rate 4 --set 'promises.ttft_p95=1 s' --json
  shardscape capacity study.yaml --rate 2,4,8 --report capacity.html
  shardscape capacity study.yaml --rate 64 --budget 30s         what is known after so much CPU time

The study has a rate of requests or a trace, and promises (or constraints on results). All numbers of GPUs are tried
from one on: those of the study's list `gpus: [...]`, or all that its cluster comes in up to `gpus: N`; on each of them
all plans of its space. A plan is simulated unless the engine's floors show that it cannot do, and the answer says what
was proved and what was simulated. Where nothing does, it says what every plan misses, and what would have to change.)";

struct CapacityArguments {
  StudyArguments study;
  std::string rates, budget, format = "table", progress = "auto";
  fs::path report;
  bool json = false, force = false;
  int threads = 0;  ///< 0: as many as the machine has
};

/// The study with the rates of the command line and all numbers of GPUs.
sweep::Study study_of(const CapacityArguments& arguments, const CommonOptions& common) {
  StudyArguments wanted = arguments.study;
  wanted.all_counts = true;
  if (!arguments.rates.empty()) {
    std::string list;
    for (const std::string& rate : split_names(arguments.rates)) {
      if (const auto parsed = sweep::parse_request_rate(rate); !parsed)
        throw BadInput(fmt::format("--rate: '{}' {}", rate, parsed.error()));
      list += (list.empty() ? "" : ", ") + rate;
    }
    for (const std::string& setting : wanted.overrides)
      if (setting.starts_with("workload.concurrency="))
        throw BadInput("--set " + setting +
                       ": --rate takes the place of a closed loop; leave one of them out");
    wanted.overrides.push_back("workload.request_rate=[" + list + "]");
  }
  wanted.rates_instead = !arguments.rates.empty();
  sweep::Study study = load(wanted, common);
  if (study.phase() != Phase::inference || !study.workloads.front().open_loop())
    throw BadInput(study.at("workload") +
                   "capacity is of requests that come at a rate: give request_rate or trace, or --rate");
  if (study.limits.empty())
    throw BadInput(study.at("promises") +
                   "missing: say what is to be kept, such as promises: {ttft_p95: 2 s, tpot_p95: 50 ms}");
  if (study.faults)
    throw BadInput(study.at("faults") +
                   "have no effect here: capacity is of healthy servers; leave them out");
  return study;
}

/// The command lines that launch the answers; empty ones where the study's hardware has axes beside the number of GPUs,
/// or where a rate can't be set in it.
std::vector<std::string> launch_lines(const CapacityArguments& arguments, const CommonOptions& common,
                                      const sweep::Study& study,
                                      std::span<const sweep::CapacityAnswer> answers) {
  std::vector<std::string> lines(answers.size());
  const std::size_t counts = std::max<std::size_t>(1, study.gpu_counts.size());
  if (study.setting_count() > counts * study.workloads.size()) return lines;
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const sweep::CapacityAnswer& answer = answers[i];
    if (!answer.best) continue;
    StudyArguments own = arguments.study;
    const auto set = [&](const std::string& change) { own.overrides.push_back(change); };
    if (counts > 1) set(fmt::format("gpus={}", answer.best->gpus));
    for (const auto& [key, value] : listed_settings(study, answer.workload))
      if (arguments.rates.empty() || key != "request_rate") set("workload." + key + "=" + value);
    if (!arguments.rates.empty()) {
      set(fmt::format("workload.request_rate={} /s", study.workloads[answer.workload].load->request_rate));
      try {
        load(own, common, true);
      } catch (const BadInput&) {  // a closed loop, or a trace, whose rate is its own
        continue;
      }
    }
    lines[i] = launch_line(study, study.setting(answer.best->point.setting), answer.best->point.plan,
                           words_of(own, common));
  }
  return lines;
}

int run_capacity(const CapacityArguments& arguments, const CommonOptions& common) {
  const bool json = arguments.json || arguments.format == "json";
  const auto mode = parse_choice<ProgressMode>("--progress", arguments.progress);
  const Budget budget = parse_budget(arguments.budget, false);
  const double began = cpu_seconds();
  const sweep::Study study = study_of(arguments, common);
  const sweep::SweepJob job(study);
  require_points(job);
  std::optional<results::OutputPath> page;
  if (!arguments.report.empty()) page.emplace(arguments.report, arguments.force, input_files(study));
  const InterruptGuard interrupt({"stopping; what is known so far follows", ""}, common.stop);

  ProgressLine line(mode);
  sweep::CapacityOptions options;
  options.threads = arguments.threads > 0 ? arguments.threads : default_threads(*ranks::alone());
  options.evaluator = sweep::simulator_factory({.reference = common.reference, .mode = study.mode});
  options.floors =
      sweep::simulator_factory({.reference = common.reference, .load_floors = true, .mode = study.mode});
  options.go_on = [&] {
    return !interrupt.stop().load(std::memory_order_relaxed) && cpu_seconds() - began < budget.cpu_seconds;
  };
  options.tell = [&](const sweep::CapacityProgress& progress) {
    const double rate = study.workloads[progress.workload].load->offered_per_s();
    line.update(
        [&] {
          return fmt::format("{} requests/s: {}, {} simulated", format_rate(rate),
                             counted(progress.gpus, "GPU"), counted(progress.simulated, "plan"));
        },
        [&] {
          return nlohmann::ordered_json{{"event", "progress"},
                                        {"request_rate", rate},
                                        {"gpus", progress.gpus},
                                        {"simulated", progress.simulated}};
        });
  };
  const auto answers = sweep::find_capacity(job, options);
  line.close();
  for (const std::string& warning : capacity_warnings(job, answers))
    std::cerr << "warning: " << warning << '\n';
  const std::vector<std::string> launches = launch_lines(arguments, common, study, answers);
  if (json) {
    std::cout << json_text(capacity_json(job, answers, launches, false), 2) << '\n';
  } else {
    print_capacity(std::cout, job, answers, launches);
  }
  if (page) {
    const std::string text =
        report::capacity_page(study.title, json_text(capacity_json(job, answers, launches, true)));
    results::write_output(*page, text);
    if (!json) std::cout << "\npage in " << arguments.report.string() << '\n';
  }
  return interrupt.stop() ? kInterrupted : kDone;
}

}  // namespace

void add_capacity_command(const Program& program) {
  const auto [command, arguments] =
      program.add("capacity", "The fewest GPUs, and their plan, that keep promises at a rate of requests",
                  kCapacityFooter, run_capacity);
  add_study_arguments(*command, arguments->study);
  add_value(*command, "--rate", arguments->rates, "R,R,...",
            "Requests per second (or '180 /min') instead of the study's, or of its concurrency");
  add_value(*command, "--format", arguments->format, "table|json", "How answers are printed; default: table")
      ->check(one_of({"table", "json"}));
  add_json(*command, arguments->json);
  add_value(*command, "--budget", arguments->budget, "TIME",
            "CPU time after which it stops and says what is known, such as 500ms, 10s or 5min");
  add_value(*command, "--report", arguments->report, "FILE.html",
            "Also write a page: GPUs against the rate, TTFT against throughput");
  add_force(*command, arguments->force);
  command->add_option("--threads", arguments->threads, "Threads (default: one per core)")
      ->check(whole_number(1, 4096));
  add_progress(*command, arguments->progress);
}

}  // namespace shardscape::cli
