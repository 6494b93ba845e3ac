// Sealed segments: how a running sweep keeps its results.
//
// The folder OUT.h5.parts holds manifest.h5 and any number of segments. A segment is a complete HDF5 file of
// consecutive blocks, written under a temporary name, synced, and renamed to blocks-<first>-<count>.h5: the
// rename is the commit, and the set of sealed segments is the state of the sweep. No committed byte is ever
// rewritten. Segments come in any order and from any number of writers with disjoint blocks (resume, shards,
// MPI ranks).
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

/// One parts folder. create() and resume() lock it against a second sweep for as long as the object lives;
/// open() takes no lock and changes nothing. Not thread-safe; move-only.
class SegmentStore {
 public:
  /// A new folder with its manifest. StoreError where the folder already holds a sweep, or can't be written,
  /// or the manifest has problems (manifest_problems).
  static SegmentStore create(const std::filesystem::path& parts, const Manifest& manifest);

  /// The folder of an interrupted sweep of the same study, or a new one where there is none. Removes
  /// temporary leftovers. StoreError where the folder belongs to another study, number of points, table of
  /// columns or version of the software, is in use, or holds a broken segment.
  static SegmentStore resume(const std::filesystem::path& parts, const Manifest& manifest);

  /// For reading. StoreError where there is no manifest or a segment is broken.
  static SegmentStore open(const std::filesystem::path& parts);

  /// Deletes a parts folder, whatever sweep it belongs to (`--force`); nothing happens where there is none.
  /// StoreError where it is in use.
  static void discard(const std::filesystem::path& parts);

  SegmentStore(SegmentStore&&) noexcept;
  SegmentStore& operator=(SegmentStore&&) noexcept;
  ~SegmentStore();

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }

  /// Reads the folder again: segments sealed since then by this or any other writer. StoreError names the
  /// file where a segment is broken, foreign, or overlaps another.
  void scan();
  /// Segments known since the last scan, ascending and disjoint.
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  [[nodiscard]] std::uint64_t sealed_rows() const;
  /// The blocks still to be computed, ascending, as maximal ranges. Empty when the sweep is complete.
  [[nodiscard]] std::vector<BlockRange> missing() const;

 private:
  class Lock;
  SegmentStore();
  static SegmentStore make(const std::filesystem::path& parts, const Manifest& manifest);

  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<Segment> segments_;
  std::unique_ptr<Lock> lock_;
};

/// When an open segment is sealed.
struct SealPolicy {
  std::uint64_t rows = 65536;
  std::chrono::nanoseconds age = std::chrono::seconds(5);
  std::uint64_t samples = 1U << 20U;  ///< rows of /fault_samples, some 60 bytes each in memory
};

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

  [[nodiscard]] std::uint64_t sealed_rows() const { return sealed_rows_; }  ///< by this writer
  [[nodiscard]] std::uint64_t open_rows() const { return open_rows_; }

 private:
  const SegmentStore* store_;
  SealPolicy policy_;
  std::vector<EncodedBlock> open_;
  std::uint64_t open_rows_ = 0;
  std::uint64_t open_samples_ = 0;
  std::uint64_t sealed_rows_ = 0;
  Time opened_{};
};

}  // namespace shardscape::results
