// SPDX-License-Identifier: Apache-2.0
#include "train/record/tensorboard.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
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
  std::error_code ignored;  // open() says why
  fs::create_directories(folder, ignored);
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

void TensorBoard::image(std::string_view tag, const Tensor& image, int64_t step) {
  const bool floating = is_floating(image.dtype());
  WEFT_CHECK(image.dim() == 3 && (image.size(2) == 1 || image.size(2) == 3) && image.numel() > 0 &&
                 (floating || image.dtype() == DType::u8),
             "tensorboard: expected an image [height, width, 1 or 3] of u8 or floating numbers, got ", image);
  const std::vector<double> values = image.detach().to(Device{}).to_vector<double>();
  Canvas canvas(static_cast<int>(image.size(1)), static_cast<int>(image.size(0)));
  const size_t channels = static_cast<size_t>(image.size(2));
  for (size_t i = 0; i < canvas.pixels.size(); ++i) {
    const double value = values[channels == 3 ? i : i / 3] * (floating ? 255 : 1);
    canvas.pixels[i] = static_cast<uint8_t>(std::lround(std::clamp(std::isnan(value) ? 0 : value, 0.0, 255.0)));
  }
  this->image(tag, canvas, step);
}

void TensorBoard::histogram(std::string_view tag, const Tensor& tensor, int64_t step) {
  constexpr size_t kBins = 64;
  const std::vector<double> values = tensor.detach().to(Device{}).to_vector<double>();
  const bool finite = std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
  WEFT_CHECK(!values.empty() && finite, "tensorboard: expected finite numbers for the histogram '", tag, "', got ",
             values.empty() ? "none" : "some that are not");
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  const double size = std::max(std::abs(*least), std::abs(*most));
  const double width = std::max((*most - *least) / kBins, size > 0 ? 1e-12 * size : 1);
  double limits[kBins], counts[kBins] = {}, sum = 0, squares = 0;
  for (size_t bin = 0; bin < kBins; ++bin) limits[bin] = *least + width * static_cast<double>(bin + 1);
  for (const double value : values) {
    counts[std::min(static_cast<size_t>((value - *least) / width), kBins - 1)] += 1;
    sum += value;
    squares += value * value;
  }
  // HistogramProto {min 1, max 2, num 3, sum 4, sum_squares 5, bucket_limit 6, bucket 7}; both lists are packed.
  const auto packed = [](const double(&list)[kBins]) {
    return std::string_view(reinterpret_cast<const char*>(list), sizeof list);
  };
  const Message histogram = Message()
                                .fixed64(1, *least)
                                .fixed64(2, *most)
                                .fixed64(3, static_cast<double>(values.size()))
                                .fixed64(4, sum)
                                .fixed64(5, squares)
                                .bytes(6, packed(limits))
                                .bytes(7, packed(counts));
  append(summary_event(step, Message().bytes(1, tag).message(5, histogram)));
}

void TensorBoard::text(std::string_view tag, std::string_view markdown, int64_t step) {
  // TensorProto {dtype 1 = DT_STRING 7, tensor_shape 2 {dim 2 {size 1}}, string_val 8}
  const Message metadata = Message().message(1, Message().bytes(1, "text"));
  const Message tensor =
      Message().varint(1, 7).message(2, Message().message(2, Message().varint(1, 1))).bytes(8, markdown);
  append(summary_event(step, Message().bytes(1, tag).message(8, tensor).message(9, metadata)));
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
