// SPDX-License-Identifier: Apache-2.0
// Textures and surfaces against the formulas of the CUDA programming guide, computed here once more in doubles. Without
// an argument it keeps its promises; an argument names a planted fault.
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "promises.h"

namespace {

// The reference.

double fraction8(double x) { return std::floor((x - std::floor(x)) * 256 + 0.5) / 256; }

int on_axis(int i, int n, cudaTextureAddressMode mode) {
  if (mode == cudaAddressModeClamp) return std::min(std::max(i, 0), n - 1);
  if (mode == cudaAddressModeBorder) return i < 0 || i >= n ? -1 : i;
  while (i < 0) i += 2 * n;  // both repeat after 2 n
  i %= 2 * n;
  return i < n ? i : mode == cudaAddressModeWrap ? i - n : 2 * n - 1 - i;
}

struct Grid {
  int width, height, depth;
  std::vector<float> texels;
  double at(int x, int y, int z, cudaTextureAddressMode mode) const {
    x = on_axis(x, width, mode), y = on_axis(y, height, mode), z = on_axis(z, depth, mode);
    return x < 0 || y < 0 || z < 0 ? 0 : double{texels[static_cast<size_t>((z * height + y) * width + x)]};
  }
  double linear(double x, double y, double z, cudaTextureAddressMode mode) const {
    const double fx = fraction8(x - 0.5), fy = height > 1 ? fraction8(y - 0.5) : 0,
                 fz = depth > 1 ? fraction8(z - 0.5) : 0;
    const int i = static_cast<int>(std::floor(x - 0.5)), j = height > 1 ? static_cast<int>(std::floor(y - 0.5)) : 0,
              k = depth > 1 ? static_cast<int>(std::floor(z - 0.5)) : 0;
    double sum = 0;
    for (int c = 0; c < 8; ++c) {
      const double share = (c & 1 ? fx : 1 - fx) * (c & 2 ? fy : 1 - fy) * (c & 4 ? fz : 1 - fz);
      if (share > 0) sum += share * at(i + (c & 1), j + (c >> 1 & 1), k + (c >> 2), mode);
    }
    return sum;
  }
};

Grid make_grid(int width, int height, int depth) {
  Grid grid{width, height, depth, {}};
  for (int i = 0; i < width * height * depth; ++i) grid.texels.push_back(static_cast<float>((i * 37) % 101) - 20);
  return grid;
}

cudaArray_t array_of(const Grid& grid, unsigned flags = 0) {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  const auto w = static_cast<size_t>(grid.width), h = static_cast<size_t>(grid.height),
             d = static_cast<size_t>(grid.depth);
  cudaArray_t array;
  MUST(cudaMalloc3DArray(&array, &format, {w, h > 1 || d > 1 ? h : 0, d > 1 ? d : 0}, flags));
  cudaMemcpy3DParms copy{};
  copy.srcPtr = make_cudaPitchedPtr(const_cast<float*>(grid.texels.data()), w * sizeof(float), w, h);
  copy.dstArray = array;
  copy.extent = {w, h, d};
  copy.kind = cudaMemcpyHostToDevice;
  MUST(cudaMemcpy3D(&copy));
  return array;
}

struct Object {
  explicit Object(const cudaResourceDesc& resource, cudaTextureAddressMode mode = cudaAddressModeClamp,
                  bool linear = false, bool normalized = false, cudaTextureReadMode read = cudaReadModeElementType) {
    cudaTextureDesc t{};
    for (auto& m : t.addressMode) m = mode;
    t.filterMode = t.mipmapFilterMode = linear ? cudaFilterModeLinear : cudaFilterModePoint;
    t.readMode = read;
    t.normalizedCoords = normalized;
    t.maxMipmapLevelClamp = 10;
    MUST(cudaCreateTextureObject(&handle, &resource, &t, nullptr));
  }
  ~Object() { cudaDestroyTextureObject(handle); }
  Object(const Object&) = delete;
  cudaTextureObject_t handle = 0;
};

cudaResourceDesc of_array(cudaArray_t array) {
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeArray;
  r.res.array.array = array;
  return r;
}

template <class T>
cudaResourceDesc of_memory(T* data, size_t count) {
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeLinear;
  r.res.linear = {data, cudaCreateChannelDesc<T>(), count * sizeof(T)};
  return r;
}

bool near(const std::vector<float>& found, const std::vector<double>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= 1e-5 * (1 + std::fabs(expected[i])))) {
      std::printf("element %zu: %g, expected %g\n", i, found[i], expected[i]);
      return false;
    }
  return true;
}

