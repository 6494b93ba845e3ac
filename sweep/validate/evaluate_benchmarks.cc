// Evaluates tables whose rows are predicted one by one: a table of kinds says how a row is read and which metrics it
// counts for. Kernels and collectives in the columns of public benchmarks are read here and predicted by the engine's
// functions for lone kernels and calls.
#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>

#include "engine/compute/kernel_alone.h"
#include "engine/network/collectives/protocols.h"
#include "sweep/validate/collective_bench.h"
#include "sweep/validate/table_evaluators.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

namespace {

/// The operations of an NCCL table, by the names of nccl-tests, and the calls that they are.
constexpr std::string_view kNcclOperations[] = {"all_reduce", "reduce_scatter", "all_gather", "alltoall"};
constexpr network::CollectiveOp kNcclCalls[] = {
    network::CollectiveOp::all_reduce, network::CollectiveOp::reduce_scatter,
    network::CollectiveOp::all_gather, network::CollectiveOp::all_to_all};
static_assert(std::size(kNcclOperations) == std::size(kNcclCalls));

std::string count(std::int64_t value) { return std::to_string(value); }

/// Reads and predicts the rows of one table of kernels or collectives that run alone on a device.
class KernelRows {
 public:
  KernelRows(TableKind kind, Presets& presets, const EvaluateOptions& options)
      : kind_(kind),
        presets_(presets),
        options_(options),
        names_(presets, options.device),
        collectives_(presets, options.folder) {}

  void read(RowReader& reader, Benchmark& row) {
    if (kind_ == TableKind::expert_exchange) {
      read_exchange_times(reader, row);
    } else {
      row.measured[0] = reader.positive("measured_time_s");
    }
    if (reader.failed()) return;
    const DeviceSpec* const device = read_device(reader, row);
    switch (kind_) {
      case TableKind::gemm_alone:
        read_gemm_alone(reader, device, row);
        break;
      case TableKind::attention_prefill:
      case TableKind::attention_decode:
        read_attention(reader, device, row);
        break;
      case TableKind::nccl:
        read_nccl(reader, device, row);
        break;
      case TableKind::custom_all_reduce:
        read_custom(reader, device, row);
        break;
      case TableKind::experts:
        read_experts(reader, device, row);
        break;
      case TableKind::latent_attention:
        read_latent(reader, device, row);
        break;
      default:
        read_exchange(reader, device, row);
    }
  }

 private:
  /// The row's device; null where it is unknown, which is reported, or has no preset, so that nothing is predicted.
  const DeviceSpec* read_device(RowReader& reader, Benchmark& row) {
    const std::string text = reader.text("device").value_or("");
    row.regime.device = text;
    const TableNames::Named name = names_.device(text);
    if (!name) {
      if (!name.error().understood) reader.bad("device", name.error().why);
      row.unpredicted = name.error().why;
      return nullptr;
    }
    const auto device = presets_.device(*name, options_.folder);
    if (!device) {
      reader.bad("device", device.error());
      return nullptr;
    }
    row.regime.device = (*device)->name;
    return *device;
  }

  static Precision read_format(RowReader& reader, const char* column, Benchmark& row) {
    const std::string text = reader.text(column).value_or("");
    const std::optional<Precision> precision = TableNames::precision(text);
    if (!precision) reader.bad(column, "unknown '" + text + "'; one of " + TableNames::precisions());
    row.regime.precision = name_of(precision.value_or(Precision::bf16));
    return precision.value_or(Precision::bf16);
  }

  static void read_gemm_alone(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
    const Precision precision = read_format(reader, "gemm_dtype", row);
    compute::GemmShape shape;
    shape.m = reader.integer("m").value_or(1);
    shape.n = reader.integer("n").value_or(1);
    shape.k = reader.integer("k").value_or(1);
    row.regime.operation = "gemm";
    row.what = count(shape.m) + " x " + count(shape.n) + " x " + count(shape.k);
    row.kin = count(shape.n) + " x " + count(shape.k);
    if (device == nullptr || reader.failed()) return;
    if (!device->supports(precision)) {
      row.unpredicted = fmt::format("device {} has no unit for {}", device->name, name_of(precision));
      return;
    }
    row.predicted[0] = compute::gemm_alone(shape, precision, *device).time.value();
  }

