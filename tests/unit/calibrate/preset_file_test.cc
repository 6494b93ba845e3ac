// Do fitted files keep what people wrote, and say what was fitted?
#include "sweep/calibrate/preset_file.h"

#include <gtest/gtest.h>

#include <array>

#include "sweep/yaml/load.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"

namespace shardscape::calibrate {
namespace {

constexpr const char* kStack =
    "# mine\n"
    "name: mine\n"
    "zero_slice: 12 us       # a loop\n"
    "host:\n"
    "  forward_layer: 1 ms\n"
    "communication:\n"
    "  bucket: 25 MB           # [1]\n"
    "memory: {reserve: 2 GB, fragmentation: 1.1}   # flow\n";

TEST(PresetFile, ValuesChangeInPlaceAndCommentsStay) {
  const std::array edits = {Edit{"zero_slice", "9.5 us", "fitted from 12 us"},
                            Edit{"host.forward_layer", "0.64 ms", "fitted from 1 ms"},
                            Edit{"communication.call", "14 us", "fitted from 10 us"},
                            Edit{"memory.reserve", "3 GB", "fitted from 2 GB"},
                            Edit{"memory.fragmentation", "1.2", "fitted from 1.1"}};
  EXPECT_EQ(edit_lines(kStack, edits).value(),
            "# mine\n"
            "name: mine\n"
            "zero_slice: 9.5 us       # fitted from 12 us; a loop\n"
            "host:\n"
            "  forward_layer: 0.64 ms  # fitted from 1 ms\n"
            "communication:\n"
            "  call: 14 us  # fitted from 10 us\n"
            "  bucket: 25 MB           # [1]\n"
            "memory: {reserve: 3 GB, fragmentation: 1.2}   # flow\n");
}

TEST(PresetFile, AnEarlierNoteGivesWay) {
  const std::array once = {Edit{"zero_slice", "9 us", "fitted from 12 us, +- 3 %"}};
  const std::array twice = {Edit{"zero_slice", "8 us", "fitted from 9 us, +- 2 %"}};
  const std::string text = edit_lines(edit_lines(kStack, once).value(), twice).value();
  EXPECT_NE(text.find("zero_slice: 8 us       # fitted from 9 us, +- 2 %; a loop\n"), std::string::npos)
      << text;
}

TEST(PresetFile, KeysAreAddedInsideBraces) {
  const std::string text = edit_lines(kStack, std::array{Edit{"memory.workspace", "1 GB", "note"}}).value();
  EXPECT_NE(text.find("memory: {workspace: 1 GB, reserve: 2 GB, fragmentation: 1.1}   # flow\n"),
            std::string::npos)
      << text;
}

TEST(PresetFile, WhatHasNoGroupCannotBeEdited) {
  EXPECT_FALSE(edit_lines(kStack, std::array{Edit{"state.master_bytes", "4", ""}}));
}

Calibration fitted(const std::string& stack) {
  const yaml::Catalog catalog({test::source_dir()});
  Calibration calibration;
  calibration.before = {yaml::load_stack(catalog, stack).value(),
                        yaml::load_device(catalog, "h100-sxm-80gb").value()};
  calibration.after = calibration.before;
  for (const Constant& constant : constants()) {
    const double before = constant.get(calibration.before);
    double after = before == 0 ? constant.low : constant.value_at(0.3, before);
    after = parse_value(constant, format_value(constant, after)).value();
    constant.set(calibration.after, after);
    calibration.constants.push_back({&constant, before, before, after, 0.1 * after, true, ""});
  }
  return calibration;
}

std::string text_of(yaml::PresetKind kind, const std::string& name) {
  const yaml::Catalog catalog({test::source_dir()});
  return yaml::read_text(catalog.find(kind, name, {}).value()).value();
}

TEST(PresetFile, EveryShippedStackReadsBackAsFitted) {
  const yaml::Catalog catalog({test::source_dir()});
  const std::array<std::string, 2> header = {"command", "errors"};
  for (const yaml::Catalog::Entry& entry : catalog.list(yaml::PresetKind::stack)) {
    const Calibration calibration = fitted(entry.name);
    const std::string text = preset_text(calibration, yaml::PresetKind::stack,
                                         text_of(yaml::PresetKind::stack, entry.name), header);
    EXPECT_TRUE(text.starts_with("# Fitted: command\n#   errors\n")) << text;
    yaml::Diagnostics diagnostics;
    const auto node = yaml::parse(text, entry.name, diagnostics);
    ASSERT_TRUE(node) << diagnostics.to_string();
    const auto stack = yaml::read_stack(*node, "", diagnostics);
    ASSERT_TRUE(stack) << diagnostics.to_string();
    EXPECT_EQ(yaml::to_yaml(*stack), yaml::to_yaml(calibration.after.stack)) << entry.name;
    // Fitting the fitted file: one header, not two.
    const std::string again = preset_text(calibration, yaml::PresetKind::stack, text, header);
    EXPECT_EQ(again.find("# Fitted: "), again.rfind("# Fitted: ")) << again;
  }
}

TEST(PresetFile, DevicesKeepTheirSources) {
  const Calibration calibration = fitted("pytorch");
  const std::string text =
      preset_text(calibration, yaml::PresetKind::device, text_of(yaml::PresetKind::device, "h100-sxm-80gb"),
                  std::array{std::string("c")});
  yaml::Diagnostics diagnostics;
  const auto device = yaml::read_device(yaml::parse(text, "d", diagnostics).value(), "", diagnostics);
  ASSERT_TRUE(device) << diagnostics.to_string();
  EXPECT_EQ(yaml::to_yaml(*device), yaml::to_yaml(*calibration.after.device));
  EXPECT_NE(text.find("  clock: 1.83 GHz                     # [1] boost"), std::string::npos) << text;
  EXPECT_NE(text.find("# fitted from 0."), std::string::npos) << text;
}

}  // namespace
}  // namespace shardscape::calibrate
