#include <gtest/gtest.h>

#include "engine/spec/fabric.h"
#include "tests/support/settings.h"
#include "tests/support/violations.h"

namespace shardscape {
namespace {

using test::dimension;
using test::fabric;
using test::violations;

TEST(FabricSpec, SizeIsTheProductOfAllExtents) {
  const FabricSpec spec = fabric(
      {dimension("torus", DimensionKind::torus, {4, 3, 2}), dimension("ring", DimensionKind::ring, {5})});
  EXPECT_EQ(spec.dimensions[0].size(), 24);
  EXPECT_EQ(spec.size(), 120);
  EXPECT_EQ(violations(spec), "");
}

TEST(FabricSpecValidate, EveryRuleOnce) {
  const auto broken = [](auto change) {
    FabricSpec spec = fabric(
        {dimension("mesh", DimensionKind::mesh, {2, 2}), dimension("out", DimensionKind::switched, {4})});
    change(spec.dimensions);
    return violations(spec);
  };
  using Dimensions = std::vector<DimensionSpec>;
  EXPECT_EQ(broken([](Dimensions&) {}), "");
  EXPECT_EQ(broken([](Dimensions& d) { d.clear(); }), "dimensions");
  EXPECT_EQ(broken([](Dimensions& d) { d[0].name = ""; }), "dimensions[0].name");
  EXPECT_EQ(broken([](Dimensions& d) { d[1].name = "mesh"; }), "dimensions[1].name");
  EXPECT_EQ(broken([](Dimensions& d) { d[0].shape.clear(); }), "dimensions[0].shape");
  EXPECT_EQ(broken([](Dimensions& d) { d[1].shape = {2, 2}; }), "dimensions[1].shape");
  EXPECT_EQ(broken([](Dimensions& d) { d[0].shape = {2, 0}; }), "dimensions[0].shape");
  EXPECT_EQ(broken([](Dimensions& d) { d[0].shape = {-2}; }), "dimensions[0].shape");
  EXPECT_EQ(broken([](Dimensions& d) { d[0].shape = {FabricTemplate::kFill}; }), "dimensions[0].shape");
  EXPECT_EQ(broken([](Dimensions& d) { d[1].shape = {FabricTemplate::kFill}; }), "");  // outermost may grow
  EXPECT_EQ(broken([](Dimensions& d) { d[0].bandwidth = BytesPerSecond(0); }), "dimensions[0].bandwidth");
  EXPECT_EQ(broken([](Dimensions& d) { d[1].latency = Seconds(-1); }), "dimensions[1].latency");
}

class Instantiate : public testing::Test {
 protected:
  /// Shapes of the instance, or the fields complained about.
  static std::string shapes(const FabricTemplate& cluster, std::int64_t gpus) {
    Problems problems;
    const FabricSpec spec = cluster.instantiate(gpus, problems);
    if (!problems.empty()) return "problem: " + test::fields(problems);
    std::string text;
    for (const DimensionSpec& d : spec.dimensions) {
      if (!text.empty()) text += ' ';
      text += d.name + ":" + std::to_string(d.size());
    }
    if (spec.size() != gpus) text += " but size " + std::to_string(spec.size());
    return text;
  }
  static FabricTemplate dgx() {
    return {fabric({dimension("nvlink", DimensionKind::switched, {8}),
                    dimension("rail", DimensionKind::switched, {FabricTemplate::kFill})})};
  }
};

TEST_F(Instantiate, AnOpenDimensionTakesWhatTheOthersLeave) {
  EXPECT_TRUE(dgx().open());
  EXPECT_EQ(shapes(dgx(), 64), "nvlink:8 rail:8");
  EXPECT_EQ(shapes(dgx(), 16), "nvlink:8 rail:2");
}

TEST_F(Instantiate, DimensionsOfOneRankVanish) {
  EXPECT_EQ(shapes(dgx(), 8), "nvlink:8");
  EXPECT_EQ(shapes(dgx(), 1), "");
}

TEST_F(Instantiate, FewGpusOccupyPartOfASwitchButNotOfARing) {
  EXPECT_EQ(shapes(dgx(), 4), "nvlink:4");
  EXPECT_EQ(shapes(dgx(), 3), "nvlink:3");
  FabricTemplate rings = dgx();
  rings.fabric.dimensions[0].kind = DimensionKind::ring;
  EXPECT_EQ(shapes(rings, 4), "problem: gpus");
}

TEST_F(Instantiate, WhatDoesNotDivideIsAProblem) {
  EXPECT_EQ(shapes(dgx(), 12), "problem: gpus");
  EXPECT_EQ(shapes(dgx(), 0), "problem: gpus");
  EXPECT_EQ(shapes(dgx(), -8), "problem: gpus");
}

TEST_F(Instantiate, AClosedFabricHasExactlyItsSize) {
  const FabricTemplate closed{fabric(
      {dimension("torus", DimensionKind::torus, {4, 4}), dimension("ring", DimensionKind::ring, {4})})};
  EXPECT_FALSE(closed.open());
  EXPECT_EQ(shapes(closed, 64), "torus:16 ring:4");
  EXPECT_EQ(shapes(closed, 32), "problem: gpus");
}

}  // namespace
}  // namespace shardscape
