// Does text from outside reach a terminal, a spreadsheet and a JSON reader as text and nothing else?
#include "engine/base/safe_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace shardscape {
namespace {

TEST(SafeText, TerminalsAreShownControlCharactersAndDoNotObeyThem) {
  EXPECT_EQ(printable("plain text, 5 \u00b5s"), "plain text, 5 \u00b5s");
  EXPECT_EQ(printable("a\x1b[31mred"), "a\\x1b[31mred");
  EXPECT_EQ(printable("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(printable(std::string("nul\0bel\a\x7f", 9)), "nul\\x00bel\\x07\\x7f");
  EXPECT_EQ(printable("next\u0085line, C1 \u009b1m"), "next\\u0085line, C1 \\u009b1m");
  EXPECT_EQ(printable("right-to-left \u202e, isolate \u2066, hidden \u200b, mark \ufeff"),
            "right-to-left \\u202e, isolate \\u2066, hidden \\u200b, mark \\ufeff");
}

TEST(SafeText, BytesThatAreNoUtf8AreShownAsBytes) {
  EXPECT_EQ(printable("sm\xff\xfe"), "sm\\xff\\xfe");
  EXPECT_EQ(printable("cut \xe2\x82"), "cut \\xe2\\x82");            // a character without its end
  EXPECT_EQ(printable("overlong \xc0\xaf"), "overlong \\xc0\\xaf");  // '/' in two bytes
  EXPECT_EQ(printable("surrogate \xed\xa0\x80"), "surrogate \\xed\\xa0\\x80");
  EXPECT_FALSE(is_utf8("\xf5\x80\x80\x80"));  // beyond U+10FFFF
  EXPECT_TRUE(is_utf8("\xf4\x8f\xbf\xbf"));   // U+10FFFF
}

TEST(SafeText, PrintableTextStaysAsItIs) {
  const std::string once = printable("a\x1b\n\xff\u202e\\n");
  EXPECT_EQ(printable(once), once);
}

TEST(SafeText, EchoesEndAfterTwoHundredCharacters) {
  EXPECT_EQ(echo(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(echo(std::string(201, 'x')), std::string(200, 'x') + "... (201 characters)");
  // Characters are counted, not bytes, and none is cut in two.
  std::string umlauts;
  for (int i = 0; i < 300; ++i) umlauts += "\u00fc";
  EXPECT_EQ(echo(umlauts), umlauts.substr(0, 400) + "... (300 characters)");
}

TEST(SafeText, MessagesAreOneLineAndCutWhatTheyRepeat) {
  EXPECT_EQ(message_line("--set can't be \"a\nstudy.yaml:1:1: forged\""),
            "--set can't be \"a\\nstudy.yaml:1:1: forged\"");
  const std::string word(3000, 'y');
  const std::string cut = word.substr(0, 200) + "... (3000 characters)";
  EXPECT_EQ(message_line("unknown model \"" + word + "\"; available: b"),
            "unknown model \"" + cut + "\"; available: b");
  EXPECT_EQ(message_line("no column '" + word + "' here"), "no column '" + cut + "' here");
  EXPECT_EQ(message_line(word + ": no such file"), cut + ": no such file");
  EXPECT_EQ(message_line("--set a=\"" + word + "\": it's wrong"), "--set a=\"" + cut + "\": it's wrong");
  // Whatever gets past that, a message ends: ten thousand words of one letter.
  std::string words;
  for (int i = 0; i < 10000; ++i) words += "z ";
  EXPECT_LE(message_line(words).size(), kLongestMessage + 30);
  // Lists of every column are longer than an echo and stay whole.
  std::string list = "columns: ";
  for (int i = 0; i < 100; ++i) list += "tensor_parallel, ";
  EXPECT_EQ(message_line(list), list);
}

TEST(Csv, CellsAreQuotedOnlyWhereTheyMustBe) {
  EXPECT_EQ(csv_cell("plain"), "plain");
  EXPECT_EQ(csv_cell(""), "");
  EXPECT_EQ(csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_cell("say \"hi\""), "\"say \"\"hi\"\"\"");
  EXPECT_EQ(csv_cell("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, SpreadsheetsRunNoNames) {
  EXPECT_EQ(csv_cell("=HYPERLINK(\"x\")"), "\"'=HYPERLINK(\"\"x\"\")\"");
  EXPECT_EQ(csv_cell("+cmd|' /C calc'!A0"), "\"'+cmd|' /C calc'!A0\"");
  EXPECT_EQ(csv_cell("-2+3"), "\"'-2+3\"");
  EXPECT_EQ(csv_cell("@SUM(1)"), "\"'@SUM(1)\"");
  EXPECT_EQ(csv_cell("\t=1"), "\"'\t=1\"");
  EXPECT_EQ(csv_cell("\r=1"), "\"'\r=1\"");
  // Numbers are what a table is for.
  for (const char* number : {"-1.5", "+2", "-3e-7", "-inf"}) EXPECT_EQ(csv_cell(number), number);
}

TEST(SafeText, JsonTakesAnyBytes) {
  const nlohmann::json document = {{"name", "sm\xff"}};
  EXPECT_THROW((void)document.dump(), nlohmann::json::exception);
  EXPECT_EQ(json_text(document), "{\"name\":\"sm\ufffd\"}");
  EXPECT_EQ(json_text(nlohmann::json::array({1}), 1), "[\n 1\n]");
}

}  // namespace
}  // namespace shardscape
