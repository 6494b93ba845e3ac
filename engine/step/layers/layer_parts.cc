#include "engine/step/layers/layer_parts.h"

#include <algorithm>
#include <utility>

namespace shardscape::step {

using model::Operator;
using model::OperatorKind;

Segments segments(Pass pass, Recompute recompute, bool cut) {
  switch (pass) {
    case Pass::forward:
      return {{LayerPart::forward}};
    case Pass::weight:
      return cut ? Segments{{LayerPart::weight}} : Segments{};
    case Pass::backward:
    case Pass::input:
      break;
  }
  Segments list;
  if (recompute == Recompute::full) list.push_back({.part = LayerPart::forward, .again = true});
  if (recompute == Recompute::selective) list.push_back({.part = LayerPart::repeated, .again = true});
  list.push_back({cut || pass == Pass::input ? LayerPart::input : LayerPart::backward});
  return list;
}

namespace {

/// Reorders casts so that none stands between a call of a tensor group and the product that hides it: shards are
/// quantised before they are gathered (Transformer Engine, fp8 with comm_gemm_overlap), gradients after they have been
/// scattered.
void part_casts_from_calls(std::vector<Node>& list) {
  const auto is_cast = [&](std::size_t i) { return i < list.size() && !list[i].call && list[i].op->cast; };
  const auto is_product = [&](std::size_t i) {
    return i < list.size() && !list[i].call && list[i].op->kind == OperatorKind::gemm;
  };
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].call || list[i].comm().group != ParallelGroup::tensor) continue;
    if (is_cast(i + 1) && is_product(i + 2)) {
      std::swap(list[i], list[i + 1]);
      ++i;
    } else if (i >= 2 && is_cast(i - 1) && is_product(i - 2)) {
      std::swap(list[i - 1], list[i]);
    }
  }
}

}  // namespace

std::vector<Node> nodes(const std::vector<Operator>& operators, LayerPart part) {
  const bool forward = runs_forward(part);
  const auto comm_of = [&](const Operator& op) -> const model::CollectiveCall& {
    return forward ? op.forward_comm : op.backward_comm;
  };
  const auto is_ring = [&](const Operator& op) {
    return comm_of(op).repeats > 0 && comm_of(op).group == ParallelGroup::context;
  };
  const auto ring = std::ranges::find_if(operators, is_ring);
  std::vector<Node> list, held;  // `held`: nodes that stand before their exchange in backward
  list.reserve(operators.size());
  const auto is_exchange = [](const Node& node) {
    return node.call && node.comm().group == ParallelGroup::expert;
  };
  const auto add_call = [&](const Node& call) {
    list.push_back(call);
    if (!is_exchange(call)) return;
    for (Node& node : held) {
      node.beside_exchange = true;
      list.push_back(node);
    }
    held.clear();
  };
  const auto let_go = [&] {
    list.insert(list.end(), held.begin(), held.end());
    held.clear();
  };
  const auto add_work = [&](const Node& node) {
    if (!node.op->beside_exchange) return list.push_back(node);
    if (!forward) return held.push_back(node);
    list.push_back(node);
    const Node* const before = list.size() > 1 ? &list[list.size() - 2] : nullptr;
    list.back().beside_exchange = before != nullptr && (is_exchange(*before) || before->beside_exchange);
  };
  const auto add = [&](std::size_t index) {
    const Operator& op = operators[index];
    if (part == LayerPart::repeated && !op.again) return;
    const bool whole = op.kind != OperatorKind::gemm || !op.cut;
    if (part == LayerPart::weight && whole) return;
    const LayerPart share = part == LayerPart::repeated         ? LayerPart::forward
                            : part == LayerPart::input && whole ? LayerPart::backward
                                                                : part;
    if (!op.beside_exchange && op.kind != OperatorKind::collective) let_go();
    if (op.kind != OperatorKind::collective) add_work({.op = &op, .index = index, .part = share});
    if (part != LayerPart::weight && comm_of(op).repeats > 0 && !is_ring(op))
      add_call({.op = &op, .index = index, .part = share, .call = true});
    if (op.attention_core && ring != operators.end()) {
      const auto at = static_cast<std::size_t>(ring - operators.begin());
      list.push_back({.op = &*ring, .index = at, .part = share, .call = true, .beside_core = true});
    }
  };
  const std::size_t count = operators.size();
  for (std::size_t i = 0; i < count; ++i) add(forward ? i : count - 1 - i);
  let_go();
  part_casts_from_calls(list);
  return list;
}

std::vector<Node> listed_nodes(const std::vector<Operator>& operators, LayerPart part) {
  std::vector<Node> list = nodes(operators, part);
  std::ranges::stable_sort(list, {}, &Node::index);
  return list;
}

}  // namespace shardscape::step
