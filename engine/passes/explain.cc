#include "engine/passes/explain.h"

#include <cstdio>

namespace shardscape::passes {

namespace {

using workload::CollectiveCall;
using workload::Operator;
using workload::OperatorKind;

std::string format(const char* pattern, double a, double b = 0, double c = 0) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

std::string megabytes(Bytes bytes) { return format("%.4g MB", bytes.value() / 1e6); }

std::string product(const compute::GemmShape& g, bool backward) {
  const auto m = static_cast<double>(g.m), n = static_cast<double>(g.n), k = static_cast<double>(g.k);
  std::string text = format("%.0f x %.0f x %.0f", m, n, k);
  if (backward) text = format("%.0f x %.0f x %.0f", m, k, n) + " + " + format("%.0f x %.0f x %.0f", k, n, m);
  return text;
}

std::string shape_text(const Operator& op, bool backward) {
  switch (op.kind) {
    case OperatorKind::gemm:
      return product(op.gemm, backward);
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
    const OperatorTimes times = price(op, setting_);
    const compute::OperatorCost& cost = backward ? times.backward : times.forward;
    rows_.push_back({phase, std::string(op.name), shape_text(op, backward), count, cost.time,
                     std::string(name_of(cost.bound)), ""});
  }

 private:
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
};

}  // namespace

void explain(const ExplainedLayer& layer, const Setting& setting, const ParallelPlan& plan,
             network::CollectiveModel& collectives, std::vector<OperatorRow>& rows) {
  RowWriter writer(setting, plan, collectives, layer.slice, rows);
  for (const Operator& op : layer.operators) writer.add(op, layer.forward_phase, layer.forward_count, false);
  for (const Operator& op : layer.operators) writer.add(op, "backward", layer.backward_count, true);
  for (const Operator& op : layer.operators) {
    // The core's keys and values of the other context ranks come again, too.
    const bool core = op.attention_core || op.forward_comm.axis == PlanAxis::context;
    if (!layer.recompute_core_only || core) writer.add(op, "recompute", layer.recompute_count, false);
  }
}

void explain_optimizer(double parameters, Seconds time, std::vector<OperatorRow>& rows) {
  rows.push_back({"step", "optimizer", format("%.4g M parameters", parameters / 1e6), 1, time,
                  std::string(name_of(Bound::hbm)), ""});
}

}  // namespace shardscape::passes
