// SPDX-License-Identifier: Apache-2.0
// ld, st, ldu and hints about caches.
#include <algorithm>
#include <atomic>

#include "emulator/ptx/check/standstill.h"
#include "emulator/ptx/instructions/memory_transfer.h"

namespace emulator::ptx {

namespace {

uint64_t low_bits(uint64_t value, int bytes) { return bytes >= 8 ? value : value & ((uint64_t{1} << (bytes * 8)) - 1); }

int64_t sign_extended(uint64_t value, int bytes) {
  const int unused = 64 - bytes * 8;
  return static_cast<int64_t>(value << unused) >> unused;
}

/// One access each, so that concurrent accesses of other OS threads are never torn.
uint64_t read_element(const char* at, int bytes) {
  switch (bytes) {
    case 1:
      return __atomic_load_n(reinterpret_cast<const uint8_t*>(at), __ATOMIC_RELAXED);
    case 2:
      return __atomic_load_n(reinterpret_cast<const uint16_t*>(at), __ATOMIC_RELAXED);
    case 4:
      return __atomic_load_n(reinterpret_cast<const uint32_t*>(at), __ATOMIC_RELAXED);
    default:
      return __atomic_load_n(reinterpret_cast<const uint64_t*>(at), __ATOMIC_RELAXED);
  }
}
void write_element(char* at, int bytes, uint64_t value) {
  switch (bytes) {
    case 1:
      return __atomic_store_n(reinterpret_cast<uint8_t*>(at), static_cast<uint8_t>(value), __ATOMIC_RELAXED);
    case 2:
      return __atomic_store_n(reinterpret_cast<uint16_t*>(at), static_cast<uint16_t>(value), __ATOMIC_RELAXED);
    case 4:
      return __atomic_store_n(reinterpret_cast<uint32_t*>(at), static_cast<uint32_t>(value), __ATOMIC_RELAXED);
    default:
      return __atomic_store_n(reinterpret_cast<uint64_t*>(at), value, __ATOMIC_RELAXED);
  }
}

/// A GPU accesses elements of up to 16 bytes at once. Decoupled look-back depends on it.
constexpr int kMostTogether = 16;
typedef uint64_t Together [[gnu::vector_size(kMostTogether), gnu::may_alias]];
void read_together(char* to, const char* at, int bytes) {
  if (bytes == kMostTogether) {
    const Together all = *reinterpret_cast<const volatile Together*>(at);
    std::memcpy(to, &all, sizeof(all));
  } else {
    const uint64_t all = read_element(at, bytes);
    std::memcpy(to, &all, sizeof(all));
  }
}
void write_together(char* at, int bytes, const char* from) {
  if (bytes == kMostTogether) {
    Together all;
    std::memcpy(&all, from, sizeof(all));
    *reinterpret_cast<volatile Together*>(at) = all;
  } else {
    uint64_t all = 0;
    std::memcpy(&all, from, sizeof(all));
    write_element(at, bytes, all);
  }
}

/// ld.param of a kernel's parameter: one value for all lanes.
template <class T, class R>
const Instruction* load_parameter(Warp& w, const Instruction* i) {
  const R value = widened<T, R>(read<T>(w.block->grid->parameters + i->imm));
  R* const d = w.out<R>(i->d);
  if (const uint32_t lanes = w.lanes(i); lanes == kAllLanes)
    for (int lane = 0; lane < kLanes; ++lane) d[lane] = value;
  else
    for (uint32_t left = lanes; left != 0; left &= left - 1) d[std::countr_zero(left)] = value;
  return i + 1;
}

Handler parameter_loader(int bytes, int lane_bytes, bool is_signed) {
  if (lane_bytes == 4) {
    switch (bytes) {
      case 1:
        return is_signed ? load_parameter<int8_t, uint32_t> : load_parameter<uint8_t, uint32_t>;
      case 2:
        return is_signed ? load_parameter<int16_t, uint32_t> : load_parameter<uint16_t, uint32_t>;
      case 4:
        return load_parameter<uint32_t, uint32_t>;
      default:
        return nullptr;
    }
  }
  if (lane_bytes == 8) {
    switch (bytes) {
      case 1:
        return is_signed ? load_parameter<int8_t, uint64_t> : load_parameter<uint8_t, uint64_t>;
      case 2:
        return is_signed ? load_parameter<int16_t, uint64_t> : load_parameter<uint16_t, uint64_t>;
      case 4:
        return is_signed ? load_parameter<int32_t, uint64_t> : load_parameter<uint32_t, uint64_t>;
      case 8:
        return load_parameter<uint64_t, uint64_t>;
      default:
        return nullptr;
    }
  }
  return bytes == 16 ? load_parameter<Wide, Wide> : nullptr;
}

/// The transfers that have quick paths.
struct Kind {
  int bytes, lane_bytes, count;
  bool is_signed;
};

template <Reach S, class Base>
Handler quick_load(const Kind& k) {
  if (k.count == 1 && k.lane_bytes == 4) switch (k.bytes) {
      case 1:
        return k.is_signed ? load<S, Base, int8_t, uint32_t, 1> : load<S, Base, uint8_t, uint32_t, 1>;
      case 2:
        return k.is_signed ? load<S, Base, int16_t, uint32_t, 1> : load<S, Base, uint16_t, uint32_t, 1>;
      case 4:
        return load<S, Base, uint32_t, uint32_t, 1>;
      default:
        return nullptr;
    }
  if (k.count == 1 && k.lane_bytes == 8) switch (k.bytes) {
      case 1:
        return k.is_signed ? nullptr : load<S, Base, uint8_t, uint64_t, 1>;
      case 4:
        return k.is_signed ? load<S, Base, int32_t, uint64_t, 1> : load<S, Base, uint32_t, uint64_t, 1>;
      case 8:
        return load<S, Base, uint64_t, uint64_t, 1>;
      default:
        return nullptr;
    }
  if (k.is_signed) return nullptr;
  if (k.lane_bytes == 4 && k.bytes == 4)
    return k.count == 2 ? load<S, Base, uint32_t, uint32_t, 2>
                        : (k.count == 4 ? load<S, Base, uint32_t, uint32_t, 4> : nullptr);
  if (k.lane_bytes == 4 && k.bytes == 2)
    return k.count == 2 ? load<S, Base, uint16_t, uint32_t, 2>
                        : (k.count == 4 ? load<S, Base, uint16_t, uint32_t, 4> : nullptr);
  if (k.lane_bytes == 4 && k.bytes == 1 && k.count == 4) return load<S, Base, uint8_t, uint32_t, 4>;
  if (k.lane_bytes == 8 && k.bytes == 8 && k.count == 2) return load<S, Base, uint64_t, uint64_t, 2>;
  if (k.lane_bytes == 16 && k.bytes == 16 && k.count == 1) return load<S, Base, Wide, Wide, 1>;
  return nullptr;
}

template <Reach S, class Base>
Handler quick_store(const Kind& k) {
  if (k.lane_bytes == 4 && k.count == 1)
    return k.bytes == 1   ? store<S, Base, uint8_t, uint32_t, 1>
           : k.bytes == 2 ? store<S, Base, uint16_t, uint32_t, 1>
           : k.bytes == 4 ? store<S, Base, uint32_t, uint32_t, 1>
                          : nullptr;
  if (k.lane_bytes == 4 && k.bytes == 4)
    return k.count == 2 ? store<S, Base, uint32_t, uint32_t, 2>
                        : (k.count == 4 ? store<S, Base, uint32_t, uint32_t, 4> : nullptr);
  if (k.lane_bytes == 4 && k.bytes == 2)
    return k.count == 2 ? store<S, Base, uint16_t, uint32_t, 2>
                        : (k.count == 4 ? store<S, Base, uint16_t, uint32_t, 4> : nullptr);
  if (k.lane_bytes == 4 && k.bytes == 1 && k.count == 4) return store<S, Base, uint8_t, uint32_t, 4>;
  if (k.lane_bytes == 8 && k.bytes == 8)
    return k.count == 1 ? store<S, Base, uint64_t, uint64_t, 1>
                        : (k.count == 2 ? store<S, Base, uint64_t, uint64_t, 2> : nullptr);
  if (k.lane_bytes == 16 && k.bytes == 16 && k.count == 1) return store<S, Base, Wide, Wide, 1>;
  return nullptr;
}

template <class Pick>
Handler for_space(const AccessForm& form, Pick pick) {
  const bool wide = form.base_bytes == 8;
  switch (form.space) {
    case Space::global:
    case Space::constant:
      return pick.template operator()<Reach::global, uint64_t>();
    case Space::generic:
      return pick.template operator()<Reach::generic, uint64_t>();
    case Space::shared:
      return wide ? pick.template operator()<Reach::shared, uint64_t>()
                  : pick.template operator()<Reach::shared, uint32_t>();
    case Space::local:
      return wide ? pick.template operator()<Reach::local, uint64_t>()
                  : pick.template operator()<Reach::local, uint32_t>();
    case Space::param:
      return wide ? pick.template operator()<Reach::parameter, uint64_t>()
                  : pick.template operator()<Reach::parameter, uint32_t>();
  }
  return nullptr;
}

AccessForm parse(Lowering& l) {
  AccessForm form;
  for (const std::string_view mod : l.mods()) {
    if (take_modifier(mod, form)) continue;
    if (mod == "v2" || mod == "v4" || mod == "v8")
      form.count = static_cast<uint8_t>(mod[1] - '0');
    else if (const Type type = type_of(mod); type != Type::none && form.type == Type::none)
      form.type = type;
    else
      l.unknown(cat("modifier .", mod));
  }
  form.bytes = static_cast<uint8_t>(bytes_of(form.type));
  if (form.bytes == 0 || form.bytes > 16) l.unknown("no type of a value in memory");
  if (form.bytes * form.count > 32) l.unknown("more than 32 bytes");
  return form;
}

bool extends_sign(const AccessForm& form) { return is_signed(form.type) && form.bytes < form.register_bytes[0]; }

/// Registers of one width, and none that is the sink: the quick paths' condition.
bool is_even(const AccessForm& form) {
  for (int e = 0; e < form.count; ++e)
    if (form.registers[e] == kNoRef || form.register_bytes[e] != form.register_bytes[0]) return false;
  return true;
}

int lane_bytes(int register_bytes) { return std::max(4, register_bytes); }

Kind kind_of(const AccessForm& form) {
  return {form.bytes, lane_bytes(form.register_bytes[0]), form.count, extends_sign(form)};
}

/// The parts of a vector, or the operand itself; as many as the form says.
std::vector<const Operand*> elements(Lowering& l, const Operand& operand, int count) {
  std::vector<const Operand*> parts;
  if (operand.kind == Operand::Kind::vector)
    for (const Operand& part : operand.parts) parts.push_back(&part);
  else
    parts.push_back(&operand);
  if (static_cast<int>(parts.size()) != count) l.unknown("the vector has another number of elements");
  return parts;
}

void lower_load(Lowering& l) {
  AccessForm form = parse(l);
  if (form.order == Order::release || form.order == Order::acq_rel || form.order == Order::sc)
    l.unknown("order of a load");
  // CUDA's guide and headers begin a loop of atomicCAS with a plain read of the same address.
  if (!form.strong() && l.is_compared_and_swapped(l.operand(1))) form.order = Order::relaxed, form.scope = Scope::sys;
  expect_policy(l, 2);
  const auto parts = elements(l, l.operand(0), form.count);
  for (size_t e = 0; e < parts.size(); ++e) {
    form.registers[e] = l.destination(*parts[e]);
    form.register_bytes[e] =
        static_cast<uint8_t>(parts[e]->kind == Operand::Kind::reg ? l.register_bytes(*parts[e]) : 0);
    if (form.registers[e] == kNoRef) continue;
    if (form.register_bytes[e] < form.bytes) l.unknown("the register is narrower than the value");
  }
  if (form.space == Space::param) {
    const Lowering::Address address = l.address(l.operand(1));
    if (address.is_constant && is_even(form)) {
      // A signed value in a register of 16 bits is extended to 16: the general path knows.
      const Kind kind = kind_of(form);
      const Handler run = parameter_loader(kind.bytes, kind.lane_bytes, kind.is_signed);
      if (run && !(kind.is_signed && form.register_bytes[0] < 4)) {
        const uint64_t offset = address.base_value + static_cast<uint64_t>(address.offset);
        const uint64_t end = l.kernel().parameter_bytes, bytes = uint64_t{form.bytes} * form.count;
        if (offset > end || bytes > end - offset) l.unknown("beyond the kernel's parameters");
        for (int e = 0; e < form.count; ++e)
          l.emit(run, form.registers[e]).imm = offset + static_cast<uint64_t>(e) * form.bytes;
        return;
      }
    }
  }
  take_address(l, l.operand(1), form);
  Handler run = nullptr;
  if (is_even(form) && !form.strong() && !(extends_sign(form) && form.register_bytes[0] < 4))
    run = for_space(form, [&]<Reach S, class Base>() { return quick_load<S, Base>(kind_of(form)); });
  Instruction& i = l.emit(run ? run : load_any, form.registers[0], form.base);
  i.imm = static_cast<uint64_t>(form.offset);
  i.more = l.keep(form);
}

void lower_store(Lowering& l) {
  AccessForm form = parse(l);
  if (form.order == Order::acquire || form.order == Order::acq_rel || form.order == Order::sc)
    l.unknown("order of a store");
  if (form.space == Space::constant) l.unknown("constant memory is never written");
  expect_policy(l, 2);
  const auto parts = elements(l, l.operand(1), form.count);
  for (size_t e = 0; e < parts.size(); ++e) {
    const int declared = parts[e]->kind == Operand::Kind::reg ? l.register_bytes(*parts[e]) : form.bytes;
    if (declared < form.bytes) l.unknown("the register is narrower than the value");
    form.register_bytes[e] = static_cast<uint8_t>(declared);
    form.registers[e] = l.source(*parts[e], parts[e]->kind == Operand::Kind::reg ? Type::none : form.type);
  }
  take_address(l, l.operand(0), form);
  if (form.space == Space::param) l.unknown("parameters of a kernel are never written");
  Handler run = nullptr;
  if (is_even(form) && !form.strong())
    run = for_space(form, [&]<Reach S, class Base>() { return quick_store<S, Base>(kind_of(form)); });
  Instruction& i = l.emit(run ? run : store_any, kNoRef, form.base, form.registers[0]);
  i.imm = static_cast<uint64_t>(form.offset);
  i.more = l.keep(form);
}

/// discard may turn its bytes into anything: they are poisoned.
const Instruction* discard(Warp& w, const Instruction* i) {
  const uint32_t lanes = w.lanes(i);
  AccessForm form = *static_cast<const AccessForm*>(i->more);
  form.bytes = 128;
  char* at[kLanes];
  locate(w, i, form, lanes, true, false, at);
  for (uint32_t left = lanes; left != 0; left &= left - 1) std::memset(at[std::countr_zero(left)], 0xff, 128);
  return i + 1;
}

bool is_hint(std::string_view mod) {
  static constexpr std::string_view kHints[] = {
      "L1", "L2", "tensormap", "L2::evict_normal", "L2::evict_last", "L1::evict_last", "L1::evict_normal"};
  return std::ranges::find(kHints, mod) != std::end(kHints);
}

void lower_discard(Lowering& l) {
  AccessForm form;
  for (const std::string_view mod : l.mods())
    if (mod != "L2" && !(mod == "global" && take_modifier(mod, form))) l.unknown(cat("modifier .", mod));
  if (l.operands() != 2 || l.operand(1).value != 128) l.unknown("the size is 128");
  take_address(l, l.operand(0), form);
  l.emit(discard, kNoRef, form.base).more = l.keep(form);
}

/// prefetch, prefetchu, applypriority: no effect that a program can see. Their addresses may be wrong.
void lower_hint(Lowering& l) {
  AccessForm form;
  for (const std::string_view mod : l.mods())
    if (!is_hint(mod) && !take_modifier(mod, form)) l.unknown(cat("modifier .", mod));
}

/// createpolicy gives a value that only cache hints look at.
const Instruction* create_policy(Warp& w, const Instruction* i) {
  uint64_t* const d = w.out<uint64_t>(i->d);
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) d[std::countr_zero(left)] = 0;
  return i + 1;
}
void lower_policy(Lowering& l) {
  if (!l.has("fractional") && !l.has("range") && !l.has("cvt")) l.unknown();
  const Ref d = l.destination(l.operand(0));
  if (d != kNoRef) l.emit(create_policy, d);
}

constexpr Opcode kOpcodes[] = {
    {"ld", lower_load},
    {"ldu", lower_load},
    {"st", lower_store, Roles::all_read},
    {"prefetch", lower_hint, Roles::all_read},
    {"prefetchu", lower_hint, Roles::all_read},
    {"applypriority", lower_hint, Roles::all_read},
    {"discard", lower_discard, Roles::all_read},
    {"createpolicy", lower_policy},
};

}  // namespace

