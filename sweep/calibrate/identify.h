// What the data can and cannot say about each parameter of a fit.
//
// With F the information of the data and unit priors, C = (F + I)^-1 is the covariance that is left. A
// parameter is identified where the data leave less than kNarrowed of its prior's width, sqrt(C_jj), and
// it is neither at an end of its range nor tied to another: |correlation| of the data alone (F^-1) above
// kTied. What is not identified has one verdict, the first that holds:
//   at_bound  the fit ended at an end of the range: the data ask for more than is physical
//   silent    F_jj alone leaves more than kNarrowed of the width, all others known
//   tied      only a combination with `with` is seen
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/enum_names.h"

namespace shardscape::calibrate {

/// Largest share of the prior's width that may be left: the data then say at least as much about a parameter as the
/// prior does, as half of the prior's variance goes.
inline constexpr double kNarrowed = 0.7071067811865476;
inline constexpr double kTied = 0.99;

enum class Verdict : std::uint8_t { identified, silent, at_bound, tied };

struct Judgement {
  Verdict verdict = Verdict::identified;
  double deviation = 1;  ///< sqrt(C_jj), the share of the prior's width that is left
  /// The parameter with the strongest correlation (data and priors) to this one; itself where there is no other.
  std::size_t with = 0;
  double correlation = 0;  ///< correlation of this parameter and `with`
};

/// Judges each parameter. `information`: row-major, as Fit::information. All lists have one element per parameter.
std::vector<Judgement> judge(std::span<const double> information, std::span<const double> point,
                             std::span<const double> low, std::span<const double> high);

/// sqrt(C_jj) in prior widths, if errors are `ratio` times as large as the information assumes.
std::vector<double> deviations(std::span<const double> information, std::size_t parameters, double ratio);

/// The unidentified parameters that should go back to their priors before the others are fitted again: all silent ones;
/// if none, the one at a bound that pulls hardest on the least information (the largest |point|); if none, the tied one
/// with the largest deviation. Empty where all are identified.
std::vector<std::size_t> to_give_up(std::span<const Judgement> judgements, std::span<const double> point);

}  // namespace shardscape::calibrate
