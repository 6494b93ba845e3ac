// Writes the rows of the operator table: every operator and call of a part with its shape, count, time and bound, and
// the rows of a training step from the passes of its layers.
#include "engine/step/training/operator_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "engine/network/collectives/collective_rows.h"
#include "engine/step/layers/layer_timer.h"
#include "engine/step/training/stage_tails.h"

namespace shardscape::step {

namespace {

using model::CollectiveCall;
using model::Operator;
using model::OperatorKind;

std::string format(const char* pattern, double a, double b = 0, double c = 0) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

std::string megabytes(Bytes bytes) { return format("%.4g MB", bytes.value() / 1e6); }

std::string product(const compute::GemmShape& g) {
  if (g.batch > 1) {
    return fmt::format("{} of {} x {} x {}", g.batch, g.m, g.n, g.k);
  }
  return format("%.0f x %.0f x %.0f", static_cast<double>(g.m), static_cast<double>(g.n),
                static_cast<double>(g.k));
}

std::string shape_text(const Operator& op, LayerPart part) {
  switch (op.kind) {
    case OperatorKind::gemm:
      return product(op.gemm);
    case OperatorKind::attention:
      return format("%.0f heads, %.0f q x %.0f kv", op.attention.batch * op.attention.heads,
                    op.attention.queries, op.attention.keys) +
             (op.attention.pieces > 1 ? format(" in %.0f steps", op.attention.pieces) : "");
    case OperatorKind::pointwise:
      return megabytes((runs_forward(part) ? op.forward : op.backward).traffic);
    case OperatorKind::collective:
      break;
  }
  return "";
}

void explain_optimizer(const OptimizerCost& cost, Seconds time, std::vector<OperatorRow>& rows) {
  const bool sliced = cost.slicing > Seconds(0);
  rows.push_back({"step", "optimizer", format("%.4g M parameters", cost.parameters / 1e6), 1,
                  time - cost.slicing, std::string(name_of(cost.update.bound)), ""});
  if (!sliced) return;
  rows.push_back({"step", "zero_slicing", format("%.0f slices", cost.slices), 1, cost.slicing,
                  std::string(name_of(Bound::launch)), ""});
}

}  // namespace

void RowWriter::add(const std::vector<Node>& nodes, const std::string& phase, double count) {
  if (count <= 0) return;
  Accumulation sum;
  for (const Node& node : nodes) {
    const Operator& op = *node.op;
    if (node.call) {
      add_call(node, phase, count);
    } else if (node.part == LayerPart::backward && op.kind == OperatorKind::gemm) {
      add_gradients(op, phase, count, sum);
    } else {
      add_row(op.name, shape_text(op, node.part), phase, count,
              cost_of(price(op, prices_.setting), node.part),
              op.kind == OperatorKind::gemm ? &op.gemm : nullptr);
    }
  }
  if (sum.gradients > 0) {
    add_row("gradient_accumulation", format("%.4g M gradients", sum.gradients / 1e6), phase, count, sum.cost);
  }
}

void RowWriter::add_row(std::string_view name, const std::string& shape, const std::string& phase,
                        double count, const compute::OperatorCost& cost, const compute::GemmShape* product) {
  rows_.push_back({phase, std::string(name), shape, count, cost.time, std::string(name_of(cost.bound)), ""});
  if (product == nullptr) return;
  const auto number = [](std::int64_t of) { return static_cast<double>(of); };
  rows_.back().product = {number(std::max<std::int64_t>(1, product->batch)), number(product->m),
                          number(product->n), number(product->k)};
}

void RowWriter::add_gradients(const Operator& op, const std::string& phase, double count, Accumulation& sum) {
  const ProductGradients gradients = price_gradients(op, prices_.setting);
  const std::string name(op.name);
  add_row(name + "_dgrad", product(gradients.input_shape), phase, count, gradients.input,
          &gradients.input_shape);
  add_row(name + "_wgrad", product(gradients.weight_shape), phase, count, gradients.weight.product,
          &gradients.weight_shape);
  const compute::OperatorCost& more = gradients.weight.accumulation;
  if (more.time > sum.longest) sum.cost.bound = more.bound;
  sum.longest = std::max(sum.longest, more.time);
  sum.cost.time += more.time;
  const compute::GemmShape& w = gradients.weight_shape;
  sum.gradients += static_cast<double>(w.m) * static_cast<double>(w.n) * static_cast<double>(w.batch);
}

void RowWriter::add_call(const Node& node, const std::string& phase, double count) {
  const CollectiveCall& call = node.comm();
  const auto choice = prices_.collectives.healthy().choice(prices_.healthy(call));
  rows_.push_back({phase, std::string(node.op->name),
                   fmt::format("{} {}", network::row_of(call.op).name, megabytes(call.bytes)),
                   count * call.repeats, prices_.time(call), "link", choice ? to_string(*choice) : ""});
}

void explain_training(const TrainingStep& in, std::int32_t stage, Seconds optimizer,
                      const Breakdown& contention, const network::CollectivePrices& collectives,
                      std::vector<OperatorRow>& rows) {
  const network::PlanLayout layout(in.plan);
  const network::RankGroups groups = layout.groups();
  const CallPrices prices{in.setting, in.plan,     in.turns,
                          groups,     collectives, network::stage_slice(stage, layout, in.plan)};
  const LayerTimer timer(in, in.costs, prices);
  RowWriter writer(prices, rows);
  const auto add_drift = [&](LayerKind kind, Pass pass, const char* phase, double count) {
    const Seconds spared = timer.spared(kind, in.segments(kind, pass));
    if (spared > Seconds(0))
      rows.push_back({phase, "drift of ring passes", "", count, -1.0 * spared, "link", ""});
  };
  for (const LayerRun& run : in.stage_layers(stage)) {
    const std::vector<Operator> operators = training_operators(run.kind, in.setting, in.key());
    const double count = static_cast<double>(in.pipeline.per_chunk()) * run.count;
    writer.add(operators, LayerPart::forward, "forward", count);
    writer.add(operators, LayerPart::backward, "backward", count);
    for (const Segment& segment : in.segments(run.kind, Pass::backward)) {
      if (segment.again) writer.add(operators, segment.part, "recompute", count);
    }
    add_drift(run.kind, Pass::forward, "forward", count);
    add_drift(run.kind, in.cuts(run.kind) ? Pass::input : Pass::backward, "backward", count);
  }
  for (const TimeClass c : enum_values<TimeClass>()) {
    if (is_communication(c, kLayerGroups) && contention[c] != Seconds(0))
      rows.push_back({"backward",
                      contention[c] > Seconds(0) ? "links shared with others" : "groups come apart",
                      std::string(name_of(c)), 1, contention[c], "link", ""});
  }
  explain_optimizer(optimizer_cost(in, in.setting.system.device, stage), optimizer, rows);
}

}  // namespace shardscape::step
