#include "results_schema/report/page.h"

#include <algorithm>
#include <span>
#include <utility>

#include "results_schema/report/page_parts.h"

namespace shardscape::report {

namespace {

using Marks = std::span<const std::pair<std::string_view, std::string_view>>;

/// A text with each of its marks replaced; marks within what takes their place have no effect.
std::string replaced(std::string_view rest, Marks marks) {
  std::string text;
  while (!rest.empty()) {
    const auto mark =
        std::ranges::find_if(marks, [&](const auto& one) { return rest.starts_with(one.first); });
    text += mark == marks.end() ? rest.substr(0, 1) : mark->second;
    rest.remove_prefix(mark == marks.end() ? 1 : mark->first.size());
  }
  return text;
}

}  // namespace

std::string escape_html(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kMarks[] = {
      {"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}, {"'", "&#39;"}};
  return replaced(text, kMarks);
}

std::string without_tags(std::string_view json) {
  static constexpr std::pair<std::string_view, std::string_view> kMarks[] = {{"<", "\\u003c"}};
  return replaced(json, kMarks);
}

std::string framed_page(const PageText& page) {
  const std::string title = escape_html(page.title), data = without_tags(page.data);
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{title}}", title},          {"{{style}}", page_style()},      {"{{own_style}}", page.style},
      {"{{body}}", page.body},       {"{{library}}", chart_library()}, {"{{data}}", data},
      {"{{shared}}", page_script()}, {"{{script}}", page.script}};
  return replaced(page_frame(), parts);
}

std::string html_page(std::string_view title, std::string_view data) {
  return framed_page({std::string(title), report_body(), report_script(), data});
}

std::string capacity_page(std::string_view title, std::string_view data) {
  return framed_page({std::string(title) + ": capacity", capacity_body(), capacity_script(), data});
}

std::string waterfall_page(std::string_view title, std::string_view data) {
  return framed_page({std::string(title), waterfall_body(), waterfall_script(), data});
}

}  // namespace shardscape::report
