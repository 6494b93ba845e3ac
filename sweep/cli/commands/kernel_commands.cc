// shardscape attention, experts and gemm: the time of one fused attention kernel, of the experts of one rank, or of one
// matrix product on one device.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <optional>

#include "engine/base/words.h"
#include "engine/compute/expert_products.h"
#include "engine/compute/fused_attention.h"
#include "engine/compute/gemm.h"
#include "engine/compute/kernel_alone.h"
#include "engine/compute/latent_attention.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/kernel_arguments.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

/// The values of --dtype.
constexpr const char* kTypes = "fp32|tf32|bf16|fp16|fp8|fp4";

/// Adds the time of a kernel with its rate and, where the device is given, the share of that device's peak.
void add_time(Seconds time, double flops, const DeviceSpec* device, Precision precision, Facts& facts) {
  const double rate = flops / time.value();
  std::string text = format_seconds(time.value()) + ", " + format_si(rate, "FLOP/s");
  if (device != nullptr)
    text += " (" + format_percent(rate / device->tensor_peak(precision).value()) + " of the peak)";
  facts.add("time", "time_s", {text, time.value()});
}

/// Adds also what bounds it, its FLOPs and its bytes.
void add_cost(const compute::OperatorCost& cost, double flops, const DeviceSpec* device, Precision precision,
              Facts& facts) {
  add_time(cost.time, flops, device, precision, facts);
  facts.add("bound by", "bound", cell::words(name_of(cost.bound)));
  facts.add_value("flops", flops);
  facts.add("HBM", "hbm_bytes", cell::si(cost.work.bytes.value(), "B"));
}

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
  add_cost(cost, flops, &request.device, request.precision, facts);
  return facts;
}

int run_attention(const AttentionArguments& arguments, const CommonOptions& common) {
  const AttentionRequest request = AttentionParser(make_catalog(common)).parse(arguments);
  report_of(request, price_attention_kernel(request)).print(std::cout, arguments.json);
  return kDone;
}

constexpr const char* kExpertsFooter =
    R"(Examples:
  shardscape experts --device h100-sxm-80gb --tokens 4096 --hidden 7168 --inner 2048 --experts 256 --top-k 8 --ep 8
  shardscape experts --device h200-sxm-141gb --tokens 64 --hidden 4096 --inner 1536 --experts 128 --top-k 8 --ep 4 --power-law 1.2

Router, permutation and both grouped products of one rank, alone. The tokens of the whole group choose --top-k
of --experts: evenly or, with --power-law A, as a router that prefers some; then the time is the mean over
draws, of the rank that has most. --device takes a name of 'shardscape presets' or a path.)";

constexpr std::int64_t kMostExperts = 65'536, kMostRoutedTokens = 100'000'000;
constexpr double kSteepest = 10;

struct ExpertsArguments {
  std::string device, precision, tokens, hidden, inner, experts, top_k, ep = "1", etp = "1", exponent;
  bool ungated = false, blocks = false, json = false;
};

struct ExpertsRequest {
  DeviceSpec device;
  Precision precision = Precision::bf16;
  compute::Routing routing;
  std::optional<double> exponent;
  std::int64_t ranks = 1;
  compute::ExpertLayer layer;
};

class ExpertsParser : private KernelWords {
 public:
  using KernelWords::KernelWords;

  ExpertsRequest parse(const ExpertsArguments& words) {
    ExpertsRequest request;
    request.routing = {extent("--tokens", words.tokens, kMostRoutedTokens), extent("--top-k", words.top_k),
                       extent("--experts", words.experts, kMostExperts)};
    const std::int64_t inner = extent("--inner", words.inner), etp = extent("--etp", words.etp);
    request.ranks = extent("--ep", words.ep);
    const std::int64_t experts = request.routing.experts;
    if (request.routing.top_k > experts) bad("--top-k", "must not exceed --experts");
    if (experts % request.ranks != 0) bad("--ep", fmt::format("must divide the {} experts", experts));
    if (inner % etp != 0) bad("--etp", fmt::format("must divide the width {} of an expert", inner));
    if (!words.exponent.empty()) request.exponent = exponent(words.exponent);
    request.device = device(words.device);
    precision(words.precision, request.precision);
    if (words.blocks && request.precision != Precision::fp8)
      bad("--block-scales", "only fp8 has scales by tensor or by block");
    finish();
    request.layer = {static_cast<double>(extent("--hidden", words.hidden)),
                     static_cast<double>(inner / etp),
                     !words.ungated,
                     static_cast<double>(request.routing.tokens),
                     static_cast<double>(experts),
                     words.blocks};
    finish();
    return request;
  }

