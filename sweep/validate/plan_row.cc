// Reads a row of a table of plans, in the project's own columns or in those of public tables: names become presets, the
// degrees must give the number of GPUs, and blank cells get what the software usually does.
#include "sweep/validate/plan_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "engine/base/suggest.h"
#include "engine/spec/plan_axes.h"
#include "sweep/space/design_space.h"

namespace shardscape::validate {

namespace {

constexpr std::array kTrainingMeasurements = {"measured_step_time_s"};

std::string product(std::initializer_list<std::int64_t> factors, std::int64_t total) {
  return fmt::format("{} = {}", fmt::join(factors, " * "), total);
}

/// The product of the degrees that count, as text: "tp * cp = 2 * 4 = 8".
template <class Counts>
std::string degree_product(const ParallelPlan& plan, const Counts& counts, std::int64_t total) {
  std::string names, factors;
  for (const PlanAxisRow& row : kPlanRows) {
    if (row.kind != AxisKind::degree || !counts(row)) continue;
    const char* const between = names.empty() ? "" : " * ";
    names.append(between).append(row.name);
    factors.append(between).append(code_text(row, row.get(plan)));
  }
  return fmt::format("{} = {} = {}", names, factors, total);
}

/// Fills in how experts lie over ranks where the row does not say it.
void read_usual_experts(RowReader& reader, const yaml::StackTables& usual, PlanRow& row) {
  ParallelPlan& plan = row.plan;
  if (!reader.text(row_of(PlanKey::expert_tensor).column))
    plan.expert_tensor = usual.usual_expert_tensor && plan.expert > 1 ? plan.tensor : 1;
  row.experts_unstated = usual.usual_expert_parallel && !reader.text(row_of(PlanKey::expert).column);
}

/// Converts the degrees of tables that do not fold experts into the other axes: they count the ranks that share all but
/// experts, so that their data-parallel degree is ours divided by ep.
void count_expert_groups(RowReader& reader, std::int64_t gpus, ParallelPlan& plan) {
  if (plan.expert == 1 || reader.text(row_of(PlanKey::expert_tensor).column)) return;
  if (static_cast<std::int64_t>(plan.gpus()) * plan.expert == gpus) plan.data *= plan.expert;
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
      return reader.bad("gpus", fmt::format("{} GPUs do not divide by {}", *gpus,
                                            degree_product(plan, given, model_parallel)));
    }
    plan.data = static_cast<std::int32_t>(*gpus / model_parallel);
  }
  row.gpus = gpus.value_or(plan.gpus());
  if (!row.software.empty() && data && row.workload.phase == Phase::training) {
    plan.expert = static_cast<std::int32_t>(
        std::max<std::int64_t>(1, reader.integer(row_of(PlanKey::expert).column, 0).value_or(1)));
    count_expert_groups(reader, row.gpus, plan);
  }
  if (row.gpus != plan.gpus()) {
    reader.bad("gpus", fmt::format("there are {}, but {}", row.gpus,
                                   degree_product(
                                       plan, [](const PlanAxisRow&) { return true; }, plan.gpus())));
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
    reader.bad("num_microbatches",
               fmt::format("dp * microbatch_size * num_microbatches = {}, but global_batch is {}",
                           product({data, samples, *count}, data * samples * *count), *global));
  }
}

std::optional<std::int64_t> read_code(RowReader& reader, const PlanAxisRow& axis) {
  if (is_of_experts(axis)) {  // tables of dense models may have 0
    const std::optional<std::int64_t> degree = reader.integer(axis.column, 0, axis.high);
    return degree ? std::optional(std::max<std::int64_t>(1, *degree)) : std::nullopt;
  }
  if (axis.kind == AxisKind::integer) return reader.integer(axis.column, axis.low, axis.high);
  if (axis.kind == AxisKind::flag) return reader.flag(axis.column);
  return reader.choice(axis.column, axis.names);
}

/// The code of a blank cell: no effect, or what runs of this software usually have.
std::int32_t code_of_blank(const PlanAxisRow& axis, const yaml::StackTables* usual,
                           const ParallelPlan& plan) {
  if (usual == nullptr) return axis.idle;
  if (axis.key == PlanKey::zero_stage) return static_cast<std::int32_t>(usual->usual_zero_stage);
  if (axis.key == PlanKey::recompute) return static_cast<std::int32_t>(usual->usual_recompute);
  if (axis.key == PlanKey::sequence_parallel && plan.tensor > 1)
    return usual->usual_sequence_parallel ? 1 : 0;
  return axis.idle;
}

