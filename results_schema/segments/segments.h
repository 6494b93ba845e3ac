// Sealed segments: how a running sweep keeps its results.
//
// The folder OUT.h5.parts holds manifest.h5 and any number of segments. A segment is a complete HDF5 file of
// consecutive blocks, written under a temporary name, synced, and renamed to blocks-<first>-<count>.h5: the rename is
// the commit, and the set of sealed segments is the state of the sweep. No committed byte is ever rewritten. Each
// segment holds the summary of its own points, so that the file's need not be made from them again. Where a sweep does
// not store all rows, a segment holds those of its blocks that may be among them, and the choice is made when all
// segments are there. Segments come in any order and from any number of writers with disjoint blocks (resume, shards,
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

#include "results_schema/disk/files.h"
#include "results_schema/hdf5/manifest.h"
#include "results_schema/rows/block.h"

namespace shardscape::results {

/// The folder of an output: OUT.h5 -> OUT.h5.parts.
std::filesystem::path parts_folder(const std::filesystem::path& output);

struct Segment {
  std::filesystem::path path;
  BlockRange blocks;
};

/// The choice of resume() about damaged segments.
enum class Damaged { refuse, recompute };

/// Deletes what is left of a sweep into `output` that was killed while it deleted its parts folder. Does nothing where
/// nothing is left, or where it cannot be deleted.
void remove_leftovers(const std::filesystem::path& output);

/// The files of a parts folder that differ from their checksums, one line each. Nothing for a folder that is none.
std::vector<std::string> damaged_files(const std::filesystem::path& parts);

/// A parts folder. create() and resume() lock it against a second sweep for the lifetime of the object; open() takes no
/// lock and changes nothing. Not thread-safe; move-only.
class SegmentStore {
 public:
  /// Creates a folder with its manifest. `replaces_output`: the finished file may replace an existing one; this is kept
  /// with the sweep, for its resumption. StoreError where the folder already holds a sweep or cannot be written, or
  /// where the manifest has problems (manifest_problems).
  static SegmentStore create(const std::filesystem::path& parts, const Manifest& manifest,
                             bool replaces_output = false);

  /// The folder of an interrupted sweep of the same study, or a new one where there is none. Removes temporary
  /// leftovers. Checks every segment against its checksum and its blocks; if `damaged` allows it, those that fail are
  /// removed, to be computed again. StoreError where the folder belongs to another study, number of points, table of
  /// columns or version of the software, is in use, or holds damaged segments (it names them all).
  static SegmentStore resume(const std::filesystem::path& parts, const Manifest& manifest,
                             Damaged damaged = Damaged::refuse);

  /// The folder of a sweep that another process leads, to seal segments for it: that process holds the lock and knows
  /// what is sealed, and this one does not look for segments. StoreError where the folder does not exist or belongs to
  /// another sweep, as for resume().
  static SegmentStore join(const std::filesystem::path& parts, const Manifest& manifest);

  /// Opens a folder for reading. StoreError where there is no manifest or a segment is broken.
  static SegmentStore open(const std::filesystem::path& parts);

  /// Deletes a parts folder, whatever sweep it belongs to (`--force`); does nothing where there is none. StoreError
  /// where it is in use, or holds something that no sweep has written.
  static void discard(const std::filesystem::path& parts);
  /// Deletes the folder of this store, which create() or resume() gave.
  void abandon() &&;

  SegmentStore(SegmentStore&&) noexcept;
  SegmentStore& operator=(SegmentStore&&) noexcept;
  ~SegmentStore();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  /// Whether there was no sweep before create() or resume().
  [[nodiscard]] bool is_new() const { return is_new_; }
  [[nodiscard]] bool replaces_output() const { return replaces_output_; }
  /// Names of the damaged segments that resume() removed.
  [[nodiscard]] const std::vector<std::string>& removed() const { return removed_; }
  /// The processes that resume() found not to have ended in order, one line each, with their blocks that are not
  /// sealed.
  [[nodiscard]] const std::vector<std::string>& unfinished() const { return unfinished_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Reads the folder again to find segments that this or any other writer has sealed since. StoreError names the file
  /// where a segment is broken, foreign, or overlaps another.
  void scan();
  /// The segments known since the last scan, ascending and disjoint.
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  /// Number of points of these segments.
  [[nodiscard]] std::uint64_t sealed_rows() const;
  /// The blocks that are still to be computed, as maximal ranges, ascending. Empty when the sweep is complete.
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

/// Limits at which an open segment is sealed.
struct SealPolicy {
  std::uint64_t rows = 65536;  ///< number of points, stored or not
  std::chrono::nanoseconds age = std::chrono::seconds(5);
  std::uint64_t samples = 1U << 20U;  ///< rows of /fault_samples, some 60 bytes each in memory
  /// A segment stays open at least so long, if points come quickly, up to kLongestSegment times `rows`: each seal costs
  /// some ten milliseconds, with the copy of it in the end.
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

  /// `store` must outlive the writer.
  explicit SegmentWriter(const SegmentStore& store, SealPolicy policy = {});
  /// Drops what is not sealed, so call seal() first.
  ~SegmentWriter();
  SegmentWriter(const SegmentWriter&) = delete;
  SegmentWriter& operator=(const SegmentWriter&) = delete;

  /// Takes the next block; `now` is the caller's monotonic clock. Seals first if the block does not follow the last
  /// one, and afterwards if the policy says so. StoreError where the disk fails; the blocks taken since the last seal
  /// are kept, so that seal() may be called again.
  void append(EncodedBlock&& block, Time now);

  /// Seals what is open, if anything. Call once, after the last block.
  void seal();

  /// Number of points that this writer has sealed.
  [[nodiscard]] std::uint64_t sealed_rows() const { return sealed_rows_; }
  /// The selector over the candidates of all blocks so far, by which encoders can drop more of theirs; null where all
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