 private:
  double exponent(const std::string& text) {
    const auto value = yaml::parse_finite(text);
    if (!value || *value < 0 || *value > kSteepest)
      bad("--power-law", fmt::format("'{}' must be 0 to {}", text, kSteepest));
    return value.value_or(0);
  }
};

int run_experts(const ExpertsArguments& arguments, const CommonOptions& common) {
  const ExpertsRequest r = ExpertsParser(make_catalog(common)).parse(arguments);
  const compute::OperatorCost cost =
      compute::routed_experts_alone(r.routing, r.exponent, r.ranks, r.layer, r.precision, r.device);
  const double flops = cost.work.flops.value();
  Facts facts;
  facts.add_text("experts",
                 fmt::format("{} of {} on a rank, {} -> {}{}, {}, on {}",
                             format_count(r.routing.experts / r.ranks), format_count(r.routing.experts),
                             yaml::format_number(r.layer.hidden), yaml::format_number(r.layer.inner),
                             r.layer.gated ? ", gated" : "", name_of(r.precision), r.device.name));
  facts.add_text("tokens",
                 fmt::format("{}, each to {}, {}", format_count(r.routing.tokens),
                             format_count(r.routing.top_k), r.exponent ? "by a power law" : "evenly"));
  add_cost(cost, flops, nullptr, r.precision, facts);
  facts.print(std::cout, arguments.json);
  return kDone;
}

using compute::GemmCost;
using compute::GemmTile;

constexpr const char* kGemmFooter =
    R"(Examples:
  shardscape gemm 4096 12288 12288 --device a100-sxm-80gb
  shardscape gemm 1 8192 28672 --device h100-sxm-80gb --dtype fp8 --json
  shardscape gemm 1024 6144 4096 --device a100-sxm-80gb --tile 128x128x32 --clock 1.036e9

C[M,N] = A[M,K] B[K,N]. Without --clock: one kernel of a busy stream at the clock that the power limit
leaves a step. --burst: the kernel alone, launched for a moment, which may draw more. With --clock: what
a profiler reports that locks the clock there and clears the caches before each kernel. 'waves' is the
number of output tiles that the busiest SM works off, ceil(CTAs / SMs); 'bound' is compute, sram, l2, hbm
or launch. --device takes a name of 'shardscape presets' or a path.)";

constexpr std::int64_t kMaxTile = 4096;

struct GemmArguments {
  std::string m, n, k;
  std::string device, precision, tile, clock;
  bool burst = false, json = false;
};

struct Request {
  compute::GemmShape shape;
  DeviceSpec device;
  Precision precision = Precision::bf16;
  compute::GemmRequest options;
};

/// Reads the arguments into a request, and collects what is wrong with them.
class Parser : private KernelWords {
 public:
  using KernelWords::KernelWords;

  Request parse(const GemmArguments& words) {
    Request request;
    request.shape = {extent("M", words.m), extent("N", words.n), extent("K", words.k), 1};
    request.device = device(words.device);
    const DeviceSpec* const known = has_device() ? &request.device : nullptr;
    const bool named = precision(words.precision, request.precision);
    request.options.burst = words.burst;
    if (words.burst && !words.clock.empty()) bad("--burst", "--clock locks the clock; give one of both");
    if (words.burst && known != nullptr && !known->knows_energy()) {
      bad("--burst", known->name + " does not say its 'energy', from which the clock of a burst follows");
    }
    if (!words.clock.empty()) request.options.locked_clock = clock(words.clock);
    if (!words.tile.empty()) request.options.tile = tile(words.tile);
    if (known != nullptr && named && request.options.tile && request.options.tile->m > 0 &&
        !compute::tile_fits(*request.options.tile, request.precision, *known)) {
      bad("--tile",
          fmt::format("an SM of {} can't hold {} in {}: two stages of (M + N) x K operands need room in its "
                      "{} of SRAM, and M x N fp32 sums in half of its {} of registers",
                      known->name, words.tile, name_of(request.precision),
                      format_bytes(known->sm.sram.value()), format_bytes(known->sm.registers.value())));
    }
    finish();
    return request;
  }

 private:
  Hertz clock(const std::string& text) {
    const std::optional<double> plain = yaml::parse_finite(text);
    const auto value = plain ? tl::expected<double, std::string>(*plain)
                             : yaml::parse_quantity(text, yaml::Dimension::frequency);
    if (!value) {
      bad("--clock", value.error());
    } else if (*value < 1e6 || *value > 1e11) {
      bad("--clock", "'" + text + "' must be between 1 MHz and 100 GHz, such as 1.05e9 or \"1.05 GHz\"");
    }
    return Hertz(value.value_or(1e9));
  }

