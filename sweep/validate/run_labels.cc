// Labels runs by the other runs of their server: rows of one deployment and lengths in order of their clients;
// and reads and orders releases of software.
#include "sweep/validate/run_labels.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "sweep/validate/plan_row.h"

namespace shardscape::validate {

namespace {

constexpr double kFall = 0.85, kTwin = 1.5, kJump = 3;
/// The largest tensor group of one server.
constexpr std::int32_t kWidestServer = 16;

/// Series that contradict each other or physics, by software (with its version) and model, as one source has them:
/// TensorRT-LLM 1.0.0rc3 with Llama 3.1 8B, whose TTFT at 8 clients grows with the output and falls as output over
/// clients (.11, .17, .27 s for 128, 256, 512 tokens), though no server knows its outputs when it reads; and SGLang
/// 0.5.10.post1, whose tokens take three times as long on B300 as on B200 in the release before it and, in the table of
/// InferenceX with percentiles, on B300 in the release after it.
struct Series {
  const char *software, *model;
};
constexpr Series kUnexplained[] = {{"trtllm 1.0.0rc3", "llama3.1-8b"},
                                   {"sglang 0.5.10.post1", "deepseek-v3"}};

auto server_of(const PlanRow& row) {
  const ParallelPlan& plan = row.plan;
  return std::tuple(row.model, row.device, row.software.substr(0, row.software.find(' ')),
                    row.workload.precision, row.gpus, plan.tensor, plan.data, plan.expert,
                    plan.prefill.tensor, plan.prefill.data, row.recipe.draft_tokens,
                    row.workload.longest_prompt(), row.workload.longest_output());
}

/// Equal to four digits.
bool alike(double a, double b) { return std::abs(a - b) <= 5e-5 * std::max(a, b); }

/// Labels the runs of one server with equal lengths, in order of their clients.
void label_series(const std::vector<PlanRow*>& runs) {
  const auto mark = [](PlanRow& row, RunLabel label) {
    if (row.label == RunLabel::clean) row.label = label;
  };
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (std::size_t j = 0; j < runs.size(); ++j) {
      if (i == j || runs[i]->workload.concurrency != runs[j]->workload.concurrency) continue;
      const double own = *runs[i]->itl_s(), other = *runs[j]->itl_s();
      if (j < i && alike(own, other) && alike(*runs[i]->ttft_s(), *runs[j]->ttft_s()))
        mark(*runs[i], RunLabel::repeated);
      if (other > kTwin * own) mark(*runs[i], RunLabel::faster_twin);
    }
  }
  const PlanRow& first = *runs.front();
  const double request =
      *first.ttft_s() + *first.itl_s() * static_cast<double>(first.workload.output_tokens - 1);
  const bool pools = first.plan.disaggregated();
  const std::int64_t clients = first.workload.concurrency;
  const RequestCount requests = first.workload.load.value_or(LoadSpec()).requests;
  const double rounds = static_cast<double>(requests.of(clients)) / static_cast<double>(clients);
  const bool started = (pools ? clients <= 16 : clients <= 4) && rounds * *first.ttft_s() > request;
  bool jumped = false;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (started) mark(*runs[i], RunLabel::start_up);
    const auto next =
        std::find_if(runs.begin() + static_cast<std::ptrdiff_t>(i), runs.end(), [&](PlanRow* row) {
          return row->workload.concurrency > runs[i]->workload.concurrency && row->label == RunLabel::clean;
        });
    if (next == runs.end()) continue;
    const double times = *(*next)->ttft_s() / *runs[i]->ttft_s();
    if (times < kFall) mark(*runs[i], RunLabel::falling);
    const double more = static_cast<double>((*next)->workload.concurrency) /
                        static_cast<double>(runs[i]->workload.concurrency);
    jumped = jumped || times > kJump * more;
    for (auto run = next; jumped && run != runs.end(); ++run) mark(**run, RunLabel::jump);
  }
}

/// A server reads the prompts that a round of clients sends at once in no more than so many times as long as a lone
/// one. Where the slowest request of a short run took longer, what it waited for was no prompt.
bool waited_for_no_prompt(const PlanRow& row) {
  const std::optional<double> p50 = row.served[kTtftP50Column], p99 = row.served[kTtftP99Column];
  const auto clients = static_cast<double>(row.workload.concurrency);
  return p50 && p99 && clients > 1 && *p99 > clients * *p50;
}

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// The first word of a text; spaces before it are skipped.
std::string_view first_word(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_first_of(" ,;"));
}

