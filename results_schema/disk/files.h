// Writes files so that they exist completely or not at all. Private to this folder and report/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "results_schema/disk/store_error.h"

namespace shardscape::results {

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

}  // namespace shardscape::results
