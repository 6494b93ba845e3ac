#include <map>
#include <memory>
#include <tuple>

#include "engine/base/check.h"
#include "engine/network/collective_model.h"
#include "engine/network/fabric.h"
#include "sweep/validate/evaluators.h"
#include "sweep/validate/predict_plans.h"

namespace shardscape {

namespace validate {
enum class MeasuredCollective : std::uint8_t { all_reduce, reduce_scatter, all_gather, send_recv };
}  // namespace validate

SHARDSCAPE_ENUM_NAMES(validate::MeasuredCollective, "all_reduce", "reduce_scatter", "all_gather",
                      "send_recv");

namespace validate {

namespace {

constexpr double kLargeMessage = 1e6;

struct CollectiveRow {
  std::string cluster, stack;
  MeasuredCollective collective = MeasuredCollective::all_reduce;
  std::int64_t gpus = 0, per_node = 0;
  double bytes = 0, measured_s = 0;
};

std::optional<CollectiveRow> read_collective(RowReader& reader, Presets& presets,
                                             const EvaluateOptions& options) {
  CollectiveRow row;
  for (const char* column : {"cluster", "collective", "gpus", "gpus_per_node", "bytes", "median_s"}) {
    reader.need(column);
  }
  row.cluster = reader.text("cluster").value_or("");
  row.stack = reader.text("stack").value_or(options.collective_stack);
  row.collective = reader.choice<MeasuredCollective>("collective").value_or(MeasuredCollective::all_reduce);
  constexpr std::int64_t kMostGpus = 1 << 20;
  row.gpus = reader.integer("gpus", 2, kMostGpus).value_or(2);
  row.per_node = reader.integer("gpus_per_node", 1, kMostGpus).value_or(1);
  row.bytes = reader.positive("bytes").value_or(0);
  row.measured_s = reader.positive("median_s").value_or(0);
  for (const char* column : {"min_s", "max_s"}) reader.positive(column);
  if (row.gpus % row.per_node != 0) {
    reader.bad("gpus_per_node",
               std::to_string(row.gpus) + " GPUs do not divide by " + std::to_string(row.per_node));
  }
  for (const RowRefusal& why : check_presets("", row.cluster, row.stack, presets, options.folder)) {
    reader.bad(why.column, why.message);
  }
  if (reader.failed()) return std::nullopt;
  return row;
}

/// GPUs of one node: the product of the scale-up dimensions.
std::int64_t node_size(const FabricSpec& fabric) {
  std::int64_t gpus = 1;
  for (const DimensionSpec& dimension : fabric.dimensions) {
    if (dimension.scope != LinkScope::scale_up) break;
    gpus *= std::max<std::int64_t>(1, dimension.size());
  }
  return gpus;
}

/// Groups of one shape on one machine. Alone on it: a group inside a node has a node of its size to itself;
/// one across nodes shares them with its siblings, which use adapters of their own.
class Bench {
 public:
  Bench(FabricSpec spec, const StackProfile& stack, const DeviceSpec& device, network::RankGroup group)
      : spec_(std::move(spec)),
        node_(device.node),
        fabric_(spec_),
        model_(fabric_, stack.communication, device.hbm_peak(), &node_),
        group_(group) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  double time(MeasuredCollective collective, double bytes) {
    return model_.time(operation(collective), Bytes(bytes), group_).value();
  }

 private:
  static network::CollectiveOp operation(MeasuredCollective collective) {
    switch (collective) {
      case MeasuredCollective::all_reduce:
        return network::CollectiveOp::all_reduce;
      case MeasuredCollective::reduce_scatter:
        return network::CollectiveOp::reduce_scatter;
      case MeasuredCollective::all_gather:
        return network::CollectiveOp::all_gather;
      case MeasuredCollective::send_recv:
        return network::CollectiveOp::ring_pass;
    }
    return network::CollectiveOp::all_reduce;
  }

  FabricSpec spec_;
  NodeCollectives node_;
  network::Fabric fabric_;
  network::CollectiveModel model_;
  network::RankGroup group_;
};

class Benches {
 public:
  Benches(Presets& presets, const EvaluateOptions& options) : presets_(presets), options_(options) {}

  /// Null where the row's machine does not exist; reported.
  Bench* find(const CollectiveRow& row, RowReader& reader) {
    const std::tuple key(row.cluster, row.stack, row.gpus, row.per_node);
    const auto known = benches_.find(key);
    if (known != benches_.end()) return known->second.get();
    std::unique_ptr<Bench> bench = make(row, reader);
    if (bench == nullptr) return nullptr;
    return benches_.emplace(key, std::move(bench)).first->second.get();
  }

 private:
  std::unique_ptr<Bench> make(const CollectiveRow& row, RowReader& reader) {
    const auto cluster = presets_.cluster(row.cluster, options_.folder);
    const auto stack = presets_.stack(row.stack, options_.folder);
    SHARDSCAPE_CHECK(cluster && stack, row.cluster, row.stack);  // as read_collective() found
    const std::int64_t node = node_size((*cluster)->fabric.fabric);
    const std::int64_t nodes = row.gpus / row.per_node;
    if (row.per_node > node) {
      reader.bad("gpus_per_node",
                 "a node of cluster " + row.cluster + " has " + std::to_string(node) + " GPUs");
      return nullptr;
    }
    Problems problems;
    FabricSpec fabric = (*cluster)->fabric.instantiate(nodes == 1 ? row.gpus : nodes * node, problems);
    for (const Problem& problem : problems.list()) reader.bad("gpus", problem.message);
    if (!problems.empty()) return nullptr;
    network::RankGroup group;
    group.push(static_cast<std::int32_t>(row.per_node), 1);
    group.push(static_cast<std::int32_t>(nodes), static_cast<std::int32_t>(node));
    return std::make_unique<Bench>(std::move(fabric), **stack, (*cluster)->device, group);
  }

  Presets& presets_;
  const EvaluateOptions& options_;
  std::map<std::tuple<std::string, std::string, std::int64_t, std::int64_t>, std::unique_ptr<Bench>> benches_;
};

std::string describe(const CollectiveRow& row) {
  return row.cluster + ", " + std::string(name_of(row.collective)) + " of " + cell(row.bytes) + " B, " +
         std::to_string(row.gpus) + " GPUs, " + std::to_string(row.per_node) + " per node";
}

}  // namespace

void evaluate_collectives(const Table& table, Presets& presets, const EvaluateOptions& options,
                          Evaluation& out) {
  out.metrics = {{"time", "time", "s", {}}, {"time_node", "one node, 1 MB and more", "s", {}}};
  out.prediction_columns = {"predicted_time_s"};
  Benches benches(presets, options);
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    const std::optional<CollectiveRow> row = read_collective(reader, presets, options);
    if (!row) continue;
    Bench* const bench = benches.find(*row, reader);
    if (bench == nullptr) continue;
    const double predicted = bench->time(row->collective, row->bytes);
    const Pair pair{out.rows.size(), row->measured_s, predicted};
    out.metrics[0].pairs.push_back(pair);
    if (row->gpus == row->per_node && row->bytes >= kLargeMessage) out.metrics[1].pairs.push_back(pair);
    out.predictions.push_back({cell(predicted)});
    out.rows.push_back({cells.line, row_id(reader, table, cells), describe(*row), -1, {}, {}});
  }
}

}  // namespace validate

}  // namespace shardscape
