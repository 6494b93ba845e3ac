// Prices fused attention kernels by architecture: prompts by blocks of queries, decode by CTAs over parts of the keys,
// in two variants (one CTA per KV head, one per query head). The tables hold the fitted constants.
#include "engine/compute/fused_attention.h"

#include <algorithm>
#include <cmath>

#include "engine/compute/prompt_blocks.h"

namespace shardscape::compute {

namespace {

/// Constants of one architecture; see the header for the fit.
struct PromptKernel {
  double call;          ///< seconds of a lone call beyond what its work explains, preparation included
  double products;      ///< share of the peak of the matrix units
  double exponentials;  ///< exponentials: scores per SM and clock
  double start;         ///< seconds to start a block
  double overlap;       ///< exponent q with which exponentials and products overlap
  double cache_words;   ///< preparation: bytes per key, KV head and dimension, relative to half of a query's
  double preparation;   ///< share of the HBM peak at which preparation streams
  double most_rows;     ///< queries per block at most
};
struct DecodeKernel {
  double call;  ///< seconds of a lone call
  double hbm;   ///< share of the HBM peak
  double norm;  ///< exponent with which work and stream combine
  /// Start of a CTA: seconds; per head dimension; per head dimension and query head.
  double start, width, output;
  double port;  ///< bytes per clock that an SM streams
  double head;  ///< seconds per key, head dimension and query head
  double
      /// CTAs per SM that keys are dealt to; 0: keys are whole, or cut into one or two CTAs per SM, whichever is
      /// fastest.
      waves;
  double tile;                    ///< with `waves`: keys per tile, the unit that is dealt
  double merge;                   ///< seconds to merge the parts where keys are cut
  double lone_call;               ///< seconds of a lone call of the kernel with one CTA per query head
  double lone_start, lone_width;  ///< start of such a CTA: seconds; per head dimension
  double lone_port;               ///< bytes per clock that such a CTA streams
  double lone_l2;                 ///< bytes per clock from L2, per SM, over all SMs together
  double lone_resident;           ///< such CTAs per SM: their streams overlap, their starts do not
  double lone_waves, lone_tile, lone_merge;  ///< as those of grouped heads above; 0 waves: keys are whole
  bool lone_heads;                           ///< groups of a single query head use this kernel, too
  double kept;        ///< share of L2 that still holds what the launch before read, kernel of lone heads
  double cold;        ///< extra seconds for the first bytes in a kernel repeated alone, grouped heads
  double cold_share;  ///< share of L2 over whose bytes that extra builds up
};

/// One row per architecture, from Ampere on.
constexpr PromptKernel kPrompt[] = {
    {11.3e-6, 0.543, 6.05, 0.78e-6, 1.86, 2.73, 0.78, 128},
    {11.6e-6, 0.612, 8.52, 3.37e-6, 4.59, 2.13, 0.92, 128},
    {12.4e-6, 0.687, 11.0, 2.58e-6, 6.92, 2.18, 0.46, 256},
};
constexpr DecodeKernel kDecode[] = {
    {.call = 8.79e-6,
     .hbm = 0.849,
     .norm = 6,
     .start = 2.98e-6,
     .width = 1.71e-8,
     .output = 5.3e-10,
     .port = 1e4,
     .head = 5.54e-12,
     .waves = 0,
     .tile = 0,
     .merge = 9.25e-6,
     .lone_call = 8.79e-6,
     .lone_start = 1.92e-6,
     .lone_width = 0,
     .lone_port = 14.3,
     .lone_l2 = 31,
     .lone_resident = 2,
     .lone_waves = 0,
     .lone_tile = 0,
     .lone_merge = 0,
     .lone_heads = true,
     .kept = 0.732,
     .cold = 48.6e-6,
     .cold_share = 0.692},
    {.call = 4.99e-6,
     .hbm = 0.95,
     .norm = 2.23,
     .start = 3.46e-6,
     .width = 5.34e-9,
     .output = 3.5e-10,
     .port = 420,
     .head = 5.75e-12,
     .waves = 8,
     .tile = 256,
     .merge = 6.77e-6,
     .lone_call = 6.72e-6,
     .lone_start = 1.19e-6,
     .lone_width = 5e-10,
     .lone_port = 25,
     .lone_l2 = 24,
     .lone_resident = 2,
     .lone_waves = 2,
     .lone_tile = 128,
     .lone_merge = 14.3e-6,
     .lone_heads = true,
     .kept = 0,
     .cold = 0,
     .cold_share = 1},
    {.call = 9.54e-6,
     .hbm = 0.919,
     .norm = 6,
     .start = 0.859e-6,
     .width = 0,
     .output = 6.91e-10,
     .port = 340,
     .head = 1.75e-12,
     .waves = 0,
     .tile = 0,
     .merge = 1.71e-6,
     .lone_call = 9.54e-6,
     .lone_start = 0.912e-6,
     .lone_width = 0,
     .lone_port = 29.1,
     .lone_l2 = 29.4,
     .lone_resident = 1,
     .lone_waves = 0,
     .lone_tile = 0,
     .lone_merge = 0,
     .lone_heads = false,
     .kept = 0,
     .cold = 0,
     .cold_share = 1},
};

constexpr double kGroupRows = 8;   ///< least number of heads that a matrix instruction takes
constexpr double kMostGroup = 32;  ///< most query heads of a group that one CTA takes
constexpr double kSumBytes = 4;    ///< bytes per element of a query and its output together, in decode

std::size_t row_of(const DeviceSpec& device) {
  return static_cast<std::size_t>(device.architecture) - static_cast<std::size_t>(Architecture::ampere);
}
bool has_tables(const DeviceSpec& device) { return device.architecture != Architecture::other; }

bool is_named(AttentionKernel kernel, const DeviceSpec& device) {
  if (!has_tables(device)) return false;
  // On devices before Hopper FlashAttention-3 stands for FlashAttention-2.
  if (kernel == AttentionKernel::flash3) return device.architecture != Architecture::ampere;
  return kernel == AttentionKernel::cudnn || kernel == AttentionKernel::trtllm;
}

double sms_of(const DeviceSpec& device) { return static_cast<double>(device.sm.count); }

/// FlashAttention-2 with biases slows down further where sequences are short: 1 / (1 + 400 / keys).
constexpr double kAlibiKeys = 400;
struct AlibiShares {
  double forward, backward;
};
AlibiShares alibi_shares(const DeviceSpec& device) {
  return device.architecture == Architecture::hopper ? AlibiShares{0.28, 0.15} : AlibiShares{0.55, 0.26};
}

/// The device with other shares of the peak for attention, forward and backward.
DeviceSpec with_shares(const DeviceSpec& device, double forward, double backward) {
  DeviceSpec other = device;
  other.attention.forward = forward;
  other.attention.backward = backward;
  return other;
}

/// Combines two times: (a^n + b^n)^(1/n).
double joined(double a, double b, double n) {
  const double most = std::max(a, b);
  if (most == 0) return 0;
  return most * std::pow(1 + std::pow(std::min(a, b) / most, n), 1 / n);
}

OperatorCost prompt_kernel(const AttentionShape& s, Precision precision, const DeviceSpec& device) {
  const PromptKernel& k = kPrompt[row_of(device)];
  const double sms = sms_of(device), clock = device.sm.clock.value();
  const auto [rows, blocks, seen, most] = prompt_blocks(s, k.most_rows);
  const double products = k.products * device.tensor_peak(precision).value() / sms;
  // Soft caps and biases lengthen the work beside the products.
  const double exponential = (1 + s.score_flops / kSoftmaxFlops) / (k.exponentials * clock);
  const double score = std::pow(
      std::pow(exponential, k.overlap) + std::pow(4 * s.head_dim / products, k.overlap), 1 / k.overlap);
  const double sum = blocks * (k.start + score * rows * seen);
  const double longest = k.start + score * rows * most;
  const double arithmetic = std::max(longest, sum / sms + longest / 2 * std::min(1.0, blocks / sms));
  const double bytes =
      2 * bytes_per_element(precision) * s.batch * s.head_dim * (s.heads * s.queries + s.kv_heads * s.keys);
  const double stream = Bytes(bytes) / device.hbm_sustained() / Seconds(1);
  return {device.kernel_latency + Seconds(std::max(arithmetic, stream)) / device.attention.prompt_rate,
          bound_of_blocks(device.kernel_latency.value(), k.start, arithmetic, stream),
          {Flops(4 * s.head_dim * s.scores() * s.visible), Bytes(bytes)}};
}

/// Rounds of CTAs where each SM runs one at a time.
double rounds(double ctas, const DeviceSpec& device) { return std::ceil(ctas / sms_of(device)); }

/// How many CTAs share the keys of one head, and how many keys the busiest of them takes.
struct KeyParts {
  double parts = 1, keys = 0;
};
KeyParts whole_keys(double keys) { return {1, kKeysOfOneStep * std::ceil(keys / kKeysOfOneStep)}; }
/// Cuts the keys into tiles and deals them to CTAs: from `ctas` CTAs with whole keys to about `waves` per SM.
KeyParts cut_keys(double keys, double ctas, double waves, double tile, const DeviceSpec& device) {
  const double tiles = std::max(1.0, std::ceil(keys / tile));
  const double parts = std::clamp(std::floor(waves * sms_of(device) / ctas), 1.0, tiles);
  return {parts, std::min(std::ceil(tiles / parts) * tile, whole_keys(keys).keys)};
}

/// Seconds of the kernel with one CTA per KV head and part of the keys.
double group_kernel(const AttentionShape& s, double element, const DecodeKernel& k,
                    const DeviceSpec& device) {
  const double groups = s.batch * s.kv_heads, heads = std::max(kGroupRows, s.heads / s.kv_heads);
  const double d = s.head_dim;
  const double key = 2 * d * element / (k.port * device.sm.clock.value()) + k.head * d * heads;
  const double start = k.start + d * (k.width + k.output * heads);
  const auto time = [&](const KeyParts& cut) {
    return rounds(groups * cut.parts, device) * (start + cut.keys * key) + (cut.parts > 1 ? k.merge : 0);
  };
  if (k.waves > 0) return time(cut_keys(s.keys, groups, k.waves, k.tile, device));
  double best = time(whole_keys(s.keys));
  for (const double waves : {1.0, 2.0}) {
    const double most = std::max(1.0, std::ceil(s.keys / kKeysOfOneStep));
    const double parts = std::clamp(std::floor(waves * sms_of(device) / groups), 1.0, most);
    best = std::min(best, time({parts, whole_keys(s.keys / parts).keys}));
  }
  return best;
}

/// Seconds of the kernel with one CTA per query head and part of the keys.
double lone_kernel(const AttentionShape& s, double element, const DecodeKernel& k, const DeviceSpec& device) {
  const double clock = device.sm.clock.value();
  const double bytes = 2 * s.head_dim * element;
  const double heads = s.batch * s.heads, start = k.lone_start + k.lone_width * s.head_dim;
  const KeyParts cut =
      k.lone_waves > 0 ? cut_keys(s.keys, heads, k.lone_waves, k.lone_tile, device) : whole_keys(s.keys);
  const double ctas = heads * cut.parts, cta = start + cut.keys * bytes / (k.lone_port * clock);
  const double l2 = heads * s.keys * bytes / (k.lone_l2 * sms_of(device) * clock);
  const double work = std::max(rounds(ctas, device) * start, rounds(ctas / k.lone_resident, device) * cta) +
                      (cut.parts > 1 ? k.lone_merge : 0);
  return joined(work, l2, k.norm);
}

/// Seconds to stream the cache. A kernel that is launched over and over finds part of a cache that it reads once still
/// in L2; the kernel of grouped heads instead takes longer at first, the more the cache fills L2.
double cache_stream(double bytes, bool lone, LaunchedBy launches, const DecodeKernel& k,
                    const DeviceSpec& device) {
  const double rate = k.hbm * device.hbm_peak().value(), l2 = device.l2.capacity.value();
  if (launches == LaunchedBy::step) return bytes / rate;
  if (lone) return std::max(0.0, bytes - k.kept * l2) / rate;
  return bytes / rate + k.cold * (1 - std::exp(-bytes / (k.cold_share * l2)));
}

OperatorCost decode_kernel(const AttentionShape& s, Precision kv_precision, const DeviceSpec& device,
                           LaunchedBy launches) {
  const DecodeKernel& k = kDecode[row_of(device)];
  const double element = bytes_per_element(kv_precision), group = s.heads / s.kv_heads;
  const Bytes cache(2 * element * s.batch * s.kv_heads * s.keys * s.head_dim);
  const Bytes bytes = cache + Bytes(kSumBytes * s.batch * s.heads * s.head_dim);
  const bool lone = group > kMostGroup || (group <= 1 && k.lone_heads);
  const double stream = cache_stream(bytes.value(), lone, launches, k, device);
  const double work = lone ? lone_kernel(s, element, k, device) : group_kernel(s, element, k, device);
  const double call = std::max(0.0, (lone ? k.lone_call : k.call) - device.kernel_latency.value());
  return {Seconds(call + joined(work, stream, k.norm) / device.attention.decode_rate),
          stream > work ? Bound::hbm : Bound::compute,
          {Flops(4 * s.head_dim * s.scores()), bytes}};
}

}  // namespace

OperatorCost fused_forward(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                           const DeviceSpec& device) {
  if (is_named(kernel, device)) return prompt_kernel(shape, precision, device);
  if (kernel != AttentionKernel::flash_alibi) return flash_forward(shape, precision, device);
  const AlibiShares shares = alibi_shares(device);
  const double length = 1 / (1 + kAlibiKeys / shape.keys);
  return flash_forward(shape, precision, with_shares(device, shares.forward * length, 1));
}

OperatorCost fused_backward(const AttentionShape& shape, AttentionKernel kernel, Precision precision,
                            const DeviceSpec& device) {
  constexpr double kHopper = 0.45, kBlackwell = 0.34;  // see the header
  double share = device.attention.backward;
  if (is_named(kernel, device) && device.architecture != Architecture::ampere)
    share = device.architecture == Architecture::hopper ? kHopper : kBlackwell;
  if (kernel == AttentionKernel::flash_alibi)
    share = alibi_shares(device).backward * (1 / (1 + kAlibiKeys / shape.keys));
  OperatorCost cost = flash_backward(shape, precision, with_shares(device, 1, share));
  cost.time = std::max(cost.time, fused_forward(shape, kernel, precision, device).time);
  return cost;
}

OperatorCost fused_decode(const AttentionShape& shape, AttentionKernel kernel, Precision kv_precision,
                          const DeviceSpec& device, LaunchedBy launches) {
  return is_named(kernel, device) ? decode_kernel(shape, kv_precision, device, launches)
                                  : decode(shape, kv_precision, device);
}

Seconds prompt_preparation(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  if (!has_tables(device)) return Seconds(0);
  const PromptKernel& k = kPrompt[row_of(device)];
  const Bytes bytes(bytes_per_element(precision) * shape.batch * shape.head_dim *
                    (4 * shape.heads * shape.queries + k.cache_words * shape.kv_heads * shape.keys));
  return std::max(Seconds(0), Seconds(k.call) - device.kernel_latency) +
         bytes / (k.preparation * device.hbm_peak());
}

}  // namespace shardscape::compute
