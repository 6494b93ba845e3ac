// Reads `sessions:` of a workload: how many turns they have, how long users think, and what a turn adds.
#include <algorithm>

#include "engine/spec/ranges.h"
#include "engine/spec/request_load.h"
#include "sweep/study/load_parser.h"
#include "sweep/study/study_parts.h"
#include "sweep/yaml/value.h"
#include "sweep/yaml/visitors.h"

namespace shardscape::sweep {

namespace {

constexpr auto kMostTokens = static_cast<std::int64_t>(ranges::kTokens.high);

}  // namespace

std::optional<Lengths> parse_number_or_lengths(const yaml::Node& node, const std::string& path, double ratio,
                                               yaml::ReadState& state) {
  if (node.is_map()) return parse_lengths(node, path, state);
  const auto tokens = yaml::parse_integer_node(node, 1, kMostTokens);
  if (tokens) return ratio < 1 ? Lengths::uniform(*tokens, ratio) : Lengths::fixed(*tokens);
  state.bad(path, node.where, tokens.error());
  return {};
}

Sessions parse_sessions(const yaml::Node& node, const std::string& path, double length_ratio,
                        const ModelSpec* model, yaml::ReadState& state) {
  Sessions sessions;
  yaml::Reader reader(node, path, state);
  if (const yaml::Node* turns = reader.take_required("turns"))
    sessions.turns = parse_number_or_lengths(*turns, path + ".turns", 1, state).value_or(Lengths());
  if (sessions.turns.law == LengthLaw::lognormal)
    sessions.turns.longest = std::min(sessions.turns.longest, Sessions::kMostTurns);
  if (const yaml::Node* added = reader.take_required("new_tokens"))
    sessions.new_tokens =
        parse_number_or_lengths(*added, path + ".new_tokens", length_ratio, state).value_or(Lengths());
  if (const yaml::Node* think = reader.take("think_time")) {
    const auto read = [&](yaml::Reader& from, const char* key, const yaml::Node* time) {
      Seconds seconds(sessions.think);
      if (time != nullptr) from.read_within(key, *time, ranges::kTime, seconds);
      sessions.think = seconds.value();
    };
    if (think->is_map()) {
      yaml::Reader of(*think, path + ".think_time", state);
      read(of, "exponential", of.take_required("exponential"));
      of.finish();
      sessions.random_think = true;
    } else {
      read(reader, "think_time", think);
    }
  }
  reader.integer("shared_prefix_tokens", 0, kMostTokens, sessions.shared.end);
  reader.integer("context_tokens", 1, kMostTokens, sessions.context);
  if (model != nullptr && model->position == PositionKind::learned)
    sessions.context = std::min<std::int64_t>(sessions.context, model->max_positions);
  reader.finish();
  return sessions;
}

}  // namespace shardscape::sweep
