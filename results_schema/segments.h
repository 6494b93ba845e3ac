// Sealed segments: how a running sweep keeps its results.
//
// The folder OUT.h5.parts holds manifest.h5 and any number of segments. A segment is a complete HDF5 file of
// consecutive blocks, written under a temporary name, synced, and renamed to blocks-<first>-<count>.h5: the
// rename is the commit, and the set of sealed segments is the state of the sweep. No committed byte is ever
// rewritten. Each segment holds the summary of its own points, so that the file's need not be made from them again.
// Where a sweep does not store all rows, a segment holds those of its blocks that may be among them, and the choice
// is made when all are there.
// Segments come in any order and from any number of writers with disjoint blocks (resume, shards,
// MPI ranks). Manifest and segments end in a checksum of themselves, which a resumption holds them against.
//
// Whoever holds the lock on the file `lock` in the folder owns it: no other process writes or removes the
// folder or anything in it, but those that work for the owner (join()), each with a note of its own there
// (rank_notes.h). Where one process makes the folder and another is the first to lock it, it belongs to the
// second.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "results_schema/block.h"
#include "results_schema/manifest.h"
#include "results_schema/store_error.h"

namespace shardscape::results {

/// OUT.h5 -> OUT.h5.parts
std::filesystem::path parts_folder(const std::filesystem::path& output);

struct Segment {
  std::filesystem::path path;
  BlockRange blocks;
};

/// What resume() makes of damaged segments.
enum class Damaged { refuse, recompute };

/// Deletes what a sweep into `output` that was killed while it deleted its parts folder left of it. Nothing
/// happens where nothing is left, or where it can't be deleted.
void remove_leftovers(const std::filesystem::path& output);

/// Which files of a parts folder are not what their checksums say, one line each. Of a folder that is none,
/// nothing.
std::vector<std::string> damaged_files(const std::filesystem::path& parts);

/// One parts folder. create() and resume() lock it against a second sweep for as long as the object lives;
/// open() takes no lock and changes nothing. Not thread-safe; move-only.
class SegmentStore {
 public:
  /// A new folder with its manifest. `replaces_output`: the finished file may replace what lies there; kept
  /// with the sweep, for its resumption. StoreError where the folder already holds a sweep, or can't be
  /// written, or the manifest has problems (manifest_problems).
  static SegmentStore create(const std::filesystem::path& parts, const Manifest& manifest,
                             bool replaces_output = false);

  /// The folder of an interrupted sweep of the same study, or a new one where there is none. Removes
  /// temporary leftovers. Reads every segment and holds it against its checksum and its blocks; those that
  /// fail are removed, to be computed again, where `damaged` says so. StoreError where the folder belongs to
  /// another study, number of points, table of columns or version of the software, is in use, or holds
  /// damaged segments (it names them all).
  static SegmentStore resume(const std::filesystem::path& parts, const Manifest& manifest,
                             Damaged damaged = Damaged::refuse);

  /// The folder of a sweep that another process leads, for sealing segments of it: that one holds the lock and
  /// knows what is sealed, this one looks for no segments. StoreError where the folder is not there or belongs
  /// to another sweep, as for resume().
  static SegmentStore join(const std::filesystem::path& parts, const Manifest& manifest);

  /// For reading. StoreError where there is no manifest or a segment is broken.
  static SegmentStore open(const std::filesystem::path& parts);

  /// Deletes a parts folder, whatever sweep it belongs to (`--force`); nothing happens where there is none.
  /// StoreError where it is in use, or holds what no sweep has written.
  static void discard(const std::filesystem::path& parts);
  /// Deletes the folder of this store, which create() or resume() gave.
  void abandon() &&;

  SegmentStore(SegmentStore&&) noexcept;
  SegmentStore& operator=(SegmentStore&&) noexcept;
  ~SegmentStore();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// True where there was no sweep before create() or resume().
  [[nodiscard]] bool is_new() const { return is_new_; }
  [[nodiscard]] bool replaces_output() const { return replaces_output_; }
  /// Names of the damaged segments that resume() removed.
  [[nodiscard]] const std::vector<std::string>& removed() const { return removed_; }
  /// The processes that resume() found to have ended without order, a line for each, with those of their
  /// blocks that are not sealed.
  [[nodiscard]] const std::vector<std::string>& unfinished() const { return unfinished_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Reads the folder again: segments sealed since then by this or any other writer. StoreError names the
  /// file where a segment is broken, foreign, or overlaps another.
  void scan();
  /// Segments known since the last scan, ascending and disjoint.
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  /// Points of these segments.
  [[nodiscard]] std::uint64_t sealed_rows() const;
  /// The blocks still to be computed, ascending, as maximal ranges. Empty when the sweep is complete.
  [[nodiscard]] std::vector<BlockRange> missing() const;

 private:
  class Lock;
  SegmentStore();
  static std::unique_ptr<Lock> lock_or_make(const std::filesystem::path& parts);
  void begin(const Manifest& manifest);
  void check_sealed(Damaged damaged);
  void clear_notes();

  std::filesystem::path folder_;
  bool is_new_ = false, replaces_output_ = false;
  std::vector<std::string> removed_, unfinished_;
  Manifest manifest_;
  std::vector<Segment> segments_;
  std::unique_ptr<Lock> lock_;
};

/// When an open segment is sealed.
struct SealPolicy {
  std::uint64_t rows = 65536;  ///< points, stored or not
  std::chrono::nanoseconds age = std::chrono::seconds(5);
  std::uint64_t samples = 1U << 20U;  ///< rows of /fault_samples, some 60 bytes each in memory
  /// Points that come sooner make a longer segment, up to kLongestSegment times as long: each costs some milliseconds.
  std::chrono::nanoseconds least_age = std::chrono::nanoseconds(0);
};
inline constexpr std::uint64_t kLongestSegment = 4;

class OpenCandidates;

/// Collects encoded blocks and seals them. Holds at most one segment of compressed chunks in memory. Called
/// from one thread at a time (the serial stage of the pipeline); several writers may work in one folder on
/// disjoint blocks.
class SegmentWriter {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// `store` outlives the writer.
  explicit SegmentWriter(const SegmentStore& store, SealPolicy policy = {});
  /// Drops what is not sealed: call seal() first.
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  /// Takes the next block; `now` is the caller's monotonic clock. Seals before a block that does not follow
  /// the last one, and once the policy says so. StoreError where the disk fails; the blocks taken since the
  /// last seal are then kept, and seal() may be called again.
  void append(EncodedBlock&& block, Time now);

  /// Seals what is open, if anything. Call once after the last block.
  void seal();

  [[nodiscard]] std::uint64_t sealed_rows() const { return sealed_rows_; }  ///< points, by this writer
  [[nodiscard]] std::uint64_t open_rows() const { return open_rows_; }
  /// What chooses among the candidates of all blocks so far, for encoders to drop more of theirs; null where all
  /// rows are stored.
  [[nodiscard]] const RowSelector* selector() const;

 private:
  const SegmentStore* store_;
  SealPolicy policy_;
  std::unique_ptr<OpenCandidates> candidates_;  ///< null where all rows are stored
  std::vector<EncodedBlock> open_;
  std::uint64_t open_rows_ = 0;
  std::uint64_t open_samples_ = 0;
  std::uint64_t sealed_rows_ = 0;
  Time opened_{};
};

}  // namespace shardscape::results
