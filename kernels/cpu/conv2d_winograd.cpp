// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/conv2d_winograd.h"

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/processor.h"
#include "kernels/cpu/scratch.h"

// Lavin and Gray (2016), section 4: a tile of 4x4 outputs is A^T [(G g G^T) . (B^T d B)] A, summed over the input
// channels before the last transform. So a convolution is 36 matrix products, one a plane, with a quarter of the direct
// sum's multiplications. Gradients are the adjoints of the same transforms.
//
//   v [36, tiles, C] = B^T d B of x.  u [36, C, O] = G g G^T of w.  m [36, tiles, O] = v u.  y = A^T m A
//
// v and m are 2.25 times as large as x and y: they exist for a few tiles at a time, in a core's cache.

namespace weft::kernels::cpu {
namespace {

constexpr int64_t kBlock = 24;      ///< tiles at a time: a multiple of the rows of every micro-kernel
constexpr int64_t kFewTiles = 128;  ///< up to here the filters, not the tiles, are what is cut into blocks
constexpr int64_t kGroup = 64;      ///< output channels at a time
constexpr int64_t kFewGroup = 32;   ///< as above, where m holds all tiles
constexpr int64_t kDepth = 256;     ///< K of a GEMM, whose panel then stays in the first-level cache
constexpr int64_t kSlice = 64;      ///< input channels of filters that are transformed at a time

int64_t round_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

/// The distance of rows of channels, padded to whole panels of any instruction set: 64 bytes more keep rows whose
/// length is a power of two from meeting in a few sets of the cache.
int64_t row_of(int64_t channels) { return round_up(channels, 32) + 16; }

/// The distance of planes, which transforms write all at once: 64 bytes more than whole pages, for the same reason.
int64_t plane_of(int64_t floats) { return round_up(floats, 1024) + 16; }

/// Tiles of out[n, p, q], the sum over r and s: in[n, p - padding.h + r, q - padding.w + s] g[r, s].
struct Tiles {
  int64_t N, H, W, C;  // in's
  int64_t P, Q, O;     // out's
  Size2d padding;
  int64_t down = (P + kTile - 1) / kTile, across = (Q + kTile - 1) / kTile, count = N * down * across;

  Tiles(const View& in, const View& out, Size2d near)
      : N(in.sizes[0]),
        H(in.sizes[1]),
        W(in.sizes[2]),
        C(in.sizes[3]),
        P(out.sizes[1]),
        Q(out.sizes[2]),
        O(out.sizes[3]),
        padding(near) {}

  /// Pointers to the 36 inputs of a tile; `zeros` where they lie outside of the image.
  void inputs(const float** at, int64_t tile, const float* in, const float* zeros) const {
    const int64_t n = tile / (down * across), top = tile / across % down * kTile - padding.h;
    const int64_t left = tile % across * kTile - padding.w;
    for (int64_t h = top; h < top + kPatch; ++h)
      for (int64_t w = left; w < left + kPatch; ++w)
        *at++ = h < 0 || h >= H || w < 0 || w >= W ? zeros : in + ((n * H + h) * W + w) * C;
  }

  /// Pointers to the 16 outputs of a tile; `other` where they lie outside of the image.
  template <class Float>
  void outputs(Float** at, int64_t tile, Float* out, Float* other) const {
    const int64_t n = tile / (down * across), top = tile / across % down * kTile, left = tile % across * kTile;
    for (int64_t p = top; p < top + kTile; ++p)
      for (int64_t q = left; q < left + kTile; ++q) *at++ = p >= P || q >= Q ? other : out + ((n * P + p) * Q + q) * O;
  }
};

/// One allocation in parts that begin at multiples of 64 bytes.
class Workspace {
 public:
  int64_t part(int64_t floats) {
    const int64_t begin = floats_;
    floats_ += round_up(floats, 16);
    return begin;
  }
  float* allocate() const {
    thread_local Scratch scratch;
    const auto bytes = static_cast<size_t>(floats_) * sizeof(float);
    return static_cast<float*>(scratch.at_least(bytes));  // NOLINT(clang-analyzer-unix.Malloc): a thread_local stays
  }