void read_settings(RowReader& reader, const yaml::StackTables* usual, PlanRow& row) {
  ParallelPlan& plan = row.plan;
  for (const PlanAxisRow& axis : kPlanRows) {
    if (!is_setting(axis) || axis.key == PlanKey::microbatch) continue;
    const std::optional<std::int64_t> code = read_code(reader, axis);
    axis.set(plan, code ? static_cast<std::int32_t>(*code) : code_of_blank(axis, usual, plan));
  }
  row.recompute_unstated =
      usual != nullptr && !usual->usual_offload && !reader.text(row_of(PlanKey::recompute).column);
  // Public tables state an interleaved schedule only by the virtual stages.
  if (plan.virtual_stages > 1 && !reader.has_column(row_of(PlanKey::schedule).column))
    plan.schedule = kChunkedSchedule;
  const char* const virtual_stages = row_of(PlanKey::virtual_stages).column;
  if (plan.virtual_stages > 1 && !plan.chunked())
    reader.bad(virtual_stages, "more than 1 needs the schedule 'interleaved'");
  if (plan.virtual_stages > 1 && plan.pipeline == 1)
    reader.bad(virtual_stages, "more than 1 needs more than one pipeline stage");
}

void read_training(RowReader& reader, const yaml::StackTables* usual, PlanRow& row) {
  reader.need("sequence_length");
  row.workload.sequence_length = reader.integer("sequence_length").value_or(0);
  read_batches(reader, row);
  read_settings(reader, usual, row);
  if (usual != nullptr) read_usual_experts(reader, *usual, row);
  for (const char* column : {"prompt_tokens", "output_tokens", "concurrency"}) {
    if (reader.text(column)) reader.bad(column, "has no effect in training; leave it blank");
  }
  for (const ServedColumn& column : served_columns()) {
    if (reader.text(column.measured)) reader.bad(column.measured, "a training step has none; leave it blank");
  }
}

/// Rejects settings of training that are not at their idle value.
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

/// Prompt tokens where a table of ITL does not state them: a hundred, as chats have, which matter less than the outputs
/// of such rows. Of 64, 100, 160 and 256 the one with the least error over 166 runs of ML.ENERGY (8.4 to 9.4 % in the
/// median, by the mean gap between tokens).
constexpr std::int64_t kUnstatedPrompt = 100;

/// Reads the load from a public table: the mean batch where it does not state the number of requests in flight.
void read_measured_load(RowReader& reader, PlanRow& row) {
  WorkloadSpec& load = row.workload;
  const std::optional<std::int64_t> prompt = reader.rounded("prompt_tokens");
  const std::optional<std::int64_t> output = reader.rounded("output_tokens");
  const std::optional<std::int64_t> requests = reader.rounded("concurrency");
  const std::optional<std::int64_t> batch = reader.rounded("mean_batch");
  load.prompt_tokens = prompt.value_or(kUnstatedPrompt);
  load.output_tokens = output.value_or(0);
  load.concurrency = (prompt && requests ? requests : batch ? batch : requests).value_or(0);
  row.itl_only = !prompt || !requests;
  row.median_itl = reader.text("mode") == "energy";
  if (!output) row.cannot_be_predicted("the row does not say how many tokens were generated");
  if (load.concurrency == 0) row.cannot_be_predicted("the row does not say how many requests were in flight");
}

/// How public tables split a server over its ranks: attention over tensor-parallel and data-parallel ranks, experts
/// over all of them.
struct ServerSplit {
  std::int64_t tensor = 1, attention_data = 1, expert = 1, expert_tensor = 1;
  std::optional<std::int64_t> workers;  ///< number of equal servers; nothing: not stated

  [[nodiscard]] std::int64_t ranks() const { return tensor * attention_data; }
};

/// Corrects tables that count ranks twice: a server of n ranks with experts dealt over all of them is listed with n x n
/// GPUs, n ranks for experts and n for each expert. (Rows with equal measurements list it with n, and their names say
/// tp n, ep n.)
void undo_square(ServerSplit& server) {
  if (server.expert <= 1 || server.expert != server.expert_tensor ||
      server.ranks() != server.expert * server.expert)
    return;
  std::int64_t& both = server.tensor > 1 ? server.tensor : server.attention_data;
  both = server.expert;
  server.expert_tensor = 1;
}

