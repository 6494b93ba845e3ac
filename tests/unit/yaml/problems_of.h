// How tests name an expected problem: its exact place and path, and a telling part of its message.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sweep/yaml/diagnostics.h"

namespace shardscape::yaml {

/// True where some diagnostic stands at `place` ("file:line:column: path") and its message contains `gist`.
inline ::testing::AssertionResult reports(const Diagnostics& diagnostics, const std::string& place,
                                          const std::string& gist) {
  const bool found = std::ranges::any_of(diagnostics.list(), [&](const Diagnostic& d) {
    std::string where = to_string(d.where);
    if (!d.path.empty()) where += ": " + d.path;
    return where == place && d.message.find(gist) != std::string::npos;
  });
  if (found) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "no \"" << gist << "\" at " << place << " among:\n"
                                       << diagnostics.to_string();
}

}  // namespace shardscape::yaml
