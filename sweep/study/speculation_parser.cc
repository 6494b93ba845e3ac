#include "sweep/study/speculation_parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/spec/ranges.h"
#include "sweep/study/axis_values.h"

namespace shardscape::sweep {

namespace {

yaml::Parsed<double> parse_share(const yaml::Node& node) {
  auto share = yaml::parse_value<double>(node);
  if (share && (*share < 0 || *share > 1)) return tl::unexpected(std::string("must be from 0 to 1"));
  return share;
}

}  // namespace

ParsedSpeculation parse_speculation(const yaml::Node& node, const std::string& path, yaml::ReadState& state,
                                    yaml::Diagnostics& diagnostics) {
  ParsedSpeculation result;
  Speculation& speculation = result.speculation;
  result.resolved = node;
  yaml::Reader reader(node, path, state);
  const auto bad = [&](const std::string& key, const yaml::Node& where, const std::string& message) {
    state.bad(path + "." + key, where.where, message);
  };
  if (const yaml::Node* tokens = reader.take_required("draft_tokens"))
    result.draft_tokens = parse_axis<std::int64_t>(
        AxisPlace{*tokens, path + ".draft_tokens", diagnostics},
        [](const yaml::Node& item) { return yaml::parse_integer_node(item, 0, kMostDraftTokens); });
  const std::int64_t most = result.draft_tokens.empty() ? 0 : std::ranges::max(result.draft_tokens);
  if (const yaml::Node* rates = reader.take_required("acceptance")) {
    const bool listed = !rates->items.empty();
    for (const yaml::Node* item : listed ? axis_items({*rates, path + ".acceptance", diagnostics})
                                         : std::vector<const yaml::Node*>{rates}) {
      const auto share = parse_share(*item);
      if (!share) {
        bad("acceptance", *item, share.error());
      } else if (!speculation.acceptance.empty() && *share > speculation.acceptance.back()) {
        bad("acceptance", *item,
            "rises: a draft is accepted only where all before it are, so shares of positions never do");
      } else {
        speculation.acceptance.push_back(*share);
      }
    }
    if (!listed && speculation.acceptance.size() == 1)
      speculation.acceptance = Speculation::independent(speculation.acceptance.front());
    if (!state.failed() && most > static_cast<std::int64_t>(speculation.acceptance.size()))
      bad("acceptance", *rates,
          fmt::format("has {} positions, but {} tokens are drafted: give one share for each, or one rate",
                      speculation.acceptance.size(), most));
  }
  if (const yaml::Node* method = reader.take("method")) {
    const auto parsed = yaml::parse_value<DraftMethod>(*method);
    if (parsed) speculation.method = *parsed;
    if (!parsed) bad("method", *method, parsed.error());
  } else if (node.find("draft_model") != nullptr) {
    speculation.method = DraftMethod::draft_model;
  }
  const yaml::Node* const model = reader.take("draft_model");
  if (speculation.method == DraftMethod::draft_model && model == nullptr)
    bad("draft_model", node, "missing: method draft_model needs the name of the model that drafts");
  if (speculation.method == DraftMethod::mtp && model != nullptr)
    bad("draft_model", *model, "has no effect with method: mtp, where the model drafts for itself");
  reader.finish();
  return result;
}

}  // namespace shardscape::sweep