/// Reads a pool of servers from the columns whose names begin with `pool`.
ServerSplit read_server(RowReader& reader, const std::string& pool) {
  const auto degree = [&](const char* column) {
    return std::max<std::int64_t>(1, reader.integer((pool + column).c_str(), 0).value_or(1));
  };
  ServerSplit server{degree("tensor_parallel"), degree("attention_data_parallel"), degree("expert_parallel"),
                     degree("moe_tensor_parallel"), std::nullopt};
  if (!pool.empty()) {
    server.workers = reader.integer((pool + "workers").c_str());
    // Where the split is not stated, experts are dealt over all ranks: no stack splits them over the replicas of
    // attention.
    if (server.expert == 1 && server.attention_data > 1) server.expert = server.ranks();
    server.expert_tensor = std::max<std::int64_t>(1, server.ranks() / server.expert);
  }
  undo_square(server);
  return server;
}

/// Reads how a server's experts are dealt over the ranks of several replicas (which such tables call data parallel),
/// and how its tensor group splits them; tables name that split differently than plans do.
void read_served_experts(RowReader& reader, PlanRow& row) {
  const auto degree = [&](const char* column) {
    return static_cast<std::int32_t>(std::max<std::int64_t>(1, reader.integer(column, 0).value_or(1)));
  };
  row.plan.expert = degree(row_of(PlanKey::expert).column);
  row.plan.expert_tensor =
      std::max(degree("moe_tensor_parallel"), degree(row_of(PlanKey::expert_tensor).column));
}

/// Whether a row speculates; nothing where it does not say.
std::optional<bool> drafts_of(RowReader& reader) {
  const std::optional<std::string> method = reader.text("spec_method");
  return method ? std::optional(*method != "none") : std::nullopt;
}

/// Has a server's load simulated as its client sent it, where that is known.
void read_client(RowReader& reader, TableNames& names, PlanRow& row) {
  const bool drafts = drafts_of(reader).value_or(row.recipe.draft_tokens > 0);
  const auto drafts_alone = [&] {
    if (drafts) row.unmodelled = "speculative decoding under a client that is not known";
  };
  if (row.itl_only || row.workload.output_tokens == 0) return drafts_alone();
  RunFacts facts;
  facts.model = row.model;
  facts.software = row.software;
  facts.architecture = names.architecture(row.device);
  facts.plan = row.plan;
  const auto text = [&](const char* column) { return reader.text(column).value_or(""); };
  facts.source = text("source");
  facts.client = text("client");
  facts.date = text("date");
  facts.drafts = drafts_of(reader).value_or(false);
  const ClientProfile* const client = client_of(facts);
  if (client == nullptr) return drafts_alone();
  row.client = client->name;
  set_load(*client, row.workload);
  const ServerRecipe of_pools = row.recipe;
  row.recipe = recipe_of(facts, row.workload);
  row.recipe.max_batch = of_pools.max_batch;
  if (of_pools.draft_tokens > 0) row.recipe.draft_tokens = of_pools.draft_tokens;
  Speculation& speculation = row.workload.load->speculation;
  speculation.draft_tokens = row.recipe.draft_tokens;
  if (speculation.draft_tokens == 0) return;
  speculation.acceptance = acceptance_of(row.model);
  if (speculation.acceptance.empty())
    row.unmodelled = "speculative decoding, of which nothing says how much is accepted";
}

void read_inference(RowReader& reader, PlanRow& row) {
  if (!row.software.empty()) {
    read_measured_load(reader, row);
  } else {
    reader.need("prompt_tokens");
    reader.need("output_tokens");
    row.workload.prompt_tokens = reader.integer("prompt_tokens").value_or(0);
    row.workload.output_tokens = reader.integer("output_tokens").value_or(0);
    row.workload.concurrency = reader.integer("concurrency").value_or(1);
  }
  reject_training_settings(reader);
  for (const char* column : kTrainingMeasurements) {
    if (reader.text(column)) reader.bad(column, "inference has none; leave it blank");
  }
}

void read_measurements(RowReader& reader, PlanRow& row) {
  row.step_time_s = reader.positive("measured_step_time_s");
  row.memory_peak_bytes = reader.positive("measured_memory_peak_bytes");
  if (const std::optional<MemoryOf> of = reader.choice<MemoryOf>("memory_of")) {
    row.memory_of = *of;
    if (!row.memory_peak_bytes)
      reader.bad("memory_of", "has no effect where measured_memory_peak_bytes is blank");
  }
  reader.integer("n_runs");
  row.served = read_served(reader);
  row.oom = reader.flag("measured_oom");
}

void read_precision(RowReader& reader, PlanRow& row) {
  const std::optional<std::string> cell = reader.text("precision");
  if (!cell) return;
  const std::optional<PolicyName> precision = TableNames::policy(*cell);
  if (precision) {
    row.workload.precision = *precision;
  } else {
    reader.bad("precision", "unknown '" + *cell + "'" + did_you_mean(*cell, enum_names<PolicyName>()) +
                                "; one of " + TableNames::policies());
  }
}

