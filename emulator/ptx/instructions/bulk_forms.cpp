// SPDX-License-Identifier: Apache-2.0
// The spellings of bulk copies: cp.async.bulk, cp.reduce.async.bulk, with and without .tensor.
#include "emulator/ptx/instructions/bulk_copy.h"

namespace emulator::ptx {

namespace {

const Instruction* nothing(Warp&, const Instruction* i) { return i + 1; }

/// Prefetches change no result.
void lower_prefetch(Lowering& l) { l.emit(nothing); }

void lower_commit(Lowering& l) { l.emit(commit_bulk); }

void lower_wait(Lowering& l) {
  for (const std::string_view mod : l.mods())
    if (mod != "async" && mod != "bulk" && mod != "wait_group" && mod != "read") l.unknown(cat('.', mod));
  if (l.operand(0).kind != Operand::Kind::integer || l.operand(0).value < 0) l.unknown();
  Instruction& wait = l.emit(wait_bulk);
  wait.imm = static_cast<uint64_t>(l.operand(0).value);
  wait.aux = l.has("read");
}

/// The modifiers all bulk copies share; what comes first of the spaces is the destination.
struct Spelling {
  std::string_view to, from;
  bool barrier = false, groups = false, multicast = false, policy = false;
  Type type = Type::none;
};

Spelling read_spelling(Lowering& l, BulkForm& form) {
  Spelling s;
  for (const std::string_view mod : l.mods()) {
    if (mod == "global" || mod == "shared::cta" || mod == "shared::cluster")
      (s.to.empty() ? s.to : s.from) = mod;
    else if (mod == "mbarrier::complete_tx::bytes")
      s.barrier = true;
    else if (mod == "bulk_group")
      s.groups = true;
    else if (mod == "multicast::cluster")
      s.multicast = true;
    else if (mod == "L2::cache_hint")
      s.policy = true;
    else if (mod.size() == 2 && mod[1] == 'd' && mod[0] >= '1' && mod[0] <= '5')
      form.rank = mod[0] - '0';
    else if (mod == "im2col" || mod == "im2col_no_offs")
      form.im2col = true;
    else if (reduction_of(mod) != Reduction::none)
      form.op = reduction_of(mod);
    else if (type_of(mod) != Type::none)
      s.type = type_of(mod);
    else if (mod != "async" && mod != "bulk" && mod != "tensor" && mod != "reduce" && mod != "tile" && mod != "noftz" &&
             mod != "cta_group::1")
      l.unknown(cat('.', mod));
  }
  const bool to_shared = s.to == "shared::cluster" || s.to == "shared::cta";
  const bool from_shared = s.from == "shared::cta";
  if (s.to == "global" && from_shared)
    form.way = BulkForm::Way::shared_to_global;
  else if (to_shared && s.from == "global")
    form.way = BulkForm::Way::global_to_shared;
  else if (s.to == "shared::cluster" && from_shared)
    form.way = BulkForm::Way::shared_to_shared;
  else
    l.unknown("from where to where");
  const bool stores = form.way == BulkForm::Way::shared_to_global;
  if (stores != s.groups || stores == s.barrier) l.unknown("how it reports its end");
  if (s.multicast && form.way != BulkForm::Way::global_to_shared) l.unknown(".multicast");
  if ((l.op() == "cp" && l.has("reduce")) != (form.op != Reduction::none)) l.unknown("the operation");
  return s;
}

TensorType tensor_type(Lowering& l, Type type, Reduction op) {
  switch (type) {
    case Type::u32:
    case Type::b32:
      return TensorType::u32;
    case Type::s32:
      return TensorType::s32;
    case Type::u64:
    case Type::b64:
      return TensorType::u64;
    case Type::s64:
      return TensorType::s64;
    case Type::f16:
      return TensorType::f16;
    case Type::bf16:
      return TensorType::bf16;
    case Type::f32:
      return TensorType::f32;
    case Type::f64:
      return TensorType::f64;
    default:
      l.unknown(op == Reduction::none ? "" : "the type");
  }
}

void lower_plain(Lowering& l) {
  BulkForm form;
  const Spelling s = read_spelling(l, form);
  const bool stores = form.way == BulkForm::Way::shared_to_global;
  form.name = form.op == Reduction::none ? "cp.async.bulk" : "cp.reduce.async.bulk";
  if (form.op != Reduction::none) {
    form.type = tensor_type(l, s.type, form.op);
    if (!can_reduce(form.type, form.op)) l.unknown("this type is not reduced so");
  } else if (s.type != Type::none) {
    l.unknown();
  }
  form.to = read_addresses(l, l.operand(0));
  form.from = read_addresses(l, l.operand(1));
  form.size = l.source(l.operand(2), Type::u32);
  size_t at = 3;
  if (!stores) form.barrier = read_addresses(l, l.operand(at++));
  if (s.multicast) form.blocks = l.source(l.operand(at++), Type::u16);
  if (at + s.policy != l.operands()) l.unknown("the number of operands");
  l.emit(issue_bulk).more = l.keep(form);
}

void lower_tensor(Lowering& l) {
  BulkForm form;
  form.tensor = true;
  const Spelling s = read_spelling(l, form);
  const bool stores = form.way == BulkForm::Way::shared_to_global;
  if (form.way == BulkForm::Way::shared_to_shared || form.rank == 0 || (form.im2col && form.rank < 3)) l.unknown();
  form.name = form.op != Reduction::none ? "cp.reduce.async.bulk.tensor" : "cp.async.bulk.tensor";
  const Operand& tensor = l.operand(stores ? 0 : 1);
  const Operand& shared = l.operand(stores ? 1 : 0);
  if (tensor.kind != Operand::Kind::address || tensor.parts.size() != 2) l.unknown("the tensor's operand");
  const Operand& coordinates = tensor.parts[1];
  const bool many = coordinates.kind == Operand::Kind::vector;
  if ((many ? coordinates.parts.size() : 1) != static_cast<size_t>(form.rank)) l.unknown("the number of coordinates");
  for (size_t d = 0; d < static_cast<size_t>(form.rank); ++d)
    form.at[d] = l.source(many ? coordinates.parts[d] : coordinates, Type::s32);
  (stores ? form.to : form.from) = read_addresses(l, tensor);
  (stores ? form.from : form.to) = read_addresses(l, shared);
  size_t at = 2;
  form.offset.fill(kNoRef);
  if (!stores) {
    form.barrier = read_addresses(l, l.operand(at++));
    if (form.im2col) {
      const Operand& offsets = l.operand(at++);
      const bool several = offsets.kind == Operand::Kind::vector;
      const size_t count = several ? offsets.parts.size() : 1;
      if (count != static_cast<size_t>(form.rank) - 2) l.unknown("the number of offsets");
      for (size_t d = 0; d < count; ++d) form.offset[d] = l.source(several ? offsets.parts[d] : offsets, Type::u16);
    }
    if (s.multicast) form.blocks = l.source(l.operand(at++), Type::u16);
  }
  if (at + s.policy != l.operands()) l.unknown("the number of operands");
  l.emit(issue_bulk).more = l.keep(form);
}

}  // namespace

Family bulk_family() {
  static constexpr Opcode kOpcodes[] = {
      {"cp.async.bulk", lower_plain, Roles::all_read},
      {"cp.reduce.async.bulk", lower_plain, Roles::all_read},
      {"cp.async.bulk.tensor", lower_tensor, Roles::all_read},
      {"cp.reduce.async.bulk.tensor", lower_tensor, Roles::all_read},
      {"cp.async.bulk.prefetch", lower_prefetch, Roles::all_read},
      {"cp.async.bulk.commit_group", lower_commit, Roles::all_read},
      {"cp.async.bulk.wait_group", lower_wait, Roles::all_read},
      {"tensormap.replace", lower_tensormap_replace, Roles::all_read},
      {"tensormap.cp_fenceproxy", lower_tensormap_copy, Roles::all_read},
      {"fence.proxy.tensormap::generic", lower_tensormap_fence, Roles::all_read},
  };
  return {kOpcodes, std::size(kOpcodes)};
}

}  // namespace emulator::ptx
