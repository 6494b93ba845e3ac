#include "sweep/cli/reports/simulate_report.h"

#include <fmt/format.h>

#include <optional>

#include "engine/base/safe_text.h"
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

void add_slowdown(const Setting& setting, const Prediction& healthy, const Prediction& sick,
                  nlohmann::ordered_json& json) {
  const auto before = time_of(setting, healthy), after = time_of(setting, sick);
  json["healthy_time_s"] = before ? nlohmann::ordered_json(*before) : nullptr;
  json["time_s"] = after ? nlohmann::ordered_json(*after) : nullptr;
  json["slowdown"] = before && after ? nlohmann::ordered_json(*after / *before - 1) : nullptr;
}

void print_slowdown(std::ostream& out, const Setting& setting, const Prediction& healthy,
                    const Prediction& sick) {
  const auto before = time_of(setting, healthy), after = time_of(setting, sick);
  if (before && after) {
    out << "  time " << format_seconds(*after) << ", healthy " << format_seconds(*before) << ", slowdown "
        << format_percent(*after / *before - 1, 3) << "\n\n";
  } else {
    out << "  no time: " << name_of(sick.reason) << "\n\n";
  }
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
  nlohmann::ordered_json json = {{"sample", report.draw.sample}, {"faults", std::move(faults)}};
  add_slowdown(report.setting, report.healthy, report.sick, json);
  return json;
}

void add_faults(const std::vector<std::string>& faults, const Setting& setting, const Prediction& healthy,
                const Prediction& sick, nlohmann::ordered_json& json) {
  if (faults.empty()) return;
  json["faults"]["given"] = faults;
  add_slowdown(setting, healthy, sick, json["faults"]);
}

void print_draw(std::ostream& out, const DrawReport& report) {
  const network::Fabric fabric(report.setting.system.fabric);
  out << "sample " << report.draw.sample << "\n";
  for (const sweep::DrawnFault& fault : report.draw.faults) {
    out << "  " << name_of(fault.kind) << " at " << place_of(fabric, fault);
    if (row_of(fault.kind).derates) out << ", " << format_percent(fault.derate) << " left";
    out << "\n";
  }
  print_slowdown(out, report.setting, report.healthy, report.sick);
}

void print_faults(std::ostream& out, const std::vector<std::string>& faults, const Setting& setting,
                  const Prediction& healthy, const Prediction& sick) {
  if (faults.empty()) return;
  out << "faults\n";
  for (const std::string& fault : faults) out << "  " << printable(fault) << '\n';
  print_slowdown(out, setting, healthy, sick);
}

}  // namespace shardscape::cli
