// Is a plain list of maps, which is read without yaml-cpp, read as yaml-cpp reads it? The same text with a blank
// behind its key takes the long way. Random lists, and lists of which random characters are changed.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "engine/base/counter_rng.h"
#include "sweep/yaml/node.h"
#include "tests/support/seeds.h"

namespace shardscape::yaml {
namespace {

void expect_equal(const Node& one, const Node& other) {
  EXPECT_EQ(one.kind, other.kind);
  EXPECT_EQ(one.text, other.text);
  EXPECT_EQ(one.quoted, other.quoted);
  EXPECT_EQ(one.flow, other.flow);
  if (one.kind != Node::Kind::null) {  // yaml-cpp places what is empty at what follows
    EXPECT_EQ(to_string(one.where), to_string(other.where));
  }
  ASSERT_EQ(one.items.size(), other.items.size());
  ASSERT_EQ(one.entries.size(), other.entries.size());
  for (std::size_t i = 0; i < one.items.size(); ++i) expect_equal(one.items[i], other.items[i]);
  for (std::size_t i = 0; i < one.entries.size(); ++i) {
    EXPECT_EQ(one.entries[i].key, other.entries[i].key);
    EXPECT_EQ(to_string(one.entries[i].key_where), to_string(other.entries[i].key_where));
    expect_equal(one.entries[i].value, other.entries[i].value);
  }
}

class Lists {
 public:
  explicit Lists(std::uint64_t seed) : random_(seed, 0) {}

  std::size_t below(std::size_t n) { return static_cast<std::size_t>(random_.below(n)); }
  std::string text() {
    std::string text;
    for (std::size_t i = below(3); i > 0; --i) text += "# a remark: of {what} follows\n";
    text += pick({"regimes", "a", "b_2"}) + ":\n";
    for (std::size_t i = 1 + below(4); i > 0; --i) {
      text += "  - {";
      for (std::size_t k = 1 + below(4); k > 0; --k)
        text += pick({"phase", "gpus_low", "k", "x-y", "1"}) + ": " +
                pick({"training", "-0.5", "a100-sxm-80gb", "1e-3", "true", "null", "-", "-x", "~", ".5",
                      "NULL", "2024-01-01", "0x1F", "_", "\"q\"", "nan"}) +
                (k > 1 ? ", " : "");
      text += "}\n";
    }
    return text;
  }
  std::string changed(std::string text) {
    constexpr std::string_view kCharacters = "{}[],:-#&*!|>'\"%@` \n\tax1.~?";
    for (std::size_t i = below(3); i > 0; --i) {
      const std::size_t at = below(text.size());
      const char character = kCharacters[below(kCharacters.size())];
      below(2) == 0 ? text.insert(at, 1, character) : text.replace(at, 1, 1, character);
    }
    return text;
  }

 private:
  std::string pick(std::initializer_list<const char*> of) { return of.begin()[below(of.size())]; }
  CounterRng random_;
};

TEST(PlainList, IsReadLikeAnyOtherText) {
  int read = 0;
  for (std::uint64_t seed = 1; seed <= test::seeds(20'000); ++seed) {
    Lists lists(seed);
    std::string text = lists.changed(lists.text());
    if (!text.ends_with('\n')) text += '\n';
    SCOPED_TRACE(text);
    Diagnostics problems, others;
    const std::size_t key = text.find(":\n");
    if (key == std::string::npos) continue;
    const std::string longer = text.substr(0, key + 1) + ' ' + text.substr(key + 1);
    const std::optional<Node> node = parse(text, "f", problems), other = parse(longer, "f", others);
    ASSERT_EQ(node.has_value(), other.has_value()) << problems.to_string() << others.to_string();
    if (!node) continue;
    expect_equal(*node, *other);
    ++read;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_GE(read, test::at_least(5'000));
}

}  // namespace
}  // namespace shardscape::yaml
