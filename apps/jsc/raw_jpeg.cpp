// SPDX-License-Identifier: Apache-2.0
#include "apps/jsc/raw_jpeg.h"

#include <cstddef>
#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include "kernels/error.h"

namespace weft::jsc {
namespace {

[[noreturn]] void on_error(j_common_ptr state) {
  char text[JMSG_LENGTH_MAX];
  state->err->format_message(state, text);
  fail("--raw: libjpeg: ", text);  // a throw through C code that was built with unwind tables, as Debian's is
}

}  // namespace

struct RawJpeg::State {
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  std::vector<uint8_t> pixels;
};

RawJpeg::RawJpeg() : state_(std::make_unique<State>()) {
  state_->jpeg.err = jpeg_std_error(&state_->errors);
  state_->errors.error_exit = on_error;
  jpeg_create_decompress(&state_->jpeg);
}

RawJpeg::~RawJpeg() { jpeg_destroy_decompress(&state_->jpeg); }

size_t RawJpeg::decode(std::span<const uint8_t> bytes) {
  if (bytes.size() < 3 || bytes[0] != 0xff || bytes[1] != 0xd8) return 0;
  jpeg_decompress_struct& jpeg = state_->jpeg;
  jpeg_mem_src(&jpeg, bytes.data(), static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&jpeg, TRUE);
  if (jpeg.num_components == 4) {
    jpeg_abort_decompress(&jpeg);
    return 0;
  }
  jpeg.out_color_space = JCS_RGB;
  jpeg_start_decompress(&jpeg);
  const size_t line = size_t{3} * jpeg.output_width, size = line * jpeg.output_height;
  if (state_->pixels.size() < size) state_->pixels.resize(size);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW row = state_->pixels.data() + line * jpeg.output_scanline;
    jpeg_read_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_decompress(&jpeg);
  return size;
}

}  // namespace weft::jsc
