// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "emulator/ptx/lower/frames.h"
#include "emulator/ptx/lower/inline.h"

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

/// A part of a .param variable that is always accessed as one: it can be a register.
struct Part {
  int64_t offset;
  int bytes;
  int reg = -1;
};

struct ParameterVariable {
  bool in_registers = true;
  std::vector<Part> parts;
};

bool is_param(std::string_view mod) { return mod == "param" || mod == "param::func" || mod == "param::entry"; }

/// The `.param` of ld.param and st.param, or -1.
int param_modifier(const Statement& s) {
  if (s.op != "ld" && s.op != "st") return -1;
  for (size_t i = 0; i < s.mods.size(); ++i)
    if (is_param(s.mods[i])) return static_cast<int>(i);
  return -1;
}

class Placer {
 public:
  explicit Placer(Function& f) : f_(f), variables_(f.variables.size()) {}

  void run() {
    for (const Statement& s : f_.code) examine(s);
    make_registers();
    rewrite();
  }

 private:
  /// The call variable that an operand names, or nullptr.
  ParameterVariable* variable(const Operand& o) {
    if (o.kind != Kind::symbol || o.reg < 0 || f_.variables[static_cast<size_t>(o.reg)].space != Space::param)
      return nullptr;
    return &variables_[static_cast<size_t>(o.reg)];
  }

  /// The variable that ld.param or st.param accesses, or nullptr.
  ParameterVariable* accessed(const Statement& s) {
    if (param_modifier(s) < 0 || s.operands.size() != 2) return nullptr;
    const Operand& address = s.operands[s.op == "ld" ? 1 : 0];
    return address.kind == Kind::address && address.parts.size() == 1 ? variable(address.parts[0]) : nullptr;
  }

  static const Operand& value(const Statement& s) { return s.operands[s.op == "ld" ? 0 : 1]; }
  static const Operand& address(const Statement& s) { return s.operands[s.op == "ld" ? 1 : 0]; }

  void examine(const Statement& s) {
    if (ParameterVariable* const v = accessed(s)) {
      const int bytes = bytes_of(s.type());
      if (bytes != 4 && bytes != 8 && bytes != 16) return static_cast<void>(v->in_registers = false);
      int64_t offset = address(s).value;
      for_each_element(value(s), [&](const Operand& element) {
        // A register wider than what is moved would be cut or extended.
        if (element.kind == Kind::reg && bytes_of(f_.registers[static_cast<size_t>(element.reg)].type) != bytes)
          v->in_registers = false;
        add(*v, {offset, bytes});
        offset += bytes;
      });
      return;
    }
    if (s.op == "call") return;
    for (const Operand& o : s.operands) forbid(o);
  }

  /// Any other use is one of the variable's address.
  void forbid(const Operand& o) {
    if (ParameterVariable* const v = variable(o)) v->in_registers = false;
    for (const Operand& part : o.parts) forbid(part);
  }

  template <class F>
  static void for_each_element(const Operand& o, F f) {
    if (o.kind != Kind::vector) return f(o);
    for (const Operand& part : o.parts) f(part);
  }

  static void add(ParameterVariable& v, const Part& part) {
    for (const Part& other : v.parts) {
      if (other.offset == part.offset && other.bytes == part.bytes) return;
      if (other.offset < part.offset + part.bytes && part.offset < other.offset + other.bytes) v.in_registers = false;
    }
    v.parts.push_back(part);
  }

  void make_registers() {
    for (size_t i = 0; i < variables_.size(); ++i) {
      if (f_.variables[i].space != Space::param) continue;
      if (!variables_[i].in_registers) continue;
      for (Part& part : variables_[i].parts) {
        part.reg = static_cast<int>(f_.registers.size());
        f_.registers.push_back({f_.variables[i].name, part.bytes == 4   ? Type::b32
                                                      : part.bytes == 8 ? Type::b64
                                                                        : Type::b128});
      }
    }
  }

  static Operand as_register(int reg) {
    Operand o;
    o.kind = Kind::reg;
    o.reg = reg;
    return o;
  }

  void rewrite() {
    std::vector<Statement> code = std::move(f_.code);
    std::vector<int> start(code.size() + 1);
    f_.code.clear();
    f_.code.reserve(code.size());
    for (size_t i = 0; i < code.size(); ++i) {
      start[i] = static_cast<int>(f_.code.size());
      Statement& s = code[i];
      if (s.op == "call") {
        const Operand* const callee = read_call(s).callee;
        const bool launches = callee != nullptr && callee->name.starts_with("__cudaCDP2");
        for (Operand& list : s.operands)
          if (list.kind == Kind::list) rewrite_arguments(list, launches);
      } else if (const ParameterVariable* const v = accessed(s)) {
        if (v->in_registers) {
          emit_moves(s, *v);
          continue;
        }
        s.mods[static_cast<size_t>(param_modifier(s))] = "local";
      }
      f_.code.push_back(std::move(s));
    }
    start.back() = static_cast<int>(f_.code.size());
    replace_code(f_, std::move(f_.code), start);
    for (size_t i = 0; i < variables_.size(); ++i) {
      Variable& variable = f_.variables[i];
      if (variable.space == Space::param) {
        variable.space = Space::local;
        if (variables_[i].in_registers) variable.bytes = 0;
      }
    }
  }

  /// A dim3 becomes three arguments if the call `launches` a kernel.
  void rewrite_arguments(Operand& list, bool launches) {
    std::vector<Operand> all;
    for (Operand& o : list.parts) {
      const ParameterVariable* const v = variable(o);
      if (launches && v != nullptr && v->in_registers && v->parts.size() == 3) {
        for (int64_t offset : {0, 4, 8})
          for (const Part& part : v->parts)
            if (part.offset == offset) all.push_back(as_register(part.reg));
      } else {
        rewrite_argument(o);
        all.push_back(std::move(o));
      }
    }
    list.parts = std::move(all);
  }

  /// A built-in function's argument is one register; one that nobody reads or writes is the sink.
  void rewrite_argument(Operand& o) {
    const ParameterVariable* const v = variable(o);
    if (v == nullptr || !v->in_registers || v->parts.size() > 1) return;
    if (v->parts.empty()) {
      o = Operand();
      o.kind = Kind::sink;
    } else if (v->parts[0].offset == 0 && v->parts[0].bytes <= 8) {
      o = as_register(v->parts[0].reg);
    }
  }

  void emit_moves(const Statement& s, const ParameterVariable& v) {
    int64_t offset = address(s).value;
    const int bytes = bytes_of(s.type());
    for_each_element(value(s), [&](const Operand& element) {
      const auto part = std::find_if(v.parts.begin(), v.parts.end(), [&](const Part& p) { return p.offset == offset; });
      offset += bytes;
      if (element.kind == Kind::sink) return;
      Statement move;
      move.guard = s.guard;
      move.guard_negated = s.guard_negated;
      move.line = s.line;
      move.op = "mov";
      move.mods.push_back(bytes == 4 ? "b32" : bytes == 8 ? "b64" : "b128");
      move.operands.push_back(s.op == "ld" ? element : as_register(part->reg));
      move.operands.push_back(s.op == "ld" ? as_register(part->reg) : element);
      f_.code.push_back(std::move(move));
    });
  }

  Function& f_;
  std::vector<ParameterVariable> variables_;
};

}  // namespace

void place_call_parameters(Function& function) {
  const auto is_call_variable = [](const Variable& v) { return v.space == Space::param; };
  if (std::any_of(function.variables.begin(), function.variables.end(), is_call_variable)) Placer(function).run();
}

}  // namespace emulator::ptx
