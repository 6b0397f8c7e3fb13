// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace weft::train {

/// A record of a TensorBoard event file: u64 length, its masked CRC-32C, the bytes, their masked CRC-32C
/// (tensorflow/core/lib/io/record_writer.h).
std::string event_record(std::string_view bytes);

enum class RecordState { whole, half, damaged };
/// Takes the record at the front of `file` and sets `bytes` to what it holds. A half record stays where it is: the rest
/// may come yet.
RecordState take_event_record(std::string_view& file, std::string_view& bytes);

}  // namespace weft::train
