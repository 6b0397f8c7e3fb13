// SPDX-License-Identifier: Apache-2.0
// Input: a pickle. What the machine builds is walked for tensors, with a key and without.
#include <cstring>

#include "apps/support/weights/pickle_tree.h"
#include "apps/support/weights/unpickler.h"
#include "core/printable.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const support::ByteStream::Fail fail = [](const std::string& text) { weft::fail(printable(text)); };
  const auto read = [&](uint64_t offset, void* to, uint64_t bytes) { std::memcpy(to, data + offset, bytes); };
  for (const char* key : {"", "state_dict"}) {
    fuzz::expect_value_or_error([&] {
      support::ByteStream stream(read, 0, size, fail);
      const support::Pickle pickle = support::unpickle(stream, fail);
      if (pickle.end > size || pickle.root == nullptr) std::abort();
      for (const auto& [name, tensor] : support::flatten_pickle(pickle, key, fail).tensors)
        if (tensor->storage >= pickle.storages.size()) std::abort();
    });
  }
  return 0;
}
