// SPDX-License-Identifier: Apache-2.0
// Sets, samples and batches that do not compile: the message names the cure. WEFT_FORM picks one.
#include "data/loader.h"

namespace {
using namespace weft;  // NOLINT(google-build-using-namespace)

struct Sample {
  Tensor x;
  float y = 0;
#if WEFT_FORM != 1
  void fields(auto& v) { v("x", x), v("y", y); }
#endif
#if WEFT_FORM == 2
  struct Batch {
    Tensor x, y;
  };
#elif WEFT_FORM == 3
  struct Batch {
    Tensor x;
    int64_t count = 0;
    void fields(auto& v) { v("x", x), v("count", count); }
  };
#endif
};

struct Set {
#if WEFT_FORM == 4
  Sample get(int64_t) { return {Tensor::zeros({2})}; }
#elif WEFT_FORM == 5
  std::vector<float> get(int64_t) const { return {1, 2}; }
#else
  Sample get(int64_t) const { return {Tensor::zeros({2})}; }
#endif
#if WEFT_FORM != 6
  int64_t size() const { return 4; }
#endif
};
}  // namespace

int main() {
  data::Loader loader(std::make_shared<const Set>(), data::Sampler(4));
  loader.start(0);
  return loader.next() ? 0 : 1;
}
