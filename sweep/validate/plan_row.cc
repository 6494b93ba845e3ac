#include "sweep/validate/plan_row.h"

#include <array>
#include <limits>

#include "engine/spec/plan_axes.h"
#include "sweep/space/design_space.h"

namespace shardscape::validate {

namespace {

constexpr std::array kTrainingMeasurements = {"measured_step_time_s"};
constexpr std::array kInferenceMeasurements = {"measured_ttft_s", "measured_itl_s", "measured_e2e_s"};

std::string product(std::initializer_list<std::int64_t> factors, std::int64_t total) {
  std::string text;
  for (const std::int64_t factor : factors) text += (text.empty() ? "" : " * ") + std::to_string(factor);
  return text + " = " + std::to_string(total);
}

/// "tp * cp = 2 * 4 = 8", of the degrees that count.
template <class Counts>
std::string degree_product(const ParallelPlan& plan, const Counts& counts, std::int64_t total) {
  std::string names, factors;
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind != AxisKind::degree || !counts(row)) continue;
    const char* const between = names.empty() ? "" : " * ";
    names.append(between).append(row.name);
    factors.append(between).append(code_text(row, row.get(plan)));
  }
  return names + " = " + factors + " = " + std::to_string(total);
}

void read_degrees(RowReader& reader, PlanRow& row) {
  ParallelPlan& plan = row.plan;
  std::optional<std::int64_t> data;
  double most = 1;
  for (const PlanAxisRow& axis : kPlanRows) {
    if (axis.kind != AxisKind::degree) continue;
    const std::optional<std::int64_t> degree = reader.integer(axis.column);
    if (axis.key == PlanKey::data) data = degree;
    axis.set(plan, static_cast<std::int32_t>(degree.value_or(1)));
    most *= axis.get(plan);
  }
  const std::optional<std::int64_t> gpus = reader.integer("gpus");
  if (reader.failed()) return;
  constexpr double kMaxGpus = 1 << 30;
  if (most > kMaxGpus) return reader.bad("gpus", "the degrees multiply to more GPUs than there are");
  const std::int64_t model_parallel = plan.gpus() / plan.data;
  if (!data && gpus) {
    if (*gpus % model_parallel != 0) {
      const auto given = [](const PlanAxisRow& axis) { return axis.key != PlanKey::data; };
      return reader.bad("gpus", std::to_string(*gpus) + " GPUs do not divide by " +
                                    degree_product(plan, given, model_parallel));
    }
    plan.data = static_cast<std::int32_t>(*gpus / model_parallel);
  }
  row.gpus = gpus.value_or(plan.gpus());
  if (row.gpus != plan.gpus()) {
    reader.bad("gpus", "there are " + std::to_string(row.gpus) + ", but " +
                           degree_product(
                               plan, [](const PlanAxisRow&) { return true; }, plan.gpus()));
  }
}

void read_batches(RowReader& reader, PlanRow& row) {
  const std::optional<std::int64_t> microbatch = reader.integer(row_of(PlanKey::microbatch).column);
  const std::optional<std::int64_t> count = reader.integer("num_microbatches");
  const std::optional<std::int64_t> global = reader.integer("global_batch");
  if (reader.failed()) return;
  const std::int64_t data = row.plan.data;
  constexpr double kMostSamples = std::numeric_limits<std::int32_t>::max();
  const double product_of_all = static_cast<double>(data) * static_cast<double>(microbatch.value_or(1)) *
                                static_cast<double>(count.value_or(1));
  if (product_of_all > kMostSamples) {
    return reader.bad(count ? "num_microbatches" : row_of(PlanKey::microbatch).column,
                      "dp * microbatch_size * num_microbatches is more than 2147483647 samples");
  }
  if (!global && !count) return reader.bad("global_batch", "is blank; give it or num_microbatches");
  std::int64_t samples = microbatch.value_or(1);
  if (!microbatch && global && count) samples = *global / (data * *count);
  row.plan.microbatch = static_cast<std::int32_t>(samples);
  row.workload.global_batch = global.value_or(data * samples * count.value_or(1));
  if (global && count && data * samples * *count != *global) {
    reader.bad("num_microbatches", "dp * microbatch_size * num_microbatches = " +
                                       product({data, samples, *count}, data * samples * *count) +
                                       ", but global_batch is " + std::to_string(*global));
  }
}

std::optional<std::int64_t> read_code(RowReader& reader, const PlanAxisRow& axis) {
  if (axis.kind == AxisKind::integer) return reader.integer(axis.column, axis.low, axis.high);
  if (axis.kind == AxisKind::flag) return reader.flag(axis.column);
  return reader.choice(axis.column, axis.names);
}

