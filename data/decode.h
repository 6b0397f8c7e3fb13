// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "data/image.h"

namespace weft::data {

struct DecodeOptions {
  /// If above 0, a JPEG may be decoded at 1/8 … 7/8 of its size (in the DCT domain, much faster). The shorter edge
  /// keeps at least this length. The result differs slightly from a full decode followed by a resize.
  int64_t shortest_edge = 0;
  /// The largest width times height that is decoded: 64 megapixels, 200 MB for each worker; a progressive
  /// JPEG's coefficients take as much again.
  int64_t max_pixels = int64_t{1} << 26;
  /// nvJPEG decodes on this GPU (kernels/engines/nvjpeg.h) colour JPEGs that end properly, at full size; libjpeg
  /// decodes the rest. -1: none. nvJPEG repeats subsampled colours (4:2:0, 4:2:2) for all of their pixels, as libjpeg
  /// does with do_fancy_upsampling = FALSE; libjpeg's default, with which networks are trained as a
  /// rule, interpolates them. Brightness is the same, colours differ along coloured edges.
  int gpu = -1;
};

/// Decodes an image of any format below, recognised by its first bytes, to upright RGB: Exif rotation applied, CMYK
/// converted (inverted where an Adobe marker says so), grey replicated, palettes looked up, alpha dropped, 16 bits cut
/// to 8; of several images in a file (GIF, TIFF) the first. A few bytes cannot ask for gigabytes: the image must be one
/// that a file of this length can hold. Errors name `path`: unknown format, corrupt, cut short, more than `max_pixels`.
Image decode(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options = {});

/// decode() for bytes that are known to be a JPEG, a PNG. Errors: those of decode().
Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options = {});
Image decode_png(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options = {});
/// WebP, BMP, GIF, TIFF, PNM: by Leptonica, where the build has it.
Image decode_other(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options = {});

/// `.jpg`, `.png`, …: the suffixes, in small letters, of files that this build reads.
std::span<const char* const> image_suffixes();
/// The suffixes that a build with Leptonica would add.
std::span<const char* const> unread_suffixes();

/// The Exif orientation (1 … 8) of a TIFF block (Exif 2.32, section 4.6; tag 0x0112); 1 where absent or malformed.
int exif_orientation(std::span<const uint8_t> tiff);
/// Where the block has the 16 bits of this number; 0: nowhere.
size_t exif_orientation_at(std::span<const uint8_t> tiff);
/// Turns and mirrors an image as its Exif orientation asks, so that it stands upright.
Image upright(Image image, int orientation);

}  // namespace weft::data
