// Keeps segments in a parts folder under a lock: creates, resumes and joins folders, checks every segment when a sweep
// is resumed, seals new ones, and removes the folder at the end.
#include "results_schema/segments/segments.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>

#include "engine/base/check.h"
#include "engine/base/words.h"
#include "results_schema/disk/files.h"
#include "results_schema/hdf5/hdf5_io.h"
#include "results_schema/hdf5/manifest_io.h"
#include "results_schema/hdf5/tables_io.h"
#include "results_schema/segments/open_candidates.h"
#include "results_schema/segments/rank_notes.h"

namespace shardscape::results {

namespace fs = std::filesystem;

namespace {

constexpr const char* kManifestName = "manifest.h5";
constexpr const char* kLockName = "lock";
// An empty file; exists where the output may be replaced.
constexpr const char* kReplaceName = "replace-output";
constexpr const char* kNeverSealed =
    "none of its files ends in a checksum, as those of earlier versions of the program do not: there is "
    "nothing "
    "to verify them by; finish the sweep with the version that began it and verify the result, or start over "
    "(--force)";
constexpr std::string_view kPrefix = "blocks-";
constexpr std::string_view kEnding = ".h5";

std::string padded(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  constexpr std::size_t kDigits = 12;
  return std::string(kDigits - std::min(kDigits, digits.size()), '0') + digits;
}

std::string segment_name(BlockRange blocks) {
  return fmt::format("{}{}-{}{}", kPrefix, padded(blocks.first), padded(blocks.count), kEnding);
}

/// The blocks that a file name says; nothing for other names.
std::optional<BlockRange> parse_segment_name(std::string_view name) {
  if (!name.starts_with(kPrefix) || !name.ends_with(kEnding)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  name.remove_suffix(std::min(kEnding.size(), name.size()));
  const std::size_t dash = std::min(name.find('-'), name.size());
  const auto first = to_number<std::uint64_t>(name.substr(0, dash));
  const auto count = to_number<std::uint64_t>(name.substr(std::min(dash + 1, name.size())));
  return first && count ? std::optional(BlockRange{*first, *count}) : std::nullopt;
}

bool is_temporary(const fs::path& path) { return path.extension() == kTemporaryEnding; }

std::vector<fs::path> list_folder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    paths.push_back(it->path());
  }
  if (error) throw StoreError(folder, "can't list: " + error.message());
  std::ranges::sort(paths);
  return paths;
}

std::vector<std::byte> manifest_image(const fs::path& path, const Manifest& manifest) {
  H5File file = H5File::create_image(path);
  write_manifest(file, kManifestSchema, manifest, manifest.run, false);
  for (const ColumnInfo& column : manifest.columns) {
    (void)file.create_column("/points", column, 0, manifest.layout.rows_per_block);
  }
  if (!manifest.sample_columns.empty()) (void)create_samples(file, manifest.sample_columns, 0);
  std::vector<std::byte> image = file.image();
  append_checksum(image);
  return image;
}

/// The facts that every segment of a store must state about its study.
struct Identity {
  std::string study, columns;
};

Identity identity_of(const Manifest& manifest) {
  return {study_sha256(manifest.study), columns_sha256(manifest.columns)};
}

void check_segment(const fs::path& path, BlockRange blocks, const Manifest& manifest,
                   const Identity& identity) {
  const H5File file = H5File::open(path);
  check_schema(file, kSegmentSchema);
  const BlockRange stored{file.number_attribute("first_block"), file.number_attribute("block_count")};
  if (stored != blocks) file.fail("holds other blocks than its name says");
  const BlockRange all = manifest.layout.blocks;
  if (blocks.count == 0 || blocks.first < all.first || blocks.first >= all.end() ||
      blocks.count > all.end() - blocks.first) {
    file.fail("holds blocks that the sweep does not have");
  }
  if (file.text_attribute("study_sha256") != identity.study) file.fail("belongs to another study");
  if (file.text_attribute("columns_sha256") != identity.columns) file.fail("has another table of columns");
  const std::uint64_t rows = file.dataset("/points/point_id").rows(),
                      points = manifest.layout.rows_in(blocks);
  if (manifest.study.stored_rows.all() && rows != points) file.fail("holds fewer rows than its blocks have");
  if (rows > points) file.fail("holds more rows than its blocks have");
  (void)sample_rows(file, manifest.sample_columns);
}

/// The first point of a segment that is not of its blocks, or in the wrong place.
std::optional<std::uint64_t> foreign_point(std::span<const std::uint64_t> ids, BlockRange blocks,
                                           const Manifest& manifest) {
  const BlockLayout& layout = manifest.layout;
  if (!layout.selection.knows_points()) return std::nullopt;
  std::uint64_t row = layout.first_row(blocks.first);
  const std::uint64_t end = row + layout.rows_in(blocks);
  for (const std::uint64_t id : ids) {
    while (!manifest.study.stored_rows.all() && row < end && layout.point(row) < id) ++row;
    if (row == end || id != layout.point(row)) return id;
    ++row;
  }
  return std::nullopt;
}

/// Describes what is wrong with a segment; empty where nothing is. HDF5 only reads what the checksum vouches for.
std::string damage_of(const fs::path& path, BlockRange blocks, const Manifest& manifest,
                      const Identity& identity) {
  if (!is_as_sealed(path)) return kNotAsSealed;
  try {
    check_segment(path, blocks, manifest, identity);
    const auto ids = H5File::open(path).dataset("/points/point_id").read_all<std::uint64_t>();
    const std::optional<std::uint64_t> foreign = foreign_point(ids, blocks, manifest);
    if (foreign) return fmt::format("has other points than its blocks ({})", *foreign);
  } catch (const StoreError& error) {
    return error.reason();
  }
  return "";
}

Manifest stored_manifest(const fs::path& parts) {
  const H5File file = H5File::open(parts / kManifestName);
  check_schema(file, kManifestSchema);
  return read_manifest(file);
}

/// The first thing in the folder that no sweep creates, by name or because it is no plain file; empty where there is
/// none.
std::string foreign_name(const fs::path& folder) {
  for (const fs::path& path : list_folder(folder)) {
    std::string name = path.filename().string();
    const bool ours = name == kManifestName || name == kLockName || name == kReplaceName ||
                      is_temporary(path) || is_note_name(name) || parse_segment_name(name).has_value();
    if (!ours) return name;
    std::error_code gone;  // another process may remove the folder meanwhile
    const fs::file_status status = fs::symlink_status(path, gone);
    if (fs::is_symlink(status)) return "the link " + name;
    if (fs::exists(status) && !fs::is_regular_file(status)) return name + ", no plain file";
  }
  return "";
}

/// Refuses a folder that only happens to have the name of a parts folder, as a sweep deletes its folder in the end.
void require_parts_folder(const fs::path& folder) {
  std::error_code unread;
  if (fs::is_symlink(fs::symlink_status(folder, unread)))
    throw StoreError(folder, "is a link; the segments of a sweep lie in a folder of that name; move it away");
  std::string name;
  try {
    name = foreign_name(folder);
  } catch (const StoreError&) {
    std::error_code ignored;
    if (fs::exists(folder, ignored)) throw;  // otherwise its owner has just removed it
  }
  if (!name.empty()) throw StoreError(folder, "holds " + name + ", which no sweep has written; move it away");
}

/// The name to which remove_folder() moves what it deletes. Whoever moves a folder there has the right to delete it, so
/// that any process may delete what is left.
fs::path dying_folder(const fs::path& folder) {
  fs::path name = folder;
  name += ".deleting";
  return name;
}

/// Deletes such a folder; does nothing where there is none or where it cannot be deleted.
void clear_dying_folder(const fs::path& dying) {
  std::error_code ignored;
  if (!fs::is_directory(dying, ignored)) return;
  try {
    if (foreign_name(dying).empty()) fs::remove_all(dying, ignored);
  } catch (const StoreError&) {  // another process is deleting it
  }
}

/// Makes a parts folder disappear in one step, by renaming it, and then deletes it. The caller must hold its lock.
void remove_folder(const fs::path& folder) {
  constexpr int kAttempts = 100;  // another process may move its folder to the same name
  const fs::path dying = dying_folder(folder);
  for (int attempt = 0;; ++attempt) {
    clear_dying_folder(dying);
    std::error_code error;
    fs::rename(folder, dying, error);
    if (!error) break;
    const bool taken = error == std::errc::directory_not_empty || error == std::errc::file_exists;
    if (!taken || attempt == kAttempts) fail_with(folder, "can't be moved away", error.value());
  }
  clear_dying_folder(dying);
}

void require(bool same, const fs::path& parts, const std::string& what) {
  if (!same) {
    throw StoreError(parts,
                     "holds the results of " + what + "; resume with the original, or start over (--force)");
  }
}

void check_same_sweep(const fs::path& parts, const Manifest& stored, const Manifest& wanted) {
  require(study_sha256(stored.study) == study_sha256(wanted.study), parts,
          "a different study (\"" + stored.study.title + "\", or other inputs)");
  const StoredRows &there = stored.study.stored_rows, &here = wanted.study.stored_rows;
  require(there == here, parts,
          fmt::format("a sweep that stores other rows ({}, not {})", to_string(there), to_string(here)));
  require(
      stored.layout.total_points == wanted.layout.total_points, parts,
      fmt::format("a sweep of {} points, not {}", stored.layout.total_points, wanted.layout.total_points));
  require(stored.layout.selection == wanted.layout.selection, parts,
          "another choice of points (--limit, --sample, --sample-seed)");
  require(stored.layout == wanted.layout, parts, "another shard or block size");
  require(stored.columns == wanted.columns && stored.sample_columns == wanted.sample_columns, parts,
          "a table with other columns");
  require(stored.run.software_version == wanted.run.software_version &&
              stored.run.git_commit == wanted.run.git_commit,
          parts,
          "version " + stored.run.software_version + " (" + stored.run.git_commit + ") of the program");
}

void check_manifest(const fs::path& parts, const Manifest& manifest) {
  const std::string text = joined(manifest_problems(manifest), "; ");
  if (!text.empty()) throw StoreError(parts, text);
}

}  // namespace

