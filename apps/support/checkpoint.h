// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/state_dict.h"

namespace weft::support {

/// All that a training run needs to go on as if it had never stopped.
struct Checkpoint {
  std::vector<std::pair<std::string, StateDict>> parts;  ///< `model`, `optimizer`, …
  std::map<std::string, int64_t> integers;               ///< epoch, step, seed, …
  std::map<std::string, double> numbers;                 ///< best accuracy, …
  std::map<std::string, std::string> texts;              ///< model name, configuration, …

  /// Errors: no such entry (another program's checkpoint, or an older one).
  const StateDict& part(std::string_view name) const;
  int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
};

/// Writes an HDF5 file: group /PART holds one dataset per tensor with its CRC-32C. It is written beside the old file,
/// sealed (core/seal.h), forced to the disk, then renamed: a crash or a full disk leaves the old checkpoint whole.
/// Errors: the disk is full, the folder is missing, there is no HDF5: Weft was built without it, or it is not found.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);

/// Reads it back bit by bit; the tensors are on the CPU. Errors: no such file, not HDF5, cut short, damaged, not
/// written by save_checkpoint. Damage is found before libhdf5 sees the file, whatever bytes it hits.
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// Whether Weft was built with HDF5. Programs without it train and save nothing.
bool have_checkpoints();

/// Loads HDF5 where Weft was built with it: a run that will save learns at its start, not after an epoch, that the
/// library is missing. Errors: those of loading it.
void prepare_checkpoints();

/// Errors unless `got` has exactly the names, shapes and dtypes of `expected`; lists at most five of each kind:
/// missing, unexpected, of another shape or dtype. `what` opens the text: `checkpoint runs/a/checkpoint_last.h5:
/// model`.
void require_match(const std::string& what, const StateDict& expected, const StateDict& got);

}  // namespace weft::support
