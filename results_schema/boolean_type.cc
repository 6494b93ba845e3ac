#include "results_schema/boolean_type.h"

#include <algorithm>
#include <fstream>
#include <string>

namespace shardscape::results {

namespace {

/// The type as H5Tencode writes it: two bytes of its own, then the message of an object header.
std::string encoded_boolean() {
  constexpr std::size_t kOwnBytes = 2;
  const Hid type = boolean_type();
  std::size_t size = 0;
  if (H5Tencode(type.get(), nullptr, &size) < 0 || size < kOwnBytes) return {};
  std::string bytes(size, '\0');
  if (H5Tencode(type.get(), bytes.data(), &size) < 0) return {};
  return bytes.substr(kOwnBytes);
}

// HDF5 File Format Specification 3.0, IV.A.1.a "Version 1 Data Object Header Prefix": sixteen bytes. The
// first message follows: type, size, flags, three reserved bytes; then its data, filled up to a multiple of
// eight.
constexpr std::size_t kPrefixBytes = 16, kMessageHeaderBytes = 8;
constexpr std::size_t kMessageAlignment = 8;
constexpr std::size_t kFlagsAt = 4;
constexpr unsigned kSharedFlag = 2;       // the flag of messages whose data only say where the message is
constexpr unsigned kDatatypeMessage = 3;  // IV.A.2.d "The Datatype Message"

/// Whether the bytes at `at` are an object header of version 1 with this datatype, as HDF5 writes a named type.
bool begins_with_type(const std::filesystem::path& path, std::uint64_t at, const std::string& type) {
  const std::size_t padded = (type.size() + kMessageAlignment - 1) / kMessageAlignment * kMessageAlignment;
  std::string header(kPrefixBytes + kMessageHeaderBytes + padded, '\0');
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(at));
  if (!in.read(header.data(), static_cast<std::streamsize>(header.size()))) return false;
  const auto number = [&](std::size_t offset) {  // the number of two bytes at an offset, lowest byte first
    return static_cast<unsigned char>(header[offset]) + 256U * static_cast<unsigned char>(header[offset + 1]);
  };
  const bool shared = (static_cast<unsigned char>(header[kPrefixBytes + kFlagsAt]) & kSharedFlag) != 0;
  return !shared && number(kPrefixBytes) == kDatatypeMessage && number(kPrefixBytes + 2) == padded &&
         header.compare(kPrefixBytes + kMessageHeaderBytes, type.size(), type) == 0;
}

}  // namespace

Hid boolean_type() {
  Hid type(H5Tenum_create(H5T_NATIVE_INT8));
  for (std::int8_t value = 0; const char* name : {"FALSE", "TRUE"}) {
    H5Tenum_insert(type.get(), name, &value);
    ++value;
  }
  return type;
}

bool name_boolean_type(hid_t file) {
  const Hid type = boolean_type();
  const Hid creation(H5Pcreate(H5P_DATATYPE_CREATE));
  // Tracking the order of attributes gives the object header a checksum, as everything else in the file has.
  H5Pset_attr_creation_order(creation.get(), H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED);
  H5Pset_obj_track_times(creation.get(), false);
  return H5Tcommit2(file, kBooleanType, type.get(), H5P_DEFAULT, creation.get(), H5P_DEFAULT) >= 0;
}

bool is_boolean_type_sound(hid_t file, const std::filesystem::path& path, std::uint64_t base) {
  if (H5Lexists(file, kBooleanType, H5P_DEFAULT) <= 0) return true;
  H5O_info_t info;
  if (H5Oget_info_by_name2(file, kBooleanType, &info, H5O_INFO_BASIC | H5O_INFO_HDR, H5P_DEFAULT) < 0)
    return false;
  return info.hdr.version > 1 || begins_with_type(path, base + info.addr, encoded_boolean());
}

}  // namespace shardscape::results
