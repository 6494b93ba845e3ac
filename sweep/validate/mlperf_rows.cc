// Evaluates results of MLPerf Inference for language models: the rate of the best plan against the submitted one.
//
// Plans are not stated. All that split a model over 1, 2, 4, ... GPUs by tensor parallelism are tried, and requests are
// dealt evenly over replicas, of which one is simulated. Offline: requests per second of a server that never lacks
// them. Server and Interactive: the highest rate of Poisson arrivals at which 99 % of requests keep both promises,
// found by bisection below the former.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <tuple>

#include "engine/base/words.h"
#include "engine/simulate.h"
#include "sweep/evidence/evidence_table.h"
#include "sweep/validate/table_evaluators.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

namespace {

/// Data sets of the benchmark's models. Results print the mean output, not the prompts. Published means of prompts and
/// outputs: llama3.1-405b 9,400 and 680 (MLCommons 2025-04), llama3.1-8b 778 and 73 before outputs were fixed at 128
/// (CNN/DailyMail; MLCommons 2025-09), deepseek-r1 800 and 3,880 (MLCommons 2025-09); outputs alone (TOKENS_PER_SAMPLE
/// of the submission checker): llama2-70b 294.45, mixtral-8x7b 145.9, llama3.1-405b 684.68. Prompts of OpenOrca, of
/// mixtral-8x7b's three sets and of gptj are not published: taken as long as OpenOrca's outputs and, of gptj, as
/// CNN/DailyMail in a smaller vocabulary. Spreads are of OpenOrca's shape, so that rates are no better known than these.
struct Task {
  std::string_view begins;  ///< of the model's name in results
  const char* model;        ///< preset
  double prompt;            ///< mean tokens
  double output;            ///< mean tokens, where a result does not say
  double spread;            ///< coefficient of variation of both, taken from the shape of OpenOrca
  bool beams = false;       ///< answers are found by beam search
};
constexpr Task kTasks[] = {
    {"llama2-70b", "llama2-70b", 294, 294.45, 0.8},        {"llama3.1-70b", "llama3.1-70b", 294, 294.45, 0.8},
    {"mixtral-8x7b", "mixtral-8x7b", 294, 145.9, 0.8},     {"gptj", "gpt-j-6b", 870, 69, 0.4, true},
    {"llama3.1-405b", "llama3.1-405b", 9400, 684.68, 0.6}, {"llama3.1-8b", "llama3.1-8b", 778, 128, 0.4},
    {"deepseek-r1", "deepseek-v3", 800, 3880, 0.8},
};

enum class MlperfScenario : std::uint8_t { offline, server };

struct Result {
  std::string model_text, device, cluster, stack, software;
  const Task* task = nullptr;
  MlperfScenario scenario = MlperfScenario::offline;
  PolicyName precision = PolicyName::fp8;
  std::int64_t gpus = 1;
  double output = 1, ttft_limit = 0, tpot_limit = 0;
  std::optional<double> requests_per_s, tokens_per_s;
  std::optional<std::string> unpredicted;

