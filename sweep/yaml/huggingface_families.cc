// Reads huggingface_families.json, the table of families: a row starts from the one that it is like, and sets what
// differs. A key that no row has stops the program.
#include "sweep/yaml/huggingface_families.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/enum_names.h"
#include "engine/base/safe_text.h"
#include "sweep/yaml/huggingface_data.h"

namespace shardscape::yaml::huggingface {

namespace {

using Json = nlohmann::json;

/// The table's texts, which rows refer to.
const Json& table() {
  static const Json kTable = Json::parse(data::huggingface_families());
  return kTable;
}

const std::string& text_of(const Json& value) { return value.get_ref<const std::string&>(); }

void read(const Json& value, bool& out) { out = value.get<bool>(); }
void read(const Json& value, std::int64_t& out) { out = value.get<std::int64_t>(); }
void read(const Json& value, double& out) { out = value.get<double>(); }
void read(const Json& value, std::string_view& out) { out = text_of(value); }
void read(const Json& value, Names& out) {
  if (value.is_array())
    out = {text_of(value.at(0)).c_str(), text_of(value.at(1)).c_str()};
  else
    out = value.is_null() ? Names() : Names(text_of(value).c_str());
}
template <class E>
requires std::is_enum_v<E>
void read(const Json& value, E& out) { out = parse_enum<E>(text_of(value)).value(); }
/// Layers that may have biases.
void read(const Json& value, unsigned& bits) {
  constexpr std::string_view kLayers[] = {"qkv", "output", "mlp", "norms"};
  bits = 0;
  for (const Json& layer : value) {
    const auto* const at = std::ranges::find(kLayers, text_of(layer));
    SHARDSCAPE_CHECK(at != std::end(kLayers), text_of(layer));
    bits |= 1U << (at - kLayers);
  }
}

#define SHARDSCAPE_MEMBER(member) \
  if (const auto at = map.find(#member); at != map.end()) ++known, read(*at, row.member);
/// Reads the members that a map names; the others stay as they are.
#define SHARDSCAPE_ROW(Row, ...)                                              \
  void read(const Json& map, Row& row) {                                      \
    std::size_t known = map.count("comment") + map.count("like");             \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(SHARDSCAPE_MEMBER, __VA_ARGS__)) \
    SHARDSCAPE_CHECK(known == map.size(), json_text(map));                    \
  }
SHARDSCAPE_ROW(Flag, key, otherwise)
SHARDSCAPE_ROW(KvHeads, key, otherwise, grouped, one)
SHARDSCAPE_ROW(Bias, layers, key, otherwise, negated)
SHARDSCAPE_ROW(Dropouts, residual, attention, embedding, rate, attention_rate)
SHARDSCAPE_ROW(Positions, alibi, rows, rows_otherwise, further_rows, learned, turned, turned_otherwise,
               turned_dimensions)
SHARDSCAPE_ROW(Parallel, residual, shared_norm, norms)
SHARDSCAPE_ROW(SoftCap, key, otherwise, null_is_none)
SHARDSCAPE_ROW(Window, key, otherwise, null_is_none, pattern, period, period_otherwise, used, first, types,
               local, whole)
SHARDSCAPE_ROW(Experts, experts, top_k, width, dense_width, first_dense, every, shared, shared_otherwise,
               shared_gate, shared_width, shared_width_otherwise, normalise_top_k, router, router_bias,
               router_keys, mtp_layers, dense_layers)
SHARDSCAPE_ROW(Demand, key, must, text)

template <class Item, std::size_t kMost>
void read(const Json& list, std::array<Item, kMost>& out) {
  out = {};
  for (std::size_t i = 0; i < list.size(); ++i) read(list[i], out.at(i));
}

SHARDSCAPE_ROW(Family, name, layers, hidden, heads, heads_otherwise, vocabulary_otherwise, ffn_hidden,
               ffn_multiple, ffn_multiple_key, kv_heads, head_dim, head_dim_otherwise, heads_at, tied,
               activation, mlp, gated, norm, norm_place, qk_norm, qk_norm_used, embedding_norm, positions,
               dropouts, biases, head_bias, parallel, attention_cap, logit_cap, window, attention_sinks,
               latent, experts, demands, idle)
#undef SHARDSCAPE_ROW
#undef SHARDSCAPE_MEMBER

}  // namespace

std::span<const Family> families() {
  static const std::vector<Family> kFamilies = [] {
    std::vector<Family> rows;
    for (const Json& written : table().at("families")) {
      const auto base = std::ranges::find(rows, written.value("like", ""), &Family::name);
      SHARDSCAPE_CHECK(base != rows.end() || !written.contains("like"), json_text(written));
      Family row = base == rows.end() ? Family() : *base;
      read(written, row);
      rows.push_back(row);
    }
    return rows;
  }();
  return kFamilies;
}

std::string_view family_of(std::string_view model_type, std::string_view architecture) {
  if (architecture == "MiniMaxM2ForCausalLM") return "minimax_m2";
  const Json& same_blocks = table().at("same_blocks");
  const auto family = same_blocks.find(model_type);
  return family == same_blocks.end() ? model_type : text_of(*family);
}

std::string_view refused_family(std::string_view name) {
  for (const auto& [reason, families] : table().at("refused").items())
    for (const Json& family : families)
      if (text_of(family) == name) return reason;
  return "";
}

}  // namespace shardscape::yaml::huggingface
