// Parses YAML through yaml-cpp's events into Nodes, and refuses what a strict reader must: controls, tabs, tags,
// aliases without an anchor, trees that are too large, and second documents.
#include "sweep/yaml/node.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "engine/base/safe_text.h"
#include "sweep/yaml/value.h"

namespace shardscape::yaml {

namespace {

constexpr std::size_t kMaxNodes = 1'000'000;  // limited because aliases of aliases grow exponentially
constexpr std::size_t kMaxDepth = 64;         // studies are nested about five deep

/// Thrown through yaml-cpp's parser by the builder, and caught in parse().
struct Refused {
  Location where;
  std::string message;
};

/// Whether it is a control character other than blanks and line ends.
bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1)
    return (first < 0x20 || first == 0x7F) && first != '\t' && first != '\n' && first != '\r';
  const auto second = static_cast<unsigned char>(character[1]);
  return first == 0xC2 && second < 0xA0 && second != 0x85;  // C1, but for "next line"
}

std::size_t count_nodes(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  for (const Entry& entry : node.entries) count += count_nodes(entry.value);
  return count;
}

/// Builds a tree from parser events. A stack holds the open containers; in a map a pending key alternates with its
/// value.
class TreeBuilder final : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const std::string> source, std::string_view text)
      : source_(std::move(source)), text_(text) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.where = at(mark);
    finish(std::move(node), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) throw Refused{at(mark), "an alias to a node that is not complete"};
    count(at(mark), count_nodes(it->second));
    place(Node(it->second), at(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    refuse_controls(mark, value);
    Node node = Node::scalar(value);
    node.quoted = tag == "!";
    if (node.quoted) refuse_open_quote(mark);
    node.where = at(mark);
    finish(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::list(), mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::map(), mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] Location at(const YAML::Mark& mark) const {
    return {source_, mark.line + 1, mark.column + 1};
  }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::optional<Entry> pending;
  };

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{at(mark), "tags are not used here; remove \"" + tag + '"'};
    }
  }

  /// Refuses control characters from escapes such as "\0" and "\e", which the check of the file's bytes cannot see.
  void refuse_controls(const YAML::Mark& mark, const std::string& text) const {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t length = std::max<std::size_t>(1, utf8_length(text, i));
      const std::string_view character = std::string_view(text).substr(i, length);
      if (is_control(character)) {
        throw Refused{at(mark), "a text can't hold the control character " + printable(character)};
      }
      i += length;
    }
  }

  /// Refuses an open quote, which yaml-cpp ends at the end of the file.
  void refuse_open_quote(const YAML::Mark& mark) const {
    const auto begin = static_cast<std::size_t>(std::max(0, mark.pos));
    if (begin >= text_.size() || (text_[begin] != '"' && text_[begin] != '\'')) return;
    const char quote = text_[begin];
    for (std::size_t i = begin + 1; i < text_.size(); ++i) {
      const bool doubled = quote == '\'' && text_.substr(i, 2) == "''";
      const bool escape = quote == '"' && text_[i] == '\\';
      if (doubled || escape) {
        ++i;
      } else if (text_[i] == quote) {
        return;
      }
    }
    throw Refused{at(mark), "not valid YAML: a quote is never closed"};
  }

  void count(const Location& where, std::size_t nodes) {
    nodes_ += nodes;
    if (nodes_ > kMaxNodes) throw Refused{where, "the file has more than a million values"};
  }

  void open(Node node, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    if (stack_.size() == kMaxDepth) {
      throw Refused{at(mark), fmt::format("lists and maps are nested more than {} deep", kMaxDepth)};
    }
    node.where = at(mark);
    stack_.push_back({std::move(node), anchor, std::nullopt});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    finish(std::move(done.node), done.anchor);
  }

  void finish(Node node, YAML::anchor_t anchor) {
    count(node.where, 1);
    if (anchor != 0) anchors_[anchor] = node;
    const Location where = node.where;
    place(std::move(node), where);
  }

  void place(Node node, const Location& where) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& top = stack_.back();
    if (top.node.is_list()) {
      top.node.items.push_back(std::move(node));
    } else if (!top.pending) {
      if (!node.is_scalar())
        throw Refused{where, fmt::format("a key must be plain text, not {}", kind_name(node))};
      if (const std::string problem = name_problem(node.text); !problem.empty())
        throw Refused{where, "a key " + problem};
      top.pending = Entry{std::move(node.text), where, {}};
    } else {
      // An empty value gets the place of its key: the parser gives that of the next token, perhaps on another line.
      if (node.kind == Node::Kind::null) node.where = top.pending->key_where;
      top.pending->value = std::move(node);
      top.node.entries.push_back(std::move(*top.pending));
      top.pending.reset();
    }
  }

  std::shared_ptr<const std::string> source_;
  std::string_view text_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  std::size_t nodes_ = 0;
  Node root_;
};

