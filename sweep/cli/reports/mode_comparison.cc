#include "sweep/cli/reports/simulate_report.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using Align = TextTable::Align;

/// Whether a class is shown: transfers of caches only where there are any.
bool shown(const ModeComparison& comparison, const TimeClassRow& c) {
  return c.time_class != TimeClass::kv_transfer || comparison.hierarchical.kv_bytes > Bytes(0) ||
         comparison.hierarchical.breakdown[c.time_class] > Seconds(0);
}

Json mode_json(const ModeComparison& comparison, const Prediction& prediction) {
  Json json = {{comparison.phase == Phase::training ? "step_time_s" : "e2e_s",
                prediction.whole(comparison.phase).value()}};
  if (comparison.phase == Phase::inference) {
    json["ttft_s"] = prediction.ttft.value();
    json["itl_s"] = prediction.itl.value();
  }
  for (const TimeClassRow& c : kTimeClasses) {
    if (shown(comparison, c)) json["breakdown"][c.column] = prediction.breakdown[c.time_class].value();
  }
  return json;
}

}  // namespace

void print_comparison(std::ostream& out, const ModeComparison& comparison) {
  const Prediction &h = comparison.hierarchical, &f = comparison.flattened;
  out << "\nhierarchical against flattened (" << format_count(comparison.events)
      << " events), on the critical rank\n";
  const bool training = comparison.phase == Phase::training;
  const Seconds step = h.whole(comparison.phase);
  TextTable table(
      {left(""), "hierarchical", "flattened", "difference", training ? "of the step" : "of the request"});
  constexpr double kRounding = 1e-9;  // relative to the whole
  const auto row = [&](const char* name, Seconds a, Seconds b, Seconds of) {
    const double difference = (b - a).value(), share = difference / of.value();
    const bool same = std::abs(share) < kRounding;
    table.add_row({name, format_seconds(a.value()), format_seconds(b.value()),
                   same ? "same" : (difference < 0 ? "-" : "+") + format_seconds(std::abs(difference)),
                   same ? "" : format_signed_percent(share, 2)});
  };
  for (const TimeClassRow& c : kTimeClasses) {
    const Seconds a = h.breakdown[c.time_class], b = f.breakdown[c.time_class];
    if (std::max(a, b) > kRounding * step) row(c.label, a, b, step);
  }
  row(training ? "step" : "request", step, f.whole(comparison.phase), step);
  if (!training) {  // these have no parts of the whole
    row("first token", h.ttft, f.ttft, h.ttft);
    if (h.itl > Seconds(0)) row("between tokens", h.itl, f.itl, h.itl);
  }
  table.print(out, 2);
}

nlohmann::ordered_json to_json(const ModeComparison& comparison) {
  const Prediction &h = comparison.hierarchical, &f = comparison.flattened;
  Json json = {{"hierarchical", mode_json(comparison, h)}, {"flattened", mode_json(comparison, f)}};
  if (comparison.phase == Phase::training) json["hierarchical"]["outside_domain"] = h.outside_domain();
  Json& difference = json["difference"];
  const auto add = [&](const std::string& name, Seconds a, Seconds b) {
    difference[name + "_s"] = (b - a).value();
    if (a > Seconds(0)) difference[name + "_share"] = b / a - 1;
  };
  if (comparison.phase == Phase::training) {
    add("step_time", h.step_time, f.step_time);
  } else {
    add("e2e", h.e2e, f.e2e);
    add("ttft", h.ttft, f.ttft);
    add("itl", h.itl, f.itl);
  }
  for (const TimeClassRow& c : kTimeClasses) {
    if (!shown(comparison, c)) continue;
    difference["breakdown"][c.column] = (f.breakdown[c.time_class] - h.breakdown[c.time_class]).value();
  }
  json["events"] = comparison.events;
  if (comparison.executed_ranks > 0) json["executed_ranks"] = comparison.executed_ranks;
  return json;
}

}  // namespace shardscape::cli
