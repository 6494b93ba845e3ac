// Prints one simulated point, as text (verdict, times, memory, stages, breakdown, placement, operators) and as JSON.
#include "sweep/cli/reports/simulate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "engine/base/safe_text.h"
#include "engine/model/block_kinds.h"
#include "engine/spec/plan_axes.h"
#include "engine/token_prices.h"
#include "results_schema/rows/columns.h"
#include "results_schema/rows/limits.h"
#include "sweep/cli/reports/load_mix_report.h"
#include "sweep/cli/reports/top_table.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/space/point_text.h"
#include "sweep/study/evidence_of.h"
#include "sweep/study/expert_load_parser.h"
#include "sweep/study/load_parser.h"

namespace shardscape::cli {

namespace {

using Align = TextTable::Align;

constexpr std::size_t kBarWidth = 24;

struct MemoryPart {
  const char* key;  ///< key in JSON
  const char* name;
  Bytes MemoryUse::*part;
};

constexpr std::array<MemoryPart, 8> kMemoryParts = {
    {{"weights_bytes", "weights", &MemoryUse::weights},
     {"gradients_bytes", "gradients", &MemoryUse::gradients},
     {"optimizer_bytes", "optimizer", &MemoryUse::optimizer},
     {"activations_bytes", "activations", &MemoryUse::activations},
     {"logits_bytes", "logits", &MemoryUse::logits},
     {"kv_cache_bytes", "kv cache", &MemoryUse::kv_cache},
     {"buffers_bytes", "buffers", &MemoryUse::buffers},
     {"reserve_bytes", "reserve", &MemoryUse::reserve}}};

bool memory_counted(const Prediction& p) { return p.has_times() || p.status == Status::unreachable; }
bool is_training(const SimulatedPoint& point) { return point.setting.workload.phase == Phase::training; }
Seconds whole_time(const SimulatedPoint& point) {
  return point.prediction.whole(point.setting.workload.phase);
}

/// What the point misses of what the study promises and asks for; bounds of results under faults are not those of one
/// point.
std::vector<results::LimitCheck::Miss> misses_of(const SimulatedPoint& point) {
  if (point.prediction.status != Status::ok) return {};
  const results::LimitCheck check(results::ColumnTable(point.study.phase(), {}, point.study.extras()),
                                  point.study.limits);
  auto missed = check.misses({0, point.plan, point.setting.workload, {}, point.prediction});
  std::erase_if(missed, [](const results::LimitCheck::Miss& miss) { return std::isinf(miss.by); });
  std::ranges::stable_sort(missed, std::greater(), &results::LimitCheck::Miss::by);
  return missed;
}
std::string miss_name(const SimulatedPoint& point, const results::LimitCheck::Miss& miss) {
  if (miss.reason < results::kFirstLimitReason) return std::string(name_of(static_cast<Reason>(miss.reason)));
  return results::limit_name(point.study.limits[miss.reason - results::kFirstLimitReason]);
}

Json number(double value, bool known) { return known && std::isfinite(value) ? Json(value) : Json(nullptr); }

Json memory_json(const MemoryUse& use, bool known) {
  Json json = Json::object();
  for (const MemoryPart& part : kMemoryParts) json[part.key] = number((use.*part.part).value(), known);
  return json;
}

Json plan_json(const ParallelPlan& plan, Phase phase) {
  Json json = Json::object();
  const auto add = [&](const PlanAxisRow& row) {
    const std::int32_t code = row.get(plan);
    const bool named = row.kind == AxisKind::choice || row.kind == AxisKind::order;
    json[std::string(row.name)] = named ? Json(code_text(row, code)) : Json(code);
  };
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind == AxisKind::degree) add(row);
  }
  for (const PlanAxisRow& row : kPlanRows) {
    const bool known = is_of_prefill(row) ? plan.disaggregated() : applies(row.phases, phase);
    if (row.kind != AxisKind::degree && known) add(row);
  }
  return json;
}

