// shardscape experts: the time of the experts of one rank on one device.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "engine/compute/expert_products.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/kernel_arguments.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/yaml/number.h"

namespace shardscape::cli {

namespace {

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
  add_time(cost.time, flops, nullptr, r.precision, facts);
  facts.add("bound by", "bound", cell::words(name_of(cost.bound)));
  facts.add_value("flops", flops);
  facts.add("HBM", "hbm_bytes", cell::si(cost.work.bytes.value(), "B"));
  facts.print(std::cout, arguments.json);
  return kDone;
}

}  // namespace

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

}  // namespace shardscape::cli
