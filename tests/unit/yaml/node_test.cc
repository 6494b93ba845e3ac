// Is YAML text parsed into nodes with their places, are errors located, and are texts refused that no study needs?
#include "sweep/yaml/node.h"

#include <gtest/gtest.h>

#include "sweep/yaml/closest_names.h"
#include "tests/unit/yaml/problems_of.h"

namespace shardscape::yaml {
namespace {

Node good(const std::string& text) {
  Diagnostics diagnostics;
  auto node = parse(text, "f", diagnostics);
  EXPECT_TRUE(node.has_value()) << diagnostics.to_string();
  return node.value_or(Node());
}

Diagnostics bad(const std::string& text) {
  Diagnostics diagnostics;
  EXPECT_FALSE(parse(text, "f", diagnostics).has_value());
  return diagnostics;
}

TEST(Node, KeysAndValuesHaveTheirPlaces) {
  const Node node = good("a: 1\nb:\n  - x\n  - {c: \"y\"}\n");
  ASSERT_EQ(node.entries.size(), 2U);
  EXPECT_EQ(to_string(node.entries[1].key_where), "f:2:1");
  EXPECT_EQ(to_string(node.find("a")->where), "f:1:4");
  const Node& inner = node.find("b")->items.at(1);
  EXPECT_EQ(to_string(inner.entries.front().key_where), "f:4:6");
  EXPECT_EQ(to_string(inner.find("c")->where), "f:4:9");
  EXPECT_TRUE(inner.find("c")->quoted);
  EXPECT_FALSE(node.find("a")->quoted);
}

TEST(Node, DuplicateKeysAreKept) {
  const Node node = good("a: 1\na: 2\n");
  ASSERT_EQ(node.entries.size(), 2U);
  EXPECT_EQ(node.entries[1].value.text, "2");
  EXPECT_EQ(node.find("a")->text, "1");
}

TEST(Node, AliasesAreCopiesAtTheirOwnPlace) {
  const Node node = good("a: &x [1, 2]\nb: *x\n");
  ASSERT_NE(node.find("b"), nullptr);
  EXPECT_EQ(node.find("b")->items.size(), 2U);
}

TEST(Node, SyntaxErrorsAreLocated) {
  EXPECT_TRUE(reports(bad("a: 1\nb: [1, 2\n"), "f:3:1", "not valid YAML"));
  EXPECT_TRUE(reports(bad("a: b: c\n"), "f:1:5", "not valid YAML"));
  EXPECT_TRUE(reports(bad("a: *nowhere\n"), "f:1:4", "not valid YAML"));
}

TEST(Node, SlipsOfTheKeyboardAreCalledByTheirNames) {
  EXPECT_TRUE(reports(bad("a: 1\nb: \"x\nc: 2\n"), "f:2:4", "a quote is never closed"));
  EXPECT_TRUE(reports(bad("a: 'it''s\n"), "f:1:4", "a quote is never closed"));
  EXPECT_EQ(good("a: 'it''s'\nb: \"say \\\"hi\\\"\"\n").find("a")->text, "it's");
  EXPECT_TRUE(reports(bad("a:\n\tb: 1\n"), "f:2:1", "a tab can't indent"));
  EXPECT_TRUE(reports(bad("a: b: c\n"), "f:1:5", "belongs in quotes"));
}

TEST(Node, NestingHasALimitAndSaysSo) {
  // The map is the first of 64, the bracket in column 4 the second.
  const std::string deep = "a: " + std::string(70, '[') + std::string(70, ']') + "\n";
  EXPECT_TRUE(reports(bad(deep), "f:1:67", "nested more than 64 deep"));
  EXPECT_TRUE(bad("a: " + std::string(5000, '[')).to_string().find("nested more than 64 deep") !=
              std::string::npos);
  std::string closed = "a: " + std::string(63, '[') + std::string(63, ']') + "\n";
  EXPECT_TRUE(good(closed).is_map());
}

TEST(Node, BytesThatAreNoTextAreLocated) {
  EXPECT_TRUE(reports(bad(std::string("a: 1\nb: x\0y\n", 12)), "f:2:5", "\\x00 is a control character"));
  EXPECT_TRUE(reports(bad("a: caf\xe9\n"), "f:1:7", "\\xe9 is no UTF-8"));
  EXPECT_TRUE(reports(bad("a: \x1b[31m\n"), "f:1:4", "\\x1b is a control character"));
  EXPECT_TRUE(reports(bad("a: \"\\e[31m\"\n"), "f:1:4", "can't hold the control character \\x1b"));
  EXPECT_TRUE(reports(bad("a: \"\\0\"\n"), "f:1:4", "can't hold the control character \\x00"));
  EXPECT_EQ(good("a: \"two\\nlines\\tand caf\u00e9\"\n").find("a")->text, "two\nlines\tand caf\u00e9");
}

TEST(Node, RefusesWhatAStudyNeverNeeds) {
  EXPECT_TRUE(reports(bad(""), "f:1:1", "empty"));
  EXPECT_TRUE(reports(bad("# only a remark\n"), "f:1:1", "empty"));
  EXPECT_TRUE(reports(bad("a: 1\n---\nb: 2\n"), "f:2:1", "second one"));
  EXPECT_TRUE(reports(bad("a: !!int 1\n"), "f:1:4", "tags"));
  EXPECT_TRUE(reports(bad("? [a, b]\n: 1\n"), "f:1:3", "key must be plain text"));
}

TEST(Node, ExponentialAliasesAreCutShort) {
  std::string text = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 0; j < 9; ++j) text += ", " + before;
    text += "]\n";
  }
  EXPECT_NE(bad(text).to_string().find("million"), std::string::npos);
}

