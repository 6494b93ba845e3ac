// Turns the rows of a table of plans into residuals, from which errors of similar predictions are estimated.
#pragma once

#include <vector>

#include "sweep/evidence/summarise.h"
#include "sweep/validate/evaluation.h"

namespace shardscape::validate {

/// One residual for each row that was measured and predicted: of the step, of a token (ITL), or, if neither was
/// measured, of the whole request. Tables that are not of plans give none, as kernels are no whole steps.
std::vector<evidence::Residual> residuals(const Evaluation& evaluation);

}  // namespace shardscape::validate
