// SPDX-License-Identifier: Apache-2.0
#include "apps/nersc/run_log.h"

#include <algorithm>

#include "io/atomic_file.h"

namespace weft::nersc {
namespace {

std::filesystem::path made(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  WEFT_CHECK(!error, "root_dir: cannot create ", folder.string(), ": ", error.message());
  return folder;
}

/// The first channel of the first field as grey, 0 black and 1 white.
train::Canvas image_of(const Tensor& fields) {
  const auto [N, H, W, C] = fields.dims<4>();
  const std::vector<float> values = fields.slice(0, 0, 1).slice(3, 0, 1).to_vector<float>();
  train::Canvas image(static_cast<int>(W), static_cast<int>(H));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto grey = static_cast<uint8_t>(std::clamp(values[i], 0.0f, 1.0f) * 255);
    std::fill_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, grey);
  }
  return image;
}

}  // namespace

RunLog::RunLog(const std::filesystem::path& folder, const Config& config, int64_t done)
    : log_(made(folder) / "wandb", done > 0 ? done : -1) {
  write_atomically(folder / "hyperparams.yaml", yaml(config), "hyperparams");
  log_.config(hyper_parameters(config));
}

void RunLog::fields(int64_t epoch, const Tensor& target, const Tensor& prediction) {
  if (train::have_png()) log_.image("vis", train::grid({image_of(target), image_of(prediction)}, 2), epoch);
}

}  // namespace weft::nersc
