// What each process of a sweep over several leaves in the parts folder while it works: a file `rank-<number>`
// that says who it is and which blocks it has taken, and that it holds a lock on.
//
// A note that nobody holds is that of a process that did not end in order. A note that is held belongs to one
// that still runs, though the process that leads the sweep and holds the folder's own lock may be gone.
// Private to this folder, but for RankNote.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/store_error.h"

namespace shardscape::results {

/// The note of this process. Movable; not thread-safe.
class RankNote {
 public:
  /// `who` says it in one line: "rank 1 of 4 (node17), process 4711". Replaces what lies there. StoreError
  /// where the note can't be written.
  RankNote(const std::filesystem::path& parts, int rank, const std::string& who);
  /// Lets go of the note and leaves it where it is, as a killed process does.
  ~RankNote();
  RankNote(RankNote&& other) noexcept;
  RankNote& operator=(RankNote&&) = delete;

  /// Before the first of these blocks is begun. StoreError where it can't be written.
  void took(BlockRange blocks);
  /// The end in order: removes the note. Nothing happens where it is gone already.
  void remove();

 private:
  explicit RankNote(std::filesystem::path path);

  std::filesystem::path path_;
  int fd_ = -1;
};

bool is_note_name(std::string_view name);

/// A note that was left behind.
struct LeftNote {
  std::filesystem::path path;
  std::string who;
  std::vector<BlockRange> taken;
};

/// StoreError "is in use by WHO" where a process that works on the sweep in `parts` still runs; else the notes
/// of those that did not end in order, by rank.
std::vector<LeftNote> left_notes(const std::filesystem::path& parts);

}  // namespace shardscape::results
