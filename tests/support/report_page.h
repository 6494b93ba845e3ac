// Reads what a page of `shardscape report` contains.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace shardscape::test {

/// The data inside a page.
inline nlohmann::json page_data(const std::string& html) {
  const std::string open = "<script id=\"data\" type=\"application/json\">";
  const std::size_t begin = html.find(open), end = html.find("</script>", begin);
  EXPECT_NE(begin, std::string::npos);
  return nlohmann::json::parse(html.substr(begin + open.size(), end - begin - open.size()));
}

}  // namespace shardscape::test
