#include <fmt/format.h>

#include <iterator>
#include <memory>

#include "sweep/validate/benchmark_row.h"
#include "sweep/validate/collective_bench.h"
#include "sweep/validate/predict_plans.h"

namespace shardscape::validate {

namespace {

/// The collectives that tables have, and the calls that they are.
constexpr std::string_view kCollectives[] = {"all_reduce", "reduce_scatter", "all_gather", "send_recv"};
constexpr network::CollectiveOp kCalls[] = {
    network::CollectiveOp::all_reduce, network::CollectiveOp::reduce_scatter,
    network::CollectiveOp::all_gather, network::CollectiveOp::ring_pass};
static_assert(std::size(kCollectives) == std::size(kCalls));

void read_row(RowReader& reader, Presets& presets, const EvaluateOptions& options, CollectiveBenches& benches,
              Benchmark& row) {
  BenchGroup group;
  group.cluster = reader.text("cluster").value_or("");
  group.stack = reader.text("stack").value_or(options.collective_stack);
  const std::size_t collective = reader.choice("collective", kCollectives).value_or(0);
  constexpr std::int64_t kMostGpus = 1 << 20;
  group.gpus = reader.integer("gpus", 2, kMostGpus).value_or(2);
  group.per_node = reader.integer("gpus_per_node", 1, kMostGpus).value_or(1);
  row.bytes = reader.positive("bytes").value_or(0);
  row.measured[0] = reader.positive("median_s");
  for (const char* column : {"min_s", "max_s"}) reader.positive(column);
  if (group.gpus % group.per_node != 0)
    reader.bad("gpus_per_node", fmt::format("{} GPUs do not divide by {}", group.gpus, group.per_node));
  for (const RowRefusal& why : check_presets("", group.cluster, group.stack, presets, options.folder))
    reader.bad(why.column, why.message);
  if (reader.failed()) return;
  row.what = fmt::format("{}, {} of {} B, {} GPUs, {} per node", group.cluster, kCollectives[collective],
                         cell(row.bytes), group.gpus, group.per_node);
  if (const auto cluster = presets.cluster(group.cluster, options.folder))
    row.regime.device = (*cluster)->device.name;
  row.regime.stack = group.stack;
  row.regime.operation = kCollectives[collective];
  row.regime.gpus = group.gpus;
  row.in_one_node = group.gpus == group.per_node;
  const auto time = benches.time(group, kCalls[collective], row.bytes);
  if (time) {
    row.predicted[0] = *time;
  } else {
    for (const RowRefusal& why : time.error()) reader.bad(why.column, why.message);
  }
}

}  // namespace

ReadBenchmark collective_rows(Presets& presets, const EvaluateOptions& options) {
  const auto benches = std::make_shared<CollectiveBenches>(presets, options.folder);
  return
      [&, benches](RowReader& reader, Benchmark& row) { read_row(reader, presets, options, *benches, row); };
}

}  // namespace shardscape::validate
