// Writes the answers of `capacity` from one list of columns as a table with the counts behind each answer, and as JSON.
#include "sweep/cli/reports/capacity_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/cli/command.h"
#include "sweep/cli/reports/simulate_report.h"
#include "sweep/cli/reports/top_output.h"
#include "sweep/cli/reports/verdicts.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/cli/terminal/text_table.h"
#include "sweep/space/point_text.h"

namespace shardscape::cli {

namespace {

using results::ColumnInfo;
using results::LimitCheck;
using sweep::CapacityAnswer;
using sweep::CapacityFate;
using sweep::CapacityPoint;

/// What became of plans, in the order of CapacityFate.
constexpr const char* kFates[] = {"simulated",
                                  "too slow for the rate by a floor",
                                  "too slow for what is asked for by a floor",
                                  "do not fit in memory",
                                  "against a constraint",
                                  "against a rule"};
static_assert(std::size(kFates) == enum_names<CapacityFate>().size());

class CapacityWriter {
 public:
  explicit CapacityWriter(const sweep::SweepJob& job)
      : job_(job), names_(job.columns().find("reason")->meanings) {}

  [[nodiscard]] double rate(const CapacityAnswer& answer) const {
    return job_.study().workloads[answer.workload].load->offered_per_s();
  }
  [[nodiscard]] double value(const CapacityPoint& at, std::string_view name) const {
    const auto columns = job_.columns().columns();
    const auto column = std::ranges::find(columns, name, &ColumnInfo::name);
    return job_.columns().number(static_cast<std::size_t>(column - columns.begin()), record(at));
  }
  /// What tells the answer from others: its rate, and the settings of its workload that are listed.
  [[nodiscard]] std::string load(const CapacityAnswer& answer) const {
    std::string text = format_rate(rate(answer)) + " requests/s";
    for (const auto& [key, value] : settings(answer)) text += fmt::format(", {}={}", key, value);
    return text;
  }
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> settings(
      const CapacityAnswer& answer) const {
    auto listed = listed_settings(job_.study(), answer.workload);
    std::erase_if(listed, [](const auto& setting) { return setting.first == "request_rate"; });
    return listed;
  }
  [[nodiscard]] std::string plan(const CapacityPoint& at) const {
    return sweep::to_point_text(at.point.plan, Phase::inference);
  }
  /// The plan and what tells its system from others.
  [[nodiscard]] std::string plan_there(const CapacityPoint& at) const {
    const std::string there = setting(at);
    return plan(at) + (there.empty() ? "" : ", " + there);
  }
  /// What tells the point's system from others, but for the number of GPUs and the workload.
  [[nodiscard]] std::string setting(const CapacityPoint& at) const {
    std::string text;
    const auto hardware = job_.hardware(at.point.setting);
    for (std::size_t i = 0; i < hardware.size(); ++i) {
      const sweep::HardwareAxis& axis = job_.study().hardware[i];
      if (axis.path == "gpus" || axis.values.size() == 1) continue;
      const auto label = std::ranges::find(axis.values, hardware[i]) - axis.values.begin();
      text += (text.empty() ? "" : ", ") + axis.path + "=" + axis.labels[static_cast<std::size_t>(label)];
    }
    return text;
  }
  /// A bound in words.
  [[nodiscard]] std::string bound(std::size_t reason) const {
    const std::string name = reason_name(names_, reason);
    const auto limit = results::limit_of_name(name);
    return limit ? limit_words(*limit) : name;
  }
  [[nodiscard]] const std::string& bound_name(std::size_t reason) const { return names_[reason]; }

