#include "sweep/study/evidence_of.h"

#include <string>
#include <utility>

#include "sweep/evidence/evidence_table.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/specs.h"

namespace shardscape::sweep {

namespace {

/// The spec's name, or nothing where a preset of that name differs from the spec.
template <class Spec>
std::string name_if_as_sold(const Spec& spec, const std::map<std::string, std::string>& presets) {
  const auto found = presets.find(spec.name);
  return found == presets.end() || found->second == yaml::to_yaml(spec) ? spec.name : "";
}

/// A price changes no time.
DeviceSpec without_price(DeviceSpec device) {
  device.price_per_hour = 0;
  return device;
}

}  // namespace

void attach_evidence(const yaml::Catalog& catalog, Study& study, yaml::Diagnostics& diagnostics) {
  const auto file = evidence::find_evidence(catalog);
  if (!file) return;
  auto table = evidence::read_evidence(*file);
  if (!table) return diagnostics.append(table.error());
  study.measured = std::make_shared<const evidence::Table>(*std::move(table));
  for (const System& system : study.systems) {
    const std::string& device = system.device.name;
    if (!yaml::is_path(device) && study.device_presets.emplace(device, "").second) {
      const auto preset = yaml::load_device(catalog, device);
      if (preset) study.device_presets[device] = yaml::to_yaml(without_price(*preset));
    }
    const std::string& stack = system.stack.name;
    if (!yaml::is_path(stack) && study.stack_presets.emplace(stack, "").second) {
      const auto preset = yaml::load_stack(catalog, stack);
      if (preset) study.stack_presets[stack] = yaml::to_yaml(StackProfile(*preset));
    }
  }
  const auto none = [](const auto& entry) { return entry.second.empty(); };
  std::erase_if(study.device_presets, none);
  std::erase_if(study.stack_presets, none);
}

evidence::Regime regime_of(const Study& study, std::size_t setting) {
  const System& system = study.systems[setting / study.workloads.size()];
  const WorkloadSpec& workload = study.workload_of(setting);
  return {workload.phase,
          name_if_as_sold(without_price(system.device), study.device_presets),
          evidence::own_name(workload.precision),
          evidence::model_kind(study.model),
          name_if_as_sold(system.stack, study.stack_presets),
          study.gpus_of(setting),
          system.device.sustained != DeviceSpec::Sustained() || system.device.steps_by_energy(),
          study.sheet_devices.contains(system.device.name)};
}

bool same_regime(const Study& study, std::size_t a, std::size_t b) {
  const std::size_t workloads = study.workloads.size();
  return a / workloads == b / workloads &&
         study.workloads[a % workloads].precision == study.workloads[b % workloads].precision;
}

evidence::Finding assess_setting(const Study& study, std::size_t setting) {
  return evidence::assess(study.measured.get(), regime_of(study, setting));
}

}  // namespace shardscape::sweep
