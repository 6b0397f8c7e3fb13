// SPDX-License-Identifier: Apache-2.0
#include "train/event_record.h"

#include <cstdint>
#include <cstring>

#include "io/crc32c.h"

namespace weft::train {
namespace {

constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);

/// A CRC of data that holds CRCs is a weak check, so the format rotates it by 15 bits and adds a constant.
uint32_t masked_crc(const void* bytes, size_t size) {
  const uint32_t crc = crc32c(bytes, size);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <class T>
T number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

}  // namespace

std::string event_record(std::string_view bytes) {
  const uint64_t length = bytes.size();
  const uint32_t length_crc = masked_crc(&length, sizeof length), data_crc = masked_crc(bytes.data(), bytes.size());
  std::string record;
  record.append(reinterpret_cast<const char*>(&length), sizeof length);
  record.append(reinterpret_cast<const char*>(&length_crc), sizeof length_crc);
  record.append(bytes);
  record.append(reinterpret_cast<const char*>(&data_crc), sizeof data_crc);
  return record;
}

RecordState take_event_record(std::string_view& file, std::string_view& bytes) {
  if (file.size() < kHead) return RecordState::half;
  const auto length = number<uint64_t>(file);
  if (number<uint32_t>(file.substr(sizeof length)) != masked_crc(file.data(), sizeof length))
    return RecordState::damaged;
  const std::string_view rest = file.substr(kHead);
  if (length > rest.size() || rest.size() - length < sizeof(uint32_t)) return RecordState::half;
  bytes = rest.substr(0, length);
  if (number<uint32_t>(rest.substr(length)) != masked_crc(bytes.data(), bytes.size())) return RecordState::damaged;
  file = rest.substr(length + sizeof(uint32_t));
  return RecordState::whole;
}

}  // namespace weft::train
