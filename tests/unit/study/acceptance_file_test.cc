// Are shares of accepted drafts those of a table of lengths, and are its faults told with their line?
#include "sweep/study/study_parts.h"

#include <gtest/gtest.h>

namespace shardscape::sweep {
namespace {

using Shares = std::vector<double>;

/// InferenceX's acceptance of DeepSeek-V4-Pro's own module (golden_al_distribution), thinking on and off, and a line
/// with a comma in quotes.
constexpr const char* kTable =
    "model,method,\"note, quoted\",mode,draft_tokens,acceptance_length\n"
    "v4,MTP,\"a, b\",on,1,1.79\n"
    "v4,MTP,,on,2,2.27\n"
    "v4,MTP,,off,1,1.92\n"
    "v4,MTP,,on,3,2.49\n";

void expect_near(const tl::expected<Shares, std::string>& found, const Shares& shares) {
  ASSERT_TRUE(found) << found.error();
  ASSERT_EQ(found->size(), shares.size());
  for (std::size_t i = 0; i < shares.size(); ++i) EXPECT_NEAR((*found)[i], shares[i], 1e-12) << i;
}

TEST(AcceptanceTable, SharesAreDifferencesOfLengths) {
  expect_near(parse_acceptance(kTable, {"v4", "MTP", "on"}), {0.79, 0.48, 0.22});
  expect_near(parse_acceptance(kTable, {"v4", "", "off"}), {0.92});
}

TEST(AcceptanceTable, LengthsScatter) {
  expect_near(
      parse_acceptance("model,draft_tokens,acceptance_length\nm,1,1.2\nm,2,1.6\nm,3,1.5\n", {"m", "", ""}),
      {0.2, 0.2, 0});
  expect_near(parse_acceptance("model,draft_tokens,acceptance_length\nm,1,1.4\nm,1,1.6\n", {"m", "", ""}),
              {0.5});
}

TEST(AcceptanceTable, SaysWhatThereIsInstead) {
  const auto error = [](const AcceptanceSeries& series) {
    const auto found = parse_acceptance(std::string(kTable) + "v5,MTP,,on,1,1.5\n", series);
    return found ? "" : found.error();
  };
  EXPECT_EQ(error({"v4", "mtp", "on"}), "has no line with method mtp, but with MTP");
  EXPECT_EQ(error({"", "", "on"}), "has lines of v4, v5: say which `model`");
  EXPECT_EQ(error({"", "", "off"}), "") << "of one model";
  EXPECT_EQ(error({"v5", "", "off"}), "has no line of that model, method and mode");
}

TEST(AcceptanceTable, IsAsSpreadsheetsWriteIt) {
  expect_near(parse_acceptance("\xEF\xBB\xBF\r\n\nmodel,draft_tokens,acceptance_length\r\nm,1,1.4\r\n",
                               {"m", "", ""}),
              {0.4});
}

TEST(AcceptanceTable, SaysWhatIsWrongAndWhere) {
  const auto says = [](const char* text, const std::string& what) {
    const auto found = parse_acceptance(text, {"m", "", ""});
    ASSERT_FALSE(found) << what;
    EXPECT_NE(found.error().find(what), std::string::npos) << found.error();
  };
  says("model,draft_tokens\nm,1\n", "line 1: needs the column acceptance_length");
  says("model,draft_tokens,acceptance_length\nm,0,1\n", "line 2: draft_tokens");
  says("model,draft_tokens,acceptance_length\nm,1,2.5\n", "line 2: acceptance_length must be from 1 to 2");
  says("model,draft_tokens,acceptance_length\nm,2,2.5\n", "has no length with 1 draft tokens");
  says("model,draft_tokens,acceptance_length\nother,1,1.5\n", "has no line with model m, but with other");
  says("model,draft_tokens,acceptance_length\n", "has no lines");
  EXPECT_EQ(parse_acceptance("model,draft_tokens,acceptance_length\nm,1,1.5\n", {"m", "mtp", ""}).error(),
            "has no method");
}

TEST(AcceptanceTable, TellsOfMeans) {
  constexpr const char* kTwice = "model,draft_tokens,acceptance_length\nm,1,1.2\nm,1,1.6\nm,2,1.7\n";
  std::string means;
  expect_near(parse_acceptance(kTwice, {"m", "", ""}, &means), {0.4, 0.3});
  EXPECT_EQ(means,
            "means of up to 2 lines with the same number of draft tokens; no model, method or mode tells "
            "them apart");
  // Only columns that tell lines apart are worth naming.
  expect_near(parse_acceptance(kTable, {"v4", "", ""}, &means), {0.855, 0.415, 0.22});
  EXPECT_EQ(means, "means of up to 2 lines with the same number of draft tokens; name mode to choose lines");
  means.clear();
  expect_near(parse_acceptance(kTable, {"v4", "MTP", "on"}, &means), {0.79, 0.48, 0.22});
  EXPECT_EQ(means, "");
}

}  // namespace
}  // namespace shardscape::sweep
