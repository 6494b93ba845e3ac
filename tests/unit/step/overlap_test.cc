// Which work hides which traffic, and for how long?
#include "engine/step/layers/overlap.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/step/layers/price_layers.h"
#include "tests/support/engine_fixture.h"

namespace shardscape {
namespace {

TEST(Overlap, TrafficHidesForItsShareAndForTheRoom) {
  double room = 5;
  EXPECT_EQ(step::hide(4.0, 0.5, room), 2);  // half of it
  EXPECT_EQ(room, 3);
  EXPECT_EQ(step::hide(8.0, 0.5, room), 3);  // the rest of the room
  EXPECT_EQ(room, 0);
  EXPECT_EQ(step::hide(8.0, 0.5, room), 0);
  Seconds seconds(1);
  EXPECT_EQ(step::hide(Seconds(2), 0, seconds), Seconds(0));
  EXPECT_EQ(seconds, Seconds(1));
}

/// The calls of a list in brackets, each with what hides it. Work takes as many seconds as its name is long.
std::string hidden_calls(const std::vector<model::Operator>& operators, step::LayerPart part) {
  const std::vector<step::TimedNode> nodes = step::timed_nodes(operators, part, [](const step::Node& node) {
    return Seconds(node.op->name == "nothing" ? 0 : static_cast<double>(node.op->name.size()));
  });
  std::string text;
  for (const step::TimedNode& node : nodes) {
    if (!node.call) {
      EXPECT_EQ(node.hider, -1);
      continue;
    }
    text += "[" + std::string(node.op->name) + " ";
    text += node.hider < 0 ? "-" : std::string(nodes[static_cast<std::size_t>(node.hider)].op->name);
    text += "]";
  }
  return text;
}

model::Operator work(std::string_view name) {
  model::Operator op;
  op.name = name;
  return op;
}
model::Operator call(std::string_view name, ParallelGroup group = ParallelGroup::tensor) {
  model::Operator op;
  op.name = name;
  op.kind = model::OperatorKind::collective;
  op.forward_comm = op.backward_comm = {network::CollectiveOp::all_gather, group, Bytes(1), 1};
  return op;
}

TEST(Overlap, ACallHidesBehindItsLongerNeighbour) {
  EXPECT_EQ(
      hidden_calls({work("ab"), call("1"), work("abc"), call("2"), work("abc")}, step::LayerPart::forward),
      "[1 abc][2 abc]");
  EXPECT_EQ(hidden_calls({work("abcd"), call("1"), work("abc")}, step::LayerPart::forward), "[1 abcd]");
  EXPECT_EQ(hidden_calls({work("ab"), call("1"), work("cd")}, step::LayerPart::forward), "[1 ab]");
  EXPECT_EQ(hidden_calls({work("ab"), call("1"), work("cd")}, step::LayerPart::backward), "[1 cd]");
  // Work that takes no time is skipped; another call is not.
  EXPECT_EQ(hidden_calls({work("a"), call("1"), work("nothing"), work("abc")}, step::LayerPart::forward),
            "[1 abc]");
  EXPECT_EQ(hidden_calls({work("a"), call("1"), call("2"), work("abc")}, step::LayerPart::forward),
            "[1 a][2 abc]");
  EXPECT_EQ(hidden_calls({call("1")}, step::LayerPart::forward), "[1 -]");
}

TEST(Overlap, ACastStandsBesideACallAndNeverHidesIt) {
  model::Operator cast = work("a long cast"), product = work("abc");
  cast.cast = true;
  product.kind = model::OperatorKind::gemm;
  for (const step::LayerPart part : {step::LayerPart::forward, step::LayerPart::backward})
    EXPECT_EQ(hidden_calls({work("ab"), call("1"), cast, product}, part), "[1 abc]");
  EXPECT_EQ(hidden_calls({call("1"), cast}, step::LayerPart::forward), "[1 -]");
  // Forward: cast, call, product; backward: product, call, cast.
  const std::vector<model::Operator> operators = {call("1"), cast, product};
  const auto order = [&](step::LayerPart part) {
    std::string text;
    for (const step::Node& node : step::nodes(operators, part))
      text += node.call ? "call " : std::string(node.op->name) + " ";
    return text;
  };
  EXPECT_EQ(order(step::LayerPart::forward), "a long cast call abc ");
  EXPECT_EQ(order(step::LayerPart::backward), "abc call a long cast ");
}

TEST(Overlap, WhatHidesOtherTrafficAlreadyHidesNoCall) {
  model::Operator core = work("attention");
  core.attention_core = true;
  EXPECT_EQ(hidden_calls({work("ab"), call("1"), core, call("2")}, step::LayerPart::forward), "[1 ab][2 -]");
  model::Operator shared = work("shared");
  shared.beside_exchange = true;
  EXPECT_EQ(hidden_calls({call("dispatch", ParallelGroup::expert), shared, call("1"), work("ab")},
                         step::LayerPart::forward),
            "[dispatch -][1 ab]");
}

TEST(Overlap, CallsOfALayerShareTheWorkBesideThem) {
  // Two calls of 3 s beside one operator of 4 s hide 4 s where all of them may hide, 3 s where half may.
  step::PartCost part;
  const model::CollectiveCall one{network::CollectiveOp::all_gather, ParallelGroup::tensor, Bytes(1), 1};
  part.calls = {{one, 0}, {one, 0}, {one}};
  part.works = {Seconds(4)};
  const auto shown = [&](double overlap) {
    StackProfile::Communication stack;
    stack.tensor_overlap = overlap;
    return step::call_times(
        part, stack, [](const model::CollectiveCall& /*call*/) { return Seconds(3); },
        [](const model::CollectiveCall& /*dispatch*/, const model::CollectiveCall& /*combine*/,
           Seconds /*work*/) { return Seconds(0); })[ParallelGroup::tensor];
  };
  EXPECT_DOUBLE_EQ(shown(0).value(), 9);
  EXPECT_DOUBLE_EQ(shown(0.5).value(), 6);
  EXPECT_DOUBLE_EQ(shown(1).value(), 5);
}

}  // namespace
}  // namespace shardscape
