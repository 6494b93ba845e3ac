// Fitted presets as YAML: the file they came from with new values in its lines, so that what people wrote
// there stays.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "sweep/calibrate/calibrate.h"
#include "sweep/yaml/diagnostics.h"

namespace shardscape::calibrate {

/// One value to write: path inside the file, text with unit, and what is noted behind it.
struct Edit {
  std::string path;
  std::string text;
  std::string note;
};

/// The constants that have another value than before, of the stack or of the device.
std::vector<Edit> edits(const Calibration& calibration, bool of_device);

/// The text with the values of `edits` in place and `note; ` before the comment of their lines (an earlier
/// note of the same sort gives way). A key that is not there becomes the first of its group. Nothing where
/// there is no such group.
std::optional<std::string> edit_lines(const std::string& text, std::span<const Edit> edits);

/// The file of the fitted stack (or device): `header` as a comment, one line each, in place of the header of
/// an earlier calibration, then the lines of `original` with their values changed. Where that does not read
/// back as exactly `calibration.after`, every key is written anew and the comments of the original are gone.
std::string preset_text(const Calibration& calibration, bool of_device, const std::string& original,
                        std::span<const std::string> header);

}  // namespace shardscape::calibrate
