// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/tensor.h"
#include "train/record/canvas.h"

namespace weft::train {

using HyperParameter = std::variant<double, bool, std::string>;
using HyperParameters = std::vector<std::pair<std::string, HyperParameter>>;

/// Writes a TensorBoard event file (`tensorboard --logdir FOLDER`): records of length, masked CRC-32C, protobuf message
/// (tensorflow/core/util/event.proto), masked CRC-32C. Each call appends a record in one write, so a killed run leaves
/// whole records.
class TensorBoard {
 public:
  /// Creates `events.out.tfevents.TIME.HOST.PID.N` in the folder, which need not exist. TensorBoard forgets the points
  /// after `resumed_step`
  /// (-1: a new run) that an earlier run of the same folder wrote.
  explicit TensorBoard(const std::filesystem::path& folder, int64_t resumed_step = -1);
  ~TensorBoard();
  TensorBoard(const TensorBoard&) = delete;
  TensorBoard& operator=(const TensorBoard&) = delete;

  void scalar(std::string_view tag, double value, int64_t step);
  /// As PNG. Errors: see encode_png.
  void image(std::string_view tag, const Canvas& canvas, int64_t step);
  /// [height, width, 1 or 3], u8 or floating from 0 to 1 (what lies outside is cut off). Errors: another shape or
  /// dtype.
  void image(std::string_view tag, const Tensor& image, int64_t step);
  /// How a tensor's numbers are distributed, in 64 equal bins. Errors: no numbers, one that is not finite.
  void histogram(std::string_view tag, const Tensor& values, int64_t step);
  /// Markdown, for the TEXT page.
  void text(std::string_view tag, std::string_view markdown, int64_t step);
  /// Writes this run's entry on the HPARAMS page; to be called once.
  void hyper_parameters(const HyperParameters& values);
  /// How the run ended, for the HPARAMS page.
  void end(bool success);

  const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace weft::train
