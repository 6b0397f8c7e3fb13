// SPDX-License-Identifier: Apache-2.0
// Tensor maps that kernels write: tensormap.replace, tensormap.cp_fenceproxy. Bulk copies read maps when they are
// issued, so the fences of the tensor map's proxy have nothing to do.
#include <algorithm>

#include "emulator/machine/tensor_map.h"
#include "emulator/ptx/instructions/bulk_copy.h"

namespace emulator::ptx {

namespace {

constexpr uint32_t kMapBytes = 128, kMapAlignment = 64;

const Instruction* nothing(Warp&, const Instruction* i) { return i + 1; }

struct Replace {
  Addresses address;
  Where where = Where::generic;
  TensorField field{};
  uint32_t number = 0;
  Ref value = kNoRef;
  bool wide = false;
};

char* map_at(Warp& w, const Instruction* i, int lane, Where where, uint64_t address, bool write, const char* what) {
  const bool shared = where == Where::shared || (where == Where::generic && (address & kWindowMask) == kSharedWindow);
  if (shared) return shared_place(w, i, lane, where, address, kMapBytes, kMapAlignment, what).data();
  if (address % kMapAlignment)
    w.fail(i, lane, FaultCode::misaligned_address,
           cat(what, ": address 0x", std::hex, address, " is not a multiple of 64"));
  return resolve_async(w, i->line, what, address, kMapBytes, write);
}

const Instruction* replace(Warp& w, const Instruction* i) {
  const auto& r = *static_cast<const Replace*>(i->more);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    char* const map = map_at(w, i, lane, r.where, r.address.at(w, lane), true, "tensormap.replace");
    TensorBox box;
    std::memcpy(&box, map, sizeof(box));
    if (box.magic != TensorBox::kMagic) {
      // A map may be built from nothing, field by field, on 128 bytes of 0.
      if (std::any_of(map, map + kMapBytes, [](char byte) { return byte != 0; }))
        w.fail(i, lane, FaultCode::launch_failure, "tensormap.replace: there is no tensor map at its address");
      box = {};
      box.magic = TensorBox::kMagic;
    }
    const uint64_t value = r.wide ? w.in<uint64_t>(r.value)[lane] : w.in<uint32_t>(r.value)[lane];
    if (const char* const why = replace_field(box, r.field, r.number, value))
      w.fail(i, lane, FaultCode::launch_failure, cat("tensormap.replace: value ", value, ": ", why));
    std::memcpy(map, &box, sizeof(box));
  }
  return i + 1;
}

struct Copy {
  Addresses to, from;
};

const Instruction* copy_map(Warp& w, const Instruction* i) {
  const auto& c = *static_cast<const Copy*>(i->more);
  for (uint32_t left = w.lanes(i); left; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const char* const from = map_at(w, i, lane, Where::shared, c.from.at(w, lane), false, "tensormap.cp_fenceproxy");
    std::memcpy(map_at(w, i, lane, Where::global, c.to.at(w, lane), true, "tensormap.cp_fenceproxy"), from, kMapBytes);
  }
  return i + 1;
}

}  // namespace

void lower_tensormap_replace(Lowering& l) {
  constexpr std::pair<std::string_view, TensorField> kFields[] = {{"global_address", TensorField::global_address},
                                                                  {"rank", TensorField::rank},
                                                                  {"box_dim", TensorField::box_dim},
                                                                  {"global_dim", TensorField::global_dim},
                                                                  {"global_stride", TensorField::global_stride},
                                                                  {"element_stride", TensorField::element_stride},
                                                                  {"elemtype", TensorField::elemtype},
                                                                  {"interleave_layout", TensorField::interleave_layout},
                                                                  {"swizzle_mode", TensorField::swizzle_mode},
                                                                  {"swizzle_atomicity", TensorField::swizzle_atomicity},
                                                                  {"fill_mode", TensorField::fill_mode}};
  Replace r;
  bool found = false;
  for (const std::string_view mod : l.mods()) {
    const auto* const field = std::ranges::find(kFields, mod, &std::pair<std::string_view, TensorField>::first);
    if (field != std::end(kFields)) {
      r.field = field->second;
      found = true;
    } else if (mod == "b64") {
      r.wide = true;
    } else if (mod != "replace" && mod != "tile" && mod != "global" && mod != "shared::cta" && mod != "b1024" &&
               mod != "b32") {
      l.unknown(cat('.', mod));
    }
  }
  if (!found) l.unknown("the field");
  r.address = read_addresses(l, l.operand(0));
  r.where = read_where(l);
  const bool numbered = l.operands() == 3;
  if (numbered) {
    if (l.operand(1).kind != Operand::Kind::integer) l.unknown("the dimension");
    r.number = static_cast<uint32_t>(l.operand(1).value);
  }
  r.value = l.source(l.operand(numbered ? 2 : 1), r.wide ? Type::b64 : Type::b32);
  l.emit(replace).more = l.keep(r);
}

void lower_tensormap_copy(Lowering& l) {
  const Operand& size = l.operand(2);
  if (size.kind != Operand::Kind::integer || size.value != kMapBytes) l.unknown("the size");
  Copy c;
  c.to = read_addresses(l, l.operand(0));
  c.from = read_addresses(l, l.operand(1));
  l.emit(copy_map).more = l.keep(c);
}

void lower_tensormap_fence(Lowering& l) { l.emit(nothing); }

}  // namespace emulator::ptx
