// SPDX-License-Identifier: Apache-2.0
#include "train/record/event_file.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "io/crc32c.h"
#include "train/record/protobuf.h"

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

namespace {

// Field numbers: Event {wall_time 1, step 2, summary 5, session_log 7 {status 1: START 1}}, Summary {value 1}, Value
// {tag 1, simple_value 2, tensor 8, metadata 9 {plugin_data 1 {plugin_name 1, content 2}}}, HParamsPluginData
// {session_end_info 4 {status 1: success 1}}.

/// The first number of a TensorProto {dtype 1: float 1, double 2; tensor_content 4, float_val 5, double_val 6}, in
/// which TensorFlow 2 writes scalars.
std::optional<double> tensor_number(std::string_view tensor) {
  uint64_t dtype = 0;
  std::optional<double> number;
  std::string_view raw;
  for (MessageReader in(tensor); in.next();) {
    if (in.field() == 1) dtype = in.varint();
    if (in.field() == 4 || ((in.field() == 5 || in.field() == 6) && !in.bytes().empty())) raw = in.bytes();
    if (in.field() == 5 && in.bytes().empty()) number = in.fixed32();
    if (in.field() == 6 && in.bytes().empty()) number = in.fixed64();
  }
  if (number || dtype < 1 || dtype > 2) return dtype == 1 || dtype == 2 ? number : std::nullopt;
  float single = 0;
  double both = 0;
  const size_t size = dtype == 1 ? sizeof single : sizeof both;
  if (raw.size() != size) return std::nullopt;  // more than one number is no scalar
  std::memcpy(dtype == 1 ? static_cast<void*>(&single) : &both, raw.data(), size);
  return dtype == 1 ? single : both;
}

std::optional<bool> session_end(std::string_view metadata) {
  std::string_view plugin, name, content;
  for (MessageReader in(metadata); in.next();)
    if (in.field() == 1) plugin = in.bytes();
  for (MessageReader in(plugin); in.next();) {
    if (in.field() == 1) name = in.bytes();
    if (in.field() == 2) content = in.bytes();
  }
  if (name != "hparams") return std::nullopt;
  for (MessageReader in(content); in.next();) {
    if (in.field() != 4) continue;
    uint64_t status = 0;
    for (MessageReader end(in.bytes()); end.next();)
      if (end.field() == 1) status = end.varint();
    return status == 1;
  }
  return std::nullopt;
}

void read_value(std::string_view value, Event& event) {
  std::string tag;
  std::optional<double> number;
  for (MessageReader in(value); in.next();) {
    if (in.field() == 1) tag = in.bytes();
    if (in.field() == 2) number = in.fixed32();
    if (in.field() == 8) number = tensor_number(in.bytes());
    if (in.field() == 9)
      if (const auto end = session_end(in.bytes())) event.ends_session = end;
  }
  if (number && !tag.starts_with("_hparams_/")) event.scalars.emplace_back(tag, *number);
}

Event read_event(std::string_view bytes) {
  Event event;
  for (MessageReader in(bytes); in.next();) {
    if (in.field() == 1) event.wall_time = in.fixed64();
    if (in.field() == 2) event.step = static_cast<int64_t>(in.varint());
    if (in.field() == 5)
      for (MessageReader summary(in.bytes()); summary.next();)
        if (summary.field() == 1) read_value(summary.bytes(), event);
    if (in.field() == 7)
      for (MessageReader log(in.bytes()); log.next();)
        if (log.field() == 1) event.starts_session = log.varint() == 1;
  }
  return event;
}

}  // namespace

bool EventFile::is_one(const std::filesystem::path& path) {
  return path.filename().string().find("tfevents.") != std::string::npos;
}

bool EventFile::refresh(const std::function<void(const Event&)>& take) {
  bool any = false;
  // Nobody replaces an event file: a resumed run opens another one.
  while (!damaged_ && file_.refresh() != AppendedFile::Change::none) {
    std::string_view rest = file_.unread, bytes;
    RecordState state;
    while ((state = take_event_record(rest, bytes)) == RecordState::whole) {
      take(read_event(bytes));
      any = true;
    }
    damaged_ = state == RecordState::damaged;
    file_.unread.erase(0, file_.unread.size() - rest.size());
  }
  return any;
}

}  // namespace weft::train
