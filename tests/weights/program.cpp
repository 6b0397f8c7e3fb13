// SPDX-License-Identifier: Apache-2.0
// build/bin/weft-weights as a user runs it.
#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "io/safetensors.h"
#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::TemporaryFolder;
using testing::HasSubstr;

tests::Outcome run(const std::string& arguments) { return tests::shell(std::string(WEFT_WEIGHTS) + " " + arguments); }

class Program : public testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  StateDict state() const {
    StateDict result;
    result.tensors = {{"fc.weight", Tensor::from(std::vector<float>{1, -2, 0.5f, 4}, Shape{2, 2})},
                      {"fc.steps", Tensor::from(std::vector<int64_t>{7}, Shape{})}};
    return result;
  }
  std::string saved(const std::string& name, const StateDict& weights) const {
    write_safetensors(file(name), weights, {{"epoch", "3"}});
    return file(name);
  }
  TemporaryFolder folder_;
};

TEST_F(Program, Show) {
  const std::string path = saved("a.safetensors", state());
  const auto shown = run("show " + path);
  EXPECT_EQ(shown.exit_code, 0);
  EXPECT_EQ(shown.output, path +
                              ": safetensors, 2 tensors, 5 elements, 24 bytes\n"
                              "  epoch = 3\n"
                              "fc.steps   i64    []\n"
                              "fc.weight  f32    [2,2]\n");
  const auto json = nlohmann::json::parse(run("show --json --prefix fc. --add-prefix head. " + path).output);
  EXPECT_EQ(json["format"], "safetensors");
  EXPECT_EQ(json["elements"], 5);
  EXPECT_EQ(json["bytes"], 24);
  EXPECT_EQ(json["metadata"]["epoch"], "3");
  EXPECT_EQ(json["tensors"][1],
            nlohmann::json::parse(R"({"name":"head.weight","dtype":"f32","stored":"F32","shape":[2,2],"bytes":16})"));
  EXPECT_THAT(run("show " + test::golden("every_kind_legacy.pt").string()).output,
              HasSubstr("dtype.i16        i32 (I16)  [2,3]\n"));
  EXPECT_THAT(run("show --key optimizer.state.0 " + test::golden("nested_legacy.pt").string()).output,
              HasSubstr("exp_avg     f32    [3,2,3,3]\n"));
}

