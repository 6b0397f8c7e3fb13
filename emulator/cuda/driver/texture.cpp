// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/texture.h"

#include "emulator/cuda/driver/call.h"

using namespace emulator;
using namespace emulator::cuda;

namespace {

struct FormatPair {
  CUarray_format driver;
  int bits;
  cudaChannelFormatKind kind;
};
constexpr FormatPair kFormats[] = {{CU_AD_FORMAT_UNSIGNED_INT8, 8, cudaChannelFormatKindUnsigned},
                                   {CU_AD_FORMAT_UNSIGNED_INT16, 16, cudaChannelFormatKindUnsigned},
                                   {CU_AD_FORMAT_UNSIGNED_INT32, 32, cudaChannelFormatKindUnsigned},
                                   {CU_AD_FORMAT_SIGNED_INT8, 8, cudaChannelFormatKindSigned},
                                   {CU_AD_FORMAT_SIGNED_INT16, 16, cudaChannelFormatKindSigned},
                                   {CU_AD_FORMAT_SIGNED_INT32, 32, cudaChannelFormatKindSigned},
                                   {CU_AD_FORMAT_HALF, 16, cudaChannelFormatKindFloat},
                                   {CU_AD_FORMAT_FLOAT, 32, cudaChannelFormatKindFloat}};

cudaChannelFormatDesc format_of(CUarray_format format, unsigned channels) {
  for (const FormatPair& f : kFormats) {
    if (f.driver != format) continue;
    const auto bits = [&](unsigned c) { return c < channels ? f.bits : 0; };
    return {bits(0), bits(1), bits(2), bits(3), f.kind};
  }
  fail(cudaErrorInvalidChannelDescriptor, cat("array format ", int(format), " is not emulated"));
}

void describe(const cudaChannelFormatDesc& desc, CUarray_format& format, unsigned& channels) {
  for (const FormatPair& f : kFormats)
    if (f.bits == desc.x && f.kind == desc.f) format = f.driver;
  channels = unsigned((desc.x > 0) + (desc.y > 0) + (desc.z > 0) + (desc.w > 0));
}

CUDA_ARRAY3D_DESCRIPTOR description_of(const Array& array) {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = array.extent.width;
  d.Height = array.extent.height;
  d.Depth = array.extent.depth;
  describe(array.format, d.Format, d.NumChannels);
  d.Flags = array.flags;  // CUDA_ARRAY3D_* are cudaArray*
  return d;
}

cudaArray_t array_of_driver(CUarray array) { return reinterpret_cast<cudaArray_t>(array); }

cudaResourceDesc resource_of(const CUDA_RESOURCE_DESC& d) {
  cudaResourceDesc r{};
  switch (d.resType) {
    case CU_RESOURCE_TYPE_ARRAY:
      r.resType = cudaResourceTypeArray;
      r.res.array.array = array_of_driver(d.res.array.hArray);
      return r;
    case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
      r.resType = cudaResourceTypeMipmappedArray;
      r.res.mipmap.mipmap = reinterpret_cast<cudaMipmappedArray_t>(d.res.mipmap.hMipmappedArray);
      return r;
    case CU_RESOURCE_TYPE_LINEAR:
      r.resType = cudaResourceTypeLinear;
      r.res.linear = {pointer(d.res.linear.devPtr), format_of(d.res.linear.format, d.res.linear.numChannels),
                      d.res.linear.sizeInBytes};
      return r;
    case CU_RESOURCE_TYPE_PITCH2D:
      r.resType = cudaResourceTypePitch2D;
      r.res.pitch2D = {pointer(d.res.pitch2D.devPtr), format_of(d.res.pitch2D.format, d.res.pitch2D.numChannels),
                       d.res.pitch2D.width, d.res.pitch2D.height, d.res.pitch2D.pitchInBytes};
      return r;
    default:
      fail(cudaErrorInvalidValue);
  }
}

cudaTextureDesc texture_of(const CUDA_TEXTURE_DESC& d) {
  cudaTextureDesc t{};
  for (int k = 0; k < 3; ++k) t.addressMode[k] = cudaTextureAddressMode(d.addressMode[k]);
  t.filterMode = cudaTextureFilterMode(d.filterMode);
  t.readMode = d.flags & CU_TRSF_READ_AS_INTEGER ? cudaReadModeElementType : cudaReadModeNormalizedFloat;
  t.normalizedCoords = (d.flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
  t.sRGB = (d.flags & CU_TRSF_SRGB) != 0;
  t.seamlessCubemap = (d.flags & CU_TRSF_SEAMLESS_CUBEMAP) != 0;
  t.maxAnisotropy = d.maxAnisotropy;
  t.mipmapFilterMode = cudaTextureFilterMode(d.mipmapFilterMode);
  t.mipmapLevelBias = d.mipmapLevelBias;
  t.minMipmapLevelClamp = d.minMipmapLevelClamp;
  t.maxMipmapLevelClamp = d.maxMipmapLevelClamp;
  std::copy(d.borderColor, d.borderColor + 4, t.borderColor);
  return t;
}

CUresult copy_linear(CUarray to_array, CUarray from_array, size_t offset, void* linear, size_t bytes, CUstream stream,
                     bool blocking) {
  return call([&] {
    const cudaArray_t array = array_of_driver(to_array ? to_array : from_array);
    const Array& a = array_of(array);
    require(a.extent.height <= 1 && a.extent.depth <= 1 && offset % a.element == 0 && bytes % a.element == 0);
    cudaMemcpy3DParms p{};
    p.extent = {bytes / a.element, 1, 1};
    p.kind = cudaMemcpyDefault;
    (to_array ? p.dstPos : p.srcPos) = {offset / a.element, 0, 0};
    (to_array ? p.dstArray : p.srcArray) = array;
    (to_array ? p.srcPtr : p.dstPtr) = {linear, bytes, bytes, 1};
    submit_copy(copy_box(p), stream, blocking);
  });
}

}  // namespace

CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* d) {
  return call([&] {
    *array = reinterpret_cast<CUarray>(array_create(format_of(d->Format, d->NumChannels), {d->Width, d->Height, 0}, 0));
  });
}
CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  return call([&] {
    *array = reinterpret_cast<CUarray>(
        array_create(format_of(d->Format, d->NumChannels), {d->Width, d->Height, d->Depth}, d->Flags));
  });
}
CUresult cuArrayDestroy(CUarray array) {
  return call([&] { array_destroy(array_of_driver(array)); });
}
CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR* d, CUarray array) {
  return call([&] {
    const CUDA_ARRAY3D_DESCRIPTOR all = description_of(array_of(array_of_driver(array)));
    *d = {all.Width, all.Height, all.Format, all.NumChannels};
  });
}
CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR* d, CUarray array) {
  return call([&] { *d = description_of(array_of(array_of_driver(array))); });
}
CUresult cuMipmappedArrayCreate(CUmipmappedArray* mipmaps, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  return call([&] {
    *mipmaps = reinterpret_cast<CUmipmappedArray>(
        mipmaps_create(format_of(d->Format, d->NumChannels), {d->Width, d->Height, d->Depth}, levels, d->Flags));
  });
}
CUresult cuMipmappedArrayGetLevel(CUarray* array, CUmipmappedArray mipmaps, unsigned level) {
  return call([&] {
    *array = reinterpret_cast<CUarray>(mipmaps_level(reinterpret_cast<cudaMipmappedArray_t>(mipmaps), level));
  });
}
CUresult cuMipmappedArrayDestroy(CUmipmappedArray mipmaps) {
  return call([&] { mipmaps_destroy(reinterpret_cast<cudaMipmappedArray_t>(mipmaps)); });
}

