// SPDX-License-Identifier: Apache-2.0
// Memory that a program maps itself: it grows at an address, is mapped at two, and is released piece by piece. An
// argument names a fault.
#include <cuda.h>
#include <cuda_runtime.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "promises.h"

namespace {

#define DRIVER(call) must(static_cast<cudaError_t>(call), #call)

__global__ void number(int* data, size_t count, int base) {
  for (size_t i = threadIdx.x; i < count; i += blockDim.x) data[i] = base + static_cast<int>(i);
}

struct Piece {
  CUmemGenericAllocationHandle handle = 0;
  size_t bytes = 0;
};

CUmemAllocationProp properties() {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return p;
}

size_t granularity() {
  const CUmemAllocationProp p = properties();
  size_t bytes = 0;
  DRIVER(cuMemGetAllocationGranularity(&bytes, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  return bytes;
}

void make_accessible(CUdeviceptr at, size_t bytes) {
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  DRIVER(cuMemSetAccess(at, bytes, &access, 1));
}

CUmemGenericAllocationHandle map_new(CUdeviceptr at, size_t bytes) {
  const CUmemAllocationProp p = properties();
  CUmemGenericAllocationHandle handle;
  DRIVER(cuMemCreate(&handle, bytes, &p, 0));
  DRIVER(cuMemMap(at, bytes, 0, handle, 0));
  return handle;
}

/// A vector that grows without moving: a copy and a kernel run over both pieces.
bool grows_in_place() {
  const size_t piece = granularity(), count = 2 * piece / sizeof(int);
  CUdeviceptr at;
  DRIVER(cuMemAddressReserve(&at, 4 * piece, 0, 0, 0));
  int* const data = reinterpret_cast<int*>(at);
  const CUmemGenericAllocationHandle first = map_new(at, piece);
  make_accessible(at, piece);
  number<<<1, 256>>>(data, count / 2, 5);
  MUST(cudaDeviceSynchronize());
  const CUmemGenericAllocationHandle second = map_new(at + piece, piece);
  make_accessible(at + piece, piece);
  number<<<1, 256>>>(data + count / 2, count / 2, 5 + static_cast<int>(count / 2));
  std::vector<int> host(count);
  MUST(cudaMemcpy(host.data(), data, 2 * piece, cudaMemcpyDeviceToHost));
  bool right = true;
  for (size_t i = 0; i < count; ++i) right = right && host[i] == 5 + static_cast<int>(i);
  // A wrong order is refused: addresses with memory, memory where some is.
  right = right && cuMemAddressFree(at, 4 * piece) != CUDA_SUCCESS && cuMemMap(at, piece, 0, second, 0) != CUDA_SUCCESS;
  DRIVER(cuMemUnmap(at, piece));
  right = right && cudaMemcpy(host.data(), data, 4, cudaMemcpyDeviceToHost) != cudaSuccess;
  MUST(cudaMemcpy(host.data(), data + count / 2, 4, cudaMemcpyDeviceToHost));
  right = right && host[0] == 5 + static_cast<int>(count / 2);
  cudaGetLastError();
  DRIVER(cuMemUnmap(at + piece, piece));
  DRIVER(cuMemRelease(first));
  DRIVER(cuMemRelease(second));
  DRIVER(cuMemAddressFree(at, 4 * piece));
  return right;
}

/// One piece at two addresses, the second by a descriptor.
bool lies_at_two_addresses() {
  const size_t piece = granularity();
  CUdeviceptr at;
  DRIVER(cuMemAddressReserve(&at, 2 * piece, 0, 0, 0));
  const CUmemGenericAllocationHandle own = map_new(at, piece);
  int file = -1;
  DRIVER(cuMemExportToShareableHandle(&file, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  CUmemGenericAllocationHandle imported;
  DRIVER(cuMemImportFromShareableHandle(&imported, reinterpret_cast<void*>(static_cast<intptr_t>(file)),
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
  close(file);
  DRIVER(cuMemMap(at + piece, piece, 0, imported, 0));
  make_accessible(at, 2 * piece);
  number<<<1, 256>>>(reinterpret_cast<int*>(at), 100, 42);
  int last = 0;
  MUST(cudaMemcpy(&last, reinterpret_cast<int*>(at + piece) + 99, 4, cudaMemcpyDeviceToHost));
  DRIVER(cuMemUnmap(at, 2 * piece));
  DRIVER(cuMemRelease(own));
  DRIVER(cuMemRelease(imported));
  DRIVER(cuMemAddressFree(at, 2 * piece));
  return last == 141;
}

/// Hints change no result, before and after managed memory is used; a pointer to other memory is an error.
bool hints_at_managed_memory() {
  CUdeviceptr managed, device;
  CUstream stream;
  DRIVER(cuMemAllocManaged(&managed, 400, CU_MEM_ATTACH_GLOBAL));
  DRIVER(cuMemAlloc(&device, 400));
  DRIVER(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  const CUmemLocation gpu{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  DRIVER(cuMemAdvise(managed, 400, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, gpu));
  DRIVER(cuMemPrefetchAsync(managed, 400, gpu, 0, stream));
  DRIVER(cuStreamAttachMemAsync(stream, managed, 0, CU_MEM_ATTACH_SINGLE));
  number<<<1, 32, 0, stream>>>(reinterpret_cast<int*>(managed), 100, 7);
  DRIVER(cuMemPrefetchAsync(managed, 400, {CU_MEM_LOCATION_TYPE_HOST, 0}, 0, stream));
  DRIVER(cuStreamSynchronize(stream));
  const bool right = reinterpret_cast<int*>(managed)[99] == 106;
  const bool refused = cuMemAdvise(device, 400, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu) == CUDA_ERROR_INVALID_VALUE &&
                       cuMemPrefetchAsync(device, 400, gpu, 0, stream) == CUDA_ERROR_INVALID_VALUE;
  DRIVER(cuStreamDestroy(stream));
  DRIVER(cuMemFree(device));
  DRIVER(cuMemFree(managed));
  return right && refused;
}

int no_access() {
  const size_t piece = granularity();
  CUdeviceptr at;
  DRIVER(cuMemAddressReserve(&at, piece, 0, 0, 0));
  map_new(at, piece);
  number<<<1, 32>>>(reinterpret_cast<int*>(at), 10, 0);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  return 1;
}

}  // namespace

int main(int argc, char**) {
  MUST(cudaFree(nullptr));
  if (argc > 1) return no_access();
  return keep_promises({{"grows_in_place", grows_in_place}, {"lies_at_two_addresses", lies_at_two_addresses},
                        {"hints_at_managed_memory", hints_at_managed_memory}});
}
