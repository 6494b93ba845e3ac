#include "sweep/yaml/preset_specs.h"

namespace shardscape::yaml {

namespace {

/// Whether a text is a month of the form YY.MM.
bool is_month(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 5 && text[2] == '.' && digit(text[0]) && digit(text[1]) && digit(text[3]) &&
         digit(text[4]) && text.substr(3) >= "01" && text.substr(3) <= "12";
}

}  // namespace

void StackTables::validate(Problems& problems) const {
  problems.require(usual_zero_stage >= 0 && usual_zero_stage <= 3, "usual_zero_stage", "is 0..3");
  problems.require(software_of.empty() || !software.empty(), "software",
                   "must name the software whose runs from these sources the profile is meant of");
  problems.require(expert_software_from.empty() || is_month(expert_software_from), "expert_software_from",
                   "is a release by year and month, such as 26.06");
  const bool narrowed = !expert_software_from.empty() || expert_software_on != Architecture::other;
  problems.require(!narrowed || !expert_software.empty(), "expert_software",
                   "must name the software whose release or architecture the profile is meant of");
}

Problems StackPreset::validate() const {
  Problems problems = StackProfile::validate();
  tables.validate(problems);
  return problems;
}

}  // namespace shardscape::yaml
