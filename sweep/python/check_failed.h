#pragma once

#include <string>

namespace shardscape::python {

/// What a failed check of the engine throws, in place of ending the interpreter. Not a std::exception, so that no
/// handler of failures takes it for one.
struct CheckFailed {
  std::string what;
};

}  // namespace shardscape::python
