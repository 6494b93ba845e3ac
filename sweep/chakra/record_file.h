// Reads and writes files of length-prefixed protobuf messages.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace shardscape::chakra {

/// Reads one file message after message. Lengths are checked against the rest of the file before anything is allocated.
class RecordReader {
 public:
  enum class Outcome { message, end, broken };

  /// Does not fail where the file can't be opened: the first next() then returns `broken`.
  explicit RecordReader(const std::filesystem::path& file);

  /// Reads the next message into `message`.
  Outcome next(google::protobuf::MessageLite& message);
  /// What is wrong with the file, after next() has returned `broken`; nothing more can be read then.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Where the message read last begins in the file, in bytes, for texts about it.
  [[nodiscard]] std::uint64_t offset() const { return begin_; }

 private:
  Outcome broken(std::string problem);

  std::string unreadable_;  ///< why the file is none; "" where it is one
  std::ifstream in_;
  std::uint64_t left_ = 0, size_ = 0, begin_ = 0;
  std::string buffer_, problem_;
};

/// Writes message after message; whether all of it succeeded is known after close().
class RecordWriter {
 public:
  explicit RecordWriter(const std::filesystem::path& file);
  void add(const google::protobuf::MessageLite& message);
  /// Returns false where anything could not be written.
  [[nodiscard]] bool close();

 private:
  std::ofstream out_;
  std::string buffer_;
};

}  // namespace shardscape::chakra