  void read_attention(RowReader& reader, const DeviceSpec* device, Benchmark& row) const {
    const bool decoding = kind_ == TableKind::attention_decode;
    compute::AttentionShape shape;
    const std::int64_t batch = reader.integer("batch_size").value_or(1);
    const std::int64_t tokens = reader.integer("isl").value_or(1);
    const std::int64_t step = decoding ? reader.integer("step", 0).value_or(0) : 0;
    const std::int64_t heads = reader.integer("num_heads").value_or(1);
    const std::int64_t kv_heads = reader.integer("num_key_value_heads").value_or(1);
    const std::int64_t head_dim = reader.integer("head_dim").value_or(1);
    row.regime.operation = decoding ? "decode" : "prefill";
    row.regime.precision = name_of(Precision::bf16);
    row.what = fmt::format("{} x {} tokens, {}/{} heads of {}", count(batch), count(tokens + step),
                           count(heads), count(kv_heads), count(head_dim));
    row.kin = count(heads) + '/' + count(kv_heads) + " x " + count(head_dim);
    if (!reader.failed() && heads % kv_heads != 0)
      reader.bad("num_heads", count(heads) + " do not divide by the " + count(kv_heads) + " of the keys");
    if (device == nullptr || reader.failed()) return;
    shape.batch = static_cast<double>(batch);
    shape.heads = static_cast<double>(heads);
    shape.kv_heads = static_cast<double>(kv_heads);
    shape.head_dim = static_cast<double>(head_dim);
    shape.queries = decoding ? 1 : static_cast<double>(tokens);
    shape.keys = static_cast<double>(tokens + step);
    // The rows of these tables are kernels of TensorRT-LLM.
    row.predicted[0] =
        (decoding ? compute::decode_attention_alone(shape, AttentionKernel::trtllm, Precision::bf16, *device)
                  : compute::prompt_attention_alone(shape, AttentionKernel::trtllm, Precision::bf16, *device))
            .time.value();
  }

  /// Reads the message and the group.
  static void read_message(RowReader& reader, const char* format_column, Benchmark& row) {
    double element = 1;
    if (reader.text(format_column) == "int8") {
      row.regime.precision = "int8";
    } else {
      element = bytes_per_element(read_format(reader, format_column, row));
    }
    const double elements = reader.positive("message_size").value_or(1);
    row.regime.gpus = reader.integer("num_gpus", 2).value_or(2);
    row.bytes = element * elements;
    row.kin = row.regime.operation + ' ' + count(row.regime.gpus);
    row.what = row.regime.operation + " of " + cell(row.bytes) + " B, " + count(row.regime.gpus) + " GPUs";
  }

  void read_nccl(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
    const std::size_t operation = reader.choice("op_name", kNcclOperations).value_or(0);
    const network::CollectiveOp call = kNcclCalls[operation];
    row.regime.operation = kNcclOperations[operation];
    row.regime.stack = options_.collective_stack;
    read_message(reader, "nccl_dtype", row);
    const TableNames::Named cluster = names_.cluster(reader.text("device").value_or(""));
    if (device != nullptr && !cluster) reader.bad("device", cluster.error().why);
    for (const RowRefusal& why :
         check_presets("", cluster.value_or(""), options_.collective_stack, presets_, options_.folder))
      reader.bad(why.column, why.message);
    if (device == nullptr || reader.failed()) return;
    // A device with constants of its own for calls inside a node is predicted by these, others by the stack.
    if (const auto alone =
            network::collective_in_node(*device, network::operation_of(call),
                                        static_cast<std::int32_t>(row.regime.gpus), Bytes(row.bytes))) {
      row.regime.stack.clear();
      row.predicted[0] = alone->value();
      return;
    }
    const auto time = collectives_.time(
        {*cluster, options_.collective_stack, row.regime.gpus, row.regime.gpus}, call, row.bytes);
    if (time) row.predicted[0] = *time;
    if (!time) row.unpredicted = time.error().front().message;
  }