/// The last word of a text; spaces behind it are skipped.
std::string_view last_word(std::string_view text) {
  const std::size_t end = text.find_last_not_of(' ');
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t space = text.find_last_of(" ,;");
  return space == std::string_view::npos ? text : text.substr(space + 1);
}

/// Numbers of a release; behind those of a final one stands more than any candidate has.
std::vector<int> numbers_of(std::string_view text) {
  constexpr std::size_t kParts = 3;  // major, minor, patch
  std::vector<int> numbers;
  bool candidate = false;
  while (!text.empty()) {
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc()) numbers.push_back(value);
    text.remove_prefix(error == std::errc() ? static_cast<std::size_t>(end - text.data()) : 1);
    if (!text.starts_with("rc")) continue;
    candidate = true;
    numbers.resize(kParts);
    text.remove_prefix(2);
  }
  if (candidate || numbers.empty()) return numbers;
  if (numbers.size() < kParts) numbers.resize(kParts);
  numbers.insert(numbers.begin() + kParts, std::numeric_limits<int>::max());
  return numbers;
}

}  // namespace

void label_runs(std::span<PlanRow> rows) {
  std::map<decltype(server_of(rows.front())), std::vector<PlanRow*>> servers;
  for (PlanRow& row : rows) {
    if (!row.unmodelled && !row.plan.disaggregated() && waited_for_no_prompt(row))
      row.label = RunLabel::start_up;
    if (row.unmodelled || row.software.empty() || !row.ttft_s() || !row.itl_s()) continue;
    const bool one = !row.plan.disaggregated();
    if (one && row.plan.tensor > kWidestServer) row.label = RunLabel::mislisted;
    for (const Series& series : kUnexplained) {
      if (row.label != RunLabel::two_recipes && row.software == series.software && row.model == series.model)
        row.label = RunLabel::unexplained;
    }
    servers[server_of(row)].push_back(&row);
  }
  for (auto& [server, runs] : servers) {
    std::ranges::stable_sort(runs, {}, [](const PlanRow* row) { return row->workload.concurrency; });
    label_series(runs);
  }
}

std::optional<double> release_number(std::string_view text) {
  constexpr std::size_t kMonth = 5, kPatch = 8;  // lengths of the forms YY.MM and YY.MM.PP
  constexpr int kMonths = 12;
  if (text.size() < kMonth || text.size() > kPatch) return std::nullopt;
  const bool patched = text.size() > kMonth;
  if (text[2] != '.' || (patched && (text[kMonth] != '.' || text.size() == kMonth + 1))) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 2 && i != kMonth && !is_digit(text[i])) return std::nullopt;
  }
  const auto number = [&](std::size_t begin, std::size_t count) {
    return std::stoi(std::string(text.substr(begin, count)));
  };
  const int month = number(3, 2);
  if (month < 1 || month > kMonths) return std::nullopt;
  const int patch = patched ? number(kMonth + 1, text.size() - kMonth - 1) : 0;
  return (10000 * number(0, 2) + 100 * month + patch) / 10000.0;
}

std::optional<double> stated_release(std::string_view software, std::string_view source) {
  const std::size_t space = software.find(' ');
  if (space != std::string_view::npos) {
    if (const auto version = release_number(first_word(software.substr(space)))) return version;
  }
  constexpr std::string_view kContainer = " NeMo Container", kRecipes = "dgxc-benchmarking v";
  if (const std::size_t at = source.find(kContainer); at != std::string_view::npos)
    return release_number(last_word(source.substr(0, at)));
  if (const std::size_t at = source.find(kRecipes); at != std::string_view::npos)
    return release_number(first_word(source.substr(at + kRecipes.size())));
  return std::nullopt;
}

ReleaseOrder::ReleaseOrder(std::string_view software) {
  if (const std::size_t space = software.find(' '); space != std::string_view::npos)
    numbers_ = numbers_of(first_word(software.substr(space)));
}

bool ReleaseOrder::before(std::string_view release) const {
  return stated() && numbers_ < numbers_of(release);
}

}  // namespace shardscape::validate
