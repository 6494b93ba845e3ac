// The page itself: one HTML document that needs nothing but a browser.
#pragma once

#include <string>
#include <string_view>

namespace shardscape::report {

/// Puts the data (see report_json()) into the page. `title` is plain text.
std::string html_page(std::string_view title, std::string_view data);

/// Plain text as content or attribute value of HTML.
std::string escape_html(std::string_view text);

}  // namespace shardscape::report
