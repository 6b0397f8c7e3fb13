// SPDX-License-Identifier: Apache-2.0
// mma.sp of every type, and mma of 4-bit integers, against a product on the host. The host places elements and metadata
// by the formulas of PTX ISA 9.0 for each thread, not by the emulator's. Numbers are small integers, so all sums are
// exact. An argument plants metadata that say nothing: one place twice, or falling ones where they must rise.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "promises.h"

namespace {

// One warp: registers as they lie, lane by lane.
#define OPERANDS_F \
  "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) : SOURCES, "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]), "r"(e)
#define OPERANDS_S \
  "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3]) : SOURCES, "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(e)
#define SMALL(form, selector, ...) \
  asm volatile("mma.sp" form " {%0,%1,%2,%3}, {%4,%5}, {%6,%7}, {%8,%9,%10,%11}, %12, " #selector ";" : __VA_ARGS__)
#define LARGE(form, selector, ...)                                                                                    \
  asm volatile("mma.sp" form " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%10,%11}, {%12,%13,%14,%15}, %16, " #selector ";" \
               : __VA_ARGS__)

template <class Sum>
struct Fragments {
  const uint32_t *a, *b, *e;
  const Sum* c;
  Sum* d;
};

#define KERNEL(name, Sum, Size, operands, form, selector)                                        \
  __global__ void name(const Fragments<Sum> f) {                                                 \
    const uint32_t *a = f.a + threadIdx.x * 4, *b = f.b + threadIdx.x * 4, e = f.e[threadIdx.x]; \
    const Sum* c = f.c + threadIdx.x * 4;                                                        \
    Sum d[4];                                                                                    \
    Size(form, selector, operands);                                                              \
    for (int i = 0; i < 4; ++i) f.d[threadIdx.x * 4 + i] = d[i];                                 \
  }
#define SOURCES "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(b[1])
#define F16_16 ".sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
KERNEL(f16_16_0, float, SMALL, OPERANDS_F, F16_16, 0)
KERNEL(f16_16_1, float, SMALL, OPERANDS_F, F16_16, 1)
KERNEL(f16_16_2, float, SMALL, OPERANDS_F, F16_16, 2)
KERNEL(f16_16_3, float, SMALL, OPERANDS_F, F16_16, 3)
KERNEL(bf16_16_1, float, SMALL, OPERANDS_F, ".sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 1)
KERNEL(tf32_8_0, float, SMALL, OPERANDS_F, ".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 0)
KERNEL(tf32_8_3, float, SMALL, OPERANDS_F, ".sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 3)
KERNEL(s8_32_0, int, SMALL, OPERANDS_S, ".sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 0)
KERNEL(s8_32_1, int, SMALL, OPERANDS_S, ".sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32", 1)
KERNEL(s4_64_1, int, SMALL, OPERANDS_S, ".sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", 1)
KERNEL(ordered_f16_16_2, float, SMALL, OPERANDS_F, "::ordered_metadata" F16_16, 2)
#undef SOURCES
#define SOURCES "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3])
KERNEL(f16_32_0, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 0)
KERNEL(f16_32_1, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 1)
KERNEL(bf16_32_1, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32", 1)
KERNEL(tf32_16_0, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", 0)
KERNEL(tf32_16_1, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32", 1)
KERNEL(s8_64, int, LARGE, OPERANDS_S, ".sync.aligned.m16n8k64.row.col.s32.s8.s8.s32", 0)
KERNEL(u8_s8_64, int, LARGE, OPERANDS_S, ".sync.aligned.m16n8k64.row.col.s32.u8.s8.s32", 0)
KERNEL(s4_128, int, LARGE, OPERANDS_S, ".sync.aligned.m16n8k128.row.col.s32.s4.s4.s32", 0)
KERNEL(u4_s4_128, int, LARGE, OPERANDS_S, ".sync.aligned.m16n8k128.row.col.satfinite.s32.u4.s4.s32", 0)
#if __CUDA_ARCH__ >= 890
KERNEL(e4m3_64, float, LARGE, OPERANDS_F, ".sync.aligned.m16n8k64.row.col.f32.e4m3.e4m3.f32", 0)
#else
__global__ void e4m3_64(const Fragments<float>) {}
#endif

/// Dense: four registers of a, two of b.
__global__ void dense_s4_64(const Fragments<int> f) {
  const uint32_t *a = f.a + threadIdx.x * 4, *b = f.b + threadIdx.x * 4;
  const int* c = f.c + threadIdx.x * 4;
  int* d = f.d + threadIdx.x * 4;
  asm volatile(
      "mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"
      : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}
__global__ void dense_u4_s4_32(const Fragments<int> f) {
  const uint32_t *a = f.a + threadIdx.x * 4, *b = f.b + threadIdx.x * 4;
  const int* c = f.c + threadIdx.x * 4;
  int* d = f.d + threadIdx.x * 4;
  asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.u4.s4.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
               : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(b[0]), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
}

enum class Element { f16, bf16, tf32, s8, u8, e4m3, s4, u4 };
int bits_of(Element element) {
  if (element == Element::s4 || element == Element::u4) return 4;
  return element == Element::tf32 ? 32 : element == Element::f16 || element == Element::bf16 ? 16 : 8;
}
uint32_t encoded(Element element, int value) {
  const float f = static_cast<float>(value);
  switch (element) {
    case Element::f16:
      return __half_as_ushort(__float2half(f));
    case Element::bf16:
      return __bfloat16_as_ushort(__float2bfloat16(f));
    case Element::tf32: {
      uint32_t bits;
      std::memcpy(&bits, &f, sizeof bits);
      return bits;
    }
    case Element::e4m3:
      return __nv_cvt_float_to_fp8(f, __NV_SATFINITE, __NV_E4M3);
    case Element::s4:
    case Element::u4:
      return static_cast<uint32_t>(value) & 15u;
    default:
      return static_cast<uint8_t>(value);
  }
}

/// Registers of 32 lanes, four of each.
struct Packed {
  std::vector<uint32_t> words = std::vector<uint32_t>(128);
  void put(int lane, int reg, int part, int bits, uint32_t value) {
    words[static_cast<size_t>(lane * 4 + reg)] |= value << (part * bits);
  }
};

/// `nonsense`: 1 says one place twice, 2 lets places fall. `dense`: all elements are there.
template <class Sum>
bool multiplies(void (*kernel)(Fragments<Sum>), Element ea, Element eb, int depth, int selector, int nonsense = 0,
                bool dense_a = false) {
  std::mt19937 random(static_cast<unsigned>(depth * 16 + selector));
  const auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  const int bits = bits_of(ea), per = 32 / bits;
  Packed a, b;
  std::vector<uint32_t> metadata(32);
  // Threads whose metadata do not count have any.
  for (uint32_t& word : metadata) word = static_cast<uint32_t>(random());
  std::vector<int> dense(16 * static_cast<size_t>(depth)), right(8 * static_cast<size_t>(depth));
  const int lanes = bits == 32 ? depth / 8 : bits == 4 ? depth / 32 : depth / 16;
  const int stored = dense_a ? depth : depth / 2, unit = bits == 4 ? 2 : 1;  // 4-bit elements have places in pairs
  const auto number = [&](Element e) {
    return e == Element::u8 || e == Element::u4 ? pick(0, 15) : e == Element::s4 ? pick(-8, 7) : pick(-8, 8);
  };
  for (int row = 0; row < 16; ++row) {
    uint64_t said = 0;  // metadata of the row, from its first column
    int places[2] = {0, 0};
    for (int k = 0; k < stored; ++k) {
      if (bits == 32) {
        const int second = pick(0, 1);
        places[0] = 2 * k + second;
        said |= static_cast<uint64_t>(second ? 14 : 4) << (4 * k);
      } else if (!dense_a && k % (2 * unit) == 0) {
        const int first = pick(0, 2), second = pick(first + 1, 3);
        places[0] = 2 * k + first * unit;
        places[1] = 2 * k + second * unit;
        uint64_t four = static_cast<uint64_t>(first | second << 2);
        if (nonsense == 1 && row == 9 && k == 2) four = 5;
        if (nonsense == 2 && row == 9 && k == 2) four = 1;
        said |= four << (2 * k / unit);
      }
      const int column = dense_a ? k : bits == 32 ? places[0] : places[k / unit % 2] + k % unit;
      const int value = number(ea);
      dense[static_cast<size_t>(row * depth + column)] = value;
      // Element k of what is there: a register has `per` of them, four lanes a row, then 8 rows further, then the next.
      const int lane = 4 * (row % 8) + k / per % 4, reg = row / 8 + 2 * (k / (4 * per));
      a.put(lane, reg, k % per, bits, encoded(ea, value));
    }
    // Types of 8 and 4 bits: lane 0 of a group has row g, lane 1 row g + 8, of the first half of the columns; 2 and 3
    // those of the others. Other types: a lane has row g in its lower half and row g + 8 in its upper one.
    for (int lane = 0; lane < lanes && !dense_a; ++lane) {
      uint32_t& word = metadata[static_cast<size_t>(4 * (row % 8) + selector * lanes + lane)];
      if (bits <= 8) {
        if (lane % 2 == row / 8) word = static_cast<uint32_t>(said >> (32 * (lane / 2)));
      } else {
        const uint32_t half = static_cast<uint32_t>(said >> (16 * lane)) & 0xffffu;
        word = row < 8 ? (word & 0xffff0000u) | half : (word & 0xffffu) | half << 16;
      }
    }
  }
  for (int column = 0; column < 8; ++column)
    for (int k = 0; k < depth; ++k) {
      const int value = number(eb);
      right[static_cast<size_t>(column * depth + k)] = value;
      b.put(4 * column + k / per % 4, k / (4 * per), k % per, bits, encoded(eb, value));
    }
  std::vector<Sum> c(128), want(128);
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      const size_t at = static_cast<size_t>((4 * (row % 8) + column / 2) * 4 + column % 2 + 2 * (row / 8));
      int sum = pick(-100, 100);
      c[at] = static_cast<Sum>(sum);
      for (int k = 0; k < depth; ++k)
        sum += dense[static_cast<size_t>(row * depth + k)] * right[static_cast<size_t>(column * depth + k)];
      want[at] = static_cast<Sum>(sum);
    }
  const Array<uint32_t> da(a.words), db(b.words), de(metadata);
  const Array<Sum> dc(c), dd(128);
  kernel<<<1, 32>>>({da.data, db.data, de.data, dc.data, dd.data});
  return dd.get() == want;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "twice") return multiplies(f16_16_2, Element::f16, Element::f16, 16, 2, 1) ? 0 : 1;
  if (what == "falling") return multiplies(ordered_f16_16_2, Element::f16, Element::f16, 16, 2, 2) ? 0 : 1;
  using enum Element;
  return keep_promises({
      {"f16 16",
       [] {
         return multiplies(f16_16_0, f16, f16, 16, 0) && multiplies(f16_16_1, f16, f16, 16, 1) &&
                multiplies(f16_16_2, f16, f16, 16, 2) && multiplies(f16_16_3, f16, f16, 16, 3);
       }},
      {"f16 16 ordered", [] { return multiplies(ordered_f16_16_2, f16, f16, 16, 2); }},
      {"f16 32", [] { return multiplies(f16_32_0, f16, f16, 32, 0) && multiplies(f16_32_1, f16, f16, 32, 1); }},
      {"bf16 16", [] { return multiplies(bf16_16_1, bf16, bf16, 16, 1); }},
      {"bf16 32", [] { return multiplies(bf16_32_1, bf16, bf16, 32, 1); }},
      {"tf32 8", [] { return multiplies(tf32_8_0, tf32, tf32, 8, 0) && multiplies(tf32_8_3, tf32, tf32, 8, 3); }},
      {"tf32 16", [] { return multiplies(tf32_16_0, tf32, tf32, 16, 0) && multiplies(tf32_16_1, tf32, tf32, 16, 1); }},
      {"s8 32", [] { return multiplies(s8_32_0, s8, s8, 32, 0) && multiplies(s8_32_1, s8, s8, 32, 1); }},
      {"s8 64", [] { return multiplies(s8_64, s8, s8, 64, 0); }},
      {"u8 s8 64", [] { return multiplies(u8_s8_64, u8, s8, 64, 0); }},
      {"s4 64", [] { return multiplies(s4_64_1, s4, s4, 64, 1); }},
      {"s4 128", [] { return multiplies(s4_128, s4, s4, 128, 0); }},
      {"u4 s4 128", [] { return multiplies(u4_s4_128, u4, s4, 128, 0); }},
      {"dense s4 64", [] { return multiplies(dense_s4_64, s4, s4, 64, 0, 0, true); }},
      {"dense u4 s4 32", [] { return multiplies(dense_u4_s4_32, u4, s4, 32, 0, 0, true); }},
      {"e4m3 64", [] { return multiplies(e4m3_64, e4m3, e4m3, 64, 0); }, 89},
  });
}