constexpr int kSteps = 64;
/// From below the texture to after it.
float position(int step, int size) {
  return (static_cast<float>(step) / kSteps * 3 - 1) * static_cast<float>(size) + 0.013f;
}

__global__ void look(cudaTextureObject_t t, float* out, const float* x, const float* y, const float* z,
                     int dimensions) {
  const int i = static_cast<int>(threadIdx.x);
  out[i] = dimensions == 1   ? tex1D<float>(t, x[i])
           : dimensions == 2 ? tex2D<float>(t, x[i], y[i])
                             : tex3D<float>(t, x[i], y[i], z[i]);
}

/// Every address mode, point and linear, by texels and normalised.
bool filters(int dimensions) {
  const Grid grid = make_grid(8, dimensions > 1 ? 5 : 1, dimensions > 2 ? 3 : 1);
  const cudaArray_t array = array_of(grid);
  bool right = true;
  for (const auto mode : {cudaAddressModeClamp, cudaAddressModeBorder, cudaAddressModeWrap, cudaAddressModeMirror})
    for (const bool linear : {false, true})
      for (const bool normalized : {false, true}) {
        if (!normalized && (mode == cudaAddressModeWrap || mode == cudaAddressModeMirror)) continue;
        const Object texture(of_array(array), mode, linear, normalized);
        std::vector<float> x, y, z;
        std::vector<double> expected;
        for (int i = 0; i < kSteps; ++i) {
          const float p[3] = {position(i, grid.width), position((i * 7) % kSteps, grid.height),
                              position((i * 13) % kSteps, grid.depth)};
          x.push_back(normalized ? p[0] / static_cast<float>(grid.width) : p[0]);
          y.push_back(normalized ? p[1] / static_cast<float>(grid.height) : p[1]);
          z.push_back(normalized ? p[2] / static_cast<float>(grid.depth) : p[2]);
          const double q[3] = {double{x.back()} * (normalized ? grid.width : 1),
                               double{y.back()} * (normalized ? grid.height : 1),
                               double{z.back()} * (normalized ? grid.depth : 1)};
          const auto texel = [&](int k) { return k < dimensions ? static_cast<int>(std::floor(q[k])) : 0; };
          expected.push_back(linear ? grid.linear(q[0], q[1], q[2], mode)
                                    : grid.at(texel(0), texel(1), texel(2), mode));
        }
        Array<float> out(kSteps), dx(x), dy(y), dz(z);
        look<<<1, kSteps>>>(texture.handle, out.data, dx.data, dy.data, dz.data, dimensions);
        right = near(out.get(), expected) && right;
      }
  MUST(cudaFreeArray(array));
  return right;
}

__global__ void fetch(cudaTextureObject_t floats, cudaTextureObject_t bytes, cudaTextureObject_t shares, float* out) {
  const int i = static_cast<int>(threadIdx.x) - 3;
  const float4 f = tex1Dfetch<float4>(floats, i);
  const char4 b = tex1Dfetch<char4>(bytes, i);
  const float2 s = tex1Dfetch<float2>(shares, i);
  out[threadIdx.x] = f.x + 2 * f.w + static_cast<float>(b.y * 1000) + s.x * 10 + s.y;
}

bool fetches_from_memory() {
  constexpr int kN = 20;
  std::vector<float4> f;
  std::vector<char4> b;
  std::vector<ushort2> s;
  for (int i = 0; i < kN; ++i) {
    f.push_back({static_cast<float>(i), 0, 0, static_cast<float>(3 * i + 1)});
    b.push_back({0, static_cast<signed char>(i * 17 - 128), 0, 0});
    s.push_back({static_cast<unsigned short>(i * 3000), 65535});
  }
  Array<float4> df(f);
  Array<char4> db(b);
  Array<ushort2> ds(s);
  Array<float> out(32);
  const Object floats(of_memory(df.data, kN)), bytes(of_memory(db.data, kN));
  const Object shares(of_memory(ds.data, kN), cudaAddressModeClamp, false, false, cudaReadModeNormalizedFloat);
  fetch<<<1, 32>>>(floats.handle, bytes.handle, shares.handle, out.data);
  std::vector<double> expected;
  for (int i = -3; i < 29; ++i) {
    const bool is_there = i >= 0 && i < kN;
    const auto k = static_cast<size_t>(is_there ? i : 0);
    expected.push_back(is_there ? f[k].x + 2.0 * f[k].w + b[k].y * 1000.0 + s[k].x / 65535.0 * 10 + 1 : 0);
  }
  const bool right = near(out.get(), expected);
  const Object longer(of_memory(df.data, kN + 2));  // than its memory
  Array<float> part(kN + 3);
  fetch<<<1, kN + 3>>>(longer.handle, bytes.handle, shares.handle, part.data);
  expected.resize(kN + 3);
  return right && near(part.get(), expected);
}

