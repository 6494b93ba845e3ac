// Writes fitted presets: locates each value in the original text, replaces it in its line with a note, and falls back
// to writing every key anew where the result does not read back as the calibration.
#include "sweep/calibrate/preset_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "engine/base/words.h"
#include "sweep/yaml/node.h"
#include "sweep/yaml/specs.h"

namespace shardscape::calibrate {

namespace {

constexpr std::string_view kHeaderStart = "# Fitted: ";
constexpr std::string_view kHeaderMore = "#   ";
constexpr std::string_view kNote = "fitted";

std::string join_lines(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

std::string without_old_header(const std::string& text) {
  std::vector<std::string> lines = split_lines(text);
  if (lines.empty() || !lines[0].starts_with(kHeaderStart)) return text;
  auto end = lines.begin() + 1;
  while (end != lines.end() && end->starts_with(kHeaderMore)) ++end;
  lines.erase(lines.begin(), end);
  return join_lines(lines);
}

/// The rest of a line behind its value (blanks and comment), with the note put in front of the comment.
std::string noted(const std::string& rest, const std::string& note) {
  const std::size_t sign = rest.find('#');
  if (sign == std::string::npos) return rest + "  # " + note;
  std::size_t begin = rest.find_first_not_of(' ', sign + 1);
  std::string comment = begin == std::string::npos ? "" : rest.substr(begin);
  if (comment.starts_with(kNote)) {
    const std::size_t end = comment.find("; ");
    comment = end == std::string::npos ? "" : comment.substr(end + 2);
  }
  const std::string gap = rest.substr(0, sign).empty() ? " " : rest.substr(0, sign);
  return gap + "# " + note + (comment.empty() ? "" : "; " + comment);
}

struct Change {
  std::size_t line = 0;  ///< counted from 0
  std::size_t column = 0, length = 0;
  std::string text, note;
  bool insert = false;
};

std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  std::size_t begin = 0;
  for (std::size_t dot = 0; dot != std::string::npos; begin = dot + 1) {
    dot = path.find('.', begin);
    keys.push_back(path.substr(begin, dot == std::string::npos ? dot : dot - begin));
  }
  return keys;
}

std::size_t from_zero(int counted_from_one) { return static_cast<std::size_t>(counted_from_one - 1); }

std::optional<Change> locate(const yaml::Node& root, const Edit& edit) {
  const std::vector<std::string> keys = keys_of(edit.path);
  const yaml::Node* group = &root;
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    group = group->find(keys[i]);
    if (group == nullptr || !group->is_map()) return std::nullopt;
  }
  Change change{0, 0, 0, edit.text, edit.note};
  if (const yaml::Node* value = group->find(keys.back())) {
    if (!value->is_scalar() || value->quoted) return std::nullopt;
    change.line = from_zero(value->where.line);
    change.column = from_zero(value->where.column);
    change.length = value->text.size();
    return change;
  }
  if (group->entries.empty()) return std::nullopt;
  const yaml::Location& first = group->entries.front().key_where;
  // The position of a map in braces is its brace, that of any other map its first key.
  const bool braces = group->where.line != first.line || group->where.column != first.column;
  change.line = from_zero(first.line);
  change.column = from_zero(first.column);
  change.text = keys.back() + ": " + edit.text + (braces ? ", " : "");
  change.insert = !braces;
  return change;
}

void apply(const Change& change, std::vector<std::string>& lines) {
  if (change.insert) {
    const std::string line = std::string(change.column, ' ') + change.text + "  # " + change.note;
    lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(change.line), line);
    return;
  }
  std::string& line = lines[change.line];
  const std::string rest = line.substr(change.column + change.length);
  const bool last =
      rest.find_first_not_of(' ') == std::string::npos || rest[rest.find_first_not_of(' ')] == '#';
  line = line.substr(0, change.column) + change.text + (last ? noted(rest, change.note) : rest);
}

/// Whether the text reads back as exactly the calibrated preset.
bool same(const std::string& text, const Calibration& calibration, yaml::PresetKind kind) {
  yaml::Diagnostics diagnostics;
  const std::optional<yaml::Node> node = yaml::parse(text, "fitted", diagnostics);
  if (!node) return false;
  if (kind == yaml::PresetKind::device) {
    const auto device = yaml::read_device(*node, "", diagnostics);
    return device && yaml::to_yaml(*device) == yaml::to_yaml(*calibration.after.device);
  }
  const auto stack = yaml::read_stack(*node, "", diagnostics);
  return stack && yaml::to_yaml(*stack) == yaml::to_yaml(calibration.after.stack);
}

}  // namespace

std::vector<Edit> edits(const Calibration& calibration, yaml::PresetKind kind) {
  const bool of_device = kind == yaml::PresetKind::device;
  std::vector<Edit> list;
  for (const ConstantResult& found : calibration.constants) {
    const Constant& constant = *found.constant;
    if (constant.of_device() != of_device || found.after == found.before) continue;
    std::string note = fmt::format("{} from {}", kNote, format_value(constant, found.before));
    if (found.standard_error) note += fmt::format(", +- {:.2g} %", 100 * *found.standard_error / found.after);
    list.push_back({of_device ? constant.path.substr(kOfDevice.size()) : constant.path,
                    format_value(constant, found.after), note});
  }
  return list;
}

std::optional<std::string> edit_lines(const std::string& text, std::span<const Edit> edits) {
  yaml::Diagnostics diagnostics;
  const std::optional<yaml::Node> root = yaml::parse(text, "preset", diagnostics);
  if (!root || !root->is_map()) return std::nullopt;
  std::vector<Change> changes;
  for (const Edit& edit : edits) {
    std::optional<Change> change = locate(*root, edit);
    if (!change) return std::nullopt;
    changes.push_back(*std::move(change));
  }
  // Changes are applied from the end, so that the places of earlier ones stay valid.
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return std::pair(a.line, a.column) > std::pair(b.line, b.column);
  });
  std::vector<std::string> lines = split_lines(text);
  for (const Change& change : changes) {
    if (!change.insert) apply(change, lines);
  }
  for (const Change& change : changes) {
    if (change.insert) apply(change, lines);
  }
  return join_lines(lines);
}

std::string preset_text(const Calibration& calibration, yaml::PresetKind kind, const std::string& original,
                        std::span<const std::string> header) {
  std::string head;
  for (const std::string& line : header) {
    head += fmt::format("{}{}\n", head.empty() ? kHeaderStart : kHeaderMore, line);
  }
  const auto edited = edit_lines(without_old_header(original), edits(calibration, kind));
  if (edited && same(*edited, calibration, kind)) return head + *edited;
  return head + (kind == yaml::PresetKind::device ? yaml::to_yaml(*calibration.after.device)
                                                  : yaml::to_yaml(calibration.after.stack));
}

}  // namespace shardscape::calibrate
