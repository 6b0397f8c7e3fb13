// SPDX-License-Identifier: Apache-2.0
#include <iterator>

#include "emulator/ptx/parse/ast.h"

namespace emulator::ptx {

namespace {

enum class Number : uint8_t { bits, signed_integer, floating };

struct Entry {
  std::string_view name;
  Type type;
  int bytes;
  Number number = Number::bits;
};

/// PTX ISA 5.2. The order is that of Type, so that a type is an index.
constexpr Entry kTypes[] = {
    {"", Type::none, 0},
    {"pred", Type::pred, 0},
    {"b8", Type::b8, 1},
    {"b16", Type::b16, 2},
    {"b32", Type::b32, 4},
    {"b64", Type::b64, 8},
    {"b128", Type::b128, 16},
    {"u8", Type::u8, 1},
    {"u16", Type::u16, 2},
    {"u32", Type::u32, 4},
    {"u64", Type::u64, 8},
    {"s8", Type::s8, 1, Number::signed_integer},
    {"s16", Type::s16, 2, Number::signed_integer},
    {"s32", Type::s32, 4, Number::signed_integer},
    {"s64", Type::s64, 8, Number::signed_integer},
    {"f16", Type::f16, 2, Number::floating},
    {"bf16", Type::bf16, 2, Number::floating},
    {"f16x2", Type::f16x2, 4, Number::floating},
    {"bf16x2", Type::bf16x2, 4, Number::floating},
    {"tf32", Type::tf32, 4, Number::floating},
    {"f32", Type::f32, 4, Number::floating},
    {"f32x2", Type::f32x2, 8, Number::floating},
    {"f64", Type::f64, 8, Number::floating},
    {"u16x2", Type::u16x2, 4},
    {"s16x2", Type::s16x2, 4, Number::signed_integer},
    {"e4m3", Type::e4m3, 1, Number::floating},
    {"e5m2", Type::e5m2, 1, Number::floating},
    {"e2m3", Type::e2m3, 1, Number::floating},
    {"e3m2", Type::e3m2, 1, Number::floating},
    {"e2m1", Type::e2m1, 1, Number::floating},
    {"ue8m0", Type::ue8m0, 1, Number::floating},
    {"e4m3x2", Type::e4m3x2, 2, Number::floating},
    {"e5m2x2", Type::e5m2x2, 2, Number::floating},
    {"e2m3x2", Type::e2m3x2, 2, Number::floating},
    {"e3m2x2", Type::e3m2x2, 2, Number::floating},
    {"e2m1x2", Type::e2m1x2, 1, Number::floating},
    {"ue8m0x2", Type::ue8m0x2, 2, Number::floating},
    {"b1", Type::b1, 1},
    {"b4", Type::b4, 1},
    {"b6", Type::b6, 1},
    {"s4", Type::s4, 1, Number::signed_integer},
    {"u4", Type::u4, 1},
    {"s2", Type::s2, 1, Number::signed_integer},
    {"u2", Type::u2, 1},
};
static_assert([] {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (static_cast<size_t>(kTypes[i].type) != i) return false;
  return std::size(kTypes) == static_cast<size_t>(Type::u2) + 1;
}());

const Entry& entry(Type type) { return kTypes[static_cast<size_t>(type)]; }

}  // namespace

Type type_of(std::string_view text) {
  if (text.size() < 2 || text.size() > 7) return Type::none;
  for (const Entry& e : kTypes)
    if (e.name == text) return e.type;
  return Type::none;
}

int bytes_of(Type type) { return entry(type).bytes; }
bool is_float(Type type) { return entry(type).number == Number::floating; }
bool is_signed(Type type) { return entry(type).number == Number::signed_integer; }

Type Statement::type(int i) const {
  for (const std::string_view mod : mods) {
    const Type found = type_of(mod);
    if (found != Type::none && i-- == 0) return found;
  }
  return Type::none;
}

}  // namespace emulator::ptx
