// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <driver_types.h>
#include <surface_types.h>
#include <texture_types.h>

namespace emulator::cuda {

// Texture and surface objects, and arrays with levels, as both APIs make them. Errors: Error.

cudaTextureObject_t texture_create(const cudaResourceDesc& resource, const cudaTextureDesc& texture,
                                   const cudaResourceViewDesc* view);
void texture_destroy(cudaTextureObject_t texture);
cudaResourceDesc texture_resource(cudaTextureObject_t texture);
cudaTextureDesc texture_description(cudaTextureObject_t texture);

cudaSurfaceObject_t surface_create(const cudaResourceDesc& resource);
void surface_destroy(cudaSurfaceObject_t surface);
cudaResourceDesc surface_resource(cudaSurfaceObject_t surface);

/// Each level is half as large as the one before, and an array of its own.
cudaMipmappedArray_t mipmaps_create(const cudaChannelFormatDesc& format, const cudaExtent& extent, unsigned levels,
                                    unsigned flags);
cudaArray_t mipmaps_level(cudaMipmappedArray_const_t mipmaps, unsigned level);
void mipmaps_destroy(cudaMipmappedArray_t mipmaps);

}  // namespace emulator::cuda
