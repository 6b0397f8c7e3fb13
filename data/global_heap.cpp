// SPDX-License-Identifier: Apache-2.0
#include "data/global_heap.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "data/encoded_dataset.h"

namespace weft::data {
namespace {

static_assert(std::endian::native == std::endian::little, "HDF5's metadata is little-endian");

constexpr uint64_t kHeader = 16;  // collection header: "GCOL", version, three zeros, u64 bytes of the collection
constexpr uint64_t kObject = 16;  // object header: u16 number, u16 references, u32 zero, u64 bytes

template <class T>
T at(const uint8_t* bytes, uint64_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

bool is_collection(const uint8_t* bytes) { return std::memcmp(bytes, "GCOL\1", 5) == 0; }

}  // namespace

HeapReference parse_heap_reference(const uint8_t* stored) {
  return {at<uint32_t>(stored, 0), at<uint32_t>(stored, 12), at<uint64_t>(stored, 4)};
}

std::span<const uint8_t> read_heap_object(const FileReader& file, const HeapReference& reference, std::string_view part,
                                          int64_t index, std::vector<uint8_t>& buffer) {
  const auto [bytes, number, address] = reference;
  const auto bad = [&](const auto&... parts) { file.bad(part, " image ", index, parts...); };
  if (bytes == 0) bad(": expected an image, got 0 bytes");
  if (address > file.size() || file.size() - address < kHeader + kObject)
    bad(": expected it before the file's end, byte ", file.size(), ", got byte ", address, ". Is the file cut short?");
  const uint64_t rest = file.size() - address;  // the collection cannot be longer

  // Image and both headers in one read, on the guess that the image is the first object.
  std::span<uint8_t> room = room_in(buffer, std::min(rest, kHeader + kObject + bytes));
  file.read(address, room.data(), room.size());
  if (!is_collection(room.data())) bad(": expected a global heap at byte ", address, ", got something else");
  const auto collection = at<uint64_t>(room.data(), 8);
  if (collection < kHeader + kObject || collection > rest)
    bad(": expected a global heap of at most ", rest, " bytes, got ", collection);
  const bool first = at<uint16_t>(room.data(), kHeader) == number;
  if (!first && room.size() < collection) {
    room = room_in(buffer, collection);
    file.read(address, room.data(), room.size());
  }

  const uint64_t end = first ? std::min<uint64_t>(room.size(), collection) : collection;
  for (uint64_t offset = kHeader; end - offset >= kObject;) {
    const auto found = at<uint16_t>(room.data(), offset);
    const auto length = at<uint64_t>(room.data(), offset + 8);
    if (found == number && number != 0) {
      if (length != bytes) bad(": expected an object of ", bytes, " bytes in the global heap, got ", length);
      if (end - offset - kObject < bytes) bad(": expected an object within its global heap, got one beyond");
      return room.subspan(offset + kObject, bytes);
    }
    if (found == 0 || length > end - offset - kObject) break;  // the free space, which is last; or damage
    const uint64_t padded = kObject + (length + 7) / 8 * 8;
    if (padded > end - offset) break;
    offset += padded;
  }
  file.bad(part, " image ", index, ": expected object ", number, " in the global heap at byte ", address, ", got none");
}

}  // namespace weft::data
