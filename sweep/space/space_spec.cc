#include "sweep/space/space_spec.h"

namespace shardscape::sweep {

const ScheduleRow* SpaceSpec::chunked_schedule() const {
  for (const std::int32_t code : (*this)[PlanKey::schedule].values)
    if (const ScheduleRow& row = row_of(static_cast<ScheduleKind>(code)); row.chunks) return &row;
  return nullptr;
}

std::vector<NamedAxis> named_axes(const SpaceSpec& space, Phase phase) {
  std::vector<NamedAxis> axes;
  const auto add = [&](const PlanAxisRow& row) { axes.push_back({row.column, row, space[row.key]}); };
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind == AxisKind::degree) add(row);
  }
  const bool chunked = space.chunked_schedule() != nullptr;
  for (const PlanAxisRow& row : kPlanRows) {
    const bool dense = is_of_experts(row) && space[row.key].values == std::vector{row.idle};
    const bool idle = dense || (row.key == PlanKey::virtual_stages && !chunked);
    if (is_setting(row) && applies(row.phases, phase) && !idle) add(row);
  }
  if (space.prefill_gpus != std::vector<std::int32_t>{0}) {
    axes.push_back({kPrefillGpus, row_of(PlanKey::prefill_data), {false, space.prefill_gpus}});
    add(row_of(PlanKey::prefill_tensor));
    add(row_of(PlanKey::prefill_pipeline));
    const PlanAxisRow& ffn = row_of(PlanKey::ffn);
    if (space[ffn.key].values != std::vector{ffn.idle}) add(ffn);
  }
  add(row_of(PlanKey::order));
  return axes;
}

std::string study_text(const PlanAxisRow& row, std::int32_t code) {
  if (row.kind == AxisKind::flag) return code != 0 ? "true" : "false";
  return code_text(row, code);
}

}  // namespace shardscape::sweep
