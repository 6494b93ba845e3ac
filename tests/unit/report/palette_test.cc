// Can the colours of the page be told from their ground, in both colour schemes?
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>
#include <string>

#include "results_schema/report/page_parts.h"

namespace shardscape::report {
namespace {

using Scheme = std::map<std::string, std::string>;  // "--mark" -> "d1242f"

/// The colours of the first block that begins with `head`.
Scheme colours_after(const std::string& head) {
  const std::string style(page_style());
  const std::size_t begin = style.find(head);
  EXPECT_NE(begin, std::string::npos) << head;
  const std::string block = style.substr(begin, style.find('}', begin) - begin);
  static const std::regex kColour("(--[a-z0-9-]+): #([0-9a-f]{6});");
  Scheme scheme;
  for (std::sregex_iterator at(block.begin(), block.end(), kColour), end; at != end; ++at)
    scheme[(*at)[1]] = (*at)[2];
  return scheme;
}

/// WCAG 2.2, "relative luminance": of sRGB with the channels' weights of Rec. 709.
double luminance(const std::string& colour) {
  constexpr std::array<double, 3> kWeights = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (std::size_t i = 0; i < kWeights.size(); ++i) {
    const double share = std::stoi(colour.substr(2 * i, 2), nullptr, 16) / 255.0;
    sum += kWeights[i] * (share <= 0.04045 ? share / 12.92 : std::pow((share + 0.055) / 1.055, 2.4));
  }
  return sum;
}

/// WCAG 2.2, "contrast ratio", from 1 to 21.
double contrast(const std::string& a, const std::string& b) {
  const auto [dark, light] = std::minmax({luminance(a), luminance(b)});
  return (light + 0.05) / (dark + 0.05);
}

TEST(ContrastRatio, AgreesWithKnownPairs) {
  EXPECT_NEAR(contrast("000000", "ffffff"), 21, 1e-12);
  EXPECT_NEAR(contrast("777777", "ffffff"), 4.48, 0.005);  // the well-known grey that just fails 4.5
  EXPECT_NEAR(contrast("ff0000", "ffffff"), 1.05 / (0.2126 + 0.05), 1e-12);
}

TEST(Palette, StandsOutFromTheGroundInBothSchemes) {
  const Scheme light = colours_after(":root {"), dark = colours_after(":root:not([data-look=\"print\"]) {");
  ASSERT_EQ(light.size(), dark.size());
  ASSERT_GE(light.size(), 25U);
  for (const Scheme* scheme : {&light, &dark}) {
    const std::string name = scheme == &light ? "light " : "dark ";
    int markers = 0;
    for (const std::string& ground : {scheme->at("--ground"), scheme->at("--card")}) {
      for (const auto& [key, colour] : *scheme) {
        const bool marker = key.starts_with("--hue-") || key.starts_with("--ramp-") || key == "--edge";
        const bool text =
            key == "--ink" || key == "--dim" || key == "--accent" || key == "--mark" || key == "--better";
        // 1.4.11 (graphics) and 1.4.3 (text).
        if (!marker && !text) continue;
        EXPECT_GE(contrast(colour, ground), text ? 4.5 : 3.0) << name << key << " on " << ground;
        markers += marker ? 1 : 0;
      }
    }
    EXPECT_EQ(markers, 2 * (10 + 5 + 1));
    EXPECT_GE(contrast(scheme->at("--warn-ink"), scheme->at("--warn-ground")), 4.5) << name;
  }
}

TEST(Palette, ColoursBetweenThoseOfTheRampStandOutToo) {
  // rampColour() mixes neighbours channel by channel.
  const auto mixed = [](const std::string& a, const std::string& b, double share) {
    std::string colour;
    for (std::size_t i = 0; i < 6; i += 2) {
      const double from = std::stoi(a.substr(i, 2), nullptr, 16), to = std::stoi(b.substr(i, 2), nullptr, 16);
      std::array<char, 3> digits{};
      std::snprintf(digits.data(), digits.size(), "%02x",
                    static_cast<unsigned>(std::lround(from + share * (to - from))));
      colour += digits.data();
    }
    return colour;
  };
  for (const char* head : {":root {", ":root:not([data-look=\"print\"]) {"}) {
    const Scheme scheme = colours_after(head);
    for (int i = 0; i < 4; ++i) {
      const std::string from = scheme.at("--ramp-" + std::to_string(i)),
                        to = scheme.at("--ramp-" + std::to_string(i + 1));
      for (const double share : {0.25, 0.5, 0.75})
        EXPECT_GE(contrast(mixed(from, to, share), scheme.at("--card")), 3.0) << head << i << " " << share;
    }
  }
}

}  // namespace
}  // namespace shardscape::report
