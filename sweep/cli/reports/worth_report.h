// What further units of the numbers of a machine are worth, of `simulate --worth` and of the explorer's page.
#pragma once

#include <ostream>

#include "sweep/cli/reports/report.h"
#include "sweep/explorer/worth_of_numbers.h"

namespace shardscape::cli {

/// {"base_s", "worth": [{"key", "unit_text", "more_s", "less_s", "per_unit_s"}]}. A time that there is none of is null;
/// per_unit_s is left out where there is none.
Json to_json(const explorer::WorthOfNumbers& worth);

/// The numbers that move the time, the strongest first, and how many do not. `share`: by which they were moved.
void print_worth(std::ostream& out, const explorer::WorthOfNumbers& worth, double share);

}  // namespace shardscape::cli