  GemmTile tile(const std::string& text) {
    std::vector<std::int32_t> extents;
    const std::vector<std::string_view> parts = split(text, 'x');
    for (const std::string_view part : parts) {
      const auto value = yaml::parse_integer(part, 1, kMaxTile);
      if (value) extents.push_back(static_cast<std::int32_t>(*value));
    }
    if (parts.size() == 3 && extents.size() == 3) return {extents[0], extents[1], extents[2], 0};
    bad("--tile",
        fmt::format("'{}' must be MxNxK, three numbers of 1 to {}, such as 128x256x32", text, kMaxTile));
    return {};
  }
};

std::string tile_text(const GemmTile& tile) { return fmt::format("{}x{}x{}", tile.m, tile.n, tile.k); }

Facts report_of(const Request& request, const GemmCost& cost) {
  const compute::GemmShape& s = request.shape;
  const DeviceSpec& device = request.device;
  const auto clock = request.options.locked_clock;
  Facts facts;
  facts.add_text("product", fmt::format("{} x {} x {}, {}, on {}{}", format_count(s.m), format_count(s.n),
                                        format_count(s.k), name_of(request.precision), device.name,
                                        clock ? ", profiled at " + format_si(clock->value(), "Hz")
                                        : request.options.burst ? std::string(", alone")
                                                                : std::string()));
  add_time(cost.time, s.flops().value(), &device, request.precision, facts);
  facts.add_text("bound by", std::string(name_of(cost.bound)));
  const auto waves = static_cast<std::uint64_t>(cost.waves);
  const std::string tile = tile_text(cost.tile);
  facts.add("tile", "tile",
            {fmt::format("{}, {}, {}{}", tile, counted(cost.tile.stages, "stage"), counted(waves, "wave"),
                         cost.split_k > 1 ? fmt::format(", K split by {}", cost.split_k) : ""),
             tile});
  facts.add_value("waves", waves);
  facts.add_value("split_k", cost.split_k);
  facts.add_value("bound", name_of(cost.bound));
  facts.add("HBM", "hbm_bytes", cell::si(cost.hbm_bytes.value(), "B"));
  facts.add("L2", "l2_bytes", cell::si(cost.l2_bytes.value(), "B"));
  facts.add("SRAM", "sram_bytes", cell::si(cost.sram_bytes.value(), "B"));
  return facts;
}

int run_gemm(const GemmArguments& arguments, const CommonOptions& common) {
  const Request request = Parser(make_catalog(common)).parse(arguments);
  const compute::GemmOutput output{compute::output_bytes(request.precision)};
  const GemmCost cost =
      compute::gemm(request.shape, request.precision, request.device, output, request.options);
  report_of(request, cost).print(std::cout, arguments.json);
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

void add_experts_command(const Program& program) {
  const auto [command, arguments] = program.add(
      "experts", "The time of the experts of one rank on one device", kExpertsFooter, run_experts);
  command->add_option("--device", arguments->device, "A device preset or file")->required();
  command->add_option("--tokens", arguments->tokens, "Tokens of all ranks together")->required();
  command->add_option("--hidden", arguments->hidden, "Width of a token")->required();
  command->add_option("--inner", arguments->inner, "Width of an expert")->required();
  command->add_option("--experts", arguments->experts, "Experts of all ranks")->required();
  command->add_option("--top-k", arguments->top_k, "Experts that a token chooses")->required();
  command->add_option("--ep", arguments->ep, "Ranks that share the experts; default 1");
  command->add_option("--etp", arguments->etp, "Ranks that share each expert's width; default 1");
  add_value(*command, "--power-law", arguments->exponent, "EXPONENT",
            "Loads by a power law; default: evenly");
  command->add_flag("--ungated", arguments->ungated, "One matrix up instead of two");
  add_value(*command, "--dtype,--precision", arguments->precision, kTypes, "As for gemm");
  command->add_flag("--block-scales", arguments->blocks, "fp8 with a scale for each block of 128");
  add_json(*command, arguments->json);
}

void add_gemm_command(const Program& program) {
  const auto [command, arguments] =
      program.add("gemm", "The time of one matrix product on one device", kGemmFooter, run_gemm);
  command->add_option("M", arguments->m, "Rows of C")->required();
  command->add_option("N", arguments->n, "Columns of C")->required();
  command->add_option("K", arguments->k, "What is summed over")->required();
  command->add_option("--device", arguments->device, "A device preset or file")->required();
  add_value(*command, "--dtype,--precision", arguments->precision, kTypes,
            "Of the inputs; default bf16, or fp16 where there is none");
  add_value(*command, "--tile", arguments->tile, "MxNxK",
            "This CTA tile, either way over C, instead of the cheapest");
  add_value(*command, "--clock", arguments->clock, "HZ", "As profiled with the SM clock locked here");
  command->add_flag("--burst", arguments->burst,
                    "The kernel alone, for a moment: more power than a step's limit leaves");
  add_json(*command, arguments->json);
}

}  // namespace shardscape::cli