fs::path parts_folder(const fs::path& output) {
  fs::path folder = output;
  folder += ".parts";
  return folder;
}

std::vector<std::string> damaged_files(const fs::path& parts) {
  std::vector<std::string> problems;
  std::error_code ignored;
  if (!fs::is_regular_file(parts / kManifestName, ignored)) return problems;
  bool any_sealed = false;
  for (const fs::path& path : list_folder(parts)) {
    const std::string name = path.filename().string();
    if (name != kManifestName && !parse_segment_name(name)) continue;
    const Seal seal = seal_of(path);
    if (seal != Seal::none) any_sealed = true;
    if (seal != Seal::whole) problems.push_back(name + " " + kNotAsSealed);
  }
  if (!any_sealed) problems = {kNeverSealed};
  return problems;
}

void remove_leftovers(const fs::path& output) { clear_dying_folder(dying_folder(parts_folder(output))); }

/// An advisory lock on the folder, on file systems that have such locks.
class SegmentStore::Lock {
 public:
  /// Takes the lock. Nothing where the folder does not exist, or disappeared while it was being locked. StoreError
  /// where another process holds the lock.
  static std::unique_ptr<Lock> take(const fs::path& folder) {
    const fs::path path = folder / kLockName;
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (fd < 0 && errno == ENOENT) return nullptr;
    if (fd < 0) fail_with(path, "can't create", errno);
    std::unique_ptr<Lock> lock(new Lock(fd));
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
      throw StoreError(folder, "is in use by a running sweep");
    }
    // Whoever held the lock before may have removed the folder meanwhile, and another process may have made it anew.
    struct stat held {};
    struct stat there {};
    const bool same = ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &there) == 0 &&
                      held.st_dev == there.st_dev && held.st_ino == there.st_ino;
    return same ? std::move(lock) : nullptr;
  }
  ~Lock() { ::close(fd_); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  explicit Lock(int fd) : fd_(fd) {}
  int fd_;
};