/// Marks a row as unmodelled where it leaves out something that is needed.
void read_unmodelled(RowReader& reader, PlanRow& row) {
  const std::string method = reader.text("spec_method").value_or("none");
  if (method != "none" && (method != "mtp" || acceptance_of(row.model).empty()))
    row.cannot_be_predicted("speculative decoding (" + method +
                            "), of which nothing says how much is accepted");
  constexpr std::string_view kModes[] = {"agg", "disagg", "energy"};
  if (reader.choice("mode", kModes) != 1U) return;
  if (!reader.text("concurrency"))
    row.cannot_be_predicted("the row does not say how many requests were in flight");
}

/// What the row says about its pools and its recipe.
PoolsOfRow pools_of(RowReader& reader, const PlanRow& row) {
  PoolsOfRow of;
  of.device = row.device;
  of.software = row.software;
  of.model = row.model;
  of.precision = name_of(row.workload.precision);
  of.prompt = reader.rounded("prompt_tokens").value_or(1);
  of.output = reader.rounded("output_tokens").value_or(1);
  of.clients = reader.rounded("concurrency").value_or(1);
  of.gpus = reader.integer("gpus");
  of.drafts = drafts_of(reader);
  const auto ranks = [&](const char* tensor, const char* attention) -> std::optional<std::int64_t> {
    const auto of_tensor = reader.integer(tensor, 0), of_attention = reader.integer(attention, 0);
    if (!of_tensor && !of_attention) return std::nullopt;
    return std::max<std::int64_t>(1, of_tensor.value_or(1)) *
           std::max<std::int64_t>(1, of_attention.value_or(1));
  };
  of.prefill_ranks = ranks("prefill_tensor_parallel", "prefill_attention_data_parallel");
  of.decode_ranks = ranks("decode_tensor_parallel", "decode_attention_data_parallel");
  of.prefill_workers = reader.integer("prefill_workers");
  of.decode_workers = reader.integer("decode_workers");
  return of;
}

/// Reads servers from a public table: one server, or the pools of disaggregated serving.
void read_servers(RowReader& reader, bool pools, PlanRow& row) {
  ParallelPlan& plan = row.plan;
  const auto count = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  // A pool's split of experts that the model does not have is none.
  const auto of_experts = [&](const ServerSplit& pool) {
    return has_experts(row.model) ? count(pool.expert_tensor) : 1;
  };
  const ServerSplit server = read_server(reader, pools ? "decode_" : "");
  plan.tensor = count(server.tensor);
  plan.data = count(server.attention_data * server.workers.value_or(1));
  plan.expert = count(server.expert);
  plan.expert_tensor = pools ? of_experts(server) : count(server.expert_tensor);
  if (!pools) {
    plan.pipeline = count(reader.integer("pipeline_parallel").value_or(1));
    const std::int64_t gpus = reader.integer("gpus").value_or(plan.gpus()),
                       experts = server.expert * server.expert_tensor;
    // Where experts lie over more ranks than the tensor group has, attention is data parallel over them, even if not
    // stated.
    if (!reader.text("attention_data_parallel") && experts > server.tensor && gpus % plan.gpus() == 0)
      plan.data = count(gpus / plan.gpus());
    row.gpus = plan.gpus();
    return;
  }
  const ServerSplit prefill = read_server(reader, "prefill_");
  plan.prefill.tensor = count(prefill.tensor);
  plan.prefill.data = count(prefill.attention_data * prefill.workers.value_or(1));
  plan.prefill.expert = count(prefill.expert);
  plan.prefill.expert_tensor = of_experts(prefill);
  row.gpus = plan.gpus();
}

/// Reads one server, or pools: what the row leaves out of these is as their public recipe has it.
void read_pools_or_server(RowReader& reader, TableNames& names, bool pools, PlanRow& row) {
  if (!pools) return read_servers(reader, false, row);
  const PoolsOfRow of = pools_of(reader, row);
  const tl::expected<PoolRecipe, std::string> recipe = names.pool_recipes().find(of);
  if (recipe) {
    row.recipe.draft_tokens = recipe->draft_tokens;
    row.recipe.max_batch = recipe->max_batch;
  }
  if (of.prefill_workers && of.decode_workers) return read_servers(reader, true, row);
  if (!recipe) {
    row.unmodelled = recipe.error();
    return;
  }
  if (recipe->doubtful) row.label = RunLabel::two_recipes;
  RowReader cells = names.pool_recipes().reader(*recipe->row);
  read_servers(cells, true, row);
}