__global__ void look_at_layers(cudaTextureObject_t layered, cudaTextureObject_t gathered, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const float x = static_cast<float>(i % 8) + 0.25f, y = static_cast<float>(i / 8) + 0.75f;
  const float4 g = tex2Dgather<float4>(gathered, x, y, 0);
  out[i] = tex2DLayered<float>(layered, x, y, i % 4);
  out[i + 32] = g.x + 10 * g.y + 100 * g.z + 1000 * g.w;
}

/// Layers do not mix, a layer after the last is the last; a gather has its four texels in their order.
bool has_layers_and_gathers() {
  const Grid grid = make_grid(8, 5, 3);
  const cudaArray_t layers = array_of(grid, cudaArrayLayered);
  const Grid flat = make_grid(8, 5, 1);
  const cudaArray_t plane = array_of(flat, cudaArrayTextureGather);
  const Object layered(of_array(layers), cudaAddressModeClamp, true), gathered(of_array(plane));
  Array<float> out(64);
  look_at_layers<<<1, 32>>>(layered.handle, gathered.handle, out.data);
  std::vector<double> expected(64);
  for (int i = 0; i < 32; ++i) {
    const double x = i % 8 + 0.25, y = i / 8 + 0.75;
    Grid one{8, 5, 1, {}};
    const auto begin = grid.texels.begin() + std::min(i % 4, 2) * 40;
    one.texels.assign(begin, begin + 40);
    const int x0 = i % 8 - 1, y0 = i / 8;
    const auto t = [&](int dx, int dy) { return flat.at(x0 + dx, y0 + dy, 0, cudaAddressModeClamp); };
    expected[static_cast<size_t>(i)] = one.linear(x, y, 0, cudaAddressModeClamp);
    expected[static_cast<size_t>(i + 32)] = t(0, 1) + 10 * t(1, 1) + 100 * t(1, 0) + 1000 * t(0, 0);
  }
  const bool right = near(out.get(), expected);
  MUST(cudaFreeArray(layers));
  MUST(cudaFreeArray(plane));
  return right;
}

__global__ void look_at_a_cube(cudaTextureObject_t cube, float* out) {
  const int i = static_cast<int>(threadIdx.x);
  const float small = 0.3f * static_cast<float>(i % 3 - 1), other = 0.6f * static_cast<float>(i / 3 % 2) - 0.3f;
  const float way = i / 6 % 2 ? -2.0f : 2.0f;
  const int axis = i / 12;
  out[i] = axis == 0   ? texCubemap<float>(cube, way, small, other)
           : axis == 1 ? texCubemap<float>(cube, small, way, other)
                       : texCubemap<float>(cube, small, other, way);
}

/// Each face is found, the right way round: "Cubemap Textures", the table of s and t.
bool has_cubes() {
  const Grid grid = make_grid(4, 4, 6);
  const cudaArray_t array = array_of(grid, cudaArrayCubemap);
  const Object cube(of_array(array));
  Array<float> out(36);
  look_at_a_cube<<<1, 36>>>(cube.handle, out.data);
  std::vector<double> expected;
  for (int i = 0; i < 36; ++i) {
    const double small = 0.3 * (i % 3 - 1), other = 0.6 * (i / 3 % 2) - 0.3, way = i / 6 % 2 ? -2 : 2;
    const int axis = i / 12, face = axis * 2 + (way < 0);
    const double sign = way < 0 ? -1 : 1;
    const double s = axis == 0 ? -sign * other : axis == 1 ? small : sign * small;
    const double t = axis == 0 ? -small : axis == 1 ? sign * other : -other;
    const auto texel = [](double c) { return static_cast<int>((c / 2 + 1) / 2 * 4); };
    expected.push_back(grid.at(texel(s), texel(t), face, cudaAddressModeClamp));
  }
  const bool right = near(out.get(), expected);
  MUST(cudaFreeArray(array));
  return right;
}

