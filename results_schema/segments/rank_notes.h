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

#include "results_schema/disk/files.h"
#include "results_schema/rows/block.h"

namespace shardscape::results {

/// The note of this process. Movable; not thread-safe.
class RankNote {
 public:
  /// `who` names the process in one line: "rank 1 of 4 (node17), process 4711". Replaces an old note. StoreError where
  /// the note cannot be written.
  RankNote(const std::filesystem::path& parts, int rank, const std::string& who);
  /// Releases the note and leaves it where it is, as if the process had been killed.
  ~RankNote();
  RankNote(RankNote&& other) noexcept;
  RankNote& operator=(RankNote&&) = delete;

  /// Notes blocks before the first of them is begun. StoreError where that cannot be written.
  void took(BlockRange blocks);
  /// Ends in order: removes the note. Does nothing where it is already gone.
  void remove();

 private:
  explicit RankNote(std::filesystem::path path);

  std::filesystem::path path_;
  int fd_ = -1;
};

bool is_note_name(std::string_view name);

/// A note of a process that did not end in order.
struct LeftNote {
  std::filesystem::path path;
  std::string who;
  std::vector<BlockRange> taken;
};

/// StoreError "is in use by WHO" where a process that works on the sweep in `parts` still runs; otherwise the notes of
/// the processes that did not end in order, by rank.
std::vector<LeftNote> left_notes(const std::filesystem::path& parts);

}  // namespace shardscape::results
