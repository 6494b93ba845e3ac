// The exception that functions of this folder throw where the disk, the file system, HDF5 or a foreign file fails.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>

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

}  // namespace shardscape::results
