// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>

#include "data/encoded_dataset.h"

namespace weft::data {

/// One part of a packed file (packed_index.h; `pack` and packed_writer() write them): the images of a folder in one
/// file, each a single read at a known place, where a parallel file system would have to open a file for each. `part`:
/// its name, `train`; for `val` a file may have `test` instead. Decoding checks each image's checksum, encoded() does
/// not. Errors: those of read_packed_index; no such part (names those there are).
std::shared_ptr<const EncodedDataset> packed_images(const std::filesystem::path& path, const std::string& part,
                                                      DecodeOptions decoding = {});
/// The names of the parts, in their order.
std::vector<std::string> packed_parts(const std::filesystem::path& path);

}  // namespace weft::data
