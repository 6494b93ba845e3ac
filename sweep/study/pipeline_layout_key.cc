#include "sweep/study/study_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/spec/pipeline_layout.h"
#include "sweep/yaml/value.h"

namespace shardscape::sweep {

namespace {

/// Whether a text is a layout rather than the name of a rule.
bool is_layout(const std::string& text) {
  return text.find_first_of("|(*") != std::string::npos || text.find('E') != std::string::npos;
}

std::string rule_names() {
  std::string names;
  for (const std::string_view name : enum_names<PartitionRule>())
    names.append(names.empty() ? "" : ", ").append(name);
  return names;
}

/// Whether some plan of the space has so many stages, where chunks count as stages.
bool reaches(const SpaceSpec& space, std::int64_t stages) {
  const AxisList& pipeline = space[PlanKey::pipeline];
  if (pipeline.fill) return true;
  const auto has = [&](std::int32_t chunks) {
    return std::ranges::any_of(pipeline.values,
                               [&](std::int64_t degree) { return degree * chunks == stages; });
  };
  if (has(1)) return true;
  return space.chunked_schedule() != nullptr &&
         std::ranges::any_of(space[PlanKey::virtual_stages].values, has);
}

}  // namespace

void read_pipeline_layout(const yaml::Node& node, StackProfile& stack, yaml::Diagnostics& diagnostics) {
  const auto bad = [&](const std::string& message) { diagnostics.add(node.where, kPipelineLayout, message); };
  const auto text = yaml::scalar_text(node, "the name of a rule, or a layout such as \"Et*3|(tt|)*29,m|L\"");
  if (!text) return bad(text.error());
  if (const auto rule = parse_enum<PartitionRule>(*text)) {
    stack.partition = *rule;
    stack.pipeline_layout.clear();
    return;
  }
  if (!is_layout(*text)) {
    return bad('"' + *text + "\" is neither a rule (" + rule_names() +
               ") nor a layout such as \"Et*3|(tt|)*29,m|L\"");
  }
  const auto layout = read_layout(*text);
  if (!layout) return bad(layout.error());
  stack.pipeline_layout = *text;
}

std::string layout_problem(const StackProfile& stack, const ModelSpec& model, const SpaceSpec& space) {
  if (stack.pipeline_layout.empty()) return {};
  const auto layout = read_layout(stack.pipeline_layout);
  if (!layout) return layout.error();
  if (layout->layers() != model.layers) {
    return fmt::format("has {} layers (t), but {} has {}", layout->layers(), model.name, model.layers);
  }
  const std::int64_t modules = model.moe ? model.moe->mtp_layers : 0;
  if (layout->further() != modules) {
    return fmt::format("has {} modules of further tokens (m), but {} has {}", layout->further(), model.name,
                       modules);
  }
  const auto stages = static_cast<std::int64_t>(layout->stages.size());
  if (reaches(space, stages)) return {};
  return fmt::format(
      "has {} stages (one more than it has |), but no plan has pipeline_parallel * virtual_stages = {}",
      stages, stages);
}

}  // namespace shardscape::sweep
