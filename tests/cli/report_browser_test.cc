// Does a real browser show the report? Skipped where there is none.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "tests/cli/program_under_test.h"

namespace shardscape::cli {
namespace {

/// The first browser of the Chromium family on the path; nothing where there is none.
std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    const std::string find = "command -v " + std::string(name) + " > /dev/null 2>&1";
    if (std::system(find.c_str()) == 0) return name;
  }
  return "";
}

class ReportBrowserTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (browser().empty()) GTEST_SKIP() << "no Chromium on the path";
  }
  /// The document as the page's scripts leave it; fails where one of them fails.
  std::string shown(const std::string& study) {
    write("study.yaml", study);
    EXPECT_EQ(run({"sweep", "study.yaml", "-o", "out.h5", "--progress", "none"}).code, 0);
    EXPECT_EQ(run({"report", "out.h5", "-o", "page.html"}).code, 0);
    const std::string folder = work().string();
    const std::string command =
        "timeout 120 " + browser() +
        " --headless --no-sandbox --disable-gpu --enable-logging=stderr --user-data-dir=" + folder +
        "/profile --virtual-time-budget=5000 --dump-dom file://" + folder + "/page.html > " + folder +
        "/dom 2> " + folder + "/log";
    EXPECT_EQ(std::system(command.c_str()), 0);
    const std::string log = read_file(work() / "log");
    EXPECT_FALSE(contains(log, "CONSOLE")) << log;
    EXPECT_FALSE(contains(log, "Uncaught")) << log;
    return read_file(work() / "dom");
  }
};

TEST_F(ReportBrowserTest, TrainingWithFaultsAndHardware) {
  std::string study = kSmallStudy;
  study.replace(study.find("study: small"), 12, "study: \"</script><b>x</b>\"");
  const std::string dom =
      shown(study +
            "hardware: {variant: {base: {}, other: {device.l2.capacity: 80 MiB}}}\n"
            "faults: {kind: soft_link, samples: 5, derate: {distribution: constant, value: 0.5}, seed: 1}\n");
  EXPECT_FALSE(contains(dom, "<b>x</b>"));
  for (const char* part :
       {"class=\"pick picked\"", "aria-sort=\"ascending\"", "memory capacity", "where its time goes",
        "its fullest device", "nvswitch: ", "id=\"hardware-charts\" class=\"pair\"><figure"})
    EXPECT_TRUE(contains(dom, part)) << part;
}

TEST_F(ReportBrowserTest, Inference) {
  const std::string dom = shown(kInferenceStudy);
  EXPECT_TRUE(contains(dom, "Where the request goes"));
  EXPECT_TRUE(contains(dom, "class=\"pick picked\""));
}

}  // namespace
}  // namespace shardscape::cli
