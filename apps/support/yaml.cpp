// SPDX-License-Identifier: Apache-2.0
#include "apps/support/yaml.h"

#include <algorithm>
#include <unordered_map>

#include "apps/support/yaml_tree.h"
#include "core/text.h"
#include "io/home.h"

namespace weft::support {
namespace {

constexpr int kDeepestMerge = 100;
constexpr size_t kMostEntries = 1'000'000;  // limit of all merged sections together

/// A key with its value, where the key stands.
struct Entry {
  std::string key;
  int line = 0;
  const YamlNode* value = nullptr;
  bool is_used = false;
};
using Entries = std::vector<Entry>;

template <class... Parts>
[[noreturn]] void bad(const Parts&... parts) {
  throw train::UsageError(printable(str(parts...)));
}

/// `'5E-4'`, `the text '5E-4'` (in quotes), `!!int '5'`, `a list`: what an error shows of a value.
std::string shown(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::none) return "nothing";
  if (node.kind == YamlNode::Kind::sequence) return "a list";
  if (node.kind == YamlNode::Kind::map) return "keys with values";
  const std::string text = "'" + node.text + "'";
  if (node.tag.empty()) return text;
  if (node.tag == "!") return "the text " + text;
  constexpr std::string_view kStandard = "tag:yaml.org,2002:";
  return (node.tag.starts_with(kStandard) ? "!!" + node.tag.substr(kStandard.size()) : node.tag) + " " + text;
}

/// Adds the entries of `<<: value`: a map, or a list of maps. Earlier maps win over later ones, and the section's own
/// keys over all (https://yaml.org/type/merge.html).
class Merger {
 public:
  explicit Merger(const std::string& file) : file_(file) {}

  const Entries& of(const YamlNode& map) {
    const auto known = merged_.find(&map);
    if (known != merged_.end()) return known->second;
    if (++depth_ > kDeepestMerge)
      bad(file_, ":", map.line, ": expected '<<' to reach at most ", kDeepestMerge, " sections deep, got more");
    Entries entries;
    std::unordered_map<std::string, int> lines;
    for (const auto& [key, value] : map.entries) {
      const auto [first, is_new] = lines.emplace(key->text, key->line);
      if (!is_new)
        bad(file_, ":", key->line, ": expected each key once, got '", key->text, "' again after line ", first->second,
            key->text == "<<" ? ". Several sections are merged by a list: <<: [*A, *B]" : "");
      if (key->text != "<<") entries.push_back({key->text, key->line, value});
    }
    for (const auto& [key, value] : map.entries)
      if (key->text == "<<") merge(*key, *value, entries, lines);
    entries_ += entries.size();
    if (entries_ > kMostEntries)
      bad(file_, ":", map.line, ": expected at most ", kMostEntries, " merged keys, got more");
    --depth_;
    return merged_[&map] = std::move(entries);
  }

 private:
  void merge(const YamlNode& key, const YamlNode& value, Entries& entries,
             std::unordered_map<std::string, int>& lines) {
    std::vector<const YamlNode*> maps{&value};
    if (value.kind == YamlNode::Kind::sequence) maps = value.items;
    for (const YamlNode* map : maps) {
      if (map->kind != YamlNode::Kind::map)
        bad(file_, ":", key.line, ": <<: expected a section or a list of sections (<<: *NAME), got ", shown(*map));
      for (const Entry& entry : of(*map))
        if (lines.emplace(entry.key, entry.line).second) entries.push_back(entry);
    }
  }

  const std::string& file_;
  std::unordered_map<const YamlNode*, Entries> merged_;
  int depth_ = 0;
  size_t entries_ = 0;
};

/// `FILE:LINE: KEY`, which errors about a value begin with.
std::string place(const std::string& file, int line, const std::string& key) { return str(file, ":", line, ": ", key); }

/// The text of a plain value, or of one with this tag.
const std::string& plain(const std::string& where, const YamlNode& node, const char* expected,
                         std::initializer_list<const char*> tags) {
  const bool fits = node.kind == YamlNode::Kind::scalar &&
                    (node.tag.empty() || std::any_of(tags.begin(), tags.end(), [&](const char* tag) {
                       return node.tag == str("tag:yaml.org,2002:", tag);
                     }));
  if (!fits) bad(where, ": expected ", expected, ", got ", shown(node));
  return node.text;
}

/// `+5` as from_chars reads it.
std::string without_plus(const std::string& text) {
  return text.size() > 1 && text[0] == '+' && text[1] != '-' ? text.substr(1) : text;
}

void convert(const std::string& where, const YamlNode& node, int64_t& value) {
  value = parse_integer(where, without_plus(plain(where, node, "a whole number", {"int"})));
}

void convert(const std::string& where, const YamlNode& node, double& value) {
  value = parse_number(where, without_plus(plain(where, node, "a number", {"int", "float"})));
}

void convert(const std::string& where, const YamlNode& node, bool& value) {
  const std::string text = lower_case(plain(where, node, "true or false", {"bool"}));
  for (const char* yes : {"true", "yes", "on"})
    if (text == yes) return static_cast<void>(value = true);
  for (const char* no : {"false", "no", "off"})
    if (text == no) return static_cast<void>(value = false);
  bad(where, ": expected true or false, got ", shown(node));
}

void convert(const std::string& where, const YamlNode& node, std::string& value) {
  if (node.kind != YamlNode::Kind::scalar) bad(where, ": expected a text, got ", shown(node));
  value = node.text;
}

void convert(const std::string& where, const YamlNode& node, std::vector<int64_t>& values) {
  if (node.kind != YamlNode::Kind::sequence) bad(where, ": expected a list, got ", shown(node));
  std::vector<int64_t> read(node.items.size());
  for (size_t i = 0; i < read.size(); ++i) convert(where, *node.items[i], read[i]);
  values = std::move(read);
}

}  // namespace

