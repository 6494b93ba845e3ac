// The files of page/ and the chart library as texts that were embedded when the program was built, by
// scripts/cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace shardscape::report {

std::string_view page_frame();   ///< frame.html, which all pages have
std::string_view page_style();   ///< report.css
std::string_view page_script();  ///< the scripts of all pages
std::string_view report_body();
std::string_view report_script();
std::string_view capacity_body();
std::string_view capacity_script();
std::string_view waterfall_body();
std::string_view waterfall_script();
std::string_view chart_library();  ///< Chart.js, minified, with its licence comments

}  // namespace shardscape::report
