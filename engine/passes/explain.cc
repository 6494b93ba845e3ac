#include "engine/passes/explain.h"

#include <algorithm>
#include <cstdio>

namespace shardscape::passes {

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
  return format("%.0f x %.0f x %.0f", static_cast<double>(g.m), static_cast<double>(g.n),
                static_cast<double>(g.k));
}

std::string shape_text(const Operator& op, bool backward) {
  switch (op.kind) {
    case OperatorKind::gemm:
      return product(op.gemm);
    case OperatorKind::attention:
      return format("%.0f heads, %.0f q x %.0f kv", op.attention.batch * op.attention.heads,
                    op.attention.queries, op.attention.keys);
    case OperatorKind::pointwise:
      return megabytes((backward ? op.backward : op.forward).traffic);
    case OperatorKind::collective:
      break;
  }
  return megabytes((backward ? op.backward_comm : op.forward_comm).bytes);
}

const char* collective_name(network::CollectiveOp op) {
  switch (op) {
    case network::CollectiveOp::all_reduce:
      return "all_reduce";
    case network::CollectiveOp::reduce_scatter:
      return "reduce_scatter";
    case network::CollectiveOp::all_gather:
      return "all_gather";
    case network::CollectiveOp::all_to_all:
      return "all_to_all";
    case network::CollectiveOp::broadcast:
      return "broadcast";
    case network::CollectiveOp::ring_pass:
      return "ring_pass";
    case network::CollectiveOp::chain_pass:
      return "send_recv";
  }
  return "?";
}

class RowWriter {
 public:
  RowWriter(const Setting& setting, const ParallelPlan& plan, network::CollectiveModel& collectives,
            const network::Slice& slice, std::vector<OperatorRow>& rows)
      : setting_(setting), layout_(plan), collectives_(collectives), slice_(slice), rows_(rows) {}

  void add(const Operator& op, const std::string& phase, double count, bool backward) {
    if (count <= 0) return;
    if (op.kind == OperatorKind::collective) {
      add_collective(op, phase, count, backward ? op.backward_comm : op.forward_comm, backward);
      return;
    }
    if (backward && op.kind == OperatorKind::gemm) return add_gradients(op, phase, count);
    const OperatorTimes times = price(op, setting_);
    const compute::OperatorCost& cost = backward ? times.backward : times.forward;
    add_row(op.name, shape_text(op, backward), phase, count, cost);
  }

  /// What the weight gradients so far have left to add to their buffers.
  void add_accumulation(const std::string& phase, double count) {
    if (count <= 0 || accumulated_ <= 0) return;
    add_row("gradient_accumulation", format("%.4g M gradients", accumulated_ / 1e6), phase, count,
            accumulation_);
  }

 private:
  void add_row(std::string_view name, const std::string& shape, const std::string& phase, double count,
               const compute::OperatorCost& cost) {
    rows_.push_back(
        {phase, std::string(name), shape, count, cost.time, std::string(name_of(cost.bound)), ""});
  }

  void add_gradients(const Operator& op, const std::string& phase, double count) {
    const ProductGradients gradients = price_gradients(op, setting_);
    const std::string name(op.name);
    add_row(name + "_dgrad", product(gradients.input_shape), phase, count, gradients.input);
    add_row(name + "_wgrad", product(gradients.weight_shape), phase, count, gradients.weight.product);
    const compute::OperatorCost& more = gradients.weight.accumulation;
    if (more.time > longest_) accumulation_.bound = more.bound;
    longest_ = std::max(longest_, more.time);
    accumulation_.time += more.time;
    const compute::GemmShape& w = gradients.weight_shape;
    accumulated_ += static_cast<double>(w.m) * static_cast<double>(w.n) * static_cast<double>(w.batch);
  }

  void add_collective(const Operator& op, const std::string& phase, double count, const CollectiveCall& call,
                      bool backward) {
    if (call.repeats <= 0) return;
    const Seconds time = collectives_.time(call.op, call.bytes, layout_.group(call.axis), 1, slice_);
    const auto choice = collectives_.choice(call.op, call.bytes, layout_.group(call.axis));
    rows_.push_back({phase, std::string(op.name),
                     std::string(collective_name(call.op)) + " " + shape_text(op, backward),
                     count * call.repeats, time, "link", choice ? to_string(*choice) : ""});
  }

  const Setting& setting_;
  network::PlanLayout layout_;
  network::CollectiveModel& collectives_;
  network::Slice slice_;
  std::vector<OperatorRow>& rows_;
  double accumulated_ = 0;  ///< gradients of the list
  compute::OperatorCost accumulation_;
  Seconds longest_;  ///< of one product
};

}  // namespace

void explain(const ExplainedLayer& layer, const Setting& setting, const ParallelPlan& plan,
             network::CollectiveModel& collectives, std::vector<OperatorRow>& rows) {
  RowWriter writer(setting, plan, collectives, layer.slice, rows);
  for (const Operator& op : layer.operators) writer.add(op, layer.forward_phase, layer.forward_count, false);
  for (const Operator& op : layer.operators) writer.add(op, "backward", layer.backward_count, true);
  writer.add_accumulation("backward", layer.backward_count);
  for (const Operator& op : layer.operators) {
    // The core's keys and values of the other context ranks come again, too.
    const bool core = op.attention_core || op.forward_comm.axis == PlanAxis::context;
    if (!layer.recompute_core_only || core) writer.add(op, "recompute", layer.recompute_count, false);
  }
}

void explain_optimizer(const OptimizerCost& cost, Seconds time, std::vector<OperatorRow>& rows) {
  const bool sliced = cost.slicing > Seconds(0);
  rows.push_back({"step", "optimizer", format("%.4g M parameters", cost.parameters / 1e6), 1,
                  time - cost.slicing, std::string(name_of(cost.update.bound)), ""});
  if (!sliced) return;
  rows.push_back({"step", "zero_slicing", format("%.0f slices", cost.slices), 1, cost.slicing,
                  std::string(name_of(Bound::launch)), ""});
}

}  // namespace shardscape::passes
