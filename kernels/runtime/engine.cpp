// SPDX-License-Identifier: Apache-2.0
#include "kernels/runtime/engine.h"

#include <cstdlib>

#include "kernels/error.h"

namespace weft::kernels {
namespace {

constexpr std::string_view kNames[] = {"own", "vendor", "auto"};
constexpr int kNone = -1;
thread_local int guarded = kNone;

Engine of_the_environment() {
  const char* const text = std::getenv("WEFT_ENGINE");
  return text && *text ? parse_engine("WEFT_ENGINE", text) : Engine::own;
}

}  // namespace

std::string_view name(Engine engine) { return kNames[static_cast<int>(engine)]; }

Engine parse_engine(std::string_view what, const std::string& text) {
  for (int i = 0; i < 3; ++i)
    if (kNames[i] == text) return static_cast<Engine>(i);
  fail(what, ": expected own, vendor or auto, got '", text, "'");
}

Engine engine() {
  if (guarded != kNone) return static_cast<Engine>(guarded);
  static const Engine chosen = of_the_environment();  // an error is thrown by every call until it is mended
  return chosen;
}

EngineGuard::EngineGuard(Engine engine) : outer_(guarded) { guarded = static_cast<int>(engine); }
EngineGuard::~EngineGuard() { guarded = outer_; }

}  // namespace weft::kernels
