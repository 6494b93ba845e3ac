// Is the `faults:` key read strictly, and written so that it reads back the same?
#include "sweep/study/faults_parser.h"

#include <gtest/gtest.h>

#include "tests/unit/yaml/problems_of.h"

namespace shardscape::sweep {
namespace {

using yaml::reports;

/// Switches of four under rails of four.
FabricSpec pods() {
  FabricSpec fabric;
  for (const char* name : {"nvswitch", "rail"}) {
    DimensionSpec d;
    d.name = name;
    d.kind = DimensionKind::switched;
    d.shape = {4};
    d.bandwidth = BytesPerSecond(25e9);
    fabric.dimensions.push_back(d);
  }
  return fabric;
}

std::optional<FaultStudy> parse_text(const std::string& text, yaml::Diagnostics& diagnostics,
                                     Phase phase = Phase::training) {
  const auto node = yaml::parse(text, "f", diagnostics);
  if (!node) return std::nullopt;
  const FabricSpec fabric = pods();
  return parse_faults_key(*node, &fabric, phase, diagnostics);
}

FaultStudy good_faults(const std::string& text) {
  yaml::Diagnostics diagnostics;
  const auto study = parse_text(text, diagnostics);
  EXPECT_TRUE(study.has_value()) << diagnostics.to_string();
  return study.value_or(FaultStudy());
}

yaml::Diagnostics bad_faults(const std::string& text, Phase phase = Phase::training) {
  yaml::Diagnostics diagnostics;
  EXPECT_FALSE(parse_text(text, diagnostics, phase).has_value()) << text;
  return diagnostics;
}

TEST(FaultsParser, DefaultsAndABareShare) {
  const FaultStudy study = good_faults("{kind: soft_link, derate: 0.5}");
  ASSERT_EQ(study.kinds.size(), 1U);
  EXPECT_EQ(study.kinds[0].kind, FaultKind::soft_link);
  EXPECT_EQ(study.samples, 200);
  EXPECT_EQ(study.simultaneous, 1);
  EXPECT_EQ(study.derate.kind, DistributionKind::constant);
  EXPECT_EQ(study.derate.value, 0.5);
  EXPECT_TRUE(study.both_directions);
  EXPECT_EQ(study.placement.kind, PlacementKind::uniform_links);
  EXPECT_FALSE(study.target_ci);
}

TEST(FaultsParser, WhatIsWrittenReadsBackTheSame) {
  const std::vector<std::string> texts = {
      "{kind: soft_link, samples: 300, derate: {distribution: normal, mean: 0.5, std: 0.1, min: 0.05, max: "
      "1.0}, placement: uniform_links, seed: 42}",
      "{kind: [hard_link, {kind: soft_link, weight: 3}], derate: {distribution: beta, alpha: 2, beta: 5}, "
      "added_latency: 5 us, directions: one, simultaneous: 3, target_ci: 1%}",
      "{kind: soft_link, derate: {distribution: empirical, values: [0.25, 0.5]}, placement: exhaustive}",
      "{kind: hard_link, placement: {dimension: rail}}",
      "{kind: hard_link, placement: {links: [[0, 16], [17, 4]]}}",
      "{kind: [nic_down, switch_down], placement: {dimension: rail}}",
      "{kind: [hbm_derate, slow_device], derate: {distribution: uniform, min: 0.5, max: 0.9}}"};
  for (const std::string& text : texts) {
    const std::string written = yaml::emit(write_faults(good_faults(text)));
    EXPECT_EQ(yaml::emit(write_faults(good_faults(written))), written) << text;
  }
  const FaultStudy study = good_faults(yaml::emit(write_faults(good_faults(texts[1]))));
  EXPECT_EQ(study.kinds[1].weight, 3);
  EXPECT_EQ(study.added_latency, Seconds(5e-6));
  EXPECT_FALSE(study.both_directions);
  EXPECT_EQ(study.target_ci, 0.01);
  EXPECT_EQ(study.simultaneous, 3);
  EXPECT_EQ(study.derate.min, 0.01);
}

TEST(FaultsParser, SharesMustBeShares) {
  EXPECT_TRUE(
      reports(bad_faults("{kind: soft_link, derate: 0}"), "f:1:27: faults.derate", "from 1e-06 to 1"));
  EXPECT_TRUE(
      reports(bad_faults("{kind: soft_link, derate: 1.5}"), "f:1:27: faults.derate", "from 1e-06 to 1"));
  EXPECT_TRUE(reports(bad_faults("{kind: soft_link, derate: {distribution: uniform, min: 0, max: 2}}"),
                      "f:1:56: faults.derate.min", "from 1e-06 to 1"));
  EXPECT_TRUE(reports(bad_faults("{kind: soft_link, derate: {distribution: normal, mean: 9, std: 0.1}}"),
                      "f:1:27: faults.derate", "no mass"));
  EXPECT_TRUE(reports(bad_faults("{kind: soft_link, derate: {distribution: empirical, values: [0.5, -1]}}"),
                      "f:1:67: faults.derate.values", "from 1e-06 to 1"));
  EXPECT_TRUE(reports(bad_faults("{kind: soft_link, derate: {distribution: gauss, mean: 9}}"),
                      "f:1:42: faults.derate.distribution", "gauss"));
  EXPECT_TRUE(reports(bad_faults("{kind: soft_link}"), "f:1:1: faults.derate", "missing"));
}

TEST(FaultsParser, PlacesMustExist) {
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: {dimension: rial}}"),
                      "f:1:42: faults.placement.dimension", "rail"));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: {links: [[0, 1]]}}"),
                      "f:1:39: faults.placement.links", "no link between 0 and 1"));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: {links: [[0, 99]]}}"),
                      "f:1:43: faults.placement.links", ""));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: {links: [[0, 16]]}, simultaneous: 2}"),
                      "f:1:64: faults.simultaneous", "1 places only"));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: everywhere}"), "f:1:30: faults.placement",
                      "unknown placement"));
}

TEST(FaultsParser, SettingsWithoutEffectAreErrors) {
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, derate: 0.5}"), "f:1:27: faults.derate", "no effect"));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, placement: exhaustive, samples: 5}"),
                      "f:1:51: faults.samples", "no effect"));
  EXPECT_TRUE(reports(bad_faults("{kind: hard_link, added_latency: 1 us}"), "f:1:34: faults.added_latency",
                      "no effect"));
  EXPECT_TRUE(reports(bad_faults("{kind: slow_device, derate: 0.5, directions: one}"),
                      "f:1:46: faults.directions", "no effect"));
  EXPECT_TRUE(reports(bad_faults("{kind: slow_device, derate: 0.5}", Phase::inference), "f:1:8: faults.kind",
                      "training only"));
}

TEST(FaultsParser, EveryProblemAtOnce) {
  const auto problems =
      bad_faults("{kind: [soft_lnk, hard_link, hard_link], samples: 0, target_ci: 0.01, sed: 4}");
  EXPECT_TRUE(reports(problems, "f:1:9: faults.kind", "soft_link"));
  EXPECT_TRUE(reports(problems, "f:1:30: faults.kind", "twice"));
  EXPECT_TRUE(reports(problems, "f:1:51: faults.samples", ""));
  EXPECT_TRUE(reports(problems, "f:1:65: faults.target_ci", "percent"));
  EXPECT_TRUE(reports(problems, "f:1:71: faults.sed", "unknown key"));
}

}  // namespace
}  // namespace shardscape::sweep