CUresult cuTexObjectCreate(CUtexObject* texture, const CUDA_RESOURCE_DESC* resource,
                           const CUDA_TEXTURE_DESC* description, const CUDA_RESOURCE_VIEW_DESC* view) {
  return call([&] {
    if (view != nullptr && view->format != CU_RES_VIEW_FORMAT_NONE)
      fail(cudaErrorNotSupported, "resource views are not emulated");
    *texture = texture_create(resource_of(*resource), texture_of(*description), nullptr);
  });
}
CUresult cuTexObjectDestroy(CUtexObject texture) {
  return call([&] { texture_destroy(texture); });
}
CUresult cuSurfObjectCreate(CUsurfObject* surface, const CUDA_RESOURCE_DESC* resource) {
  return call([&] { *surface = surface_create(resource_of(*resource)); });
}
CUresult cuSurfObjectDestroy(CUsurfObject surface) {
  return call([&] { surface_destroy(surface); });
}

CUresult cuMemcpyHtoA(CUarray to, size_t offset, const void* from, size_t bytes) {
  return copy_linear(to, nullptr, offset, const_cast<void*>(from), bytes, nullptr, true);
}
CUresult cuMemcpyHtoAAsync(CUarray to, size_t offset, const void* from, size_t bytes, CUstream stream) {
  return copy_linear(to, nullptr, offset, const_cast<void*>(from), bytes, stream, false);
}
CUresult cuMemcpyAtoH(void* to, CUarray from, size_t offset, size_t bytes) {
  return copy_linear(nullptr, from, offset, to, bytes, nullptr, true);
}
CUresult cuMemcpyAtoHAsync(void* to, CUarray from, size_t offset, size_t bytes, CUstream stream) {
  return copy_linear(nullptr, from, offset, to, bytes, stream, false);
}
CUresult cuMemcpyDtoA(CUarray to, size_t offset, CUdeviceptr from, size_t bytes) {
  return copy_linear(to, nullptr, offset, pointer(from), bytes, nullptr, true);
}
CUresult cuMemcpyAtoD(CUdeviceptr to, CUarray from, size_t offset, size_t bytes) {
  return copy_linear(nullptr, from, offset, pointer(to), bytes, nullptr, true);
}