 private:
  int64_t floats_ = 0;
};

int most_threads() { return omp_in_parallel() ? 1 : omp_get_max_threads(); }

/// body(begin, end, thread) for runs of `step` items. A free thread takes the next run: one that the machine keeps busy
/// elsewhere delays the others little.
template <class Body>
void share(int64_t items, int64_t step, int threads, Body&& body) {
  const int64_t runs = (items + step - 1) / step;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (threads > 1 && runs > 1)
  for (int64_t run = 0; run < runs; ++run) body(run * step, std::min(items, (run + 1) * step), omp_get_thread_num());
}

/// The correlation of tiles with filters: the forward, and the backward by input.
class Correlation {
 public:
  Correlation(const WinogradKernels& kernels, const Tiles& tiles, float* out, const float* in,
              const WinogradFilters& filters, const float* bias)
      : k_(kernels), t_(tiles), out_(out), in_(in), g_(filters), bias_(bias) {}

  void run() { t_.count <= kFewTiles ? by_channels() : by_tiles(); }

 private:
  const WinogradKernels& k_;
  const Tiles& t_;
  float* const out_;
  const float* const in_;
  const WinogradFilters& g_;
  const float* const bias_;
  const int threads_ = most_threads();
  const int64_t panel_ = k_.panel, v_row_ = row_of(t_.C), wide_ = row_of(std::max(t_.C, t_.O));
  Workspace space_;
  const int64_t zeros_at_ = space_.part(wide_), bias_at_ = space_.part(wide_), sink_at_ = space_.part(wide_ * threads_);
  float* base_ = nullptr;

  void allocate() {
    base_ = space_.allocate();
    std::fill_n(base_ + zeros_at_, wide_, 0.0f);
    std::fill_n(base_ + bias_at_, wide_, 0.0f);
    if (bias_) std::copy_n(bias_, t_.O, base_ + bias_at_);
  }

  void transform_inputs(float* v, int64_t plane, int64_t begin, int64_t end) const {
    const float* from[kPlanes];
    for (int64_t t = begin; t < end; ++t, v += v_row_) {
      t_.inputs(from, t, in_, base_ + zeros_at_);
      k_.input({v, plane, v_row_ - 16, 0}, from, t_.C);
    }
  }

  /// Filters of the panel of output channels that begins at o, for input channels [c, c + depth).
  void transform_filters(float* u, int64_t plane, int64_t o, int64_t c, int64_t depth) const {
    const float* w = g_.w + o * g_.column_step + c * g_.depth_step;
    k_.filters(u, plane, {w, g_.tap_step, g_.depth_step, g_.column_step}, depth, std::min(panel_, t_.O - o));
  }

  /// Output channels [o, end_o) of tiles [begin, end).
  void transform_outputs(const float* m, int64_t row, int64_t plane, int64_t begin, int64_t end, int64_t o,
                         int64_t end_o, int thread) const {
    float* to[kTile * kTile];
    for (int64_t t = begin; t < end; ++t, m += row) {
      t_.outputs(to, t, out_ + o, base_ + sink_at_ + thread * wide_);
      k_.output(to, m, plane, base_ + bias_at_ + o, end_o - o);
    }
  }

  /// Many tiles: all filters are transformed first; then blocks of tiles are shared.
  void by_tiles() {
    const int64_t C = t_.C, O = t_.O, panels = round_up(O, panel_) / panel_;
    const int64_t u_plane = plane_of(C * panel_), u_panel = u_plane * kPlanes;
    const int64_t v_plane = plane_of(kBlock * v_row_), m_plane = plane_of(kBlock * kGroup);
    const int64_t u_at = space_.part(u_panel * panels);
    const int64_t v_at = space_.part(v_plane * kPlanes * threads_), m_at = space_.part(m_plane * kPlanes * threads_);
    allocate();
    const auto u_of = [&](int64_t o) { return base_ + u_at + o / panel_ * u_panel; };
    share(O, panel_, threads_, [&](int64_t o, int64_t, int) { transform_filters(u_of(o), u_plane, o, 0, C); });
    share(t_.count, kBlock, threads_, [&](int64_t begin, int64_t end, int thread) {
      float* const v = base_ + v_at + thread * (kPlanes * v_plane);
      float* const m = base_ + m_at + thread * (kPlanes * m_plane);
      transform_inputs(v, v_plane, begin, end);
      for (int64_t first = 0; first < O; first += kGroup) {
        const int64_t last = std::min(O, first + kGroup);
        for (int64_t plane = 0; plane < kPlanes; ++plane)
          for (int64_t c = 0; c < C; c += kDepth)
            for (int64_t o = first; o < last; o += panel_)
              k_.product({.rows = end - begin,
                          .depth = std::min(kDepth, C - c),
                          .a = v + plane * v_plane + c,
                          .a_row = v_row_,
                          .a_depth = 1,
                          .b = u_of(o) + plane * u_plane + c * panel_,
                          .b_depth = panel_,
                          .c = m + plane * m_plane + o - first,
                          .c_row = kGroup,
                          .add = c > 0});
        transform_outputs(m, kGroup, m_plane, begin, end, first, last, thread);
      }
    });
  }

