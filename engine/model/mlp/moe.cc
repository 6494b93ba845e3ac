#include "engine/model/mlp/moe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/model/expert_shares.h"
#include "engine/model/mlp/activation.h"
#include "engine/model/mlp/expert_biases.h"
#include "engine/model/mlp/expert_exchange.h"
#include "engine/model/mlp/served_exchange.h"

namespace shardscape::model {

namespace {

/// Vector FLOPs per score of the router: softmax or sigmoid, and the search for the largest; bound by HBM on known
/// devices.
constexpr double kRouterFlops = 20;
/// Of a score: whether its expert is chosen.
constexpr double kMapBytes = 1;

double capacity(const MixtureOfExperts& moe) { return moe.capacity_factor > 0 ? moe.capacity_factor : 1; }

/// Copies of each of a rank's tokens that the experts on it get, on average.
double copies(const MixtureOfExperts& moe, const LayerKey& key) {
  return capacity(moe) * static_cast<double>(moe.top_k) * key.experts().tensor / key.tensor;
}

/// Probabilities of all experts in fp32, and the map of those that are chosen.
Operator choice(const OperatorBuilder& b) {
  Operator op;
  op.name = "expert_choice";
  const double scores = b.own_tokens() * static_cast<double>(b.model().moe->experts);
  const double kernels = b.serves() ? 1 : 2;
  op.forward = {Bytes((b.element() + 2 * kFp32Bytes + kMapBytes) * scores), Flops(kRouterFlops * scores),
                kernels};
  op.backward = {Bytes((b.element() + 2 * kFp32Bytes + kMapBytes) * scores), Flops(kRouterFlops * scores), 1};
  op.saved = op.saved_selective = Bytes((kFp32Bytes + kMapBytes) * scores);
  return op;
}

/// Tokens into the order of experts, or back: every copy is read or written once, every token once.
Operator reorder(const OperatorBuilder& b, std::string_view name, double rows) {
  Operator op;
  op.name = name;
  const double tokens = b.key().dispatches ? b.own_tokens() : b.tokens();
  const double elements = (rows + tokens) * b.hidden();
  op.forward = op.backward = {Bytes(b.element() * elements), Flops(elements), 1};
  return op;
}

/// A product of each expert that got tokens, as a batch of equal ones.
Operator expert_product(const OperatorBuilder& b, std::string_view name, const ExpertShare& share, double k,
                        double n, Bytes input) {
  const double groups = std::max(1.0, std::round(share.active));
  const double rows = std::max(1.0, std::round(share.rows / groups));
  Operator op = b.product(name,
                          {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(n),
                           static_cast<std::int64_t>(k), static_cast<std::int64_t>(groups)},
                          b.policy().expert_products, input);
  if (b.policy().experts == Precision::fp4 && op.operands != Precision::fp4) op.stored = Precision::fp4;
  if (op.stored) op.rate_share = b.stack().serving.converted_share;
  op.grouped = b.model().moe->routes() && b.mode() != Mode::training;
  op.loads = share.loads;
  return op;
}

/// Until the host has read the loads.
Operator load_wait(const OperatorBuilder& b) {
  Operator op;
  op.name = "load_wait";
  op.wait = b.stack().experts.load_wait;
  return op;
}

bool runs_plain_biases(const OperatorBuilder& b) {
  return b.mode() == Mode::training && b.model().has_mlp_bias() && b.model().moe->routes() &&
         !b.stack().experts.fused_bias;
}

bool overlaps_shared(const OperatorBuilder& b) {
  return b.mode() == Mode::training && b.key().dispatches && b.model().moe->routes() &&
         b.stack().experts.shared_overlap;
}

/// Of the shared experts: up to the second product, and that one.
void append_shared_in(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) {
  const double inner = b.per_rank(b.model().moe->shared_ffn_hidden);
  const double in = b.model().gated() ? 2 : 1;
  ops.push_back(b.remade(b.gemm("shared_in", b.hidden(), in * inner, input), b.repeats_norms()));
  ops.back().operands = b.policy().expert_products;
  ops.back().beside_exchange = overlaps_shared(b);
  ops.push_back(activation(b, b.tokens() * inner));
  ops.back().beside_exchange = overlaps_shared(b);
}
void append_shared_out(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const double inner = b.per_rank(b.model().moe->shared_ffn_hidden);
  ops.push_back(
      b.remade(b.gemm("shared_out", inner, b.hidden(), b.product_input(inner)), b.repeats_activations()));
  ops.back().operands = b.policy().expert_products;
  ops.back().beside_exchange = overlaps_shared(b);
}

/// Their output to that of the others.
void append_shared_sum(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const double elements = b.tokens() * b.hidden();
  if (b.model().moe->shared_gate) {
    // A score of each token out of its hidden state, whose sigmoid scales the output, which its gradient needs. The
    // router keeps the hidden state.
    Operator gate;
    gate.name = "shared_gate";
    gate.forward = {Bytes(3 * b.element() * elements), Flops(3 * elements), b.serves() ? 1.0 : 3.0};
    gate.backward = {Bytes(5 * b.element() * elements), Flops(6 * elements), 3};
    gate.saved = gate.saved_selective = b.tensor(b.hidden());
    ops.push_back(gate);
  }
  Operator sum;
  sum.name = "shared_sum";
  sum.forward = {Bytes(3 * b.element() * elements), Flops(elements), b.serves() ? 0.0 : 1.0};
  ops.push_back(sum);
}

/// The MLP of one expert of that width.
PartParameters mlp_parameters(const ModelSpec& model, double width, std::int32_t tensor) {
  const auto hidden = static_cast<double>(model.hidden);
  const double bias = model.has_mlp_bias() ? 1 : 0, in = model.gated() ? 2 : 1;
  return {(in + 1) * hidden * width / tensor, bias * (in * width / tensor + hidden), (1 + bias) * (in + 1)};
}

/// Share of the experts that any of a server's tokens meets, of which each chooses `chosen` of them: not all are liked
/// alike. The first token meets its own; of exponentially distributed popularity (the gamma law of shape 1) c choices
/// of others for each expert in the mean leave an expert out with the chance 1 / (1 + c). Fitted by eye to ITL of
/// gpt-oss and DeepSeek-R1 on H200 and B200 (AIConfigurator's silicon samples): equal popularity makes batches of 16
/// to 128 of gpt-oss 10 to 35 % too slow, shape 1/2 those of DeepSeek-R1 too fast.
double met_by(double tokens, double chosen) { return 1 - (1 - chosen) / (1 + (tokens - 1) * chosen); }

/// The mean of the largest of so many independent numbers of that mean and variance, `most` at most: of normal ones
/// it lies sqrt(2 ln n) - 0.6 deviations above the mean (within 4 % of one from 2 to 64 on). A server's few tokens
/// fall unevenly on the ranks of experts, whose busiest one all wait for.
double busiest(double mean, double variance, std::int32_t ranks, double most) {
  constexpr double kShort = 0.6;
  const double deviations = std::sqrt(2 * std::log(static_cast<double>(ranks))) - kShort;
  return std::min(most, mean + std::max(0.0, deviations) * std::sqrt(std::max(0.0, variance)));
}

}  // namespace

double load_imbalance(const ModelSpec& model, const WorkloadSpec& workload, std::int32_t members) {
  if (!loads_differ(model, workload)) return 1;
  const std::vector<double> shares =
      compute::popularity(workload.expert_load, model.moe->experts, model.moe->top_k);
  return members * std::ranges::max(compute::member_shares(shares, static_cast<std::size_t>(members)));
}

ExpertShare expert_share(const OperatorBuilder& b) {
  const MixtureOfExperts& moe = *b.model().moe;
  const ExpertSplit split = b.key().experts();
  const auto experts = static_cast<double>(moe.experts), chosen = static_cast<double>(moe.top_k);
  ExpertShare share;
  const bool differ = loads_differ(b.model(), b.workload()) && b.key().expert_rank != kBalancedMember;
  const double uneven = differ ? 1 : uneven_slots(moe, split);
  share.experts = uneven * experts / split.ranks;
  share.mean = b.tokens() * copies(moe, b.key());
  share.rows = uneven * share.mean;
  share.inner = static_cast<double>(moe.expert_ffn_hidden) / split.tensor;
  const double tokens = b.tokens() * split.tensor / b.key().tensor * split.ranks;
  if (differ) {
    const std::vector<double> all = compute::popularity(b.workload().expert_load, moe.experts, moe.top_k);
    share.loads = compute::expected_loads(experts_of(all, split, b.key().expert_rank), tokens);
    share.rows = share.loads.tokens();
    share.active = share.loads.experts();
    return share;
  }
  const double met = b.serves() ? met_by(std::max(1.0, tokens), chosen / experts)
                                : 1 - std::pow(1 - chosen / experts, tokens);
  share.active = share.experts * met;
  if (b.serves() && split.ranks > 1) {
    share.active = busiest(share.active, share.active * (1 - met), split.ranks, share.experts);
    const double rows = share.rows, others = 1 - 1.0 / split.ranks;
    share.rows = busiest(rows, rows * others, split.ranks, share.mean * split.ranks);
  }
  return share;
}

void ExpertMlp::append_operators(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) const {
  const MixtureOfExperts& moe = *b.model().moe;
  const ExpertShare share = expert_share(b);
  const double in = b.model().gated() ? 2 : 1;
  const double operand = b.policy().operand_bytes(b.policy().products);
  const bool shared = moe.shared_experts > 0, early = shared && overlaps_shared(b);
  const Bytes shared_input = b.policy().casts() && moe.routes() ? input : Bytes(0);
  Bytes copied = input;
  if (moe.routes()) {
    // The router's input is that of the shared experts, but for their copy of it where products cast.
    const Bytes own(b.element() * b.own_tokens() * b.hidden());
    const Bytes kept = b.policy().casts() && input > Bytes(0) ? own : input;
    const compute::GemmShape scores{static_cast<std::int64_t>(std::max(1.0, b.own_tokens())), moe.experts,
                                    static_cast<std::int64_t>(b.hidden()), 1};
    ops.push_back(b.remade(b.product("router", scores, b.policy().ends, kept), b.repeats_norms()));
    ops.back().routes = true;
    ops.push_back(choice(b));
    if (b.serves()) {
      append_served_dispatch(ops, b);
    } else {
      if (b.stack().experts.load_wait > Seconds(0)) ops.push_back(load_wait(b));
      // What is sent has the order of experts already; ranks that send nothing have all copies themselves.
      ops.push_back(reorder(b, "permute", b.key().dispatches ? share.mean : share.rows));
      std::vector<Operator> beside;
      if (early) append_shared_in(beside, b, shared_input);
      append_dispatch(ops, b, share, beside);
    }
    copied = Bytes(operand * share.rows * b.hidden());
  }
  // Copies of tokens are kept: making them again would send them again.
  ops.push_back(b.remade(expert_product(b, "expert_in", share, b.hidden(), in * share.inner, copied),
                         !moe.routes() && b.repeats_norms()));
  const bool plain_bias = runs_plain_biases(b);
  const double elements = share.rows * share.inner;
  ops.push_back(plain_bias ? plain_biased_activation(b, elements, share.active) : activation(b, elements));
  if (b.serves() && moe.routes()) ops.back().forward.kernels = 0;
  ops.back().loads = share.loads;
  const Bytes inner(operand * elements);
  ops.push_back(b.remade(expert_product(b, "expert_out", share, share.inner, b.hidden(), inner),
                         b.repeats_activations()));
  if (plain_bias) {
    ops.push_back(plain_expert_bias(b, share.rows * b.hidden(), share.active));
    ops.back().loads = share.loads;
  }
  if (moe.routes()) {
    if (b.serves()) {
      append_served_combine(ops, b);
    } else {
      append_combine(ops, b, share);
      if (early) append_shared_out(ops, b);
    }
    ops.push_back(reorder(b, "unpermute", b.key().dispatches ? share.mean : share.rows));
  }
  if (!shared) return;
  if (!early) {
    append_shared_in(ops, b, shared_input);
    append_shared_out(ops, b);
  }
  append_shared_sum(ops, b);
}

bool ExpertMlp::in_tensor_region(const OperatorBuilder& b) const {
  // In a server a token's output comes back to one of the ranks that hold the token.
  return !b.key().dispatches || b.model().moe->shared_experts > 0 || b.serves();
}

double ExpertMlp::gradient_width(const Setting& setting, const LayerKey& key) const {
  const ModelSpec& model = setting.model;
  const MixtureOfExperts& moe = *model.moe;
  const double rows = load_imbalance(model, setting.workload, key.experts().ranks) * copies(moe, key);
  const double tensors = activation_gradients(model);
  const double inner = rows * static_cast<double>(moe.expert_ffn_hidden) / key.experts().tensor +
                       static_cast<double>(moe.shared_ffn_hidden) / key.tensor;
  // The gradients of the copies before and after the experts.
  const double copied = moe.routes() ? 2 * rows * static_cast<double>(model.hidden) : 0;
  return tensors * inner + copied;
}

PartParameters ExpertMlp::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const MixtureOfExperts& moe = *model.moe;
  PartParameters sum;
  if (moe.routes()) {  // in the type of the activations, never cast
    const double bias = moe.router_bias ? 1 : 0;
    sum = {0, static_cast<double>(moe.experts) * (static_cast<double>(model.hidden) + bias), 1 + bias};
  }
  if (moe.shared_experts == 0) return sum;
  if (moe.shared_gate)
    sum = sum + PartParameters{0, static_cast<double>(model.hidden), 1};  // as the router's
  return sum + mlp_parameters(model, static_cast<double>(moe.shared_ffn_hidden), tensor);
}

