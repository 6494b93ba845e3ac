// The operators and parameters of an MLP with experts, and what falls to one rank of them: the router, the exchange of
// tokens, the products of the experts as batches of equal ones, and the shared experts.
#include "engine/model/mlp/moe.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/model/expert_shares.h"
#include "engine/model/mlp/activation.h"
#include "engine/model/mlp/expert_biases.h"
#include "engine/model/mlp/expert_exchange.h"

namespace shardscape::model {

namespace {

/// Vector FLOPs per score of the router (softmax or sigmoid, and the search for the largest); the kernels are bound by
/// HBM on known devices.
constexpr double kRouterFlops = 20;
/// Bytes per score of the map that says whether its expert is chosen.
constexpr double kMapBytes = 1;

double capacity(const MixtureOfExperts& moe) { return moe.capacity_factor > 0 ? moe.capacity_factor : 1; }

/// Mean number of copies of each of a rank's tokens that the experts on the rank get.
double copies(const MixtureOfExperts& moe, const LayerKey& key) {
  return capacity(moe) * static_cast<double>(moe.top_k) * key.experts().tensor / key.tensor;
}

/// The kernel that chooses experts: it writes the probabilities of all experts in fp32 and the map of those chosen.
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

/// Moves tokens into the order of experts, or back: every copy and every token is read or written once.
Operator reorder(const OperatorBuilder& b, std::string_view name, double rows) {
  Operator op;
  op.name = name;
  const double tokens = b.key().dispatches ? b.own_tokens() : b.tokens();
  const double elements = (rows + tokens) * b.hidden();
  op.forward = op.backward = {Bytes(b.element() * elements), Flops(elements), 1};
  return op;
}

/// A product over the experts that got tokens, counted as a batch of equal products, one for each.
Operator expert_product(const OperatorBuilder& b, std::string_view name, const ExpertShare& share, double k,
                        double n, Bytes input) {
  const double groups = std::max(1.0, std::round(share.active));
  const double rows = std::max(1.0, std::round(share.rows / groups));
  Operator op = b.product(name,
                          {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(n),
                           static_cast<std::int64_t>(k), static_cast<std::int64_t>(groups)},
                          b.policy().expert_products, input);
  if (b.policy().experts == Precision::fp4 && op.operands != Precision::fp4) op.stored = Precision::fp4;
  op.grouped = b.model().moe->routes() && b.mode() != Mode::training;
  op.loads = share.loads;
  if (!op.grouped) return op;
  const StackProfile::Serving& serving = b.stack().serving;
  if (op.stored && op.operands == Precision::bf16) op.rate_share = serving.converted_share;
  // DeepEP's kernels send tokens as DeepGEMM wants them, whose rate is that of other products.
  if (!op.stored && op.operands == Precision::fp8 && !sent_by_kernels(b)) {
    const bool blackwell = b.mode() == Mode::prefill && b.device().architecture == Architecture::blackwell;
    op.rate_share = serving.fp8_expert_share * (blackwell ? serving.fp8_blackwell_share : 1);
  }
  return op;
}

/// The device's wait until the host has read the loads.
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

/// The shared experts in two parts: all before the second product, and that product.
void append_shared_in(std::vector<Operator>& ops, const OperatorBuilder& b, Bytes input) {
  const double inner = b.per_rank(b.model().moe->shared_ffn_hidden);
  const double in = b.model().gated() ? 2 : 1;
  ops.push_back(b.remade(b.shared_gemm("shared_in", b.hidden(), in * inner, input), b.repeats_norms()));
  ops.push_back(activation(b, b.tokens() * inner));
  for (Operator& op : std::span(ops).last(2)) {
    op.shared_expert = true;
    op.beside_exchange = overlaps_shared(b);
  }
}
void append_shared_out(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const double inner = b.per_rank(b.model().moe->shared_ffn_hidden);
  ops.push_back(b.remade(b.shared_gemm("shared_out", inner, b.hidden(), b.product_input(inner)),
                         b.repeats_activations()));
  ops.back().shared_expert = true;
  ops.back().beside_exchange = overlaps_shared(b);
}

/// Adds the output of the shared experts to that of the others.
void append_shared_sum(std::vector<Operator>& ops, const OperatorBuilder& b) {
  const double elements = b.tokens() * b.hidden();
  if (b.model().moe->shared_gate) {
    // The gate scales the output by the sigmoid of a score computed from each token's hidden state, and keeps the
    // output for its gradient. The router keeps the hidden state.
    Operator gate;
    gate.name = "shared_gate";
    gate.forward = {Bytes(3 * b.element() * elements), Flops(3 * elements), b.serves() ? 1.0 : 3.0};
    gate.backward = {Bytes(5 * b.element() * elements), Flops(6 * elements), 3};
    gate.saved = gate.saved_selective = b.tensor(b.hidden());
    gate.shared_expert = true;
    ops.push_back(gate);
  }
  Operator sum;
  sum.name = "shared_sum";
  sum.shared_expert = true;
  sum.forward = {Bytes(3 * b.element() * elements), Flops(elements), b.serves() ? 0.0 : 1.0};
  ops.push_back(sum);
}

/// Parameters of the MLP of one expert of inner width `width`.
PartParameters mlp_parameters(const ModelSpec& model, double width, std::int32_t tensor) {
  const auto hidden = static_cast<double>(model.hidden);
  const double bias = model.has_mlp_bias() ? 1 : 0, in = model.gated() ? 2 : 1;
  return {(in + 1) * hidden * width / tensor, bias * (in * width / tensor + hidden), (1 + bias) * (in + 1)};
}

/// Share of the experts that at least one of a server's tokens chooses, where each chooses the share `chosen` of them.
/// Popularity is uneven: the experts of the first token are met; with exponentially distributed popularity (gamma law
/// of shape 1), c choices of the other tokens per expert in the mean leave an expert out with the chance 1 / (1 + c).
/// Fitted by eye to ITL of gpt-oss and DeepSeek-R1 on H200 and B200 (AIConfigurator's silicon samples): equal
/// popularity makes batches of 16 to 128 of gpt-oss 10 to 35 % too slow, shape 1/2 makes those of DeepSeek-R1 too fast.
double met_by(double tokens, double chosen) { return 1 - (1 - chosen) / (1 + (tokens - 1) * chosen); }

/// The mean of the largest of `ranks` independent numbers of the given mean and variance, at most `most`: for normal
/// ones it lies sqrt(2 ln n) - 0.6 deviations above the mean (within 4 % of a deviation for n from 2 to 64). A server's
/// tokens fall unevenly on the ranks of experts, and all wait for the busiest.
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
    // Choices fall on a rank by chance, and on its experts by their popularity, whose law met_by() has: each of gamma
    // shape 1, so that a rank's has the relative variance 1 / experts. Copies even popularity out.
    const double rows = share.rows, others = 1 - 1.0 / split.ranks;
    const double popular = split.redundant > 0 ? 0 : rows / share.experts;
    share.rows = busiest(rows, rows * others * (1 + popular), split.ranks, share.mean * split.ranks);
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
    // Router and shared experts read one input, kept once; where products cast, the shared experts keep a copy of their
    // own.
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
      // Only the tokens a rank sends are reordered, as they arrive in the order of experts; without sending, all its
      // copies are.
      ops.push_back(reorder(b, "permute", b.key().dispatches ? share.mean : share.rows));
      std::vector<Operator> beside;
      if (early) append_shared_in(beside, b, shared_input);
      append_dispatch(ops, b, share, beside);
    }
    copied = Bytes(operand * share.rows * b.hidden());
  }
  // Copies of tokens are kept, as making them again would mean sending them again.
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
  // In a server a token's output comes back to only one of the ranks that hold the token, which then share it.
  return !b.key().dispatches || b.model().moe->shared_experts > 0 || b.serves();
}

