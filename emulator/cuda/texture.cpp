// SPDX-License-Identifier: Apache-2.0
#include "emulator/cuda/texture.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "emulator/cuda/copy.h"
#include "emulator/cuda/device.h"
#include "emulator/cuda/error.h"
#include "emulator/machine/memory.h"
#include "emulator/machine/scheduler.h"
#include "emulator/ptx/instructions/texture.h"

namespace emulator::cuda {
namespace {

constexpr size_t kAlignment = 512, kPitchAlignment = 32;  // as device_attributes.cpp reports them

struct Mipmaps {
  std::vector<cudaArray_t> levels;
  unsigned flags;
};

struct Said {
  cudaResourceDesc resource;
  cudaTextureDesc texture;
};

/// The sources of the program's handles, under one lock.
struct Known {
  std::mutex mutex;
  std::unordered_map<unsigned long long, Said> textures, surfaces;
  std::unordered_map<const void*, Mipmaps*> mipmaps;
  static Known& get() {
    static auto* const all = new Known;
    return *all;
  }
};

void take_format(const cudaChannelFormatDesc& format, ptx::Image& image) {
  const int bits[4] = {format.x, format.y, format.z, format.w};
  image.channels = 0;
  while (image.channels < 4 && bits[image.channels] > 0) ++image.channels;
  image.channel_bits = unsigned(format.x);
  const bool plain = std::all_of(bits, bits + image.channels, [&](int b) { return b == format.x; });
  if (!plain || (format.x != 8 && format.x != 16 && format.x != 32) || image.channels == 0 || image.channels == 3 ||
      (format.f != cudaChannelFormatKindSigned && format.f != cudaChannelFormatKindUnsigned &&
       (format.f != cudaChannelFormatKindFloat || format.x == 8)))
    fail(cudaErrorInvalidChannelDescriptor,
         "a texture of 1, 2 or 4 channels of 8, 16 or 32 bits, or of half or float, is expected");
  image.channel = format.f == cudaChannelFormatKindSigned     ? ptx::Channel::is_signed
                  : format.f == cudaChannelFormatKindUnsigned ? ptx::Channel::is_unsigned
                                                              : ptx::Channel::is_float;
}

ptx::Image::Level level_of(const Array& a) {
  return {reinterpret_cast<uintptr_t>(a.data),
          uint32_t(a.extent.width),
          uint32_t(std::max<size_t>(1, a.extent.height)),
          uint32_t(std::max<size_t>(1, a.extent.depth)),
          a.pitch,
          a.slice};
}

void take_array(const Array& array, ptx::Image& image) {
  take_format(array.format, image);
  image.layered = (array.flags & cudaArrayLayered) != 0;
  image.cube = (array.flags & cudaArrayCubemap) != 0;
  image.levels.push_back(level_of(array));
}

Mipmaps& mipmaps_of(cudaMipmappedArray_const_t handle) {
  const auto found = Known::get().mipmaps.find(handle);
  require(found != Known::get().mipmaps.end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

void require_aligned(const void* memory) {
  if (reinterpret_cast<uintptr_t>(memory) % kAlignment != 0)
    fail(cudaErrorMisalignedAddress,
         cat("a texture of memory that is not aligned to ", kAlignment, " bytes (textureAlignment)"));
}

ptx::Image image_of(const cudaResourceDesc& r) {
  ptx::Image image;
  switch (r.resType) {
    case cudaResourceTypeArray:
      take_array(array_of(r.res.array.array), image);
      break;
    case cudaResourceTypeMipmappedArray: {
      const std::lock_guard lock(Known::get().mutex);
      for (const cudaArray_t level : mipmaps_of(r.res.mipmap.mipmap).levels) take_array(array_of(level), image);
      break;
    }
    case cudaResourceTypeLinear: {
      take_format(r.res.linear.desc, image);
      require_aligned(r.res.linear.devPtr);
      // A GPU takes a texture that is longer than its memory. A read of the rest is an error.
      const auto begin = reinterpret_cast<uintptr_t>(r.res.linear.devPtr);
      size_t bytes = r.res.linear.sizeInBytes;
      image.described = bytes / image.element();
      if (Allocation owner; find_allocation(begin, owner)) bytes = std::min<size_t>(bytes, owner.end - begin);
      const size_t elements = bytes / image.element();
      require(elements > 0 && image.described <= size_t{1} << 28);
      image.linear_memory = true;
      image.levels.push_back({begin, uint32_t(elements), 1, 1, bytes, bytes});
      break;
    }
    case cudaResourceTypePitch2D: {
      take_format(r.res.pitch2D.desc, image);
      require_aligned(r.res.pitch2D.devPtr);
      const size_t pitch = r.res.pitch2D.pitchInBytes;
      require(r.res.pitch2D.width > 0 && r.res.pitch2D.height > 0);
      require(pitch % kPitchAlignment == 0 && pitch >= r.res.pitch2D.width * image.element(),
              cudaErrorInvalidPitchValue);
      image.levels.push_back({reinterpret_cast<uintptr_t>(r.res.pitch2D.devPtr), uint32_t(r.res.pitch2D.width),
                              uint32_t(r.res.pitch2D.height), 1, pitch, pitch * r.res.pitch2D.height});
      break;
    }
    default:
      fail(cudaErrorInvalidValue);
  }
  require(image.alive());
  return image;
}

ptx::AddressMode mode_of(cudaTextureAddressMode mode) {
  switch (mode) {
    case cudaAddressModeWrap:
      return ptx::AddressMode::wrap;
    case cudaAddressModeMirror:
      return ptx::AddressMode::mirror;
    case cudaAddressModeBorder:
      return ptx::AddressMode::border;
    case cudaAddressModeClamp:
      return ptx::AddressMode::clamp;
    default:
      fail(cudaErrorInvalidValue);
  }
}

ptx::Sampler sampler_of(const cudaTextureDesc& t, const ptx::Image& image) {
  ptx::Sampler s;
  s.normalized_coordinates = t.normalizedCoords != 0 || image.cube;
  for (int k = 0; k < 3; ++k) {
    s.address[k] = image.cube ? ptx::AddressMode::clamp : mode_of(t.addressMode[k]);
    // Without normalised coordinates there is no period.
    const bool periodic = s.address[k] == ptx::AddressMode::wrap || s.address[k] == ptx::AddressMode::mirror;
    if (periodic && !s.normalized_coordinates) s.address[k] = ptx::AddressMode::clamp;
  }
  s.linear = t.filterMode == cudaFilterModeLinear;
  s.linear_levels = t.mipmapFilterMode == cudaFilterModeLinear;
  s.normalized_values = t.readMode == cudaReadModeNormalizedFloat && image.channel != ptx::Channel::is_float;
  s.srgb = t.sRGB != 0;
  std::copy(t.borderColor, t.borderColor + 4, s.border);
  s.level_bias = t.mipmapLevelBias;
  s.least_level = t.minMipmapLevelClamp;
  s.most_level = t.maxMipmapLevelClamp;
  const bool floats = image.channel == ptx::Channel::is_float || s.normalized_values;
  if ((s.linear || s.linear_levels) && !floats && !image.linear_memory)
    fail(cudaErrorInvalidFilterSetting, "linear filtering of a texture whose values are integers");
  if (s.normalized_values && image.channel_bits == 32)
    fail(cudaErrorInvalidNormSetting, "a texture of 32-bit integers has no normalised values");
  if (s.srgb && !(s.normalized_values && image.channel_bits == 8 && image.channel == ptx::Channel::is_unsigned))
    fail(cudaErrorInvalidValue, "sRGB is for normalised channels of 8 bits");
  if (t.seamlessCubemap != 0) fail(cudaErrorNotSupported, "seamless filtering of cubes is not emulated");
  return s;
}

}  // namespace

cudaTextureObject_t texture_create(const cudaResourceDesc& resource, const cudaTextureDesc& texture,
                                   const cudaResourceViewDesc* view) {
  if (view != nullptr && view->format != cudaResViewFormatNone)
    fail(cudaErrorNotSupported, "resource views are not emulated");
  ptx::Image image = image_of(resource);
  const ptx::Sampler sampler = sampler_of(texture, image);
  const cudaTextureObject_t handle = ptx::add_texture({std::move(image), sampler});
  const std::lock_guard lock(Known::get().mutex);
  Known::get().textures[handle] = {resource, texture};
  return handle;
}

// As for memory: work that is under way may still use it.
void texture_destroy(cudaTextureObject_t texture) {
  if (texture == 0) return;
  {
    Lock lock = lock_state();
    device_synchronize(lock, current_device());
  }
  require(ptx::remove_texture(texture));
  const std::lock_guard lock(Known::get().mutex);
  Known::get().textures.erase(texture);
}

cudaResourceDesc texture_resource(cudaTextureObject_t texture) {
  const std::lock_guard lock(Known::get().mutex);
  require(Known::get().textures.contains(texture));
  return Known::get().textures[texture].resource;
}

cudaTextureDesc texture_description(cudaTextureObject_t texture) {
  const std::lock_guard lock(Known::get().mutex);
  require(Known::get().textures.contains(texture));
  return Known::get().textures[texture].texture;
}

cudaSurfaceObject_t surface_create(const cudaResourceDesc& resource) {
  require(resource.resType == cudaResourceTypeArray);
  if ((array_of(resource.res.array.array).flags & cudaArraySurfaceLoadStore) == 0)
    fail(cudaErrorInvalidValue, "a surface of an array that was made without cudaArraySurfaceLoadStore");
  const cudaSurfaceObject_t handle = ptx::add_surface(image_of(resource));
  const std::lock_guard lock(Known::get().mutex);
  Known::get().surfaces[handle] = {resource, {}};
  return handle;
}

void surface_destroy(cudaSurfaceObject_t surface) {
  if (surface == 0) return;
  {
    Lock lock = lock_state();
    device_synchronize(lock, current_device());
  }
  require(ptx::remove_surface(surface));
  const std::lock_guard lock(Known::get().mutex);
  Known::get().surfaces.erase(surface);
}

cudaResourceDesc surface_resource(cudaSurfaceObject_t surface) {
  const std::lock_guard lock(Known::get().mutex);
  require(Known::get().surfaces.contains(surface));
  return Known::get().surfaces[surface].resource;
}

cudaMipmappedArray_t mipmaps_create(const cudaChannelFormatDesc& format, const cudaExtent& extent, unsigned levels,
                                    unsigned flags) {
  require(levels > 0);
  auto* const mipmaps = new Mipmaps{{}, flags};
  const bool slices = (flags & (cudaArrayLayered | cudaArrayCubemap)) != 0;
  const auto half = [](size_t size) { return size == 0 ? 0 : std::max<size_t>(1, size / 2); };
  cudaExtent e = extent;
  for (unsigned level = 0; level < levels; ++level) {
    mipmaps->levels.push_back(array_create(format, e, flags));
    if (e.width <= 1 && e.height <= 1 && (slices || e.depth <= 1)) break;
    e = {half(e.width), half(e.height), slices ? e.depth : half(e.depth)};
  }
  const std::lock_guard lock(Known::get().mutex);
  Known::get().mipmaps[mipmaps] = mipmaps;
  return reinterpret_cast<cudaMipmappedArray_t>(mipmaps);
}

cudaArray_t mipmaps_level(cudaMipmappedArray_const_t handle, unsigned level) {
  const std::lock_guard lock(Known::get().mutex);
  const Mipmaps& mipmaps = mipmaps_of(handle);
  require(level < mipmaps.levels.size());
  return mipmaps.levels[level];
}

void mipmaps_destroy(cudaMipmappedArray_t handle) {
  if (handle == nullptr) return;
  Mipmaps* mipmaps = nullptr;
  {
    const std::lock_guard lock(Known::get().mutex);
    mipmaps = &mipmaps_of(handle);
    Known::get().mipmaps.erase(handle);
  }
  for (const cudaArray_t level : mipmaps->levels) array_destroy(level);
  delete mipmaps;
}

}  // namespace emulator::cuda
