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

namespace weft {

/// Everything that a training run needs to resume as if it had never stopped.
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

/// Writes one file (io/checkpoint_index.h), safetensors with the tensors as PART/NAME and all else in the metadata. It
/// is written beside the old file, sealed (io/seal.h), forced to the disk, then renamed: a crash or a full disk leaves
/// the old checkpoint whole. With `keep` above 1 the `keep` - 1 checkpoints before it stay as kept_file()
/// (io/atomic_file.h). Errors: the disk is full, the folder is missing.
void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint, int keep = 1);

/// Reads it back bit by bit; the tensors are on the CPU. Also reads the folder of a sharded checkpoint
/// (dist/fsdp/checkpoint_writer.h). Errors: no such file, another format, cut short, damaged: whatever bytes are hit.
Checkpoint load_checkpoint(const std::filesystem::path& path);

/// `path`, or its replacement: the folder of a sharded checkpoint (the name without `.safetensors`); "" where there is
/// none. A link counts, wherever it leads: loading then names the missing file.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// The newest intact checkpoint among find_checkpoint(path) and its kept predecessors; "" if there is none at
/// all. `note`: a line on a damaged checkpoint that is skipped. Errors: all are damaged; the text is the
/// newest's.
std::filesystem::path find_whole_checkpoint(const std::filesystem::path& path, std::string& note);

/// Errors unless `got` has exactly the names, shapes and dtypes of `expected`; lists at most five of each kind:
/// missing, unexpected, of another shape or dtype. `what` opens the text: `checkpoint
/// runs/a/checkpoint_last.safetensors: model`.
void require_match(const std::string& what, const StateDict& expected, const StateDict& got);

}  // namespace weft