/// The first character of the text that a YAML file must not hold: a byte that is not UTF-8, or a control character.
std::optional<Refused> first_unreadable(std::string_view text,
                                        const std::shared_ptr<const std::string>& name) {
  Location where{name, 1, 1};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, std::max<std::size_t>(1, length));
    if (length == 0 || is_control(character)) {
      return Refused{where, "not valid YAML: " + printable(character) +
                                (length == 0 ? " is no UTF-8 text; save the file as UTF-8"
                                             : " is a control character; remove it")};
    }
    at += length;
    where.column = character == "\n" ? 1 : where.column + 1;
    where.line += character == "\n" ? 1 : 0;
  }
  return std::nullopt;
}

/// The first tab that is used for indentation.
std::optional<Location> first_tab(std::string_view text, const std::shared_ptr<const std::string>& name) {
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t first = text.find_first_not_of(' ', begin);
    if (first != std::string_view::npos && text[first] == '\t')
      return Location{name, line, static_cast<int>(first - begin) + 1};
    begin = std::min(text.find('\n', begin), text.size() - 1) + 1;
  }
  return std::nullopt;
}

/// yaml-cpp's reason, with an explanation where it is not clear.
std::string plain_reason(const std::string& said) {
  const std::string reason = "not valid YAML: " + said;
  if (said != "illegal map value") return reason;
  return reason + "; text with ': ' in it belongs in quotes, and a key has at most 1,024 characters";
}

/// Takes the events of a second document, which is an error, and ignores them.
class Ignore final : public YAML::EventHandler {
 public:
  std::optional<YAML::Mark> start;
  void OnDocumentStart(const YAML::Mark& mark) override { start = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t, const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t, YAML::EmitterStyle::value) override {
  }
  void OnMapEnd() override {}
};

}  // namespace

std::optional<Node> parse(const std::string& text, const std::string& source, Diagnostics& diagnostics) {
  const auto name = std::make_shared<const std::string>(source);
  TreeBuilder builder(name, text);
  if (auto refused = first_unreadable(text, name)) {
    diagnostics.add(refused->where, "", refused->message);
    return std::nullopt;
  }
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      diagnostics.add({name, 1, 1}, "", "the file is empty");
      return std::nullopt;
    }
    Ignore rest;
    if (parser.HandleNextDocument(rest)) {
      const Location where = rest.start ? builder.at(*rest.start) : Location{name, 1, 1};
      diagnostics.add(where, "", "one document per file; a second one starts here");
      return std::nullopt;
    }
  } catch (const Refused& refused) {
    diagnostics.add(refused.where, "", refused.message);
    return std::nullopt;
  } catch (const YAML::Exception& error) {
    const Location where = error.mark.is_null() ? Location{name, 1, 1} : builder.at(error.mark);
    const auto tab = first_tab(text, name);
    diagnostics.add(tab.value_or(where), "",
                    tab ? "not valid YAML: a tab can't indent; use spaces" : plain_reason(error.msg));
    return std::nullopt;
  }
  return builder.take();
}

}  // namespace shardscape::yaml
