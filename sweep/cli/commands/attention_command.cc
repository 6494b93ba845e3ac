// shardscape attention: the time of one fused attention kernel on one device.
#include <fmt/format.h>

#include <cmath>
#include <iostream>

#include "engine/compute/fused_attention.h"
#include "engine/compute/kernel_alone.h"
#include "engine/compute/latent_attention.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/kernel_arguments.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"

namespace shardscape::cli {

namespace {

/// What one call of an attention kernel does.
///   forward, backward  of a training step
///   prompt             of whole prompts, the kernel alone with its preparation
///   decode             of one token per sequence, with the same preparation
enum class AttentionPhase : std::uint8_t { forward, backward, prompt, decode };

constexpr const char* kAttentionFooter =
    R"(Examples:
  shardscape attention --device h100-sxm-80gb --batch 4 --seq 8192 --heads 32 --kv-heads 8
  shardscape attention --device b200-sxm-180gb --batch 64 --seq 2048 --heads 64 --kv-heads 8 --phase decode
  shardscape attention --device h200-sxm-141gb --latent --batch 64 --seq 4096 --heads 16 --phase decode

Causal, without dropout. 'forward' and 'backward' are kernels of a training step, 'prompt' and 'decode'
those of a server, alone, with the kernels that prepare their inputs; --seq is then the length of the
prompts or what is cached. --latent: DeepSeek's attention over one compressed cache of 576 values a token,
--dtype being the type of the cache. --device takes a name of 'shardscape presets' or a path.)";

struct AttentionArguments {
  std::string device, precision, batch = "1", seq, heads, kv_heads, head_dim, phase, kernel;
  bool latent = false, json = false;
};

struct AttentionRequest {
  compute::AttentionShape shape;
  DeviceSpec device;
  Precision precision = Precision::bf16;
  AttentionPhase phase = AttentionPhase::forward;
  AttentionKernel kernel = AttentionKernel::cudnn;
  bool latent = false;
};

class AttentionParser : private KernelWords {
 public:
  using KernelWords::KernelWords;

  AttentionRequest parse(const AttentionArguments& words) {
    AttentionRequest request;
    compute::AttentionShape& shape = request.shape;
    shape.batch = whole("--batch", words.batch);
    shape.heads = whole("--heads", words.heads);
    shape.kv_heads = words.kv_heads.empty() ? shape.heads : whole("--kv-heads", words.kv_heads);
    shape.head_dim = words.head_dim.empty() ? kUsualWidth : whole("--head-dim", words.head_dim);
    shape.queries = shape.keys = whole("--seq", words.seq);
    if (std::fmod(shape.heads, shape.kv_heads) != 0) bad("--kv-heads", "must divide --heads");
    request.latent = words.latent;
    request.phase =
        named<AttentionPhase>("--phase", words.phase.empty() ? default_phase(words) : words.phase);
    request.kernel = named<AttentionKernel>("--kernel", words.kernel.empty() ? "cudnn" : words.kernel);
    if (words.latent) check_latent(words, request.phase);
    if (!is_fused(request.kernel))
      bad("--kernel", "naive attention is no kernel but several; give a fused one");
    if (request.phase == AttentionPhase::decode) shape.queries = shape.visible = 1;
    request.device = device(words.device);
    precision(words.precision, request.precision);
    finish();
    return request;
  }

 private:
  static constexpr double kUsualWidth = 128;

  static const char* default_phase(const AttentionArguments& words) {
    return words.latent ? "prompt" : "forward";
  }

  /// Checks widths for latent attention, whose kernels are one family with widths of its own.
  void check_latent(const AttentionArguments& words, AttentionPhase phase) {
    constexpr const char* kNone = "has no meaning with --latent, where all heads share one cache";
    if (!words.kv_heads.empty()) bad("--kv-heads", kNone);
    if (!words.head_dim.empty()) bad("--head-dim", kNone);
    if (!words.kernel.empty())
      bad("--kernel", "has no meaning with --latent, which has one family of kernels");
    if (phase != AttentionPhase::prompt && phase != AttentionPhase::decode)
      bad("--phase", "with --latent there are prompt and decode");
  }