/// Reads a preset from the column `ours`; in public tables (`foreign`) from the column `theirs`, whose `text` is turned
/// into a preset by `find`.
template <class Find>
void read_preset(RowReader& reader, bool foreign, const char* ours, const char* theirs, std::string& preset,
                 std::string& text, const Find& find, PlanRow& row) {
  const char* const column = foreign ? theirs : ours;
  reader.need(column);
  (foreign ? text : preset) = reader.text(column).value_or("");
  if (!text.empty()) preset = preset_named(reader, theirs, find(text), row);
}

/// Reads model, device or cluster, and software or stack.
void read_who(RowReader& reader, TableNames& names, PlanRow& row) {
  for (const char* column : {"id", "model"}) reader.need(column);
  row.id = reader.text("id").value_or("");
  row.model = reader.text("model").value_or("");
  const auto cluster = [&](const std::string& device) { return names.cluster(device); };
  read_preset(reader, names_device(reader), "cluster", "device", row.cluster, row.device, cluster, row);
  const bool experts = has_experts(row.model);
  std::optional<double> release;
  if (const auto cell = reader.text("release")) {
    release = release_number(*cell);
    if (!release) reader.bad("release", "'" + *cell + "' is not a year and a month, as 26.04 or 26.04.01");
  } else if (!reader.has_column("release")) {
    release = stated_release(reader.text("software").value_or(""), reader.text("source").value_or(""));
  }
  const auto stack = [&](const std::string& software) {
    return names.stack(software, experts,
                       {release, experts ? names.architecture(row.device) : Architecture::other,
                        reader.text("source").value_or("")});
  };
  const bool foreign = reader.has_column("software") && !reader.has_column("stack");
  read_preset(reader, foreign, "stack", "software", row.stack, row.software, stack, row);
}

/// The phase of a row: tables of steps have sequence lengths, tables of servers have prompts.
std::optional<Phase> read_phase(RowReader& reader) {
  if (reader.has_column("phase") || (reader.has_column("cluster") && reader.has_column("stack"))) {
    reader.need("phase");
    return reader.choice<Phase>("phase");
  }
  return reader.has_column("sequence_length") ? Phase::training : Phase::inference;
}

}  // namespace

std::string preset_named(RowReader& reader, const char* column, const TableNames::Named& name, PlanRow& row) {
  if (name) return *name;
  if (name.error().understood) {
    row.cannot_be_predicted(name.error().why);
  } else {
    reader.bad(column, name.error().why);
  }
  return {};
}

bool names_device(const RowReader& reader) {
  return reader.has_column("device") && !(reader.has_column("cluster") && reader.has_column("stack"));
}

std::optional<PlanRow> read_plan_row(RowReader& reader, TableNames& names) {
  PlanRow row;
  row.line = reader.line();
  read_who(reader, names, row);
  const std::optional<Phase> phase = read_phase(reader);
  row.workload.phase = phase.value_or(Phase::training);
  if (!row.unmodelled) read_precision(reader, row);
  read_unmodelled(reader, row);
  if (row.unmodelled) {
    read_measurements(reader, row);
    return reader.failed() ? std::nullopt : std::optional(row);
  }
  const yaml::StackTables* const usual = row.software.empty() ? nullptr : names.usual(row.stack);
  const PlanAxisRow& order = row_of(PlanKey::order);
  if (const auto cell = reader.text(order.column)) {
    const std::optional<std::int32_t> code = parse_code(order, *cell);
    if (!code)
      reader.bad(order.column, "'" + *cell + "': must name " + order_names() + " once each, joined by '-'");
    order.set(row.plan, code.value_or(order.idle));
  }
  const bool pools =
      phase == Phase::inference && !row.software.empty() &&
      (reader.text("mode").value_or("") == "disagg" || reader.integer("prefill_workers", 0).value_or(0) > 0);
  const auto above_one = [&](const char* column) { return reader.integer(column, 0).value_or(1) > 1; };
  const bool split = above_one("expert_parallel") || above_one("attention_data_parallel");
  if (phase == Phase::inference && !row.software.empty() && (pools || split)) {
    read_pools_or_server(reader, names, pools, row);
  } else {
    read_degrees(reader, row);
    if (phase == Phase::inference) read_served_experts(reader, row);
  }
  if (phase == Phase::training) read_training(reader, usual, row);
  if (phase == Phase::inference) read_inference(reader, row);
  if (phase == Phase::inference && !row.unmodelled && !reader.failed()) read_client(reader, names, row);
  read_measurements(reader, row);
  if (reader.failed()) return std::nullopt;
  if (row.unmodelled) return row;
  row.plan = sweep::canonical(row.plan, *phase);
  return row;
}

}  // namespace shardscape::validate
