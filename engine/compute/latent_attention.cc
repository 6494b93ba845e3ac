#include "engine/compute/latent_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/compute/prompt_blocks.h"

namespace shardscape::compute {

namespace {

/// Constants of one architecture; see the header for the fit.
struct LatentPrompt {
  double call;          ///< seconds beyond what the work explains
  double products;      ///< share of the bf16 peak of the matrix units
  double bytes;         ///< factor on that rate with a cache of one byte per value
  double exponentials;  ///< scores per SM and clock
  double start;         ///< seconds to start a block
  double overlap;       ///< exponent q with which exponentials and products overlap
  double stream;        ///< how often Q, K, V and O cross HBM, at its peak rate
  double converted;     ///< the same with a cache of one byte per value
  double cache;         ///< bytes of cache traffic per cached value
  double most_rows;     ///< queries per block at most
};
struct LatentDecode {
  double call;             ///< seconds beyond what the work explains
  double start, head;      ///< start of a CTA: seconds; seconds per head
  double step, head_step;  ///< step of 64 keys: seconds; seconds per head
  double bytes;            ///< factor on `step` with a cache of one byte per value
  double merge;            ///< seconds to merge the parts where keys are cut
  double hbm;              ///< share of the HBM peak
  double output;           ///< how often queries and outputs cross HBM
  double most_heads;       ///< most heads per CTA
  double narrow;           ///< factor on the time with 17 to 32 heads
  double crowded;          ///< factor on `step` where more than half of the SMs are busy
  double sms;              ///< SMs per CTA
  bool cuts;               ///< keys may be cut among several CTAs
};

/// One row per architecture, from Ampere on.
constexpr LatentPrompt kLatentPrompt[] = {
    {11.5e-6, 0.587, 1, 6.89, 2.37e-6, 2.99, 0.801, 0.795, 4.73, 128},
    {13.75e-6, 0.754, 1.15, 6.76, 2.67e-6, 3.21, 0.594, 1.86, 4.09, 128},
    {12.5e-6, 0.839, 2, 12.1, 2.85e-6, 2.48, 0.855, 2.51, 5.92, 256},
};
constexpr LatentDecode kLatentDecode[] = {
    {3.18e-6, 3.81e-6, 28e-9, 7.66e-6, 0, 1, 0, 0.8, 1, 64, 1, 1.4, 1, false},
    {9.61e-6, 1.92e-6, 45.7e-9, 0.717e-6, 1.73e-9, 0.946, 5.34e-6, 0.882, 2.37, 64, 1, 1, 2, true},
    {7.27e-6, 1.72e-6, 22.9e-9, 0.807e-6, 0, 0.4, 3.26e-6, 0.976, 2.85, 128, 1.65, 1, 2, true},
};

constexpr double kFittedWidth = 576;  ///< cached values per token of the rows in the fit
constexpr double kActivation = 2;     ///< bytes per value of Q, K, V and O
/// Range of head counts with the slow kernel: above, up to.
constexpr double kNarrowFrom = 16, kNarrowTo = 32;

std::size_t latent_row(const DeviceSpec& device) {
  const auto known = std::max(device.architecture, Architecture::ampere);
  return static_cast<std::size_t>(known) - static_cast<std::size_t>(Architecture::ampere);
}

bool one_byte(Precision cache) { return bytes_per_element(cache) <= 1; }

/// Seconds of the rounds of CTAs over places. A round takes `crowded` where more than half of the places are busy, else
/// `alone`; only the last can be the latter.
double latent_rounds(double ctas, double places, double alone, double crowded) {
  const double full = std::floor(ctas / places), rest = ctas - full * places;
  const double last = rest == 0 ? 0 : rest > places / 2 ? crowded : alone;
  return full * crowded + last;
}

double latent_ctas(const LatentShape& s, const LatentDecode& k, Precision cache, const DeviceSpec& device) {
  const double places = std::max(1.0, std::floor(static_cast<double>(device.sm.count) / k.sms));
  const double groups = s.batch * std::ceil(s.heads / k.most_heads), heads = std::min(s.heads, k.most_heads);
  const double most = std::ceil(s.keys / kKeysOfOneStep), width = s.cached() / kFittedWidth;
  const double slow = s.heads > kNarrowFrom && s.heads <= kNarrowTo ? k.narrow : 1;
  const double step = width * k.step * (one_byte(cache) ? k.bytes : 1);
  double best = std::numeric_limits<double>::infinity();
  for (const double busy : {0.0, 1.0, 2.0}) {
    const double splits =
        k.cuts ? std::clamp(std::floor(busy * places / groups), 1.0, std::max(1.0, most)) : 1;
    const double steps = std::ceil(s.keys / splits / kKeysOfOneStep);
    const auto cta = [&](double crowd) {
      return slow * (k.start + heads * k.head + steps * (crowd * step + width * heads * k.head_step));
    };
    best = std::min(
        best, latent_rounds(groups * splits, places, cta(1), cta(k.crowded)) + (splits > 1 ? k.merge : 0));
  }
  return best;
}

}  // namespace

OperatorCost latent_prompt(const LatentShape& s, Precision cache, const DeviceSpec& device) {
  const LatentPrompt& k = kLatentPrompt[latent_row(device)];
  const double sms = static_cast<double>(device.sm.count), clock = device.sm.clock.value();
  const auto [rows, blocks, seen, most] = prompt_blocks(s, k.most_rows);
  const double score_flops = 2 * (s.nope_dim + s.rope_dim + s.value_dim);
  const Precision type = device.supports(Precision::bf16) ? Precision::bf16 : Precision::fp16;
  const double products =
      k.products * (one_byte(cache) ? k.bytes : 1) * device.tensor_peak(type).value() / sms;
  const double score = std::pow(
      std::pow(1 / (k.exponentials * clock), k.overlap) + std::pow(score_flops / products, k.overlap),
      1 / k.overlap);
  const double longest = k.start + score * rows * most;
  const double sum = blocks * (k.start + score * rows * seen);
  const double arithmetic = std::max(longest, sum / sms + longest / 2 * std::min(1.0, blocks / sms));
  const double tokens = s.batch * s.queries;
  const double widths = 2 * (s.nope_dim + s.rope_dim + s.value_dim);
  const double bytes = kActivation * tokens * s.heads * widths * (one_byte(cache) ? k.converted : k.stream) +
                       tokens * k.cache * s.cached();
  const double stream = bytes / device.hbm_peak().value();
  return {Seconds(k.call + arithmetic + stream),
          bound_of_blocks(k.call, k.start, arithmetic, stream),
          {Flops(score_flops * s.batch * s.heads * s.queries * s.keys * s.visible), Bytes(bytes)}};
}

OperatorCost latent_decode(const LatentShape& s, Precision cache, const DeviceSpec& device) {
  const LatentDecode& k = kLatentDecode[latent_row(device)];
  const double work = latent_ctas(s, k, cache, device);
  const double bytes = bytes_per_element(cache) * s.batch * s.keys * s.cached() +
                       k.output * kActivation * s.batch * s.heads * (s.cached() + s.kv_rank);
  const double stream = bytes / (k.hbm * device.hbm_peak().value());
  const auto fourth = [](double x) { return x * x * x * x; };
  const double flops = 2 * s.batch * s.heads * s.keys * (s.cached() + s.kv_rank);
  return {Seconds(k.call + std::sqrt(std::sqrt(fourth(work) + fourth(stream)))),
          stream > work ? Bound::hbm : Bound::compute,
          {Flops(flops), Bytes(bytes)}};
}

}  // namespace shardscape::compute
