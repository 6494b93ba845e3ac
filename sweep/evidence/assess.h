// Estimates the error to expect of a prediction from what measurements have shown of other predictions.
//
// The nearest cells of the evidence decide. Near is what differs in little that matters: each difference of
// regime adds a spread of its own to what the cell has shown, as independent errors do, and the cells that add
// least are taken. A cell of few plans says little about its own spread, so it leans on the others of its phase.
#pragma once

#include <string>
#include <vector>

#include "engine/spec/assessment.h"
#include "engine/spec/plan.h"
#include "sweep/evidence/evidence_table.h"

namespace shardscape::evidence {

/// Relative errors of one sigma that a difference adds, 0..1. Provenance: mean errors of profiles on public tables that
/// they had not seen. Where the stack alone differs: 17 % (MPT on H100 with a profile of Megatron; on A100 23 %, NeMo
/// on H100 32 %, before stacks had attention kernels of their own). Where the device differs but its software is known:
/// 4 to 13 % (collectives; B200 with kernels of Hopper 24 %, which each architecture now has). Where the precision
/// differs: 5 to 10 % (fp8 on H100). The lower half of each is taken: with the values above, 0.15, 0.10 and 0.22, 89 %
/// of the rows of models held out lay within one sigma where their regime went with the model. A model of another kind
/// has operators that no row has timed; its error is set higher than that of another stack.
struct Widening {
  double device = 0.10, precision = 0.08, model_kind = 0.22, stack = 0.17;
  /// With each doubling of the GPUs beyond those measured: half of what Llama 3 405B loses from 8,192 to 16,384
  /// GPUs (Dubey et al. 2024, arXiv:2407.21783, table 4: MFU 43 and 41 %), as part of it is predicted.
  double doubling = 0.02;
};
inline constexpr Widening kWidening;

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
/// than any row of the phase had are never near. Pure; linear in the number of cells.
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
