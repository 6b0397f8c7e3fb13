// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>

namespace weft::finetune {

/// Whether the key of an object of Hugging Face's is there and not null, which mean the same.
inline bool says(const nlohmann::json& json, const char* key) { return json.contains(key) && !json[key].is_null(); }

template <class T>
T value_or(const nlohmann::json& json, const char* key, T other) {
  return says(json, key) ? json[key].get<T>() : other;
}

}  // namespace weft::finetune
