// SPDX-License-Identifier: Apache-2.0
// The driver's linker on PTX: a kernel calls a function and reads a variable of another text; both texts number their files from 1.
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "promises.h"

namespace {

#define DRIVER(call) must(static_cast<cudaError_t>(call), #call)

const std::string kHead = ".version 8.0\n.target sm_80\n.address_size 64\n";

const std::string kKernel = kHead + R"(
.extern .func (.param .b32 result) scaled (.param .b32 value);
.extern .const .align 4 .b32 offset;
.visible .entry add_scaled(.param .u64 data)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<6>;
  .loc 1 12 0
  ld.param.u64 %rd1, [data];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  {
    .param .b32 to;
    .param .b32 from;
    st.param.b32 [to], %r2;
    call.uni (from), scaled, (to);
    ld.param.b32 %r3, [from];
  }
  ld.const.u32 %r4, [offset];
  add.s32 %r5, %r3, %r4;
  st.global.u32 [%rd3], %r5;
  ret;
}
.file 1 "kernel.cu"
)";

const std::string kFunction = kHead + R"(
.visible .const .align 4 .b32 offset = 1000;
.visible .func (.param .b32 result) scaled (.param .b32 value)
{
  .reg .b32 %r<3>;
  .loc 1 7 0
  ld.param.b32 %r1, [value];
  mul.lo.s32 %r2, %r1, 3;
  st.param.b32 [result], %r2;
  ret;
}
.file 1 "function.cu"
)";

CUresult add(CUlinkState link, const std::string& ptx, const char* name) {
  return cuLinkAddData(link, CU_JIT_INPUT_PTX, const_cast<char*>(ptx.c_str()), ptx.size() + 1, name, 0, nullptr, nullptr);
}

bool links_two_texts() {
  CUlinkState link;
  DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
  DRIVER(add(link, kKernel, "kernel.ptx"));
  DRIVER(add(link, kFunction, "function.ptx"));
  void* image = nullptr;
  size_t bytes = 0;
  DRIVER(cuLinkComplete(link, &image, &bytes));
  CUmodule module;
  DRIVER(cuModuleLoadData(&module, image));
  DRIVER(cuLinkDestroy(link));  // the module does not need it any more
  CUfunction kernel;
  DRIVER(cuModuleGetFunction(&kernel, module, "add_scaled"));
  const Array<int> data({1, 2, 3, 4});
  void* arguments[] = {const_cast<int**>(&data.data)};
  DRIVER(cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cudaDeviceSynchronize());
  const bool right = bytes > 0 && data.get() == std::vector<int>{1003, 1006, 1009, 1012};
  DRIVER(cuModuleUnload(module));
  return right;
}

/// The error goes to the caller's buffer.
bool refuses_a_second_definition() {
  char errors[200] = "nothing was written";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, reinterpret_cast<void*>(sizeof(errors))};
  CUlinkState link;
  DRIVER(cuLinkCreate(2, options, values, &link));
  bool right = errors[0] == 0;
  DRIVER(add(link, kFunction, "first.ptx"));
  right = right && add(link, kFunction, "second.ptx") == CUDA_ERROR_INVALID_PTX;
  std::printf("%s\n", errors);
  right = right && std::strstr(errors, "second.ptx: ") && std::strstr(errors, "offset is defined twice");
  DRIVER(cuLinkDestroy(link));
  return right;
}

/// Loads nvJitLink at run time.
struct JitLink {
  void* library = dlopen(CUDART_VERSION >= 13000 ? "libnvJitLink.so.13" : "libnvJitLink.so.12", RTLD_NOW);
  template <class... Arguments>
  int operator()(const char* call, Arguments... arguments) const {
    auto* const address = reinterpret_cast<int (*)(Arguments...)>(dlsym(library, call));
    return address ? address(arguments...) : -1;
  }
};

bool links_by_nvjitlink() {
  const JitLink jit;
  const char* const options[] = {"-arch=sm_80"};
  void* link = nullptr;
  size_t bytes = 0;
  bool right = jit("nvJitLinkCreate", &link, 0u, static_cast<const char* const*>(nullptr)) == 2;  // no -arch
  right = right && jit("nvJitLinkCreate", &link, 1u, static_cast<const char* const*>(options)) == 0 &&
          jit("nvJitLinkAddData", link, 2, kKernel.c_str(), kKernel.size(), "kernel") == 0 &&
          jit("nvJitLinkAddData", link, 2, kFunction.c_str(), kFunction.size(), "function") == 0 &&
          jit("nvJitLinkComplete", link) == 0 && jit("nvJitLinkGetLinkedCubinSize", link, &bytes) == 0;
  if (!right) return false;
  std::string cubin(bytes, 'x');
  right = jit("nvJitLinkGetLinkedCubin", link, cubin.data()) == 0 && jit("nvJitLinkDestroy", &link) == 0 && !link;
  CUmodule module;
  CUfunction kernel;
  DRIVER(cuModuleLoadData(&module, cubin.data()));
  DRIVER(cuModuleGetFunction(&kernel, module, "add_scaled"));
  const Array<int> data(std::vector<int>{1, 2, 3, 4});
  void* arguments[] = {const_cast<int**>(&data.data)};
  DRIVER(cuLaunchKernel(kernel, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr));
  MUST(cudaDeviceSynchronize());
  right = right && data.get() == std::vector<int>{1003, 1006, 1009, 1012};
  DRIVER(cuModuleUnload(module));
  return right;
}

