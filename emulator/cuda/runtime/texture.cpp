// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/texture.h"

#include "emulator/cuda/runtime/call.h"

using namespace emulator;
using namespace emulator::cuda;

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* description, const cudaResourceViewDesc* view) {
  return runtime_call([&] {
    require(texture != nullptr && resource != nullptr && description != nullptr);
    *texture = texture_create(*resource, *description, view);
  });
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture) {
  return runtime_call([&] { texture_destroy(texture); });
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture) {
  return runtime_call([&] { *resource = texture_resource(texture); });
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* description, cudaTextureObject_t texture) {
  return runtime_call([&] { *description = texture_description(texture); });
}
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource) {
  return runtime_call([&] {
    require(surface != nullptr && resource != nullptr);
    *surface = surface_create(*resource);
  });
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface) {
  return runtime_call([&] { surface_destroy(surface); });
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface) {
  return runtime_call([&] { *resource = surface_resource(surface); });
}
cudaError_t cudaMallocMipmappedArray(cudaMipmappedArray_t* mipmaps, const cudaChannelFormatDesc* format,
                                     cudaExtent extent, unsigned levels, unsigned flags) {
  return runtime_call([&] { *mipmaps = mipmaps_create(*format, extent, levels, flags); });
}
cudaError_t cudaGetMipmappedArrayLevel(cudaArray_t* array, cudaMipmappedArray_const_t mipmaps, unsigned level) {
  return runtime_call([&] { *array = mipmaps_level(mipmaps, level); });
}
cudaError_t cudaFreeMipmappedArray(cudaMipmappedArray_t mipmaps) {
  return runtime_call([&] { mipmaps_destroy(mipmaps); });
}
