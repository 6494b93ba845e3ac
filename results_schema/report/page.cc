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

std::string html_page(std::string_view title, std::string_view data) {
  const std::string safe_title = escape_html(title);
  const std::array<std::pair<std::string_view, std::string_view>, 5> parts = {
      {{"{{title}}", safe_title},
       {"{{style}}", page_style()},
       {"{{library}}", chart_library()},
       {"{{data}}", data},
       {"{{script}}", page_script()}}};
  // The template is walked once, so that marks within the inserted texts have no effect.
  std::string page;
  std::string_view rest = page_template();
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

}  // namespace shardscape::report
