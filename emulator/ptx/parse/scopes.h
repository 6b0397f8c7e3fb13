// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>
#include <unordered_map>
#include <vector>

namespace emulator::ptx {

/// Names that mean something until the } of their scope; inner ones hide outer ones.
template <class T>
class Scopes {
 public:
  struct Binding {
    T value;
    int depth;
  };

  void open() { marks_.push_back(hidden_.size()); }
  void close() {
    for (; hidden_.size() > marks_.back(); hidden_.pop_back()) {
      if (hidden_.back().was_bound)
        names_.find(hidden_.back().name)->second = hidden_.back().binding;
      else
        names_.erase(hidden_.back().name);
    }
    marks_.pop_back();
  }
  /// False when the innermost scope has this name already.
  bool bind(std::string_view name, T value) {
    const int depth = static_cast<int>(marks_.size());
    const auto [known, is_new] = names_.try_emplace(name, Binding{value, depth});
    if (is_new) {
      hidden_.push_back({name, false, {}});
      return true;
    }
    if (known->second.depth == depth) return false;
    hidden_.push_back({name, true, known->second});
    known->second = {value, depth};
    return true;
  }
  const Binding* find(std::string_view name) const {
    if (names_.empty()) return nullptr;
    const auto found = names_.find(name);
    return found == names_.end() ? nullptr : &found->second;
  }

 private:
  struct Hidden {
    std::string_view name;
    bool was_bound;
    Binding binding;
  };
  std::unordered_map<std::string_view, Binding> names_;
  std::vector<Hidden> hidden_;
  std::vector<size_t> marks_;
};

}  // namespace emulator::ptx