  /// Few tiles: all of them are transformed first; then groups of output channels are shared, whose filters are
  /// transformed slice by slice and stay in the core's cache.
  void by_channels() {
    const int64_t C = t_.C, O = t_.O, tiles = t_.count;
    const int64_t v_plane = plane_of(tiles * v_row_), m_plane = plane_of(tiles * kFewGroup);
    const int64_t u_plane = plane_of(kSlice * panel_), u_panel = u_plane * kPlanes;
    const int64_t v_at = space_.part(v_plane * kPlanes), m_at = space_.part(m_plane * kPlanes * threads_);
    const int64_t u_size = u_panel * (kFewGroup / panel_), u_at = space_.part(u_size * threads_);
    allocate();
    float* const v = base_ + v_at;
    share(tiles, 4, threads_,
          [&](int64_t begin, int64_t end, int) { transform_inputs(v + begin * v_row_, v_plane, begin, end); });
    share(O, kFewGroup, threads_, [&](int64_t first, int64_t last, int thread) {
      float* const m = base_ + m_at + thread * (kPlanes * m_plane);
      const auto u_of = [&](int64_t o) { return base_ + u_at + thread * u_size + (o - first) / panel_ * u_panel; };
      for (int64_t c = 0; c < C; c += kSlice) {
        const int64_t depth = std::min(kSlice, C - c);
        for (int64_t o = first; o < last; o += panel_) transform_filters(u_of(o), u_plane, o, c, depth);
        for (int64_t plane = 0; plane < kPlanes; ++plane)
          for (int64_t o = first; o < last; o += panel_)
            k_.product({.rows = tiles,
                        .depth = depth,
                        .a = v + plane * v_plane + c,
                        .a_row = v_row_,
                        .a_depth = 1,
                        .b = u_of(o) + plane * u_plane,
                        .b_depth = panel_,
                        .c = m + plane * m_plane + o - first,
                        .c_row = kFewGroup,
                        .add = c > 0,
                        .ahead = true});
      }
      transform_outputs(m, kFewGroup, m_plane, 0, tiles, first, last, thread);
    });
  }
};

constexpr int64_t kMostRows = 64;                  ///< output channels of a product
constexpr int64_t kColumns = 128;                  ///< input channels of one thread's sums
constexpr int64_t kSumBlock = 48;                  ///< tiles at a time
constexpr int64_t kMostDepth = 96;                 ///< K of a GEMM: sums of short sums keep their digits
constexpr int64_t kMostAtOnce = int64_t{1} << 17;  ///< tiles times channels whose planes, 19 MB, are all kept
constexpr int64_t kMostSums = int64_t{6} << 20;    ///< floats of the parts' sums

/// The gradient of filters: u[36, O, C] = sum over tiles of m^T v, then G^T u G. m = A dy A^T and v = B^T d B. Both
/// factors lie in panels [36, panel, tile, channel of the panel], which products read in the order of memory.
class FilterGradient {
 public:
  FilterGradient(const WinogradKernels& kernels, const Tiles& tiles, float* dw, const float* dy, const float* x)
      : k_(kernels), t_(tiles), dw_(dw), dy_(dy), x_(x) {}

  void run() { t_.count*(t_.C + t_.O) <= kMostAtOnce ? at_once() : in_parts(); }

 private:
  const WinogradKernels& k_;
  const Tiles& t_;
  float* const dw_;
  const float *const dy_, *const x_;
  const int threads_ = most_threads();
  const int64_t panel_rows_ = std::min(kMostRows, round_up(t_.O, 16));
  const int64_t columns_ = round_up(t_.C, k_.panel), rows_ = round_up(t_.O, panel_rows_),
                wide_ = std::max(columns_, rows_);
  Workspace space_;
  const int64_t zeros_at_ = space_.part(wide_);
  const float* zeros_ = nullptr;

