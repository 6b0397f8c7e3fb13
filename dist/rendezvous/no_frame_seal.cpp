// SPDX-License-Identifier: Apache-2.0
// Replaces frame_seal.cpp in builds without libsodium, where no connection is ever proven.
#include "dist/rendezvous/frame_seal.h"
#include "dist/rendezvous/keyed_hash.h"

namespace weft::dist {

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
