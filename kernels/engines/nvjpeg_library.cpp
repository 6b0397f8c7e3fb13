// SPDX-License-Identifier: Apache-2.0
#include <nvjpeg.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "kernels/engines/cuda_stream.h"
#include "kernels/engines/nvjpeg.h"
#include "kernels/engines/vendor_library.h"
#include "kernels/error.h"

namespace weft::kernels::vendor::nvjpeg {
namespace {

/// The functions that Weft calls, found in libnvjpeg.so when the first is needed.
struct Library {
#define WEFT_NVJPEG_FUNCTIONS(X) \
  X(CreateSimple) X(Destroy) X(JpegStateCreate) X(JpegStateDestroy) X(GetImageInfo) X(Decode)
#define WEFT_NVJPEG_MEMBER(name) decltype(&nvjpeg##name) name = nullptr;
  WEFT_NVJPEG_FUNCTIONS(WEFT_NVJPEG_MEMBER)
#undef WEFT_NVJPEG_MEMBER
  std::string missing;
};

Library load() {
  const std::string file = str("libnvjpeg.so.", NVJPEG_VER_MAJOR);  // another major version has another ABI
  VendorLibrary found(file, WEFT_NVJPEG_FOLDER, "that of the CUDA toolkit",
                      why_not_under_emulator(file, "Decode on the CPU there"));
  Library library;
#define WEFT_NVJPEG_FIND(name) found.find(library.name, "nvjpeg" #name);
  WEFT_NVJPEG_FUNCTIONS(WEFT_NVJPEG_FIND)
#undef WEFT_NVJPEG_FIND
  library.missing = found.missing;
  if (!library.missing.empty()) return library;
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status != cudaSuccess) library.missing = str("there is no GPU (", cudaGetErrorString(cudaGetLastError()), ')');
  return library;
}

const Library& library() {
  static const Library loaded = load();
  return loaded;
}

void check(const char* call, cudaError_t status) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the next call starts clean
  fail("nvjpeg: ", call, ": ", cudaGetErrorString(status));
}

void check(const char* call, nvjpegStatus_t status) {
  WEFT_CHECK(status == NVJPEG_STATUS_SUCCESS, "nvjpeg: nvjpeg", call, " gave status ", static_cast<int>(status));
}

bool is_of_the_file(nvjpegStatus_t status) {
  return status == NVJPEG_STATUS_BAD_JPEG || status == NVJPEG_STATUS_JPEG_NOT_SUPPORTED ||
         status == NVJPEG_STATUS_INCOMPLETE_BITSTREAM || status == NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED;
}

/// A decoder serves one thread at a time, on a GPU.
class Decoder {
 public:
  explicit Decoder(int gpu) : gpu_(gpu) {
    select_device(gpu);
    check("CreateSimple", library().CreateSimple(&handle_));
    check("JpegStateCreate", library().JpegStateCreate(handle_, &state_));
    check("cudaStreamCreate", cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~Decoder() {  // the driver may have ended: nobody is told
    cudaFree(pixels_);
    if (stream_) cudaStreamDestroy(stream_);
    if (state_) library().JpegStateDestroy(state_);
    if (handle_) library().Destroy(handle_);
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  int gpu() const { return gpu_; }

  bool decode(std::span<const uint8_t> jpeg, int64_t height, int64_t width, uint8_t* rgb) {
    select_device(gpu_);
    int components = 0, widths[NVJPEG_MAX_COMPONENT] = {}, heights[NVJPEG_MAX_COMPONENT] = {};
    nvjpegChromaSubsampling_t sampling;
    const nvjpegStatus_t known =
        library().GetImageInfo(handle_, jpeg.data(), jpeg.size(), &components, &sampling, widths, heights);
    if (known != NVJPEG_STATUS_SUCCESS || components != 3 || widths[0] != width || heights[0] != height) return false;
    const auto bytes = static_cast<size_t>(3 * height * width);
    if (bytes > room_) {
      check("cudaFree", cudaFree(std::exchange(pixels_, nullptr)));
      room_ = 0;
      check("cudaMalloc", cudaMalloc(&pixels_, bytes));
      room_ = bytes;
    }
    nvjpegImage_t image{};
    image.channel[0] = static_cast<unsigned char*>(pixels_);
    image.pitch[0] = static_cast<size_t>(3 * width);
    const nvjpegStatus_t status =
        library().Decode(handle_, state_, jpeg.data(), jpeg.size(), NVJPEG_OUTPUT_RGBI, &image, stream_);
    if (is_of_the_file(status)) return false;
    check("Decode", status);
    check("cudaMemcpyAsync", cudaMemcpyAsync(rgb, pixels_, bytes, cudaMemcpyDeviceToHost, stream_));
    check("cudaStreamSynchronize", cudaStreamSynchronize(stream_));
    return true;
  }

 private:
  int gpu_;
  nvjpegHandle_t handle_ = nullptr;
  nvjpegJpegState_t state_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* pixels_ = nullptr;
  size_t room_ = 0;
};

}  // namespace

const std::string& missing() { return library().missing; }

bool decode(int gpu, std::span<const uint8_t> jpeg, int64_t height, int64_t width, uint8_t* rgb) {
  WEFT_CHECK(missing().empty(), "nvjpeg: ", missing());
  // Decoders that no thread uses now. They outlive threads and stay at the end, when the driver may have gone.
  static auto& mutex = *new std::mutex;
  static auto& idle = *new std::vector<std::unique_ptr<Decoder>>;
  std::unique_ptr<Decoder> own;
  {
    const std::lock_guard lock(mutex);
    const auto found = std::ranges::find(idle, gpu, [](const auto& one) { return one->gpu(); });
    if (found != idle.end()) {
      own = std::move(*found);
      idle.erase(found);
    }
  }
  if (!own) own = std::make_unique<Decoder>(gpu);
  const bool decoded = own->decode(jpeg, height, width, rgb);
  const std::lock_guard lock(mutex);
  idle.push_back(std::move(own));
  return decoded;
}

}  // namespace weft::kernels::vendor::nvjpeg
