// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/encoded_dataset.h"

namespace weft::data {

/// The content of a packed file. All numbers are unsigned and little-endian.
///
///   header, 64 bytes     0  "WEFTPACK".          8  u32 version, 1.         12  u32 zero.
///                       16  u64 bytes of the file.                          24  u64 offset of the index.
///                       32  u64 bytes of the index.                         40  u32 CRC-32C of the index.
///                       44  zeros.                                          60  u32 CRC-32C of bytes 0 to 59.
///   images               their JPEG or PNG bytes, in the order of the index.
///   index                u32 classes; of each: u32 length, name in UTF-8.
///                        u32 parts; of each: u32 length, name in UTF-8, u64 images; of each image, 24 bytes:
///                        u64 offset, u32 length, u32 CRC-32C, u32 label, u32 zero
inline constexpr uint64_t kPackedHeaderBytes = 64;

/// One part of a packed file (`pack` and packed_writer() write them): the images of a folder in a file. Each image is a
/// single read at a known place, while a folder needs an open() per image. `part`: its name, `train`.
/// Decoding checks each image's checksum, encoded() does not. Errors name the file: no packed file, of another version,
/// cut short, damaged, contents that contradict each other; no such part (names those there are).
std::shared_ptr<const EncodedDataset> packed_images(const std::filesystem::path& path, const std::string& part,
                                                    DecodeOptions decoding = {});
/// The names of the parts, in their order.
std::vector<std::string> packed_parts(const std::filesystem::path& path);

}  // namespace weft::data