  static void read_custom(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
    row.regime.operation = "custom_all_reduce";
    const std::string source = reader.text("kernel_source").value_or("");
    row.regime.stack = source;
    read_message(reader, "allreduce_dtype", row);
    const std::optional<AllReduceKernels> kernels = kernels_of(source, reader.text("file").value_or(""));
    if (!kernels)
      reader.bad("kernel_source", "unknown '" + source + "'; names begin with vLLM, SGLang or TRTLLM");
    if (device == nullptr || reader.failed()) return;
    const auto time =
        network::all_reduce_in_node(*device, *kernels, source.ends_with("_eager"),
                                    static_cast<std::int32_t>(row.regime.gpus), Bytes(row.bytes));
    if (time) row.predicted[0] = time->value();
    if (!time) row.unpredicted = "device " + device->name + " has no constants of custom all-reduces";
  }

  /// The all-reduce kernels that a row has timed. SGLang took over TensorRT-LLM's kernels in 0.5.14; its version is in
  /// the path of the file that the row comes from ("comm/sglang/0.5.10/...").
  static std::optional<AllReduceKernels> kernels_of(const std::string& source, const std::string& file) {
    if (source.starts_with("TRTLLM")) return AllReduceKernels::trtllm;
    if (source.starts_with("vLLM")) return AllReduceKernels::vllm;
    if (!source.starts_with("SGLang")) return std::nullopt;
    constexpr std::string_view kFolder = "sglang/0.5.";
    const std::size_t at = file.find(kFolder);
    int patch = 0;
    if (at != std::string::npos) {
      const char* const digits = file.data() + at + kFolder.size();
      std::from_chars(digits, file.data() + file.size(), patch);
    }
    constexpr int kOwnKernelsUntil = 13;
    return patch > kOwnKernelsUntil ? AllReduceKernels::sglang : AllReduceKernels::vllm;
  }