SegmentStore::SegmentStore() = default;
SegmentStore::SegmentStore(SegmentStore&&) noexcept = default;
SegmentStore& SegmentStore::operator=(SegmentStore&&) noexcept = default;
SegmentStore::~SegmentStore() = default;

/// Takes the lock of the folder, which is made where it does not exist.
std::unique_ptr<SegmentStore::Lock> SegmentStore::lock_or_make(const fs::path& parts) {
  // An attempt fails only where another process removes the folder at the same time.
  constexpr int kAttempts = 100;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::error_code error;
    fs::create_directory(parts, error);
    if (error) throw StoreError(parts, "can't create: " + error.message());
    require_parts_folder(parts);
    require_parts_folder(dying_folder(parts));
    auto lock = Lock::take(parts);
    if (!lock) continue;
    (void)left_notes(parts);  // throws where a process of an earlier sweep still runs
    return lock;
  }
  throw StoreError(parts, "can't be locked: other processes keep removing it");
}

/// Writes the manifest of a new sweep. What the folder held before belongs to no sweep.
void SegmentStore::begin(const Manifest& manifest) {
  manifest_ = manifest;
  is_new_ = std::ranges::none_of(list_folder(folder_), [](const fs::path& path) {
    const std::string name = path.filename().string();
    return name != kLockName && name != kReplaceName && !is_temporary(path) && !is_note_name(name);
  });
  try {
    check_sealed(Damaged::refuse);
    scan();
    clear_notes();
    if (replaces_output_) write_durably(folder_ / kReplaceName, {});
    write_durably(folder_ / kManifestName, manifest_image(folder_ / kManifestName, manifest));
    sync_directory(directory_of(folder_));
  } catch (const StoreError&) {
    if (is_new_) remove_folder(folder_);
    throw;
  }
}

