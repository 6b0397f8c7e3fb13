// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/instructions/texture.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "emulator/machine/memory.h"
#include "emulator/ptx/instructions/numbers.h"

namespace emulator::ptx {

namespace {

constexpr int64_t kOutside = -1;

/// The texel at an index on one axis, or kOutside.
int64_t addressed(int64_t i, int64_t size, AddressMode mode) {
  switch (mode) {
    case AddressMode::clamp:
      return std::clamp<int64_t>(i, 0, size - 1);
    case AddressMode::wrap:
      return (i % size + size) % size;
    case AddressMode::mirror: {
      const int64_t k = (i % (2 * size) + 2 * size) % (2 * size);
      return k < size ? k : 2 * size - 1 - k;
    }
    case AddressMode::border:
      return i < 0 || i >= size ? kOutside : i;
  }
  return kOutside;
}

/// Far coordinates and NaN have an index, too.
int64_t index_of(double x) { return std::isnan(x) ? 0 : static_cast<int64_t>(std::clamp(x, -0x1p40, 0x1p40)); }

/// Two neighbours on one axis and the share of the second, of which the hardware keeps 8 bits after the point.
struct Taps {
  int64_t first, second;
  double share;
};
Taps taps_of(float x) {
  const double shifted = double{x} - 0.5, below = std::floor(shifted);
  const int64_t first = index_of(below);
  return {first, first + 1, std::isfinite(x) ? std::floor((shifted - below) * 256 + 0.5) / 256 : 0};
}

uint32_t channel_bits(const char* at, uint32_t bits) {
  uint32_t value = 0;
  std::memcpy(&value, at, bits / 8);
  return value;
}

int32_t extended(uint32_t value, uint32_t bits) { return static_cast<int32_t>(value << (32 - bits)) >> (32 - bits); }

float linear_of_srgb(float c) { return c <= 0.04045f ? c / 12.92f : std::pow((c + 0.055f) / 1.055f, 2.4f); }

/// How one level's texels are read.
class Reader {
 public:
  Reader(const Texture& texture, uint32_t level, uint32_t slice)
      : image_(texture.image), sampler_(texture.sampler), level_(image_.levels[level]), slice_(slice) {}

  bool gives_floats() const { return image_.channel == Channel::is_float || sampler_.normalized_values; }
  const Image::Level& level() const { return level_; }

  Texel texel(int64_t x, int64_t y, int64_t z) const {
    x = addressed(x, level_.width, sampler_.address[0]);
    y = addressed(y, level_.height, sampler_.address[1]);
    if (is_volume()) z = addressed(z, level_.depth, sampler_.address[2]);
    Texel found;
    if (x == kOutside || y == kOutside || z == kOutside) {
      for (int c = 0; c < 4; ++c) found.bits[c] = border(c);
      return found;
    }
    const uint64_t slice = is_volume() ? static_cast<uint64_t>(z) : slice_;
    const auto* const at =
        reinterpret_cast<const char*>(level_.data + slice * level_.slice + static_cast<uint64_t>(y) * level_.pitch +
                                      static_cast<uint64_t>(x) * image_.element());
    for (uint32_t c = 0; c < 4; ++c) {
      const bool is_there = c < image_.channels;
      found.bits[c] =
          is_there ? value(channel_bits(at + c * image_.channel_bits / 8, image_.channel_bits), c) : absent(c);
    }
    return found;
  }

  Texel filtered(const float* at) const {
    const Taps x = taps_of(at[0]), y = level_.height > 1 ? taps_of(at[1]) : Taps{0, 0, 0},
               z = is_volume() ? taps_of(at[2]) : Taps{0, 0, 0};
    double sum[4] = {};
    for (int corner = 0; corner < 8; ++corner) {
      const double share = (corner & 1 ? x.share : 1 - x.share) * (corner & 2 ? y.share : 1 - y.share) *
                           (corner & 4 ? z.share : 1 - z.share);
      if (share == 0) continue;
      const Texel one =
          texel(corner & 1 ? x.second : x.first, corner & 2 ? y.second : y.first, corner & 4 ? z.second : z.first);
      for (int c = 0; c < 4; ++c) sum[c] += share * double{std::bit_cast<float>(one.bits[c])};
    }
    Texel found;
    for (int c = 0; c < 4; ++c) found.bits[c] = std::bit_cast<uint32_t>(static_cast<float>(sum[c]));
    return found;
  }

