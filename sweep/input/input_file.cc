#include "sweep/input/input_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace shardscape::input {

namespace {

std::string because(int error) { return "cannot read: " + std::generic_category().message(error); }

/// Says what a path leads to if it is no regular file ("is a directory"); empty for a regular file.
std::string wrong_kind(const struct stat& status) {
  if (S_ISREG(status.st_mode)) return "";
  if (S_ISDIR(status.st_mode)) return "cannot read: is a directory";
  const std::string kind = S_ISFIFO(status.st_mode)   ? "a named pipe"
                           : S_ISCHR(status.st_mode)  ? "a character device"
                           : S_ISBLK(status.st_mode)  ? "a block device"
                           : S_ISSOCK(status.st_mode) ? "a socket"
                                                      : "something else";
  return "cannot read: is " + kind + ", not a regular file";
}

class Descriptor {
 public:
  // O_NONBLOCK: opening must not block if the file has become a pipe since it was looked at.
  explicit Descriptor(const std::filesystem::path& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

std::string too_long(std::uint64_t bytes, std::uint64_t most, const std::string& kind) {
  return fmt::format("is {} bytes long; {} has at most {}", bytes, kind, most);
}

}  // namespace

std::string unreadable(const std::filesystem::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return because(errno);
  std::string wrong = wrong_kind(status);
  if (wrong.empty() && ::access(path.c_str(), R_OK) != 0) return because(errno);
  return wrong;
}

tl::expected<std::string, std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes,
                                                 const std::string& kind) {
  if (std::string wrong = unreadable(path); !wrong.empty()) return tl::unexpected(std::move(wrong));
  const Descriptor file(path);
  if (file.number() < 0) return tl::unexpected(because(errno));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return tl::unexpected(because(errno));
  if (std::string wrong = wrong_kind(status); !wrong.empty()) return tl::unexpected(std::move(wrong));
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > most_bytes) return tl::unexpected(too_long(size, most_bytes, kind));

  constexpr std::size_t kBlock = 1 << 16;
  std::string text;
  text.reserve(static_cast<std::size_t>(size));
  for (;;) {  // until read() returns 0, not up to `size`: some file systems state a size of 0
    const std::size_t before = text.size();
    text.resize(before + kBlock);
    const ssize_t got = ::read(file.number(), text.data() + before, kBlock);
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got < 0 && errno != EINTR) return tl::unexpected(because(errno));
    if (got == 0) return text;
    if (text.size() > most_bytes) return tl::unexpected(too_long(text.size(), most_bytes, kind));
  }
}

}  // namespace shardscape::input
