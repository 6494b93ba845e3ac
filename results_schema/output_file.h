// What a command was told to write: looked at before any work is done, written beside its place, synced, and
// put there in one step. Every output of the program goes through here.
//
// Only regular files are written, and only where nothing is lost: an output that is there already, or that
// appears while the command runs, is replaced with the user's permission only (--force), an input never. Of a
// symbolic link the file it points to is replaced, not the link; a link that points nowhere is there like any
// other file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string_view>

#include "results_schema/store_error.h"

namespace shardscape::results {

/// The output may not be written as the command line has it. what() reads "PATH: why; what would be right".
/// Nothing has been changed when it is thrown.
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
  /// StoreError where the folder takes no new file.
  explicit OutputFile(OutputPath path);
  /// Leaves nothing behind of what was not committed.
  ~OutputFile();
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;

  /// Where it goes bad, commit() says why.
  [[nodiscard]] std::ostream& stream();
  /// Once, at the end. StoreError where anything could not be written.
  void commit();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The whole of an output at once.
void write_output(const OutputPath& path, std::string_view text);

/// An output that is a folder of files: there with all of them or not at all.
class OutputFolder {
 public:
  /// OutputRefused where `asked` is there and is no empty folder; StoreError as for OutputPath.
  explicit OutputFolder(std::filesystem::path asked);
  /// Leaves nothing behind of what was not committed.
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
  std::filesystem::perms permissions_{};  ///< of the folder, once it is full
};

}  // namespace shardscape::results
