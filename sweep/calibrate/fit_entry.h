// The interface between fit() and its module. Private to this folder.
#pragma once

#include "sweep/calibrate/fit.h"

namespace shardscape::calibrate {

inline constexpr const char* kFitModule = "shardscape_fit.so";
/// The number in the name must change whenever fit.h changes.
inline constexpr const char* kFitEntry = "shardscape_fit_1";
using FitEntry = void(const FitProblem& problem, Fit& found);

}  // namespace shardscape::calibrate
