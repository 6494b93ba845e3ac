// Lists what differs between two plans and their machines, puts figures and classes of time beside each other, draws
// the waterfall of the bars that compare/waterfall.h finds, and names the largest of them in one sentence.
#include "sweep/cli/reports/compare_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <type_traits>

#include "engine/base/safe_text.h"
#include "engine/spec/fabric_numbers.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/spec_numbers.h"
#include "sweep/cli/reports/launch_report.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/launch/facts.h"
#include "sweep/space/point_text.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"
#include "sweep/yaml/specs.h"

namespace shardscape::cli {

namespace {

using compare::Bar;
using compare::Cause;

Phase phase_of(const Comparison& of) { return of.a.point.setting.workload.phase; }
bool trains(const Comparison& of) { return phase_of(of) == Phase::training; }
double capacity_of(const ComparedPlan& of) {
  return memory_of_fullest(of.point.setting.system, of.prediction.peak_in_prefill).value();
}

std::string bar_name(const Bar& bar, const Comparison& of) {
  const PolicyName a = of.a.point.setting.workload.precision, b = of.b.point.setting.workload.precision;
  const std::string label = kTimeClasses[static_cast<std::size_t>(bar.time_class)].label;
  switch (bar.cause) {
    case Cause::work:
      return bar.time_class == TimeClass::recompute ? label + ": what is computed again"
                                                    : label + ": work per GPU";
    case Cause::share:
      return label + ": share of the critical rank";
    case Cause::rate:
      return label + ": rate" + (a == b ? "" : fmt::format(" of {} after {}", name_of(b), name_of(a)));
    case Cause::time:
      break;
  }
  return is_communication(bar.time_class)
             ? "exposed " + label + (bar.links.empty() ? "" : " over " + bar.links)
             : label;
}

std::string signed_seconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + format_seconds(std::abs(seconds));
}

/// A number by the key that states it, and with its unit: of memory that of all stacks.
struct NumberWords {
  std::string key, value;
};
template <class Row, class Spec>
NumberWords number_words(const Row& row, const Spec& spec) {
  NumberWords words{std::string(row.path), ""};
  double value = row.get(spec);
  if constexpr (std::is_same_v<Spec, DimensionSpec>) words.key = row.key(spec);
  if constexpr (std::is_same_v<Spec, DeviceSpec>) {
    if (!row.total.empty()) {
      words.key = words.key.substr(0, words.key.rfind('.') + 1).append(row.total);
      value *= static_cast<double>(spec.hbm.stacks);
    }
  }
  constexpr std::array<std::pair<std::string_view, yaml::Dimension>, 5> kUnits = {
      {{"s", yaml::Dimension::time},
       {"B", yaml::Dimension::data},
       {"B/s", yaml::Dimension::bandwidth},
       {"Hz", yaml::Dimension::frequency},
       {"W", yaml::Dimension::power}}};
  words.value = yaml::format_number(value);
  for (const auto& [unit, dimension] : kUnits)
    if (row.range.unit == unit) words.value = yaml::format_quantity(value, dimension);
  return words;
}

/// What a plan is: text of A and of B where they differ.
struct Difference {
  std::string name, a, b;
};
std::vector<Difference> plan_differences(const Comparison& of) {
  std::vector<Difference> all;
  const auto add = [&](std::string name, std::string a, std::string b) {
    if (a != b) all.push_back({std::move(name), printable(a), printable(b)});
  };
  const Setting &a = of.a.point.setting, &b = of.b.point.setting;
  add("model", a.model.name, b.model.name);
  add("GPUs", format_count(a.system.fabric.size()), format_count(b.system.fabric.size()));
  add("device", a.system.device.name, b.system.device.name);
  add("fabric", a.system.fabric.name, b.system.fabric.name);
  add("stack", a.system.stack.name, b.system.stack.name);
  // Numbers of parts that have one name: what axes of `hardware` change.
  const auto add_numbers = [&](const std::string& part, const auto& table, const auto& of_a,
                               const auto& of_b) {
    for (const auto& row : table)
      if (!row.same(of_a, of_b))
        add(part + number_words(row, of_a).key, number_words(row, of_a).value, number_words(row, of_b).value);
  };
  // And the rest of them, which are choices and lists.
  const auto add_part = [&](const std::string& part, const auto& table, const auto& of_a, const auto& of_b) {
    if (of_a.name != of_b.name) return;
    add_numbers(part, table, of_a, of_b);
    std::map<std::string, std::array<std::string, 2>> written;
    for (auto& [key, text] : launch::leaves_of(yaml::write(of_a), "")) written[key][0] = std::move(text);
    for (auto& [key, text] : launch::leaves_of(yaml::write(of_b), "")) written[key][1] = std::move(text);
    for (const auto& [key, texts] : written)
      if (std::ranges::none_of(table, [&](const auto& row) { return row.path == key; }))
        add(part + key, texts[0].empty() ? "none" : texts[0], texts[1].empty() ? "none" : texts[1]);
  };
  const System &from = a.system, &to = b.system;
  add_part("device.", device_numbers(), from.device, to.device);
  if (from.prefill_device || to.prefill_device) {
    const DeviceSpec &x = from.prefill_device.value_or(from.device),
                     &y = to.prefill_device.value_or(to.device);
    add("prefill device", x.name, y.name);
    add_part("prefill_device.", device_numbers(), x, y);
  }
  add_part("stack.", stack_numbers(), from.stack, to.stack);
  const std::size_t dimensions = std::min(from.fabric.dimensions.size(), to.fabric.dimensions.size());
  for (std::size_t i = 0; i < dimensions; ++i) {
    const DimensionSpec &x = from.fabric.dimensions[i], &y = to.fabric.dimensions[i];
    if (x.name == y.name) add_numbers("fabric." + x.name + '.', dimension_numbers(), x, y);
  }
  add("precision", std::string(name_of(a.workload.precision)), std::string(name_of(b.workload.precision)));
  add("sequence length", format_count(a.workload.sequence_length), format_count(b.workload.sequence_length));
  add("global batch", format_count(a.workload.global_batch), format_count(b.workload.global_batch));
  add("prompt tokens", format_count(a.workload.prompt_tokens), format_count(b.workload.prompt_tokens));
  add("output tokens", format_count(a.workload.output_tokens), format_count(b.workload.output_tokens));
  add("concurrency", format_count(a.workload.concurrency), format_count(b.workload.concurrency));
  for (const PlanAxisRow& row : kPlanRows) {
    if (applies(row.phases, phase_of(of)))
      add(std::string(row.name), code_text(row, row.get(of.a.point.plan)),
          code_text(row, row.get(of.b.point.plan)));
  }
  return all;
}

/// Figures of both: name, key in JSON, value, and how it reads.
Rows figures(const Comparison& of) {
  Rows rows({{left(""), "figure"}, {"A", "a"}, {"B", "b"}, {"B - A", "difference"}, {"of A", "share"}});
  const auto add_of = [&](const char* name, const char* key, double a, double b, auto format,
                          auto format_difference) {
    const double difference = b - a;
    const std::string text =
        difference == 0 ? "same" : (difference < 0 ? "-" : "+") + format_difference(std::abs(difference));
    rows.add({{name, key},
              {format(a), a},
              {format(b), b},
              {text, difference},
              a > 0 && difference != 0 ? Cell{format_signed_percent(difference / a), difference / a}
                                       : Cell{"", nullptr}});
  };
  const auto add = [&](const char* name, const char* key, double a, double b, auto format) {
    add_of(name, key, a, b, format, format);
  };
  const Prediction &a = of.a.prediction, &b = of.b.prediction;
  if (trains(of)) {
    add("step", "step_time_s", a.step_time.value(), b.step_time.value(), format_seconds);
  } else {
    add("request", "e2e_s", a.e2e.value(), b.e2e.value(), format_seconds);
    add("first token", "ttft_s", a.ttft.value(), b.ttft.value(), format_seconds);
    add("between tokens", "itl_s", a.itl.value(), b.itl.value(), format_seconds);
  }
  add("tokens/s per GPU", "tokens_per_s_per_gpu", a.tokens_per_s_per_gpu, b.tokens_per_s_per_gpu,
      [](double rate) { return format_fixed(rate, 1); });
  if (trains(of))
    add_of(
        "MFU", "mfu", a.mfu, b.mfu, [](double share) { return format_percent(share); },
        [](double share) { return format_fixed(100 * share, 1) + " points"; });
  if (a.cost_per_million_tokens > 0 && b.cost_per_million_tokens > 0)
    add("cost per million tokens", "cost_per_million_tokens", a.cost_per_million_tokens,
        b.cost_per_million_tokens, [](double cost) { return format_value(cost, "1"); });
  add("memory", "memory_peak_bytes", a.memory_peak.value(), b.memory_peak.value(), format_bytes);
  add("memory of a GPU", "memory_capacity_bytes", capacity_of(of.a), capacity_of(of.b), format_bytes);
  return rows;
}

Rows classes(const Comparison& of) {
  Rows rows({{left("time by class"), nullptr},
             Rows::hidden("class"),
             {"A", "a_s"},
             {"B", "b_s"},
             {"B - A", "difference_s"}});
  for (const TimeClassRow& row : kTimeClasses) {
    const double a = of.a.prediction.breakdown[row.time_class].value();
    const double b = of.b.prediction.breakdown[row.time_class].value();
    if (a == 0 && b == 0) continue;
    rows.add({cell::words(row.label),
              {"", row.name},
              cell::seconds(a),
              cell::seconds(b),
              {a == b ? "same" : signed_seconds(b - a), b - a}});
  }
  return rows;
}

/// Where a bar lies between the least and the largest sum on the way, as text.
std::string drawn(double from, double to, double low, double high) {
  constexpr double kWidth = 40;
  const double scale = high > low ? kWidth / (high - low) : 0;
  const auto place = [&](double value) {
    return static_cast<std::size_t>(std::lround((value - low) * scale));
  };
  const std::size_t begin = place(std::min(from, to)), end = place(std::max(from, to));
  return std::string(begin, ' ') + std::string(std::max<std::size_t>(end - begin, 1), to < from ? '-' : '+');
}

void print_waterfall(std::ostream& out, const Comparison& of) {
  const double first = of.a.side().whole().value(), last = of.b.side().whole().value();
  double low = std::min(first, last), high = std::max(first, last), sum = first;
  for (const Bar& bar : of.bars) {
    sum += bar.difference.value();
    low = std::min(low, sum), high = std::max(high, sum);
  }
  TextTable table({left(""), "", "of A", left("")});
  table.add_row({"A", format_seconds(first), "", drawn(first, first, low, high)});
  sum = first;
  for (const Bar& bar : of.bars) {
    const double difference = bar.difference.value();
    constexpr double kRounding = 1e-9;  // of the whole: what sums leave
    if (std::abs(difference) > kRounding * first)
      table.add_row({bar_name(bar, of), signed_seconds(difference), format_signed_percent(difference / first),
                     drawn(sum, sum + difference, low, high)});
    sum += difference;
  }
  table.add_row(
      {"B", format_seconds(last), format_signed_percent(last / first - 1), drawn(last, last, low, high)});
  out << "\nfrom A to B\n";
  table.print(out, 2);
}

/// The largest parts in the direction of the difference, and those against it, of a hundredth of it or more; traffic
/// that moved to other links is one part.
std::string why(const Comparison& of) {
  constexpr std::size_t kMost = 3;
  constexpr double kSaid = 0.01;
  const double a = of.a.side().whole().value(), b = of.b.side().whole().value();
  if (a == b) return "A and B take the same time";
  struct Part {
    std::string name;
    double difference;
  };
  std::vector<Part> parts;
  for (std::size_t i = 0; i < of.bars.size(); ++i) {
    const Bar &bar = of.bars[i], *const before = i > 0 ? &of.bars[i - 1] : nullptr;
    if (before != nullptr && bar.cause == Cause::time && bar.time_class == before->time_class) {
      parts.back().name += ", now over " + bar.links;
      parts.back().difference += bar.difference.value();
    } else {
      parts.push_back({bar_name(bar, of), bar.difference.value()});
    }
  }
  std::ranges::stable_sort(parts, std::greater(), [](const Part& part) { return std::abs(part.difference); });
  std::string text = fmt::format("B is {} by {} ({})", b < a ? "faster" : "slower",
                                 format_seconds(std::abs(b - a)), format_percent(std::abs(b - a) / a));
  const auto tell = [&](bool faster, const char* first) {
    std::size_t told = 0;
    for (const Part& part : parts) {
      if (std::abs(part.difference) < kSaid * std::abs(b - a) || (part.difference < 0) != faster ||
          told == kMost)
        continue;
      text += fmt::format("{} {} {}", told++ == 0 ? first : ";", part.name, signed_seconds(part.difference));
    }
  };
  tell(b < a, ":");
  tell(b > a, "; against it:");
  return text;
}

/// Whether memory made the plan recompute: a line for each lighter recomputation.
void print_memory(std::ostream& out, const char* name, const ComparedPlan& of,
                  const std::vector<compare::LighterRecompute>& lighter) {
  const std::string now(name_of(of.point.plan.recompute));
  for (const compare::LighterRecompute& other : lighter) {
    const Prediction& p = other.prediction;
    const std::string with =
        fmt::format("{} recomputes ({}): with {} it ", name, now, name_of(other.recompute));
    if (p.status == Status::memory) {
      out << with << "does not fit, " << format_bytes(p.memory_peak.value()) << " of "
          << format_bytes(capacity_of(of)) << '\n';
    } else if (p.status == Status::ok) {
      out << with << "fits as well, and takes " << format_seconds(p.step_time.value()) << '\n';
    }
  }
}

/// The command that launches the plan.
std::string launch_of(const ComparedPlan& of) {
  return launch_line(of.study, of.point.setting, of.point.plan, of.words, of.id);
}
PointRemarks remarks_of(const ComparedPlan& of) {
  return remarks_on(of.study, of.point.setting, of.point.plan, of.prediction, of.point.at);
}

/// What is to be known of a plan beside its figures.
void print_side(std::ostream& out, const char* name, const ComparedPlan& of, const PointRemarks& remarks,
                const std::string& launch) {
  out << "\n" << name << '\n';
  for (const std::string& note : memory_notes(of.point.setting, of.prediction))
    out << "memory    " << note << '\n';
  out << "error     " << expected_error_text(remarks, of.point.setting.workload.phase) << '\n'
      << "launch    " << launch << '\n';
}

Json side_json(const ComparedPlan& of, const std::vector<compare::LighterRecompute>& lighter,
               const PointRemarks& remarks, const std::string& launch) {
  const Setting& setting = of.point.setting;
  Json json = {{"from", of.from},
               {"study", of.study.title},
               {"point", sweep::to_point_text(of.point.plan, setting.workload.phase)},
               {"status", name_of(of.prediction.status)},
               {"gpus", setting.system.fabric.size()},
               {"device", setting.system.device.name},
               {"stack", setting.system.stack.name},
               {"memory_notes", memory_notes(setting, of.prediction)}};
  add_expected_error(remarks, setting.workload.phase, true, json);
  json["launch"] = launch;
  json["lighter_recompute"] = Json::array();
  for (const compare::LighterRecompute& other : lighter) {
    const Prediction& p = other.prediction;
    json["lighter_recompute"].push_back({{"recompute", name_of(other.recompute)},
                                         {"status", name_of(p.status)},
                                         {"memory_peak_bytes", p.memory_peak.value()},
                                         {"step_time_s", p.step_time.value()}});
  }
  return json;
}

}  // namespace