  double whole(const char* name, const std::string& text) { return static_cast<double>(extent(name, text)); }
};

compute::LatentShape latent_shape(const AttentionRequest& r) {
  compute::LatentShape shape;
  shape.batch = r.shape.batch;
  shape.heads = r.shape.heads;
  shape.queries = r.shape.queries;
  shape.keys = r.shape.keys;
  shape.visible = r.shape.visible;
  return shape;
}

compute::OperatorCost price_attention_kernel(const AttentionRequest& r) {
  if (r.latent)
    return r.phase == AttentionPhase::decode ? compute::latent_decode(latent_shape(r), r.precision, r.device)
                                             : compute::latent_prompt(latent_shape(r), r.precision, r.device);
  switch (r.phase) {
    case AttentionPhase::forward:
      return compute::fused_forward(r.shape, r.kernel, r.precision, r.device);
    case AttentionPhase::backward:
      return compute::fused_backward(r.shape, r.kernel, r.precision, r.device);
    case AttentionPhase::prompt:
      return compute::prompt_attention_alone(r.shape, r.kernel, r.precision, r.device);
    case AttentionPhase::decode:
      break;
  }
  return compute::decode_attention_alone(r.shape, r.kernel, r.precision, r.device);
}

/// Matrix FLOPs of the scores that the mask leaves.
double attention_flops(const AttentionRequest& r, const compute::OperatorCost& cost) {
  if (r.latent) return cost.work.flops.value();
  const double per_score = r.phase == AttentionPhase::backward ? 10 : 4;
  return per_score * r.shape.head_dim * r.shape.scores() * r.shape.visible;
}

Facts report_of(const AttentionRequest& request, const compute::OperatorCost& cost) {
  const compute::AttentionShape& s = request.shape;
  const auto number = [](double n) { return format_count(static_cast<std::uint64_t>(n)); };
  const double flops = attention_flops(request, cost);
  Facts facts;
  facts.add_text("kernel",
                 fmt::format("{} {}, {}, on {}", request.latent ? "latent" : name_of(request.kernel),
                             name_of(request.phase), name_of(request.precision), request.device.name));
  const std::string heads = request.latent ? fmt::format("{} heads over one latent cache", number(s.heads))
                                           : fmt::format("{} heads over {} of keys, {} wide", number(s.heads),
                                                         number(s.kv_heads), number(s.head_dim));
  facts.add_text("shape", fmt::format("{} x {} tokens, {}", number(s.batch), number(s.keys), heads));
  add_time(cost.time, flops, &request.device, request.precision, facts);
  facts.add("bound by", "bound", cell::words(name_of(cost.bound)));
  facts.add_value("flops", flops);
  facts.add("HBM", "hbm_bytes", cell::si(cost.work.bytes.value(), "B"));
  return facts;
}

int run_attention(const AttentionArguments& arguments, const CommonOptions& common) {
  const AttentionRequest request = AttentionParser(make_catalog(common)).parse(arguments);
  report_of(request, price_attention_kernel(request)).print(std::cout, arguments.json);
  return kDone;
}

}  // namespace

void add_attention_command(const Program& program) {
  const auto [command, arguments] = program.add(
      "attention", "The time of one fused attention kernel on one device", kAttentionFooter, run_attention);
  command->add_option("--device", arguments->device, "A device preset or file")->required();
  command->add_option("--seq", arguments->seq, "Tokens of each sequence")->required();
  command->add_option("--heads", arguments->heads, "Query heads")->required();
  command->add_option("--kv-heads", arguments->kv_heads, "Heads of keys and values; default --heads");
  command->add_option("--head-dim", arguments->head_dim, "Width of a head; default 128");
  command->add_option("--batch", arguments->batch, "Sequences; default 1");
  command->add_option("--phase", arguments->phase,
                      "forward, backward, prompt or decode; default forward, with --latent prompt");
  command->add_flag("--latent", arguments->latent, "Latent attention (MLA); prompt and decode");
  add_value(*command, "--kernel", arguments->kernel, "flash|flash_alibi|flash3|cudnn|trtllm",
            "As in stacks; default cudnn");
  add_value(*command, "--dtype,--precision", arguments->precision, kTypes,
            "As for gemm; of the cache in decode");
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
