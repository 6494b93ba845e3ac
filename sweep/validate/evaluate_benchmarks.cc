// Evaluates tables of single kernels and collectives, in the columns of public benchmarks: reads each row, predicts it
// by the engine's functions for lone kernels and calls, and collects the metrics of its kind.
#include <fmt/format.h>

#include <charconv>
#include <optional>

#include "engine/compute/kernel_alone.h"
#include "engine/network/collectives/protocols.h"
#include "sweep/validate/benchmark_row.h"
#include "sweep/validate/collective_bench.h"
#include "sweep/validate/table_evaluators.h"
#include "sweep/validate/table_names.h"

namespace shardscape::validate {

namespace {

/// The operations of an NCCL table, by the names of nccl-tests.
enum class NcclOperation : std::uint8_t { all_reduce, reduce_scatter, all_gather, alltoall };
SHARDSCAPE_ENUM_NAMES(NcclOperation, "all_reduce", "reduce_scatter", "all_gather", "alltoall");

constexpr double kLongGemm_s = 1e-4, kShortGemm_s = 1e-5, kLongPrompt_s = 1e-4, kLongDecode_s = 2e-5;
constexpr double kLongExperts_s = 5e-5;
constexpr double kLargeCollective = 256 * 1024;

std::string count(std::int64_t value) { return std::to_string(value); }

/// Reads and predicts the rows of one table.
class Benchmarks {
 public:
  Benchmarks(Presets& presets, const EvaluateOptions& options)
      : presets_(presets),
        options_(options),
        names_(presets, options.device),
        collectives_(presets, options.folder) {}

  /// The row, read and predicted; nothing, with a problem reported, where it cannot be read.
  std::optional<Benchmark> read(TableKind kind, RowReader& reader) {
    Benchmark row;
    for (const Column& column : columns_of(kind)) {
      if (column.use == ColumnUse::needed) reader.need(column.name);
    }
    if (reader.failed()) return std::nullopt;
    const DeviceSpec* const device = read_device(reader, row);
    switch (kind) {
      case TableKind::gemm_alone:
        read_gemm_alone(reader, device, row);
        break;
      case TableKind::attention_prefill:
      case TableKind::attention_decode:
        read_attention(reader, kind, device, row);
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
    if (reader.failed()) return std::nullopt;
    if (!undescribed_.empty()) row.predicted_s = tl::unexpected(undescribed_);
    return row;
  }

 private:
  /// The row's device; null where it is unknown, which is reported, or has no preset, which undescribed_ then says.
  const DeviceSpec* read_device(RowReader& reader, Benchmark& row) {
    undescribed_.clear();
    const std::string text = reader.text("device").value_or("");
    row.regime.device = text;
    const TableNames::Named name = names_.device(text);
    if (!name) {
      if (!name.error().understood) reader.bad("device", name.error().why);
      undescribed_ = name.error().why;
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
      row.predicted_s =
          tl::unexpected(fmt::format("device {} has no unit for {}", device->name, name_of(precision)));
      return;
    }
    row.predicted_s = compute::gemm_alone(shape, precision, *device).time.value();
  }

  static void read_attention(RowReader& reader, TableKind kind, const DeviceSpec* device, Benchmark& row) {
    const bool decoding = kind == TableKind::attention_decode;
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
    row.predicted_s =
        (decoding ? compute::decode_attention_alone(shape, AttentionKernel::trtllm, Precision::bf16, *device)
                  : compute::prompt_attention_alone(shape, AttentionKernel::trtllm, Precision::bf16, *device))
            .time.value();
  }

  /// Reads the number of bytes of the message.
  static double read_message(RowReader& reader, const char* format_column, Benchmark& row) {
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
    return row.bytes;
  }

  void read_nccl(RowReader& reader, const DeviceSpec* device, Benchmark& row) {
    const std::optional<NcclOperation> operation = reader.choice<NcclOperation>("op_name");
    row.regime.operation = name_of(operation.value_or(NcclOperation::all_reduce));
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
            network::collective_in_node(*device, network::operation_of(collective_of(*operation)),
                                        static_cast<std::int32_t>(row.regime.gpus), Bytes(row.bytes))) {
      row.regime.stack.clear();
      row.predicted_s = alone->value();
      return;
    }
    const auto time =
        collectives_.time({*cluster, options_.collective_stack, row.regime.gpus, row.regime.gpus},
                          collective_of(*operation), row.bytes);
    if (time) {
      row.predicted_s = *time;
    } else {
      row.predicted_s = tl::unexpected(time.error().front().message);
    }
  }