  [[nodiscard]] auto key() const {
    return std::tuple(task, cluster, stack, scenario, precision, gpus, std::round(output / 10), ttft_limit,
                      tpot_limit);
  }
};

/// What runs on a device in results that print fp16 for quantised engines (v4.1).
PolicyName quantised(Architecture architecture) {
  return architecture == Architecture::blackwell ? PolicyName::fp4
         : architecture == Architecture::hopper  ? PolicyName::fp8
                                                 : PolicyName::fp16;
}

Result read_result(RowReader& reader, TableNames& names) {
  Result out;
  const auto text = [&](const char* column) { return reader.text(column).value_or(""); };
  const auto say = [&](const std::string& why) {
    if (!out.unpredicted) out.unpredicted = why;
  };
  out.model_text = lower_case(text("model"));
  std::ranges::replace(out.model_text, '_', '.');
  out.device = text("device");
  out.software = text("software");
  const auto task =
      std::ranges::find_if(kTasks, [&](const Task& one) { return out.model_text.starts_with(one.begins); });
  if (task == std::end(kTasks)) {
    say("no preset describes the model " + text("model"));
  } else {
    out.task = &*task;
    if (task->beams) say("beam search is not modelled");
  }
  const TableNames::Named cluster = names.cluster(out.device);
  if (cluster) {
    out.cluster = *cluster;
  } else {
    say("no preset describes the device " + out.device);
  }
  if (out.software.starts_with("TensorRT") || out.software.starts_with("CUDA")) {
    out.stack = "trtllm";
  } else if (out.software.starts_with("vLLM")) {
    out.stack = "vllm";
  } else {
    say("no preset describes the software " + out.software);
  }
  const std::string scenario = lower_case(text("scenario"));
  if (scenario == "singlestream") say("a single stream");
  constexpr std::string_view kScenarios[] = {"offline", "server", "interactive", "singlestream"};
  if (std::ranges::find(kScenarios, scenario) == std::end(kScenarios))
    reader.bad("scenario", "'" + text("scenario") + "' is not Offline, Server, Interactive or SingleStream");
  out.scenario = scenario == "offline" ? MlperfScenario::offline : MlperfScenario::server;
  out.gpus = reader.integer("gpus").value_or(0);
  if (out.gpus == 0) say("the row does not say how many GPUs there were");
  const std::string stated = lower_case(text("precision"));
  const auto precision = TableNames::policy(stated);
  if (!precision && !stated.empty() && stated != "unset")
    say("no policy is known for the precision " + stated);
  out.precision =
      !precision || *precision == PolicyName::fp16 ? quantised(names.architecture(out.device)) : *precision;
  out.output = reader.positive("mean_output_tokens").value_or(out.task != nullptr ? out.task->output : 1);
  out.ttft_limit = reader.positive("ttft_limit_s").value_or(0);
  out.tpot_limit = reader.positive("tpot_limit_s").value_or(0);
  if (out.scenario == MlperfScenario::server && (out.ttft_limit == 0 || out.tpot_limit == 0))
    say("the row does not say what was promised");
  out.requests_per_s = reader.positive("completed_requests_per_s");
  out.tokens_per_s = reader.positive("tokens_per_s");
  return out;
}

/// The rate of the best plan; 0 where none fits, or the reason why nothing is predicted.
class Rates {
 public:
  Rates(Presets& presets, const EvaluateOptions& options) : presets_(presets), options_(options) {}

  tl::expected<double, std::string> best(const Result& result) {
    const auto [found, fresh] = known_.try_emplace(result.key(), 0.0);
    if (fresh) found->second = find(result);
    return found->second;
  }

 private:
  tl::expected<double, std::string> find(const Result& result) {
    const auto model = presets_.model(result.task->model, options_.folder);
    const auto cluster = presets_.cluster(result.cluster, options_.folder);
    const auto stack = presets_.stack(result.stack, options_.folder);
    if (!model) return tl::unexpected(model.error());
    if (!cluster) return tl::unexpected(cluster.error());
    if (!stack) return tl::unexpected(stack.error());
    double best = 0;
    for (std::int64_t tensor = 1; tensor <= result.gpus && tensor <= 16; tensor *= 2) {
      if (result.gpus % tensor != 0) continue;
      Problems problems;
      FabricSpec fabric = (*cluster)->fabric.instantiate(tensor, problems);
      if (!problems.empty()) continue;
      const Setting setting{**model, {(*cluster)->device, std::move(fabric), **stack}, workload(result)};
      const double replicas = static_cast<double>(result.gpus / tensor);
      best = std::max(
          best, replicas * rate_of(setting, static_cast<std::int32_t>(tensor), result, best / replicas));
    }
    if (best == 0) return tl::unexpected(std::string("no plan fits, or none keeps the promises"));
    return best;
  }

