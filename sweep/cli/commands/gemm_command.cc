// shardscape gemm: the time of one matrix product on one device.
#include <fmt/format.h>

#include <iostream>
#include <optional>

#include "engine/base/words.h"
#include "engine/compute/gemm.h"
#include "sweep/cli/command.h"
#include "sweep/cli/commands/kernel_arguments.h"
#include "sweep/cli/reports/report.h"
#include "sweep/cli/terminal/format.h"
#include "sweep/yaml/number.h"
#include "sweep/yaml/quantity_text.h"

namespace shardscape::cli {

namespace {

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
