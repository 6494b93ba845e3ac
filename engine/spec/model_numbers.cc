// The tables of a model's numbers.
#include "engine/spec/spec_numbers.h"

#include <optional>

#include "engine/spec/ranges.h"

namespace shardscape {

namespace {

using namespace ranges;
using enum KeyUse;

/// Layers at the front without experts, and rows of a table of positions: perhaps none.
constexpr Range kLayersOrNone{0, kLayers.high};
constexpr Range kRowsOrNone = or_zero(kRows);
constexpr Range kStretchIfKnown = or_zero({1, 1e6});
constexpr Range kTokensIfKnown = or_zero({1, 1e9});
constexpr Range kBaseIfKnown = or_zero({1, 1e18});
constexpr Range kEpsilonIfKnown = or_zero({1e-30, 1});

/// The key of a field, and the field.
#define SHARDSCAPE_NUMBER(SPEC, FIELD) \
#FIELD, [](SPEC & s) -> auto& { return s.FIELD; }

const char* by_latent(const ModelSpec& model) {
  return model.latent
             ? "has no effect with latent attention, whose attention.nope_dim, rope_dim and value_dim say "
               "the widths of all heads; take it out"
             : nullptr;
}

constexpr NumberRow<ModelSpec> kModelNumbers[] = {
    {SHARDSCAPE_NUMBER(ModelSpec, layers), kLayers, "blocks", std::nullopt, required},
    {SHARDSCAPE_NUMBER(ModelSpec, hidden), kHidden, "width of the residual stream", std::nullopt, required},
    {SHARDSCAPE_NUMBER(ModelSpec, heads), kHeads, "query heads", std::nullopt, required},
    {SHARDSCAPE_NUMBER(ModelSpec, kv_heads), kHeads,
     "heads of keys and values (grouped-query attention: fewer)", std::nullopt, optional, "",
     [](const ModelSpec& m) -> std::optional<double> { return static_cast<double>(m.heads); }, &by_latent},
    {SHARDSCAPE_NUMBER(ModelSpec, head_dim), kHeadDim, "width of a head", std::nullopt, optional, "",
     [](const ModelSpec& m) -> std::optional<double> {
       if (m.latent) return static_cast<double>(m.latent->query_dim());
       return m.heads >= 1 && m.hidden % m.heads == 0 ? static_cast<double>(m.hidden / m.heads) : 0;
     },
     &by_latent},
    {SHARDSCAPE_NUMBER(ModelSpec, ffn_hidden), kRows,
     "width of the MLP (of each of gate and up where it is gated)", std::nullopt, required, "",
     [](const ModelSpec& m) -> std::optional<double> {
       if (!m.moe || !m.moe->everywhere()) return std::nullopt;
       return static_cast<double>(m.moe->expert_ffn_hidden);
     }},
    {SHARDSCAPE_NUMBER(ModelSpec, vocabulary), kRows, "rows of the embedding, padding included", std::nullopt,
     required},
    {SHARDSCAPE_NUMBER(ModelSpec, max_positions), kRowsOrNone,
     "rows of the table of learned positions; a longer sequence is an error"},
    {SHARDSCAPE_NUMBER(ModelSpec, rotary_fraction), kShare,
     "share of each head's dimensions that rotary positions turn"},
    {SHARDSCAPE_NUMBER(ModelSpec, rotary_base), kBaseIfKnown,
     "base of the angles of rotary positions; no time depends on it, nor on the next two", std::nullopt,
     for_the_reader},
    {SHARDSCAPE_NUMBER(ModelSpec, rotary_scaling), kStretchIfKnown,
     "factor by which those are stretched as in Llama 3.1", std::nullopt, for_the_reader},
    {SHARDSCAPE_NUMBER(ModelSpec, norm_epsilon), kEpsilonIfKnown, "what norms add to a variance",
     std::nullopt, for_the_reader},
    {SHARDSCAPE_NUMBER(ModelSpec, context), kTokensIfKnown,
     "tokens of the longest sequence that the model is published for; longer ones are predicted, with a "
     "warning",
     std::nullopt, for_the_reader},
    {SHARDSCAPE_NUMBER(ModelSpec, sliding_window), kTokensOrAll,
     "tokens that layers with a window look back on; 0: all. Chunks (Llama 4) count as windows of their "
     "length"},
    {SHARDSCAPE_NUMBER(ModelSpec, dropout), kProbability,
     "probability on the residual stream; above 0 training has masks and kernels for it"},
    {SHARDSCAPE_NUMBER(ModelSpec, attention_dropout), kProbability,
     "the same on the probabilities of attention; left out: `dropout`"},
    {SHARDSCAPE_NUMBER(ModelSpec, embedding_dropout), kProbability,
     "the same on the embedding's output; left out: `dropout`"},
};

constexpr NumberRow<MixtureOfExperts> kExpertNumbers[] = {
    {SHARDSCAPE_NUMBER(MixtureOfExperts, experts), kExperts, "experts of a layer, shared ones not counted",
     std::nullopt, required},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, top_k), kExperts, "those that a token goes through", std::nullopt,
     required},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, expert_ffn_hidden), kRows,
     "width of each; the activation and the biases are those of the model's MLP", std::nullopt, required},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, shared_experts), kExpertsOrNone,
     "experts through which every token goes, beside the `top_k`"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, shared_ffn_hidden), kRowsOrNone,
     "width of all of them together, which are one MLP", std::nullopt, optional, "",
     [](const MixtureOfExperts& m) -> std::optional<double> {
       const bool small = kExpertsOrNone.holds(static_cast<double>(m.shared_experts)) &&
                          kRows.holds(static_cast<double>(m.expert_ffn_hidden));
       return small ? static_cast<double>(m.shared_experts * m.expert_ffn_hidden) : 0;
     }},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, first_dense_layers), kLayersOrNone,
     "layers at the start that have one MLP of `ffn_hidden`"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, every), kLayers,
     "of the layers, the last of every so many has experts (Llama 4 Maverick: 2)"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, expert_groups), kExperts,
     "equal groups of experts (DeepSeek-V3: 8)"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, top_groups), kExperts,
     "groups that a token's experts lie in (DeepSeek-V3: 4)"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, capacity_factor), kCapacityFactor,
     "an expert takes so many times the mean of tokens; 0: all that come (dropless)"},
    {SHARDSCAPE_NUMBER(MixtureOfExperts, mtp_layers), kFurtherTokens,
     "modules behind the last layer that predict further tokens, in training"},
};