Comparison compare_plans(const ComparedPlan& a, const ComparedPlan& b) {
  return {a,
          b,
          compare::waterfall(a.side(), b.side()),
          compare::lighter_recompute(a.point.setting, a.point.plan),
          compare::lighter_recompute(b.point.setting, b.point.plan),
          remarks_of(a),
          remarks_of(b),
          launch_of(a),
          launch_of(b)};
}

Json to_json(const Comparison& of) {
  Json json = {{"a", side_json(of.a, of.lighter_a, of.remarks_a, of.launch_a)},
               {"b", side_json(of.b, of.lighter_b, of.remarks_b, of.launch_b)}};
  json["differs"] = Json::object();
  for (const Difference& one : plan_differences(of)) json["differs"][one.name] = {{"a", one.a}, {"b", one.b}};
  json["figures"] = figures(of).json();
  json["breakdown"] = classes(of).json();
  json["difference_s"] = (of.b.side().whole() - of.a.side().whole()).value();
  json["waterfall"] = Json::array();
  for (const Bar& bar : of.bars)
    json["waterfall"].push_back({{"bar", bar_name(bar, of)},
                                 {"class", name_of(bar.time_class)},
                                 {"cause", name_of(bar.cause)},
                                 {"links", bar.links.empty() ? Json(nullptr) : Json(bar.links)},
                                 {"difference_s", bar.difference.value()}});
  json["why"] = why(of);
  return json;
}

void print_compared(std::ostream& out, const Comparison& of) {
  TextTable heading = TextTable::pairs();
  for (const auto& [name, one] : {std::pair("A", &of.a), std::pair("B", &of.b)}) {
    const bool fits = one->prediction.status != Status::memory;
    heading.add_row({name, printable(one->from) + ": " + sweep::to_point_text(one->point.plan, phase_of(of)) +
                               (fits ? "" : " (as if it fitted)")});
  }
  heading.print(out);
  const std::vector<Difference> differences = plan_differences(of);
  if (!differences.empty()) {
    out << '\n';
    TextTable table({left("differs"), "A", "B"});
    for (const Difference& one : differences) table.add_row({one.name, one.a, one.b});
    table.print(out, 2);
  }
  out << '\n';
  figures(of).print(out, 2);
  out << '\n';
  classes(of).print(out, 2);
  print_waterfall(out, of);
  out << '\n' << why(of) << '\n';
  print_memory(out, "A", of.a, of.lighter_a);
  print_memory(out, "B", of.b, of.lighter_b);
  print_side(out, "A", of.a, of.remarks_a, of.launch_a);
  print_side(out, "B", of.b, of.remarks_b, of.launch_b);
}

}  // namespace shardscape::cli
