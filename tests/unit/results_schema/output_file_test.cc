// Does an output replace nothing but what the user allows, and is it there in full or not at all?
#include "results_schema/disk/output_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>

#include "tests/unit/results_schema/results_fixture.h"

namespace shardscape::results {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public ResultsTest {
 protected:
  fs::path write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    return file(name);
  }
  static std::string text_of(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Names in the folder, temporary ones too.
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
};

/// The reason of the OutputRefused that `work` throws.
template <class Work>
std::string refusal(const Work& work) {
  try {
    work();
  } catch (const OutputRefused& refused) {
    return refused.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

TEST_F(OutputFileTest, ExistingFilesNeedPermission) {
  const fs::path there = write("there.csv", "old");
  EXPECT_EQ(refusal([&] { (void)OutputPath(there); }), there.string() + ": exists; --force replaces it");
  write_output({there, true}, "new");
  EXPECT_EQ(text_of(there), "new");
  write_output(file("fresh.csv"), "new");
  EXPECT_EQ(text_of(file("fresh.csv")), "new");
  EXPECT_EQ(entries(), 2U);
}

TEST_F(OutputFileTest, InputsAreNeverReplacedUnderAnyName) {
  const fs::path input = write("in.h5", "data");
  fs::create_hard_link(input, file("same.h5"));
  fs::create_symlink(input, file("link.h5"));
  fs::create_directory(file("in.parts"));
  std::ofstream(file("in.parts") / "manifest.h5") << "x";
  const fs::path inputs[] = {input, file("in.parts")};
  for (const char* name : {"in.h5", "same.h5", "link.h5", "./in.h5", "in.parts/manifest.h5"}) {
    EXPECT_TRUE(contains(refusal([&] { (void)OutputPath(file(name), true, inputs); }), "is an input of this"))
        << name;
  }
  EXPECT_EQ(text_of(input), "data");
}

TEST_F(OutputFileTest, OnlyRegularFilesAreReplaced) {
  ASSERT_EQ(mkfifo(file("pipe").c_str(), 0600), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(file("socket").string().size(), sizeof address.sun_path);
  std::strncpy(address.sun_path, file("socket").c_str(), sizeof address.sun_path - 1);
  const int socket_file = socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(socket_file, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(socket_file);
  fs::create_symlink("/dev/null", file("null"));
  fs::create_symlink("loop", file("loop"));
  const std::pair<fs::path, std::string> cases[] = {{file("pipe"), "is a pipe"},
                                                    {file("socket"), "is a socket"},
                                                    {folder_, "is a folder"},
                                                    {"/dev/null", "is a device"},
                                                    {file("null"), "is a link to a device"},
                                                    {file("loop"), "to itself"},
                                                    {file("sub") / "", "names no file"}};
  for (const auto& [path, reason] : cases) {
    EXPECT_TRUE(contains(refusal([&, p = path] { (void)OutputPath(p, true); }), reason)) << path;
  }
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_TRUE(fs::is_fifo(file("pipe")));
}

TEST_F(OutputFileTest, LinksStayAndTheirTargetsAreReplaced) {
  fs::create_directory(file("elsewhere"));
  std::ofstream(file("elsewhere") / "real.csv") << "old";
  fs::create_symlink("elsewhere/real.csv", file("link.csv"));
  write_output({file("link.csv"), true}, "new");
  EXPECT_TRUE(fs::is_symlink(file("link.csv")));
  EXPECT_EQ(text_of(file("elsewhere") / "real.csv"), "new");

  fs::create_symlink("elsewhere/none.csv", file("dangling.csv"));
  EXPECT_TRUE(contains(refusal([&] { (void)OutputPath(file("dangling.csv")); }), "exists, a link to"));
  write_output({file("dangling.csv"), true}, "made");
  EXPECT_TRUE(fs::is_symlink(file("dangling.csv")));
  EXPECT_EQ(text_of(file("elsewhere") / "none.csv"), "made");
}

TEST_F(OutputFileTest, WhatAppearsDuringTheRunStays) {
  OutputFile careful{OutputPath(file("out.csv"))};
  careful.stream() << "mine";
  write("out.csv", "theirs");
  EXPECT_TRUE(contains(store_error([&] { careful.commit(); }), "has appeared during the run"));
  EXPECT_EQ(text_of(file("out.csv")), "theirs");

  OutputFile forced(OutputPath(file("out.csv"), true));
  forced.stream() << "mine";
  fs::remove(file("out.csv"));
  ASSERT_EQ(mkfifo(file("out.csv").c_str(), 0600), 0);
  EXPECT_TRUE(contains(store_error([&] { forced.commit(); }), "has become a pipe"));
  EXPECT_TRUE(fs::is_fifo(file("out.csv")));
}

TEST_F(OutputFileTest, NothingIsLeftOfWhatIsNotCommitted) {
  {
    OutputFile file_of_failure{OutputPath(file("out.csv"))};
    file_of_failure.stream() << std::string(100000, 'x');
    EXPECT_EQ(entries(), 1U);
  }
  {
    OutputFolder folder(file("traces"));
    EXPECT_TRUE(contains(store_error([&] {
                           folder.fill([](const fs::path& place) {
                             std::ofstream(place / "a") << "x";
                             throw std::runtime_error((place / "b").string() + ": cannot be written");
                           });
                         }),
                         "traces: b: cannot be written"));
  }
  EXPECT_EQ(entries(), 0U);
}

TEST_F(OutputFileTest, FoldersAreNewOrEmpty) {
  fs::create_directory(file("empty"));
  for (const char* name : {"new", "empty", "new2/"}) {
    OutputFolder folder(file(name));
    folder.fill([](const fs::path& place) { std::ofstream(place / "a") << "x"; });
    EXPECT_EQ(text_of(file(name) / "a"), "x") << name;
  }
  EXPECT_TRUE(contains(refusal([&] { OutputFolder folder(file("new")); }), "holds files already"));
  EXPECT_TRUE(contains(refusal([&] { OutputFolder folder(write("f", "x")); }), "is a file"));
  EXPECT_TRUE(contains(store_error([&] { OutputFolder folder(file("no/such")); }), "does not exist"));
  EXPECT_EQ(entries(), 4U);
}

}  // namespace
}  // namespace shardscape::results