__global__ void look_at_pitched(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] =
      tex2D<float>(t, static_cast<float>(threadIdx.x % 8) + 0.5f, static_cast<float>(threadIdx.x / 8) + 0.5f);
}

/// Halves in rows of pitched memory become floats.
bool reads_pitched_memory() {
  __half* data;
  size_t pitch;
  MUST(cudaMallocPitch(&data, &pitch, 8 * sizeof(__half), 4));
  std::vector<__half> host;
  std::vector<double> expected;
  for (int i = 0; i < 32; ++i) {
    host.push_back(__float2half(static_cast<float>(i) * 0.37f));
    expected.push_back(double{__half2float(host.back())});
  }
  MUST(cudaMemcpy2D(data, pitch, host.data(), 8 * sizeof(__half), 8 * sizeof(__half), 4, cudaMemcpyHostToDevice));
  cudaResourceDesc r{};
  r.resType = cudaResourceTypePitch2D;
  r.res.pitch2D = {data, cudaCreateChannelDescHalf(), 8, 4, pitch};
  Array<float> out(32);
  const Object texture(r);
  look_at_pitched<<<1, 32>>>(texture.handle, out.data);
  const bool right = near(out.get(), expected);
  MUST(cudaFree(data));
  return right;
}

__global__ void look_at_levels(cudaTextureObject_t t, float* out) {
  out[threadIdx.x] = tex2DLod<float>(t, 0.5f, 0.5f, static_cast<float>(threadIdx.x) / 4 - 0.5f);
}

/// Between two levels as between two texels.
bool has_levels() {
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  cudaMipmappedArray_t mipmaps;
  MUST(cudaMallocMipmappedArray(&mipmaps, &format, {8, 8, 0}, 3));
  for (unsigned level = 0; level < 3; ++level) {
    cudaArray_t array;
    MUST(cudaGetMipmappedArrayLevel(&array, mipmaps, level));
    const size_t side = 8u >> level;
    const std::vector<float> texels(side * side, static_cast<float>(10 * level * level + 1));
    MUST(cudaMemcpy2DToArray(array, 0, 0, texels.data(), side * 4, side * 4, side, cudaMemcpyHostToDevice));
  }
  MUST(cudaDeviceSynchronize());
  cudaResourceDesc r{};
  r.resType = cudaResourceTypeMipmappedArray;
  r.res.mipmap.mipmap = mipmaps;
  const Object texture(r, cudaAddressModeClamp, true, true);
  Array<float> out(16);
  look_at_levels<<<1, 16>>>(texture.handle, out.data);
  std::vector<double> expected;
  for (int i = 0; i < 16; ++i) {
    const double level = std::clamp(i / 4.0 - 0.5, 0.0, 2.0), below = std::floor(level), share = level - below;
    expected.push_back((1 - share) * (10 * below * below + 1) + share * (10 * (below + 1) * (below + 1) + 1));
  }
  const bool right = near(out.get(), expected);
  MUST(cudaFreeMipmappedArray(mipmaps));
  return right;
}

struct Surface {
  explicit Surface(cudaArray_t array) {
    const cudaResourceDesc r = of_array(array);
    MUST(cudaCreateSurfaceObject(&handle, &r));
  }
  ~Surface() { cudaDestroySurfaceObject(handle); }
  Surface(const Surface&) = delete;
  cudaSurfaceObject_t handle = 0;
};

__global__ void turn(cudaSurfaceObject_t surface, cudaSurfaceObject_t volume) {
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  float value;
  surf2Dread(&value, surface, x * 4, y);
  surf3Dwrite(make_short2(static_cast<short>(value), static_cast<short>(x)), volume, x * 4, y, 1);
  __syncthreads();
  surf2Dwrite(value + 1, surface, (7 - x) * 4, y);
  // Outside: nothing is written, or the nearest is.
  surf2Dwrite(-1.0f, surface, -4, y, cudaBoundaryModeZero);
  if (y == 0) surf2Dwrite(500.0f, surface, 4 * 4, 99, cudaBoundaryModeClamp);
  float outside = 1;
  surf2Dread(&outside, surface, 32, y, cudaBoundaryModeZero);
  if (x == 0 && y == 1) surf2Dwrite(outside, surface, 0, 3);
}

