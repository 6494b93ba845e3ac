#include "results_schema/segments/rank_notes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "engine/base/words.h"
#include "results_schema/disk/files.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNotePrefix = "rank-";

void write_line(int fd, const fs::path& path, const std::string& line) {
  // One write() call, so that a line is there in full or not at all, unless the disk is full.
  if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    fail_with(path, "can't write", errno);
  }
}

/// Whether a running process holds the note.
bool is_held(const fs::path& path) {
  const int fd =
      // A lock over NFS needs a file that is open for writing.
      ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  const bool held = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(fd);
  return held;
}

LeftNote read_note(const fs::path& path) {
  LeftNote note{path, {}, {}};
  std::ifstream in(path);
  std::getline(in, note.who);
  BlockRange blocks;
  while (in >> blocks.first >> blocks.count) note.taken.push_back(blocks);
  if (note.who.empty()) note.who = path.filename().string();
  return note;
}

}  // namespace

RankNote::RankNote(fs::path path)
    : path_(std::move(path)),
      fd_(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666)) {
  if (fd_ < 0) fail_with(path_, "can't create", errno);
}

RankNote::RankNote(const fs::path& parts, int rank, const std::string& who)
    : RankNote(parts / fmt::format("{}{:06}", kNotePrefix, rank)) {
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    throw StoreError(path_, "is in use by another process of that number");
  }
  if (::ftruncate(fd_, 0) != 0) fail_with(path_, "can't write", errno);
  write_line(fd_, path_, who + "\n");
}

RankNote::~RankNote() {
  if (fd_ >= 0) ::close(fd_);
}

RankNote::RankNote(RankNote&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

void RankNote::took(BlockRange blocks) {
  write_line(fd_, path_, fmt::format("{} {}\n", blocks.first, blocks.count));
}

void RankNote::remove() {
  std::error_code ignored;
  fs::remove(path_, ignored);
  ::close(std::exchange(fd_, -1));
}

bool is_note_name(std::string_view name) {
  return name.starts_with(kNotePrefix) && to_number<int>(name.substr(kNotePrefix.size())).value_or(-1) >= 0;
}

std::vector<LeftNote> left_notes(const fs::path& parts) {
  std::vector<LeftNote> notes;
  std::error_code error;
  for (fs::directory_iterator it(parts, error), end; !error && it != end; it.increment(error)) {
    if (!is_note_name(it->path().filename().string())) continue;
    notes.push_back(read_note(it->path()));
    if (is_held(it->path())) throw StoreError(parts, "is in use by " + notes.back().who);
  }
  std::sort(notes.begin(), notes.end(), [](const LeftNote& a, const LeftNote& b) { return a.path < b.path; });
  return notes;
}

}  // namespace shardscape::results
