// Names of facts are the leaves of plan, stack, model and workload as trees, and a table of what follows from them; a
// condition or a value of a data file is compiled once for all names and evaluated for the case at hand.
#include "sweep/launch/facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/safe_text.h"
#include "engine/spec/parallel_groups.h"
#include "engine/spec/plan_axes.h"
#include "engine/spec/zero.h"
#include "sweep/launch/layer_layout.h"
#include "sweep/space/design_space.h"
#include "sweep/yaml/specs.h"

namespace shardscape::launch {

namespace {

using C = const Case&;
using sweep::ExpressionName;
using sweep::NameKind;

/// A fact that follows from a case: its kind is that of the member which is set.
struct DerivedFact {
  std::string_view name;
  double (*number)(C of) = nullptr;
  bool (*truth)(C of) = nullptr;
  std::string (*text)(C of) = nullptr;
  std::size_t (*choice)(C of) = nullptr;
  std::span<const std::string_view> choices = {};
};

DerivedFact number(std::string_view name, double (*of)(C)) { return {.name = name, .number = of}; }
DerivedFact truth(std::string_view name, bool (*of)(C)) { return {.name = name, .truth = of}; }
DerivedFact text(std::string_view name, std::string (*of)(C)) { return {.name = name, .text = of}; }
template <class E>
DerivedFact choice(std::string_view name, std::size_t (*of)(C)) {
  return {.name = name, .choice = of, .choices = enum_names<E>()};
}
constexpr double real(std::int64_t whole) { return static_cast<double>(whole); }
template <class E>
constexpr std::size_t code(E value) {
  return static_cast<std::size_t>(value);
}

bool lies(C of, const RankOrder& order) { return sweep::same_layout(of.plan, of.plan.order, order); }
bool lies_pipelines_first(C of) { return lies(of, *parse_rank_order("tp-cp-pp-dp")); }
/// Servers have tensor groups innermost, then pipelines, then replicas; replicas of their own lie anywhere.
bool lies_as_servers(C of) {
  const bool inside =
      of.plan.tensor == 1 || of.plan.order.front() == PlanAxis::tensor || lies(of, kDefaultRankOrder);
  const bool plain = lies_pipelines_first(of) || of.plan.pipeline == 1 || of.plan.data == 1;
  return inside && (plain || of.coupled() == 1);
}
std::string recomputed_parts(C of) {
  std::vector<std::string_view> names;
  for (const RecomputePart part : of.stack().selective_recompute) names.push_back(name_of(part));
  return fmt::format("{}", fmt::join(names, " "));
}
/// 1 for each layer with experts, 0 for each other.
std::string expert_layer_list(C of) {
  std::string words;
  for (std::int64_t layer = 0; of.experts() && layer < of.shape().layers; ++layer)
    words += of.shape().moe->in_layer(layer) ? "1 " : "0 ";
  return words;
}
/// How each layer's attention exchanges keys and values where some have a window, which a ring cannot go round, and the
/// stack has a ring for the others; else empty.
std::string exchange_list(C of) {
  const ModelSpec& model = of.shape();
  const bool rings = of.stack().communication.context_exchange == ContextExchange::ring;
  const std::string& pattern = model.window_pattern;
  std::vector<std::string_view> words;
  for (std::int64_t layer = 0; rings && !pattern.empty() && layer < model.layers; ++layer)
    words.emplace_back(pattern[static_cast<std::size_t>(layer) % pattern.size()] == 'G' ? "p2p"
                                                                                        : "all_gather");
  const bool mixed = std::ranges::adjacent_find(words, std::ranges::not_equal_to()) != words.end();
  return mixed ? fmt::format("{}", fmt::join(words, " ")) : "";
}
double bucket_elements(C of) {
  const double bytes = gradient_bucket(of.plan, of.stack(), ParallelGroup::data_shard).value();
  return std::round(bytes / of.stack().state.gradient_comm_bytes);
}
template <RecomputePart part>
bool recomputes(C of) {
  return of.stack().repeats(part);
}

const std::vector<DerivedFact>& derived_facts() {
  static const std::vector<DerivedFact> kFacts = {
      {.name = "part", .choice = [](C) { return std::size_t{0}; }, .choices = enum_names<RecomputePart>()},
      number("gpus", [](C of) { return real(of.gpus()); }),
      number("gpus_per_node", [](C of) { return real(of.gpus_per_node); }),
      number("gpus_here", [](C of) { return real(std::min(of.gpus(), of.gpus_per_node)); }),
      number("nodes", [](C of) { return real(of.nodes()); }),
      number("replicas", [](C of) { return real(of.replicas()); }),
      number("programs", [](C of) { return real(of.programs()); }),
      number("coupled", [](C of) { return real(of.coupled()); }),
      number("redundant_experts", [](C of) { return real(of.plan.redundant_experts); }),
      number("sequence_length", [](C of) { return real(of.workload().sequence_length); }),
      number("global_batch", [](C of) { return real(of.workload().global_batch); }),
      number("longest_request",
             [](C of) { return real(of.workload().longest_prompt() + of.workload().longest_output()); }),
      number(
          "drafts",
          [](C of) { return of.workload().load ? real(of.workload().load->speculation.draft_tokens) : 0.0; }),
      number("memory_share", [](C of) { return of.memory_share; }),
      number("static_share", [](C of) { return of.static_share; }),
      number("expert_layers", [](C of) { return real(of.shape().expert_layers()); }),
      number("bucket_elements", bucket_elements),
      truth("training", [](C of) { return of.workload().phase == Phase::training; }),
      truth("experts", [](C of) { return of.experts(); }),
      truth("latent", [](C of) { return of.shape().latent.has_value(); }),
      truth("chunked", [](C of) { return of.plan.chunked(); }),
      truth("folds_experts", [](C of) { return of.plan.folds_experts(); }),
      truth("scatters_each_microbatch", [](C of) { return scatters_each_microbatch(of.plan, of.stack()); }),
      truth("lies_as_usual", [](C of) { return lies(of, kDefaultRankOrder); }),
      truth("lies_pipelines_first", lies_pipelines_first),
      truth("lies_as_servers", lies_as_servers),
      truth("on_graphs", [](C of) { return of.setting.trains_on_graphs(); }),
      truth("narrow",
            [](C of) {
              return operand_bytes(of.workload().policy().products) <= operand_bytes(Precision::fp8);
            }),
      truth("fp8_cache", [](C of) { return of.setting.policy().kv_cache == Precision::fp8; }),
      truth("loaded", [](C of) { return of.workload().load.has_value(); }),
      truth("has_prefixes", [](C of) { return of.workload().load && of.workload().load->has_prefixes(); }),
      truth("recomputes_norms", recomputes<RecomputePart::norms>),
      truth("recomputes_activations", recomputes<RecomputePart::activations>),
      text("checkpoint", [](C of) { return of.model; }),
      text("recomputed_parts", recomputed_parts),
      text("layer_layout", layer_layout),
      text("expert_layer_list", expert_layer_list),
      text("exchange_list", exchange_list),
      choice<PolicyName>("precision", [](C of) { return code(of.workload().precision); }),
      choice<Case::Pool>("pool", [](C of) { return code(of.pool); }),
      choice<DraftMethod>(
          "draft_method",
          [](C of) { return of.workload().load ? code(of.workload().load->speculation.method) : 0; }),
      choice<Architecture>("device_architecture",
                           [](C of) { return code(of.setting.system.device.architecture); })};
  return kFacts;
}

const std::vector<yaml::Leaf>& spec_leaves() {
  static const std::vector<yaml::Leaf> kLeaves = [] {
    std::vector<yaml::Leaf> leaves = yaml::stack_leaves("stack");
    std::ranges::move(yaml::model_leaves("model"), std::back_inserter(leaves));
    return leaves;
  }();
  return kLeaves;
}

NameKind kind_of(yaml::Leaf::Type type) {
  switch (type) {
    case yaml::Leaf::Type::choice:
      return NameKind::choice;
    case yaml::Leaf::Type::integer:
    case yaml::Leaf::Type::number:
    case yaml::Leaf::Type::quantity:
      return NameKind::number;
    case yaml::Leaf::Type::text:
    case yaml::Leaf::Type::flag:
    case yaml::Leaf::Type::list:
    case yaml::Leaf::Type::informational:
      break;
  }
  return NameKind::truth;
}

const std::vector<ExpressionName>& fact_names() {
  static const std::vector<ExpressionName> kNames = [] {
    std::vector<ExpressionName> names;
    for (const DerivedFact& fact : derived_facts()) {
      const NameKind kind = fact.number != nullptr   ? NameKind::number
                            : fact.choice != nullptr ? NameKind::choice
                                                     : NameKind::truth;
      names.push_back({std::string(fact.name), kind, {fact.choices.begin(), fact.choices.end()}});
    }
    for (const PlanAxisRow& row : kPlanRows) {
      const NameKind kind = row.kind == AxisKind::choice ? NameKind::choice
                            : row.kind == AxisKind::flag ? NameKind::truth
                                                         : NameKind::number;
      names.push_back({std::string(row.name), kind, {row.names.begin(), row.names.end()}});
    }
    for (const yaml::Leaf& leaf : spec_leaves()) {
      names.push_back({leaf.path, kind_of(leaf.type), leaf.choices});
      std::ranges::replace(names.back().name, '.', '_');
    }
    return names;
  }();
  return kNames;
}

double number_of(const yaml::Leaf& leaf, const std::string& text) {
  switch (leaf.type) {
    case yaml::Leaf::Type::flag:
    case yaml::Leaf::Type::choice:
      return real(std::ranges::find(leaf.choices, text) - leaf.choices.begin());
    case yaml::Leaf::Type::quantity:
      return *yaml::parse_quantity(text, leaf.dimension);
    case yaml::Leaf::Type::integer:
    case yaml::Leaf::Type::number:
      return *yaml::parse_number(text);
    case yaml::Leaf::Type::text:
    case yaml::Leaf::Type::list:
    case yaml::Leaf::Type::informational:
      break;
  }
  return text.empty() ? 0 : 1;
}

/// Whole numbers have all their digits.
std::string plain_number(double number) {
  constexpr double kMostWhole = 9e18;
  const bool whole = std::trunc(number) == number && std::abs(number) < kMostWhole;
  return whole ? fmt::format("{}", static_cast<std::int64_t>(number)) : fmt::format("{}", number);
}

std::string text_of(const yaml::Node& node) {
  if (!node.is_list()) return node.text;
  std::vector<std::string> words;
  for (const yaml::Node& item : node.items) words.push_back(text_of(item));
  return fmt::format("[{}]", fmt::join(words, ", "));
}

tl::unexpected<std::string> unread(const std::string& text, const sweep::ExpressionError& error) {
  return tl::unexpected(fmt::format("'{}', character {}: {}", text, error.offset + 1, error.message));
}

}  // namespace

std::vector<std::pair<std::string, std::string>> leaves_of(const yaml::Node& tree, const std::string& path) {
  if (!tree.is_map()) return {{path, text_of(tree)}};
  std::vector<std::pair<std::string, std::string>> leaves;
  for (const yaml::Entry& entry : tree.entries)
    std::ranges::move(leaves_of(entry.value, key_path(path, entry.key)), std::back_inserter(leaves));
  return leaves;
}

Facts facts_of(const Case& of) {
  Facts facts;
  const auto add = [&](double number, std::string text) {
    facts.numbers.push_back(number);
    facts.texts.push_back(std::move(text));
  };
  for (const DerivedFact& fact : derived_facts()) {
    if (fact.number != nullptr) {
      const double number = fact.number(of);
      add(number, plain_number(number));
    } else if (fact.truth != nullptr) {
      const bool holds = fact.truth(of);
      add(holds ? 1 : 0, holds ? "true" : "false");
    } else if (fact.text != nullptr) {
      const std::string text = fact.text(of);
      add(text.empty() ? 0 : 1, text);
    } else {
      const std::size_t code = fact.choice(of);
      add(static_cast<double>(code), std::string(fact.choices[code]));
    }
  }
  for (const PlanAxisRow& row : kPlanRows) add(row.get(of.plan), code_text(row, row.get(of.plan)));
  std::map<std::string, std::string> written;
  for (auto& leaf : leaves_of(yaml::write(of.stack()), "stack")) written.insert(std::move(leaf));
  for (auto& leaf : leaves_of(yaml::write(of.shape()), "model")) written.insert(std::move(leaf));
  for (const yaml::Leaf& leaf : spec_leaves()) {
    const auto found = written.find(leaf.path);
    const bool counted = fact_names()[facts.numbers.size()].kind != NameKind::truth;
    if (found == written.end()) {
      add(counted ? std::numeric_limits<double>::quiet_NaN() : 0, "");
    } else {
      add(number_of(leaf, found->second), found->second);
    }
  }
  return facts;
}

Vocabulary::Vocabulary() : names_(fact_names()) {}

yaml::Parsed<sweep::Expression> Vocabulary::condition(const std::string& text) const {
  auto parsed = sweep::Expression::parse(text, names_);
  if (!parsed) return unread(text, parsed.error());
  return *std::move(parsed);
}

yaml::Parsed<std::size_t> Vocabulary::fact(const std::string& name) const {
  const auto found = std::ranges::find(names_, name, &ExpressionName::name);
  if (found == names_.end()) return tl::unexpected("unknown name '" + name + '\'');
  return static_cast<std::size_t>(found - names_.begin());
}

yaml::Parsed<bool> Vocabulary::define(const std::string& name, const std::string& text) {
  if (fact(name)) return tl::unexpected(std::string("a name that there is already"));
  auto parsed = sweep::Expression::parse_value(text, names_);
  if (!parsed) return unread(text, parsed.error());
  names_.push_back({name, parsed->is_truth() ? NameKind::truth : NameKind::number});
  defined_.push_back(*std::move(parsed));
  return true;
}

yaml::Parsed<Template> Vocabulary::value(const std::string& text) const {
  Template whole;
  std::string words;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool doubled = at + 1 < text.size() && text[at + 1] == text[at];
    if (text[at] != '{' && text[at] != '}') {
      words += text[at];
    } else if (doubled) {
      words += text[at++];
    } else {
      const std::size_t end = text.find('}', at);
      if (text[at] == '}' || end == std::string::npos)
        return tl::unexpected(
            fmt::format("'{}', character {}: a brace without the other; write {{{{ or }}}} "
                        "for the character itself",
                        text, at + 1));
      const std::string_view inside = std::string_view(text).substr(at + 1, end - at - 1);
      const std::size_t colon = std::min(inside.find(':'), inside.size());
      auto parsed = sweep::Expression::parse_value(inside.substr(0, colon), names_);
      if (!parsed) return unread(std::string(inside), parsed.error());
      const std::string_view form = inside.substr(std::min(colon + 1, inside.size()));
      if (!form.empty() && form != ".2f" && (form != "json" || !parsed->lone_name()))
        return tl::unexpected(
            fmt::format("'{}': values are written plainly or as .2f, names also as json", inside));
      whole.push_back({std::exchange(words, ""), *std::move(parsed), std::string(form)});
      at = end;
    }
  }
  whole.push_back({words, std::nullopt, ""});
  return whole;
}

Facts Vocabulary::complete(Facts facts) const {
  for (const sweep::Expression& defined : defined_) {
    facts.numbers.push_back(defined.value(facts.numbers));
    facts.texts.push_back(plain_number(facts.numbers.back()));
  }
  return facts;
}

std::string Piece::text(const Facts& facts) const {
  if (!value) return before;
  const std::optional<std::size_t> name = value->lone_name();
  const double number = value->value(facts.numbers);
  if (form == "json") return before + json_text(nlohmann::json(facts.texts[name.value_or(kPart)]));
  if (form == ".2f") return before + fmt::format("{:.2f}", number);
  return before + (name ? facts.texts[*name] : plain_number(number));
}

}  // namespace shardscape::launch
