#include "sweep/validate/plan_row.h"

#include <array>
#include <limits>

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

void read_degrees(RowReader& reader, PlanRow& row) {
  const auto degree = [&](const char* column) {
    return static_cast<std::int32_t>(reader.integer(column).value_or(1));
  };
  ParallelPlan& plan = row.plan;
  plan.tensor = degree("tensor_parallel");
  plan.context = degree("context_parallel");
  plan.pipeline = degree("pipeline_parallel");
  const std::optional<std::int64_t> data = reader.integer("data_parallel");
  const std::optional<std::int64_t> gpus = reader.integer("gpus");
  if (reader.failed()) return;
  if (data) plan.data = static_cast<std::int32_t>(*data);
  constexpr double kMaxGpus = 1 << 30;
  if (static_cast<double>(plan.tensor) * plan.context * plan.pipeline * plan.data > kMaxGpus) {
    return reader.bad("gpus", "the degrees multiply to more GPUs than there are");
  }
  const std::int64_t model_parallel = plan.gpus() / plan.data;
  if (!data && gpus) {
    if (*gpus % model_parallel != 0) {
      return reader.bad("gpus", std::to_string(*gpus) + " GPUs do not divide by tp * cp * pp = " +
                                    product({plan.tensor, plan.context, plan.pipeline}, model_parallel));
    }
    plan.data = static_cast<std::int32_t>(*gpus / model_parallel);
  }
  row.gpus = gpus.value_or(plan.gpus());
  if (row.gpus != plan.gpus()) {
    reader.bad("gpus", "there are " + std::to_string(row.gpus) + ", but tp * cp * pp * dp = " +
                           product({plan.tensor, plan.context, plan.pipeline, plan.data}, plan.gpus()));
  }
}

void read_batches(RowReader& reader, PlanRow& row) {
  const std::optional<std::int64_t> microbatch = reader.integer("microbatch_size");
  const std::optional<std::int64_t> count = reader.integer("num_microbatches");
  const std::optional<std::int64_t> global = reader.integer("global_batch");
  if (reader.failed()) return;
  const std::int64_t data = row.plan.data;
  constexpr double kMostSamples = std::numeric_limits<std::int32_t>::max();
  const double product_of_all = static_cast<double>(data) * static_cast<double>(microbatch.value_or(1)) *
                                static_cast<double>(count.value_or(1));
  if (product_of_all > kMostSamples) {
    return reader.bad(count ? "num_microbatches" : "microbatch_size",
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

void read_schedule(RowReader& reader, ParallelPlan& plan) {
  plan.zero_stage = static_cast<std::int32_t>(reader.integer("zero_stage", 0, 3).value_or(0));
  plan.recompute = reader.choice<Recompute>("recompute").value_or(Recompute::none);
  plan.schedule = reader.choice<ScheduleKind>("schedule").value_or(ScheduleKind::one_f_one_b);
  plan.virtual_stages = static_cast<std::int32_t>(reader.integer("virtual_stages").value_or(1));
  if (plan.virtual_stages > 1 && plan.schedule != ScheduleKind::interleaved) {
    reader.bad("virtual_stages", "more than 1 needs the schedule 'interleaved'");
  }
  if (plan.virtual_stages > 1 && plan.pipeline == 1) {
    reader.bad("virtual_stages", "more than 1 needs more than one pipeline stage");
  }
}

void read_training(RowReader& reader, PlanRow& row) {
  reader.need("sequence_length");
  row.workload.sequence_length = reader.integer("sequence_length").value_or(0);
  read_batches(reader, row);
  read_schedule(reader, row.plan);
  for (const char* column : {"prompt_tokens", "output_tokens", "concurrency"}) {
    if (reader.text(column)) reader.bad(column, "has no effect in training; leave it blank");
  }
  for (const char* column : kInferenceMeasurements) {
    if (reader.text(column)) reader.bad(column, "a training step has none; leave it blank");
  }
}

/// Settings of training may be named where they have their idle value.
void reject_training_settings(RowReader& reader) {
  constexpr std::array<std::array<const char*, 2>, 7> kIdle = {{{"zero_stage", "0"},
                                                                {"recompute", "none"},
                                                                {"schedule", "1f1b"},
                                                                {"virtual_stages", "1"},
                                                                {"microbatch_size", "1"},
                                                                {"num_microbatches", "1"},
                                                                {"sequence_parallel", "0"}}};
  for (const auto& [column, idle] : kIdle) {
    const std::optional<std::string> cell = reader.text(column);
    if (cell && *cell != idle) reader.bad(column, "has no effect in inference; leave it blank");
  }
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
  row.workload.precision = reader.choice<Precision>("precision").value_or(Precision::bf16);
  row.plan.sequence_parallel = reader.flag("sequence_parallel").value_or(false);
  if (const auto order = reader.text("rank_order")) {
    const std::optional<RankOrder> parsed = parse_rank_order(*order);
    if (!parsed)
      reader.bad("rank_order", "'" + *order + "': must name tp, cp, dp and pp once each, joined by '-'");
    row.plan.order = parsed.value_or(kDefaultRankOrder);
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
