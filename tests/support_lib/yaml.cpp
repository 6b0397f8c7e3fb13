// SPDX-License-Identifier: Apache-2.0
#include "apps/support/yaml.h"

#include <gmock/gmock.h>

#include "apps/support/yaml_tree.h"
#include "tests/support/error_text.h"
#include "tests/train/temporary_folder.h"

namespace weft {
namespace {

using support::YamlSection;
using test::TemporaryFolder;

#define NEEDS_YAML() \
  if (!support::have_yaml()) GTEST_SKIP() << "this build has no yaml-cpp"

/// A file `a.yaml` of this text.
struct File {
  explicit File(const std::string& text) { test::write_file(path(), text); }
  std::filesystem::path path() const { return folder / "a.yaml"; }

  TemporaryFolder folder;
};

/// `PATH:3: rest` as `3: rest`.
template <class Body>
std::string error_in(const File& file, Body&& body) {
  const std::string text = error_text(body), path = file.path().string() + ":";
  EXPECT_TRUE(text.starts_with(path)) << text;
  return text.substr(std::min(path.size(), text.size()));
}

/// The error of opening section `default` of this text, or of reading key `x` of it as a T.
template <class T = int64_t>
std::string error_of_yaml(const std::string& text) {
  const File file(text);
  return error_in(file, [&] {
    YamlSection section(file.path(), "default");
    T value{};
    section.read("x", value);
  });
}

constexpr const char* kBothSections = R"(default: &DEFAULT
  num_data_workers: 1
  lr: 1E-3
  log_to_screen: !!bool True
  save_checkpoint: !!bool no
  train_path: ''
  val_path: None
  scale: !!float 5E-4   # a comment
  name: cnn
test:
  <<: *DEFAULT
  lr: +0.5
  sizes: [16, 32]
)";

TEST(Yaml, ValuesOfASection) {
  NEEDS_YAML();
  const File file(kBothSections);
  YamlSection section(file.path(), "default");
  int64_t workers = 0;
  double lr = 0, scale = 0;
  bool log = false, save = true;
  std::string train = "x", val = "unchanged", name;
  EXPECT_TRUE(section.read("num_data_workers", workers));
  EXPECT_TRUE(section.read("lr", lr));
  EXPECT_TRUE(section.read("scale", scale));
  EXPECT_TRUE(section.read("log_to_screen", log));
  EXPECT_TRUE(section.read("save_checkpoint", save));
  EXPECT_TRUE(section.read("train_path", train));
  EXPECT_FALSE(section.read("val_path", val)) << "the text 'None' is no value";
  EXPECT_FALSE(section.read("sizes", name));
  EXPECT_EQ(workers, 1);
  EXPECT_EQ(lr, 1e-3);
  EXPECT_EQ(scale, 5e-4);
  EXPECT_TRUE(log);
  EXPECT_FALSE(save);
  EXPECT_EQ(train, "");
  EXPECT_EQ(val, "unchanged");
  EXPECT_TRUE(section.read("name", name));
  EXPECT_EQ(name, "cnn");
  section.finish();
}

TEST(Yaml, ASectionThatMergesAnother) {
  NEEDS_YAML();
  const File file(kBothSections);
  YamlSection section(file.path(), "test");
  double lr = 0;
  int64_t workers = 0;
  std::vector<int64_t> sizes;
  EXPECT_TRUE(section.read("lr", lr));
  EXPECT_EQ(lr, 0.5) << "its own value wins, although the merged one comes first";
  EXPECT_TRUE(section.read("num_data_workers", workers));
  EXPECT_EQ(workers, 1);
  EXPECT_TRUE(section.read("sizes", sizes));
  EXPECT_EQ(sizes, (std::vector<int64_t>{16, 32}));
}

TEST(Yaml, MergesOfSeveralAndNested) {
  NEEDS_YAML();
  const File file(R"(a: &A {x: 1, y: 1, z: 1}
b: &B {y: 2, w: 2}
c: &C
  <<: *A
  z: 3
d:
  v: &V [7, 8]
  <<: [*B, *C]
  u: *V
)");
  YamlSection section(file.path(), "d");
  std::map<std::string, int64_t> got;
  for (const char* key : {"x", "y", "z", "w"}) EXPECT_TRUE(section.read(key, got[key])) << key;
  EXPECT_EQ(got, (std::map<std::string, int64_t>{{"x", 1}, {"y", 2}, {"z", 3}, {"w", 2}}))
      << "the first of a list wins; what B lacks comes from C, and what C lacks from A";
  std::vector<int64_t> u;
  EXPECT_TRUE(section.read("u", u));
  EXPECT_EQ(u, (std::vector<int64_t>{7, 8}));
  section.ignore("v");
  section.finish();
}

TEST(Yaml, AWholeFile) {
  NEEDS_YAML();
  const File file("--- # sweep\nlr: 0.1\nname: ~\nempty:\n");
  YamlSection section(file.path());
  double lr = 0;
  std::string name = "unchanged";
  EXPECT_TRUE(section.read("lr", lr));
  EXPECT_FALSE(section.read("name", name) || section.read("empty", name));
  EXPECT_EQ(name, "unchanged");
  const YamlSection moved = std::move(section);
  moved.finish();
}

TEST(Yaml, WrongFiles) {
  NEEDS_YAML();
  const TemporaryFolder folder;
  const std::string none = (folder / "none.yaml").string();
  EXPECT_EQ(error_text([&] { YamlSection{none}; }), none + ": expected a YAML file, got none there");
  EXPECT_EQ(error_text([&] { YamlSection{folder.path()}; }),
            folder.path().string() + ": expected a YAML file, got none there");
  test::write_file(none, "");
  EXPECT_EQ(error_text([&] { YamlSection{none}; }), none + ": expected keys with values, got an empty file");
  test::write_file(none, std::string((4 << 20) + 1, '\n'));
  EXPECT_EQ(error_text([&] { YamlSection{none}; }), none + ": expected a YAML file of at most 4 MiB, got a larger one");
  EXPECT_EQ(error_of_yaml("default: {a: 1\nb: 2\n"), "2: not YAML: end of map flow not found");
  EXPECT_THAT(error_of_yaml("a: 1\ndefault: *NOWHERE\n"),  // yaml-cpp 0.8 adds the name
              testing::StartsWith("2: not YAML: the referenced anchor is not defined"));
  EXPECT_EQ(error_of_yaml("- 1\n- 2\n"), "1: expected keys with values, got a list");
  EXPECT_EQ(error_of_yaml("\njust a text\n"), "2: expected keys with values, got 'just a text'");
  EXPECT_EQ(error_of_yaml("default:\n  x: 1\n---\ndefault: 2\n"), "3: expected one document, got a second one");
  EXPECT_EQ(error_of_yaml("default:\n  [1, 2]: 3\n"), "2: expected a key that is a text");
  EXPECT_EQ(error_of_yaml("default: &A\n  x: 1\n  <<: *A\n"),
            "3: expected values that end, got one that contains itself");
  EXPECT_THAT(error_of_yaml("default: " + std::string(5000, '[') + std::string(5000, ']')),
              testing::HasSubstr("1: not YAML: "));
}

TEST(Yaml, WrongSections) {
  NEEDS_YAML();
  const File file(kBothSections);
  EXPECT_EQ(error_text([&] { YamlSection(file.path(), "defalt"); }),
            file.path().string() + ": expected a section 'defalt', got none. Did you mean 'default'?");
  EXPECT_EQ(error_text([&] { YamlSection(file.path(), "long-run"); }),
            file.path().string() + ": expected a section 'long-run', got none. Known: default, test.");
  EXPECT_EQ(error_of_yaml("a: 1\ndefault:\n"), "2: default: expected keys with values, got nothing");
  EXPECT_EQ(error_of_yaml("default: 5\n"), "1: default: expected keys with values, got '5'");
  EXPECT_EQ(error_of_yaml("default:\n  lr: 1\n  x: 1\n  lr: 2\n"),
            "4: expected each key once, got 'lr' again after line 2");
  EXPECT_EQ(
      error_of_yaml("a: &A {x: 1}\ndefault:\n  <<: *A\n  <<: *A\n"),
      "4: expected each key once, got '<<' again after line 3. Several sections are merged by a list: <<: [*A, *B]");
  EXPECT_EQ(error_of_yaml("default:\n  <<: 5\n"),
            "2: <<: expected a section or a list of sections (<<: *NAME), got '5'");
  EXPECT_EQ(error_of_yaml("default:\n  <<: [{y: 1}, [2]]\n"),
            "2: <<: expected a section or a list of sections (<<: *NAME), got a list");
}

TEST(Yaml, WrongValues) {
  NEEDS_YAML();
  EXPECT_EQ(error_of_yaml("default:\n  x: 2.5\n"), "2: x: expected a whole number, got '2.5'");
  EXPECT_EQ(error_of_yaml("default:\n  x: '25'\n"), "2: x: expected a whole number, got the text '25'");
  EXPECT_EQ(error_of_yaml("default:\n  x: !!float 5\n"), "2: x: expected a whole number, got !!float '5'");
  EXPECT_EQ(error_of_yaml("default:\n  x: !mine 5\n"), "2: x: expected a whole number, got !mine '5'");
  EXPECT_EQ(error_of_yaml("default:\n  x: [5]\n"), "2: x: expected a whole number, got a list");
  EXPECT_EQ(error_of_yaml("default:\n  x:\n    y: 5\n"), "2: x: expected a whole number, got keys with values");
  EXPECT_EQ(error_of_yaml("default:\n  x: 99999999999999999999\n"),
            "2: x: expected a whole number, got '99999999999999999999'");
  EXPECT_EQ(error_of_yaml<double>("default:\n  x: fast\n"), "2: x: expected a number, got 'fast'");
  EXPECT_EQ(error_of_yaml<double>("default:\n  x: .inf\n"), "2: x: expected a number, got '.inf'");
  EXPECT_EQ(error_of_yaml<double>("default:\n  x: +-1\n"), "2: x: expected a number, got '+-1'");
  EXPECT_EQ(error_of_yaml<bool>("default:\n  x: maybe\n"), "2: x: expected true or false, got 'maybe'");
  EXPECT_EQ(error_of_yaml<bool>("default:\n  x: !!bool 1\n"), "2: x: expected true or false, got !!bool '1'");
  EXPECT_EQ(error_of_yaml<std::string>("default:\n  x: [a]\n"), "2: x: expected a text, got a list");
  EXPECT_EQ(error_of_yaml<std::vector<int64_t>>("default:\n  x: 1,2\n"), "2: x: expected a list, got '1,2'");
  EXPECT_EQ(error_of_yaml<std::vector<int64_t>>("default:\n  x: [1, b]\n"), "2: x: expected a whole number, got 'b'");
  // The line is that of the key, also where the value stands elsewhere.
  EXPECT_EQ(error_of_yaml("a: &A\n  x: fast\nb: &B five\ndefault:\n  <<: *A\n"),
            "2: x: expected a whole number, got 'fast'");
  EXPECT_EQ(error_of_yaml("b: &B five\ndefault:\n  x: *B\n"), "3: x: expected a whole number, got 'five'");
}

TEST(Yaml, Choices) {
  NEEDS_YAML();
  const File file("default:\n  optimizer: sgd\n  scheduler: cosin\n  model: resnet\n");
  YamlSection section(file.path(), "default");
  std::string word = "adam";
  EXPECT_TRUE(section.read("optimizer", word, {"adam", "sgd"}));
  EXPECT_EQ(word, "sgd");
  EXPECT_FALSE(section.read("loss_func", word, {"mse"}));
  EXPECT_EQ(error_in(file,
                     [&] {
                       section.read("scheduler", word, {"none", "cosine"});
                     }),
            "3: scheduler: unknown value 'cosin'. Did you mean 'cosine'?");
  EXPECT_EQ(error_in(file, [&] { section.read("model", word, {"cnn"}); }),
            "4: model: unknown value 'resnet'. Known: cnn.");
  EXPECT_EQ(word, "sgd");
}

TEST(Yaml, RangesAndUnknownKeys) {
  NEEDS_YAML();
  const File file("default:\n  batch_size: 0\n  lr: -1\n  bacth: 3\n  zzz: 4\n");
  YamlSection section(file.path(), "default");
  int64_t batch = 32;
  double lr = 0.5;
  EXPECT_EQ(error_in(file, [&] { section.read("batch_size", batch, {.min = 1}); }),
            "2: batch_size: expected a value at least 1, got 0");
  EXPECT_EQ(error_in(file, [&] { section.read("lr", lr, {.min = 0, .above = true}); }),
            "3: lr: expected a value above 0, got -1");
  EXPECT_EQ(batch, 32);
  EXPECT_EQ(lr, 0.5);
  section.read("batch", batch);
  EXPECT_EQ(error_in(file, [&] { section.finish(); }), "4: unknown key 'bacth'. Did you mean 'batch'?");
  section.ignore("bacth");
  EXPECT_EQ(error_in(file, [&] { section.finish(); }), "5: unknown key 'zzz'. Known: batch_size, lr, batch, bacth.");
}

// Sections that merge each other a thousand deep, or a hundred thousand keys a hundred times, end in an error.
TEST(Yaml, SaysWhereAValueStands) {
  NEEDS_YAML();
  const File file("default:\n  a: 1\n\n  b: 2\n");
  YamlSection section(file.path(), "default");
  EXPECT_EQ(section.where("b"), file.path().string() + ":4: b");
  EXPECT_EQ(section.where("c"), file.path().string() + ": c");
}

TEST(Yaml, HarmfulMerges) {
  NEEDS_YAML();
  std::string deep = "s0: &S0 {x: 1}\n";
  for (int i = 1; i <= 1000; ++i) deep += str("s", i, ": &S", i, " {<<: *S", i - 1, "}\n");
  EXPECT_EQ(error_of_yaml(deep + "default:\n  <<: *S1000\n"),
            "902: expected '<<' to reach at most 100 sections deep, got more");
  std::string wide = "s0: &S0\n";
  for (int i = 0; i < 100000; ++i) wide += str("  k", i, ": 1\n");
  for (int i = 1; i <= 50; ++i) wide += str("s", i, ": &S", i, " {<<: *S", i - 1, "}\n");
  EXPECT_THAT(error_of_yaml(wide + "default:\n  <<: *S50\n"),
              testing::HasSubstr(": expected at most 1000000 merged keys, got more"));
}

TEST(Yaml, WithoutYamlCpp) {
  if (support::have_yaml()) GTEST_SKIP() << "this build has no stub: WEFT_WITHOUT=yaml-cpp gives one";
  EXPECT_EQ(
      error_text([] { YamlSection("a.yaml", "default"); }),
      "a.yaml: expected a build with yaml-cpp, got one without. Install libyaml-cpp-dev, configure and build again");
}

}  // namespace
}  // namespace weft