  [[nodiscard]] PointRemarks error_of(const CapacityPoint& at) const {
    return remarks_on(job_.study(), setting_of(at), at.point.plan, at.prediction, at.point.setting);
  }
  [[nodiscard]] std::string tight_text(const CapacityPoint& at) const {
    return tight_memory(at.prediction.memory_peak.value(), memory_of(at));
  }
  [[nodiscard]] double memory_of(const CapacityPoint& at) const {
    return memory_of_fullest(setting_of(at).system, at.prediction.peak_in_prefill).value();
  }
  /// Memory of the fullest device of the point.
  [[nodiscard]] std::string memory_text(const CapacityPoint& at) const {
    const Setting setting = setting_of(at);
    const double capacity = memory_of(at);
    const double bytes = at.prediction.memory_peak.value();
    return fmt::format("{} of {} ({}) on the fullest device, the key-value cache in {}", format_bytes(bytes),
                       format_bytes(capacity), format_percent(bytes / capacity),
                       name_of(setting.policy().kv_cache));
  }
  /// What would have to change so that the point, which misses something, would do.
  [[nodiscard]] std::vector<std::string> changes(const CapacityPoint& at, double offered) const {
    std::vector<std::string> list;
    for (const LimitCheck::Miss& miss : at.misses) {
      if (miss.reason < results::kFirstLimitReason) {
        list.push_back(fmt::format("at most {} requests/s instead of {}",
                                   format_rate(at.prediction.load.sustained_per_s), format_rate(offered)));
        continue;
      }
      const results::Limit& limit = job_.study().limits[miss.reason - results::kFirstLimitReason];
      list.push_back(fmt::format("{} instead of {}",
                                 shown_value(*job_.columns().find(limit.column), value(at, limit.column)),
                                 limit_words(limit)));
    }
    return list;
  }

  /// What is known of smaller numbers of GPUs, or of all, and how.
  [[nodiscard]] std::string certificate(const CapacityAnswer& answer) const {
    const auto count = [&](CapacityFate fate) { return answer.fates[fate]; };
    std::string looked;
    for (const CapacityFate fate : enum_values<CapacityFate>()) {
      if (count(fate) == 0) continue;
      looked += fmt::format("{}{} {}", looked.empty() ? "" : ", ", format_count(count(fate)),
                            kFates[static_cast<std::size_t>(fate)]);
    }
    looked = fmt::format("{} looked at{}{}", counted(answer.looked_at(), "plan"), looked.empty() ? "" : ": ",
                         looked);
    if (!answer.complete && answer.best && answer.by_price)
      return "stopped: a plan that was not looked at may cost less; " + looked;
    if (!answer.complete && answer.best)
      return fmt::format("stopped: no plan on fewer GPUs does, another on {} may be better; {}",
                         format_count(answer.best->gpus), looked);
    if (!answer.complete && answer.most_gpus == 0) return "stopped: nothing is known yet; " + looked;
    if (!answer.complete)
      return fmt::format("stopped: no plan on {} GPUs or fewer does; {}", format_count(answer.most_gpus),
                         looked);
    const bool floors = count(CapacityFate::rate_floor) + count(CapacityFate::latency_floor) > 0;
    std::string text =
        floors ? "exact, with floors that are proved but for attention, which is tested: " : "exact: ";
    text += answer.best && answer.by_price ? "no plan of this study costs less an hour"
            : answer.best
                ? "no plan of this study on fewer GPUs does"
                : fmt::format("no plan of this study on up to {} GPUs does", format_count(answer.most_gpus));
    const std::int64_t first = job_.study().gpu_counts.front();
    if (floors && answer.best && answer.least_simulated > first)
      text += fmt::format(" (on fewer than {} floors rule out every plan, so that none was simulated)",
                          format_count(answer.least_simulated));
    return text + "; " + looked;
  }

  [[nodiscard]] Json outputs(const CapacityPoint& at) const {
    Json json = Json::object();
    const auto columns = job_.columns().columns();
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const bool output =
          columns[i].group == results::ColumnGroup::output || columns[i].name == "memory_peak_bytes";
      if (!output || !columns[i].meanings.empty() || columns[i].name == "expected_error") continue;
      const double number = job_.columns().number(i, record(at));
      const bool truth = columns[i].type == results::ColumnType::boolean;
      json[columns[i].name] = truth ? Json(number > 0) : std::isfinite(number) ? Json(number) : Json();
    }
    return json;
  }

