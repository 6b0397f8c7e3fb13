// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "data/text/added_tokens.h"
#include "data/text/jinja.h"

namespace weft::data {

/// A part of a text for a language model.
struct TextPart {
  std::string text;
  bool answer = false;  ///< the model is to write it
};

/// How a model's conversations are written as texts: chat_template.jinja of its folder, or the `chat_template` of
/// tokenizer_config.json. Messages are a JSON list of objects with a `role`, mostly system, user or assistant, and a
/// `content`.
class ChatTemplate {
 public:
  /// Nothing: the folder has no template. Errors: a file cannot be read; see JinjaTemplate.
  static std::optional<ChatTemplate> from_folder(const std::filesystem::path& folder);

  /// The conversation; with `asks` also what begins the assistant's answer. `tools`: a list, or null. Errors: messages
  /// of another form; see JinjaTemplate::render().
  std::string render(const nlohmann::ordered_json& messages, bool asks, const nlohmann::ordered_json& tools = {}) const;
  /// The conversation in parts, of which the assistant's contents, each with the token of `ends` after it, are answers;
  /// where the template has `generation` blocks, these are. Errors: as above; without these blocks, a
  /// template that changes the beginning of a conversation when more follows, or a content.
  std::vector<TextPart> parts(const nlohmann::ordered_json& messages, const std::vector<AddedToken>& ends,
                              const nlohmann::ordered_json& tools = {}) const;

  /// The tokenizer's eos_token, which ends a message with most templates; "": it names none.
  std::string end_token() const { return tokens_.value("eos_token", ""); }

 private:
  ChatTemplate(const std::string& source, const std::string& what, nlohmann::ordered_json tokens)
      : template_(source, what), what_(what), tokens_(std::move(tokens)) {}
  JinjaTemplate::Rendered rendered(const nlohmann::ordered_json& messages, bool asks,
                                   const nlohmann::ordered_json& tools) const;

  JinjaTemplate template_;
  std::string what_;
  nlohmann::ordered_json tokens_;  // bos_token and the others, by their names
};

}  // namespace weft::data
