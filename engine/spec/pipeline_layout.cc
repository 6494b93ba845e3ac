#include "engine/spec/pipeline_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace shardscape {

namespace {

/// The most letters that a layout may have once its repetitions are written out.
constexpr std::size_t kMostLetters = 200'000;

/// Writes the repetitions of a layout text out.
class LayoutUnroller {
 public:
  explicit LayoutUnroller(std::string_view text) : text_(text) {}

  tl::expected<std::string, std::string> run() {
    std::string letters = sequence(0);
    if (error_.empty() && at_ < text_.size()) error_ = "a `)` without a `(`";
    if (!error_.empty()) return tl::unexpected(error_);
    return letters;
  }

 private:
  static constexpr int kMostDepth = 8;

  std::string sequence(int depth) {
    std::string letters;
    while (error_.empty() && at_ < text_.size() && text_[at_] != ')') {
      const char c = text_[at_++];
      if (c == ',' || c == ' ') continue;
      std::string item;
      if (c == '(') {
        item = group(depth);
      } else if (std::string_view("EtmL|").find(c) != std::string_view::npos) {
        item = c;
      } else {
        fail(fmt::format("`{}` is none of E, t, m, L, |, (, ), * and a number", c));
      }
      append(letters, item, repeats());
    }
    return letters;
  }

  std::string group(int depth) {
    if (depth == kMostDepth) {
      fail("too many groups inside each other");
      return {};
    }
    std::string letters = sequence(depth + 1);
    if (error_.empty() && at_ == text_.size()) fail("a `(` without a `)`");
    ++at_;
    return letters;
  }

  std::size_t repeats() {
    if (at_ >= text_.size() || text_[at_] != '*') return 1;
    const std::size_t first = ++at_;
    std::size_t number = 0;
    while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0 &&
           number <= kMostLetters)
      number = 10 * number + static_cast<std::size_t>(text_[at_++] - '0');
    if (at_ == first || number == 0) fail("after `*` comes a number from 1 on");
    return number;
  }

  void append(std::string& letters, const std::string& item, std::size_t times) {
    if (!error_.empty()) return;
    if (letters.size() + item.size() * times > kMostLetters) return fail("too long");
    for (std::size_t i = 0; i < times; ++i) letters += item;
  }

  void fail(std::string what) {
    if (error_.empty()) error_ = std::move(what);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::string error_;
};

/// Says where an end or a further-token module stands in a wrong place; empty where all is well.
std::string misplaced(std::string_view letters) {
  const auto count = [&](char c) { return std::ranges::count(letters, c); };
  if (count('E') == 0) return "no E: the first stage begins with the embedding, as in \"Et|tL\"";
  if (count('L') == 0) return "no L: the last stage ends with the loss, as in \"Et|tL\"";
  if (count('E') > 1) return "more than one E: there is one embedding, at the very beginning";
  if (count('L') > 1) return "more than one L: there is one loss, at the very end";
  if (letters.front() != 'E') return "E must be the first letter: the embedding begins the first stage";
  if (letters.back() != 'L') return "L must be the last letter: the loss ends the last stage";
  const std::size_t module = letters.find('m'), layer = letters.rfind('t');
  if (module != std::string_view::npos && layer != std::string_view::npos && module < layer)
    return "an m before a t: what predicts further tokens comes after all layers";
  return {};
}

}  // namespace

std::int64_t PipelineLayout::layers() const {
  std::int64_t sum = 0;
  for (const Stage& stage : stages) sum += stage.layers;
  return sum;
}

std::int64_t PipelineLayout::further() const {
  std::int64_t sum = 0;
  for (const Stage& stage : stages) sum += stage.further;
  return sum;
}

std::string PipelineLayout::text() const {
  const auto letters = [&](std::size_t i) {
    std::string stage(static_cast<std::size_t>(stages[i].layers), 't');
    return stage.append(static_cast<std::size_t>(stages[i].further), 'm');
  };
  std::string text = "E";
  for (std::size_t i = 0; i < stages.size();) {
    std::size_t next = i + 1;
    // The first and the last stage join no run: the last has no separator behind it, the first an E before it.
    while (i > 0 && next + 1 < stages.size() && stages[next] == stages[i]) ++next;
    const std::string stage = letters(i) + (next < stages.size() ? "|" : "");
    text += next - i > 1 ? '(' + stage + ")*" + std::to_string(next - i) : stage;
    i = next;
  }
  return text + 'L';
}

tl::expected<PipelineLayout, std::string> read_layout(std::string_view text) {
  const auto letters = LayoutUnroller(text).run();
  if (!letters) return tl::unexpected(letters.error());
  if (std::string wrong = misplaced(*letters); !wrong.empty()) return tl::unexpected(std::move(wrong));
  PipelineLayout layout;
  layout.stages.emplace_back();
  for (const char c : *letters) {
    if (c == '|') layout.stages.emplace_back();
    if (c == 't') ++layout.stages.back().layers;
    if (c == 'm') ++layout.stages.back().further;
    if (layout.stages.size() > PipelineLayout::kMostStages)
      return tl::unexpected("more than " + std::to_string(PipelineLayout::kMostStages) + " stages");
  }
  return layout;
}

}  // namespace shardscape