  [[nodiscard]] Json answer_json(const CapacityAnswer& answer, bool points) const {
    Json json = {{"request_rate", rate(answer)}};
    for (const auto& [key, text] : settings(answer)) {
      const auto number = number_before(text, "");
      json[key] = number ? Json(static_cast<std::int64_t>(*number)) : Json(text);  // of tokens or requests
    }
    json["gpus"] = answer.best ? Json(answer.best->gpus) : Json();
    json["plan"] = answer.best ? Json(plan(*answer.best)) : Json();
    if (answer.best) {
      add_setting(*answer.best, json);
      json["cost_per_hour"] = answer.best->cost_per_hour > 0 ? Json(answer.best->cost_per_hour) : Json();
      json.update(outputs(*answer.best));
      add_expected_error(error_of(*answer.best), Phase::inference, true, json);
      const std::string tight = tight_text(*answer.best);
      json["memory_tight"] = !tight.empty();
      json["memory_capacity_bytes"] = memory_of(*answer.best);
      json["kv_cache_precision"] = name_of(setting_of(*answer.best).policy().kv_cache);
      if (points) json["memory_note"] = memory_text(*answer.best) + (tight.empty() ? "" : "; " + tight);
      json["fewer"] = answer.fewer ? missing_json(*answer.fewer, rate(answer)) : Json();
    }
    Json fates = Json::object();
    for (const CapacityFate fate : enum_values<CapacityFate>())
      fates[std::string(name_of(fate))] = answer.fates[fate];
    json["certificate"] = {
        {"exact", answer.complete},
        {"text", certificate(answer)},
        {"least_gpus_above_floors", answer.least_simulated > 0 ? Json(answer.least_simulated) : Json()},
        {"most_gpus", answer.most_gpus},
        {"plans", std::move(fates)}};
    json["rejected"] = Json::array();
    for (const Reason reason : enum_values<Reason>())
      if (const std::uint64_t plans = answer.rejected[reason]; plans > 0)
        json["rejected"].push_back(
            {{"reason", name_of(reason)}, {"plans", plans}, {"words", describe(name_of(reason))}});
    json["missed"] = Json::array();
    for (const sweep::CapacityKill& kill : answer.kills)
      json["missed"].push_back(
          {{"bound", bound_name(kill.reason)}, {"plans", kill.plans}, {"least_by", kill.least}});
    if (answer.nearest) json["nearest"] = missing_json(*answer.nearest, rate(answer));
    if (points) json["points"] = points_json(answer);
    return json;
  }

  /// Why the run is too short to tell a long one's latencies; empty where it is not.
  [[nodiscard]] std::string too_short(const CapacityAnswer& answer) const {
    constexpr double kStays = 4;
    if (!answer.best) return "";
    const LoadSpec& offered = *job_.study().workloads[answer.workload].load;
    const double run = static_cast<double>(offered.requests.number) / rate(answer);
    const double stay = answer.best->prediction.e2e.value();
    if (run >= kStays * stay) return "";
    return fmt::format(
        "{}: {} requests come within {}, and one stays for {}: too few to see a server at work "
        "for long; add --set workload.client.requests={} --set workload.client.statistic=steady",
        load(answer), format_count(offered.requests.number), format_seconds(run), format_seconds(stay),
        static_cast<std::int64_t>(std::ceil(2 * kStays * stay * rate(answer))));
  }

