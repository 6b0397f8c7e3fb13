// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

// Textures and surfaces: texels in device memory, and how coordinates become a value (CUDA programming guide, "Texture
// Fetching").

namespace emulator::ptx {

enum class Channel : uint8_t { is_signed, is_unsigned, is_float };

/// Texels, level by level. Layers and the faces of cubes are slices, as the depth of a volume is.
struct Image {
  struct Level {
    uintptr_t data = 0;
    uint32_t width = 1, height = 1, depth = 1;  ///< depth: of a volume, or all layers and faces
    uint64_t pitch = 0, slice = 0;
    uint64_t bytes(uint32_t element) const;  ///< from the first texel to one past the last
  };
  std::vector<Level> levels;
  uint32_t channels = 1, channel_bits = 32;
  Channel channel = Channel::is_unsigned;
  bool layered = false, cube = false;
  bool linear_memory = false;  ///< a row of elements without addressing: reads outside give 0
  uint64_t described = 0;      ///< elements of that row by its description; memory ends after levels[0].width of them

  uint32_t element() const { return channels * channel_bits / 8; }
  uint32_t layers() const { return levels[0].depth / (cube ? 6 : 1); }
  /// Whether all of it is allocated memory. Reads the registry only when that has changed.
  bool alive() const;

 private:
  mutable uint64_t seen_ = 0;
};

enum class AddressMode : uint8_t { wrap, clamp, mirror, border };

struct Sampler {
  AddressMode address[3] = {AddressMode::clamp, AddressMode::clamp, AddressMode::clamp};
  bool linear = false, linear_levels = false;
  bool normalized_coordinates = false;
  bool normalized_values = false;  ///< integers become [0, 1] or [-1, 1]
  bool srgb = false;
  float border[4] = {0, 0, 0, 0};
  float level_bias = 0, least_level = 0, most_level = 0;
};

struct Texture {
  Image image;
  Sampler sampler;
};

/// A lane's coordinates.
struct TextureCoordinates {
  float at[3] = {0, 0, 0};  ///< x, y, z
  int texel[3] = {0, 0, 0};
  bool is_texel = false;  ///< integer coordinates: `texel`, unfiltered
  uint32_t layer = 0;
  float level = 0;
};

/// Four channels, as bits: floats where the texture gives floats, else integers of 32 bits.
struct Texel {
  uint32_t bits[4];
};
Texel sample(const Texture& texture, const TextureCoordinates& where);
/// One channel of the four texels that linear filtering would take, from the lower left against the clock.
Texel gather(const Texture& texture, const TextureCoordinates& where, int channel);
/// The level of detail for the change of coordinates in x and y of the screen, three of each.
float level_of(const Texture& texture, const float* dx, const float* dy);

// The objects of a program's handles. A handle is unique over the process; nullptr: none of this number is alive.
uint64_t add_texture(Texture texture);
uint64_t add_surface(Image image);
const Texture* find_texture(uint64_t handle);
const Image* find_surface(uint64_t handle);
bool remove_texture(uint64_t handle);
bool remove_surface(uint64_t handle);

}  // namespace emulator::ptx