void add_times(const SimulatedPoint& point, Json& json) {
  const Prediction& p = point.prediction;
  const bool known = p.has_times();
  if (is_training(point)) {
    json["step_time_s"] = number(p.step_time.value(), known);
  } else {
    const auto add = [&](const std::string& name, Seconds mean, const InferenceLatency& spread, bool is) {
      json[name + "_s"] = number(mean.value(), is);
      json[name + "_p50_s"] = number(spread.p50.value(), is);
      json[name + "_p95_s"] = number(spread.p95.value(), is);
    };
    add("ttft", p.ttft, p.ttft_spread, known);
    add("itl", p.itl, p.itl_spread, known && results::has_second_token(point.setting.workload));
    add("e2e", p.e2e, p.e2e_spread, known);
    json["decode_batch"] = number(p.decode_batch, known);
    if (const auto& load = point.setting.workload.load) {
      if (const auto sent = sweep::sent_rate(*load)) {
        json["request_rate_per_s"] = load->request_rate;
        json["sent_requests_per_s"] = *sent;
      }
      results::PointRecord record{0, point.plan, point.setting.workload, {}, p};
      record.promises_kept =
          known && std::ranges::none_of(misses_of(point), &results::LimitCheck::Miss::promise);
      for (const auto& [name, value] : results::load_outputs(record)) {
        const bool truth = name == "overloaded" || name == "promises_kept";
        json[std::string(name)] = truth ? Json(value > 0) : number(value, known);
      }
    }
    if (point.plan.disaggregated()) {
      json["kv_transfer_s"] = number(p.kv_transfer.value(), known);
      json["kv_transfer_bytes"] = number(p.kv_bytes.value(), known);
    }
  }
  json["tokens_per_s_per_gpu"] = number(p.tokens_per_s_per_gpu, known);
  json["energy_per_token_j"] = number(p.joules_per_token, known);
  json["cost_per_million_tokens"] = number(p.cost_per_million_tokens, known);
  if (!is_training(point)) return;
  json["mfu"] = number(p.mfu, known);
  json["mfu_causal"] =
      number(p.mfu * model::causal_share(point.setting.model, point.setting.workload.sequence_length), known);
  json["contention_s"] = number(p.contention.value(), known);
  json["contended_share"] = number(p.contended_share, known);
  json["outside_domain"] = known && p.outside_domain();
}

// ---- for people ----

/// A rate, which may be any number of requests in a year or in a millisecond.
std::string requests_text(double per_second) { return fmt::format("{:.4g} requests/s", per_second); }

std::string load_text(const WorkloadSpec& workload) {
  if (!workload.load) return "concurrency " + format_count(workload.concurrency);
  const LoadSpec& load = *workload.load;
  const std::string source =
      load.trace    ? "by a trace of " + counted(load.trace->requests.size(), "request")
      : load.open() ? fmt::format("{} ({})", requests_text(load.request_rate), name_of(load.arrivals))
                    : "concurrency " + format_count(workload.concurrency);
  const std::string sessions =
      load.sessions ? fmt::format(", sessions of {:.3g} turns", load.sessions->means().turns) : "";
  return fmt::format("{}{}, {} simulated ({})", source, sessions,
                     counted(load.requests.of(workload.concurrency), "request"), name_of(load.statistic));
}

/// Latencies, queue and cache of a load that is simulated request by request.
void print_load(std::ostream& out, const Prediction& p, const WorkloadSpec& workload) {
  const LoadSpec& load = *workload.load;
  const LoadPrediction& l = p.load;
  out << "\nload      " << requests_text(l.requests_per_s) << ", " << format_seconds(l.queue.value())
      << " in the queue; cache in use " << format_percent(l.kv_mean) << ", at most "
      << format_percent(l.kv_peak) << "; " << format_fixed(l.preemptions, 3) << " preemptions per request\n";
  if (l.sustained_per_s > 0) {
    out << "          overloaded: " << requests_text(l.sustained_per_s)
        << " would hold; latencies grow with the number of requests"
        << (l.done < 1 ? fmt::format(", of which {} are done and measured", format_percent(l.done)) : "")
        << '\n';
  }
  if (const auto sent = sweep::sent_rate(load)) {
    const double more = *sent / load.request_rate - 1;
    out << "          sent at " << requests_text(*sent) << ", "
        << fmt::format("{} {}", format_percent(std::abs(more)), more < 0 ? "below" : "above")
        << " the rate asked for, as the arrivals of "
        << counted(static_cast<std::uint64_t>(load.requests.number), "request") << " are drawn at random\n";
  }
  if (load.promised != LatencyBounds()) {
    out << "          " << format_percent(l.attainment)
        << " of the requests keep what is promised, each by its own latencies\n";
  }
  TextTable table({left("latency"), "mean", "p50", "p90", "p95", "p99"});
  const auto add = [&](const char* name, Seconds mean, const InferenceLatency& spread,
                       const LoadPrediction::Tail& tail) {
    std::vector<std::string> cells = {name};
    for (const Seconds value : {mean, spread.p50, tail.p90, spread.p95, tail.p99})
      cells.push_back(format_seconds(value.value()));
    table.add_row(std::move(cells));
  };
  add("first token", p.ttft, p.ttft_spread, l.ttft);
  if (results::has_second_token(workload)) {
    add("between tokens", p.itl, p.itl_spread, l.itl);
    add("per token of a request", l.tpot_mean, l.tpot_spread, l.tpot);
  }
  add("whole request", p.e2e, p.e2e_spread, l.e2e);
  table.print(out, 2);
}