  bool is_volume() const { return level_.depth > 1 && !image_.layered && !image_.cube; }

 private:
  uint32_t border(int c) const {
    const float value = sampler_.border[c];
    return gives_floats() ? std::bit_cast<uint32_t>(value) : static_cast<uint32_t>(index_of(value));
  }
  uint32_t absent(uint32_t c) const { return c < 3 ? 0 : gives_floats() ? std::bit_cast<uint32_t>(1.0f) : 1; }

  uint32_t value(uint32_t bits, uint32_t c) const {
    if (image_.channel == Channel::is_float)
      return image_.channel_bits == 16 ? std::bit_cast<uint32_t>(f32_of_f16(bits)) : bits;
    const bool is_signed = image_.channel == Channel::is_signed;
    if (!sampler_.normalized_values)
      return is_signed ? static_cast<uint32_t>(extended(bits, image_.channel_bits)) : bits;
    const auto most = static_cast<float>((1u << (image_.channel_bits - is_signed)) - 1);
    float v = is_signed ? std::max(-1.0f, static_cast<float>(extended(bits, image_.channel_bits)) / most)
                        : static_cast<float>(bits) / most;
    if (sampler_.srgb && c < 3) v = linear_of_srgb(v);
    return std::bit_cast<uint32_t>(v);
  }

