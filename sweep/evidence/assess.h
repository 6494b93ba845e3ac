// Estimates the error to expect of a prediction from what measurements have shown of other predictions.
//
// The nearest cells of the evidence decide. Near is what differs in little that matters: each difference of
// regime adds a spread of its own to what the cell has shown, as independent errors do, and the cells that add
// least are taken. A cell of few plans says little about its own spread, so it leans on the others of its
// stack, and these on those of the phase.
#pragma once

#include <string>
#include <vector>

#include "engine/base/enum_array.h"
#include "engine/spec/assessment.h"
#include "engine/spec/plan.h"
#include "sweep/evidence/evidence_table.h"

namespace shardscape::evidence {

/// Relative errors of one sigma that a difference adds, 0..1. Provenance: the spread with which 76 % of rows lie within
/// one sigma whose device (precision, stack, kind of model) the evidence has no rows of: 172 rows of training and 1,027
/// of inference by device, 125 and 873 by precision, 591 and 1,003 by stack, 78 and 629 by kind of model. 76 % and not
/// 68 %, since constants were fitted on rows of all of them. In training a model of another kind would need no more
/// than 0.02; it has operators that no row has timed, so its error is set higher than that of another stack.
struct Widening {
  double device = 0, precision = 0, model_kind = 0, stack = 0;
};
inline constexpr EnumArray<Phase, Widening> kWidening = {
    {Widening{0.05, 0.03, 0.10, 0.07}, Widening{0.11, 0.17, 0.16, 0.10}}};  // training, inference

/// What it adds that a device is known by its data sheet alone, in place of Widening::device: shares of peaks that are
/// typical of others are up to a third off (hw_presets/README.md).
inline constexpr double kTypicalShares = 0.25;

/// What each doubling of the GPUs beyond those measured adds: half of what Llama 3 405B loses from 8,192 to 16,384 GPUs
/// (Dubey et al. 2024, arXiv:2407.21783, table 4: MFU 43 and 41 %), as part of it is predicted.
inline constexpr double kDoubling = 0.02;

/// No prediction is known better than runs repeat: the same plan over releases and cluster sizes deviates 1.9 %
/// in the mean in public training tables.
inline constexpr double kNoise = 0.02;

/// A cell of this many plans weighs as much in its own estimate as the rest of its phase. With 2, 83 % of the rows of
/// training of 2023 to 2026 lay within one sigma when their plans were held out, with 0.5 76 %; of all rows, 66 % in
/// both cases.
inline constexpr double kPriorPlans = 1;

struct Finding {
  Assessment assessment;
  std::vector<EvidenceGap> gaps;     ///< widest first
  std::int64_t rows = 0, plans = 0;  ///< numbers of rows and plans of the nearest cells
  std::int64_t gpus_low = 0, gpus_high = 0;
  Degrees most;         ///< largest degrees among the rows of the stack; where it has none, of the phase
  std::string nearest;  ///< one of those cells in words: "a100-sxm-80gb, bf16, dense, megatron-lm"
};

/// Finds the cells that are nearest to a regime, and the error to expect there. `table` null: there is no evidence
/// file. Nothing is known of a device that no row was measured on and that does not say what it sustains; more GPUs
/// than any row of the phase, of the device or of the stack had are never near. Pure; linear in the number of cells.
Finding assess(const Table* table, const Regime& regime);

/// Assesses one plan of the regime that `finding` is about. Nothing is known where one of its degrees is larger than in
/// any row of its stack (of the phase, where the stack has no rows).
Assessment assess_plan(const Finding& finding, const ParallelPlan& plan);
/// Names that degree and the largest one measured: "no rows of tp=64, 16 at most"; empty where no degree is larger.
std::string larger_degree(const Finding& finding, const ParallelPlan& plan);

/// Half a sentence: "11 rows of 11 plans on a100-sxm-80gb, bf16, dense, megatron-lm, 8 to 512 GPUs", "no rows of
/// device tpu-v5; nearest: ...".
std::string reason(const Finding& finding, const Regime& regime);

}  // namespace shardscape::evidence