/// What is to be known of the memory of the plan, a line each.
std::vector<std::string> notes_of(const SimulatedPoint& point) {
  if (!memory_counted(point.prediction)) return {};
  std::vector<std::string> notes = memory_notes(point.setting, point.prediction);
  if (point.study.tables.empty()) return notes;
  std::string line = long_request(point.study.tables.front(), point.setting, point.plan, point.prediction);
  if (!line.empty()) notes.insert(notes.begin(), std::move(line));
  return notes;
}

/// Of the fullest device.
double capacity(const SimulatedPoint& point) {
  return memory_of_fullest(point.setting.system, point.prediction.peak_in_prefill).value();
}

void print_heading(std::ostream& out, const SimulatedPoint& point) {
  const sweep::Study& study = point.study;
  TextTable table = TextTable::pairs();
  table.add_row({"study", fmt::format("{}: {} on {} ({} x {}), {}", study.title, study.model_name,
                                      study.cluster_name, format_count(point.setting.system.fabric.size()),
                                      point.setting.system.device.name, study.stack_name)});
  const WorkloadSpec& load = point.setting.workload;
  table.add_row(
      {"workload", is_training(point)
                       ? fmt::format("training, sequence length {}, global batch {}, {}",
                                     format_count(load.sequence_length), format_count(load.global_batch),
                                     name_of(load.precision))
                       : fmt::format("inference, {} prompt and {} output tokens, {}, {}",
                                     format_count(load.prompt_tokens), format_count(load.output_tokens),
                                     load_text(load), name_of(load.precision))});
  if (!load.expert_load.balanced())
    table.add_row({"experts", "get tokens by " + sweep::to_text(load.expert_load)});
  table.add_row({"plan", sweep::to_point_text(point.plan, load.phase)});
  if (point.plan.disaggregated()) {
    const std::int64_t prefill = point.plan.prefill.gpus(), all = point.plan.gpus();
    table.add_row(
        {"pools", format_count(prefill) + " GPUs prefill, " + format_count(all - prefill) + " decode" +
                      (point.plan.ffn > 0 ? ": " + format_count(all - prefill - point.plan.ffn) +
                                                " attention, " + format_count(point.plan.ffn) + " experts"
                                          : "")});
    if (pools_differ(point.setting)) {
      const auto words = [](const Setting& of) {
        return fmt::format("{} in {}", of.system.device.name, name_of(of.workload.precision));
      };
      table.add_row({"unequal", fmt::format("{} prefill, {} decode", words(prefill_setting(point.setting)),
                                            words(point.setting))});
    }
  }
  table.print(out);
}

