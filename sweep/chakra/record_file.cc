#include "sweep/chakra/record_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>

#include <array>
#include <utility>

#include "sweep/input/input_file.h"

namespace shardscape::chakra {

namespace {

/// The most bytes of one record (64 MiB): a node holds names, shapes and a list of dependencies of ten bytes each.
constexpr std::uint64_t kLongestRecord = std::uint64_t{1} << 26;

}  // namespace

RecordReader::RecordReader(const std::filesystem::path& file) : unreadable_(input::unreadable(file)) {
  std::error_code error;
  if (!unreadable_.empty()) return;
  in_.open(file, std::ios::binary);
  const auto size = std::filesystem::file_size(file, error);
  if (!error) left_ = size_ = size;
}

RecordReader::Outcome RecordReader::broken(std::string problem) {
  problem_ = std::move(problem);
  left_ = 0;
  return Outcome::broken;
}

RecordReader::Outcome RecordReader::next(google::protobuf::MessageLite& message) {
  if (!problem_.empty()) return Outcome::broken;
  if (!unreadable_.empty()) return broken(unreadable_);
  if (!in_) return broken("cannot be read");
  if (left_ == 0) return Outcome::end;
  begin_ = size_ - left_;
  std::uint64_t length = 0;
  for (int shift = 0;; shift += 7) {
    const int byte = in_.get();
    if (byte < 0) return broken(fmt::format("cut off within the length at byte {}", begin_));
    --left_;
    // A length has 64 bits, seven per byte, so the tenth byte has room for one bit only.
    if (shift == 63 && byte > 1) return broken(fmt::format("no length of a message at byte {}", begin_));
    length |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if ((byte & 0x80) == 0) break;
  }
  if (length > left_) {
    return broken(fmt::format("cut off: the message at byte {} says it has {} bytes, the file has {} more",
                              begin_, length, left_));
  }
  if (length > kLongestRecord) {
    return broken(
        fmt::format("the message at byte {} says it has {} bytes, more than any node has", begin_, length));
  }
  buffer_.resize(static_cast<std::size_t>(length));
  in_.read(buffer_.data(), static_cast<std::streamsize>(length));
  if (in_.gcount() != static_cast<std::streamsize>(length)) return broken("cannot be read");
  left_ -= length;
  const google::protobuf::LogSilencer silence;  // parse errors are reported by this class, in one piece
  if (!message.ParseFromString(buffer_)) {
    return broken(
        fmt::format("the {} bytes at byte {} are no message of an execution trace", length, begin_));
  }
  return Outcome::message;
}

RecordWriter::RecordWriter(const std::filesystem::path& file) : out_(file, std::ios::binary) {}

void RecordWriter::add(const google::protobuf::MessageLite& message) {
  message.SerializeToString(&buffer_);
  std::array<std::uint8_t, 10> length{};
  const std::uint8_t* const end =
      google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(buffer_.size(), length.data());
  for (const std::uint8_t* byte = length.data(); byte != end; ++byte) out_.put(static_cast<char>(*byte));
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
}

bool RecordWriter::close() {
  out_.close();
  return static_cast<bool>(out_);
}

}  // namespace shardscape::chakra