const Instruction* load_any(Warp& w, const Instruction* i) {
  const AccessForm& form = *static_cast<const AccessForm*>(i->more);
  const uint32_t lanes = w.lanes(i);
  char* at[kLanes];
  locate_quickly(w, i, form, lanes, false, false, at);
  const int bytes = form.count * form.bytes;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    alignas(kMostTogether) char together[kMostTogether];
    if (bytes <= kMostTogether) read_together(together, at[lane], bytes);
    for (int e = 0; e < form.count; ++e) {
      const Ref d = form.registers[e];
      if (d == kNoRef) continue;
      const char* const from = (bytes <= kMostTogether ? together : at[lane]) + e * form.bytes;
      if (form.bytes == 16) {
        w.out<Wide>(d)[lane] = {read_element(from, 8), read_element(from + 8, 8)};
        continue;
      }
      const int declared = form.register_bytes[e];
      uint64_t value = read_element(from, form.bytes);
      if (is_signed(form.type) && form.bytes < declared)
        value = low_bits(static_cast<uint64_t>(sign_extended(value, form.bytes)), declared);
      if (declared <= 4)
        w.out<uint32_t>(d)[lane] = static_cast<uint32_t>(value);
      else if (declared == 8)
        w.out<uint64_t>(d)[lane] = value;
      else
        w.out<Wide>(d)[lane] = {value, 0};
    }
  }
  if (form.strong()) {
    w.spins = true;
    if (w.block->grid->suspected) note_spin(w, lanes, at);
    if (form.order != Order::relaxed) std::atomic_thread_fence(std::memory_order_acquire);
  }
  return i + 1;
}