SegmentStore SegmentStore::create(const fs::path& parts, const Manifest& manifest, bool replaces_output) {
  const QuietErrors quiet;
  check_manifest(parts, manifest);
  SegmentStore store;
  store.folder_ = parts;
  store.replaces_output_ = replaces_output;
  store.lock_ = lock_or_make(parts);
  if (fs::exists(parts / kManifestName)) {
    throw StoreError(parts, "already holds a sweep; continue it (--resume) or start over (--force)");
  }
  store.begin(manifest);
  return store;
}

SegmentStore SegmentStore::resume(const fs::path& parts, const Manifest& manifest, Damaged damaged) {
  const QuietErrors quiet;
  check_manifest(parts, manifest);
  SegmentStore store;
  store.folder_ = parts;
  store.lock_ = lock_or_make(parts);
  store.replaces_output_ = fs::exists(parts / kReplaceName);
  if (!fs::exists(parts / kManifestName)) {
    store.begin(manifest);
    return store;
  }
  if (!is_as_sealed(parts / kManifestName)) {
    throw StoreError(parts / kManifestName,
                     "is damaged, or of an earlier version of the program; finish the "
                     "sweep with that version, or start over (--force)");
  }
  check_same_sweep(parts, stored_manifest(parts), manifest);
  store.manifest_ = manifest;
  store.check_sealed(damaged);
  store.scan();
  store.clear_notes();
  for (const fs::path& path : list_folder(parts)) {
    std::error_code ignored;
    if (is_temporary(path)) fs::remove(path, ignored);
  }
  return store;
}

