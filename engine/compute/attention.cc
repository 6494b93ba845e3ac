// Prices the attention core: fused kernels by FLOPs, exponentials and bytes; naive attention as products and streaming
// kernels; decode as a stream of the cache whose keys are split among as many CTAs as is fastest.
#include "engine/compute/attention.h"

#include <algorithm>
#include <cmath>

#include "engine/compute/power.h"

namespace shardscape::compute {

namespace {

/// Constants of a fused kernel in one direction (forward or backward).
struct FlashPass {
  double flops_per_dim;  ///< FLOPs of the products, per score and head dimension
  double tensor_passes;  ///< how often Q, K, V and O cross HBM
  double kernels;
  double cap;   ///< best share of the tensor peak that is reached, 0..1
  double rows;  ///< tokens per head, which are cut into blocks of kBlockRows
};
constexpr double kBlockRows = 128;

/// Rows of a matrix instruction, to which the query heads of a group are padded in decode.
constexpr double kMatrixRows = 16;
/// Fewer keys than this are not worth a CTA of their own: one block of keys.
constexpr double kSplitKeys = 128;
constexpr double kFp32Bytes = 4;

Bound name_bound(Seconds launch, Seconds arithmetic, Seconds stream) {
  if (launch > std::max(arithmetic, stream)) return Bound::launch;
  return stream > arithmetic ? Bound::hbm : Bound::compute;
}

/// Share of the SMs that `ctas` CTAs keep busy, at most 1.
double busy_share(double ctas, const DeviceSpec& device) {
  return std::min(1.0, ctas / static_cast<double>(device.sm.count));
}

/// Rate of products that all SMs would have at the pace of the busy ones. The limit is the power of the whole card, of
/// which each SM has more while fewer work (DeviceSpec::tensor_sustained is the rate with all at work).
FlopsPerSecond busy_sustained(double busy, Precision precision, const DeviceSpec& device) {
  if (busy >= 1 || !device.steps_by_energy()) return device.tensor_sustained(precision);
  const FlopsPerSecond units = device.sm.tensor_efficiency * device.tensor_peak(precision);
  const double limit = busy * power_time(device, precision, units.value(), 0), squared = limit * limit;
  return units / std::sqrt(std::sqrt(1 + squared * squared));
}

/// Scores that a fused kernel makes: those that the mask leaves and, under a window, the rest of the blocks at its two
/// edges, on average half a block of keys for a query at each. Of a causal mask alone `cap` accounts for them.
double made_scores(const AttentionShape& shape) {
  if (shape.visible >= 0.5) return shape.scores() * shape.visible;
  return shape.scores() * std::min(0.5, shape.visible + (1 - 2 * shape.visible) * kBlockRows / shape.keys);
}

OperatorCost flash(const AttentionShape& shape, const FlashPass& pass, Precision precision,
                   const DeviceSpec& device) {
  const double scores = made_scores(shape);
  const Flops flops(pass.flops_per_dim * shape.head_dim * scores);
  const double blocks = shape.batch * shape.heads * std::ceil(pass.rows / kBlockRows);
  const double busy = busy_share(blocks, device);
  const Seconds products = flops / busy_sustained(busy, precision, device);
  const Seconds softmax = Flops((kSoftmaxFlops + shape.score_flops) * scores) / device.vector_peak();
  const Seconds best = flops / (pass.cap * device.tensor_peak(precision));
  const Seconds arithmetic = std::max(products + softmax, best) / busy;
  const double bytes = bytes_per_element(precision) * shape.batch * shape.head_dim *
                       (2 * shape.heads * shape.queries + 2 * shape.kv_heads * shape.keys) *
                       pass.tensor_passes;
  const Seconds stream = Bytes(bytes) / device.hbm_sustained();
  const Seconds launch = pass.kernels * device.kernel_latency;
  const double seen = shape.scores() * shape.visible;  // of the work those count that the mask leaves
  return {
      launch + std::max(arithmetic, stream),
      name_bound(launch, arithmetic, stream),
      {Flops(pass.flops_per_dim * shape.head_dim * seen) + Flops((kSoftmaxFlops + shape.score_flops) * seen),
       Bytes(bytes)}};
}

GemmShape score_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.keys),
          static_cast<std::int64_t>(shape.head_dim), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

GemmShape value_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.head_dim),
          static_cast<std::int64_t>(shape.keys), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

/// The product dK = dS^T Q (dV = P^T dO has the same shape), whose reduction runs over the queries.
GemmShape key_gradient_product(const AttentionShape& shape) {
  return {static_cast<std::int64_t>(shape.keys), static_cast<std::int64_t>(shape.head_dim),
          static_cast<std::int64_t>(shape.queries), static_cast<std::int64_t>(shape.batch * shape.heads)};
}