PartParameters ExpertMlp::expert_parameters(const ModelSpec& model, const ExpertSplit& split) const {
  const MixtureOfExperts& moe = *model.moe;
  const double experts = static_cast<double>(moe.experts + split.redundant) / split.ranks;
  const PartParameters one = mlp_parameters(model, static_cast<double>(moe.expert_ffn_hidden), split.tensor);
  return {experts * one.matrices, experts * one.vectors, experts * one.tensors};
}

double ExpertMlp::product_parameters(const ModelSpec& model) const {
  const MixtureOfExperts& moe = *model.moe;
  const double matrices = model.gated() ? 3 : 2;
  const auto width = static_cast<double>(moe.top_k * moe.expert_ffn_hidden + moe.shared_ffn_hidden);
  const double router = moe.routes() ? static_cast<double>(moe.experts) : 0;
  return static_cast<double>(model.hidden) * (matrices * width + router);
}

Reason ExpertMlp::tensor_rule(const ModelSpec& model, std::int32_t tensor, bool splits_experts) const {
  const MixtureOfExperts& moe = *model.moe;
  const bool experts = !splits_experts || moe.expert_ffn_hidden % tensor == 0;
  return experts && moe.shared_ffn_hidden % tensor == 0 ? Reason::none : Reason::ffn_by_tensor;
}

}  // namespace shardscape::model