/// Removes the notes of processes that are gone; remembers their blocks that are not sealed.
void SegmentStore::clear_notes() {
  const std::vector<BlockRange> gaps = missing();
  for (const LeftNote& note : left_notes(folder_)) {
    std::string blocks;
    for (const BlockRange& taken : note.taken) {
      const bool sealed = std::ranges::none_of(
          gaps, [&](const BlockRange& gap) { return taken.first < gap.end() && gap.first < taken.end(); });
      if (!sealed)
        blocks += fmt::format("{} {} to {}", blocks.empty() ? "" : ",", taken.first, taken.end() - 1);
    }
    unfinished_.push_back(note.who + " did not end in order" +
                          (blocks.empty() ? "; all its blocks are sealed"
                                          : "; of its blocks these are not all sealed:" + blocks));
    std::error_code ignored;
    fs::remove(note.path, ignored);
  }
}

/// Checks every segment against its checksum, and its points against its blocks.
void SegmentStore::check_sealed(Damaged damaged) {
  const Identity identity = identity_of(manifest_);
  std::vector<std::string> names;
  std::string problems;
  for (const fs::path& path : list_folder(folder_)) {
    const auto blocks = parse_segment_name(path.filename().string());
    if (!blocks) continue;
    const std::string problem = damage_of(path, *blocks, manifest_, identity);
    if (problem.empty()) continue;
    names.push_back(path.filename().string());
    problems += "; " + names.back() + ": " + problem;
  }
  if (names.empty()) return;
  if (damaged == Damaged::refuse) {
    throw StoreError(folder_, "has damaged segments; --resume --repair computes them again" + problems);
  }
  for (const std::string& name : names) fs::remove_all(folder_ / name);
  removed_ = std::move(names);
}

SegmentStore SegmentStore::join(const fs::path& parts, const Manifest& manifest) {
  const QuietErrors quiet;
  if (!fs::exists(parts / kManifestName)) {
    throw StoreError(parts, "is not there; all ranks of a sweep need one file system that they share");
  }
  check_same_sweep(parts, stored_manifest(parts), manifest);
  SegmentStore store;
  store.folder_ = parts;
  store.manifest_ = manifest;
  return store;
}

SegmentStore SegmentStore::open(const fs::path& parts) {
  const QuietErrors quiet;
  SegmentStore store;
  store.folder_ = parts;
  store.manifest_ = stored_manifest(parts);
  store.scan();
  return store;
}

void SegmentStore::discard(const fs::path& parts) {
  if (!fs::exists(parts)) return;
  require_parts_folder(parts);
  const auto lock = Lock::take(parts);
  if (!lock) return;  // its owner has just removed it
  (void)left_notes(parts);
  remove_folder(parts);
}

void SegmentStore::abandon() && {
  SHARDSCAPE_CHECK(lock_ != nullptr, folder_.string());
  remove_folder(folder_);
}

void SegmentStore::scan() {
  const QuietErrors quiet;
  const Identity identity = identity_of(manifest_);
  std::vector<Segment> found;
  for (const fs::path& path : list_folder(folder_)) {
    const auto blocks = parse_segment_name(path.filename().string());
    if (!blocks) continue;
    const bool known =
        std::ranges::any_of(segments_, [&](const Segment& segment) { return segment.path == path; });
    if (!known) check_segment(path, *blocks, manifest_, identity);
    found.push_back({path, *blocks});
  }
  std::ranges::sort(found, {}, [](const Segment& segment) { return segment.blocks.first; });
  for (std::size_t i = 1; i < found.size(); ++i) {
    if (found[i].blocks.first < found[i - 1].blocks.end()) {
      throw StoreError(found[i].path, "holds blocks that " + found[i - 1].path.filename().string() +
                                          " holds, too; delete one of them and resume");
    }
  }
  segments_ = std::move(found);
}

std::uint64_t SegmentStore::sealed_rows() const {
  std::uint64_t rows = 0;
  for (const Segment& segment : segments_) rows += manifest_.layout.rows_in(segment.blocks);
  return rows;
}

