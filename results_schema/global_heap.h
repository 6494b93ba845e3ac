// Texts of variable length, read without HDF5. They lie in "global heap collections" of the file, which have
// no checksum, and HDF5 1.10 follows whatever sizes it finds in one: it reads an object of no length forever,
// and copies a longer one past the end of its buffer. Here a collection is held against the format before
// anything of it is used. Knows nothing of the HDF5 library; private to this folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace shardscape::results {

/// What a file stores for an element of variable length (HDF5 File Format Specification 3.0, IV.B, "Variable-length"):
/// its length and where it lies. Address 0 means that there is no text.
struct HeapReference {
  std::uint64_t length = 0;
  std::uint64_t address = 0;
  std::uint32_t index = 0;
};

/// The global heap collections of a file that is not being written, with addresses and lengths of 8 bytes. Every
/// collection is read once.
class GlobalHeaps {
 public:
  /// Addresses count from `base`, the byte of the file at which HDF5's part begins.
  explicit GlobalHeaps(std::filesystem::path file, std::uint64_t base = 0);

  /// The bytes of an object. StoreError "`name` is damaged: ..." with the collection's offset in the file where the
  /// collection violates the format, or has no such object of this length.
  std::string read(const HeapReference& reference, const std::string& name);
  /// Checks that the collection follows the format and has the object, of any length; StoreError as for read().
  void check(const HeapReference& reference, const std::string& name);

 private:
  struct Object {
    std::uint64_t offset = 0, size = 0;
  };
  using Collection = std::map<std::uint32_t, Object>;

  const Collection& collection(std::uint64_t offset, const std::string& name);
  Object find(const HeapReference& reference, const std::string& name);
  /// Reads bytes of the file; false where it is too short.
  bool read_bytes(std::uint64_t offset, void* out, std::uint64_t count);

  std::filesystem::path path_;
  std::uint64_t base_;
  std::uint64_t file_size_ = 0;
  std::ifstream in_;
  std::map<std::uint64_t, Collection> collections_;  ///< by offset in the file
};

}  // namespace shardscape::results