  static WorkloadSpec workload(const Result& result) {
    WorkloadSpec workload;
    workload.phase = Phase::inference;
    workload.precision = result.precision;
    workload.prompt_tokens = std::llround(result.task->prompt);
    workload.output_tokens = std::llround(result.output);
    LoadSpec load;
    load.prompt = Lengths::lognormal(result.task->prompt, result.task->spread);
    load.output = Lengths::lognormal(result.output, result.task->spread);
    load.requests = {kCounted, false};
    load.warm_up = {kWarmUp, false};
    load.statistic = ClientStatistic::steady;
    workload.load = load;
    return workload;
  }

  /// Requests per second of one replica that keep the promises, or 0 where they are no more than `known`.
  double rate_of(Setting setting, std::int32_t tensor, const Result& result, double known) const {
    ParallelPlan plan;
    plan.tensor = tensor;
    const auto run = [&](double rate) {
      setting.workload.load->request_rate = rate;
      return Simulator(setting, {.reference = options_.reference}).run(plan);
    };
    constexpr double kEndless = 1e5;
    const Prediction full = run(kEndless);
    const double most = full.load.sustained_per_s;
    if (full.status != Status::ok || most <= known) return 0;
    if (result.scenario == MlperfScenario::offline) return most;
    double low = known, high = most;
    constexpr double kClose = 0.02;
    while (high - low > kClose * high) {
      const double rate = (low + high) / 2;
      const Prediction at = run(rate);
      const bool kept = at.load.ttft.p99.value() <= result.ttft_limit &&
                        at.load.tpot.p99.value() <= result.tpot_limit && at.load.sustained_per_s == 0;
      (kept ? low : high) = rate;
    }
    return low > known ? low : 0;
  }

  static constexpr std::int64_t kCounted = 1500, kWarmUp = 1000;
  Presets& presets_;
  const EvaluateOptions& options_;
  std::map<decltype(std::declval<Result>().key()), tl::expected<double, std::string>> known_;
};

Regime regime_of(const Result& result, Presets& presets, const std::filesystem::path& folder) {
  Regime regime;
  const auto cluster = presets.cluster(result.cluster, folder);
  regime.device = cluster ? (*cluster)->device.name : result.device;
  regime.precision = name_of(result.precision);
  regime.phase = name_of(Phase::inference);
  regime.model = result.task->model;
  if (const auto model = presets.model(regime.model, folder))
    regime.model_kind = evidence::model_kind(**model);
  regime.stack = result.stack;
  regime.software = result.software.substr(0, result.software.find(' '));
  regime.operation = result.scenario == MlperfScenario::offline ? "offline" : "server";
  regime.gpus = result.gpus;
  return regime;
}

void read_row(RowReader& reader, TableNames& names, Rates& rates, Presets& presets,
              const EvaluateOptions& options, Benchmark& row) {
  Result result = read_result(reader, names);
  if (reader.failed()) return;
  tl::expected<double, std::string> rate = 0.0;
  if (!result.unpredicted) rate = rates.best(result);
  if (!rate) result.unpredicted = rate.error();
  row.unpredicted = result.unpredicted;
  if (row.unpredicted) return;
  row.what = fmt::format("{}, {} GPUs, {}", result.task->model, result.gpus,
                         result.scenario == MlperfScenario::offline ? "offline" : "server");
  row.regime = regime_of(result, presets, options.folder);
  row.measured = {result.requests_per_s, result.tokens_per_s};
  row.predicted = {*rate, *rate * result.output};
}

}  // namespace

ReadBenchmark mlperf_rows(Presets& presets, const EvaluateOptions& options) {
  const auto names = std::make_shared<TableNames>(presets, options.device);
  const auto rates = std::make_shared<Rates>(presets, options);
  return [&, names, rates](RowReader& reader, Benchmark& row) {
    read_row(reader, *names, *rates, presets, options, row);
  };
}

}  // namespace shardscape::validate