void print_verdict(std::ostream& out, const SimulatedPoint& point) {
  const Prediction& p = point.prediction;
  const auto missed = misses_of(point);
  out << "\nverdict   " << name_of(missed.empty() ? p.status : Status::missed);
  if (p.reason != Reason::none) out << " (" << name_of(p.reason) << "): " << describe(name_of(p.reason));
  out << '\n';
  for (const results::LimitCheck::Miss& miss : missed) {
    std::string words = describe(miss_name(point, miss));
    constexpr std::string_view kRate = "sustained_requests_per_s";
    if (const std::size_t at = words.find(kRate); miss.reason == static_cast<std::size_t>(Reason::overloaded))
      words.replace(at, kRate.size(), requests_text(p.load.sustained_per_s));
    out << "          " << words << ", missed by " << format_percent(miss.by) << '\n';
  }
  if (!point.details.cut.empty()) out << "          " << point.details.cut << '\n';
  if (memory_counted(p)) {
    out << "memory    " << format_bytes(p.memory_peak.value()) << " of " << format_bytes(capacity(point))
        << " (" << format_percent(p.memory_peak.value() / capacity(point))
        << ") on the fullest device, stage " << p.peak_stage;
    if (point.plan.disaggregated())
      out << (p.peak_in_prefill ? " of the prefill pool" : " of the decode pool");
    const std::vector<MemoryUse>& experts = point.details.expert_memory;
    if (!experts.empty() && experts.front().total() == p.memory_peak) out << ", with experts";
    out << '\n';
    for (const std::string& note : notes_of(point)) out << "          " << note << '\n';
  }
  if (!p.has_times()) return;
  if (is_training(point)) {
    out << "step      " << format_seconds(p.step_time.value()) << ", "
        << counted(static_cast<std::uint64_t>(p.microbatches), "microbatch", "es");
  } else {
    out << "request   " << format_seconds(p.e2e.value()) << ": first token "
        << format_seconds(p.ttft.value());
    if (results::has_second_token(point.setting.workload))
      out << ", then one every " << format_seconds(p.itl.value());
  }
  if (p.status == Status::memory) out << " (as if it fitted)";
  if (point.plan.disaggregated()) {
    out << "\ntransfer  " << format_seconds(p.kv_transfer.value()) << " for "
        << format_bytes(p.kv_bytes.value()) << " of key-value cache, from pool to pool";
  }
  out << "\nspeed     " << format_fixed(p.tokens_per_s_per_gpu, p.tokens_per_s_per_gpu < 10 ? 3 : 1)
      << " tokens/s per GPU";
  if (is_training(point)) {
    out << ", MFU " << format_percent(p.mfu);
    const double share = model::causal_share(point.setting.model, point.setting.workload.sequence_length);
    if (share < kMostlyCausal)
      out << " with attention in full, " << format_percent(share * p.mfu)
          << " with the half that a causal mask leaves";
  }
  out << '\n';
  if (const double price = price_per_hour(point.setting.system, point.plan); price > 0)
    out << "cost      " << format_value(p.cost_per_million_tokens, "1") << " per million tokens, at "
        << format_value(price, "1") << " per GPU and hour\n";
  if (p.outside_domain()) {
    out << "domain    outside: contention may move the step by " << format_percent(p.contended_share)
        << "; --compare executes it, --mode checked all such steps\n";
  }
  out << "error     " << expected_error_text(point.remarks, point.setting.workload.phase) << '\n';
  for (const std::string& assumed : point.study.assumptions)
    out << "assumed   " << printable(assumed) << '\n';
  if (point.setting.workload.load) print_load(out, p, point.setting.workload);
}

Rows neighbours(const SimulatedPoint& point) {
  const bool training = is_training(point);
  const Phase phase = point.setting.workload.phase;
  Rows rows({{left("change"), "changes"},
             Rows::hidden("plan"),
             {"memory", "memory_peak_bytes"},
             {training ? "step" : "request", training ? "step_time_s" : "e2e_s"}});
  for (const Neighbour& near : point.remarks.nearest_feasible) {
    const Prediction& p = near.prediction;
    rows.add({cell::words(sweep::changes_text(near.plan, point.plan, phase)),
              {"", plan_json(near.plan, phase)},
              cell::bytes(p.memory_peak.value()),
              cell::seconds(p.whole(phase).value())});
  }
  return rows;
}

void print_neighbours(std::ostream& out, const SimulatedPoint& point) {
  if (point.prediction.status == Status::ok) return;
  if (point.remarks.nearest_feasible.empty()) {
    out << "\nno plan within three changes of this one fits\n";
    return;
  }
  out << "\nnearest plans that fit\n";
  neighbours(point).print(out, 2);
}

/// Parts of a whole: for people with their shares.
class Parts {
 public:
  explicit Parts(double whole) : whole_(whole) {}
  void add(const char* name, const std::string& text, double value) {
    table_.add_row({name, text, format_percent(value / whole_), bar(value / whole_, kBarWidth)});
  }
  void print(std::ostream& out) const { table_.print(out, 2); }

 private:
  double whole_;
  TextTable table_ = {left(""), "", "", left("")};
};

void print_memory(std::ostream& out, const SimulatedPoint& point) {
  out << "\nmemory of the fullest device, against its capacity\n";
  Parts parts(capacity(point));
  const auto add = [&](const char* name, double value) { parts.add(name, format_bytes(value), value); };
  for (const MemoryPart& part : kMemoryParts) {
    const double value = (point.prediction.memory.*part.part).value();
    if (value > 0) add(part.name, value);
  }
  add("total", point.prediction.memory_peak.value());
  parts.print(out);
}