  float* allocate() {
    float* const base = space_.allocate();
    zeros_ = std::fill_n(base + zeros_at_, wide_, 0.0f) - wide_;
    return base;
  }

  /// Both factors of `depth` tiles.
  struct Factors {
    int64_t depth, v_plane, m_plane;
    float *v, *m;
  };

  int64_t floats_of(const Factors& f) const { return (f.v_plane + f.m_plane) * kPlanes; }
  Factors factors(int64_t depth) const {
    return {depth, plane_of(depth * columns_), plane_of(depth * rows_), nullptr, nullptr};
  }
  static Factors at(Factors f, float* memory) { return f.v = memory, f.m = memory + f.v_plane * kPlanes, f; }

  void transform_tile(const Factors& f, int64_t row, int64_t tile) const {
    const float* from[kPlanes];
    t_.inputs(from, tile, x_, zeros_);
    k_.input({f.v + row * k_.panel, f.v_plane, k_.panel, f.depth * k_.panel}, from, t_.C);
    t_.outputs(from, tile, dy_, zeros_);
    k_.output_adjoint({f.m + row * panel_rows_, f.m_plane, panel_rows_, f.depth * panel_rows_}, from, t_.O);
  }

  /// u[o, c] (+)= one plane's sum over `count` tiles, for panel_rows_ output channels from o on, input channels [c,
  /// end_c).
  void sum(float* u, int64_t u_row, const Factors& f, int64_t count, int64_t plane, int64_t o, int64_t c, int64_t end_c,
           bool add) const {
    for (int64_t t = 0; t < count; t += kMostDepth)
      for (int64_t j = c; j < end_c; j += k_.panel)
        k_.product({.rows = std::min(panel_rows_, t_.O - o),
                    .depth = std::min(kMostDepth, count - t),
                    .a = f.m + plane * f.m_plane + o * f.depth + t * panel_rows_,
                    .a_row = 1,
                    .a_depth = panel_rows_,
                    .b = f.v + plane * f.v_plane + j * f.depth + t * k_.panel,
                    .b_depth = k_.panel,
                    .c = u + j - c,
                    .c_row = u_row,
                    .add = add || t > 0});
  }

  /// Few tiles or channels: all are transformed; then blocks of channels are shared.
  void at_once() {
    const int64_t C = t_.C, O = t_.O, u_plane = plane_of(panel_rows_ * kColumns);
    const Factors sizes = factors(t_.count);
    const int64_t factors_at = space_.part(floats_of(sizes)), u_at = space_.part(u_plane * kPlanes * threads_);
    float* const base = allocate();
    const Factors f = at(sizes, base + factors_at);
    share(t_.count, 4, threads_, [&](int64_t begin, int64_t end, int) {
      for (int64_t t = begin; t < end; ++t) transform_tile(f, t, t);
    });
    const int64_t blocks = round_up(C, kColumns) / kColumns;
    share(rows_ / panel_rows_ * blocks, 1, threads_, [&](int64_t item, int64_t, int thread) {
      float* const u = base + u_at + thread * (kPlanes * u_plane);
      const int64_t o = item / blocks * panel_rows_, c = item % blocks * kColumns, end_c = std::min(C, c + kColumns);
      for (int64_t plane = 0; plane < kPlanes; ++plane)
        sum(u + plane * u_plane, kColumns, f, t_.count, plane, o, c, end_c, false);
      for (int64_t i = o; i < std::min(O, o + panel_rows_); ++i)
        k_.filters_adjoint(dw_ + i * 9 * C + c, C, u + (i - o) * kColumns, u_plane, end_c - c);
    });
  }

