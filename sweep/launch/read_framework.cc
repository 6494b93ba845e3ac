// Reads the data file of a framework; README.md says what its keys mean.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "sweep/launch/read_words.h"
#include "sweep/yaml/closest_names.h"
#include "sweep/yaml/loader.h"

namespace shardscape::launch {

namespace {

using Texts = std::vector<std::pair<std::string, std::string>>;

void read_reply(yaml::Reader& map, const Vocabulary& words, Reply& reply) {
  if (const yaml::Node* const node = map.take("if"))
    read_parsed(map, "if", *node, reply.when, [&](const std::string& text) { return words.condition(text); });
  std::string said;
  for (const Said::Kind kind : enum_values<Said::Kind>()) {
    const std::string key(name_of(kind));
    const yaml::Node* const node = map.take(key.c_str());
    if (node == nullptr) continue;
    if (!said.empty()) map.bad(key, *node, fmt::format("beside {}; a row says one thing", said));
    said = key;
    reply.kind = kind;
    bool unasked = true;
    if (kind == Said::Kind::unasked && map.read("unasked", *node, unasked), !unasked)
      map.bad(key, *node, "is true where it is said; a row that asks leaves it out");
    if (kind != Said::Kind::unasked)
      read_parsed(map, key.c_str(), *node, reply.text,
                  [&](const std::string& text) { return words.value(text); });
  }
}

void read_replies(yaml::Reader& map, const char* key, const Vocabulary& words, std::vector<Reply>& replies) {
  if (map.take(key) == nullptr) return;
  map.list(key, replies, [&](yaml::Reader& item, Reply& reply) { read_reply(item, words, reply); });
}

void read_option(yaml::Reader& map, const Vocabulary& words, const Texts& sources, Option& row) {
  map.words("says", row.keys);
  map.optional("option", row.name);
  map.optional("setting", row.setting);
  map.optional("deployed", row.deployed);
  map.optional("since", row.since);
  map.comment("defined");
  std::string source = sources.empty() ? "" : sources.front().first;
  const yaml::Node* const named = map.take("source");
  if (named != nullptr) map.read("source", *named, source);
  const auto found = std::ranges::find(sources, source, &Texts::value_type::first);
  if (found != sources.end()) {
    row.source = found->second;
  } else if (named != nullptr) {
    map.bad("source", *named, "names none of the file's sources");
  }
  if (const yaml::Node* const each = map.take("each"))
    read_parsed(map, "each", *each, row.each, [&](const std::string& text) { return words.fact(text); });
  Reply own;
  read_reply(map, words, own);
  row.when = std::move(own.when);
  if (const yaml::Node* const cases = map.take("cases")) {
    read_replies(map, "cases", words, row.replies);
    if (own.kind != Said::Kind::value || !own.text.empty())
      map.bad("cases", *cases, "beside what the row itself says; keep one of them");
  } else {
    own.when.reset();
    row.replies.push_back(std::move(own));
  }
}

/// The rows of another framework that are settings of this one, under the paths of these.
std::vector<Option> settings_of(const Framework& other) {
  std::vector<Option> rows;
  for (Option row : other.options) {
    if (row.setting.empty() && !row.name.empty()) continue;
    row.name = std::exchange(row.setting, "");
    rows.push_back(std::move(row));
  }
  return rows;
}

void read_keys(yaml::Reader& map, const Framework* (*other)(std::string_view), Framework& framework) {
  map.required("name", framework.name);
  map.required("title", framework.title);
  map.required("version", framework.version);
  map.required("phase", framework.phase);
  map.optional("file", framework.file);
  framework.kind = framework.file.empty()              ? FileKind::none
                   : framework.file.ends_with(".toml") ? FileKind::toml
                                                       : FileKind::yaml;
  map.optional("file_option", framework.file_option);
  map.optional("dense_together", framework.dense_together);
  map.remarks("not_expressed", framework.missing);
  Texts sources;
  map.remarks("sources", sources);
  Vocabulary words;
  if (const yaml::Node* const node = map.take("settings_of")) {
    std::string name;
    map.read("settings_of", *node, name);
    if (const Framework* const found = other(name)) {
      framework.options = settings_of(*found);
      words = *found->words;
    } else {
      map.bad("settings_of", *node, "names no framework");
    }
  }
  read_definitions(map, words);
  if (map.take("options") != nullptr)
    map.list("options", framework.options,
             [&](yaml::Reader& item, Option& row) { read_option(item, words, sources, row); });
  read_replies(map, "program", words, framework.program);
  read_replies(map, "before", words, framework.before);
  read_replies(map, "router", words, framework.router);
  framework.words = std::make_shared<const Vocabulary>(std::move(words));
}

}  // namespace

void read_definitions(yaml::Reader& map, Vocabulary& words) {
  const yaml::Node* const all = map.take("where");
  if (all == nullptr) return;
  map.optional_group("where", [&](yaml::Reader& inner) {
    bool good = false;
    for (const yaml::Entry& entry : all->entries) {
      inner.take(entry.key.c_str());
      read_parsed(inner, entry.key.c_str(), entry.value, good,
                  [&](const std::string& text) { return words.define(entry.key, text); });
    }
  });
}

tl::expected<Framework, yaml::Diagnostics> read_framework(const std::string& text, const std::string& source,
                                                          const Framework* (*other)(std::string_view name)) {
  yaml::Diagnostics diagnostics;
  Framework framework;
  if (const auto root = yaml::parse(text, source, diagnostics)) {
    yaml::ReadState state(root->where, "", diagnostics);
    yaml::Reader map(*root, "", state);
    read_keys(map, other, framework);
    map.finish();
  }
  if (!diagnostics.empty()) return yaml::refused(std::move(diagnostics));
  return framework;
}

Said first_reply(const std::vector<Reply>& replies, const Facts& facts) {
  for (const Reply& reply : replies) {
    if (reply.when && !reply.when->holds(facts.numbers)) continue;
    std::string text;
    for (const Piece& piece : reply.text) text += piece.text(facts);
    return {reply.kind, text};
  }
  return {};
}

Said Option::say(const Facts& facts) const {
  if (when && !when->holds(facts.numbers)) return {};
  if (!each) return first_reply(replies, facts);
  Facts of_part = facts;
  std::string words, part;
  for (std::istringstream parts(facts.texts[*each]); parts >> part;) {
    const auto parsed = parse_enum<RecomputePart>(part);
    if (!parsed) continue;  // `each` at a fact that lists no parts
    of_part.numbers[kPart] = static_cast<double>(*parsed);
    const Said said = first_reply(replies, of_part);
    if (said.kind == Said::Kind::value) words += (words.empty() ? "" : " ") + said.text;
  }
  return {Said::Kind::value, words};
}

}  // namespace shardscape::launch
