// The ranges of every kind of number, once: each spec's validate() holds its fields against them, and so do
// the readers of what has no spec (cases, tables, the command line). What-ifs are validated like files.
//
// They are far wider than anything that is built, and narrow enough that what is computed from them stays
// finite and counts stay whole: the products of a model (10^15 parameters) over a batch (10^9 samples of 10^9
// tokens, squared in attention) are below 10^60, the slowest device that passes does 10^-12 operations a
// second, and doubles reach 10^308; no product of extents of one matrix that is taken in integers exceeds
// 2^62.
#pragma once

#include "engine/base/range.h"

namespace shardscape::ranges {

// Physical quantities.
inline constexpr Range kTime = or_zero({1e-15, 1e9, "s"});  ///< a latency or a cost, perhaps none
inline constexpr Range kPositiveTime{1e-15, 1e9, "s"};      ///< something that takes time
inline constexpr Range kInterval{1e-6, 1e12, "s"};          ///< between two failures or two checkpoints
inline constexpr Range kClock{1e3, 1e12, "Hz"};
inline constexpr Range kCapacity{1, 1e18, "B"};
inline constexpr Range kBytes = or_zero({1, 1e18, "B"});  ///< perhaps none
/// A message on the wire; only models have parts of a byte.
inline constexpr Range kMessage{1e-6, 1e18, "B"};
inline constexpr Range kBandwidth{1, 1e18, "B/s"};
inline constexpr Range kPower{1e-3, 1e9, "W"};
inline constexpr Range kArea{1e-9, 1, "m2"};
inline constexpr Range kSramCell{1e-18, 1e-9, "m2"};
inline constexpr Range kLength{1e-9, 10, "m"};
inline constexpr Range kEnergyPerBit{1e-18, 1, "J/b"};

// Shares and fractions.
inline constexpr Range kShare{1e-6, 1};  ///< a share that is achieved or left, which is never zero
inline constexpr Range kFraction{0, 1};  ///< a fraction that may be zero
/// A probability below 1, which would leave nothing.
inline constexpr Range kProbability{.low = 0, .high = 1, .below_high = true};

// Parts of a device.
inline constexpr Range kUnits{1, 1e6};        ///< numbers of SMs or of stacks
inline constexpr Range kPerClock{1e-3, 1e9};  ///< operations or bytes per unit and clock
inline constexpr Range kPerClockOrNone = or_zero({1e-3, 1e9});
inline constexpr Range kClocks{0, 1e9};
inline constexpr Range kFragment{1, 4096};
inline constexpr Range kCluster{1, 1024};
inline constexpr Range kPicojoulesIfKnown = or_zero({1e-6, 1e6, "pJ"});
inline constexpr Range kOfAnother{1e-3, 10};  ///< energy of a type relative to another type's

// Facts of a data sheet that change no prediction; 0 where they are not known.
inline constexpr Range kPowerIfKnown = or_zero({1e-3, 1e9, "W"});
inline constexpr Range kDieAreaIfKnown = or_zero({1e-3, 1e6, "mm2"});
inline constexpr Range kProcessIfKnown = or_zero({1e-2, 1e6, "nm"});
inline constexpr Range kPortsIfKnown = or_zero({1, 1e6});
inline constexpr Range kPriceIfKnown = or_zero({1e-9, 1e9});
inline constexpr Range kBandwidthIfKnown = or_zero({1, 1e18, "B/s"});

// Extents of a model and its load.
inline constexpr Range kLayers{1, 1e5};
inline constexpr Range kHidden{1, 1e7};
inline constexpr Range kHeads{1, 1e6};
inline constexpr Range kHeadDim{1, 1e6};
inline constexpr Range kRankOrNone = or_zero({1, 1e7});  ///< width of a latent vector, perhaps none
inline constexpr Range kExperts{1, 1e6};
inline constexpr Range kSplitBatches{1, 64};
inline constexpr Range kExpertsOrNone = or_zero({1, 1e6});
inline constexpr Range kCapacityFactor = or_zero({1, 1e3});  ///< 0 means dropless
inline constexpr Range kLoadExponent{0, 10};
inline constexpr Range kFurtherTokens = or_zero({1, 100});
inline constexpr Range kRows{1, 1e9};  ///< rows of an embedding or a position table, or the width of an MLP
inline constexpr double kMostParameters = 1e15;
inline constexpr Range kTokens{1, 1e9};
inline constexpr Range kTokensOrAll = or_zero({1, 1e9});  ///< a window; 0: all tokens
inline constexpr Range kSamples{1, 1e9};
inline constexpr Range kRequests{1, 1e6};  ///< limited because a server is simulated request by request

// Software.
inline constexpr Range kBytesPerParameter{0, 1e3};
inline constexpr Range kScaling{0.01, 1};  ///< its power log2(nodes), at most 30, must stay above zero
inline constexpr Range kBucket{1024, 1e18, "B"};
inline constexpr Range kBucketOrDefault = or_zero({1024, 1e18, "B"});
inline constexpr Range kOverhead{1, 1e3};
inline constexpr Range kTimesOfPeak{
    0, 10};  ///< a time over that at the memory's peak rate, or passes over a tensor
inline constexpr Range kBytesOfWeight{0, 100};  ///< traffic per weight of a product
inline constexpr Range kSms{1, 1000};           ///< SMs that kernels of a library run on
inline constexpr Range kSmsOrNone{0, 1000};
inline constexpr Range kMicrobatchesOrAll{0, 1e6};  ///< 0: all

// Ranges of random distributions and of measurements.
inline constexpr Range kWeight{1e-9, 1e9};
/// Alpha and beta of a distribution; larger ones make quantiles noise.
inline constexpr Range kShape{1e-3, 1e6};
inline constexpr Range kMean{-1e6, 1e6};
inline constexpr Range kDeviation{1e-6, 1e6};
inline constexpr Range kMeasured{1e-15, 1e18};

}  // namespace shardscape::ranges
