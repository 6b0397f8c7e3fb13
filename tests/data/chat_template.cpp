// SPDX-License-Identifier: Apache-2.0
// Chat templates against tests/golden/chat_templates.py, which asked Python's Jinja2; documents in rows.
#include "data/text/chat_template.h"

#include <fstream>

#include "data/text/documents.h"
#include "io/file_reader.h"
#include "tests/data/fixture.h"

namespace weft::data::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

/// "" where there is no error.
std::string error_or_none(auto&& action) {
  try {
    action();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

const std::filesystem::path kTemplates = std::string(WEFT_GOLDEN) + "/chat_templates";

TEST(Jinja, EqualsPythons) {
  const Json cases = Json::parse(read_text(kTemplates / "cases.json", "cases"));
  ASSERT_GT(cases.size(), 250u);
  int64_t refused = 0;
  for (const Json& one : cases) {
    const auto source = one["template"].get<std::string>();
    std::string text;
    const std::string error =
        error_or_none([&] { text = JinjaTemplate(source, "template").render(one["variables"]).text; });
    if (one.contains("error")) {
      EXPECT_THAT(error, ::testing::StartsWith("template: line ")) << source;
    } else if (error.find("not supported") != std::string::npos) {
      ++refused;
    } else {
      EXPECT_EQ(error, "") << source;
      EXPECT_EQ(text, one["text"].get<std::string>()) << source;
    }
  }
  EXPECT_LE(refused, 1) << "the power of two numbers";
}

TEST(Jinja, NamesWhatItDoesNotSupport) {
  for (const Json& source : Json::parse(read_text(kTemplates / "unsupported.json", "cases"))) {
    const auto text = source.get<std::string>();
    EXPECT_THAT(error_text([&] { JinjaTemplate("a\n" + text, "t").render(Json::object()); }),
                ::testing::AllOf(HasSubstr("t: line 2: "), HasSubstr("not supported")))
        << text;
  }
}

TEST(Jinja, EndsOnEveryInput) {
  const auto error = [](const std::string& source) {
    return error_text([&] { JinjaTemplate(source, "t").render(Json::object()); });
  };
  EXPECT_THAT(error("{{ " + std::string(1000, '(') + "1" + std::string(1000, ')') + " }}"), HasSubstr("nested parts"));
  EXPECT_THAT(error("{{ " + std::string(100'000, '-') + "1 }}"), HasSubstr("nested parts"));
  EXPECT_THAT(error("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"),
              HasSubstr("more than 1000000 steps"));
  EXPECT_THAT(error("{% set ns = namespace(x='ab') %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}"),
              HasSubstr("+: the text has more than"));
  EXPECT_THAT(error("{% set ns = namespace(x=[]) %}{% for i in range(99) %}{% set ns.x = [ns.x] %}{% endfor %}"),
              HasSubstr("expected lists of at most 64 levels"));
  EXPECT_THAT(error("{% set ns = namespace() %}{% set ns.x = ns %}"), HasSubstr("a member that is no namespace"));
  EXPECT_THAT(error("{{ 9223372036854775807 + 1 }}"), HasSubstr("beyond 64 bits"));
  EXPECT_EQ(error("{{ range(-9, 9223372036854775807) }}"),
            "t: line 1: range: expected at most 100000 numbers, got 9223372036854775816");
  const auto written = [](const std::string& source) { return JinjaTemplate(source, "t").render(Json::object()).text; };
  EXPECT_EQ(written("{{ range(-9223372036854775807, 9223372036854775807, 6000000000000000000)|list }}"),
            "[-9223372036854775807, -3223372036854775807, 2776627963145224193, 8776627963145224193]");
  EXPECT_EQ(written("{{ range(5, -9223372036854775807, -9223372036854775807)|list }}"), "[5, -9223372036854775802]");
}

/// A folder with a family's template.
struct Folder {
  TemporaryFolder folder;
  explicit Folder(const std::string& family) {
    const Json config{{"bos_token", "<s>"},
                      {"eos_token", {{"content", "</s>"}}},
                      {"chat_template", read_text(kTemplates / (family + ".jinja"), "template")}};
    std::ofstream(folder / "tokenizer_config.json") << config.dump();
  }
};

std::string marked(const std::vector<TextPart>& parts) {
  std::string text;
  for (const TextPart& part : parts) text += part.answer ? "{" + part.text + "}" : part.text;
  return text;
}

TEST(ChatTemplate, FindsTheAssistantsTexts) {
  const Json messages = Json::parse(R"([{"role": "user", "content": "A?"}, {"role": "assistant", "content": " b "},
    {"role": "user", "content": "b?"}, {"role": "assistant", "content": "c"}])");
  const std::vector<AddedToken> ends{{.content = "<|eot_id|>"}, {.content = "<|im_end|>"}, {.content = "</s>"}};
  const auto of = [&](const std::string& family) {
    const Folder folder(family);
    return marked(ChatTemplate::from_folder(folder.folder / "")->parts(messages, ends));
  };
  EXPECT_EQ(of("llama"),
            "<s><|start_header_id|>system<|end_header_id|>\n\n<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nA?"
            "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{b<|eot_id|>}<|start_header_id|>user"
            "<|end_header_id|>\n\nb?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n{c<|eot_id|>}");
  EXPECT_EQ(of("mistral"), "<s>[INST] A?[/INST]{ b</s>}[INST] b?[/INST]{ c</s>}");
  EXPECT_EQ(of("qwen3"),
            "<|im_start|>user\nA?<|im_end|>\n<|im_start|>assistant\n{ b <|im_end|>}\n<|im_start|>user\nb?<|im_end|>\n"
            "<|im_start|>assistant\n{<think>\n\n</think>\n\nc<|im_end|>}\n");
  EXPECT_EQ(of("marked"),
            "<|user|>\nA?<|end|>\n<|assistant|>\n{ b <|end|>\n}<|user|>\nb?<|end|>\n<|assistant|>\n"
            "{c<|end|>\n}");
  const Folder folder("smollm");
  const auto smollm = *ChatTemplate::from_folder(folder.folder / "");
  EXPECT_THAT(smollm.render(messages, true), ::testing::EndsWith("c<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_EQ(smollm.end_token(), "</s>");
}

TEST(ChatTemplate, SaysWhatIsWrong) {
  const TemporaryFolder none;
  EXPECT_FALSE(ChatTemplate::from_folder(none / ""));
  const auto with = [](const std::string& source, const Json& messages) {
    const TemporaryFolder folder;
    std::ofstream(folder / "chat_template.jinja") << source;
    return error_text([&] { ChatTemplate::from_folder(folder / "")->parts(messages, {}); });
  };
  const Json messages = Json::parse(R"([{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}])");
  EXPECT_THAT(with("{{ messages|length }}", messages), HasSubstr("does not follow the text of the messages before it"));
  EXPECT_THAT(with("{% for m in messages %}{{ m.content|lower }}{% endfor %}", messages),
              HasSubstr("the text lacks the content of message 1. `{% generation %}` blocks"));
  EXPECT_THAT(with("", Json::array()), HasSubstr("expected a list of messages, got []"));
  EXPECT_THAT(with("", {{{"content", "x"}}}), HasSubstr("expected a message with a role, got"));
  EXPECT_THAT(with("", {{{"role", "assistant"}, {"content", nullptr}}}),
              HasSubstr("a text as the assistant's content"));
  EXPECT_THAT(with("{{ raise_exception('No system.') }}", messages),
              HasSubstr("chat_template.jinja: line 1: the template refuses the conversation: No system."));
  std::ofstream(none / "tokenizer_config.json") << R"({"chat_template": 5})";
  EXPECT_THAT(error_text([&] { ChatTemplate::from_folder(none / ""); }),
              HasSubstr("tokenizer_config.json: chat_template: expected a text, or a list"));
  std::ofstream(none / "tokenizer_config.json") << R"({"chat_template": [{"name": 5, "template": "x"}]})";
  EXPECT_THAT(error_text([&] { ChatTemplate::from_folder(none / ""); }),
              HasSubstr("chat_template: expected objects with a text as their name and template, got {\"name\":5,"));
}

TEST(Documents, ReadsTheThreeKindsOfLines) {
  EXPECT_EQ(kind_of_json_lines("a text"), JsonLines::none);
  EXPECT_EQ(kind_of_json_lines("\n{\"text\": \"a\"}"), JsonLines::texts);
  EXPECT_EQ(kind_of_json_lines("{\"messages\": []}"), JsonLines::examples);
  const BytePair bytes = BytePair::of_bytes("abcdef");
  const auto examples =
      text_examples("{\"text\": \"ab\"}\n\n{\"prompt\": \"ab\", \"completion\": \"cd\"}\n", "f", nullptr, {});
  ASSERT_TRUE(examples);
  const TokenDocument text = encode_example((*examples)[0], bytes, 5, false);
  EXPECT_THAT(text.tokens, ElementsAre(0, 1, 5));
  const TokenDocument pair = encode_example((*examples)[1], bytes, 5, false);
  EXPECT_THAT(pair.tokens, ElementsAre(0, 1, 2, 3, 5));
  EXPECT_THAT(pair.trained, ElementsAre(false, false, true, true, true));
  EXPECT_THAT(encode_example((*examples)[1], bytes, -1, true).trained, ElementsAre(false, true, true, true));
  EXPECT_FALSE(text_examples("no", "f", nullptr, {}));
  EXPECT_THAT(error_text([&] { text_examples("{\"text\": \"a\"}\n{\"x\": 1}", "f", nullptr, {}); }),
              HasSubstr("f: line 2: expected an object with messages, with a prompt and a completion, or with a text"));
  EXPECT_THAT(error_text([&] { text_examples("{\"messages\": []}", "f", nullptr, {}); }),
              HasSubstr("f: line 1: expected a tokenizer with a chat template for messages"));
}

TEST(Documents, PacksRowsByBestFit) {
  const auto document = [](int64_t length, int64_t first) {
    TokenDocument made;
    for (int64_t i = 0; i < length; ++i) made.tokens.push_back(first + i), made.trained.push_back(i >= 2);
    return made;
  };
  // Inputs of 5, 2, 4 (cut from 9), 3 and 0 places; the last and the one of two tokens are not trained.
  const std::vector<TokenDocument> documents{document(3, 10), document(4, 20), document(12, 30),
                                             document(2, 50), document(0, 0),  document(3, 60)};
  const DocumentRows rows(documents, 6, DocumentRows::Fill::packed);
  ASSERT_EQ(rows.size(), 3);
  EXPECT_EQ(rows.trained(), 1 + 2 + 5 + 1);
  EXPECT_EQ(rows.tokens(), 3 + 4 + 7 + 3);
  EXPECT_EQ(rows.cut(), 1);
  EXPECT_EQ(rows.left_out(), 2);
  const auto [first, first_next] = rows.get(0);
  EXPECT_THAT(first.to_vector<int64_t>(), ElementsAre(30, 31, 32, 33, 34, 35, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(first_next.to_vector<int64_t>(), ElementsAre(-100, 32, 33, 34, 35, 36));
  const auto [second, second_next] = rows.get(1);
  EXPECT_THAT(second.to_vector<int64_t>(), ElementsAre(20, 21, 22, 10, 11, 0, 0, 0, 0, 3, 3, 5));
  EXPECT_THAT(second_next.to_vector<int64_t>(), ElementsAre(-100, 22, 23, -100, 12, -100));
  EXPECT_EQ(std::get<0>(rows.get(2)).sizes(), (Shape{2, 6}));
  const DocumentRows single(documents, 6, DocumentRows::Fill::single);
  ASSERT_EQ(single.size(), 4);
  EXPECT_THAT(std::get<0>(single.get(0)).to_vector<int64_t>(), ElementsAre(10, 11, 0, 0, 0, 0));
  EXPECT_THAT(error_text([&] { DocumentRows({document(2, 0)}, 6, DocumentRows::Fill::packed); }),
              HasSubstr("expected documents with tokens to train, got none in 1"));
  EXPECT_THAT(error_text([&] { single.get(4); }), HasSubstr("expected an index below 4, got 4"));
}

}  // namespace
}  // namespace weft::data::testing
