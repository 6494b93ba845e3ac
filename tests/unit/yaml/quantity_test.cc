#include "sweep/yaml/quantity_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "sweep/yaml/number.h"

namespace shardscape::yaml {
namespace {

double good(std::string_view text, Dimension dimension) {
  const auto value = parse_quantity(text, dimension);
  EXPECT_TRUE(value.has_value()) << text << ": " << value.error();
  return value.value_or(std::numeric_limits<double>::quiet_NaN());
}

std::string bad(std::string_view text, Dimension dimension) {
  const auto value = parse_quantity(text, dimension);
  EXPECT_FALSE(value.has_value()) << text;
  return value ? std::string() : value.error();
}

bool mentions(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Quantity, DecimalAndBinaryPrefixesDiffer) {
  EXPECT_EQ(good("80 GB", Dimension::data), 80e9);
  EXPECT_EQ(good("80 GiB", Dimension::data), 80.0 * 1024 * 1024 * 1024);
  EXPECT_EQ(good("1 KiB", Dimension::data), 1024);
  EXPECT_EQ(good("1 kB", Dimension::data), 1000);
}

TEST(Quantity, BitsAreEighthsOfBytes) {
  EXPECT_EQ(good("400 Gb/s", Dimension::bandwidth), 50e9);
  EXPECT_EQ(good("400 GB/s", Dimension::bandwidth), 400e9);
  EXPECT_EQ(good("8 b", Dimension::data), 1);
}

TEST(Quantity, EveryDimension) {
  EXPECT_EQ(good("5 us", Dimension::time), 5e-6);
  EXPECT_EQ(good("5 \u00b5s", Dimension::time), 5e-6);
  EXPECT_EQ(good("0.25 ms", Dimension::time), 0.25e-3);
  EXPECT_EQ(good("1.41 GHz", Dimension::frequency), 1.41e9);
  EXPECT_EQ(good("312 TFLOP/s", Dimension::work_rate), 312e12);
  EXPECT_EQ(good("2 PFLOP", Dimension::work), 2e15);
  EXPECT_EQ(good("400 W", Dimension::power), 400);
}

TEST(Quantity, SpacesAndExponents) {
  EXPECT_EQ(good("5us", Dimension::time), 5e-6);
  EXPECT_EQ(good("  5   us ", Dimension::time), 5e-6);
  EXPECT_EQ(good("1e3 us", Dimension::time), 1e-3);
  EXPECT_EQ(good("1 EB", Dimension::data), 1e18);
  EXPECT_EQ(good("1EB", Dimension::data), 1e18);
}

TEST(Quantity, BareNumberShowsAnExample) {
  EXPECT_TRUE(mentions(bad("80", Dimension::data), "bare number"));
  EXPECT_TRUE(mentions(bad("80", Dimension::data), "80 GiB"));
  EXPECT_TRUE(mentions(bad("1e9", Dimension::bandwidth), "25 GB/s"));
}

TEST(Quantity, WrongDimensionNamesBoth) {
  const std::string message = bad("80 GiB", Dimension::bandwidth);
  EXPECT_TRUE(mentions(message, "an amount of data")) << message;
  EXPECT_TRUE(mentions(message, "a bandwidth is due")) << message;
}

TEST(Quantity, MisspeltUnitsGetSuggestions) {
  EXPECT_TRUE(mentions(bad("25 GBps", Dimension::bandwidth), "\"GB/s\""))
      << bad("25 GBps", Dimension::bandwidth);
  EXPECT_TRUE(mentions(bad("25 Gbps", Dimension::bandwidth), "\"Gb/s\""));
  EXPECT_TRUE(mentions(bad("312 TFLOPS", Dimension::work_rate), "\"TFLOP/s\""));
  EXPECT_TRUE(mentions(bad("80 gib", Dimension::data), "\"GiB\""));
  EXPECT_TRUE(mentions(bad("5 parsec", Dimension::time), "5 us"));
}

TEST(Quantity, RefusesWhatIsNoFiniteNumber) {
  for (const char* text :
       {"", "fast", "inf GB/s", "nan s", "0x10 GB", "1,000 GB", "1 2 GB", "--5 s", "1e999 s"}) {
    EXPECT_FALSE(parse_quantity(text, Dimension::data).has_value()) << text;
    EXPECT_FALSE(parse_quantity(text, Dimension::time).has_value()) << text;
  }
  EXPECT_TRUE(mentions(bad("1e308 EB", Dimension::data), "finite"));
}

TEST(Quantity, FormatPicksTheShortestExactUnit) {
  EXPECT_EQ(format_quantity(80.0 * (1 << 30), Dimension::data), "80 GiB");
  EXPECT_EQ(format_quantity(25e9, Dimension::bandwidth), "25 GB/s");
  EXPECT_EQ(format_quantity(5e-6, Dimension::time), "5 us");
  EXPECT_EQ(format_quantity(0, Dimension::time), "0 s");
}

TEST(Quantity, FormatParsesBackExactly) {
  constexpr unsigned kSeed = 7;
  SCOPED_TRACE(kSeed);
  std::mt19937_64 random(kSeed);
  std::uniform_real_distribution<double> exponent(-12, 18), mantissa(1, 10);
  for (int i = 0; i < 2000; ++i) {
    const double value = mantissa(random) * std::pow(10.0, exponent(random));
    for (const Dimension dimension :
         {Dimension::time, Dimension::data, Dimension::bandwidth, Dimension::frequency}) {
      EXPECT_EQ(good(format_quantity(value, dimension), dimension), value);
    }
  }
}

TEST(Number, IntegersAreExactAndInRange) {
  EXPECT_EQ(parse_integer("4096", 1, 10000).value(), 4096);
  EXPECT_EQ(parse_integer("1e6", 1, 2000000).value(), 1000000);
  EXPECT_EQ(parse_integer("-3", -5, 5).value(), -3);
  for (const char* text :
       {"1.5", "1.5e0", "abc", "", "12x", "0x10", "1e400", "99999999999999999999", "11", "-1", "inf"}) {
    EXPECT_FALSE(parse_integer(text, 0, 10).has_value()) << text;
  }
  EXPECT_TRUE(mentions(parse_integer("11", 0, 10).error(), "from 0 to 10"));
  EXPECT_TRUE(mentions(parse_integer("99999999999999999999", 0, 10).error(), "from 0 to 10"));
}

TEST(Number, NumbersAreFinite) {
  EXPECT_EQ(parse_number("0.85").value(), 0.85);
  EXPECT_EQ(parse_number("+1e-6").value(), 1e-6);
  for (const char* text : {".inf", "-inf", "nan", ".NaN", "1e999"}) {
    ASSERT_FALSE(parse_number(text).has_value()) << text;
    EXPECT_TRUE(mentions(parse_number(text).error(), "finite")) << text;
  }
  for (const char* text : {"", "+", "+-1", "1.2.3", "85 %"})
    EXPECT_FALSE(parse_number(text).has_value()) << text;
}

}  // namespace
}  // namespace shardscape::yaml
