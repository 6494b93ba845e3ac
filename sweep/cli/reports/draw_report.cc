#include "sweep/cli/reports/simulate_report.h"

#include <fmt/format.h>

#include <optional>

#include "engine/network/fabric/fabric.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

std::optional<double> time_of(const Setting& setting, const Prediction& prediction) {
  if (!prediction.has_times()) return std::nullopt;
  return prediction.whole(setting.workload.phase).value();
}

std::string place_of(const network::Fabric& fabric, const sweep::DrawnFault& fault) {
  if (fault.link >= 0) return fabric.link_name(fault.link);
  const FaultOwner owner = row_of(fault.kind).owner;
  if (owner == FaultOwner::switches) return fabric.vertex_name(fault.device);
  return fmt::format("{} {}", name_of(owner), fault.device);
}

}  // namespace

sweep::FaultDraw draw_sample(const sweep::Study& study, const Setting& setting, std::uint64_t sample) {
  if (!study.faults) throw BadInput("--draw: the study has no faults to draw from; add a 'faults:' key\n");
  const sweep::FaultSampler sampler(*study.faults, network::Fabric(setting.system.fabric));
  if (sample >= sampler.samples()) {
    throw BadInput(fmt::format("--draw: the study's samples are 0 .. {}\n", sampler.samples() - 1));
  }
  return sampler.draw(sample);
}

nlohmann::ordered_json to_json(const DrawReport& report) {
  auto faults = nlohmann::ordered_json::array();
  for (const sweep::DrawnFault& fault : report.draw.faults) {
    nlohmann::ordered_json entry = {{"kind", name_of(fault.kind)}};
    entry[fault.link >= 0 ? "link" : "device"] = fault.link >= 0 ? fault.link : fault.device;
    entry["derate"] = fault.derate;
    faults.push_back(std::move(entry));
  }
  const auto healthy = time_of(report.setting, report.healthy), sick = time_of(report.setting, report.sick);
  nlohmann::ordered_json json = {{"sample", report.draw.sample}, {"faults", std::move(faults)}};
  json["healthy_time_s"] = healthy ? nlohmann::ordered_json(*healthy) : nullptr;
  json["time_s"] = sick ? nlohmann::ordered_json(*sick) : nullptr;
  json["slowdown"] = healthy && sick ? nlohmann::ordered_json(*sick / *healthy - 1) : nullptr;
  return json;
}

void print_draw(std::ostream& out, const DrawReport& report) {
  const network::Fabric fabric(report.setting.system.fabric);
  out << "sample " << report.draw.sample << "\n";
  for (const sweep::DrawnFault& fault : report.draw.faults) {
    out << "  " << name_of(fault.kind) << " at " << place_of(fabric, fault);
    if (row_of(fault.kind).derates) out << ", " << format_percent(fault.derate) << " left";
    out << "\n";
  }
  const auto healthy = time_of(report.setting, report.healthy), sick = time_of(report.setting, report.sick);
  if (healthy && sick) {
    out << "  time " << format_seconds(*sick) << ", healthy " << format_seconds(*healthy) << ", slowdown "
        << format_percent(*sick / *healthy - 1, 3) << '\n';
  } else {
    out << "  no time: " << name_of(report.sick.reason) << "\n";
  }
  out << "\n";
}

}  // namespace shardscape::cli
