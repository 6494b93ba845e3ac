// Reads and predicts rows of tables of matrix products and collectives, and of tables about mixtures of experts and
// latent attention: grouped products, attention kernels, and exchanges between the ranks of experts.
#include <fmt/format.h>

#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "engine/compute/expert_products.h"
#include "engine/compute/gemm.h"
#include "engine/compute/latent_attention.h"
#include "engine/network/collectives/expert_dispatch.h"
#include "sweep/validate/collective_bench.h"
#include "sweep/validate/predict_plans.h"
#include "sweep/validate/table_evaluators.h"
#include "sweep/validate/table_names.h"
#include "sweep/yaml/number.h"

namespace shardscape::validate {

namespace {

struct GemmRow {
  compute::GemmShape shape;
  Precision precision = Precision::bf16;
  const DeviceSpec* device = nullptr;
  compute::GemmRequest request;  ///< with the row's clock and, if given, its tile
  double measured_s = 0;
};

/// The row's tile: all extents or none must be given; the number of stages may be missing.
std::optional<compute::GemmTile> read_tile(RowReader& reader) {
  constexpr std::int64_t kMaxExtent = 4096;
  const auto m = reader.integer("tile_m", 1, kMaxExtent), n = reader.integer("tile_n", 1, kMaxExtent);
  const auto k = reader.integer("tile_k", 1, kMaxExtent), stages = reader.integer("stages", 2, kMaxExtent);
  if (m && n && k) {
    return compute::GemmTile{static_cast<std::int32_t>(*m), static_cast<std::int32_t>(*n),
                             static_cast<std::int32_t>(*k), static_cast<std::int32_t>(stages.value_or(0))};
  }
  const bool partly = reader.text("tile_m") || reader.text("tile_n") || reader.text("tile_k");
  if (partly && !reader.failed()) reader.bad("tile_m", "give tile_m, tile_n and tile_k, or none of them");
  return std::nullopt;
}

std::optional<GemmRow> read_gemm(RowReader& reader, Presets& presets, const EvaluateOptions& options) {
  GemmRow row;
  row.shape.m = reader.integer("m").value_or(0);
  row.shape.n = reader.integer("n").value_or(0);
  row.shape.k = reader.integer("k").value_or(0);
  reader.integer("grid_size");
  row.request.tile = read_tile(reader);
  if (const auto clock = reader.positive("sm_clock_hz")) row.request.locked_clock = Hertz(*clock);
  row.measured_s = reader.positive("measured_time_s").value_or(0);
  row.precision = reader.choice<Precision>("precision").value_or(Precision::bf16);
  const auto device = presets.device(reader.text("device").value_or(options.device), options.folder);
  if (!device) {
    reader.bad("device", device.error());
  } else if (!(*device)->supports(row.precision)) {
    reader.bad("precision",
               fmt::format("device {} has no unit for {}", (*device)->name, name_of(row.precision)));
  } else if (row.request.tile && !compute::tile_fits(*row.request.tile, row.precision, **device)) {
    reader.bad("tile_m", "an SM of " + (*device)->name + " cannot hold the tile");
  } else {
    row.device = *device;
  }
  if (reader.failed()) return std::nullopt;
  return row;
}

/// Predicted seconds with this tile, or with the one that the model chooses.
double predict(const GemmRow& row, const std::optional<compute::GemmTile>& tile) {
  compute::GemmRequest request = row.request;
  request.tile = tile;
  return compute::gemm(row.shape, row.precision, *row.device, {}, request).time.value();
}

void read_row(RowReader& reader, Presets& presets, const EvaluateOptions& options, Benchmark& row) {
  const std::optional<GemmRow> read = read_gemm(reader, presets, options);
  if (!read) return;
  const compute::GemmShape& shape = read->shape;
  row.what = fmt::format("{} x {} x {}", shape.m, shape.n, shape.k);
  row.regime.device = read->device->name;
  row.regime.precision = name_of(read->precision);
  row.regime.operation = "gemm";
  row.measured = {read->measured_s, read->measured_s};
  row.predicted[0] = predict(*read, std::nullopt);
  if (read->request.tile) row.predicted[1] = predict(*read, read->request.tile);
}

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

enum class ExchangeKernel : std::uint8_t { ll, normal };
enum class LatentOperation : std::uint8_t { mla_context, mla_generation };

constexpr double kRanksOfNode = 8;  ///< ranks per node in the benchmark's groups, also on NVL72

/// Whether experts have one projection up, as Nemotron 3 has (squared ReLU; NVIDIA 2025): tables don't say, but the
/// width identifies its smallest model, and 22 choices the larger ones.
bool is_ungated(std::int64_t inner, std::int64_t top_k) {
  constexpr std::int64_t kNanoWidth = 1856, kSuperChoices = 22;
  return inner == kNanoWidth || top_k == kSuperChoices;
}

/// The exponent of a load; nothing: balanced. Reports texts that are neither "balanced" nor "power_law_A".
std::optional<double> read_exponent(RowReader& reader) {
  const std::string text = reader.text("distribution").value_or("");
  constexpr std::string_view kPowerLaw = "power_law_";
  constexpr double kSteepest = 10;
  if (text == "balanced") return std::nullopt;
  if (text.starts_with(kPowerLaw)) {
    const auto exponent = yaml::parse_finite(text.substr(kPowerLaw.size()));
    if (exponent && *exponent >= 0 && *exponent <= kSteepest) return *exponent;
  }
  reader.bad("distribution", fmt::format("unknown '{}'; balanced or power_law_EXPONENT", text));
  return std::nullopt;
}

std::optional<double> microseconds(RowReader& reader, std::string_view column) {
  constexpr double kMicro = 1e-6, kMost = 1e12;
  const auto text = reader.text(column);
  if (!text) return std::nullopt;
  const auto value = yaml::parse_finite(*text);
  if (value && *value >= 0 && *value <= kMost) return kMicro * *value;
  reader.bad(column, fmt::format("'{}' must be microseconds, 0 or more", *text));
  return std::nullopt;
}

std::optional<double> positive_sum(std::optional<double> a, std::optional<double> b) {
  if (!a || *a + b.value_or(0) <= 0) return std::nullopt;
  return *a + b.value_or(0);
}

}  // namespace

ReadBenchmark gemm_rows(Presets& presets, const EvaluateOptions& options) {
  return [&](RowReader& reader, Benchmark& row) { read_row(reader, presets, options, row); };
}

ReadBenchmark collective_rows(Presets& presets, const EvaluateOptions& options) {
  const auto benches = std::make_shared<CollectiveBenches>(presets, options.folder);
  return
      [&, benches](RowReader& reader, Benchmark& row) { read_row(reader, presets, options, *benches, row); };
}

void read_experts(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
  constexpr std::int64_t kMostExperts = 65'536;
  const std::int64_t hidden = reader.integer("hidden_size").value_or(1);
  const std::int64_t inner = reader.integer("inter_size").value_or(1);
  const std::int64_t tensor = reader.integer("moe_tp_size").value_or(1);
  const std::int64_t ranks = reader.integer("moe_ep_size").value_or(1);
  const compute::Routing routing = {reader.integer("num_tokens").value_or(1),
                                    reader.integer("topk").value_or(1),
                                    reader.integer("num_experts", 1, kMostExperts).value_or(1)};
  const std::optional<double> exponent = read_exponent(reader);
  row.regime.operation = "experts";
  row.regime.precision = name_of(Precision::bf16);
  row.kin = fmt::format("{} -> {}, {} of {}, tp {}, ep {}", hidden, inner, routing.top_k, routing.experts,
                        tensor, ranks);
  row.what = fmt::format("{} tokens, {}", routing.tokens, row.kin);
  if (reader.failed()) return;
  if (routing.top_k > routing.experts)
    reader.bad("topk", fmt::format("more than {} experts", routing.experts));
  if (routing.experts % ranks != 0)
    reader.bad("moe_ep_size", fmt::format("{} experts do not divide by it", routing.experts));
  if (inner < tensor) reader.bad("moe_tp_size", fmt::format("exceeds the {} values of an expert", inner));
  if (device == nullptr || reader.failed()) return;
  const compute::ExpertLayer layer = {.hidden = static_cast<double>(hidden),
                                      .inner = static_cast<double>(inner) / static_cast<double>(tensor),
                                      .gated = !is_ungated(inner, routing.top_k),
                                      .tokens = static_cast<double>(routing.tokens),
                                      .experts = static_cast<double>(routing.experts)};
  row.predicted[0] =
      compute::routed_experts_alone(routing, exponent, ranks, layer, Precision::bf16, *device).time.value();
}

void read_latent(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
  const auto operation = reader.choice<LatentOperation>("op_name");
  const bool decoding = operation == LatentOperation::mla_generation;
  const std::int64_t batch = reader.integer("batch_size").value_or(1);
  const std::int64_t tokens = reader.integer("isl").value_or(1) + reader.integer("step", 0).value_or(0);
  const std::int64_t heads = reader.integer("num_heads").value_or(1);
  const std::string cache_name = reader.text("kv_cache_dtype").value_or("");
  const std::optional<Precision> cache = TableNames::precision(cache_name);
  if (!cache)
    reader.bad("kv_cache_dtype", "unknown '" + cache_name + "'; one of " + TableNames::precisions());
  row.regime.operation = decoding ? "latent decode" : "latent prefill";
  row.regime.precision = name_of(cache.value_or(Precision::bf16));
  row.what = fmt::format("{} x {} tokens, {} heads, {}", batch, tokens, heads, row.regime.operation);
  row.kin = fmt::format("{} heads, {}", heads, row.regime.operation);
  if (device == nullptr || reader.failed()) return;
  compute::LatentShape shape;
  shape.batch = static_cast<double>(batch);
  shape.heads = static_cast<double>(heads);
  shape.keys = static_cast<double>(tokens);
  shape.queries = decoding ? 1 : shape.keys;
  row.predicted[0] = (decoding ? compute::latent_decode(shape, *cache, *device)
                               : compute::latent_prompt(shape, *cache, *device))
                         .time.value();
}

void read_exchange(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
  const auto kernel = reader.choice<ExchangeKernel>("op_name");
  const bool low = kernel == ExchangeKernel::ll;
  const auto number = [&](const char* column) {
    return static_cast<double>(reader.integer(column).value_or(1));
  };
  network::ExpertExchange call;
  call.tokens = number("num_token");
  call.hidden = number("hidden_size");
  call.top_k = number("num_topk");
  call.experts = number("num_experts");
  call.nodes = number("node_num");
  call.ranks = kRanksOfNode * call.nodes;
  network::ExpertExchange back = call;
  if (!low) {
    reader.need("dispatch_sms");
    reader.need("combine_sms");
    call.sms = number("dispatch_sms");
    back.sms = number("combine_sms");
  }
  row.regime.operation = low ? "low latency" : "normal";
  row.regime.gpus = static_cast<std::int64_t>(call.ranks);
  row.what = fmt::format("{} x {}, {} of {}, {} nodes, {}", call.tokens, call.hidden, call.top_k,
                         call.experts, call.nodes, row.regime.operation);
  row.kin = fmt::format("{} x {}, {} of {}", call.tokens, call.hidden, call.top_k, call.experts);
  if (reader.failed()) return;
  if (call.top_k > call.experts) reader.bad("num_topk", fmt::format("more than {} experts", call.experts));
  if (device == nullptr || reader.failed()) return;
  const DispatchKernels kernels = low ? DispatchKernels::low_latency : DispatchKernels::normal;
  const auto out =
      network::expert_exchange_time(device->node.experts, kernels, network::DispatchWay::dispatch, call);
  const auto home =
      network::expert_exchange_time(device->node.experts, kernels, network::DispatchWay::combine, back);
  if (!out || !home) {
    row.unpredicted = fmt::format("device {} has no constants of expert dispatch{}", device->name,
                                  call.nodes > 1 ? " between nodes" : "");
    return;
  }
  row.predicted = {out->value(), home->value()};
}

void read_exchange_times(RowReader& reader, Benchmark& row) {
  const auto sum = [&](const char* average, const char* transmit, const char* notify) {
    const auto whole = positive_sum(microseconds(reader, average), 0);
    return whole ? whole : positive_sum(microseconds(reader, transmit), microseconds(reader, notify));
  };
  row.measured = {sum("dispatch_avg_t_us", "dispatch_transmit_us", "dispatch_notify_us"),
                  sum("combine_avg_t_us", "combine_transmit_us", "combine_notify_us")};
}

}  // namespace shardscape::validate
