// Is the table of constants true to the specs it points into?
#include "sweep/calibrate/constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sweep/yaml/load.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"

namespace shardscape::calibrate {
namespace {

yaml::Catalog catalog() { return yaml::Catalog({test::source_dir()}); }

Candidate candidate(const std::string& stack) {
  return {yaml::load_stack(catalog(), stack).value(), yaml::load_device(catalog(), "h100-sxm-80gb").value()};
}

TEST(Constants, PathsAndUnitsAreThoseOfTheKeys) {
  std::vector<yaml::Leaf> leaves = yaml::stack_leaves("stack"), device = yaml::device_leaves("device");
  leaves.insert(leaves.end(), device.begin(), device.end());
  std::set<std::string_view> seen;
  for (const Constant& constant : constants()) {
    EXPECT_TRUE(seen.insert(constant.path).second) << constant.path;
    const std::string path = (constant.of_device() ? "" : "stack.") + std::string(constant.path);
    const auto leaf = std::ranges::find(leaves, path, &yaml::Leaf::path);
    ASSERT_NE(leaf, leaves.end()) << path;
    EXPECT_EQ(leaf->type == yaml::Leaf::Type::quantity, constant.dimension.has_value()) << path;
    EXPECT_EQ(leaf->dimension, constant.dimension.value_or(leaf->dimension)) << path;
    EXPECT_EQ(find_constant(constant.path), &constant);
  }
  EXPECT_EQ(find_constant("host.forward"), nullptr);
}

TEST(Constants, EachMovesItsOwnKeyOnly) {
  const Candidate before = candidate("nanotron-a");
  for (const Constant& constant : constants()) {
    Candidate after = before;
    constant.set(after, constant.high);
    EXPECT_EQ(constant.get(after), constant.high) << constant.path;
    for (const Constant& other : constants()) {
      EXPECT_TRUE(&other == &constant || other.get(after) == other.get(before)) << other.path;
    }
    EXPECT_TRUE(after.stack.validate().empty() && after.device->validate().empty()) << constant.path;
    constant.set(after, constant.low);
    EXPECT_TRUE(after.stack.validate().empty() && after.device->validate().empty()) << constant.path;
  }
}

TEST(Constants, ShippedPresetsAreInsideTheRanges) {
  for (const yaml::Catalog::Entry& stack : catalog().list(yaml::PresetKind::stack)) {
    for (const yaml::Catalog::Entry& device : catalog().list(yaml::PresetKind::device)) {
      const Candidate shipped{yaml::load_stack(catalog(), stack.name).value(),
                              yaml::load_device(catalog(), device.name).value()};
      for (const Constant& constant : constants()) {
        const double value = constant.get(shipped);
        EXPECT_TRUE(value == 0 || (value >= constant.low && value <= constant.high))
            << stack.name << " " << device.name << " " << constant.path << " " << value;
      }
    }
  }
}

TEST(Constants, ScalesAndBounds) {
  const Constant& log = *find_constant("communication.call");
  EXPECT_DOUBLE_EQ(log.value_at(0, 1e-5), 1e-5);
  EXPECT_NEAR(log.value_at(1, 1e-5) / 1e-5, std::exp(log.width), 1e-12);
  const Constant& linear = *find_constant("communication.data_overlap");
  EXPECT_DOUBLE_EQ(linear.value_at(1, 0.5), 0.5 + linear.width);
  for (const Constant& constant : constants()) {
    const double prior = 0.5 * (constant.low + constant.high);
    EXPECT_EQ(constant.value_at(1e3, prior), constant.high) << constant.path;
    EXPECT_EQ(constant.value_at(-1e3, prior), constant.low) << constant.path;
    const double u = 0.01, value = constant.value_at(u, prior);
    EXPECT_NEAR(constant.u_of(value, prior), u, 1e-9) << constant.path;
    const double step = 1e-6;
    const double slope =
        (constant.value_at(u + step, prior) - constant.value_at(u - step, prior)) / (2 * step);
    EXPECT_NEAR(constant.slope(value) / slope, 1, 1e-6) << constant.path;
  }
}

TEST(Constants, TextHasThreeDigitsAndReadsBack) {
  const Constant& time = *find_constant("host.forward_layer");
  const Constant& bytes = *find_constant("memory.reserve");
  const Constant& share = *find_constant("communication.data_overlap");
  EXPECT_EQ(format_value(time, 6.4321e-4), "643 us");
  EXPECT_EQ(format_value(time, 9.9996e-4), "1 ms");
  EXPECT_EQ(format_value(time, 1.2e-5), "12 us");
  EXPECT_EQ(format_value(time, 5.494e-7), "549 ns");
  EXPECT_EQ(format_value(bytes, 9.0123e9), "9.01 GB");
  EXPECT_EQ(format_value(share, 0.37049), "0.37");
  EXPECT_EQ(format_value(*find_constant("device.sm.load_latency_clocks"), 1234), "1230");
  for (const Constant& constant : constants()) {
    for (const double part : {0.0, 0.123456, 0.5, 0.987654, 1.0}) {
      const double value = constant.low + part * (constant.high - constant.low);
      const double read = parse_value(constant, format_value(constant, value)).value();
      EXPECT_NEAR(read, value, 5.1e-3 * value) << constant.path;
      EXPECT_TRUE(read >= constant.low && read <= constant.high) << constant.path << " " << read;
    }
  }
}

}  // namespace
}  // namespace shardscape::calibrate
