// SPDX-License-Identifier: Apache-2.0
// Malicious files, passed to a program as by a user: one line of error names the problem and its position, and nothing
// of them is executed.
#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using testing::HasSubstr;
using namespace std::string_literals;

struct Harm {
  test::TemporaryFolder folder;

  void expect_refusal(const std::string& name, const std::string& content, const std::string& text) const {
    test::write_file(folder / name, content);
    expect_refusal(name, text);
  }
  void expect_refusal(const std::string& name, const std::string& text) const {
    const auto run = tests::shell(WEFT_WEIGHTS " show " + (folder / name).string());
    EXPECT_NE(run.exit_code, 0) << name;
    EXPECT_LT(run.exit_code, 128) << name << ": ended by a signal";
    EXPECT_THAT(run.output, HasSubstr("error: ")) << name;
    EXPECT_THAT(run.output, HasSubstr(text)) << name;
    EXPECT_EQ(std::count(run.output.begin(), run.output.end(), '\n'), 1) << run.output;
    EXPECT_FALSE(std::filesystem::exists(folder / "sign")) << name << " has run";
  }
};

/// As PyTorch 1.5 and older wrote: three small pickles, the object, the storages.
std::string legacy(const std::string& object) {
  return "\x80\2\x8a\nl\xfc\x9c"
         "F\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}." +
         object + "].";
}

std::string short_text(const std::string& text) { return "U" + std::string(1, static_cast<char>(text.size())) + text; }

TEST(HarmfulFiles, PicklesInBothOfPyTorchsFormats) {
  const Harm harm;
  const std::string touch = short_text("touch " + (harm.folder / "sign").string());
  // Thirty lists, each holding the one before ten times.
  std::string laughs = "]q\0"s;
  for (char i = 0; i < 30; ++i) {
    laughs += "](";
    for (int j = 0; j < 10; ++j) laughs += {'h', i};
    laughs += {'e', 'q', static_cast<char>(i + 1)};
  }
  const std::pair<std::string, std::string> pickles[] = {
      {"\x80\2"
       "cos\nsystem\n" +
           touch + "\x85R.",
       "GLOBAL at byte "},
      {"\x80\4" + short_text("posix") + short_text("system") + "\x93" + touch + "\x85R.", "STACK_GLOBAL at byte "},
      {"\x80\2"
       "cbuiltins\neval\n" +
           short_text("open('/x')") + "\x85R.",
       "the file names 'builtins.eval'"},
      {"\x80\2"
       "ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
       "the file names 'torch._utils._rebuild_tensor_v2."},
      {"\x80\2(ios\nsystem\n.", "INST at byte "},
      {"\x80\2(cos\nsystem\n" + touch + "o.", "GLOBAL at byte "},
      {"\x80\2(" + touch + "o.", "OBJ at byte "},
      {"\x80\2N)\x81.", "NEWOBJ at byte "},
      {"\x80\2}\x82\1.", "EXT1 at byte "},
      {"\x80\2Nr\xff\xff\xff\xff.", "LONG_BINPUT at byte "},
      {"\x80\2"
       "X\xff\xff\xff\x7f"
       "a.",
       "bytes of text"},
      {"\x80\2]q\0h\0a."s, "EMPTY_LIST at byte "},
      {"\x80\2}q\0X\1\0\0\0ah\0s."s, "EMPTY_DICT at byte "},
      {"\x80\2(" + laughs + "t.", "far more by repetition"},
      {"\x80\2" + std::string(300'000, '('), "pickle"},
  };
  for (size_t i = 0; i < std::size(pickles); ++i) {
    const auto& [pickle, text] = pickles[i];
    harm.expect_refusal(str(i, "_legacy.pt"), legacy(pickle), text);
    if (!have_zip()) continue;
    test::write_zip(harm.folder / str(i, ".pt"), {{"archive/data.pkl", pickle}, {"archive/version", "3\n"}});
    harm.expect_refusal(str(i, ".pt"), text);
  }
}

TEST(HarmfulFiles, SafetensorsHeaders) {
  const Harm harm;
  const auto file = [](uint64_t length, const std::string& header, const std::string& data = "") {
    return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
  };
  const auto one = [&](const std::string& body, const std::string& data) {
    const std::string header = "{" + body + "}";
    return file(header.size(), header, data);
  };
  const std::string eight(8, 'x');
  harm.expect_refusal("a.safetensors", file(uint64_t{1} << 63, "{}"),
                      "expected a header of at most 100000000 bytes, got 9223372036854775808");
  harm.expect_refusal("b.safetensors", file(~uint64_t{0}, "{}"), "expected a header of at most 100000000 bytes");
  harm.expect_refusal("c.safetensors", file(1000, "{}"),
                      "expected a header of 1000 bytes, got 2. Is the file cut short?");
  harm.expect_refusal("d.safetensors", file(10, "{\"a\":{\"dty"), "expected a JSON header, got damaged text");
  harm.expect_refusal("e.safetensors",
                      one(R"("a":{"dtype":"U8","shape":[9223372036854775808],"data_offsets":[0,8]})", eight),
                      "tensor 'a': ");
  harm.expect_refusal("f.safetensors",
                      one(R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,9223372036854775808]})", eight),
                      "tensor 'a': ");
  harm.expect_refusal("g.safetensors",
                      one(R"("a":{"dtype":"U8","shape":[4294967296,2147483648],"data_offsets":[0,8]})", eight),
                      "tensor 'a': expected");
  harm.expect_refusal("h.safetensors",
                      one(R"("a":{"dtype":"U8","shape":[6],"data_offsets":[0,6]},)"
                          R"("b":{"dtype":"U8","shape":[4],"data_offsets":[4,8]})",
                          eight),
                      "tensor 'b' begins at byte 4 of the data, expected 6 (two tensors overlap)");
  harm.expect_refusal("i.safetensors", one(R"("a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})", "cut"),
                      "Is the file cut short?");
}

}  // namespace
}  // namespace weft