  const TableKind kind_;
  Presets& presets_;
  const EvaluateOptions& options_;
  TableNames names_;
  CollectiveBenches collectives_;
};

/// A metric: a range of rows that a bar may be set on.
struct Band {
  const char* key;
  const char* name;
  double over_s = 0;                            ///< of rows that took longer than this
  bool (*has)(const Benchmark& row) = nullptr;  ///< and for which this holds; null: for all
  std::size_t way = 0;                          ///< index in Benchmark::measured and predicted
  const char* unit = "s";
};

/// How the rows of a kind of table are read, and what is compared.
struct BenchmarkKind {
  std::vector<std::string> predicted;  ///< columns of predictions
  std::vector<Band> bands;
  ReadBenchmark (*rows)(Presets& presets, const EvaluateOptions& options);
};

template <TableKind kKind>
ReadBenchmark kernel_rows(Presets& presets, const EvaluateOptions& options) {
  const auto rows = std::make_shared<KernelRows>(kKind, presets, options);
  return [rows](RowReader& reader, Benchmark& row) { rows->read(reader, row); };
}

bool is_large(const Benchmark& row) { return row.bytes >= 256 * 1024; }
bool is_small(const Benchmark& row) { return !is_large(row); }
bool is_large_in_node(const Benchmark& row) { return row.in_one_node && row.bytes >= 1e6; }
bool is_low_latency(const Benchmark& row) { return row.regime.operation == "low latency"; }
bool is_normal(const Benchmark& row) { return row.regime.operation == "normal"; }

BenchmarkKind kind_of(TableKind kind) {
  const Band time = {"time", "time"}, over_20us = {"time_20us", "over 20 us", 2e-5},
             over_100us = {"time_long", "over 0.1 ms", 1e-4};
  const std::vector<std::string> one = {"predicted_time_s"};
  switch (kind) {
    case TableKind::mlperf:
      return {{"predicted_completed_requests_per_s", "predicted_tokens_per_s"},
              {{"requests", "requests per second", 0, nullptr, 0, "1/s"},
               {"tokens", "tokens per second", 0, nullptr, 1, "1/s"}},
              mlperf_rows};
    case TableKind::gemm:
      return {{"predicted_time_s", "predicted_row_tile_time_s"},
              {{"time", "kernel time, own tile"},
               {"time_long", "own tile, over 0.1 ms", over_100us.over_s},
               {"time_row_tile", "row's tile", 0, nullptr, 1}},
              gemm_rows};
    case TableKind::collectives:
      return {one, {time, {"time_node", "one node, 1 MB and more", 0, is_large_in_node}}, collective_rows};
    case TableKind::gemm_alone:
      return {one, {time, over_100us, {"time_10us", "over 10 us", 1e-5}}, kernel_rows<TableKind::gemm_alone>};
    case TableKind::attention_prefill:
      return {one, {time, over_100us}, kernel_rows<TableKind::attention_prefill>};
    case TableKind::attention_decode:
      return {one, {time, over_20us}, kernel_rows<TableKind::attention_decode>};
    case TableKind::latent_attention:
      return {one, {time, over_20us}, kernel_rows<TableKind::latent_attention>};
    case TableKind::experts:
      return {one, {time, {"time_50us", "over 50 us", 5e-5}}, kernel_rows<TableKind::experts>};
    case TableKind::nccl:
      return {
          one,
          {time, {"time_large", "256 KB and more", 0, is_large}, {"time_small", "below 256 KB", 0, is_small}},
          kernel_rows<TableKind::nccl>};
    case TableKind::custom_all_reduce:
      return {one, {time}, kernel_rows<TableKind::custom_all_reduce>};
    case TableKind::expert_exchange:
      return {{"predicted_dispatch_s", "predicted_combine_s"},
              {{"dispatch_low_latency", "dispatch, low latency", 0, is_low_latency, 0},
               {"combine_low_latency", "combine, low latency", 0, is_low_latency, 1},
               {"dispatch_normal", "dispatch, normal", 0, is_normal, 0},
               {"combine_normal", "combine, normal", 0, is_normal, 1}},
              kernel_rows<TableKind::expert_exchange>};
    case TableKind::plans:
    case TableKind::open_loop:
      break;  // their rows are predicted together
  }
  return {};
}

/// Pairs what was measured with what is predicted.
void add(const TableLine& line, const std::vector<Band>& bands, Benchmark row, Evaluation& out) {
  for (std::size_t i = 0; i < bands.size(); ++i) {
    const std::optional<double>&measured = row.measured[bands[i].way],
          &predicted = row.predicted[bands[i].way];
    const bool counts = measured && predicted && *measured > bands[i].over_s &&
                        (bands[i].has == nullptr || bands[i].has(row));
    if (counts) out.metrics[i].pairs.push_back({out.rows.size(), *measured, *predicted});
  }
  std::vector<std::string>& cells = out.predictions.emplace_back();
  for (std::size_t way = 0; way < out.prediction_columns.size(); ++way)
    cells.push_back(cell(row.predicted[way]));
  out.rows.push_back(
      {line.line, line.id, std::move(row.what), -1, {}, {}, std::move(row.regime), std::move(row.kin)});
}

}  // namespace

void evaluate_benchmarks(const Table& table, Presets& presets, const EvaluateOptions& options,
                         Evaluation& out) {
  const BenchmarkKind kind = kind_of(out.kind);
  for (const Band& band : kind.bands) out.metrics.push_back({band.key, band.name, band.unit, {}});
  out.prediction_columns = kind.predicted;
  const ReadBenchmark read = kind.rows(presets, options);
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    for (const Column& column : columns_of(out.kind)) {
      if (column.use == ColumnUse::needed) reader.need(column.name);
    }
    Benchmark row;
    read(reader, row);
    if (reader.failed()) continue;
    if (row.unpredicted) {
      out.unpredicted.push_back({cells.line, *row.unpredicted});
    } else {
      add({cells.line, row_id(reader, table, cells)}, kind.bands, std::move(row), out);
    }
  }
}

}  // namespace shardscape::validate
