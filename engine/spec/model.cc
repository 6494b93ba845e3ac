#include "engine/spec/model.h"

#include "engine/spec/ranges.h"

namespace shardscape {

double ModelSpec::block_matrix_parameters() const {
  const auto h = static_cast<double>(hidden);
  return h * static_cast<double>(qkv_width()) + static_cast<double>(attention_width()) * h +
         h * static_cast<double>(mlp_in_width()) + static_cast<double>(ffn_hidden) * h;
}

double ModelSpec::block_vector_parameters() const {
  const auto h = static_cast<double>(hidden);
  const double norm_vectors = norm == NormKind::layernorm ? 2 : 1;
  return 2 * norm_vectors * h + block_column_biases() + (linear_bias ? 2 * h : 0);
}

double ModelSpec::block_column_biases() const {
  if (linear_bias) return static_cast<double>(qkv_width() + mlp_in_width());
  return qkv_bias ? static_cast<double>(qkv_width()) : 0;
}

double ModelSpec::position_parameters() const {
  return static_cast<double>(max_positions) * static_cast<double>(hidden);
}

double ModelSpec::embedding_parameters() const {
  return static_cast<double>(vocabulary + max_positions) * static_cast<double>(hidden);
}

double ModelSpec::head_parameters() const {
  return tied_embeddings ? 0 : static_cast<double>(vocabulary) * static_cast<double>(hidden);
}

double ModelSpec::final_norm_parameters() const {
  return (norm == NormKind::layernorm ? 2 : 1) * static_cast<double>(hidden);
}

double ModelSpec::parameters() const {
  return static_cast<double>(layers) * (block_matrix_parameters() + block_vector_parameters()) +
         embedding_parameters() + head_parameters() + final_norm_parameters();
}

Problems ModelSpec::validate() const {
  Problems problems;
  require_range(problems, layers, "layers", ranges::kLayers);
  require_range(problems, hidden, "hidden", ranges::kHidden);
  require_range(problems, heads, "heads", ranges::kHeads);
  require_range(problems, kv_heads, "kv_heads", ranges::kHeads);
  require_range(problems, head_dim, "head_dim", ranges::kHeadDim);
  require_range(problems, ffn_hidden, "ffn_hidden", ranges::kRows);
  require_range(problems, vocabulary, "vocabulary", ranges::kRows);
  if (heads >= 1 && kv_heads >= 1) {
    problems.require(
        heads % kv_heads == 0, "kv_heads",
        "must divide heads (" + std::to_string(heads) + "): each KV head serves a group of query heads");
  }
  if (position == PositionKind::learned) {
    problems.require(ranges::kRows.holds(static_cast<double>(max_positions)), "max_positions",
                     "learned positions need a table of rows: " + ranges::kRows.text());
  } else {
    problems.require(max_positions == 0, "max_positions",
                     "has no effect with rotary positions; leave it out");
  }
  problems.require(!(linear_bias && qkv_bias), "qkv_bias", "has no effect where linear_bias is already true");
  problems.require(dropout >= 0 && dropout < 1, "dropout", "is a probability, 0 <= dropout < 1");
  if (problems.empty() && parameters() > ranges::kMostParameters) {
    problems.add("layers", "the model has " + Range{}.number(parameters()) + " parameters, at most " +
                               Range{}.number(ranges::kMostParameters) + " are modelled");
  }
  return problems;
}

}  // namespace shardscape
