// SPDX-License-Identifier: Apache-2.0
#include "emulator/ptx/lower/frames.h"

#include <algorithm>

namespace emulator::ptx {

namespace {

using Kind = Operand::Kind;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

Operand as_register(int reg) {
  Operand o;
  o.kind = Kind::reg;
  o.reg = reg;
  return o;
}

Operand as_integer(uint64_t value) {
  Operand o;
  o.kind = Kind::integer;
  o.value = static_cast<int64_t>(value);
  return o;
}

class Frames {
 public:
  explicit Frames(Function& body) : body_(body) {}

  void run() {
    for (const Function::Section& section : body_.sections) frames_.push_back(place(section));
    std::vector<Statement> code = std::move(body_.code), out;
    std::vector<int> start(code.size() + 1);
    size_t section = 0;
    for (size_t i = 0; i < code.size(); ++i) {
      start[i] = static_cast<int>(out.size());
      Statement& s = code[i];
      if (s.op == kEnterFrame) enter(s, section++);
      if (s.op != "call")
        for (Operand& o : s.operands) rewrite(o, s, out);
      out.push_back(std::move(s));
    }
    start.back() = static_cast<int>(out.size());
    replace_code(body_, std::move(out), start);
  }

 private:
  struct Frame {
    uint64_t bytes, align;
  };

  /// A kernel's own variables have addresses that no call changes.
  Frame place(const Function::Section& section) {
    Frame frame{0, kFrameAlign};
    if (section.function->is_kernel) return frame;
    for (int i = section.first_variable; i < section.last_variable; ++i) {
      Variable& v = body_.variables[static_cast<size_t>(i)];
      if (v.space != Space::local || v.base >= 0) continue;
      v.base = section.frame;
      v.offset = round_up(frame.bytes, v.align);
      frame.bytes = v.offset + v.bytes;
      frame.align = std::max<uint64_t>(frame.align, v.align);
    }
    frame.bytes = round_up(frame.bytes, kFrameAlign);
    return frame;
  }

  void enter(Statement& s, size_t section) const {
    const Function& f = *body_.sections[section].function;
    const uint64_t incoming = f.is_kernel ? 0 : FrameLayout(f.results, f.parameters).bytes;
    for (const uint64_t value : {frames_[section].bytes, frames_[section].align, incoming})
      s.operands.push_back(as_integer(value));
  }

  const Variable* in_frame(const Operand& o) const {
    if (o.kind != Kind::symbol || o.reg < 0) return nullptr;
    const Variable& v = body_.variables[static_cast<size_t>(o.reg)];
    return v.base >= 0 ? &v : nullptr;
  }

  void rewrite(Operand& o, Statement& s, std::vector<Statement>& out) {
    if (o.kind == Kind::address) {
      if (const Variable* const v = in_frame(o.parts[0])) {
        o.value += static_cast<int64_t>(v->offset);
        o.parts[0] = as_register(v->base);
        for (std::string_view& mod : s.mods)
          if (mod.starts_with("param")) mod = "local";
      }
    } else if (const Variable* const v = in_frame(o)) {
      const int address = static_cast<int>(body_.registers.size());
      body_.registers.push_back({v->name, Type::b64});
      Statement add;
      add.op = "add";
      add.mods.push_back("s64");
      add.guard = s.guard;
      add.guard_negated = s.guard_negated;
      add.line = s.line;
      add.operands = {as_register(address), as_register(v->base),
                      as_integer(v->offset + static_cast<uint64_t>(o.value))};
      out.push_back(std::move(add));
      o = as_register(address);
    }
    for (Operand& part : o.parts) rewrite(part, s, out);
  }

  Function& body_;
  std::vector<Frame> frames_;
};

}  // namespace

uint64_t FrameLayout::reserve(uint64_t& end, uint64_t bytes) {
  const uint64_t at = bytes > 8 ? round_up(end, kFrameAlign) : end;
  end = at + round_up(bytes, 8);
  return at;
}

FrameLayout::FrameLayout(const std::vector<Variable>& results, const std::vector<Variable>& parameters) {
  constexpr uint64_t kSeparator = UINT64_MAX;
  for (const auto* const list : {&results, &parameters}) {
    for (const Variable& v : *list) {
      if (v.space != Space::param || v.align > kFrameAlign) unfit = v.name;
      sizes.push_back(v.bytes);
      reserve(bytes, v.bytes);
    }
    sizes.push_back(kSeparator);
  }
}

void replace_code(Function& body, std::vector<Statement> code, const std::vector<int>& start) {
  body.code = std::move(code);
  for (Statement& s : body.code)
    if (s.op == "bra" && s.target >= 0) s.target = start[static_cast<size_t>(s.target)];
  for (std::vector<int>& table : body.tables)
    for (int& target : table) target = start[static_cast<size_t>(target)];
}

void place_frames(Function& body) {
  if (!body.sections.empty()) Frames(body).run();
}

}  // namespace emulator::ptx