  void print_details(std::ostream& out, const CapacityAnswer& answer) const {
    out << '\n' << load(answer) << ": " << certificate(answer) << '\n';
    if (answer.best) {
      out << "memory    " << memory_text(*answer.best) << '\n';
      if (const std::string tight = tight_text(*answer.best); !tight.empty())
        out << "          " << tight << '\n';
      if (answer.fewer) out << "fewer     " << fewer_text(answer) << '\n';
      out << "error     " << expected_error_text(error_of(*answer.best), Phase::inference) << '\n';
      return;
    }
    if (answer.fates[CapacityFate::rule] > 0) print_rejected(out, answer);
    if (answer.kills.empty()) return;
    TextTable table({left("missed by plans that fit"), "plans", "at least by"});
    for (const sweep::CapacityKill& kill : answer.kills)
      table.add_row({bound(kill.reason), format_count(kill.plans), format_percent(kill.least)});
    table.print(out, 2);
    const CapacityPoint& nearest = *answer.nearest;
    out << "nearest: " << plan_there(nearest) << " on "
        << counted(static_cast<std::uint64_t>(nearest.gpus), "GPU")
        << (nearest.simulated ? ", with " : ", by its floors with ") << joined_changes(nearest, rate(answer))
        << '\n';
    const bool overloaded = nearest.misses.front().reason < results::kFirstLimitReason;
    if (overloaded && answer.complete)
      out << "more GPUs may do: the study's `gpus` go up to " << format_count(answer.most_gpus) << '\n';
  }

 private:
  static void print_rejected(std::ostream& out, const CapacityAnswer& answer) {
    TextTable table({left("against a rule"), "plans", left("")});
    for (const Reason reason : enum_values<Reason>()) {
      if (answer.rejected[reason] == 0) continue;
      table.add_row(
          {std::string(name_of(reason)), format_count(answer.rejected[reason]), describe(name_of(reason))});
    }
    table.print(out, 2);
  }
  [[nodiscard]] Setting setting_of(const CapacityPoint& at) const {
    return job_.study().setting(at.point.setting);
  }
  [[nodiscard]] results::PointRecord record(const CapacityPoint& at) const {
    results::PointRecord row{at.id, at.point.plan, job_.workload(at.point.setting),
                             job_.hardware(at.point.setting), at.prediction};
    row.promises_kept = std::ranges::none_of(at.misses, &LimitCheck::Miss::promise);
    return row;
  }
  void add_setting(const CapacityPoint& at, Json& json) const {
    if (const std::string there = setting(at); !there.empty()) json["setting"] = there;
  }
  [[nodiscard]] std::string joined_changes(const CapacityPoint& at, double offered) const {
    return fmt::format("{}", fmt::join(changes(at, offered), ", "));
  }
  /// By how much the next smaller number of GPUs misses what is asked for.
  [[nodiscard]] std::string fewer_text(const CapacityAnswer& answer) const {
    const CapacityPoint& at = *answer.fewer;
    return fmt::format("on {} the nearest plan, {}, misses by {}{}: {}{}",
                       counted(static_cast<std::uint64_t>(at.gpus), "GPU"), plan_there(at),
                       at.simulated ? "" : "at least ", format_percent(at.worst()),
                       at.simulated ? "" : "by its floors ", joined_changes(at, rate(answer)));
  }
  /// A plan that misses something.
  [[nodiscard]] Json missing_json(const CapacityPoint& at, double offered) const {
    Json json = {{"gpus", at.gpus},
                 {"plan", plan(at)},
                 {"simulated", at.simulated},
                 {"missed_by", at.worst()},
                 {"needs", changes(at, offered)}};
    add_setting(at, json);
    return json;
  }
  /// What was simulated, for the charts.
  [[nodiscard]] Json points_json(const CapacityAnswer& answer) const {
    Json list = Json::array();
    for (const CapacityPoint& at : answer.simulated) {
      list.push_back(
          {{"gpus", at.gpus},
           {"plan", plan_there(at)},
           {"kept", at.misses.empty()},
           {"missed", at.misses.empty()
                          ? ""
                          : bound(std::ranges::max_element(at.misses, {}, &LimitCheck::Miss::by)->reason)},
           {"ttft_p95_s", at.prediction.ttft_spread.p95.value()},
           {"requests_per_s_per_gpu", at.prediction.load.requests_per_s / static_cast<double>(at.gpus)}});
    }
    return list;
  }

  const sweep::SweepJob& job_;
  const std::vector<std::string>& names_;
};

}  // namespace

