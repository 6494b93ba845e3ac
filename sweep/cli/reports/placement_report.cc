// Reports how the groups of a plan lie on the fabric, searches a better placement if asked to, and prints both as text
// and JSON.
#include "sweep/cli/reports/simulate_report.h"

#include <string>
#include <utility>

#include "engine/base/suggest.h"
#include "engine/simulate.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

using Align = TextTable::Align;
using network::AxisSpan;

std::string axes_text(const AxisSpan& span) {
  std::string text;
  for (const PlanAxis axis : span.axes) {
    if (!text.empty()) text += '*';
    text += name_of(axis);
  }
  return text;
}

const std::string& dimension_name(const Setting& setting, std::int32_t dimension) {
  return setting.system.fabric.dimensions[static_cast<std::size_t>(dimension)].name;
}

Rows rows_of(const std::vector<AxisSpan>& spans, const Setting& setting) {
  Rows rows({{left("axis"), "axis"},
             {"degree", "degree"},
             {"stride", "stride"},
             {left("crosses"), "dimensions"},
             {"hops", "hops"},
             {"mean", "mean_hops"},
             {"contention", "contention"}});
  for (const AxisSpan& span : spans) {
    std::vector<std::string> dimensions;
    for (const std::int32_t dimension : span.dimensions)
      dimensions.push_back(dimension_name(setting, dimension));
    rows.add({cell::words(axes_text(span)),
              cell::number(span.degree),
              cell::number(span.stride),
              {join_names(dimensions), dimensions},
              cell::number(span.hops),
              {format_fixed(span.mean_hops, 2), span.mean_hops},
              cell::number(span.contention)});
  }
  return rows;
}

void print_spans(std::ostream& out, const std::vector<AxisSpan>& spans, const Setting& setting) {
  std::vector<AxisSpan> shown;
  for (const AxisSpan& span : spans) {
    // A group of both cp and dp may be the same as that of one of them alone.
    const bool again = span.axes.size() > 1 && (spans[1].degree == 1 || spans[2].degree == 1);
    if (span.degree > 1 && !again) shown.push_back(span);
  }
  if (shown.empty()) {
    out << "  one GPU: nothing to place\n";
  } else {
    rows_of(shown, setting).print(out, 2);
  }
}

std::string change(double before, double after) {
  if (before == after) return "same";
  if (before == 0) return "new";
  return format_signed_percent((after - before) / before);
}

void print_gain(std::ostream& out, const BetterPlacement& better, const Setting& setting,
                const Prediction& prediction) {
  const placement::TimedPlacement& plain = better.found.plain;
  const placement::TimedPlacement& best = better.found.best;
  if (best.placement == plain.placement) {
    out << "\nno better placement: the plain order is the fastest of " << better.found.timed << " timed\n";
    return;
  }
  out << "\nbetter placement, the fastest of " << better.found.timed << " timed\n";
  TextTable table({left(""), "plain order", "optimised", "change"});
  const auto add = [&](const char* name, double before, double after, auto format) {
    table.add_row({name, format(before), format(after), change(before, after)});
  };
  const bool training = setting.workload.phase == Phase::training;
  add(training ? "step" : "request", plain.time.value(), best.time.value(), format_seconds);
  add("congestion", plain.cost.congestion_s, best.cost.congestion_s, format_seconds);
  add("byte-hops", plain.cost.byte_hops, best.cost.byte_hops,
      [](double bytes) { return format_si(bytes, "B"); });
  // Exposed communication on the critical rank, by class: the part of a step that a placement can change.
  for (const TimeClassRow& row : kTimeClasses) {
    if (!is_communication(row.time_class)) continue;
    const double exposed = prediction.breakdown[row.time_class].value();
    const double moved = better.prediction.breakdown[row.time_class].value();
    if (exposed > 0 || moved > 0) add(row.label, exposed, moved, format_seconds);
  }
  table.print(out, 2);
  out << "\ngroups on the better placement\n";
  print_spans(out, better.spans, setting);
}

}  // namespace

PlacementReport study_placement(const Setting& setting, const ParallelPlan& plan, const Details& details,
                                const FaultSet& faults, bool reference, bool optimise) {
  const network::Fabric fabric(setting.system.fabric);
  PlacementReport report{network::axis_spans(fabric, plan), std::nullopt};
  if (!optimise) return report;
  const network::PlacementDemand demand = network::plan_demand(plan, details.group_bytes);
  const auto predict = [&](const network::Placement& placement) {
    Simulator simulator(setting, {.reference = reference, .time_infeasible = true, .placement = placement});
    return simulator.run(plan, faults);
  };
  BetterPlacement better;
  better.found = placement::optimise_placement(
      fabric, plan, demand,
      [&](const network::Placement& placement) { return predict(placement).whole(setting.workload.phase); });
  better.spans = network::axis_spans(fabric, plan, better.found.best.placement);
  better.prediction = predict(better.found.best.placement);
  report.better = std::move(better);
  return report;
}

Json placement_json(const PlacementReport& report, const Setting& setting, const Prediction& prediction) {
  Json json = {{"axes", rows_of(report.spans, setting).json()}};
  if (!report.better) return json;
  const placement::OptimisedPlacement& found = report.better->found;
  const char* const time = setting.workload.phase == Phase::training ? "step_time_s" : "e2e_s";
  const auto side = [&](const placement::TimedPlacement& timed, const Prediction& p) {
    Json sides = {{time, timed.time.value()},
                  {"congestion_s", timed.cost.congestion_s},
                  {"byte_hops", timed.cost.byte_hops}};
    for (const TimeClassRow& row : kTimeClasses) {
      if (is_communication(row.time_class)) sides[row.column] = p.breakdown[row.time_class].value();
    }
    return sides;
  };
  json["optimised"] = {{"before", side(found.plain, prediction)},
                       {"after", side(found.best, report.better->prediction)},
                       {"swaps_tried", found.swaps},
                       {"placements_timed", found.timed},
                       {"axes", rows_of(report.better->spans, setting).json()},
                       {"physical_rank", found.best.placement}};
  return json;
}

void print_placement(std::ostream& out, const PlacementReport& report, const Setting& setting,
                     const Prediction& prediction) {
  out << "\nplacement: what the rings of each axis cross, and flows on their most loaded link\n";
  print_spans(out, report.spans, setting);
  if (report.better) print_gain(out, *report.better, setting, prediction);
}

}  // namespace shardscape::cli
