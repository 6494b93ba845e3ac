// The files of page/ and the chart library as texts that were embedded when the program was built, by
// scripts/cmake/EmbedText.cmake.
#pragma once

#include <string_view>

namespace shardscape::report {

std::string_view page_template();       ///< page.html
std::string_view page_style();          ///< report.css
std::string_view page_script();         ///< the scripts, in order
std::string_view capacity_template();   ///< capacity.html
std::string_view capacity_script();     ///< its scripts
std::string_view waterfall_template();  ///< waterfall.html
std::string_view waterfall_script();    ///< its scripts
std::string_view chart_library();       ///< Chart.js, minified, with its licence comments

}  // namespace shardscape::report
