// SPDX-License-Identifier: Apache-2.0
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <sstream>
#include <unordered_map>

#include "apps/support/yaml_tree.h"
#include "core/text.h"
#include "io/file_reader.h"
#include "train/exit.h"

namespace weft::support {
namespace {

constexpr uintmax_t kLargestFile = 4 << 20;

/// Builds the tree from the parser's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& path, YamlTree& tree) : path_(path), tree_(tree) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (tree_.root != nullptr) bad(mark, "expected one document, got a second one");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place(make(YamlNode::Kind::none, mark, "", anchor), mark);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode* node = make(YamlNode::Kind::scalar, mark, tag, anchor);
    node->text = value;
    place(node, mark);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const YamlNode* node = anchors_.at(anchor);
    for (const Open& open : open_)
      if (open.node == node) bad(mark, "expected values that end, got one that contains itself");
    place(node, mark);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    begin(make(YamlNode::Kind::sequence, mark, tag, anchor), mark);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    begin(make(YamlNode::Kind::map, mark, tag, anchor), mark);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  /// A sequence or map whose end has not come, and the key that waits for its value.
  struct Open {
    YamlNode* node;
    const YamlNode* key = nullptr;
  };

  [[noreturn]] void bad(const YAML::Mark& mark, const char* text) const {
    throw train::UsageError(printable(str(path_, ":", mark.line + 1, ": ", text)));
  }

  YamlNode* make(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    YamlNode& node = tree_.arena.emplace_back();
    node.kind = kind;
    node.line = mark.line + 1;
    if (tag != "?") node.tag = tag;
    if (anchor != 0) anchors_[anchor] = &node;
    return &node;
  }

  void begin(YamlNode* node, const YAML::Mark& mark) {
    place(node, mark);
    open_.push_back({node});
  }

  void place(const YamlNode* node, const YAML::Mark& mark) {
    if (open_.empty()) {
      tree_.root = node;
      return;
    }
    auto& [parent, key] = open_.back();
    if (parent->kind == YamlNode::Kind::sequence) {
      parent->items.push_back(node);
    } else if (key == nullptr) {
      if (node->kind != YamlNode::Kind::scalar) bad(mark, "expected a key that is a text");
      key = node;
    } else {
      parent->entries.emplace_back(std::exchange(key, nullptr), node);
    }
  }

  const std::string& path_;
  YamlTree& tree_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, const YamlNode*> anchors_;
};

std::string read_whole(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored))
    throw train::UsageError(printable(path.string()) + ": expected a YAML file, got none there");
  if (std::filesystem::file_size(path, ignored) > kLargestFile)
    throw train::UsageError(printable(path.string()) + ": expected a YAML file of at most 4 MiB, got a larger one");
  return read_text(path, "yaml", kLargestFile);
}

}  // namespace

bool have_yaml() { return true; }

YamlTree parse_yaml(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::istringstream in(read_whole(path));
  YamlTree tree;
  try {
    Builder builder(name, tree);
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    throw train::UsageError(printable(str(name, ":", error.mark.line + 1, ": not YAML: ", error.msg)));
  }
  return tree;
}

}  // namespace weft::support
