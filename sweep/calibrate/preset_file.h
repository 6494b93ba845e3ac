// Writes fitted presets as YAML: the original file with new values in its lines, so that people's comments stay.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sweep/calibrate/calibrate.h"
#include "sweep/yaml/catalog.h"

namespace shardscape::calibrate {

/// A value to write: its path inside the file, its text with unit, and the note behind it.
struct Edit {
  std::string path;
  std::string text;
  std::string note;
};

/// Edits for the constants whose values have changed, of the stack or of the device.
std::vector<Edit> edits(const Calibration& calibration, yaml::PresetKind kind);

/// The text with the values of `edits` in place and `note; ` before the comments of their lines (replacing an earlier
/// note of the same sort). A key that does not exist becomes the first of its group. Nothing where there is no such
/// group.
std::optional<std::string> edit_lines(const std::string& text, std::span<const Edit> edits);

/// The file of the fitted stack (or device): `header` as a comment, one line each, in place of the header of an earlier
/// calibration; then the lines of `original` with changed values. If that does not read back as exactly
/// `calibration.after`, every key is written anew, without the comments of the original.
std::string preset_text(const Calibration& calibration, yaml::PresetKind kind, const std::string& original,
                        std::span<const std::string> header);

}  // namespace shardscape::calibrate