/// Prints memory and, where known, layers and times of each stage.
void print_stages(std::ostream& out, const SimulatedPoint& point, const std::string& title,
                  const std::vector<MemoryUse>& memory, const std::vector<std::int32_t>& stage_layers) {
  const Details& details = point.details;
  const std::size_t stages = memory.size();
  const bool layers = stage_layers.size() == stages;
  const bool times = details.stage_forward.size() == stages && details.stage_backward.size() == stages;
  out << '\n' << title << '\n';
  TextTable table({"stage"});
  if (layers) table.add_column("layers");
  if (times) table.add_column("forward"), table.add_column("backward");
  table.add_column("memory");
  table.add_column("of capacity");
  for (std::size_t stage = 0; stage < stages; ++stage) {
    std::vector<std::string> cells = {std::to_string(stage)};
    if (layers) cells.push_back(std::to_string(stage_layers[stage]));
    if (times) {
      cells.push_back(format_seconds(details.stage_forward[stage].value()));
      cells.push_back(format_seconds(details.stage_backward[stage].value()));
    }
    const double bytes = memory[stage].total().value();
    cells.push_back(format_bytes(bytes));
    cells.push_back(format_percent(bytes / capacity(point)));
    table.add_row(std::move(cells));
  }
  table.print(out, 2);
}

/// Prints the stages of each pool, or of all replicas if these have more than one stage.
void print_stages(std::ostream& out, const SimulatedPoint& point) {
  const Details& details = point.details;
  if (point.plan.disaggregated()) {
    print_stages(out, point, "stages of the prefill pool", details.prefill.stage_memory,
                 details.prefill.stage_layers);
    print_stages(out, point, "stages of the decode pool", details.stage_memory, details.stage_layers);
    for (const MemoryUse& experts : details.expert_memory)
      out << "  ranks with experts  " << format_bytes(experts.total().value()) << "  "
          << format_percent(experts.total().value() / capacity(point)) << '\n';
  } else if (details.stage_memory.size() > 1) {
    print_stages(out, point, "stages", details.stage_memory, details.stage_layers);
  }
}

void print_breakdown(std::ostream& out, const SimulatedPoint& point) {
  out << (is_training(point) ? "\nwhere the step goes, on the critical rank\n"
                             : "\nwhere the request goes, on the critical rank\n");
  Parts parts(whole_time(point).value());
  for (const TimeClassRow& row : kTimeClasses) {
    const double value = point.prediction.breakdown[row.time_class].value();
    if (value != 0) parts.add(row.label, format_seconds(value), value);
  }
  parts.print(out);
}

}  // namespace

PointRemarks remarks_on(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                        const Prediction& prediction, std::size_t index) {
  constexpr std::size_t kNeighbours = 3;
  PointRemarks remarks;
  if (prediction.status != Status::ok)
    remarks.nearest_feasible = nearest_feasible(setting, plan, kNeighbours);
  evidence::Finding& finding = remarks.finding = sweep::assess_setting(study, index);
  remarks.evidence_reason = evidence::reason(finding, sweep::regime_of(study, index));
  finding.assessment = evidence::assess_plan(finding, plan);
  if (finding.assessment.gap == EvidenceGap::degrees)
    remarks.evidence_reason = evidence::larger_degree(finding, plan);
  if (prediction.status == Status::memory)
    remarks.evidence_reason += "; the plan does not fit, this is of its time as if it did";
  return remarks;
}

std::string expected_error_text(const PointRemarks& remarks, Phase phase) {
  const Assessment& found = remarks.finding.assessment;
  if (found.evidence == Evidence::none) return "unknown: " + remarks.evidence_reason;
  const std::string text =
      fmt::format("+-{} expected (one sigma), {}: {}", format_percent(found.expected_error),
                  name_of(found.evidence), remarks.evidence_reason);
  if (phase == Phase::training) return text;
  return text + "\n          of the mean time between tokens; of TTFT and of percentiles it is unknown";
}

void add_expected_error(const PointRemarks& remarks, Phase phase, bool has_times, Json& json) {
  const Assessment& found = remarks.finding.assessment;
  json["expected_error"] = number(found.expected_error, has_times && found.evidence != Evidence::none);
  json["expected_error_of"] = phase == Phase::training ? "step_time_s" : "itl_s";
  json["evidence"] = name_of(has_times ? found.evidence : Evidence::none);
  json["evidence_gap"] = name_of(has_times ? found.gap : EvidenceGap::none);
  json["evidence_reason"] = has_times ? Json(remarks.evidence_reason) : Json(nullptr);
}

