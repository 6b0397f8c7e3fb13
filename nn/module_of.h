// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "nn/module.h"

namespace weft::nn {

/// A module of several inputs, x and what is named here, of any types:
///   struct Pair : nn::ModuleOf<Tensor> { Tensor forward_many(const Tensor& x, const Tensor& y) const override; … };
/// It is called as a function, `pair(x, y)`, between the hooks, which see x. So are DDP and FSDP of it; x.size(0)
/// is their number of samples.
template <class... More>
struct ModuleOf : Module {
  virtual Tensor forward_many(const Tensor& x, const More&... more) const = 0;
  Tensor operator()(const Tensor& x, const More&... more) const {
    return with_hooks(x, [&] { return forward_many(x, more...); });
  }
};

/// module(x, more…), of a module whose inputs the caller knows. Errors: they are others.
template <class... More>
Tensor call(const Module& module, const Tensor& x, const More&... more) {
  if constexpr (sizeof...(More) == 0) {
    return module(x);
  } else {
    const auto* const known = dynamic_cast<const ModuleOf<More...>*>(&module);
    WEFT_CHECK(known, module.kind(), ": expected a ModuleOf for these ", 1 + sizeof...(More), " inputs");
    return (*known)(x, more...);
  }
}

}  // namespace weft::nn