const Instruction* store_any(Warp& w, const Instruction* i) {
  const AccessForm& form = *static_cast<const AccessForm*>(i->more);
  const uint32_t lanes = w.lanes(i);
  char* at[kLanes];
  locate_quickly(w, i, form, lanes, true, false, at);
  const char* const local_end = w.local + size_t{w.local_bytes} * kLanes;
  for (uint32_t left = lanes; left != 0 && !w.changed; left &= left - 1)
    w.changed = at[std::countr_zero(left)] < w.local || at[std::countr_zero(left)] >= local_end;
  if (form.strong() && form.order != Order::relaxed) std::atomic_thread_fence(std::memory_order_release);
  const int bytes = form.count * form.bytes;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    alignas(kMostTogether) char together[kMostTogether];
    for (int e = 0; e < form.count; ++e) {
      char* const to = (bytes <= kMostTogether ? together : at[lane]) + e * form.bytes;
      const Ref r = form.registers[e];
      const int declared = form.register_bytes[e];
      if (form.bytes == 16) {
        const Wide value = w.in<Wide>(r)[lane];
        write_element(to, 8, value.low);
        write_element(to + 8, 8, value.high);
      } else if (declared <= 4) {
        write_element(to, form.bytes, w.in<uint32_t>(r)[lane]);
      } else {
        write_element(to, form.bytes, declared == 8 ? w.in<uint64_t>(r)[lane] : w.in<Wide>(r)[lane].low);
      }
    }
    if (bytes <= kMostTogether) write_together(at[lane], bytes, together);
  }
  return i + 1;
}

Family memory_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
