// SPDX-License-Identifier: Apache-2.0
// Input: a pickle. The machine's result is searched for tensors, with a key and without.
#include "core/text.h"
#include "io/torch/pickle_tree.h"
#include "tests/fuzz/fuzz.h"

using namespace weft;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const ByteStream::Fail fail = [](const std::string& text) { weft::fail(printable(text)); };
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const char* key : {"", "state_dict"}) {
    fuzz::expect_value_or_error([&] {
      ByteStream stream(bytes, fail);
      MemoryBudget memory;
      const TorchPickle pickle = unpickle_torch(stream, fail, &memory);
      if (pickle.end > size || pickle.root == nullptr) std::abort();
      for (const auto& [name, tensor, array] : flatten_pickle(pickle, key, memory, fail).tensors)
        if ((tensor == nullptr) == (array == nullptr) || (tensor && tensor->storage >= pickle.storages.size()))
          std::abort();
    });
  }
  return 0;
}
