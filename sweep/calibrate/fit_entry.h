// Where fit() and its module meet. Private to this folder.
#pragma once

#include "sweep/calibrate/fit.h"

namespace shardscape::calibrate {

inline constexpr const char* kFitModule = "shardscape_fit.so";
/// The number changes with fit.h.
inline constexpr const char* kFitEntry = "shardscape_fit_1";
using FitEntry = void(const FitProblem& problem, Fit& found);

}  // namespace shardscape::calibrate
