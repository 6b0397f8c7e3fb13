// SPDX-License-Identifier: Apache-2.0
#include "io/torch/pickle_tree.h"

#include <algorithm>

#include "core/text.h"
#include "kernels/error.h"

namespace weft {

std::string_view stored_name_of(const std::string& numpy_type) {
  constexpr std::pair<std::string_view, std::string_view> kNumbers[] = {
      {"f2", "F16"}, {"f4", "F32"}, {"f8", "F64"}, {"i1", "I8"},  {"i2", "I16"}, {"i4", "I32"},
      {"i8", "I64"}, {"u1", "U8"},  {"u2", "U16"}, {"u4", "U32"}, {"b1", "BOOL"}};
  for (const auto& [type, name] : kNumbers)
    if (type == numpy_type) return name;
  return "";
}

namespace {

constexpr size_t kShown = 100;  // bytes of a name in an error

std::string text_of(const PickleValue& value) {
  if (const auto* text = value.as<std::string>()) return *text;
  if (const auto* number = value.as<int64_t>()) return str(*number);
  if (const auto* number = value.as<double>()) return str(*number);
  if (const auto* flag = value.as<bool>()) return *flag ? "true" : "false";
  if (value.as<PickleNone>() != nullptr) return "none";
  if (const auto* name = value.as<TorchName>()) return name->text();
  if (const auto* type = value.as<TorchStorageType>()) return type->text();
  if (const auto* array = value.as<NumpyArray>()) return str("a NumPy array of ", array->type);
  return "";
}

bool is_key(const PickleValue& value) {
  return value.as<std::string>() != nullptr || value.as<int64_t>() != nullptr || value.as<bool>() != nullptr ||
         value.as<double>() != nullptr;
}

const PickleValue* entry(const PickleValue& value, const std::string& key) {
  if (const auto* dict = value.as<PickleDict>()) {
    for (const auto& [name, item] : dict->items)
      if (is_key(*name) && text_of(*name) == key) return item;
  }
  return nullptr;
}

/// An array of numbers or bools that Weft has; null: another value.
const NumpyArray* as_numbers(const PickleValue& value) {
  const auto* array = value.as<NumpyArray>();
  return array != nullptr && array->bytes != nullptr && !stored_name_of(array->type).empty() ? array : nullptr;
}

/// `arrays`: those of NumPy count.
bool holds_tensors(const PickleValue& value, bool arrays) {
  const auto* dict = value.as<PickleDict>();
  return dict != nullptr && std::any_of(dict->items.begin(), dict->items.end(), [arrays](const PickleDict::Item& item) {
           return item.second->as<PickledTensor>() != nullptr || (arrays && as_numbers(*item.second) != nullptr);
         });
}

/// Keys under which training programs keep a model's weights, its averages or its teacher in a checkpoint.
constexpr const char* kUsualKeys[] = {
    "state_dict", "model_state_dict", "model",          "model_state", "net",       "network",        "module",
    "weights",    "params",           "state_dict_ema", "model_ema",   "ema_model", "ema_state_dict", "ema",
    "params_ema", "teacher",          "student"};

/// A dict of weights and the keys that lead to it, `model.state_dict`.
struct Candidate {
  std::string key;
  const PickleValue* dict = nullptr;
};

/// The dicts of tensors under usual keys, which may be in each other: {"model": {"state_dict": {…}}}. `visits` bounds
/// the work on dicts that contain themselves.
std::vector<Candidate> candidates_in(const PickleValue& value, bool arrays, uint64_t& visits, size_t depth = 0) {
  constexpr size_t kDeepest = 3;
  std::vector<Candidate> found;
  const auto* dict = value.as<PickleDict>();
  if (dict == nullptr || depth == kDeepest) return found;
  for (const auto& [name, inner] : dict->items) {
    if (visits == 0) return found;
    --visits;
    const auto* key = name->as<std::string>();
    if (key == nullptr || std::find(std::begin(kUsualKeys), std::end(kUsualKeys), *key) == std::end(kUsualKeys))
      continue;
    if (const auto* items = inner->as<PickleDict>()) visits -= std::min<uint64_t>(visits, items->items.size());
    std::vector<Candidate> below = candidates_in(*inner, arrays, visits, depth + 1);
    if (below.empty() && holds_tensors(*inner, arrays)) below.push_back({"", inner});
    for (const Candidate& one : below) {
      // A program may keep one dict under two keys.
      const bool known =
          std::any_of(found.begin(), found.end(), [&](const Candidate& other) { return other.dict == one.dict; });
      if (!known) found.push_back({one.key.empty() ? *key : *key + "." + one.key, one.dict});
    }
  }
  return found;
}

/// Walks the tree below a value. The values form a graph: a value with two references is visited twice. The number of
/// visits is limited to the pickle's opcodes, far above what real files need.
class Walk {
 public:
  Walk(const Pickle& pickle, MemoryBudget& memory, const ByteStream::Fail& fail)
      : visits_left_(pickle.opcodes), memory_(memory), fail_(fail) {}

  void visit_all(const PickleValue& root) { visit(root, ""); }
  /// A number, string or bool beside the tensors.
  void keep(const std::string& name, const PickleValue& value) {
    if (const auto* text = value.as<std::string>()) take(text->size());
    if (const std::string text = text_of(value); !text.empty()) {
      memory_.take(kEntryBytes + 2 * (name.size() + text.size()), "values beside tensors", fail_);
      tree_.others[name] = text;
    }
  }
  PickleTree finish() {
    if (tree_.tensors.empty() && foreign_ != nullptr)
      fail_(str("array '", foreign_name_, "': expected a dtype that Weft has, got NumPy's ", foreign_->type));
    return std::move(tree_);
  }