TEST_F(Program, ShowListsTheClasses) {
  write_safetensors(file("a.safetensors"), state(), {{"class_names", R"(["cat","a \"dog\"\n"])"}});
  EXPECT_THAT(run("show " + file("a.safetensors")).output,
              HasSubstr("24 bytes\n  class 0 = cat\n  class 1 = a \"dog\"\\x0a\nfc.steps"));
  write_safetensors(file("a.safetensors"), state(), {{"class_names", "cat"}});
  EXPECT_THAT(run("show " + file("a.safetensors")).output, HasSubstr("\n  class_names = cat\n"));
}

TEST_F(Program, ConvertThereAndBack) {
  const std::string path = saved("a.safetensors", state());
  std::vector<std::string> formats{"b.safetensors"};
  if (have_zip()) formats.insert(formats.end(), {"b.pt", "b.pth", "b.bin"});
  for (const std::string& name : formats) {
    SCOPED_TRACE(name);
    const auto converted = run("convert " + path + " " + file(name));
    EXPECT_EQ(converted.exit_code, 0) << converted.output;
    EXPECT_EQ(converted.output, "wrote   " + file(name) + "\n        2 tensors, 24 bytes\n");
    EXPECT_EQ(run("convert " + file(name) + " " + file("c.safetensors")).exit_code, 0);
    test::expect_same_tensors(state(), read_safetensors(file("c.safetensors")).state);
    EXPECT_EQ(run("diff " + path + " " + file(name)).exit_code, 0);
  }
}

TEST_F(Program, Checkpoints) {
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", state()}, {"optimizer", {{}, {{"lr", 0.1}}}}};
  checkpoint.integers["epoch"] = 3;
  save_checkpoint(file("run.safetensors"), checkpoint);
  EXPECT_EQ(run("convert " + file("run.safetensors") + " " + file("model.safetensors")).exit_code, 0);
  test::expect_same_tensors(state(), read_safetensors(file("model.safetensors")).state);
  EXPECT_EQ(read_safetensors(file("model.safetensors")).metadata.at("epoch"), "3");
  EXPECT_EQ(run("diff " + file("run.safetensors") + " " + file("model.safetensors")).exit_code, 0);
  const std::string convert = "convert --checkpoint " + file("run.safetensors") + " ";
  EXPECT_EQ(run(convert + file("copy.safetensors")).output,
            "wrote   " + file("copy.safetensors") + "\n        model: 2 tensors\n        optimizer: 0 tensors\n");
  EXPECT_EQ(test::read_file(file("copy.safetensors")), test::read_file(file("run.safetensors")));
  EXPECT_EQ(run(convert + file("copy.pt")).exit_code, 2);
  EXPECT_EQ(run(convert + "--dtype bf16 " + file("copy.safetensors")).exit_code, 2);
}

TEST_F(Program, ConvertChangesNamesDTypesAndShards) {
  const std::string path = saved("a.safetensors", state());
  EXPECT_EQ(run("convert --dtype bf16 --prefix fc. " + path + " " + file("b.safetensors")).exit_code, 0);
  const StateDict b = read_safetensors(file("b.safetensors")).state;
  EXPECT_EQ(b.tensor("weight").dtype(), DType::bf16);
  EXPECT_EQ(b.tensor("weight").to_vector<float>(), (std::vector<float>{1, -2, 0.5f, 4}));
  EXPECT_EQ(b.tensor("steps").dtype(), DType::i64) << "whole numbers stay";
  EXPECT_EQ(read_safetensors(file("b.safetensors")).metadata,
            (std::map<std::string, std::string>{{"epoch", "3"}, {"format", "pt"}}));
  EXPECT_EQ(run("convert --max-shard-size 10B " + path + " " + file("c.safetensors")).output,
            "wrote   " + file("c-00001-of-00002.safetensors") + "\nwrote   " + file("c-00002-of-00002.safetensors") +
                "\nwrote   " + file("c.safetensors.index.json") + "\n        2 tensors, 24 bytes\n");
  EXPECT_EQ(run("diff " + path + " " + file("c.safetensors.index.json")).exit_code, 0);
}

TEST_F(Program, Diff) {
  const std::string a = saved("a.safetensors", state());
  const auto same = run("diff " + a + " " + a);
  EXPECT_EQ(same.exit_code, 0);
  EXPECT_EQ(same.output, "2 equal, 0 different, 0 only in " + a + ", 0 only in " + a + "\n");

  StateDict other = state();
  other.tensors[0].tensor = Tensor::from(std::vector<float>{1, -2, 0.75f, 4}, Shape{2, 2});
  other.tensors[1].name = "fc.count";
  const std::string b = saved("b.safetensors", other);
  const auto differ = run("diff " + a + " " + b);
  EXPECT_EQ(differ.exit_code, 1);
  EXPECT_EQ(differ.output,
            "- fc.steps i64[]\n~ fc.weight: 1 of 4 values, max abs 0.25, relative 0.0538\n+ fc.count i64[]\n"
            "0 equal, 1 different, 1 only in " +
                a + ", 1 only in " + b + "\n");

  other = state();
  other.tensors[0].tensor = Tensor::from(std::vector<float>{1, -2, 0.75f, 4}, Shape{2, 2});
  saved("b.safetensors", other);
  EXPECT_EQ(run("diff --atol 0.2 " + a + " " + b).exit_code, 1);
  EXPECT_EQ(run("diff --atol 0.25 " + a + " " + b).exit_code, 0);
  EXPECT_EQ(run("diff --rtol 0.34 " + a + " " + b).exit_code, 0);

  other.tensors[0].tensor = state().tensors[0].tensor.to(DType::bf16);
  saved("b.safetensors", other);
  const auto dtype = run("diff " + a + " " + b);
  EXPECT_EQ(dtype.exit_code, 1);
  EXPECT_THAT(dtype.output, HasSubstr("~ fc.weight: f32 and bf16\n"));
  EXPECT_EQ(run("diff --ignore-dtype " + a + " " + b).exit_code, 0);

  other.tensors[0].tensor = state().tensors[0].tensor.reshape({4});
  saved("b.safetensors", other);
  EXPECT_THAT(run("diff " + a + " " + b).output, HasSubstr("~ fc.weight: f32[2,2] and f32[4]\n"));

  // Beyond 2^53 two integers may differ although their doubles are equal; a NaN equals a NaN.
  other.tensors[0].tensor = Tensor::from(std::vector<int64_t>{(int64_t{1} << 53) + 1});
  other.tensors[1].tensor = Tensor::from(std::vector<float>{NAN, 1});
  saved("a.safetensors", other);
  other.tensors[0].tensor = Tensor::from(std::vector<int64_t>{int64_t{1} << 53});
  saved("b.safetensors", other);
  EXPECT_THAT(run("diff " + a + " " + b).output, HasSubstr("1 equal, 1 different"));
  other.tensors[1].tensor = Tensor::from(std::vector<float>{2, 1});
  saved("b.safetensors", other);
  const std::string wrong = run("diff " + a + " " + b).output;
  EXPECT_THAT(wrong, HasSubstr("0 equal, 2 different"));
  EXPECT_THAT(wrong, HasSubstr("max abs nan")) << "whatever follows it";
}

TEST_F(Program, AFullDiskCutsNoTableShort) {
  const std::string a = saved("a.safetensors", state());
  for (const auto& [line, code] : {std::pair("show --json " + a, 1), {"show " + a, 1}, {"diff " + a + " " + a, 2}}) {
    const tests::Outcome full = tests::shell("(" WEFT_WEIGHTS " " + line + " >/dev/full)");
    EXPECT_EQ(full.exit_code, code) << line;
    EXPECT_EQ(full.output,
              "weft-weights: error: standard output: expected to write all of it, got 'No space left on device'\n");
  }
}

TEST_F(Program, ConvertSaysWhatItWouldWrite) {
  const std::string path = saved("a.safetensors", state());
  const auto plan = run("convert --dtype bf16 --dry-run " + path + " " + file("b.safetensors"));
  EXPECT_EQ(plan.exit_code, 0);
  EXPECT_EQ(plan.output, "would write " + file("b.safetensors") + "\n        2 tensors, 16 bytes\n");
  EXPECT_FALSE(std::filesystem::exists(file("b.safetensors")));
}

TEST_F(Program, Errors) {
  const std::string a = saved("a.safetensors", state());
  const auto expect = [](const std::string& arguments, int code, const std::string& text) {
    const auto outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, code) << arguments;
    EXPECT_EQ(outcome.output, "weft-weights: error: " + text + "\n") << arguments;
  };
  const std::string help = " (weft-weights --help lists the flags)";
  expect("", 2, "expected a command: show, convert or diff" + help);
  expect("shwo", 2, "expected a command, got 'shwo'. Did you mean 'show'?" + help);
  expect("show", 2, "show: expected 1 file, got 0" + help);
  expect("convert " + a, 2, "convert: expected 2 files, got 1" + help);
  expect("convert " + a + " b.txt", 2,
         "convert: expected a name that ends in .safetensors, .pt, .pth, .th or .bin, got 'b.txt'" + help);
  expect("convert --max-shard-size 5GB " + a + " b.pt", 2,
         "--max-shard-size: expected a name that ends in .safetensors, got 'b.pt'" + help);
  expect("convert --max-shard-size -5GB " + a + " b.safetensors", 2,
         "--max-shard-size: expected a size such as 5GB or 500MiB, got '-5GB'" + help);
  expect("show /nowhere", 1, "weights: /nowhere: expected to open it, got 'No such file or directory'");
  expect("diff /nowhere " + a, 2, "weights: /nowhere: expected to open it, got 'No such file or directory'");
  expect("show --key model " + a, 1,
         "weights: " + a + ": expected no key for this format, which holds one dict, got 'model'");
  EXPECT_THAT(run("show --map hf_dinov1 " + a).output, HasSubstr("hf_dinov2"));
  EXPECT_EQ(run("show --map hf_dinov1 " + a).exit_code, 2);
  EXPECT_THAT(run("--help").output, HasSubstr("weft-weights convert [flags] FROM TO"));
  EXPECT_EQ(run("--help").exit_code, 0);
  EXPECT_THAT(run("diff --help").output, HasSubstr("--atol"));
}

}  // namespace
}  // namespace weft
