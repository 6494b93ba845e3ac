// Parameter counts of a model by part, from its shape, and the rules that its fields obey.
#include "engine/spec/model.h"

#include <fmt/format.h>

#include "engine/spec/ranges.h"
#include "engine/spec/spec_numbers.h"

namespace shardscape {

double ModelSpec::attention_matrix_parameters() const {
  const auto h = static_cast<double>(hidden);
  if (!latent) return h * static_cast<double>(qkv_width()) + static_cast<double>(attention_width()) * h;
  const LatentAttention& a = *latent;
  const std::int64_t queries = heads * a.query_dim();
  const std::int64_t into_queries = a.q_rank > 0 ? a.q_rank * (hidden + queries) : hidden * queries;
  const std::int64_t out_of_latent = a.kv_rank * heads * (a.nope_dim + a.value_dim);
  return static_cast<double>(into_queries + hidden * a.cached() + out_of_latent +
                             heads * a.value_dim * hidden);
}

double ModelSpec::block_matrix_parameters() const {
  const auto h = static_cast<double>(hidden);
  return attention_matrix_parameters() + h * static_cast<double>(mlp_in_width()) +
         static_cast<double>(ffn_hidden) * h;
}

double ModelSpec::block_vector_parameters() const {
  const auto h = static_cast<double>(hidden);
  const double norms = block_norms() * norm_vectors();
  const double row_biases = (has_output_bias() ? 1 : 0) + (has_mlp_bias() ? 1 : 0);
  const double of_latent =
      latent ? norm_vectors() * static_cast<double>(latent->q_rank + latent->kv_rank) : 0;
  const double sinks = attention_sinks ? static_cast<double>(heads) : 0;
  return norms * h + block_column_biases() + row_biases * h + qk_norm_parameters() + of_latent + sinks;
}

double ModelSpec::qk_norm_parameters() const {
  if (qk_norm == QkNorm::none) return 0;
  return norm_vectors() * static_cast<double>(qk_norm == QkNorm::per_head ? 2 * head_dim : qk_width());
}

double ModelSpec::block_column_biases() const {
  return static_cast<double>((has_qkv_bias() ? qkv_width() : 0) + (has_mlp_bias() ? mlp_in_width() : 0));
}

double ModelSpec::position_parameters() const {
  return static_cast<double>(max_positions) * static_cast<double>(hidden);
}

double ModelSpec::embedding_norm_parameters() const {
  return embedding_norm ? norm_vectors() * static_cast<double>(hidden) : 0;
}

double ModelSpec::embedding_parameters() const {
  return static_cast<double>(vocabulary + max_positions) * static_cast<double>(hidden) +
         embedding_norm_parameters();
}

double ModelSpec::head_parameters() const {
  return tied_embeddings
             ? 0
             : static_cast<double>(vocabulary) * static_cast<double>(hidden + (head_bias ? 1 : 0));
}

double ModelSpec::final_norm_parameters() const { return norm_vectors() * static_cast<double>(hidden); }

double ModelSpec::mlp_parameters() const {
  const std::int64_t biases = has_mlp_bias() ? mlp_in_width() + hidden : 0;
  return static_cast<double>(hidden) * static_cast<double>(mlp_in_width() + ffn_hidden) +
         static_cast<double>(biases);
}

double ModelSpec::expert_layer_parameters(std::int64_t experts) const {
  const auto h = static_cast<double>(hidden);
  const double projections = gated() ? 3 : 2, bias = has_mlp_bias() ? 1 : 0;
  const auto mlp_of = [&](std::int64_t width) {
    return static_cast<double>(width) * (projections * h + bias * (projections - 1));
  };
  const double router =
      moe->routes() ? static_cast<double>(moe->experts) * (h + (moe->router_bias ? 1 : 0)) : 0;
  const double gate = moe->shared_gate ? h : 0;
  const double shared = moe->shared_experts > 0 ? mlp_of(moe->shared_ffn_hidden) + bias * h + gate : 0;
  return router + static_cast<double>(experts) * (mlp_of(moe->expert_ffn_hidden) + bias * h) + shared;
}

double ModelSpec::blocks_with(std::int64_t experts) const {
  const double whole = block_matrix_parameters() + block_vector_parameters();
  if (!moe) return static_cast<double>(layers) * whole;
  return static_cast<double>(layers - expert_layers()) * whole +
         static_cast<double>(expert_layers()) * (whole - mlp_parameters() + expert_layer_parameters(experts));
}

double ModelSpec::parameters() const {
  return blocks_with(moe ? moe->experts : 0) + embedding_parameters() + head_parameters() +
         final_norm_parameters();
}

double ModelSpec::active_parameters() const {
  const double head = tied_embeddings ? static_cast<double>(vocabulary * hidden) : head_parameters();
  return blocks_with(moe ? moe->top_k : 0) + head + final_norm_parameters();
}

std::string ModelSpec::too_long(std::int64_t tokens) const {
  if (position != PositionKind::learned || tokens <= max_positions) return "";
  return fmt::format("{} tokens are more than the {} learned positions of model {}", tokens, max_positions,
                     name);
}

void ModelSpec::check_windows(Problems& problems) const {
  problems.require(window_pattern.empty() || sliding_window > 0, "window_pattern",
                   "has no effect without sliding_window");
  problems.require(window_pattern.find_first_not_of("LG") == std::string::npos, "window_pattern",
                   "is a letter for each layer, L (local: with the window) or G (global)");
  problems.require(window_pattern.empty() || window_pattern.find('L') != std::string::npos, "window_pattern",
                   "has no local layer; leave out sliding_window and it");
}

void ModelSpec::check_experts(Problems& problems) const {
  if (!moe) return;
  moe->check(problems, layers);
  problems.require(
      !moe->everywhere() || ffn_hidden == moe->expert_ffn_hidden, "ffn_hidden",
      "has no effect where every layer has experts, whose width is moe.expert_ffn_hidden; leave it out");
}

void ModelSpec::check_latent(Problems& problems) const {
  if (!latent) return;
  require_ranges(problems, *latent, latent_numbers(), "attention.");
  constexpr const char* kNone = "is not modelled with latent attention";
  problems.require(sliding_window == 0, "sliding_window", kNone);
  problems.require(
      qk_norm == QkNorm::none, "qk_norm",
      "has no effect with latent attention, whose latent vectors have norms of their own; leave it out");
  problems.require(position == PositionKind::rotary, "position", "is rotary with latent attention");
  problems.require(rotary_fraction == 1, "rotary_fraction",
                   "has no effect with latent attention: attention.rope_dim says it; leave it out");
  problems.require(!linear_bias, "linear_bias", kNone);
  problems.require(!qkv_bias, "qkv_bias", kNone);
  problems.require(!attention_sinks, "attention_sinks", kNone);
  problems.require(!parallel_residual, "parallel_residual", kNone);
}

Problems ModelSpec::validate() const {
  Problems problems;
  require_ranges(problems, *this, model_numbers());
  if (heads >= 1 && kv_heads >= 1) {
    problems.require(
        heads % kv_heads == 0, "kv_heads",
        fmt::format("must divide heads ({}): each KV head serves a group of query heads", heads));
  }
  if (position == PositionKind::learned) {
    problems.require(max_positions != 0, "max_positions",
                     "learned positions need a table of rows: " + ranges::kRows.text());
  } else {
    problems.require(max_positions == 0, "max_positions",
                     fmt::format("has no effect with {} positions; leave it out", name_of(position)));
  }
  constexpr const char* kAllBiased = "has no effect where linear_bias is already true";
  problems.require(!(linear_bias && qkv_bias), "qkv_bias", kAllBiased);
  problems.require(!(linear_bias && output_bias), "output_bias", kAllBiased);
  problems.require(!(linear_bias && mlp_bias), "mlp_bias", kAllBiased);
  const bool rotary = position == PositionKind::rotary;
  problems.require(rotary || rotary_fraction == 1, "rotary_fraction",
                   "has no effect without rotary positions; leave it out");
  check_windows(problems);
  problems.require(norm == NormKind::layernorm || norm_bias, "norm_bias",
                   "has no effect with rmsnorm, which has no bias; leave it out");
  problems.require(norm_place == NormPlace::before || !parallel_residual, "norm_place",
                   "a parallel block has its norms before attention and MLP: it adds up both at once");
  problems.require(!head_bias || !tied_embeddings, "head_bias",
                   "needs tied_embeddings: false; the embedding has no bias to share");
  problems.require(parallel_residual || !shared_norm, "shared_norm",
                   "needs parallel_residual: true; attention and MLP read different inputs otherwise");
  check_experts(problems);
  check_latent(problems);
  if (problems.empty() && parameters() > ranges::kMostParameters) {
    problems.add("layers", "the model has " + Range{}.number(parameters()) + " parameters, at most " +
                               Range{}.number(ranges::kMostParameters) + " are modelled");
  }
  return problems;
}

}  // namespace shardscape