void print_capacity(std::ostream& out, const sweep::SweepJob& job, std::span<const CapacityAnswer> answers,
                    const std::vector<std::string>& launches) {
  const CapacityWriter writer(job);
  out << echo(job.study().title) << ": the " << (answers.front().by_price ? "cheapest GPUs" : "fewest GPUs")
      << " that keep what is promised\n";
  std::vector<const ColumnInfo*> shown;
  for (const results::Limit& limit : job.study().limits)
    if (limit.column != "attainment") shown.push_back(job.columns().find(limit.column));
  TextTable table({"requests/s"});
  for (const auto& [key, text] : writer.settings(answers.front())) table.add_column(key);
  table.add_column("GPUs");
  table.add_column("plan", TextTable::Align::left);
  const ColumnInfo* const attainment = job.columns().find("attainment");  // of promises
  if (attainment != nullptr) table.add_column("attainment");
  const bool priced = std::ranges::any_of(
      answers, [](const CapacityAnswer& answer) { return answer.best && answer.best->cost_per_hour > 0; });
  if (priced) table.add_column("cost/hour");
  if (priced) shown.push_back(job.columns().find("cost_per_million_tokens"));
  table.add_column("requests/s/GPU");
  for (const ColumnInfo* column : shown) table.add_column(short_heading(*column));
  for (const CapacityAnswer& answer : answers) {
    std::vector<std::string> cells = {format_rate(writer.rate(answer))};
    for (const auto& [key, text] : writer.settings(answer)) cells.push_back(text);
    const sweep::CapacityPoint* const best = answer.best ? &*answer.best : nullptr;
    cells.push_back(best ? format_count(best->gpus) : answer.complete ? "none" : "?");
    cells.push_back(best ? writer.plan_there(*best) : "");
    if (attainment != nullptr)
      cells.push_back(best ? shown_value(*attainment, best->prediction.load.attainment) : "");
    constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
    if (priced)
      cells.push_back(best ? format_value(best->cost_per_hour > 0 ? best->cost_per_hour : kUnknown, "1")
                           : "");
    cells.push_back(best ? format_rate(best->prediction.load.requests_per_s / static_cast<double>(best->gpus))
                         : "");
    for (const ColumnInfo* column : shown)
      cells.push_back(best ? shown_value(*column, writer.value(*best, column->name)) : "");
    table.add_row(std::move(cells));
  }
  table.print(out);
  for (const std::string& assumed : job.study().assumptions) out << "assumed: " << printable(assumed) << '\n';
  for (std::size_t i = 0; i < answers.size(); ++i) {
    writer.print_details(out, answers[i]);
    if (!launches[i].empty()) out << "launch    " << launches[i] << '\n';
  }
}

std::vector<std::string> capacity_warnings(const sweep::SweepJob& job,
                                           std::span<const CapacityAnswer> answers) {
  const CapacityWriter writer(job);
  std::vector<std::string> warnings;
  for (const CapacityAnswer& answer : answers)
    if (std::string text = writer.too_short(answer); !text.empty()) warnings.push_back(std::move(text));
  return warnings;
}

Json capacity_json(const sweep::SweepJob& job, std::span<const CapacityAnswer> answers,
                   const std::vector<std::string>& launches, bool points) {
  const CapacityWriter writer(job);
  const sweep::Study& study = job.study();
  Json json = {{"study", study.title},
               {"model", study.model_name},
               {"cluster", fmt::format("{} ({})", study.cluster_name, study.systems.front().device.name)},
               {"stack", study.stack_name},
               {"assumptions", study.assumptions},
               {"workloads", Json::array()},
               {"bounds", Json::array()},
               {"answers", Json::array()}};
  for (const auto& [key, text] : writer.settings(answers.front())) json["workloads"].push_back(key);
  for (const results::Limit& limit : job.study().limits)
    json["bounds"].push_back(
        {{"bound", results::limit_name(limit)}, {"words", limit_words(limit)}, {"promise", limit.promise}});
  for (std::size_t i = 0; i < answers.size(); ++i) {
    json["answers"].push_back(writer.answer_json(answers[i], points));
    json["answers"].back()["launch"] = launches[i].empty() ? Json() : Json(launches[i]);
  }
  return json;
}

}  // namespace shardscape::cli
