// SPDX-License-Identifier: Apache-2.0
// Replaces keyed_hash.cpp in builds without libsodium.
#include "dist/rendezvous/keyed_hash.h"
#include "kernels/error.h"

namespace weft::dist {
namespace {

[[noreturn]] void missing() {
  fail(
      "store: this build has no libsodium, with which ranks prove that they belong to one job; one process alone needs "
      "none. apt-get install libsodium-dev, then configure and build again");
}

}  // namespace

void require_keyed_hash() { missing(); }
std::string keyed_hash(std::string_view, std::string_view) { missing(); }
bool same_hash(std::string_view, std::string_view) { missing(); }
std::string random_bytes(size_t) { missing(); }
std::string hexadecimal(std::string_view) { missing(); }

}  // namespace weft::dist
