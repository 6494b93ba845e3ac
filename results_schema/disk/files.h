// Errors of files, and writing files so that they exist completely or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace shardscape::results {

/// An environment failure (disk full, no permission) or a file that is not what it should be. what() reads
/// "path: reason". Sealed segments are intact whenever this is thrown: the sweep can be resumed.
class StoreError : public std::runtime_error {
 public:
  StoreError(std::filesystem::path path, std::string reason)
      : std::runtime_error(path.string() + ": " + reason),
        path_(std::move(path)),
        reason_(std::move(reason)) {}
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// what() without the path.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  std::filesystem::path path_;
  std::string reason_;
};

/// Ending of files that are being written.
inline constexpr const char* kTemporaryEnding = ".tmp";

/// An open file descriptor. StoreError names the path and the system's reason.
class Descriptor {
 public:
  Descriptor(std::filesystem::path path, int flags);
  /// Creates a new file to read and write. Never opens an existing one, nor what a link points to, whoever made it.
  static Descriptor create(std::filesystem::path path);
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept;
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const { return fd_; }
  void write(std::span<const std::byte> bytes) const;
  void sync() const;
  void close();

 private:
  std::filesystem::path path_;
  int fd_;
};

/// StoreError "PATH: WHAT: MESSAGE OF `error`".
[[noreturn]] void fail_with(const std::filesystem::path& path, const std::string& what, int error);

/// Writes `path` under a temporary name beside it, syncs, renames, syncs the directory. On failure nothing
/// remains. For files whose names are the program's own; see output_file.h for those of the user.
void write_durably(const std::filesystem::path& path, std::span<const std::byte> bytes);

void sync_file(const std::filesystem::path& path);
void sync_directory(const std::filesystem::path& directory);

/// The folder that holds `path`; "." for a bare name.
std::filesystem::path directory_of(const std::filesystem::path& path);

/// A name in `folder` that no file has and that belongs to this process; ends in kTemporaryEnding.
std::filesystem::path temporary_name(const std::filesystem::path& folder);

/// Removes what a killed process left under a name (of a link, the link itself), so that the file can be created. If
/// that fails, creating the file reports it.
void make_free(const std::filesystem::path& temporary);

// The checksum at the end of every file of a parts folder. HDF5 ignores what follows its last byte, so that any tool
// reads such a file, and one rename still commits rows and checksum together.

/// The message about a file whose bytes differ.
inline constexpr const char* kNotAsSealed = "is not what its checksum says";

/// Appends a line with the SHA-256 of all bytes so far.
void append_checksum(std::vector<std::byte>& bytes);

enum class Seal {
  whole,   ///< the file is still what append_checksum() left
  broken,  ///< it differs, cannot be read in full, or is no regular file
  none     ///< it has no such line at its end: cut off, or written before there were checksums
};

/// Checks a file without HDF5, which may loop forever over a damaged file.
Seal seal_of(const std::filesystem::path& file);
inline bool is_as_sealed(const std::filesystem::path& file) { return seal_of(file) == Seal::whole; }

}  // namespace shardscape::results
