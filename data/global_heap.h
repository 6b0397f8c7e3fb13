// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "io/file_reader.h"

namespace weft::data {

/// Where an element of variable length lies in an HDF5 file whose offsets and lengths have 8 bytes: 16 bytes of dataset
/// storage. u32 length (in elements, here bytes), u64 heap collection's address, u32 object's number (HDF5 File Format
/// Specification 3.0, IV.B and III.E).
struct HeapReference {
  uint32_t bytes = 0, object = 0;
  uint64_t collection = 0;
};
inline constexpr uint64_t kHeapReferenceBytes = 16;
HeapReference parse_heap_reference(const uint8_t* stored);

/// The element itself, a view of `buffer`. The first object of its collection, such as an image that fills a
/// collection, is a single read straight to the place; libhdf5 would copy it twice more, under a lock. Errors name the
/// file and `part` image `index`: no collection there, no such object, another length, cut short.
std::span<const uint8_t> read_heap_object(const FileReader& file, const HeapReference& reference, std::string_view part,
                                          int64_t index, std::vector<uint8_t>& buffer);

}  // namespace weft::data