void read_settings(RowReader& reader, ParallelPlan& plan) {
  for (const PlanAxisRow& axis : kPlanRows) {
    if (!is_setting(axis) || axis.key == PlanKey::microbatch) continue;
    axis.set(plan, static_cast<std::int32_t>(read_code(reader, axis).value_or(axis.idle)));
  }
  const char* const virtual_stages = row_of(PlanKey::virtual_stages).column;
  if (plan.virtual_stages > 1 && plan.schedule != ScheduleKind::interleaved)
    reader.bad(virtual_stages, "more than 1 needs the schedule 'interleaved'");
  if (plan.virtual_stages > 1 && plan.pipeline == 1)
    reader.bad(virtual_stages, "more than 1 needs more than one pipeline stage");
}

void read_training(RowReader& reader, PlanRow& row) {
  reader.need("sequence_length");
  row.workload.sequence_length = reader.integer("sequence_length").value_or(0);
  read_batches(reader, row);
  read_settings(reader, row.plan);
  for (const char* column : {"prompt_tokens", "output_tokens", "concurrency"}) {
    if (reader.text(column)) reader.bad(column, "has no effect in training; leave it blank");
  }
  for (const char* column : kInferenceMeasurements) {
    if (reader.text(column)) reader.bad(column, "a training step has none; leave it blank");
  }
}

/// Settings of training may be named where they have their idle value.
void reject_training_settings(RowReader& reader) {
  const auto reject = [&](const char* column, const std::string& idle) {
    const std::optional<std::string> cell = reader.text(column);
    if (cell && *cell != idle) reader.bad(column, "has no effect in inference; leave it blank");
  };
  for (const PlanAxisRow& axis : kPlanRows) {
    if (axis.phases == Phases::training) reject(axis.column, code_text(axis, axis.idle));
  }
  reject("num_microbatches", "1");
  for (const char* column : {"global_batch", "sequence_length"}) {
    if (reader.text(column)) reader.bad(column, "has no effect in inference; leave it blank");
  }
}

void read_inference(RowReader& reader, PlanRow& row) {
  reader.need("prompt_tokens");
  reader.need("output_tokens");
  row.workload.prompt_tokens = reader.integer("prompt_tokens").value_or(0);
  row.workload.output_tokens = reader.integer("output_tokens").value_or(0);
  row.workload.concurrency = reader.integer("concurrency").value_or(1);
  reject_training_settings(reader);
  for (const char* column : kTrainingMeasurements) {
    if (reader.text(column)) reader.bad(column, "inference has none; leave it blank");
  }
}

void read_measurements(RowReader& reader, PlanRow& row) {
  row.step_time_s = reader.positive("measured_step_time_s");
  row.memory_peak_bytes = reader.positive("measured_memory_peak_bytes");
  row.ttft_s = reader.positive("measured_ttft_s");
  row.itl_s = reader.positive("measured_itl_s");
  row.e2e_s = reader.positive("measured_e2e_s");
  row.oom = reader.flag("measured_oom");
}

}  // namespace

std::optional<PlanRow> read_plan_row(RowReader& reader) {
  PlanRow row;
  row.line = reader.line();
  for (const char* column : {"id", "phase", "model", "cluster", "stack"}) reader.need(column);
  row.id = reader.text("id").value_or("");
  row.model = reader.text("model").value_or("");
  row.cluster = reader.text("cluster").value_or("");
  row.stack = reader.text("stack").value_or("");
  const std::optional<Phase> phase = reader.choice<Phase>("phase");
  row.workload.phase = phase.value_or(Phase::training);
  row.workload.precision = reader.choice<PolicyName>("precision").value_or(PolicyName::bf16);
  const PlanAxisRow& order = row_of(PlanKey::order);
  if (const auto cell = reader.text(order.column)) {
    const std::optional<std::int32_t> code = parse_code(order, *cell);
    if (!code)
      reader.bad(order.column, "'" + *cell + "': must name " + order_names() + " once each, joined by '-'");
    order.set(row.plan, code.value_or(order.idle));
  }
  read_degrees(reader, row);
  if (phase == Phase::training) read_training(reader, row);
  if (phase == Phase::inference) read_inference(reader, row);
  read_measurements(reader, row);
  if (reader.failed()) return std::nullopt;
  row.plan = sweep::canonical(row.plan, *phase);
  return row;
}

}  // namespace shardscape::validate
