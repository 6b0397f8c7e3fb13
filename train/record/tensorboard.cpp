// SPDX-License-Identifier: Apache-2.0
#include "train/record/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "kernels/error.h"
#include "train/record/event_file.h"
#include "train/record/json_lines.h"
#include "train/record/protobuf.h"

namespace weft::train {
namespace {

namespace fs = std::filesystem;

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 && name[0] != '\0' ? name : "localhost";
}

// Field numbers: Event {wall_time 1, step 2, file_version 3, summary 5, session_log 7}, Summary {value 1},
// Value {tag 1, simple_value 2, image 4, tensor 8, metadata 9}.

Message event(int64_t step) { return Message().fixed64(1, wall_time()).varint(2, static_cast<uint64_t>(step)); }

std::string summary_event(int64_t step, Message&& value) {
  return event(step).message(5, Message().message(1, value)).text();
}

/// The HPARAMS page reads its facts from the metadata of otherwise empty values: SummaryMetadata {plugin_data 1
/// {plugin_name 1, content 2}}, content HParamsPluginData.
std::string hparams_event(std::string_view tag, const Message& content) {
  const Message metadata = Message().message(1, Message().bytes(1, "hparams").bytes(2, content.text()));
  const Message empty_tensor = Message().varint(1, 1).message(2, Message().message(2, Message().varint(1, 0)));
  return summary_event(0, Message().bytes(1, tag).message(8, empty_tensor).message(9, metadata));
}

/// google.protobuf.Value {number 2, string 3, bool 4}.
Message value_of(const HyperParameter& value) {
  if (const auto* number = std::get_if<double>(&value)) return Message().fixed64(2, *number);
  if (const auto* flag = std::get_if<bool>(&value)) return Message().varint(4, *flag ? 1 : 0);
  return Message().bytes(3, std::get<std::string>(value));
}

}  // namespace

TensorBoard::TensorBoard(const fs::path& folder, int64_t resumed_step) {
  static std::atomic<int> files{0};  // several in one process must not share a name
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {  // a name may be there: the clock was set back, a container repeats its processes
    path_ = folder / fmt::format("events.out.tfevents.{:010d}.{}.{}.{}", static_cast<int64_t>(wall_time()), host_name(),
                                 ::getpid(), files++);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd_ >= 0 || errno != EEXIST) break;
  }
  WEFT_CHECK(fd_ >= 0, "tensorboard: expected to create ", path_.string(), ", got '", std::strerror(errno), "'");
  append(Message().fixed64(1, wall_time()).bytes(3, "brain.Event:2").text());
  // SessionLog {status 1 = START 1}: points of this folder from this step on are from before. TensorBoard heeds every
  // such event but a run's first, so that each file needs one (plugin_event_accumulator.py,
  // _CheckForRestartAndMaybePurge).
  append(event(std::max<int64_t>(resumed_step + 1, 0)).message(7, Message().varint(1, 1)).text());
}

TensorBoard::~TensorBoard() { ::close(fd_); }

void TensorBoard::append(std::string_view bytes) {
  const std::string record = event_record(bytes);
  const ssize_t written = ::write(fd_, record.data(), record.size());
  WEFT_CHECK(written == static_cast<ssize_t>(record.size()), "tensorboard: expected to append to ", path_.string(),
             ", got '", written < 0 ? std::strerror(errno) : "disk full", "'. Free some space and resume");
}

void TensorBoard::scalar(std::string_view tag, double value, int64_t step) {
  append(summary_event(step, Message().bytes(1, tag).fixed32(2, static_cast<float>(value))));
}

void TensorBoard::image(std::string_view tag, const Canvas& canvas, int64_t step) {
  const std::string png = encode_png(canvas);
  const Message image = Message()
                            .varint(1, static_cast<uint64_t>(canvas.height))
                            .varint(2, static_cast<uint64_t>(canvas.width))
                            .varint(3, 3)  // RGB
                            .bytes(4, png);
  append(summary_event(step, Message().bytes(1, tag).message(4, image)));
}

void TensorBoard::hyper_parameters(const HyperParameters& values) {
  // HParamsPluginData {version 1 = 0, session_start_info 3 {hparams 1: map entries {key 1, value 2}, start_time_secs
  // 5}}
  Message start;
  for (const auto& [name, value] : values)
    start = std::move(start).message(1, Message().bytes(1, name).message(2, value_of(value)));
  start = std::move(start).fixed64(5, wall_time());
  append(hparams_event("_hparams_/session_start_info", Message().message(3, start)));
}

void TensorBoard::end(bool success) {
  // session_end_info 4 {status 1: 1 success, 2 failure; end_time_secs 2}
  const Message end = Message().varint(1, success ? 1 : 2).fixed64(2, wall_time());
  append(hparams_event("_hparams_/session_end_info", Message().message(4, end)));
}

}  // namespace weft::train
