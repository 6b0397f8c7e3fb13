// SPDX-License-Identifier: Apache-2.0
// Replaces crypto.cpp in builds without libcrypto, where no connection is ever proven.
#include "dist/rendezvous/crypto.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

[[noreturn]] void missing() {
  fail(
      "store: this build has no libcrypto, with which ranks prove that they belong to one job; one process alone needs "
      "none. apt-get install libssl-dev, then configure and build again");
}

}  // namespace

void require_keyed_hash() { missing(); }
std::string keyed_hash(std::string_view, std::string_view) { missing(); }
bool same_hash(std::string_view, std::string_view) { missing(); }
std::string random_bytes(size_t) { missing(); }
std::string hexadecimal(std::string_view) { missing(); }

struct FrameSeal::State {};

FrameSeal::FrameSeal() = default;
FrameSeal::~FrameSeal() = default;
FrameSeal::FrameSeal(FrameSeal&& other) noexcept = default;
FrameSeal& FrameSeal::operator=(FrameSeal&& other) noexcept = default;
FrameSeal::FrameSeal(std::string_view, bool) { require_keyed_hash(); }
bool FrameSeal::encrypts() const { return false; }
FrameSeal::Tag FrameSeal::seal_header(std::string_view) { return {}; }
void FrameSeal::check_header(std::string_view, std::string_view) { require_keyed_hash(); }
void FrameSeal::begin() { require_keyed_hash(); }
void FrameSeal::seal(const std::byte*, std::byte*, size_t) { require_keyed_hash(); }
void FrameSeal::open(std::byte*, size_t) { require_keyed_hash(); }
FrameSeal::Tag FrameSeal::tag() { return {}; }
void FrameSeal::check(std::string_view) { require_keyed_hash(); }
ForgedFrame::ForgedFrame() : Error("a frame failed its authentication") {}

}  // namespace weft::dist