bool writes_surfaces() {
  const Grid grid = make_grid(8, 5, 1);
  const cudaArray_t plane = array_of(grid, cudaArraySurfaceLoadStore);
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<short2>();
  cudaArray_t box;
  MUST(cudaMalloc3DArray(&box, &format, {8, 5, 2}, cudaArraySurfaceLoadStore));
  {
    const Surface surface(plane), volume(box);
    turn<<<1, dim3(8, 3)>>>(surface.handle, volume.handle);
    MUST(cudaDeviceSynchronize());
  }
  std::vector<float> found(40);
  MUST(cudaMemcpy2DFromArray(found.data(), 32, plane, 0, 0, 32, 5, cudaMemcpyDeviceToHost));
  std::vector<short2> pairs(40);
  cudaMemcpy3DParms copy{};
  copy.srcArray = box;
  copy.srcPos = {0, 0, 1};
  copy.dstPtr = make_cudaPitchedPtr(pairs.data(), 32, 8, 5);
  copy.extent = {8, 5, 1};
  copy.kind = cudaMemcpyDeviceToHost;
  MUST(cudaMemcpy3D(&copy));
  bool right = true;
  for (int y = 0; y < 5; ++y)
    for (int x = 0; x < 8; ++x) {
      const auto k = static_cast<size_t>(y * 8 + x);
      float expected = y < 3 ? grid.texels[static_cast<size_t>(y * 8 + 7 - x)] + 1 : grid.texels[k];
      if (y == 4 && x == 4) expected = 500;
      if (y == 3 && x == 0) expected = 0;
      right = right && found[k] == expected;
      if (y < 3) right = right && pairs[k].x == static_cast<short>(grid.texels[k]) && pairs[k].y == x;
    }
  MUST(cudaFreeArray(plane));
  MUST(cudaFreeArray(box));
  return right;
}

/// Impossible requests are refused at the call.
bool refuses_wrong_objects() {
  Array<int> integers(16);
  cudaTextureObject_t texture;
  cudaTextureDesc t{};
  t.filterMode = cudaFilterModeLinear;
  cudaArray_t array;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  MUST(cudaMallocArray(&array, &format, 4, 4));
  cudaResourceDesc r = of_array(array);
  const bool filter = cudaCreateTextureObject(&texture, &r, &t, nullptr) == cudaErrorInvalidFilterSetting;
  cudaSurfaceObject_t surface;
  const bool store = cudaCreateSurfaceObject(&surface, &r) == cudaErrorInvalidValue;
  r = of_memory(integers.data + 1, 8);
  t.filterMode = cudaFilterModePoint;
  const bool aligned = cudaCreateTextureObject(&texture, &r, &t, nullptr) != cudaSuccess;
  cudaGetLastError();
  MUST(cudaFreeArray(array));
  return filter && store && aligned;
}

__global__ void store_at(cudaSurfaceObject_t surface, int x) { surf2Dwrite(1.0f, surface, x, 0); }

__global__ void fetch_one(cudaTextureObject_t texture, float* out) { *out = tex1Dfetch<float>(texture, 32); }

int fault(const std::string& name) {
  const Grid grid = make_grid(8, 5, 1);
  const cudaArray_t array = array_of(grid, cudaArraySurfaceLoadStore);
  Array<float> out(32);
  const Object texture(of_array(array)), longer(of_memory(out.data, 33));
  const Surface surface(array);
  if (name == "freed") MUST(cudaFreeArray(array));
  if (name == "freed") look_at_pitched<<<1, 32>>>(texture.handle, out.data);
  if (name == "no_object") look_at_pitched<<<1, 32>>>(12345, out.data);
  if (name == "beyond_memory") fetch_one<<<1, 1>>>(longer.handle, out.data);
  if (name == "beyond") store_at<<<1, 1>>>(surface.handle, 32);
  if (name == "misaligned") store_at<<<1, 1>>>(surface.handle, 6);
  const cudaError_t found = cudaDeviceSynchronize();
  std::printf("%s\n", cudaGetErrorName(found));
  return found == cudaSuccess ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) return fault(argv[1]);
  return keep_promises({
      {"filters_lines", [] { return filters(1); }},
      {"filters_planes", [] { return filters(2); }},
      {"filters_volumes", [] { return filters(3); }},
      {"fetches_from_memory", fetches_from_memory},
      {"has_layers_and_gathers", has_layers_and_gathers},
      {"has_cubes", has_cubes},
      {"reads_pitched_memory", reads_pitched_memory},
      {"has_levels", has_levels},
      {"writes_surfaces", writes_surfaces},
      {"refuses_wrong_objects", refuses_wrong_objects},
  });
}