TEST(Node, DeepNestingIsRefusedNotFatal) {
  EXPECT_EQ(bad(std::string(20000, '[')).size(), 1U);
  std::string map;
  for (int i = 0; i < 2000; ++i) map += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  EXPECT_EQ(bad(map).size(), 1U);
}

TEST(Node, EmitParsesBack) {
  Node node = Node::map();
  const std::vector<std::string> texts = {"plain", "two words",   "",         "null",      "~",      "-",
                                          "- x",   "a: b",        "# no",     "x # y",     "[1]",    "{a}",
                                          "\"q\"", "back\\slash", "tab\tbed", "line\nend", " lead",  "end ",
                                          "tp<=4", "\u00b5s",     "---",      "true",      "80 GiB", "*x",
                                          "&x",    "!x",          "%x",       "@x"};
  Node list = Node::list();
  for (const std::string& text : texts) list.items.push_back(Node::scalar(text));
  Node flow = list;
  flow.flow = true;
  Node inner = Node::map();
  inner.set("deep", list);
  inner.set("strange: key", Node::scalar("v"));
  Node maps = Node::list({inner, Node::map(), Node::list()});
  node.set("list", list);
  node.set("flow", flow);
  node.set("maps", maps);
  const std::string text = emit(node);
  const Node back = good(text);
  EXPECT_EQ(emit(back), emit(good(emit(back))));
  for (const char* key : {"list", "flow"}) {
    ASSERT_NE(back.find(key), nullptr);
    ASSERT_EQ(back.find(key)->items.size(), texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(back.find(key)->items[i].text, texts[i]);
  }
  const Node& first = back.find("maps")->items.at(0);
  EXPECT_EQ(first.find("deep")->items.size(), texts.size());
  EXPECT_EQ(first.find("strange: key")->text, "v");
}

TEST(Suggest, FarNamesAreListedInstead) {
  const std::vector<std::string> names = {"hidden", "heads", "layers"};
  EXPECT_EQ(suggestion("hiden", names, "keys"), "; did you mean \"hidden\"?");
  EXPECT_EQ(suggestion("HIDDEN", names, "keys"), "; did you mean \"hidden\"?");
  EXPECT_EQ(suggestion("zzz", names, "keys"), "; known keys: hidden, heads, layers");
  EXPECT_EQ(suggestion("x", {}, "keys"), "");
  const std::vector<std::string> clusters = {"dgx-a100", "dgx-h100", "gb200-nvl72"};
  EXPECT_EQ(suggestion("h100", clusters, "clusters"), "; did you mean \"dgx-h100\"?");
}

TEST(Suggest, PathsOfOneLastKeyAreToldApartOrAllNamed) {
  const std::vector<std::string> paths = {"device.l2.capacity", "device.hbm.capacity", "device.clock"};
  EXPECT_EQ(same_key("hbm.capacity", paths), "device.hbm.capacity");
  EXPECT_EQ(same_key("stack.capacity", paths), "device.l2.capacity\" or \"device.hbm.capacity");
  EXPECT_EQ(same_key("stack.clock", paths), "device.clock");
  EXPECT_EQ(same_key("stack.speed", paths), "");
}

TEST(Diagnostics, SortsByPlaceAndDropsRepeats) {
  const auto file = std::make_shared<const std::string>("a.yaml");
  Diagnostics diagnostics;
  diagnostics.add({file, 3, 1}, "x", "late");
  diagnostics.add({file, 2, 9}, "y", "early");
  diagnostics.add({file, 3, 1}, "x", "late");
  diagnostics.sort();
  EXPECT_EQ(diagnostics.to_string(), "a.yaml:2:9: y: early\na.yaml:3:1: x: late\n");
}

}  // namespace
}  // namespace shardscape::yaml
