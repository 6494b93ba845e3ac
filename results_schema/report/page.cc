#include "results_schema/report/page.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/base/check.h"
#include "results_schema/report/page_parts.h"

namespace shardscape::report {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string framed_page(const PageText& page) {
  const std::string title = escape_html(page.title), data = without_tags(page.data);
  const std::pair<std::string_view, std::string_view> parts[] = {
      {"{{title}}", title},          {"{{style}}", page_style()},      {"{{own_style}}", page.style},
      {"{{body}}", page.body},       {"{{library}}", chart_library()}, {"{{data}}", data},
      {"{{shared}}", page_script()}, {"{{script}}", page.script}};
  std::string whole;
  std::string_view rest = page_frame();
  while (!rest.empty()) {
    const std::size_t at = rest.find("{{");
    whole += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at);
    const auto mark =
        std::ranges::find_if(parts, [&](const auto& part) { return rest.starts_with(part.first); });
    SHARDSCAPE_CHECK(mark != std::end(parts), "a mark of the frame that has no text", rest.size());
    whole += mark->second;
    rest.remove_prefix(mark->first.size());
  }
  return whole;
}

std::string without_tags(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
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
