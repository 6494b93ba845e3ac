// One search over the table of axes, by both of their names.
#include "sweep/space/axis_names.h"

namespace shardscape::sweep {

const PlanAxisRow* find_axis(std::string_view name) {
  constexpr std::string_view kSection = "space.";
  if (name.starts_with(kSection)) name.remove_prefix(kSection.size());
  for (const PlanAxisRow& row : kPlanRows)
    if (row.name == name || row.column == name) return &row;
  return nullptr;
}

}  // namespace shardscape::sweep
