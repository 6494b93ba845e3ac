// What the rows of a table of plans say of predictions like them.
#pragma once

#include <vector>

#include "sweep/evidence/summarise.h"
#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

/// One residual for each row of plans that was measured and predicted: of the step, of a token (ITL), or, where
/// that was not measured, of the whole request. Other tables have none: kernels are no whole steps.
std::vector<evidence::Residual> residuals(const Evaluation& evaluation);

}  // namespace shardscape::validate
