#include "results_schema/report/page.h"

#include <array>
#include <utility>

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

std::string filled(std::string_view rest,
                   std::span<const std::pair<std::string_view, std::string_view>> parts) {
  std::string page;
  while (!rest.empty()) {
    const std::size_t at = rest.find("{{");
    page += rest.substr(0, at);
    if (at == std::string_view::npos) break;
    rest.remove_prefix(at);
    bool known = false;
    for (const auto& [mark, text] : parts) {
      if (!rest.starts_with(mark)) continue;
      page += text;
      rest.remove_prefix(mark.size());
      known = true;
      break;
    }
    if (!known) page += rest.front(), rest.remove_prefix(1);
  }
  return page;
}

namespace {

std::string page_of(std::string_view page, std::string_view script, std::string_view title,
                    std::string_view data) {
  const std::string safe_title = escape_html(title);
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {
      {{"{{title}}", safe_title},
       {"{{style}}", page_style()},
       {"{{library}}", chart_library()},
       {"{{data}}", data},
       {"{{script}}", script}}};
  return filled(page, parts);
}

}  // namespace

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
  return page_of(page_template(), page_script(), title, data);
}

std::string capacity_page(std::string_view title, std::string_view data) {
  return page_of(capacity_template(), capacity_script(), title, without_tags(data));
}

std::string waterfall_page(std::string_view title, std::string_view data) {
  return page_of(waterfall_template(), waterfall_script(), title, without_tags(data));
}

}  // namespace shardscape::report
