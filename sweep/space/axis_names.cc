// One search over the table of axes, by both of their names.
#include "sweep/space/axis_names.h"

#include <algorithm>

namespace shardscape::sweep {

std::string without_path(std::string_view name) {
  std::string plain(name);
  for (const std::string_view section : {"space.", "workload.", "hardware."})
    if (plain.starts_with(section)) plain.erase(0, section.size());
  std::ranges::replace(plain, '.', '_');
  return plain;
}

const PlanAxisRow* find_axis(std::string_view name) {
  constexpr std::string_view kSpace = "space.";
  if (name.starts_with(kSpace)) name.remove_prefix(kSpace.size());
  for (const PlanAxisRow& row : kPlanRows)
    if (row.name == name || row.column == name) return &row;
  return nullptr;
}

}  // namespace shardscape::sweep
