// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "emulator/ptx/matrix/matrix_layout.h"
#include "emulator/ptx/matrix/matrix_numbers.h"

// Operands between a warp's registers and numbers in order.

namespace emulator::ptx::matrix {

constexpr int kLine = 8;  // lines of a block
constexpr int kBlock = kLine * kLine;
constexpr int kMostElements = 1024;  ///< per matrix
constexpr int kMostSums = 4;         ///< blocks
constexpr int kMostDepth = 128;

/// Elements of one E::Bits.
template <class E>
constexpr int kPacked = std::is_same_v<E, S4> || std::is_same_v<E, U4> ? 2 : 1;
/// Elements of a line's part of depth.
template <class E>
constexpr int kPart = sizeof(typename E::Bits) == 8 ? 4 : 16 * kPacked<E> / static_cast<int>(sizeof(typename E::Bits));

/// a as it lies: part by part of depth, in each line by line.
template <class E>
void unpack(const Warp& w, const Registers& registers, int blocks, int block, int parts, typename E::Number* to) {
  constexpr int kElements = kLine * kPart<E>;
  for (int part = 0; part < parts; ++part) {
    const auto* const from = w.in<typename E::Bits>(registers[static_cast<size_t>(block + part * blocks)]);
    typename E::Number* const own = to + part * kElements;
    if constexpr (kPacked<E> == 2) {
      for (int e = 0; e < kElements / 2; ++e) {
        own[2 * e] = E::number(from[e] & 15u);
        own[2 * e + 1] = E::number(from[e] >> 4);
      }
    } else {
      for (int e = 0; e < kElements; ++e) own[e] = E::number(from[e]);
    }
  }
}

/// b turned around: for each depth its 8 columns.
template <class E>
void unpack_turned(const Warp& w, const Registers& registers, int blocks, int block, int parts,
                   typename E::Number* to) {
  alignas(64) typename E::Number lines[kLine * kMostDepth];
  unpack<E>(w, registers, blocks, block, parts, lines);
  for (int part = 0; part < parts; ++part)
    for (int k = 0; k < kPart<E>; ++k)
      for (int line = 0; line < kLine; ++line)
        to[(part * kPart<E> + k) * kLine + line] = lines[(part * kLine + line) * kPart<E> + k];
}

template <class N>
void load_sums(const Warp& w, const Multiply& m, int block, N* to) {
  const size_t r = static_cast<size_t>(block);
  if (m.c_type == Type::f16) {
    const uint16_t* const from = w.in<uint16_t>(m.c[r]);
    for (int e = 0; e < kBlock; ++e) to[e] = static_cast<N>(F16::number(from[e]));
    return;
  }
  const N *const even = w.in<N>(m.c[2 * r]), *const odd = w.in<N>(m.c[2 * r + 1]);
  for (int lane = 0; lane < kLanes; ++lane) {
    to[2 * lane] = even[lane];
    to[2 * lane + 1] = odd[lane];
  }
}

template <class N>
void store_sums(const Warp& w, const Multiply& m, int block, const N* from) {
  const size_t r = static_cast<size_t>(block);
  if (m.d_type == Type::f16) {
    if (m.d[r] == kNoRef) return;
    uint16_t* const to = w.out<uint16_t>(m.d[r]);
    for (int e = 0; e < kBlock; ++e) to[e] = F16::bits(static_cast<float>(from[e]));
    return;
  }
  for (size_t odd = 0; odd < 2; ++odd) {
    const Ref ref = m.d[2 * r + odd];
    if (ref == kNoRef) continue;
    N* const to = w.out<N>(ref);
    for (size_t lane = 0; lane < kLanes; ++lane) to[lane] = from[2 * lane + odd];
  }
}

/// The result of `make` for the elements of a and b that both mma and mma.sp have; nullptr for others.
template <class Make>
Handler for_elements(Type a, Type b, const Make& make) {
  if (a == b) switch (a) {
      case Type::f16:
        return make.template operator()<F16, F16>();
      case Type::bf16:
        return make.template operator()<Bf16, Bf16>();
      case Type::tf32:
        return make.template operator()<Tf32, Tf32>();
      case Type::e4m3:
        return make.template operator()<E4m3, E4m3>();
      case Type::e5m2:
        return make.template operator()<E5m2, E5m2>();
      case Type::s8:
        return make.template operator()<S8, S8>();
      case Type::u8:
        return make.template operator()<U8, U8>();
      case Type::s4:
        return make.template operator()<S4, S4>();
      case Type::u4:
        return make.template operator()<U4, U4>();
      default:
        return nullptr;
    }
  if (a == Type::e4m3 && b == Type::e5m2) return make.template operator()<E4m3, E5m2>();
  if (a == Type::e5m2 && b == Type::e4m3) return make.template operator()<E5m2, E4m3>();
  if (a == Type::s8 && b == Type::u8) return make.template operator()<S8, U8>();
  if (a == Type::u8 && b == Type::s8) return make.template operator()<U8, S8>();
  if (a == Type::s4 && b == Type::u4) return make.template operator()<S4, U4>();
  if (a == Type::u4 && b == Type::s4) return make.template operator()<U4, S4>();
  return nullptr;
}

}  // namespace emulator::ptx::matrix