double ExpertMlp::gradient_width(const Setting& setting, const LayerKey& key) const {
  const ModelSpec& model = setting.model;
  const MixtureOfExperts& moe = *model.moe;
  const double rows = load_imbalance(model, setting.workload, key.experts().ranks) * copies(moe, key);
  const double tensors = activation_gradients(model);
  const double inner = rows * static_cast<double>(moe.expert_ffn_hidden) / key.experts().tensor +
                       static_cast<double>(moe.shared_ffn_hidden) / key.tensor;
  // Gradients of the copies before and behind the experts.
  const double copied = moe.routes() ? 2 * rows * static_cast<double>(model.hidden) : 0;
  return tensors * inner + copied;
}

PartParameters ExpertMlp::parameters(const ModelSpec& model, std::int32_t tensor) const {
  const MixtureOfExperts& moe = *model.moe;
  PartParameters sum;
  if (moe.routes()) {  // the router's weights have the activations' type and are never cast
    const double bias = moe.router_bias ? 1 : 0;
    sum = {0, static_cast<double>(moe.experts) * (static_cast<double>(model.hidden) + bias), 1 + bias};
  }
  if (moe.shared_experts == 0) return sum;
  if (moe.shared_gate)
    sum = sum + PartParameters{0, static_cast<double>(model.hidden), 1};  // the type of the router's weights
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
