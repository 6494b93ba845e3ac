// One table says of each reason its status and half a sentence; the other texts on verdicts are made of it, of the
// names of bounds, and of the shares of memory from which on it is called full or tight.
#include "sweep/cli/reports/verdicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/input/input_file.h"
#include "sweep/study/stack_policies.h"
#include "sweep/study/trace_file.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

struct Verdict {
  Reason reason;
  Status status;
  const char* meaning;
};

// clang-format off
constexpr Verdict kVerdicts[] = {
    {Reason::none, Status::ok, "nothing is wrong"},
    {Reason::heads_by_tensor, Status::indivisible, "the number of heads does not divide by tp"},
    {Reason::kv_heads_by_tensor, Status::indivisible, "neither do the KV heads divide by tp nor tp by the KV heads"},
    {Reason::ffn_by_tensor, Status::indivisible, "the width of the MLP does not divide by tp"},
    {Reason::sequence_by_context, Status::indivisible, "the sequence does not divide by 2 * cp, or by cp * tp with sequence parallelism"},
    {Reason::fewer_layers_than_stages, Status::indivisible, "there are fewer layers than pipeline stages"},
    {Reason::layers_by_pipeline, Status::indivisible, "the layers do not divide by pp * vpp, as the stack's partition asks"},
    {Reason::batch_by_data, Status::indivisible, "the global batch does not divide by dp * mbs"},
    {Reason::microbatches_by_stages, Status::indivisible, "the interleaved schedule needs a number of microbatches that divides by pp"},
    {Reason::requests_by_data, Status::indivisible, "the concurrency does not divide by dp"},
    {Reason::constraint, Status::constraint, "a constraint of the study rejects it"},
    {Reason::memory_capacity, Status::memory, "the fullest device needs more memory than it has"},
    {Reason::no_route, Status::unreachable, "some ranks cannot reach each other"},
    {Reason::precision, Status::unsupported, "the device has no unit for the compute type"},
    {Reason::schedule, Status::unsupported, "this schedule is not modelled for such a plan"},
    {Reason::out_of_range, Status::out_of_range, "a time, a rate or the memory is infinite, no number, or beyond all machines; or a step has more passes, or a load more iterations, than are followed one by one: lower global_batch, prompt_tokens, concurrency or client.requests"},
    {Reason::no_experts, Status::indivisible, "the model has no experts for ep, etp or ffn_gpus"},
    {Reason::experts_by_ranks, Status::indivisible, "the experts do not divide by ep or ffn_gpus"},
    {Reason::expert_width_by_ranks, Status::indivisible, "the width of an expert does not divide by etp"},
    {Reason::ranks_by_experts, Status::indivisible, "tp * cp * dp does not divide into groups of ep * etp ranks; in inference ep * etp is tp, innermost"},
    {Reason::repeated_tokens, Status::unsupported, "tokens go to experts of other ranks, and those of a tensor group hold the same: set sp"},
    {Reason::layout, Status::indivisible, "the stack's pipeline_layout is for other layers, or for another number of stages than pp * vpp"},
    {Reason::microbatches_by_directions, Status::indivisible, "dualpipe needs an even number of microbatches, at least 2 * pp"},
    {Reason::slots_by_ranks, Status::indivisible, "the experts with the copies of serving.redundant_experts (or prefill_redundant_experts) do not divide by ep or ffn_gpus, or are more than one of each for every rank"},
    {Reason::overloaded, Status::missed, "more requests come than the servers keep up with; sustained_requests_per_s would hold"},
    {Reason::split_pool, Status::unsupported, "experts on GPUs of their own (ffn_gpus) take two or more of them, pp 1 and cp 1 in the pool that decodes, and no drafts"},
    {Reason::no_steady_state, Status::out_of_range, "while the requests that count are done, more than a tenth more or fewer come (of servers that fall behind: a tenth more are done than they keep up with), or no time passes: raise client.requests and client.warm_up, to ten times what is in flight, or count a whole run with client.statistic: run"},
};
// clang-format on

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kVerdicts); ++i)
    if (kVerdicts[i].reason != static_cast<Reason>(i)) return false;
  return std::size(kVerdicts) == enum_names<Reason>().size();
}
static_assert(in_order());

