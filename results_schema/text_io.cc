#include "results_schema/text_io.h"

#include <algorithm>
#include <array>
#include <vector>

namespace shardscape::results {

namespace {

// HDF5 gives access to what a file stores for an element of variable length only in a conversion. This conversion turns
// the element into an opaque value of the same bytes: four of the length, eight of the address, four of the index
// (IV.B, "Variable-length"). A file with shorter addresses has shorter elements, which it refuses.
constexpr std::size_t kLengthBytes = 4, kAddressBytes = 8, kIndexBytes = 4;
constexpr std::size_t kReferenceBytes = kLengthBytes + kAddressBytes + kIndexBytes;
constexpr const char* kReferenceTag = "shardscape: variable length as stored";

using StoredReference = std::array<unsigned char, kReferenceBytes>;

bool is_variable(hid_t type) { return H5Tis_variable_str(type) > 0 || H5Tget_class(type) == H5T_VLEN; }

bool is_reference_type(hid_t type) {
  if (H5Tget_class(type) != H5T_OPAQUE || H5Tget_size(type) != kReferenceBytes) return false;
  char* tag = H5Tget_tag(type);
  const bool ours = tag != nullptr && std::string_view(tag) == kReferenceTag;
  H5free_memory(tag);
  return ours;
}

extern "C" herr_t keep_reference(hid_t source, hid_t target, H5T_cdata_t* conversion, std::size_t,
                                 std::size_t, std::size_t, void*, void*, hid_t) {
  if (conversion->command != H5T_CONV_INIT) return 0;
  conversion->need_bkg = H5T_BKG_NO;
  return is_variable(source) && H5Tget_size(source) == kReferenceBytes && is_reference_type(target) ? 0 : -1;
}

Hid reference_type() {
  Hid type(H5Tcreate(H5T_OPAQUE, kReferenceBytes));
  H5Tset_tag(type.get(), kReferenceTag);
  static const herr_t kRegistered =
      H5Tregister(H5T_PERS_SOFT, "as stored", text_type().get(), type.get(), keep_reference);
  (void)kRegistered;  // if registering failed, reading fails as well
  return type;
}

HeapReference parse_reference(const StoredReference& bytes) {
  const auto number = [&](std::size_t at, std::size_t count) {
    std::uint64_t value = 0;
    for (std::size_t i = count; i-- > 0;) value = value << 8U | bytes[at + i];
    return value;
  };
  return {number(0, kLengthBytes), number(kLengthBytes, kAddressBytes),
          static_cast<std::uint32_t>(number(kLengthBytes + kAddressBytes, kIndexBytes))};
}

/// Reads a scalar text; `read` fetches the value into a buffer of the given type.
template <class Read>
std::optional<std::string> read_scalar_text(hid_t type, hid_t space, GlobalHeaps& heaps,
                                            const std::string& name, const Read& read) {
  if (H5Tget_class(type) != H5T_STRING || H5Sget_simple_extent_npoints(space) != 1) return std::nullopt;
  std::string text;
  if (H5Tis_variable_str(type) > 0) {
    StoredReference bytes{};
    if (!read(reference_type().get(), bytes.data())) return std::nullopt;
    text = heaps.read(parse_reference(bytes), name);
  } else {
    text.resize(H5Tget_size(type));
    if (!read(type, text.data())) return std::nullopt;
  }
  return text.substr(0, text.find('\0'));
}

}  // namespace

Hid text_type() {
  Hid type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

bool write_text_attribute(hid_t object, const char* name, std::string_view text) {
  const std::string terminated(text);
  const char* pointer = terminated.c_str();
  const Hid type = text_type();
  const Hid space(H5Screate(H5S_SCALAR));
  const Hid attribute(H5Acreate2(object, name, type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
  return attribute.get() >= 0 && H5Awrite(attribute.get(), type.get(), &pointer) >= 0;
}

std::optional<std::string> text_of_attribute(hid_t attribute, GlobalHeaps& heaps, const std::string& name) {
  const Hid type(H5Aget_type(attribute));
  const Hid space(H5Aget_space(attribute));
  return read_scalar_text(type.get(), space.get(), heaps, name,
                          [&](hid_t memory, void* out) { return H5Aread(attribute, memory, out) >= 0; });
}

std::optional<std::string> text_of_dataset(hid_t dataset, GlobalHeaps& heaps, const std::string& name) {
  const Hid type(H5Dget_type(dataset));
  const Hid space(H5Dget_space(dataset));
  return read_scalar_text(type.get(), space.get(), heaps, name, [&](hid_t memory, void* out) {
    return H5Dread(dataset, memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0;
  });
}

std::vector<HeapReference> references_of_attribute(hid_t attribute) {
  const Hid type(H5Aget_type(attribute));
  if (!is_variable(type.get())) return {};
  const Hid space(H5Aget_space(attribute));
  const auto count =
      static_cast<std::size_t>(std::max<hssize_t>(0, H5Sget_simple_extent_npoints(space.get())));
  std::vector<StoredReference> stored(count);
  if (count == 0 || H5Aread(attribute, reference_type().get(), stored.data()) < 0) return {};
  std::vector<HeapReference> references;
  references.reserve(count);
  for (const StoredReference& bytes : stored) references.push_back(parse_reference(bytes));
  return references;
}

}  // namespace shardscape::results
