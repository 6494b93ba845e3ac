// Reads `speculation:` of a workload: who drafts, how many tokens, and how many of them are accepted.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sweep/input/input_file.h"
#include "sweep/study/acceptance_file.h"
#include "sweep/study/axis_values.h"
#include "sweep/study/study_parts.h"
#include "sweep/yaml/value.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

yaml::Parsed<double> parse_share(const yaml::Node& node) {
  auto share = yaml::parse_value<double>(node);
  if (share && (*share < 0 || *share > 1)) return tl::unexpected(std::string("must be from 0 to 1"));
  return share;
}

/// Shares from a table of lengths; an empty error stands for problems that are told already.
tl::expected<std::vector<double>, std::string> read_table(const yaml::Node& node, const std::string& path,
                                                          const std::filesystem::path& folder,
                                                          yaml::ReadState& state, ParsedSpeculation& result) {
  yaml::Reader of(node, path, state);
  const yaml::Node* const name = of.take_required("table");
  AcceptanceSeries series;
  for (const auto& [key, text] : {std::pair("model", &series.model), std::pair("method", &series.method),
                                  std::pair("mode", &series.mode)}) {
    if (const yaml::Node* const value = of.take(key))
      of.keep(key, *value, yaml::scalar_text(*value, "a cell of the table"), *text);
  }
  of.finish();
  if (name == nullptr || state.failed()) return tl::unexpected(std::string());
  const auto file = yaml::scalar_text(*name, "the name of a CSV file");
  if (!file) return tl::unexpected(file.error());
  const std::filesystem::path where = folder / *file;
  const auto text = input::read_file(where, input::kMostTableBytes, "a table of lengths");
  if (text) result.tables.push_back(where);
  std::string means;
  const auto shares = text ? parse_acceptance(*text, series, &means) : tl::unexpected(text.error());
  if (!means.empty())
    result.assumption = yaml::to_string({name->where, path + ".table", "accepted lengths are " + means});
  if (!shares) return tl::unexpected(where.string() + ": " + shares.error());
  return *shares;
}

}  // namespace

ParsedSpeculation parse_speculation(const yaml::Node& node, const std::string& path,
                                    const std::filesystem::path& folder, yaml::ReadState& state,
                                    yaml::Diagnostics& diagnostics) {
  ParsedSpeculation result;
  Speculation& speculation = result.speculation;
  result.resolved = node;
  yaml::Reader reader(node, path, state);
  if (const yaml::Node* tokens = reader.take_required("draft_tokens"))
    result.draft_tokens = parse_axis<std::int64_t>(
        AxisPlace{*tokens, path + ".draft_tokens", diagnostics},
        [](const yaml::Node& item) { return yaml::parse_integer_node(item, 0, kMostDraftTokens); });
  const std::int64_t most = result.draft_tokens.empty() ? 0 : std::ranges::max(result.draft_tokens);
  const yaml::Node* const written = reader.take_required("acceptance");
  const yaml::Node* rates = written;
  if (rates != nullptr && rates->is_map()) {
    const auto shares = read_table(*rates, path + ".acceptance", folder, state, result);
    if (!shares && !shares.error().empty()) reader.bad("acceptance", *rates, shares.error());
    result.resolved.set("acceptance",
                        yaml::flow_list(shares.value_or(std::vector<double>()), [](double share) {
                          return yaml::Node::scalar(fmt::format("{}", share));
                        }));
    rates = shares ? result.resolved.find("acceptance") : nullptr;
  }
  if (rates != nullptr) {
    const bool listed = !rates->items.empty();
    for (const yaml::Node* item : listed ? axis_items({*rates, path + ".acceptance", diagnostics})
                                         : std::vector<const yaml::Node*>{rates}) {
      const auto share = parse_share(*item);
      if (!share) {
        reader.bad("acceptance", *item, share.error());
      } else if (!speculation.acceptance.empty() && *share > speculation.acceptance.back()) {
        reader.bad(
            "acceptance", *item,
            "rises: a draft is accepted only where all before it are, so shares of positions never do");
      } else {
        speculation.acceptance.push_back(*share);
      }
    }
    if (!listed && speculation.acceptance.size() == 1)
      speculation.acceptance = Speculation::independent(speculation.acceptance.front());
    if (!state.failed() && most > static_cast<std::int64_t>(speculation.acceptance.size()))
      reader.bad(
          "acceptance", *written,
          fmt::format("has {} positions, but {} tokens are drafted: give one share for each, or one rate",
                      speculation.acceptance.size(), most));
  }
  if (const yaml::Node* method = reader.take("method")) {
    reader.read("method", *method, speculation.method);
  } else if (node.find("draft_model") != nullptr) {
    speculation.method = DraftMethod::draft_model;
  }
  const yaml::Node* const model = reader.take("draft_model");
  if (speculation.method == DraftMethod::draft_model && model == nullptr)
    reader.bad("draft_model", node, "missing: method draft_model needs the name of the model that drafts");
  if (speculation.method == DraftMethod::mtp && model != nullptr)
    reader.bad("draft_model", *model, "has no effect with method: mtp, where the model drafts for itself");
  reader.finish();
  return result;
}

}  // namespace shardscape::sweep