Json to_json(const SimulatedPoint& point) {
  const Prediction& p = point.prediction;
  Json json = {{"status", name_of(p.status)}};
  add_times(point, json);
  add_expected_error(point.remarks, point.setting.workload.phase, p.has_times(), json);
  json["memory_peak_bytes"] = number(p.memory_peak.value(), memory_counted(p));
  json["memory"] = memory_json(p.memory, memory_counted(p));
  const auto stages = [](const std::vector<MemoryUse>& uses) {
    Json list = Json::array();
    for (const MemoryUse& stage : uses) {
      list.push_back(memory_json(stage, true));
      list.back()["total_bytes"] = stage.total().value();
    }
    return list;
  };
  json["memory"]["per_stage"] = stages(point.details.stage_memory);
  if (point.plan.disaggregated()) {
    json["memory"]["prefill_per_stage"] = stages(point.details.prefill.stage_memory);
    if (point.plan.ffn > 0) json["memory"]["experts"] = stages(point.details.expert_memory);
    json["prefill_memory_peak_bytes"] = number(p.prefill_memory_peak.value(), memory_counted(p));
  }
  for (const TimeClassRow& row : kTimeClasses) {
    if (row.time_class == TimeClass::kv_transfer && !point.plan.disaggregated() &&
        p.breakdown[row.time_class] == Seconds(0))
      continue;
    json["breakdown"][row.column] = number(p.breakdown[row.time_class].value(), p.has_times());
  }
  json["reason"] = name_of(p.reason);
  if (!point.study.limits.empty()) {
    const auto missed = misses_of(point);
    if (!missed.empty()) json["status"] = name_of(Status::missed);
    if (!missed.empty()) json["reason"] = miss_name(point, missed.front());
    json["missed"] = Json::array();
    for (const results::LimitCheck::Miss& miss : missed)
      json["missed"].push_back({{"bound", miss_name(point, miss)}, {"by", number(miss.by, true)}});
  }
  json["memory_capacity_bytes"] = capacity(point);
  json["memory_notes"] = notes_of(point);
  json["memory_tight"] = memory_counted(p) && !tight_memory(p.memory_peak.value(), capacity(point)).empty();
  json["assumptions"] = point.study.assumptions;
  json["plan"] = plan_json(point.plan, point.setting.workload.phase);
  if (p.status != Status::ok) json["nearest_feasible"] = neighbours(point).json();
  if (!point.details.cut.empty()) json["cut"] = point.details.cut;
  if (!point.plan.disaggregated()) json["placement"] = placement_json(point.placement, point.setting, p);
  return json;
}

Rows operators(const SimulatedPoint& point) {
  Rows rows({{left("phase"), "phase"},
             {left("operator"), "operator"},
             {left("shape"), "shape"},
             {"count", "count"},
             {"time each", "time_s"},
             {"total"},
             {"share", "share"},
             {left("bound by"), "bound"},
             {left("algorithm"), "algorithm"}});
  const double whole = whole_time(point).value();
  for (const OperatorRow& row : point.details.operators) {
    const double total = row.count * row.time.value();
    Cell algorithm = cell::words(row.algorithm);
    if (row.algorithm.empty()) algorithm.value = Json::value_t::discarded;
    rows.add({cell::words(row.phase),
              cell::words(row.name),
              cell::words(row.shape),
              {format_value(row.count, "1"), row.count},
              cell::seconds(row.time.value()),
              cell::seconds(total),
              cell::share(total / whole),
              cell::words(row.bound),
              algorithm});
  }
  return rows;
}

void print_report(std::ostream& out, const SimulatedPoint& point) {
  print_heading(out, point);
  print_verdict(out, point);
  print_neighbours(out, point);
  if (memory_counted(point.prediction)) {
    print_memory(out, point);
    print_stages(out, point);
  }
  if (point.prediction.has_times()) print_breakdown(out, point);
  if (!point.plan.disaggregated()) print_placement(out, point.placement, point.setting, point.prediction);
}

void print_operators(std::ostream& out, const SimulatedPoint& point) {
  if (!point.details.load_mixes.empty())
    return print_load_mix(out, point.prediction, point.details.load_mixes);
  out << "\noperators on the critical rank\n";
  if (point.details.operators.empty()) {
    out << "  none: the plan was rejected before its operators were priced\n";
  } else {
    operators(point).print(out, 2);
  }
}

}  // namespace shardscape::cli
