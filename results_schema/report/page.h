// The page: one HTML document that needs nothing but a browser.
#pragma once

#include <string>
#include <string_view>

namespace shardscape::report {

/// Puts the data (see report_json()) into the template of the page. `title` is plain text.
std::string html_page(std::string_view title, std::string_view data);

/// The page of `capacity`, from its JSON document with all points that were simulated (sweep/cli/reports).
std::string capacity_page(std::string_view title, std::string_view data);

/// The page of `compare`, from its JSON document (sweep/cli/reports).
std::string waterfall_page(std::string_view title, std::string_view data);

/// What a page has of its own, within the frame of all pages (page/frame.html).
struct PageText {
  std::string title;              ///< plain text
  std::string_view body, script;  ///< HTML; what comes behind the scripts of all pages
  std::string_view data;          ///< JSON
  std::string_view style = {};    ///< what it adds to the style of all pages
};
/// The whole page; marks such as "{{title}}" within its texts have no effect.
std::string framed_page(const PageText& page);

/// JSON with its '<' escaped, which occurs only within strings.
std::string without_tags(std::string_view json);

/// Escapes plain text for use as content or attribute value in HTML.
std::string escape_html(std::string_view text);

}  // namespace shardscape::report