  static network::CollectiveOp collective_of(NcclOperation operation) {
    switch (operation) {
      case NcclOperation::all_reduce:
        return network::CollectiveOp::all_reduce;
      case NcclOperation::reduce_scatter:
        return network::CollectiveOp::reduce_scatter;
      case NcclOperation::all_gather:
        return network::CollectiveOp::all_gather;
      case NcclOperation::alltoall:
        return network::CollectiveOp::all_to_all;
    }
    return network::CollectiveOp::all_reduce;
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
    if (time) {
      row.predicted_s = time->value();
    } else {
      row.predicted_s = tl::unexpected("device " + device->name + " has no constants of custom all-reduces");
    }
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

  Presets& presets_;
  const EvaluateOptions& options_;
  TableNames names_;
  CollectiveBenches collectives_;
  std::string undescribed_;  ///< why the row's device has no preset, if it has none
};

/// A range of rows that a bar may be set on.
struct Band {
  const char* key;
  const char* name;
  bool (*has)(const Benchmark& row, double measured_s);
  std::size_t way = 0;  ///< index in MeasuredTimes
};

bool is_low_latency(const Benchmark& row, double) { return row.regime.operation == "low latency"; }
bool is_normal(const Benchmark& row, double) { return row.regime.operation == "normal"; }

std::vector<Band> bands_of(TableKind kind) {
  if (kind == TableKind::expert_exchange)
    return {{"dispatch_low_latency", "dispatch, low latency", is_low_latency, 0},
            {"combine_low_latency", "combine, low latency", is_low_latency, 1},
            {"dispatch_normal", "dispatch, normal", is_normal, 0},
            {"combine_normal", "combine, normal", is_normal, 1}};
  std::vector<Band> bands = {{"time", "time", [](const Benchmark&, double) { return true; }}};
  switch (kind) {
    case TableKind::gemm_alone:
      bands.push_back(
          {"time_long", "over 0.1 ms", [](const Benchmark&, double t) { return t > kLongGemm_s; }});
      bands.push_back(
          {"time_10us", "over 10 us", [](const Benchmark&, double t) { return t > kShortGemm_s; }});
      break;
    case TableKind::attention_prefill:
      bands.push_back(
          {"time_long", "over 0.1 ms", [](const Benchmark&, double t) { return t > kLongPrompt_s; }});
      break;
    case TableKind::attention_decode:
    case TableKind::latent_attention:
      bands.push_back(
          {"time_20us", "over 20 us", [](const Benchmark&, double t) { return t > kLongDecode_s; }});
      break;
    case TableKind::experts:
      bands.push_back(
          {"time_50us", "over 50 us", [](const Benchmark&, double t) { return t > kLongExperts_s; }});
      break;
    case TableKind::nccl:
      bands.push_back({"time_large", "256 KB and more",
                       [](const Benchmark& b, double) { return b.bytes >= kLargeCollective; }});
      bands.push_back({"time_small", "below 256 KB",
                       [](const Benchmark& b, double) { return b.bytes < kLargeCollective; }});
      break;
    default:
      break;
  }
  return bands;
}

}  // namespace

void evaluate_benchmarks(const Table& table, Presets& presets, const EvaluateOptions& options,
                         Evaluation& out) {
  const std::vector<Band> bands = bands_of(out.kind);
  for (const Band& band : bands) out.metrics.push_back({band.key, band.name, "s", {}});
  const bool exchange = out.kind == TableKind::expert_exchange;
  out.prediction_columns = exchange ? std::vector<std::string>{"predicted_dispatch_s", "predicted_combine_s"}
                                    : std::vector<std::string>{"predicted_time_s"};
  Benchmarks benchmarks(presets, options);
  const ColumnIndex index(table);
  for (const TableRow& cells : table.rows) {
    RowReader reader(table, index, cells, out.problems);
    const MeasuredTimes measured = measured_times(out.kind, reader);
    const std::optional<Benchmark> row = benchmarks.read(out.kind, reader);
    if (!row) continue;
    if (!row->predicted_s) {
      out.unpredicted.push_back({cells.line, row->predicted_s.error()});
      continue;
    }
    const double predicted[] = {*row->predicted_s, row->combine_s};
    for (std::size_t i = 0; i < bands.size(); ++i) {
      const std::optional<double>& time = measured[bands[i].way];
      if (time && bands[i].has(*row, *time))
        out.metrics[i].pairs.push_back({out.rows.size(), *time, predicted[bands[i].way]});
    }
    out.predictions.push_back({cell(predicted[0])});
    if (exchange) out.predictions.back().push_back(cell(predicted[1]));
    out.rows.push_back(
        {cells.line, row_id(reader, table, cells), row->what, -1, {}, {}, row->regime, row->kin});
  }
}

}  // namespace shardscape::validate
