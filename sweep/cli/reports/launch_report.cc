#include "sweep/cli/reports/launch_report.h"

#include <fmt/format.h>

#include "engine/base/safe_text.h"
#include "engine/spec/plan_axes.h"
#include "sweep/cli/command.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/space/point_text.h"
#include "sweep/study/placement_axis.h"
#include "sweep/yaml/catalog.h"
#include "sweep/yaml/node.h"

namespace shardscape::cli {

namespace {

/// The name of the study's checkpoint: the one that the study means, or the first of its preset's names with a slash.
std::string checkpoint_of(const sweep::Study& study) {
  for (const sweep::SourceText& source : study.sources) {
    if (!source.name.starts_with("models/")) continue;
    yaml::Diagnostics ignored;
    const auto node = yaml::parse(source.text, source.name, ignored);
    if (!node) continue;
    if (const yaml::Node* const named = yaml::also_entry(*node, study.checkpoint))
      return printable(yaml::also_name(*named));
    if (!study.checkpoint.empty()) continue;
    const yaml::Node* const names = node->find("also");
    for (const yaml::Node& name : names != nullptr ? names->items : std::vector<yaml::Node>())
      if (name.text.find('/') != std::string::npos) return printable(name.text);
  }
  return printable(study.checkpoint.empty() ? study.model_name : study.checkpoint);
}

/// All axes of a plan, as --point takes them whatever a study has first.
std::string whole_point(const ParallelPlan& plan, Phase phase) {
  std::string text;
  for (const PlanAxisRow& row : kPlanRows) {
    if (!applies(row.phases, phase) || (is_of_prefill(row) && !plan.disaggregated())) continue;
    text += fmt::format("{}{}={}", text.empty() ? "" : ",", row.name, code_text(row, row.get(plan)));
  }
  return text;
}

}  // namespace

PlanLaunch plan_launch(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                       const launch::Framework& framework, std::int64_t gpus_per_node) {
  const ParallelPlan whole = with_replicas(plan, setting.model, setting.system.stack.serving);
  const std::int64_t node = gpus_per_node > 0 ? gpus_per_node : launch::usual_gpus_per_node(setting.system);
  const std::string point = sweep::to_point_text(plan, setting.workload.phase);
  PlanLaunch made{
      framework,
      printable(fmt::format("{}: {} on {} x {}, {} in a node", study.title, point,
                            format_count(setting.system.fabric.size()), setting.system.device.name, node)),
      point, launch::write_launch(framework, {setting, whole, node, checkpoint_of(study)})};
  if (sweep::placement_of(study, 0) == sweep::PlacementChoice::optimised)
    made.launch.not_expressed.push_back({"placement", "optimised", "ranks lie in the order of the plan"});
  return made;
}

std::string launch_line(const sweep::Study& study, const Setting& setting, const ParallelPlan& plan,
                        const std::vector<std::string>& study_words, const std::string& id) {
  const Phase phase = setting.workload.phase;
  const launch::Framework& framework = launch::nearest_framework(setting.system.stack, phase);
  const launch::Launch made = plan_launch(study, setting, plan, framework).launch;
  if (!made.refused.empty()) return "none: " + printable(made.refused.front());
  std::vector<std::string> words = {"shardscape", "launch"};
  words.insert(words.end(), study_words.begin(), study_words.end());
  words.insert(words.end(),
               {"--point", id.empty() ? whole_point(plan, phase) : id, "--for", std::string(framework.name)});
  return shell_line(words);
}

Json to_json(const PlanLaunch& made) {
  Json json = {{"for", made.framework.name}, {"version", made.framework.version}, {"point", made.point}};
  json["status"] = made.status;
  json["reason"] = made.reason;
  json["memory_tight"] = made.tight;
  json["files"] = Json::array();
  for (const launch::LaunchFile& file : made.launch.files)
    json["files"].push_back({{"name", file.name}, {"text", file.text}});
  json["command"] = made.launch.command;
  json["not_expressed"] = Json::array();
  for (const launch::NotExpressed& one : made.launch.not_expressed)
    json["not_expressed"].push_back({{"what", one.what}, {"value", one.value}, {"why", one.why}});
  return json;
}

void print_launch(std::ostream& out, const PlanLaunch& made, bool files) {
  if (!made.misfit.empty() && files) out << "# " << made.misfit << '\n';
  out << "# " << made.what << "; for " << made.framework.title << ", as of " << made.framework.version
      << '\n';
  for (const std::string& note : made.memory) out << "# " << note << '\n';
  if (!made.launch.not_expressed.empty()) out << "# not expressed:\n";
  for (const launch::NotExpressed& one : made.launch.not_expressed)
    out << "#   " << printable(fmt::format("{} = {}: {}", one.what, one.value, one.why)) << '\n';
  if (!files) return;
  for (const launch::LaunchFile& file : made.launch.files)
    out << "cat > " << file.name << " <<'END_OF_FILE'\n" << file.text << "END_OF_FILE\n";
  out << made.launch.command;
}

}  // namespace shardscape::cli