/// Null where the name is that of a bound, or of another program's reason.
const Verdict* find(std::string_view reason) {
  const auto code = parse_enum<Reason>(reason);
  return code ? &kVerdicts[static_cast<std::size_t>(*code)] : nullptr;
}

}  // namespace

std::string reason_name(const std::vector<std::string>& names, std::size_t code) {
  return code < names.size() ? names[code] : "?";
}

std::string describe(std::string_view reason) {
  if (const Verdict* const verdict = find(reason)) return verdict->meaning;
  const auto limit = results::limit_of_name(reason);
  return limit ? "the study asks for " + limit_words(*limit) : "?";
}

Status status_of(std::string_view reason) {
  if (const Verdict* const verdict = find(reason)) return verdict->status;
  return results::limit_of_name(reason) ? Status::missed : Status::indivisible;
}

std::string limit_words(const results::Limit& limit) {
  std::string_view name = limit.column;
  const bool bytes = name.ends_with("_bytes"), seconds = name.ends_with("_s") && !name.ends_with("_per_s");
  if (bytes) name.remove_suffix(std::string_view("_bytes").size());
  if (seconds) name.remove_suffix(std::string_view("_s").size());
  return fmt::format("{} {} {}", name, name_of(limit.relation),
                     bytes     ? yaml::format_quantity(limit.bound, yaml::Dimension::data)
                     : seconds ? yaml::format_quantity(limit.bound, yaml::Dimension::time)
                               : yaml::format_number(limit.bound));
}

std::string tight_memory(double bytes, double capacity) {
  if (!(bytes > kTightMemory * capacity && bytes <= capacity)) return "";
  return fmt::format(
      "tight: {} of a GPU's memory is in use, and above {} an allocator's fragmentation may make it run out; "
      "measure it, or take a plan with more room",
      format_percent(bytes / capacity), format_percent(kTightMemory));
}

std::vector<std::string> memory_notes(const Setting& setting, const Prediction& prediction) {
  const double capacity = memory_of_fullest(setting.system, prediction.peak_in_prefill).value();
  const double bytes = prediction.memory_peak.value();
  std::vector<std::string> notes;
  if (std::string tight = tight_memory(bytes, capacity); !tight.empty()) notes.push_back(std::move(tight));
  if (!(bytes > kFullMemory * capacity)) return notes;
  const bool training = setting.workload.phase == Phase::training;
  const double part = (training ? prediction.memory.gradients : prediction.memory.kv_cache).value();
  if (part > 0 && training)
    notes.push_back(fmt::format(
        "gradients take {} of the memory in {}, as the stack keeps them (stack.state.gradient_bytes)",
        format_bytes(part), sweep::format_of_bytes(setting.system.stack.state.gradient_bytes)));
  if (part > 0 && !training)
    notes.push_back(fmt::format("the key-value cache takes {} of the memory in {}", format_bytes(part),
                                name_of(setting.policy().kv_cache)));
  if (!training && bytes > capacity && bytes - part <= capacity)
    notes.push_back(
        fmt::format("the cache, {} of what the rest leaves (stack.serving.kv_share), does not hold the "
                    "longest prompt and the longest answer, {} tokens together",
                    format_percent(setting.system.stack.serving.kv_share),
                    format_count(setting.workload.longest_prompt() + setting.workload.longest_output())));
  return notes;
}

