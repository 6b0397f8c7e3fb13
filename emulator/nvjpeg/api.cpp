// SPDX-License-Identifier: Apache-2.0
// A part of nvjpeg.h: single images to interleaved RGB, decoded by libjpeg on this machine and copied in stream order.
#pragma GCC visibility push(default)
#include <nvjpeg.h>
#pragma GCC visibility pop

#include <csetjmp>
#include <cstddef>
#include <cstdio>
// jpeglib.h needs size_t and FILE before it.
#include <jpeglib.h>

#include <memory>
#include <vector>

struct nvjpegHandle {};
struct nvjpegJpegState {
  std::vector<unsigned char> pixels;  ///< the last image's, until its copy has ended
};

namespace {

struct Errors {
  jpeg_error_mgr manager;  // first, so that a pointer to it is a pointer to this
  std::jmp_buf back;
};

struct Size {
  int height = 0, width = 0, components = 0, sampling = 0;
};

/// The image's sizes, and its pixels, if asked for. False: libjpeg finds an error. Nothing in here has a destructor
/// that longjmp would pass over.
bool read(const unsigned char* data, size_t length, Size& size, std::vector<unsigned char>* rgb) {
  Errors errors{};
  jpeg_decompress_struct jpeg{};
  jpeg.err = jpeg_std_error(&errors.manager);
  errors.manager.error_exit = [](j_common_ptr state) { std::longjmp(reinterpret_cast<Errors*>(state->err)->back, 1); };
  errors.manager.output_message = [](j_common_ptr) {};
  if (setjmp(errors.back) != 0) {
    jpeg_destroy_decompress(&jpeg);
    return false;
  }
  jpeg_create_decompress(&jpeg);
  jpeg_mem_src(&jpeg, data, static_cast<unsigned long>(length));
  jpeg_read_header(&jpeg, TRUE);
  size = {static_cast<int>(jpeg.image_height), static_cast<int>(jpeg.image_width), jpeg.num_components,
          jpeg.comp_info[0].h_samp_factor * 10 + jpeg.comp_info[0].v_samp_factor};
  if (rgb) {
    jpeg.out_color_space = JCS_RGB;
    jpeg.do_fancy_upsampling = FALSE;  // NVIDIA's repeats subsampled colours (13.0 on an H200)
    jpeg_start_decompress(&jpeg);
    const size_t row = size_t{3} * jpeg.output_width;
    rgb->resize(row * jpeg.output_height);
    while (jpeg.output_scanline < jpeg.output_height) {
      JSAMPROW line = rgb->data() + row * jpeg.output_scanline;
      jpeg_read_scanlines(&jpeg, &line, 1);
    }
    jpeg_finish_decompress(&jpeg);
  }
  jpeg_destroy_decompress(&jpeg);
  return true;
}

}  // namespace

nvjpegStatus_t NVJPEGAPI nvjpegCreateSimple(nvjpegHandle_t* handle) {
  if (!handle) return NVJPEG_STATUS_INVALID_PARAMETER;
  *handle = new nvjpegHandle;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t NVJPEGAPI nvjpegDestroy(nvjpegHandle_t handle) {
  delete handle;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t NVJPEGAPI nvjpegJpegStateCreate(nvjpegHandle_t handle, nvjpegJpegState_t* state) {
  if (!handle || !state) return NVJPEG_STATUS_INVALID_PARAMETER;
  *state = new nvjpegJpegState;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t NVJPEGAPI nvjpegJpegStateDestroy(nvjpegJpegState_t state) {
  delete state;
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t NVJPEGAPI nvjpegGetImageInfo(nvjpegHandle_t handle, const unsigned char* data, size_t length,
                                            int* components, nvjpegChromaSubsampling_t* sampling, int* widths,
                                            int* heights) {
  if (!handle || !data || !components || !sampling || !widths || !heights) return NVJPEG_STATUS_INVALID_PARAMETER;
  Size size;
  if (!read(data, length, size, nullptr)) return NVJPEG_STATUS_BAD_JPEG;
  *components = size.components;
  *sampling = size.components == 1  ? NVJPEG_CSS_GRAY
              : size.sampling == 11 ? NVJPEG_CSS_444
              : size.sampling == 21 ? NVJPEG_CSS_422
              : size.sampling == 22 ? NVJPEG_CSS_420
                                    : NVJPEG_CSS_UNKNOWN;
  for (int c = 0; c < NVJPEG_MAX_COMPONENT; ++c) {
    const bool there = c<size.components, half = c> 0;
    widths[c] = !there ? 0 : half && size.sampling >= 20 ? (size.width + 1) / 2 : size.width;
    heights[c] = !there ? 0 : half && size.sampling % 10 == 2 ? (size.height + 1) / 2 : size.height;
  }
  return NVJPEG_STATUS_SUCCESS;
}

nvjpegStatus_t NVJPEGAPI nvjpegDecode(nvjpegHandle_t handle, nvjpegJpegState_t state, const unsigned char* data,
                                      size_t length, nvjpegOutputFormat_t format, nvjpegImage_t* image,
                                      cudaStream_t stream) {
  if (!handle || !state || !data || !image || !image->channel[0]) return NVJPEG_STATUS_INVALID_PARAMETER;
  if (format != NVJPEG_OUTPUT_RGBI) return NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
  // The last image's pixels are on their way until its stream has come so far.
  if (cudaStreamSynchronize(stream) != cudaSuccess) return NVJPEG_STATUS_EXECUTION_FAILED;
  Size size;
  if (!read(data, length, size, &state->pixels)) return NVJPEG_STATUS_BAD_JPEG;
  const size_t row = size_t{3} * static_cast<size_t>(size.width);
  if (image->pitch[0] < row) return NVJPEG_STATUS_INVALID_PARAMETER;
  const cudaError_t copied = cudaMemcpy2DAsync(image->channel[0], image->pitch[0], state->pixels.data(), row, row,
                                               static_cast<size_t>(size.height), cudaMemcpyHostToDevice, stream);
  return copied == cudaSuccess ? NVJPEG_STATUS_SUCCESS : NVJPEG_STATUS_EXECUTION_FAILED;
}