void add_product(OperatorCost& sum, const GemmShape& shape, Precision precision, const DeviceSpec& device,
                 GemmOutput output, double times = 1) {
  const GemmCost product = gemm(shape, precision, device, output);
  sum.time += times * product.time;
  sum.work += times * Work{shape.flops(), product.hbm_bytes};
}

/// Cost of streaming kernels and products that run one after the other.
OperatorCost together(const OperatorCost& streams, const OperatorCost& products) {
  return {streams.time + products.time, streams.time > products.time ? Bound::hbm : Bound::compute,
          streams.work + products.work};
}

}  // namespace

OperatorCost flash_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  return flash(shape, {4, 1, 1, device.attention.forward, shape.queries}, precision, device);
}

OperatorCost flash_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  return flash(shape, {10, 2, 3, device.attention.backward, shape.keys}, precision, device);
}

/// Cost of kernels that stream the score matrix: each score is read or written `passes` times, and a dropout, where the
/// shape has one, adds its own passes.
OperatorCost score_streams(const AttentionShape& shape, double passes, Precision precision,
                           const DeviceSpec& device) {
  const double element = bytes_per_element(precision);
  const double bytes_per_score = passes * element + (shape.dropout ? 2 * element + 1 : 0);
  return pointwise(Bytes(bytes_per_score * shape.scores()),
                   Flops((kSoftmaxFlops + shape.score_flops) * shape.scores()), shape.dropout ? 2 : 1,
                   device);
}

OperatorCost naive_forward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  const GemmOutput output{bytes_per_element(precision)};
  OperatorCost products;
  for (const GemmShape& product : {score_product(shape), value_product(shape)})
    add_product(products, product, precision, device, output);
  return together(score_streams(shape, 2, precision, device), products);
}

OperatorCost naive_backward(const AttentionShape& shape, Precision precision, const DeviceSpec& device) {
  const GemmOutput output{bytes_per_element(precision)};
  OperatorCost products;
  add_product(products, score_product(shape), precision, device, output);            // dP
  add_product(products, value_product(shape), precision, device, output);            // dQ
  add_product(products, key_gradient_product(shape), precision, device, output, 2);  // dK, dV
  return together(score_streams(shape, 3, precision, device), products);
}

OperatorCost decode_split(const AttentionShape& shape, Precision kv_precision, const DeviceSpec& device,
                          double splits) {
  const double groups = shape.batch * shape.kv_heads;
  const double cached = shape.cached_dim > 0 ? shape.cached_dim : 2 * shape.head_dim;
  const Bytes cache(bytes_per_element(kv_precision) * groups * shape.keys * cached);
  const double rows = kMatrixRows * std::ceil(shape.heads / shape.kv_heads / kMatrixRows);
  const Flops products(4 * shape.head_dim * groups * rows * shape.keys);
  const Flops softmax((kSoftmaxFlops + shape.score_flops) * shape.scores());
  const double ctas = groups * splits, busy = busy_share(ctas, device);
  const Seconds arithmetic =
      (products / busy_sustained(busy, kv_precision, device) + softmax / device.vector_peak()) / busy;
  const double ports = std::min(ctas, static_cast<double>(device.sm.count));
  const Seconds stream = cache / std::min(device.hbm_sustained(), device.l2_sustained(ports));
  const double kernels = splits > 1 ? 2 : 1;
  const Bytes parts(splits > 1 ? 2 * kFp32Bytes * shape.batch * shape.heads * splits * (shape.head_dim + 1)
                               : 0);
  const Seconds launch = kernels * device.kernel_latency;
  return {launch + std::max(arithmetic, stream) + parts / device.l2_sustained(),
          name_bound(launch, arithmetic, stream),
          {products + softmax, cache}};
}

double most_decode_splits(const AttentionShape& shape) {
  return std::max(1.0, std::floor(shape.keys / kSplitKeys));
}

OperatorCost decode(const AttentionShape& shape, Precision kv_precision, const DeviceSpec& device) {
  const OperatorCost whole = decode_split(shape, kv_precision, device, 1);
  // From 2 splits on the time is convex in their number: the maximum of constants and terms that fall as 1 / splits,
  // plus parts that grow in proportion. Nothing falls any more once each SM has a CTA.
  const double fills = std::ceil(static_cast<double>(device.sm.count) / (shape.batch * shape.kv_heads));
  double low = 2, high = std::min(most_decode_splits(shape), fills);
  if (high < low) return whole;
  while (low < high) {
    const double middle = std::floor((low + high) / 2);
    const Seconds here = decode_split(shape, kv_precision, device, middle).time;
    if (decode_split(shape, kv_precision, device, middle + 1).time < here) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const OperatorCost split = decode_split(shape, kv_precision, device, low);
  return split.time < whole.time ? split : whole;
}

}  // namespace shardscape::compute
