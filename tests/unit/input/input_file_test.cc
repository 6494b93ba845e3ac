// Are regular files of a sensible size read, and is everything else refused without being opened?
#include "sweep/input/input_file.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "tests/support/temporary_folder.h"

namespace shardscape::input {
namespace {

namespace fs = std::filesystem;

class InputFileTest : public test::TemporaryFolder {
 protected:
  static std::string refusal(const fs::path& path, std::uint64_t most = 10) {
    const auto text = read_file(path, most, "a study");
    return text ? "read: " + *text : text.error();
  }
};

TEST_F(InputFileTest, ReadsRegularFilesAsTheyAre) {
  const std::string text("a\0b\r\n\xff", 6);
  EXPECT_EQ(read_file(write("plain", text), 10, "a study"), text);
  EXPECT_EQ(read_file(write("empty", ""), 10, "a study"), "");
  EXPECT_EQ(read_file(write("full", "0123456789"), 10, "a study"), "0123456789");
  fs::create_symlink(root_ / "plain", root_ / "link");
  EXPECT_EQ(read_file(root_ / "link", 10, "a study"), text);
}

TEST_F(InputFileTest, RefusesFilesThatAreTooLongBeforeReading) {
  EXPECT_EQ(refusal(write("long", "0123456789x")), "is 11 bytes long; a study has at most 10");
  // A hole of a terabyte takes no disk; reading it would take the night.
  const fs::path hole = write("hole", "");
  ASSERT_EQ(::truncate(hole.c_str(), off_t{1} << 40), 0);
  EXPECT_EQ(refusal(hole, kMostStudyBytes), "is 1099511627776 bytes long; a study has at most 4000000");
}

// None of these is opened: a pipe would wait for its writer, a device may never end.
TEST_F(InputFileTest, RefusesWhatIsNoRegularFile) {
  fs::create_directories(root_);
  const fs::path pipe = root_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), "cannot read: is a named pipe, not a regular file");
  EXPECT_EQ(refusal("/dev/zero"), "cannot read: is a character device, not a regular file");
  EXPECT_EQ(refusal(root_), "cannot read: is a directory");
  EXPECT_EQ(refusal(root_ / "absent"), "cannot read: No such file or directory");
  fs::create_symlink(pipe, root_ / "to_pipe");
  EXPECT_EQ(refusal(root_ / "to_pipe"), "cannot read: is a named pipe, not a regular file");

  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = (root_ / "socket").string();
  if (name.size() < sizeof(address.sun_path)) {  // a path that long has no socket
    std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
    const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(refusal(name), "cannot read: is a socket, not a regular file");
    ::close(socket);
  }
}

}  // namespace
}  // namespace shardscape::input