std::string long_request(const std::filesystem::path& trace, const Setting& setting, const ParallelPlan& plan,
                         const Prediction& prediction) {
  const WorkloadSpec& load = setting.workload;
  if (prediction.reason != Reason::memory_capacity || !load.load || !load.load->trace) return "";
  const double cache = prediction.memory.kv_cache.value();
  const double room = memory_of_fullest(setting.system, prediction.peak_in_prefill).value() -
                      (prediction.memory_peak.value() - cache);
  if (!(cache > 0 && room > 0)) return "";
  const std::vector<TraceRequest>& requests = load.load->trace->requests;
  const auto tokens = [](const TraceRequest& of) { return std::int64_t{of.prompt} + of.output; };
  const auto longest = std::ranges::max_element(requests, {}, tokens);
  const auto text = input::read_file(trace, input::kMostTableBytes, "a table of requests");
  const auto number = static_cast<std::size_t>(longest - requests.begin());
  const std::string line =
      fmt::format("{} has {} tokens",
                  text ? fmt::format("line {} of {}", sweep::line_of_request(*text, number),
                                     printable(trace.filename().string()))
                       : fmt::format("request {} of the trace", number + 1),
                  format_count(tokens(*longest)));
  if (plan.disaggregated()) return line + ", and no request of the trace has more";
  // What is counted is the cache of whole mean requests that have as many tokens as the longest prompt and answer, in
  // each group of a pipeline.
  const auto block = static_cast<double>(setting.system.stack.serving.kv_block),
             groups = static_cast<double>(plan.pipeline);
  const double mean = block * std::ceil(static_cast<double>(load.prompt_tokens + load.output_tokens) / block);
  const std::int64_t most = load.longest_prompt() + load.longest_output();
  const double counted = mean * std::ceil(groups * static_cast<double>(most) / mean);
  const auto fits = static_cast<std::int64_t>(room / cache * counted / groups);
  const auto more =
      std::ranges::count_if(requests, [&](const TraceRequest& of) { return tokens(of) > fits; });
  if (more > 0)
    return fmt::format("{}, and the cache has room for {}{}", line, format_count(fits),
                       more == 1 ? "" : fmt::format("; {} lines have more than that", format_count(more)));
  return fmt::format(
      "the longest prompt and the longest answer of the trace have {} tokens together, and the cache has "
      "room for {}",
      format_count(most), format_count(fits));
}

VerdictCounts verdict_counts(std::span<const std::uint64_t> by_status,
                             std::span<const std::uint64_t> by_reason, std::uint64_t points,
                             std::vector<std::string> reason_names) {
  VerdictCounts counts;
  counts.reason_names = std::move(reason_names);
  counts.points = points;
  for (std::size_t code = 0; code < by_status.size(); ++code) {
    if (by_status[code] > 0) counts.statuses.push_back({static_cast<std::uint8_t>(code), by_status[code], 0});
  }
  for (std::size_t code = 1; code < by_reason.size(); ++code) {
    if (by_reason[code] > 0) counts.reasons.push_back({static_cast<std::uint8_t>(code), by_reason[code], 0});
  }
  return counts;
}

void print_verdicts(std::ostream& out, const VerdictCounts& counts) {
  TextTable table({left(""), "", ""});
  if (counts.examples) table.add_column("", TextTable::Align::left);
  table.add_column("", TextTable::Align::left);
  const auto add = [&](const std::string& name, const results::CodeCount& entry, const std::string& meaning) {
    const double share = static_cast<double>(entry.count) / static_cast<double>(counts.points);
    std::vector<std::string> cells = {name, format_count(entry.count), format_percent(share)};
    if (counts.examples) cells.push_back(fmt::format("from point {}", entry.example));
    cells.push_back(meaning);
    table.add_row(std::move(cells));
  };
  for (const results::CodeCount& status : counts.statuses) {
    add(std::string(name_of(static_cast<Status>(status.code))), status, "");
    for (const results::CodeCount& entry : counts.reasons) {
      const std::string reason = reason_name(counts.reason_names, entry.code);
      if (status_of(reason) == static_cast<Status>(status.code))
        add(fmt::format("  {}", reason), entry, describe(reason));
    }
  }
  table.print(out, 2);
}

std::string missed_text(std::span<const results::CodeCount> reasons, const std::vector<std::string>& names) {
  std::string text;
  for (const results::CodeCount& entry : reasons) {
    const std::string name = reason_name(names, entry.code);
    if (status_of(name) != Status::missed) continue;
    const auto limit = results::limit_of_name(name);
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", limit ? limit_words(*limit) : name,
                        counted(entry.count, "point"));
  }
  return text;
}

}  // namespace shardscape::cli
