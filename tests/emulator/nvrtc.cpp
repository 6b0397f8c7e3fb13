// SPDX-License-Identifier: Apache-2.0
// NVRTC asked for machine code, as programs do that load its cubin.
#include <cuda.h>
#include <nvrtc.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

const char* const kSource = R"(extern "C" __global__ void twice(float* x, int n) {
  const int i = threadIdx.x;
  if (i < n) x[i] *= 2;
})";

/// Ends the program with this call's text where it fails.
void must(int result, const char* call) {
  if (result == 0) return;
  std::printf("%s: %d\n", call, result);
  std::exit(1);
}
#define MUST(call) must(call, #call)

std::string compiled(int capability) {
  nvrtcProgram program;
  MUST(nvrtcCreateProgram(&program, kSource, "twice.cu", 0, nullptr, nullptr));
  const std::string arch = "--gpu-architecture=sm_" + std::to_string(capability);
  const char* const options[] = {arch.c_str(), "-lineinfo"};
  MUST(nvrtcCompileProgram(program, 2, options));
  size_t bytes = 0;
  MUST(nvrtcGetCUBINSize(program, &bytes));
  std::string image(bytes, 'x');
  MUST(nvrtcGetCUBIN(program, image.data()));
  MUST(nvrtcDestroyProgram(&program));
  return image;
}

}  // namespace

/// With an argument the kernel writes past the end of its array.
int main(int argc, char**) {
  constexpr size_t kCount = 8;
  CUdevice device;
  CUcontext context;
  CUmodule module;
  CUfunction kernel;
  CUdeviceptr data;
  int major = 0, minor = 0, n = argc > 1 ? kCount + 1 : kCount;
  MUST(cuInit(0));
  MUST(cuDeviceGet(&device, 0));
  MUST(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  MUST(cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  MUST(cuModuleLoadData(&module, compiled(10 * major + minor).data()));
  MUST(cuModuleGetFunction(&kernel, module, "twice"));
  std::vector<float> x(kCount, 1.5f);
  MUST(cuMemAlloc(&data, kCount * sizeof(float)));
  MUST(cuMemcpyHtoD(data, x.data(), kCount * sizeof(float)));
  void* arguments[] = {&data, &n};
  MUST(cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cuMemcpyDtoH(x.data(), data, kCount * sizeof(float)));
  return x == std::vector<float>(kCount, 3.0f) ? 0 : 1;
}
