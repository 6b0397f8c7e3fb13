// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "train/tensorboard.h"

namespace weft::jsc {

/// Makes `ROOT/version_N` with the lowest N above those that are there, as Lightning numbers its runs. Two runs that
/// start at once get two folders. Errors: it cannot be made.
std::filesystem::path make_version_folder(const std::filesystem::path& root);

/// `hparams.yaml`, a line for each value.
void write_hparams(const std::filesystem::path& folder, const train::HyperParameters& values);

}  // namespace weft::jsc
