// The page: one HTML document that needs nothing but a browser.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace shardscape::report {

/// Puts the data (see report_json()) into the template of the page. `title` is plain text.
std::string html_page(std::string_view title, std::string_view data);

/// The page of `capacity`, from its JSON document with all points that were simulated (sweep/cli/reports).
std::string capacity_page(std::string_view title, std::string_view data);

/// The page of `compare`, from its JSON document (sweep/cli/reports).
std::string waterfall_page(std::string_view title, std::string_view data);

/// A page with its marks ("{{title}}") replaced; marks within the texts that take their place have no effect.
std::string filled(std::string_view page,
                   std::span<const std::pair<std::string_view, std::string_view>> parts);

/// JSON with its '<' escaped, which occurs only within strings.
std::string without_tags(std::string_view json);

/// Escapes plain text for use as content or attribute value in HTML.
std::string escape_html(std::string_view text);

}  // namespace shardscape::report
