// SPDX-License-Identifier: Apache-2.0
#include "nn/visitor.h"

#include <algorithm>
#include <mutex>

#include "core/autograd_meta.h"
#include "nn/module.h"

namespace weft::nn {
namespace {

/// The first walk writes what later ones find; threads that share a model may all be the first.
void mark(const Tensor& tensor) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (!tensor.is_floating() || !tensor.is_leaf()) return;
  AutogradMeta& meta = meta_of(tensor.impl());
  if (!meta.is_chosen) tensor.requires_grad_();
  if (!meta.is_claimed) meta.claim();
}

}  // namespace

void Visitor::operator()(const std::string& name, Tensor& tensor, Layout layout) {
  if (!tensor.defined()) return;
  mark(tensor);
  parameter(path(name), tensor, layout);
}

void Visitor::operator()(const std::string& name, Module& child) {
  const size_t length = prefix_.size();
  prefix_ += name;
  WEFT_CHECK(std::find(open_.begin(), open_.end(), &child) == open_.end(), "module: '", prefix_, "', a ", child.kind(),
             ", contains itself. Look at fields(), or at what was added to it");
  open_.push_back(&child);
  enter(prefix_, child);
  prefix_ += '.';
  child.fields(*this);
  open_.pop_back();
  prefix_.resize(length);
}

void Visitor::parameter(const std::string&, Tensor&, Layout) {}
void Visitor::buffer_at(const std::string&, Tensor&) {}
void Visitor::counter_at(const std::string&, int64_t&) {}
void Visitor::enter(const std::string&, Module&) {}

}  // namespace weft::nn
