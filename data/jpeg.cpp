// SPDX-License-Identifier: Apache-2.0
#include <csetjmp>
#include <cstddef>
#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jerror.h>
#include <jpeglib.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "data/decode.h"
#include "kernels/engines/nvjpeg.h"
#include "kernels/error.h"

namespace weft::data {
namespace {

/// libjpeg reports through these callbacks; an error leaves by longjmp, which must not cross a C++ object's life.
struct JpegErrors {
  jpeg_error_mgr manager;  // first, so that a pointer to it is a pointer to this
  jpeg_progress_mgr progress;
  std::jmp_buf back;
  char text[JMSG_LENGTH_MAX];
  bool cut_short;
};

/// Each scan of a progressive image passes over all of it: a small file of many scans would take hours.
constexpr int kMostScans = 100;
/// Huffman codes spend 8 bits or more on 1024 pixels: one bit per block of 8x8 samples. The most thinly sampled
/// components in the format (4x1 next to 1x4) have 8 blocks in 32x32 pixels.
constexpr uint64_t kPixelsPerByte = 1024;

void on_error(j_common_ptr state) {
  auto* errors = reinterpret_cast<JpegErrors*>(state->err);
  errors->manager.format_message(state, errors->text);
  std::longjmp(errors->back, 1);
}

void on_message(j_common_ptr state, int level) {
  auto* errors = reinterpret_cast<JpegErrors*>(state->err);
  // Stray bytes and the like are warnings that every viewer tolerates; missing image data is not.
  if (level < 0 && errors->manager.msg_code == JWRN_JPEG_EOF) errors->cut_short = true;
}

void on_progress(j_common_ptr state) {
  const int scan = reinterpret_cast<j_decompress_ptr>(state)->input_scan_number;
  if (scan <= kMostScans) return;
  auto* errors = reinterpret_cast<JpegErrors*>(state->err);
  std::snprintf(errors->text, sizeof errors->text, "expected at most %d scans, got more", kMostScans);
  std::longjmp(errors->back, 1);
}

void print_nothing(j_common_ptr) {}

/// The result of decoding; plain memory that is written between setjmp and longjmp.
struct Decoded {
  Image image;
  std::vector<uint8_t> line;
  int components = 0;
  bool adobe = false;
  int orientation = 1;
  uint64_t pixels = 0;
  bool refused = false;
};

int orientation_of(const jpeg_decompress_struct& jpeg) {
  constexpr char kExif[] = {'E', 'x', 'i', 'f', 0, 0};
  for (const jpeg_marker_struct* marker = jpeg.marker_list; marker != nullptr; marker = marker->next)
    if (marker->marker == JPEG_APP0 + 1 && marker->data_length > sizeof(kExif) &&
        std::memcmp(marker->data, kExif, sizeof(kExif)) == 0)
      return exif_orientation({marker->data + sizeof(kExif), marker->data_length - sizeof(kExif)});
  return 1;
}

/// CMYK or inverted CMYK to RGB: r = (255 - c)(255 - k) / 255, rounded.
void cmyk_to_rgb(const uint8_t* from, uint8_t* to, int64_t width, bool inverted) {
  for (int64_t x = 0; x < width; ++x) {
    const int white = inverted ? from[4 * x + 3] : 255 - from[4 * x + 3];
    for (int64_t c = 0; c < 3; ++c) {
      const int ink_free = inverted ? from[4 * x + c] : 255 - from[4 * x + c];
      to[3 * x + c] = static_cast<uint8_t>((ink_free * white + 127) / 255);
    }
  }
}

/// libjpeg tells a file that was cut short from one with bytes after its end.
bool suits_nvjpeg(const jpeg_decompress_struct& jpeg, std::span<const uint8_t> bytes, const DecodeOptions& options) {
  return options.gpu >= 0 && options.shortest_edge == 0 && jpeg.jpeg_color_space == JCS_YCbCr && !jpeg.arith_code &&
         bytes[bytes.size() - 2] == 0xff && bytes.back() == JPEG_EOI;
}

/// Not inlined: longjmp would leave changed variables of run() undefined.
[[gnu::noinline]] void decode_into(jpeg_decompress_struct& jpeg, JpegErrors& errors, std::span<const uint8_t> bytes,
                                   const DecodeOptions& options, Decoded& out) {
  jpeg_create_decompress(&jpeg);
  jpeg.progress = &errors.progress;
  jpeg_save_markers(&jpeg, JPEG_APP0 + 1, 0xffff);
  jpeg_mem_src(&jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  out.orientation = orientation_of(jpeg);
  out.adobe = jpeg.saw_Adobe_marker != 0;
  out.pixels = static_cast<uint64_t>(jpeg.image_width) * jpeg.image_height;
  out.refused = out.pixels > static_cast<uint64_t>(options.max_pixels) || out.pixels > kPixelsPerByte * bytes.size();
  if (out.refused) return;

  if (suits_nvjpeg(jpeg, bytes, options)) {
    out.image = black_image(jpeg.image_height, jpeg.image_width, 3);
    if (kernels::vendor::nvjpeg::decode(options.gpu, bytes, out.image.height, out.image.width, out.image.pixels.data()))
      return;
  }
  const bool cmyk = jpeg.jpeg_color_space == JCS_CMYK || jpeg.jpeg_color_space == JCS_YCCK;
  jpeg.out_color_space = cmyk ? JCS_CMYK : JCS_RGB;
  if (options.shortest_edge > 0) {
    const int64_t edge = std::min(jpeg.image_width, jpeg.image_height);
    int64_t eighths = 1;
    while (eighths < 8 && (edge * eighths + 7) / 8 < options.shortest_edge) ++eighths;
    jpeg.scale_num = static_cast<unsigned>(eighths);
    jpeg.scale_denom = 8;
  }
  jpeg_start_decompress(&jpeg);
  out.components = jpeg.output_components;
  out.image.height = jpeg.output_height;
  out.image.width = jpeg.output_width;
  out.image.channels = 3;
  out.image.pixels.resize(size_t{3} * jpeg.output_height * jpeg.output_width);
  out.line.resize(size_t{4} * jpeg.output_width);
  while (jpeg.output_scanline < jpeg.output_height) {
    uint8_t* const row = out.image.row(jpeg.output_scanline);
    JSAMPROW target = cmyk ? out.line.data() : row;
    jpeg_read_scanlines(&jpeg, &target, 1);
    if (cmyk) cmyk_to_rgb(out.line.data(), row, out.image.width, out.adobe);
  }
  jpeg_finish_decompress(&jpeg);
}

/// Returns false after an error, whose text is in `errors`.
bool run(jpeg_decompress_struct& jpeg, JpegErrors& errors, std::span<const uint8_t> bytes, const DecodeOptions& options,
         Decoded& out) {
  if (setjmp(errors.back) != 0) return false;
  decode_into(jpeg, errors, bytes, options, out);
  return true;
}

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes, const std::string& path, DecodeOptions options) {
  JpegErrors errors{};
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = on_error;
  errors.manager.emit_message = on_message;
  errors.manager.output_message = print_nothing;
  errors.progress.progress_monitor = on_progress;
  const std::unique_ptr<jpeg_decompress_struct, void (*)(jpeg_decompress_struct*)> destroy_last(
      &jpeg, [](jpeg_decompress_struct* state) { jpeg_destroy_decompress(state); });
  Decoded out;
  const bool decoded = run(jpeg, errors, bytes, options, out);
  WEFT_CHECK(decoded, "jpeg: cannot read ", path, ": ", errors.text);
  WEFT_CHECK(!out.refused || out.pixels <= static_cast<uint64_t>(options.max_pixels), "jpeg: expected at most ",
             options.max_pixels, " pixels in ", path, ", got ", out.pixels);
  WEFT_CHECK(!out.refused, "jpeg: expected ", path, " to hold ", out.pixels, " pixels, got a file of ", bytes.size(),
             " bytes. Is it cut short?");
  WEFT_CHECK(!errors.cut_short, "jpeg: ", path, " is cut short after ", bytes.size(), " bytes");
  return upright(std::move(out.image), out.orientation);
}

}  // namespace weft::data
