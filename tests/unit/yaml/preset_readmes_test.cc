// Do the README files of the presets name every key, and is what they show valid?
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "engine/spec/fabric_numbers.h"
#include "engine/spec/spec_numbers.h"
#include "sweep/yaml/device_sheet.h"
#include "sweep/yaml/huggingface_config.h"
#include "sweep/yaml/loader.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"
#include "tests/unit/yaml/number_table.h"

namespace shardscape::yaml {
namespace {

std::string readme(const std::string& folder) {
  std::ifstream in(std::filesystem::path(test::source_dir()) / folder / "README.md");
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(PresetReadmes, NameEveryKeyOfAModel) {
  const std::string text = readme("models");
  ModelSpec model;
  model.attention_dropout = model.embedding_dropout = 0.1;
  model.moe.emplace();
  model.latent.emplace();
  const auto named = [&](const Node& node, const auto& self) -> void {
    for (const Entry& entry : node.entries) {
      EXPECT_NE(text.find('`' + entry.key + '`'), std::string::npos) << entry.key;
      self(entry.value, self);
    }
  };
  named(write(model), named);
  for (const std::string_view name : enum_names<MlpKind>())
    EXPECT_NE(text.find('`' + std::string(name) + '`'), std::string::npos) << name;
}

TEST(PresetReadmes, NameEveryKeyOfADevice) {
  const std::string text = readme("hw_presets");
  for (const Leaf& leaf : device_leaves("device")) {
    const std::string path = leaf.path.substr(std::string("device.").size());
    EXPECT_NE(text.find('`' + path + '`'), std::string::npos) << path;
  }
}

template <class Rows>
void expect_rows(const std::string& folder, const Rows& rows) {
  const std::string text = readme(folder);
  for (const auto& row : rows) {
    const std::string line = test::readme_line(row);
    EXPECT_NE(text.find(line), std::string::npos) << line;
  }
}

TEST(PresetReadmes, HaveTheTablesOfNumbers) {
  expect_rows("hw_presets", device_numbers());
  expect_rows("hw_presets", stack_numbers());
  expect_rows("hw_presets", dimension_numbers());
  expect_rows("hw_presets", custom_link_numbers());
  expect_rows("models", model_numbers());
  expect_rows("models", expert_numbers());
  expect_rows("models", latent_numbers());
}

TEST(PresetReadmes, TheDeviceOfAnotherMakerLoads) {
  const std::string text = readme("hw_presets");
  const std::size_t start = text.find("```yaml\n", text.find("not NVIDIA's")) + 8;
  const std::string yaml = text.substr(start, text.find("```", start) - start);
  Diagnostics diagnostics;
  const auto node = parse(yaml, "README.md", diagnostics);
  ASSERT_TRUE(node.has_value());
  const auto device = read_device(*node, "", diagnostics);
  ASSERT_TRUE(device.has_value()) << diagnostics.to_string();
  // The data sheet's peaks: 1307.4 TFLOP/s in bf16, 163.4 on the vector units, 17.2 TB/s of Infinity Cache.
  EXPECT_NEAR(device->tensor_peak(Precision::bf16).value(), 1307.4e12, 0.1e12);
  EXPECT_NEAR(device->vector_peak().value(), 163.4e12, 0.1e12);
  EXPECT_NEAR(device->l2.bytes_per_clock * device->sm.clock.value(), 17.2e12, 0.01e12);
  EXPECT_TRUE(absent_shares(*node).empty());
}

TEST(DeviceShares, EveryPresetSaysThemAndOthersAreToldWhatIsTypical) {
  const Catalog catalog({test::source_dir()});
  for (const Catalog::Entry& entry : catalog.list(PresetKind::device)) {
    Diagnostics diagnostics;
    Loader loader(catalog, diagnostics);
    ASSERT_TRUE(loader.device({Node::scalar(entry.name), "", {}}).has_value());
    EXPECT_TRUE(loader.assumed_shares().empty()) << entry.name;
  }
  // The table of the README, and what a warning offers, are the same ranges.
  const std::string text = readme("hw_presets");
  for (const DeviceNumber& share : device_numbers()) {
    if (share.use != KeyUse::peak_if_absent) continue;
    const AssumedShares assumed{"mine", {}, {&share}};
    const std::string line = describe_assumption(assumed, assumed.shares, catalog);
    const std::string path(share.path);
    EXPECT_NE(line.find("device mine does not say " + path + ":"), std::string::npos) << line;
    const std::string range = line.substr(line.rfind(path) + path.size() + 1);
    EXPECT_NE(text.find("| " + range + " |"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace shardscape::yaml
