// The fields that a spec's validate() complains about.
#pragma once

#include <string>

#include "engine/base/problems.h"

namespace shardscape::test {

inline std::string fields(const Problems& problems) {
  std::string text;
  for (const Problem& problem : problems.list()) text += (text.empty() ? "" : " ") + problem.field;
  return text;
}

/// "a b.c": in the order of the complaints, one entry each; "" for a valid spec.
template <class Spec>
std::string violations(const Spec& spec) {
  return fields(spec.validate());
}

}  // namespace shardscape::test