  /// Many tiles: parts of them are shared, as many as their sums leave room for, whatever the number of threads. The
  /// sums are added in order.
  void in_parts() {
    const int64_t C = t_.C, O = t_.O, u_row = row_of(C), u_plane = plane_of(O * u_row), u_part = u_plane * kPlanes;
    const int64_t wanted = std::clamp<int64_t>(kMostSums / u_part, 2, 16);
    const int64_t step = round_up((t_.count + wanted - 1) / wanted, kSumBlock), parts = (t_.count + step - 1) / step;
    const Factors sizes = factors(kSumBlock);
    const int64_t factors_at = space_.part(floats_of(sizes) * threads_), u_at = space_.part(u_part * parts);
    const int64_t total_plane = round_up(C, k_.panel), total_at = space_.part(total_plane * kPlanes * threads_);
    float* const base = allocate();
    share(t_.count, step, threads_, [&](int64_t begin, int64_t end, int thread) {
      const Factors f = at(sizes, base + factors_at + thread * floats_of(sizes));
      float* const u = base + u_at + begin / step * u_part;
      for (int64_t first = begin; first < end; first += kSumBlock) {
        const int64_t count = std::min(kSumBlock, end - first);
        for (int64_t t = 0; t < count; ++t) transform_tile(f, t, first + t);
        for (int64_t plane = 0; plane < kPlanes; ++plane)
          for (int64_t o = 0; o < O; o += panel_rows_)
            sum(u + plane * u_plane + o * u_row, u_row, f, count, plane, o, 0, C, first > begin);
      }
    });
    share(O, 4, threads_, [&](int64_t begin, int64_t end, int thread) {
      float* const total = base + total_at + thread * (kPlanes * total_plane);
      for (int64_t o = begin; o < end; ++o) {
        for (int64_t plane = 0; plane < kPlanes; ++plane) {
          float* const sum = total + plane * total_plane;
          const float* from = base + u_at + plane * u_plane + o * u_row;
          std::copy_n(from, C, sum);
          for (int64_t part = 1; part < parts; ++part) {
            from += u_part;
#pragma omp simd
            for (int64_t c = 0; c < C; ++c) sum[c] += from[c];
          }
        }
        k_.filters_adjoint(dw_ + o * 9 * C, C, total, total_plane, C);
      }
    });
  }
};

// Measured beside oneDNN's direct sum, with AVX2 : AVX-512, the three directions together. 512 channels of 7x7: one
// image 0.93 : 0.83 of its speed, two 1.12 : 1.01, four 1.47 : 1.27, 16 2.2 : 1.9. One image of 14x14, 256
// channels: 1.6 : 1.25. 16 images of 5x5, whose tiles have 6.25 of 16 outputs: 1.1 : 1.0.
constexpr int64_t kLeastPositions = 160, kLeastFull = 7, kLeastChannels = 16;

}  // namespace

const WinogradKernels& winograd_kernels() {
  static const WinogradKernels& best = has_avx512() ? winograd_avx512() : winograd_avx2();
  return best;
}

bool suits_winograd(const View& y, const View& x, const View& w, const Conv2dArguments& a) {
  if (x.dtype != DType::f32 || w.dtype != DType::f32 || y.dtype != DType::f32) return false;
  if (w.sizes[1] != 3 || w.sizes[2] != 3 || a.groups != 1 || a.stride != Size2d{1, 1} || a.dilation != Size2d{1, 1})
    return false;
  const int64_t positions = y.sizes[0] * y.sizes[1] * y.sizes[2];
  return std::max(a.padding.h, a.padding.w) <= 2 && std::min(x.sizes[3], w.sizes[0]) >= kLeastChannels &&
         positions >= std::max(kLeastPositions, kLeastFull * Tiles(x, y, a.padding).count);
}

void winograd_conv2d_forward(const View& y, const View& x, const View& w, const View& bias, Size2d padding,
                             const WinogradKernels& kernels) {
  const int64_t C = x.sizes[3];
  Correlation(kernels, {x, y, padding}, y.as<float>(), x.as<float>(), {w.as<float>(), C, 1, 9 * C},
              bias ? bias.as<float>() : nullptr)
      .run();
}

void winograd_conv2d_backward_input(const View& dx, const View& dy, const View& w, Size2d padding,
                                    const WinogradKernels& kernels) {
  const int64_t C = dx.sizes[3];
  // As above, with filters turned by 180 degrees.
  Correlation(kernels, {dy, dx, {2 - padding.h, 2 - padding.w}}, dx.as<float>(), dy.as<float>(),
              {w.as<float>() + 8 * C, -C, 9 * C, 1}, nullptr)
      .run();
}

void winograd_conv2d_backward_weight(const View& dw, const View& dy, const View& x, Size2d padding,
                                     const WinogradKernels& kernels) {
  FilterGradient(kernels, {x, dy, padding}, dw.as<float>(), dy.as<float>(), x.as<float>()).run();
}

}  // namespace weft::kernels::cpu