std::vector<BlockRange> SegmentStore::missing() const {
  std::vector<BlockRange> gaps;
  std::uint64_t next = manifest_.layout.blocks.first;
  const auto gap_until = [&](std::uint64_t block) {
    if (block > next) gaps.push_back({next, block - next});
  };
  for (const Segment& segment : segments_) {
    gap_until(segment.blocks.first);
    next = segment.blocks.end();
  }
  gap_until(manifest_.layout.blocks.end());
  return gaps;
}

SegmentWriter::SegmentWriter(const SegmentStore& store, SealPolicy policy) : store_(&store), policy_(policy) {
  if (!store.manifest().study.stored_rows.all())
    candidates_ = std::make_unique<OpenCandidates>(store.manifest());
}
SegmentWriter::~SegmentWriter() = default;

const RowSelector* SegmentWriter::selector() const {
  return candidates_ == nullptr ? nullptr : &candidates_->selector();
}

void SegmentWriter::append(EncodedBlock&& block, Time now) {
  const Manifest& manifest = store_->manifest();
  SHARDSCAPE_CHECK(block.rows > 0 && block.rows == manifest.layout.rows_of(block.index), block.index,
                   block.rows);
  SHARDSCAPE_CHECK(block.chunks.size() == (candidates_ ? 0 : manifest.columns.size()), block.index,
                   block.chunks.size());
  if (!open_.empty() && block.index != open_.back().index + 1) seal();
  if (open_.empty()) opened_ = now;
  SHARDSCAPE_CHECK(block.samples.empty() || !manifest.sample_columns.empty(), block.index);
  if (candidates_) candidates_->take(block);
  open_rows_ += block.rows;
  open_samples_ += block.samples.size();
  open_.push_back(std::move(block));
  const bool many = open_rows_ >= policy_.rows && now - opened_ >= policy_.least_age;
  if (many || open_rows_ / kLongestSegment >= policy_.rows || open_samples_ >= policy_.samples ||
      now - opened_ >= policy_.age)
    seal();
}

void SegmentWriter::seal() {
  if (open_.empty()) return;
  const QuietErrors quiet;
  const Manifest& manifest = store_->manifest();
  const BlockRange blocks{open_.front().index, open_.size()};
  const fs::path path = store_->folder() / segment_name(blocks);
  H5File file = H5File::create_image(path);
  file.set_attribute("schema", kSegmentSchema);
  file.set_attribute("schema_version", kSchemaVersion);
  file.set_attribute("study_sha256", study_sha256(manifest.study));
  file.set_attribute("columns_sha256", columns_sha256(manifest.columns));
  file.set_attribute("first_block", blocks.first);
  file.set_attribute("block_count", blocks.count);
  file.create_group("/points");
  if (candidates_) candidates_->write(file);
  const std::uint32_t rows_per_block = manifest.layout.rows_per_block;
  for (std::size_t c = 0; !candidates_ && c < manifest.columns.size(); ++c) {
    const Dataset column =
        file.create_bare_column("/points", manifest.columns[c], open_rows_, rows_per_block);
    for (std::size_t b = 0; b < open_.size(); ++b) column.write_chunk(b * rows_per_block, open_[b].chunks[c]);
  }
  SummaryBuilder summary(directions_of(manifest.study.objectives, manifest.columns));
  for (const EncodedBlock& block : open_) summary.add(block.summary);
  write_summary(file, summary.finish(), manifest.study.objectives, manifest.columns);
  if (!manifest.sample_columns.empty()) {
    SampleWriter samples(create_samples(file, manifest.sample_columns, open_samples_));
    for (const EncodedBlock& block : open_) samples.append(block.samples);
    samples.finish();
  }
  std::vector<std::byte> image = file.image();
  append_checksum(image);
  write_durably(path, image);
  sealed_rows_ += open_rows_;
  open_rows_ = 0;
  open_samples_ = 0;
  if (candidates_) candidates_->clear();
  open_.clear();
}

}  // namespace shardscape::results
