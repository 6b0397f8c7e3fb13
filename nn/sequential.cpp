// SPDX-License-Identifier: Apache-2.0
#include "nn/sequential.h"

namespace weft::nn {

Sequential::Sequential(std::vector<std::shared_ptr<Module>> modules) {
  for (std::shared_ptr<Module>& module : modules) add(std::move(module));
}

void Sequential::add(std::shared_ptr<Module> child) {
  WEFT_CHECK(child, "Sequential: expected a module, got null at position ", children.size());
  children.push_back(std::move(child));
}

Tensor Sequential::forward(const Tensor& x) const {
  Tensor y = x;
  for (const std::shared_ptr<Module>& child : children) y = (*child)(y);
  return y;
}

void Sequential::fields(Visitor& v) {
  for (size_t i = 0; i < children.size(); ++i) v(std::to_string(i), children[i]);
}

}  // namespace weft::nn