 private:
  void visit(const PickleValue& value, const std::string& name) {
    if (std::find(path_.begin(), path_.end(), &value) != path_.end())
      fail_(
          str("pickle: ", value.begun(), ": expected values that end, got one that contains itself, at '", name, "'"));
    if (path_.size() > kDeepestPickle) fail_(str("expected values nested at most ", kDeepestPickle, " deep, got more"));
    take(name.size());
    --visits_left_;
    path_.push_back(&value);
    if (const auto* tensor = value.as<PickledTensor>()) {
      tree_.tensors.push_back({.name = name, .tensor = tensor});
    } else if (const NumpyArray* array = as_numbers(value)) {
      tree_.tensors.push_back({.name = name, .array = array});
    } else if (const auto* dict = value.as<PickleDict>()) {
      for (const auto& [key, item] : dict->items) {
        if (!is_key(*key))
          fail_(str("expected keys that are strings or numbers, got ", key->kind(), " in '", name, "'"));
        visit(*item, below(name, text_of(*key)));
      }
    } else if (const auto* list = value.as<PickleList>()) {
      for (size_t i = 0; i < list->items.size(); ++i) visit(*list->items[i], below(name, str(i)));
    } else {
      if (const auto* foreign = value.as<NumpyArray>(); foreign != nullptr && foreign->bytes != nullptr)
        foreign_ = foreign, foreign_name_ = name;
      keep(name, value);
    }
    path_.pop_back();
  }

  void take(uint64_t text) {
    if (visits_left_ == 0 || text > text_left_)
      fail_("expected about as many values as the file describes, got far more by repetition");
    text_left_ -= text;
  }

  static std::string below(const std::string& name, const std::string& key) {
    return name.empty() ? key : name + "." + key;
  }

  static constexpr uint64_t kEntryBytes = 160;  // cost of an entry in a map from string to string

  uint64_t visits_left_, text_left_ = kMostPickleText;
  MemoryBudget& memory_;
  const ByteStream::Fail& fail_;
  std::vector<const PickleValue*> path_;  // from the root to the visited value
  const NumpyArray* foreign_ = nullptr;   // one of numbers that Weft does not have, which is left out
  std::string foreign_name_;
  PickleTree tree_;
};

/// The value under `a.b`: the key as a whole, or part by part.
const PickleValue* find_key(const PickleValue& value, const std::string& key, size_t depth = 0) {
  if (const PickleValue* found = entry(value, key)) return found;
  if (depth == kDeepestPickle) return nullptr;
  for (size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
    if (const PickleValue* outer = entry(value, key.substr(0, dot)))
      if (const PickleValue* found = find_key(*outer, key.substr(dot + 1), depth + 1)) return found;
  return nullptr;
}

}  // namespace

PickleTree flatten_pickle(const Pickle& pickle, const std::string& key, MemoryBudget& memory,
                          const ByteStream::Fail& fail) {
  const PickleValue* root = pickle.root;
  if (!key.empty()) {
    root = find_key(*pickle.root, key);
    if (root == nullptr) {
      std::vector<std::string> names;
      if (const auto* dict = pickle.root->as<PickleDict>())
        for (const auto& [name, value] : dict->items)
          if (is_key(*name) && value->as<PickleDict>() != nullptr) names.push_back(text_of(*name).substr(0, kShown));
      fail(str("expected a dict under the key '", key, "', got none.",
               names.empty() ? " There are no dicts in it" : " There are: " + joined(names, 10)));
    }
    if (root->as<PickleDict>() == nullptr && root->as<PickleList>() == nullptr)
      fail(str("expected a dict under the key '", key, "', got ", root->kind()));
  }
  std::vector<Candidate> found;
  for (const bool arrays : {false, true}) {  // arrays beside tensors need not be weights
    if (!key.empty() || !found.empty()) break;
    uint64_t visits = 4 * pickle.opcodes;
    found = candidates_in(*root, arrays, visits);
  }
  if (!found.empty()) {
    if (found.size() > 1) {
      std::vector<std::string> keys;
      for (const Candidate& one : found) keys.push_back(one.key);
      fail(str("the file holds several dicts of weights: ", joined(keys), ". Choose one: --weights-key ", keys[0],
               " (weft-weights: --key ", keys[0], "), or write it alone: weft-weights convert --key ", keys[0],
               " FILE NEW.safetensors"));
    }
    Walk walk(pickle, memory, fail);
    walk.visit_all(*found[0].dict);
    for (const auto& [name, value] : root->as<PickleDict>()->items)  // the epoch and the like, not the optimizer
      if (is_key(*name) && value->as<PickleDict>() == nullptr && value->as<PickleList>() == nullptr)
        walk.keep(text_of(*name), *value);
    return walk.finish();
  }
  if (root->as<PickleDict>() == nullptr && root->as<PickleList>() == nullptr && root->as<PickledTensor>() == nullptr)
    fail(str("expected tensors, got ", root->kind()));
  Walk walk(pickle, memory, fail);
  walk.visit_all(*root);
  return walk.finish();
}

}  // namespace weft
