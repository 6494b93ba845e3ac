#include "results_schema/global_heap.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include "results_schema/store_error.h"

namespace shardscape::results {

namespace {

// HDF5 File Format Specification 3.0, III.E "Global Heap". A collection: signature, version, three reserved
// bytes (which HDF5 does not look at), its size with this header. Objects follow, each with a header of its
// own: index, reference count, four reserved bytes, size of the data; the data fills up to a multiple of
// eight. Index 0 is free space: its size counts its header, and it is the last. What is left at the end and
// too short for a header is free space, too.
constexpr std::string_view kSignature("GCOL\1", 5);
constexpr std::uint64_t kHeaderSize = 16;  // of a collection, and also of an object
constexpr std::uint64_t kSizeAt = 8;
constexpr std::uint64_t kAlignment = 8;

using Header = std::array<unsigned char, kHeaderSize>;

/// Reads a number of `bytes` bytes, lowest byte first.
std::uint64_t number_at(const Header& header, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes; i-- > 0;) number = number << 8U | header[at + i];
  return number;
}

}  // namespace

GlobalHeaps::GlobalHeaps(std::filesystem::path file, std::uint64_t base)
    : path_(std::move(file)), base_(base) {}

bool GlobalHeaps::read_bytes(std::uint64_t offset, void* out, std::uint64_t count) {
  if (!in_.is_open()) {
    std::error_code error;
    file_size_ = std::filesystem::file_size(path_, error);
    if (error) file_size_ = 0;
    in_.open(path_, std::ios::binary);
  }
  if (offset > file_size_ || count > file_size_ - offset) return false;
  in_.clear();
  in_.seekg(static_cast<std::streamoff>(offset));
  return static_cast<bool>(in_.read(static_cast<char*>(out), static_cast<std::streamsize>(count)));
}

const GlobalHeaps::Collection& GlobalHeaps::collection(std::uint64_t offset, const std::string& name) {
  const auto known = collections_.find(offset);
  if (known != collections_.end()) return known->second;
  const auto fail = [&](const std::string& what) {
    throw StoreError(
        path_, fmt::format("{} is damaged: the global heap collection at offset {} of the file {}", name,
                           offset, what));
  };
  Header header{};
  if (!read_bytes(offset, header.data(), kHeaderSize)) fail("lies behind its end");
  if (std::memcmp(header.data(), kSignature.data(), kSignature.size()) != 0) fail("is none");
  const std::uint64_t size = number_at(header, kSizeAt, 8);
  if (size < kHeaderSize || size > file_size_ - offset)
    fail(fmt::format("can't have a size of {} bytes", size));

  Collection objects;
  const std::uint64_t end = offset + size;
  for (std::uint64_t at = offset + kHeaderSize; end - at >= kHeaderSize;) {
    if (!read_bytes(at, header.data(), kHeaderSize)) fail("can't be read");
    const auto index = static_cast<std::uint32_t>(number_at(header, 0, 2));
    const std::uint64_t length = number_at(header, kSizeAt, 8);
    const std::string which = fmt::format("object {} of {} bytes", index, length);
    if (index == 0) {
      if (length != end - at) fail(fmt::format("has free space of {} bytes before its end", length));
      break;
    }
    const std::uint64_t room = end - at - kHeaderSize;
    if (length > room) fail("has no room for its " + which);
    const std::uint64_t padded = (length + kAlignment - 1) / kAlignment * kAlignment;
    if (padded > room) fail("has no room for its " + which);
    if (!objects.try_emplace(index, Object{at + kHeaderSize, length}).second)
      fail(fmt::format("has two objects {}", index));
    at += kHeaderSize + padded;
  }
  return collections_.emplace(offset, std::move(objects)).first->second;
}

GlobalHeaps::Object GlobalHeaps::find(const HeapReference& reference, const std::string& name) {
  const std::uint64_t offset = base_ + reference.address;
  const Collection& objects = collection(offset, name);
  const auto object = objects.find(reference.index);
  if (object != objects.end()) return object->second;
  throw StoreError(
      path_,
      fmt::format("{} is damaged: the global heap collection at offset {} of the file has no object {}", name,
                  offset, reference.index));
}

void GlobalHeaps::check(const HeapReference& reference, const std::string& name) {
  if (reference.address != 0) (void)find(reference, name);
}

std::string GlobalHeaps::read(const HeapReference& reference, const std::string& name) {
  if (reference.address == 0) return {};
  const Object object = find(reference, name);
  if (reference.length > file_size_)
    throw StoreError(path_, name + " is damaged: it would be longer than the file");
  if (reference.length != object.size) {
    throw StoreError(path_, fmt::format("{} is damaged: its {} bytes at offset {} of the file are {}", name,
                                        reference.length, object.offset, object.size));
  }
  std::string text(reference.length, '\0');
  if (!read_bytes(object.offset, text.data(), text.size())) throw StoreError(path_, name + " can't be read");
  return text;
}

}  // namespace shardscape::results