struct YamlSection::Node {
  explicit Node(const std::filesystem::path& path) : file(path.string()), tree(parse_yaml(path)) {
    if (tree.root == nullptr) bad(file, ": expected keys with values, got an empty file");
    if (tree.root->kind != YamlNode::Kind::map)
      bad(file, ":", tree.root->line, ": expected keys with values, got ", shown(*tree.root));
  }

  /// The entry of this key, which is then known; null when it is not there or no value.
  Entry* find(const std::string& key) {
    if (std::find(known.begin(), known.end(), key) == known.end()) known.push_back(key);
    for (Entry& entry : entries) {
      if (entry.key != key) continue;
      entry.is_used = true;
      const bool is_none = entry.value->kind == YamlNode::Kind::none ||
                           (entry.value->kind == YamlNode::Kind::scalar && entry.value->text == "None");
      return is_none ? nullptr : &entry;
    }
    return nullptr;
  }

  template <class T>
  bool read(const std::string& key, T& variable) {
    const Entry* entry = find(key);
    if (entry == nullptr) return false;
    convert(place(file, entry->line, key), *entry->value, variable);
    return true;
  }

  template <class T>
  bool read(const std::string& key, T& variable, Range range) {
    T value = variable;
    if (!read(key, value)) return false;
    const Entry* entry = find(key);
    check_range(place(file, entry->line, key), static_cast<double>(value), entry->value->text, range);
    variable = value;
    return true;
  }

  std::string file;
  YamlTree tree;
  Entries entries;
  std::vector<std::string> known;
};

YamlSection::YamlSection(const std::filesystem::path& path, const std::string& section) : node_(new Node(path)) {
  Merger merger(node_->file);
  std::vector<std::string> names;
  for (const Entry& entry : merger.of(*node_->tree.root)) {
    names.push_back(entry.key);
    if (entry.key != section) continue;
    if (entry.value->kind != YamlNode::Kind::map)
      bad(place(node_->file, entry.line, section), ": expected keys with values, got ", shown(*entry.value));
    node_->entries = merger.of(*entry.value);
    return;
  }
  bad(node_->file, ": expected a section '", section, "', got none.", suggestion(section, names));
}

YamlSection::YamlSection(const std::filesystem::path& path) : node_(new Node(path)) {
  node_->entries = Merger(node_->file).of(*node_->tree.root);
}

YamlSection::~YamlSection() = default;
YamlSection::YamlSection(YamlSection&&) noexcept = default;

bool YamlSection::read(const std::string& key, int64_t& variable, Range range) {
  return node_->read(key, variable, range);
}
bool YamlSection::read(const std::string& key, double& variable, Range range) {
  return node_->read(key, variable, range);
}
bool YamlSection::read(const std::string& key, bool& variable) { return node_->read(key, variable); }
bool YamlSection::read(const std::string& key, std::string& variable) {
  const bool is_there = node_->read(key, variable);
  if (is_there) variable = expand_home(variable);
  return is_there;
}
bool YamlSection::read(const std::string& key, std::vector<int64_t>& variable) { return node_->read(key, variable); }

bool YamlSection::read(const std::string& key, std::string& variable, const std::vector<std::string>& choices) {
  std::string word;
  if (!read(key, word)) return false;
  if (std::find(choices.begin(), choices.end(), word) == choices.end())
    bad(place(node_->file, node_->find(key)->line, key), ": unknown value '", word, "'.", suggestion(word, choices));
  variable = word;
  return true;
}

std::string YamlSection::where(const std::string& key) const {
  const auto found =
      std::find_if(node_->entries.begin(), node_->entries.end(), [&](const Entry& entry) { return entry.key == key; });
  return found == node_->entries.end() ? str(node_->file, ": ", key) : place(node_->file, found->line, key);
}

std::vector<std::pair<std::string, std::string>> YamlSection::settings(const std::string& key) {
  const Entry* const entry = node_->find(key);
  if (entry == nullptr) return {};
  std::vector<std::pair<std::string, std::string>> out;
  const auto add = [&](const std::string& name, const YamlNode& value) {
    if (value.items.empty() && value.entries.empty() && value.text.empty()) return;
    const std::string word = lower_case(value.text);
    if (word != "no" && word != "false" && word != "none") out.emplace_back(name, value.text);
  };
  if (entry->value->kind != YamlNode::Kind::map) add(key, *entry->value);
  for (const auto& [name, value] : entry->value->entries) add(name->text, *value);
  return out;
}

void YamlSection::ignore(const std::string& key) { node_->find(key); }

void YamlSection::finish() const {
  for (const Entry& entry : node_->entries)
    if (!entry.is_used)
      bad(node_->file, ":", entry.line, ": unknown key '", entry.key, "'.", suggestion(entry.key, node_->known));
}

}  // namespace weft::support
