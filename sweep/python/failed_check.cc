// What a failed check of the engine does inside the interpreter. A file of its own, compiled alone: what calls it is
// compiled as if it might be missing.
#include "engine/base/check.h"
#include "sweep/python/check_failed.h"

namespace shardscape {

void on_failed_check(const std::string& message) { throw python::CheckFailed{message}; }

}  // namespace shardscape
