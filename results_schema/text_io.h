// Texts of HDF5 files, of fixed and of variable length. HDF5 looks up where a text of variable length lies;
// the text itself is read by GlobalHeaps. Private to this folder.
#pragma once

#include <hdf5.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "results_schema/global_heap.h"
#include "results_schema/hdf5_io.h"

namespace shardscape::results {

/// The HDF5 type of UTF-8 texts of variable length.
Hid text_type();
/// Writes a text attribute; false where HDF5 fails.
bool write_text_attribute(hid_t object, const char* name, std::string_view text);

/// Read scalar texts; nothing where the object is none, or HDF5 cannot read it. `name` appears in the StoreError about
/// a text whose heap is damaged.
std::optional<std::string> text_of_attribute(hid_t attribute, GlobalHeaps& heaps, const std::string& name);
std::optional<std::string> text_of_dataset(hid_t dataset, GlobalHeaps& heaps, const std::string& name);

/// Where the elements of variable length of an attribute lie, text or not; none where it has no such elements.
std::vector<HeapReference> references_of_attribute(hid_t attribute);

}  // namespace shardscape::results
