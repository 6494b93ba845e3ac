// torchtitan: a TOML file of its configuration.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/zero.h"
#include "sweep/launch/framework.h"
#include "sweep/space/design_space.h"

namespace shardscape::launch {

namespace {

using C = const Case&;

constexpr std::string_view kJob =
    "https://github.com/pytorch/torchtitan/blob/main/torchtitan/config/job_config.py";
constexpr std::string_view kFsdp2 = "https://github.com/pytorch/torchtitan/blob/main/docs/fsdp.md";

Said quoted(std::string_view text) { return value(fmt::format("\"{}\"", text)); }
bool sharded(C of) { return of.plan.zero_stage >= 2; }

Said zero_stage(C of) {
  switch (of.plan.zero_stage) {
    case 0:
      if (of.plan.data == 1 || of.plan.tensor * of.plan.pipeline * of.plan.context == 1) return unasked();
      return refused(
          "weights that all ranks keep are for data parallelism alone; beside other degrees "
          "data_parallel_shard_degree shards them (zero=2 and zero=3)");
    case 1:
      return refused(
          "FSDP2 shards gradients and weights as well; an option that shards the optimizer alone would be "
          "needed, and there is none");
    default:
      return quoted(of.plan.zero_stage == 2 ? "never" : "always");
  }
}
Said sequence(C of) {
  if (of.plan.tensor == 1 || of.plan.sequence_parallel) return unasked();
  return refused(
      "tensor_parallel_degree brings sequence parallelism with it; an option that leaves it out would be "
      "needed, and there is none");
}
Said pipeline_schedule(C of) {
  if (of.plan.pipeline == 1) return unasked();
  switch (of.plan.schedule) {
    case ScheduleKind::gpipe:
      return quoted("GPipe");
    case ScheduleKind::one_f_one_b:
      return quoted("1F1B");
    case ScheduleKind::interleaved:
      return quoted(of.plan.chunked() ? "Interleaved1F1B" : "1F1B");
    case ScheduleKind::zero_bubble:
      return refused(
          "its zero-bubble schedules have two chunks and more a stage; pipeline_parallel_schedule has none "
          "with one");
    case ScheduleKind::dualpipe:
      return refused("pipeline_parallel_schedule has DualPipeV, whose stages lie in a V, and no DualPipe");
  }
  return {};  // not reached: the switch handles every schedule, or does not compile
}
/// Experts are dealt over all of the context group, over all of the tensor group where that does not split each of
/// them, and over some of the ranks that shard weights.
Said dealt_experts(C of) {
  if (!of.experts()) return unasked();
  const std::int64_t whole =
      static_cast<std::int64_t>(of.plan.context) * (of.plan.expert_tensor == 1 ? of.plan.tensor : 1);
  const std::int64_t most = whole * (sharded(of) ? of.plan.data : 1);
  if (of.plan.expert == 1 || (of.plan.expert % whole == 0 && most % of.plan.expert == 0))
    return value(of.plan.expert);
  return refused(fmt::format(
      "with these degrees expert_parallel_degree is 1, or a multiple of {} that divides {}", whole, most));
}
std::int64_t chunks(C of) { return static_cast<std::int64_t>(of.plan.pipeline) * of.plan.virtual_stages; }
Said layers_per_stage(C of) {
  if (of.plan.pipeline == 1) return unasked();
  if (of.shape().layers % chunks(of) != 0)
    return lacks("pipeline_parallel_layers_per_stage deals equal numbers of layers");
  return value(of.shape().layers / chunks(of));
}
Said ends(C of) { return of.plan.pipeline > 1 && of.shape().layers % chunks(of) == 0 ? value(0) : unasked(); }
Said rank_order(C of) {
  return sweep::same_layout(of.plan, of.plan.order, kDefaultRankOrder)
             ? unasked()
             : lacks("ranks lie as tp-cp-dp-pp whatever the file says");
}
Said selective(C of) {
  return of.plan.recompute == Recompute::selective ? lacks(
                                                         "\"op\" keeps the outputs of a list of operators of "
                                                         "its own, and computes the others again")
                                                   : unasked();
}
Said formats(C of) {
  switch (of.workload().precision) {
    case PolicyName::bf16:
      return quoted("bfloat16");
    case PolicyName::fp32:
      return quoted("float32");
    case PolicyName::fp8:
    case PolicyName::mxfp8:
      return quoted("bfloat16");
    case PolicyName::tf32:
    case PolicyName::fp16:
    case PolicyName::fp4:
    case PolicyName::nvfp4:
      break;
  }
  return lacks("mixed_precision_param knows bfloat16 and float32");
}
Said converter(C of) {
  if (of.workload().precision == PolicyName::fp8) return value("[\"quantize.linear.float8\"]");
  if (of.workload().precision == PolicyName::mxfp8) return value("[\"quantize.linear.mx\"]");
  return unasked();
}
Said data_format(C of) {
  return of.stack().state.gradient_comm_bytes == 4 ? quoted("float32")
                                                   : lacks("mixed_precision_reduce knows float32 alone");
}
Said four_bytes(double bytes, double usual, const char* what) {
  return bytes == usual ? unasked() : lacks(fmt::format("{} follow training.dtype, float32", what));
}
Said local_batch(C of) {
  // With a pipeline it is cut into microbatches, without one gradients of several are accumulated.
  return value(of.plan.pipeline > 1 ? of.workload().global_batch / of.plan.data : of.plan.microbatch);
}
Said overlap_always(double overlap) {
  return overlap > 0 ? unasked() : lacks("FSDP2 gathers and scatters beside the compute");
}
Said context_exchange(C of) { return of.plan.context > 1 ? quoted("alltoall") : unasked(); }

}  // namespace

Framework torchtitan() {
  return {
      .name = "torchtitan",
      .title = "torchtitan",
      .version = "torchtitan 0.2",
      .phase = Phase::training,
      .kind = FileKind::toml,
      .file = "train.toml",
      .options =
          {{"tp", "parallelism.tensor_parallel_degree", [](C of) { return value(of.plan.tensor); }, kJob},
           {"sp", "parallelism.tensor_parallel_degree", sequence, kJob},
           {"cp", "parallelism.context_parallel_degree", [](C of) { return value(of.plan.context); }, kJob},
           {"stack.communication.context_overlap", "parallelism.context_parallel_rotate_method",
            context_exchange, kJob},
           {"pp", "parallelism.pipeline_parallel_degree", [](C of) { return value(of.plan.pipeline); }, kJob},
           {"dp zero", "parallelism.data_parallel_replicate_degree",
            [](C of) { return value(sharded(of) ? 1 : of.plan.data); }, kJob},
           {"dp zero", "parallelism.data_parallel_shard_degree",
            [](C of) { return value(sharded(of) ? of.plan.data : 1); }, kJob},
           {"zero", "parallelism.fsdp_reshard_after_forward", zero_stage, kFsdp2},
           {"ep", "parallelism.expert_parallel_degree", dealt_experts, kJob},
           {"etp", "parallelism.expert_tensor_parallel_degree",
            [](C of) {
              if (!of.experts() || !of.plan.folds_experts()) return unasked();
              if (of.plan.expert_tensor == 1 || of.plan.expert_tensor == of.plan.tensor)
                return value(of.plan.expert_tensor);
              return refused("expert_tensor_parallel_degree is 1 or the tensor-parallel degree");
            },
            kJob},
           {"schedule vpp", "parallelism.pipeline_parallel_schedule", pipeline_schedule, kJob},
           {"mbs", "parallelism.pipeline_parallel_microbatch_size",
            [](C of) { return of.plan.pipeline > 1 ? value(of.plan.microbatch) : unasked(); }, kJob},
           {"vpp stack.partition stack.pipeline_layout", "parallelism.pipeline_parallel_layers_per_stage",
            layers_per_stage, kJob},
           {"stack.partition stack.pipeline_layout", "parallelism.pipeline_parallel_first_stage_less_layers",
            ends, kJob},
           {"stack.partition stack.pipeline_layout", "parallelism.pipeline_parallel_last_stage_less_layers",
            ends, kJob},
           {"order", "parallelism", rank_order, kJob},
           {"mbs", "training.local_batch_size", local_batch, kJob},
           {"workload.global_batch", "training.global_batch_size",
            [](C of) { return value(of.workload().global_batch); }, kJob},
           {"workload.sequence_length", "training.seq_len",
            [](C of) { return value(of.workload().sequence_length); }, kJob},
           {"recompute", "activation_checkpoint.mode",
            [](C of) { return quoted(name_of(of.plan.recompute)); }, kJob},
           {"stack.selective_recompute", "activation_checkpoint.mode", selective, kJob},
           {"workload.precision", "training.mixed_precision_param", formats, kFsdp2},
           {"workload.precision", "model.converters", converter, kJob},
           {"stack.state.gradient_comm_bytes", "training.mixed_precision_reduce", data_format, kFsdp2},
           {"stack.state.gradient_bytes", "training.dtype",
            [](C of) { return four_bytes(of.stack().state.gradient_bytes, 4, "gradients"); }, kFsdp2},
           {"stack.state.master_bytes", "training.dtype",
            [](C of) { return four_bytes(of.stack().state.master_bytes, 4, "weights of the optimizer"); },
            kFsdp2},
           {"stack.state.moment_bytes", "training.dtype",
            [](C of) { return four_bytes(of.stack().state.moment_bytes, 8, "moments"); }, kFsdp2},
           {"stack.zero2_gradients", "parallelism.fsdp_reshard_after_forward",
            [](C of) {
              return of.stack().zero2_gradients == Zero2Gradients::per_microbatch
                         ? unasked()
                         : lacks("FSDP2 scatters gradients in every backward");
            },
            kFsdp2},
           {"stack.communication.data_overlap", "parallelism",
            [](C of) { return overlap_always(of.stack().communication.data_overlap); }, kFsdp2},
           {"stack.attention", "model",
            [](C of) {
              const AttentionKernel kernel = of.stack().attention;
              return kernel == AttentionKernel::flash || kernel == AttentionKernel::cudnn
                         ? unasked()
                         : lacks("scaled_dot_product_attention chooses its kernel");
            },
            kJob},
           {"stack.communication.pipeline_async", "parallelism",
            [](C of) {
              return of.stack().communication.pipeline_async
                         ? unasked()
                         : lacks("torch.distributed.pipelining sends beside");
            },
            kJob},
           {"model.", "model.name", [](C of) { return value(json_text(nlohmann::json(of.model))); }, kJob},
           {"", "compile.enable", [](C /*of*/) { return value("true"); }, kJob}},
      .missing = {{"stack.communication.tensor_overlap",
                   "where the section of asynchronous tensor parallelism lies "
                   "differs between versions"},
                  {"stack.communication.bucket", "FSDP2 gathers and scatters block by block"},
                  {"stack.experts.dispatch", "tokens go by all-to-all"}},
      .program =
          [](C of) {
            const std::string nodes =
                of.nodes() > 1 ? fmt::format(
                                     " --nnodes {} --node-rank $NODE_RANK --master-addr $MASTER_ADDR "
                                     "--master-port 6000",
                                     of.nodes())
                               : std::string();
            return fmt::format(
                "torchrun --nproc-per-node {}{} -m torchtitan.train --job.config_file train.toml",
                std::min(of.gpus(), of.gpus_per_node), nodes);
          },
      .before = [](C /*of*/) -> std::string {
        return "# model.name is the study's: give the name and the flavor of it that torchtitan has\n";
      }};
}

}  // namespace shardscape::launch
