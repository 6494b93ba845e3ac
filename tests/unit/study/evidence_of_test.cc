// Is what a study may be trusted with that of its device and stack, as they are and not as a what-if has them?
#include "sweep/study/evidence_of.h"

#include <cmath>

#include "sweep/evidence/evidence_table.h"
#include "sweep/yaml/load.h"
#include "sweep/yaml/specs.h"
#include "tests/support/paths.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/study/study_text.h"

namespace shardscape::sweep {
namespace {

class EvidenceOf : public test::TemporaryFolder {
 protected:
  static evidence::Cell home_cell() {
    evidence::Cell cell;
    cell.regime = {Phase::training, "gpu", PolicyName::bf16, "dense", "soft", 1};
    cell.gpus_low = cell.gpus_high = 16;
    cell.rows = cell.plans = 10;
    cell.sigma = 0.04;
    return cell;
  }
  Study load(const std::string& text, const std::string& evidence) {
    write("hw_presets/evidence.yaml", evidence);
    const auto study = parse_study(text, "s.yaml", {}, yaml::Catalog({root_}));
    EXPECT_TRUE(study.has_value()) << study.error().to_string();
    return study ? *study : Study();
  }
  std::string home_ = evidence::evidence_yaml({{home_cell()}});
};

TEST_F(EvidenceOf, SettingsAreAssessedByTheirNames) {
  const Study study = load(training("hardware: {device.hbm.bandwidth: [2 TB/s, 4 TB/s]}\n"), home_);
  EXPECT_EQ(assess_setting(study, 0).assessment.evidence, Evidence::measured);
  EXPECT_NEAR(assess_setting(study, 0).assessment.expected_error, 0.04, 1e-12);
  EXPECT_TRUE(study.device_presets.empty());  // no preset has its name, so it is what it says
}

TEST_F(EvidenceOf, APresetThatWasChangedIsAnotherDevice) {
  const Study plain = load(training(""), home_);
  const auto& device = plain.systems.front().device;
  write("hw_presets/devices/gpu.yaml", yaml::to_yaml(device));
  const Study study = load(training("hardware: {device.sustained.tensor: [1, 0.7]}\n"), home_);
  EXPECT_EQ(assess_setting(study, 0).assessment.evidence, Evidence::measured);
  EXPECT_EQ(assess_setting(study, 1).assessment.evidence, Evidence::near);
  EXPECT_EQ(assess_setting(study, 1).assessment.gap, EvidenceGap::device);
  // One that keeps its peaks is like none that was measured.
  const Study dream = load(training("hardware: {device.hbm.bandwidth: [2 TB/s, 4 TB/s]}\n"), home_);
  EXPECT_EQ(assess_setting(dream, 1).assessment.evidence, Evidence::none);
  EXPECT_EQ(assess_setting(dream, 1).assessment.gap, EvidenceGap::device);
}

// What the input leaves open counts, not the value: a base may have by measurement what others have typically.
TEST_F(EvidenceOf, ADeviceIsKnownByItsSheetOnlyWhereSharesAreNotGiven) {
  const std::string whole = training("");
  const std::size_t first = whole.find("  device:\n"), last = whole.find("  dimensions:");
  const auto typical = [&](const std::string& device) {
    const Study study =
        load(whole.substr(0, first) + "  device: " + device + '\n' + whole.substr(last), home_);
    return regime_of(study, 0).typical;
  };
  DeviceSpec gpu = load(whole, home_).systems.front().device;
  gpu.sustained = {0.7, 0.8, 0.7};  // those of a sheet
  gpu.attention.forward = 0.5, gpu.attention.backward = 0.42;
  write("hw_presets/devices/gpu.yaml", yaml::to_yaml(gpu));
  const std::string figures = "peak: {bf16: 400 TFLOP/s}, memory: 80 GB, bandwidth: 2 TB/s}";
  EXPECT_FALSE(typical("gpu"));
  EXPECT_FALSE(typical("{base: gpu, name: mine, sustained: {hbm: 0.85}}"));
  EXPECT_FALSE(typical("{base: gpu, memory: 100 GB}"));
  EXPECT_FALSE(typical("{base: gpu, name: mine, memory: 100 GB}"));
  EXPECT_TRUE(typical("{name: mine, " + figures));
  write("hw_presets/devices/sheet.yaml", "{name: sheet, " + figures);
  EXPECT_TRUE(typical("sheet"));                                             // a preset
  EXPECT_TRUE(typical((root_ / "hw_presets/devices/sheet.yaml").string()));  // a file
  EXPECT_TRUE(typical("{base: sheet, name: more, memory: 100 GB}"));
  EXPECT_FALSE(
      typical("{base: sheet, name: own, sustained: {tensor: 0.6, hbm: 0.9, l2: 0.8}, "
              "attention: {forward: 0.4, backward: 0.3}}"));
}

TEST_F(EvidenceOf, WithoutAFileNothingIsKnown) {
  const Study study = good(training(""));
  EXPECT_EQ(study.measured, nullptr);
  EXPECT_EQ(assess_setting(study, 0).assessment.evidence, Evidence::none);
  EXPECT_TRUE(std::isnan(assess_setting(study, 0).assessment.expected_error));
}

TEST_F(EvidenceOf, ADamagedFileIsAProblemOfTheStudy) {
  write("hw_presets/evidence.yaml", "regimes: [{phase: training}]\n");
  const auto study = parse_study(training(""), "s.yaml", {}, yaml::Catalog({root_}));
  ASSERT_FALSE(study.has_value());
  EXPECT_NE(study.error().to_string().find("evidence.yaml:1:"), std::string::npos);
}

}  // namespace
}  // namespace shardscape::sweep
