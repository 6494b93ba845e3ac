// Length-prefixed protobuf messages in a file.
#pragma once

#include <google/protobuf/message_lite.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace shardscape::chakra {

/// Reads message after message. Lengths are checked against the rest of the file before anything is
/// allocated. One object per file.
class RecordReader {
 public:
  enum class Outcome { message, end, broken };

  /// Nothing about a file that can't be opened: the first next() is broken then.
  explicit RecordReader(const std::filesystem::path& file);

  /// Replaces `message` by the next one.
  Outcome next(google::protobuf::MessageLite& message);
  /// What is wrong, after `broken`; nothing more can be read then.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  /// Where the message read last begins, for messages about it; bytes.
  [[nodiscard]] std::uint64_t offset() const { return begin_; }

 private:
  Outcome broken(std::string problem);

  std::string unreadable_;  ///< why the file is none; "" where it is one
  std::ifstream in_;
  std::uint64_t left_ = 0, size_ = 0, begin_ = 0;
  std::string buffer_, problem_;
};

/// Writes message after message; failures show in close().
class RecordWriter {
 public:
  explicit RecordWriter(const std::filesystem::path& file);
  void add(const google::protobuf::MessageLite& message);
  /// False where anything could not be written.
  [[nodiscard]] bool close();

 private:
  std::ofstream out_;
  std::string buffer_;
};

}  // namespace shardscape::chakra
