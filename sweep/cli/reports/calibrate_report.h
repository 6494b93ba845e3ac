// Output of `calibrate`: tables for people, a JSON document for programs, and the header of the fitted files.
#pragma once

#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "sweep/calibrate/calibrate.h"

namespace shardscape::cli {

void print_calibration(std::ostream& out, const calibrate::Calibration& calibration);
nlohmann::ordered_json calibration_json(const calibrate::Calibration& calibration);

/// The comment at the top of a fitted file: `command`, the data with their numbers of rows, errors before and after. It
/// has no dates and no folders, so that the same fit writes the same file anywhere.
std::vector<std::string> calibration_header(const calibrate::Calibration& calibration,
                                            const std::string& command);

/// Prints the table of constants that can be fitted.
void print_constants(std::ostream& out);

}  // namespace shardscape::cli
