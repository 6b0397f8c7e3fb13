// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "core/state_dict.h"

namespace weft {

/// What a safetensors file holds: named tensors, in the order of their data, and texts.
struct SafetensorsFile {
  StateDict state;
  std::map<std::string, std::string> metadata;
};

/// Reads a safetensors file (github.com/huggingface/safetensors): an 8-byte header length, a JSON header, the data.
/// The tensors are on the CPU. Everything is checked before the first tensor is made: the lengths against the file's
/// size, JSON, dtypes (BOOL U8 I32 I64 F16 BF16 F32 F64), shapes, and that the tensors' ranges fill the data without
/// holes or overlaps. Errors: `safetensors: FILE: …`, naming the tensor.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Writes the tensors (from any device, any strides) so that other libraries read them; replaces an old file in one go.
/// Errors: numbers in the state dict (the format has none), two tensors of one name, the disk is full.
void write_safetensors(const std::filesystem::path& path, const StateDict& state,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace weft