constexpr NumberRow<LatentAttention> kLatentNumbers[] = {
    {SHARDSCAPE_NUMBER(LatentAttention, q_rank), kRankOrNone,
     "width of the queries' latent vector; 0: one product makes the queries (V2-Lite)"},
    {SHARDSCAPE_NUMBER(LatentAttention, kv_rank), kHidden,
     "width of the latent vector of keys and values, which the cache keeps", std::nullopt, required},
    {SHARDSCAPE_NUMBER(LatentAttention, rope_dim), kHeadDim,
     "dimensions with positions: of each query, and of one key that all heads share, cached too",
     std::nullopt, required},
    {SHARDSCAPE_NUMBER(LatentAttention, nope_dim), kHeadDim,
     "dimensions of a head's query and key without positions", std::nullopt, required},
    {SHARDSCAPE_NUMBER(LatentAttention, value_dim), kHeadDim, "dimensions of a head's value", std::nullopt,
     required},
};
#undef SHARDSCAPE_NUMBER

}  // namespace

std::span<const NumberRow<ModelSpec>> model_numbers() { return kModelNumbers; }
std::span<const NumberRow<MixtureOfExperts>> expert_numbers() { return kExpertNumbers; }
std::span<const NumberRow<LatentAttention>> latent_numbers() { return kLatentNumbers; }

}  // namespace shardscape
