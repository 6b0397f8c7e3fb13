// SPDX-License-Identifier: Apache-2.0
#include "emulator/cufft/plan.h"

#include <cstring>
#include <functional>
#include <numeric>

#include "emulator/cufft/transform.h"

namespace emulator::fft {
namespace {

int64_t count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

/// Calls body(where its first element lies, its number) for each line along the last dimension.
template <class F>
void each_line(const Lattice& lattice, const std::vector<int64_t>& shape, F&& body) {
  const int64_t lines = count(shape) / shape.back();
  for (int64_t line = 0; line < lines; ++line) {
    int64_t place = 0, rest = line;
    std::vector<int64_t> index(shape.size());
    for (size_t d = shape.size() - 1; d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    for (size_t d = 0; d < shape.size(); ++d) place = place * lattice.embed[d] + index[d];
    body(place * lattice.stride, line);
  }
}

template <class T>
Complex load(const void* base, int64_t at, bool real) {
  T parts[2] = {};
  const size_t bytes = real ? sizeof(T) : 2 * sizeof(T);
  std::memcpy(parts, static_cast<const std::byte*>(base) + at * static_cast<int64_t>(bytes), bytes);
  return {static_cast<double>(parts[0]), static_cast<double>(parts[1])};
}
template <class T>
void store(void* base, int64_t at, Complex value, bool real) {
  const T parts[2] = {static_cast<T>(value.real()), static_cast<T>(value.imag())};
  const size_t bytes = real ? sizeof(T) : 2 * sizeof(T);
  std::memcpy(static_cast<std::byte*>(base) + at * static_cast<int64_t>(bytes), parts, bytes);
}

/// Along dimension `d`, in place.
void along(std::vector<Complex>& values, const std::vector<int64_t>& shape, size_t d, bool inverse) {
  Transform transform(shape[d], inverse);
  const int64_t n = shape[d], step = count({shape.begin() + static_cast<int64_t>(d) + 1, shape.end()});
  std::vector<Complex> in(static_cast<size_t>(n)), out(static_cast<size_t>(n));
  for (int64_t line = 0; line < count(shape) / n; ++line) {
    Complex* const first = values.data() + line / step * step * n + line % step;
    for (int64_t k = 0; k < n; ++k) in[static_cast<size_t>(k)] = first[k * step];
    transform(in.data(), out.data());
    for (int64_t k = 0; k < n; ++k) first[k * step] = out[static_cast<size_t>(k)];
  }
}

template <class T>
void run_batch(const Plan& p, const void* in, void* out, bool inverse, int64_t batch) {
  const std::vector<int64_t> shape = p.shape_in(), to = p.shape_out(), half = p.half();
  const int64_t n = p.n.back(), kept = half.back();
  std::vector<Complex> values(static_cast<size_t>(count(shape)));
  each_line(p.in, shape, [&](int64_t place, int64_t line) {
    for (int64_t k = 0; k < shape.back(); ++k)
      values[static_cast<size_t>(line * shape.back() + k)] =
          load<T>(in, batch * p.in.distance + place + k * p.in.stride, p.real_in);
  });
  const size_t last = p.n.size() - 1;
  if (p.real_out) {  // the last dimension last: its lines are half spectra
    for (size_t d = 0; d < last; ++d) along(values, half, d, true);
    std::vector<Complex> all(static_cast<size_t>(count(p.n)));
    for (int64_t line = 0; line < count(half) / kept; ++line) {
      const Complex* const from = values.data() + line * kept;
      Complex* const whole = all.data() + line * n;
      for (int64_t k = 0; k < kept; ++k) whole[k] = k == 0 || 2 * k == n ? Complex(from[k].real()) : from[k];
      for (int64_t k = kept; k < n; ++k) whole[k] = std::conj(from[n - k]);
    }
    values = std::move(all);
    along(values, p.n, last, true);
  } else if (p.real_in) {
    along(values, p.n, last, false);
    std::vector<Complex> spectra(static_cast<size_t>(count(half)));
    for (int64_t line = 0; line < count(half) / kept; ++line)
      std::copy_n(values.data() + line * n, kept, spectra.data() + line * kept);
    values = std::move(spectra);
    for (size_t d = 0; d < last; ++d) along(values, half, d, false);
  } else {
    for (size_t d = 0; d <= last; ++d) along(values, p.n, d, inverse);
  }
  each_line(p.out, to, [&](int64_t place, int64_t line) {
    for (int64_t k = 0; k < to.back(); ++k)
      store<T>(out, batch * p.out.distance + place + k * p.out.stride,
               values[static_cast<size_t>(line * to.back() + k)], p.real_out);
  });
}

}  // namespace

std::vector<int64_t> Plan::half() const {
  std::vector<int64_t> shape = n;
  shape.back() = shape.back() / 2 + 1;
  return shape;
}

size_t Plan::bytes_of_work() const {
  return static_cast<size_t>(count(real_in || real_out ? half() : n) * batches) * (f64 ? 16 : 8);
}

Plan Plan::placed(bool in_place) const {
  Plan plan = *this;
  if (!standard) return plan;
  const auto without_gaps = [&](std::vector<int64_t> shape, bool real) {
    if (real && in_place) shape.back() = 2 * half().back();
    return Lattice{shape, 1, count(shape)};
  };
  plan.in = without_gaps(shape_in(), real_in);
  plan.out = without_gaps(shape_out(), real_out);
  return plan;
}

cuda::LibraryOperand operand(const char* name, const void* at, bool written, const Lattice& lattice,
                             const std::vector<int64_t>& shape, int64_t batches, size_t size) {
  std::vector<cuda::LibraryRange> ranges;
  const bool solid = lattice.stride == 1;
  for (int64_t b = 0; b < batches; ++b)
    each_line(lattice, shape, [&](int64_t place, int64_t) {
      for (int64_t k = 0; k < (solid ? 1 : shape.back()); ++k) {
        const auto begin = reinterpret_cast<uintptr_t>(at) +
                           static_cast<uintptr_t>(b * lattice.distance + place + k * lattice.stride) * size;
        ranges.push_back({begin, begin + size * static_cast<size_t>(solid ? shape.back() : 1)});
      }
    });
  return cuda::library_operand(name, at, written, size, std::move(ranges));
}

void run(const Plan& plan, const void* in, void* out, bool inverse) {
  for (int64_t b = 0; b < plan.batches; ++b)
    plan.f64 ? run_batch<double>(plan, in, out, inverse, b) : run_batch<float>(plan, in, out, inverse, b);
}

}  // namespace emulator::fft
