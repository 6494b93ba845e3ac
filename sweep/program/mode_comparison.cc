#include "sweep/program/mode_comparison.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>

#include "sweep/program/format.h"
#include "sweep/program/table.h"

namespace shardscape::program {

namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

struct Class {
  const char* name;
  const char* key;
  Seconds Breakdown::*part;
};
constexpr std::array<Class, 9> kClasses = {{{"compute", "compute_s", &Breakdown::compute},
                                            {"recompute", "recompute_s", &Breakdown::recompute},
                                            {"tensor comm", "tp_comm_s", &Breakdown::tensor_comm},
                                            {"context comm", "cp_comm_s", &Breakdown::context_comm},
                                            {"pipeline comm", "pp_comm_s", &Breakdown::pipeline_comm},
                                            {"data comm", "dp_comm_s", &Breakdown::data_comm},
                                            {"bubble", "bubble_s", &Breakdown::bubble},
                                            {"optimizer", "optimizer_s", &Breakdown::optimizer},
                                            {"host", "host_s", &Breakdown::host}}};

std::string signed_share(double share) {
  return (share < 0 ? "-" : "+") + format_fixed(100 * std::abs(share), 2) + " %";
}

Json mode_json(const Prediction& prediction) {
  Json json = {{"step_time_s", prediction.step_time.value()}};
  for (const Class& c : kClasses) json["breakdown"][c.key] = (prediction.breakdown.*c.part).value();
  return json;
}

}  // namespace

void print_comparison(std::ostream& out, const ModeComparison& comparison) {
  const Prediction &h = comparison.hierarchical, &f = comparison.flattened;
  out << "\nhierarchical against flattened (" << format_count(static_cast<std::uint64_t>(comparison.events))
      << " events), on the critical rank\n";
  TextTable table;
  table.add_column("", Align::left);
  for (const char* heading : {"hierarchical", "flattened", "difference", "of the step"})
    table.add_column(heading);
  constexpr double kRounding = 1e-9;  // of the step
  const auto row = [&](const char* name, Seconds a, Seconds b) {
    const double difference = (b - a).value(), share = difference / h.step_time.value();
    const bool same = std::abs(share) < kRounding;
    table.add_row({name, format_seconds(a.value()), format_seconds(b.value()),
                   same ? "same" : (difference < 0 ? "-" : "+") + format_seconds(std::abs(difference)),
                   same ? "" : signed_share(share)});
  };
  for (const Class& c : kClasses) {
    const Seconds a = h.breakdown.*c.part, b = f.breakdown.*c.part;
    if (std::max(a, b) > kRounding * h.step_time) row(c.name, a, b);
  }
  row("step", h.step_time, f.step_time);
  table.print(out, 2);
}

nlohmann::ordered_json to_json(const ModeComparison& comparison) {
  const Prediction &h = comparison.hierarchical, &f = comparison.flattened;
  Json json = {{"hierarchical", mode_json(h)}, {"flattened", mode_json(f)}};
  Json& difference = json["difference"];
  difference["step_time_s"] = (f.step_time - h.step_time).value();
  difference["step_time_share"] = f.step_time / h.step_time - 1;
  for (const Class& c : kClasses) {
    difference["breakdown"][c.key] = (f.breakdown.*c.part - h.breakdown.*c.part).value();
  }
  json["events"] = comparison.events;
  return json;
}

}  // namespace shardscape::program