bool nvjitlink_names_what_it_cannot_link() {
  const JitLink jit;
  const char* const options[] = {"-arch=sm_80"};
  void* link = nullptr;
  size_t bytes = 0;
  const char object[] = "\x7f" "ELF, an object without PTX";
  bool right = jit("nvJitLinkCreate", &link, 1u, static_cast<const char* const*>(options)) == 0 &&
               jit("nvJitLinkAddData", link, 5, static_cast<const char*>(object), sizeof(object), "part.o") == 3 &&
               jit("nvJitLinkGetErrorLogSize", link, &bytes) == 0;
  std::string log(bytes, 'x');
  right = right && jit("nvJitLinkGetErrorLog", link, log.data()) == 0 &&
          log.find("part.o is neither PTX nor LTO-IR nor a fat binary") != std::string::npos;
  return jit("nvJitLinkDestroy", &link) == 0 && right;
}

/// A lookup by name gives the form that cuda.h links; version 1.0 has none.
bool looks_up_the_newest_form() {
  const auto found = [](const char* name, auto* linked) {
    void* address = nullptr;
    CUdriverProcAddressQueryResult status;
    DRIVER(cuGetProcAddress(name, &address, CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &status));
    if (address != reinterpret_cast<void*>(linked)) std::printf("%s: another form\n", name);
    return address == reinterpret_cast<void*>(linked);
  };
#define FOUND(name) found(#name, &name)  // the macros of cuda.h apply to the second alone
  bool right = FOUND(cuMemAlloc) && FOUND(cuMemFree) && FOUND(cuMemcpyHtoD) && FOUND(cuMemcpyDtoH) && FOUND(cuMemcpyDtoD) &&
               FOUND(cuMemcpyHtoDAsync) && FOUND(cuMemcpyDtoHAsync) && FOUND(cuMemcpyDtoDAsync) && FOUND(cuMemcpy2D) &&
               FOUND(cuMemcpy3D) && FOUND(cuMemsetD8) && FOUND(cuMemsetD16) && FOUND(cuMemsetD32) && FOUND(cuMemsetD2D8) &&
               FOUND(cuModuleGetGlobal) && FOUND(cuDevicePrimaryCtxRelease) && FOUND(cuLaunchKernel);
#undef FOUND
  void* address = nullptr;
  CUdriverProcAddressQueryResult status;
  right = right && cuGetProcAddress("cuMemcpyHtoD", &address, 1000, CU_GET_PROC_ADDRESS_DEFAULT, &status) == CUDA_ERROR_NOT_FOUND;
  return right && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
}

/// A program hears the text of each refused call until it ends its registration.
bool hands_its_texts_to_logs() {
  std::string log;
  CUlogsCallbackHandle handle = nullptr;
  DRIVER(cuLogsRegisterCallback(
      [](void* data, CUlogLevel, char* text, size_t length) { static_cast<std::string*>(data)->assign(text, length); }, &log, &handle));
  const auto refused = [] {
    CUlinkState link;
    DRIVER(cuLinkCreate(0, nullptr, nullptr, &link));
    char text[] = "no PTX";
    const CUresult result = cuLinkAddData(link, CU_JIT_INPUT_PTX, text, sizeof text, "part.ptx", 0, nullptr, nullptr);
    DRIVER(cuLinkDestroy(link));
    return result != CUDA_SUCCESS;
  };
  const bool heard = refused() && log.find("part.ptx") != std::string::npos;
  DRIVER(cuLogsUnregisterCallback(handle));
  log.clear();
  return heard && refused() && log.empty() && cuLogsUnregisterCallback(handle) == CUDA_ERROR_INVALID_VALUE;
}

/// An error of the driver is none of the runtime's.
bool keeps_the_drivers_errors_apart() { return cuMemAlloc(nullptr, 0) != CUDA_SUCCESS && cudaGetLastError() == cudaSuccess; }

bool refuses_a_call() {
  return cuCoredumpGetAttribute(CU_COREDUMP_FILE, nullptr, nullptr) == CUDA_ERROR_NOT_SUPPORTED && cudaGetLastError() == cudaSuccess;
}

}  // namespace

/// With an argument it makes a call that is not emulated.
int main(int argc, char**) {
  MUST(cudaFree(nullptr));
  if (argc > 1) return refuses_a_call() ? 0 : 1;
  return keep_promises({{"links_two_texts", links_two_texts},
                        {"refuses_a_second_definition", refuses_a_second_definition},
                        {"links_by_nvjitlink", links_by_nvjitlink},
                        {"nvjitlink_names_what_it_cannot_link", nvjitlink_names_what_it_cannot_link},
                        {"looks_up_the_newest_form", looks_up_the_newest_form},
                        {"hands_its_texts_to_logs", hands_its_texts_to_logs},
                        {"keeps_the_drivers_errors_apart", keeps_the_drivers_errors_apart}});
}