  const Image& image_;
  const Sampler& sampler_;
  const Image::Level& level_;
  uint32_t slice_;
};

/// "Cubemap Textures": the face by the coordinate of largest magnitude, and where on it, in [0, 1].
uint32_t cube_face(const float* d, float* at) {
  const float x = std::fabs(d[0]), y = std::fabs(d[1]), z = std::fabs(d[2]);
  uint32_t face;
  float m, s, t;
  if (x >= y && x >= z) {
    face = d[0] >= 0 ? 0 : 1;
    m = x;
    s = d[0] >= 0 ? -d[2] : d[2];
    t = -d[1];
  } else if (y >= z) {
    face = d[1] >= 0 ? 2 : 3;
    m = y;
    s = d[0];
    t = d[1] >= 0 ? d[2] : -d[2];
  } else {
    face = d[2] >= 0 ? 4 : 5;
    m = z;
    s = d[2] >= 0 ? d[0] : -d[0];
    t = -d[1];
  }
  at[0] = (s / m + 1) / 2;
  at[1] = (t / m + 1) / 2;
  at[2] = 0;
  return face;
}

/// Coordinates on the level's texels, and the slice.
uint32_t locate(const Texture& texture, const TextureCoordinates& where, uint32_t level, float* at) {
  const Image& image = texture.image;
  const Image::Level& l = image.levels[level];
  uint32_t slice = image.layered ? std::min(where.layer, image.layers() - 1) : 0;
  std::copy(where.at, where.at + 3, at);
  if (image.cube) slice = slice * 6 + cube_face(where.at, at);
  if (texture.sampler.normalized_coordinates || image.cube) {
    at[0] *= static_cast<float>(l.width);
    at[1] *= static_cast<float>(l.height);
    at[2] *= static_cast<float>(l.depth);
  }
  return slice;
}

Texel sample_level(const Texture& texture, const TextureCoordinates& where, uint32_t level) {
  float at[3];
  const uint32_t slice = locate(texture, where, level, at);
  const Reader reader(texture, level, slice);
  if (where.is_texel) return reader.texel(where.texel[0], where.texel[1], where.texel[2]);
  if (texture.sampler.linear) return reader.filtered(at);
  return reader.texel(index_of(std::floor(at[0])), index_of(std::floor(at[1])), index_of(std::floor(at[2])));
}

template <class T>
class Handles {
 public:
  uint64_t add(T value) {
    const std::unique_lock lock(mutex_);
    live_[++last_] = std::make_unique<T>(std::move(value));
    return last_;
  }
  const T* find(uint64_t handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = live_.find(handle);
    return found == live_.end() ? nullptr : found->second.get();
  }
  bool remove(uint64_t handle) {
    const std::unique_lock lock(mutex_);
    return live_.erase(handle) != 0;
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<uint64_t, std::unique_ptr<T>> live_;
  uint64_t last_ = 0;
};

Handles<Texture>& textures() {
  static auto* const all = new Handles<Texture>;
  return *all;
}
Handles<Image>& surfaces() {
  static auto* const all = new Handles<Image>;
  return *all;
}

}  // namespace

uint64_t Image::Level::bytes(uint32_t element) const {
  return (depth - 1) * slice + (height - 1) * pitch + uint64_t{width} * element;
}

bool Image::alive() const {
  const uint64_t now = memory_generation();
  std::atomic_ref seen(seen_);
  if (seen.load(std::memory_order_relaxed) == now) return true;
  for (const Level& level : levels) {
    Allocation found;
    if (!find_allocation(level.data, found) || !found.holds(level.data, level.bytes(element()))) return false;
  }
  seen.store(now, std::memory_order_relaxed);
  return true;
}

Texel sample(const Texture& texture, const TextureCoordinates& where) {
  const Image& image = texture.image;
  if (image.linear_memory && (where.texel[0] < 0 || static_cast<uint32_t>(where.texel[0]) >= image.levels[0].width))
    return {{0, 0, 0, 0}};
  const auto last = static_cast<uint32_t>(image.levels.size() - 1);
  if (last == 0) return sample_level(texture, where, 0);
  const Sampler& s = texture.sampler;
  const float most = std::min(s.most_level, static_cast<float>(last)), least = std::clamp(s.least_level, 0.0f, most);
  const float level = std::clamp(where.level + s.level_bias, least, most);
  if (!s.linear_levels) return sample_level(texture, where, static_cast<uint32_t>(level + 0.5f));
  const auto below = static_cast<uint32_t>(level);
  const double share = std::floor((double{level} - below) * 256 + 0.5) / 256;
  const Texel a = sample_level(texture, where, below);
  if (share == 0) return a;
  const Texel b = sample_level(texture, where, std::min(below + 1, last));
  Texel found;
  for (int c = 0; c < 4; ++c)
    found.bits[c] = std::bit_cast<uint32_t>(static_cast<float>((1 - share) * double{std::bit_cast<float>(a.bits[c])} +
                                                               share * double{std::bit_cast<float>(b.bits[c])}));
  return found;
}

Texel gather(const Texture& texture, const TextureCoordinates& where, int channel) {
  float at[3];
  const uint32_t slice = locate(texture, where, 0, at);
  const Reader reader(texture, 0, slice);
  const Taps x = taps_of(at[0]), y = taps_of(at[1]);
  return {{reader.texel(x.first, y.second, 0).bits[channel], reader.texel(x.second, y.second, 0).bits[channel],
           reader.texel(x.second, y.first, 0).bits[channel], reader.texel(x.first, y.first, 0).bits[channel]}};
}

float level_of(const Texture& texture, const float* dx, const float* dy) {
  const Image::Level& l = texture.image.levels[0];
  const bool normalized = texture.sampler.normalized_coordinates;
  const float size[3] = {normalized ? float(l.width) : 1, normalized ? float(l.height) : 1,
                         normalized ? float(l.depth) : 1};
  float x = 0, y = 0;
  for (int k = 0; k < 3; ++k) {
    x += dx[k] * size[k] * dx[k] * size[k];
    y += dy[k] * size[k] * dy[k] * size[k];
  }
  return 0.5f * std::log2(std::max(x, y));
}

uint64_t add_texture(Texture texture) { return textures().add(std::move(texture)); }
uint64_t add_surface(Image image) { return surfaces().add(std::move(image)); }
const Texture* find_texture(uint64_t handle) { return textures().find(handle); }
const Image* find_surface(uint64_t handle) { return surfaces().find(handle); }
bool remove_texture(uint64_t handle) { return textures().remove(handle); }
bool remove_surface(uint64_t handle) { return surfaces().remove(handle); }

}  // namespace emulator::ptx
