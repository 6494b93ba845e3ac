// Outputs of commands: checked before any work is done, written beside their place, synced, and put there in one step.
// Every output of the program goes through here.
//
// Only regular files are written, and only where nothing is lost: an output that is there already, or that
// appears while the command runs, is replaced with the user's permission only (--force), an input never. Of a
// symbolic link the file it points to is replaced, not the link; a link that points nowhere is there like any
// other file.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string_view>

#include "results_schema/disk/files.h"

namespace shardscape::results {

/// Thrown where an output may not be written as the command line has it. what(): "PATH: why; what would be right".
/// Nothing has been changed then.
class OutputRefused : public std::runtime_error {
 public:
  OutputRefused(const std::filesystem::path& path, const std::string& why)
      : std::runtime_error(path.string() + ": " + why) {}
};

/// A checked place for an output.
class OutputPath {
 public:
  /// OutputRefused where `asked` is there and may not be replaced, is no regular file, or is one of `inputs`
  /// (under whatever name) or in one that is a folder; StoreError where its folder is not there or can't be
  /// written in. Not explicit: a plain path is a place where nothing is.
  OutputPath(std::filesystem::path asked, bool replace = false,
             std::span<const std::filesystem::path> inputs = {});

  [[nodiscard]] const std::filesystem::path& asked() const { return asked_; }
  /// The file itself, behind all symbolic links.
  [[nodiscard]] const std::filesystem::path& file() const { return file_; }
  [[nodiscard]] std::filesystem::path folder() const;

  /// Syncs `temporary` (of the same file system), puts it in place and syncs the folder. StoreError where
  /// that fails, or where something has appeared there that may not be replaced.
  void publish(const std::filesystem::path& temporary) const;

 private:
  std::filesystem::path asked_, file_;
  bool replace_;
};

/// An output that is written from front to back.
class OutputFile {
 public:
  /// Opens a temporary file beside the output; StoreError where the folder takes no new file.
  explicit OutputFile(OutputPath path);
  /// Removes what has not been committed.
  ~OutputFile();
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  /// The stream to write to; if it fails, commit() gives the reason.
  [[nodiscard]] std::ostream& stream();
  /// Puts the output in place; call once, at the end. StoreError where anything could not be written.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes a whole output at once.
void write_output(const OutputPath& path, std::string_view text);

/// An output that is a folder of files, which exists with all of them or not at all.
class OutputFolder {
 public:
  /// OutputRefused where `asked` is there and is no empty folder; StoreError as for OutputPath.
  explicit OutputFolder(std::filesystem::path asked);
  /// Removes what has not been committed.
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  /// `write` makes the files in the folder it is given, which then gets its name, with every file synced.
  /// StoreError where anything could not be written.
  void fill(const std::function<void(const std::filesystem::path&)>& write);

 private:
  void make();
  void commit();

  std::filesystem::path asked_, target_, temporary_;
  std::filesystem::perms permissions_{};  ///< permissions of the folder in its final place
};

}  // namespace shardscape::results
