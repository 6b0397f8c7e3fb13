// SPDX-License-Identifier: Apache-2.0
// Checkpoints as values: Weft and PyTorch read Weft's files, and Weft reads PyTorch's.
#include "io/torch/torch_object.h"

#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::error_of;
using test::TemporaryFolder;
using Dict = TorchObject::Dict;
using List = TorchObject::List;

TorchObject integer(int64_t value) { return {value}; }
TorchObject number(double value) { return {value}; }

/// In the form of Python's repr(); tensors by their values.
std::string repr(const TorchObject& object) {
  const auto items = [](const auto& list, const auto& text) {
    std::string out;
    for (const auto& item : list) out += (out.empty() ? "" : ", ") + text(item);
    return out;
  };
  if (std::get_if<TorchObject::None>(&object.is)) return "None";
  if (const auto* is = std::get_if<bool>(&object.is)) return *is ? "True" : "False";
  if (const auto* is = std::get_if<int64_t>(&object.is)) return str(*is);
  if (const auto* is = std::get_if<double>(&object.is)) {
    const std::string text = str(*is);
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  if (const auto* is = std::get_if<std::string>(&object.is)) return "'" + *is + "'";
  if (const auto* is = std::get_if<Tensor>(&object.is)) return str(is->sizes()) + to_string(*is);
  if (const auto* is = std::get_if<List>(&object.is)) return "[" + items(*is, repr) + "]";
  if (const auto* is = std::get_if<TorchObject::Tuple>(&object.is))
    return "(" + items(is->items, repr) + (is->items.size() == 1 ? ",)" : ")");
  return "{" +
         items(std::get<Dict>(object.is),
               [](const auto& item) {
                 const auto* name = std::get_if<std::string>(&item.key);
                 return (name != nullptr ? "'" + *name + "'" : str(std::get<int64_t>(item.key))) + ": " +
                        repr(item.value);
               }) +
         "}";
}

/// One of everything, without tensors.
TorchObject values() {
  return {Dict{
      {"none", {TorchObject::None{}}},
      {"flags", {List{{true}, {false}}}},
      {"integers", {List{integer(0), integer(-1), integer(2147483647), integer(2147483648), integer(-2147483649)}}},
      {"extremes", {List{integer(INT64_MIN), integer(INT64_MAX)}}},
      {"numbers", {List{number(0.5), number(-1.25e-30), number(1e300)}}},
      {"texts", {List{{std::string()}, {std::string("a 'quoted' text")}, {std::string("Grüße")}}}},
      {"tuples",
       {List{
           {TorchObject::Tuple{}}, {TorchObject::Tuple{{number(0.9)}}}, {TorchObject::Tuple{{TorchObject{List{}}}}}}}},
      {int64_t{0}, {Dict{}}},
      {int64_t{-7}, {Dict{{"", {TorchObject::None{}}}}}},
  }};
}

TEST(TorchObject, ValuesComeBack) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  write_torch(folder / "a.pt", values());
  const TorchObject read = read_torch(folder / "a.pt");
  EXPECT_EQ(repr(read), repr(values()));
  const auto& numbers = std::get<List>(read.at("numbers", "a").is);
  EXPECT_EQ(numbers[1].number("a"), -1.25e-30) << "all bits";
}

TEST(TorchObject, TensorsComeBackAndShareMemory) {
  NEEDS_ZIP();
  std::mt19937_64 random(std::random_device{}());
  const TemporaryFolder folder;
  const StateDict state = test::random_state(random);
  const Tensor tied = Tensor::from(std::vector<float>{1, 2, 3, 4}, Shape{2, 2});
  write_torch(folder / "a.pt", {Dict{{"model_state", TorchObject::of(state)}, {"x", {List{{tied}, {tied}}}}}});
  const TorchObject read = read_torch(folder / "a.pt");
  test::expect_same_tensors(state, read.at("model_state", "a").state("a"));
  const auto& pair = std::get<List>(read.at("x", "a").is);
  EXPECT_EQ(std::get<Tensor>(pair[0].is).raw_data(), std::get<Tensor>(pair[1].is).raw_data());
  EXPECT_EQ(std::get<Tensor>(pair[1].is).to_vector<float>(), (std::vector<float>{1, 2, 3, 4}));
}

TEST(TorchObject, OfAState) {
  StateDict state;
  state.tensors = {{"w", Tensor::zeros({2})}};
  state.scalars = {{"step", 3}};
  const TorchObject object = TorchObject::of(state);
  EXPECT_EQ(object.at("step", "a").number("a"), 3);
  EXPECT_EQ(std::get<Tensor>(object.at("w", "a").is).raw_data(), state.tensors[0].tensor.raw_data());
  EXPECT_EQ(object.find("v"), nullptr);
  EXPECT_EQ(number(1).find("v"), nullptr);
}

TEST(TorchObject, WhatIsNotThereIsSaid) {
  const TorchObject object{Dict{{"epoch", integer(3)}, {"state", {Dict{{"w", {std::string("x")}}}}}, {5, {Dict{}}}}};
  EXPECT_EQ(object.at("epoch", "ckpt.tar").integer("ckpt.tar"), 3);
  EXPECT_EQ(object.at("epoch", "ckpt.tar").number("ckpt.tar"), 3);
  EXPECT_EQ(error_of([&] { object.at("iters", "ckpt.tar"); }),
            "ckpt.tar: expected the key 'iters', got none. There are: epoch, state, 5");
  EXPECT_EQ(error_of([&] { TorchObject{Dict{}}.at("iters", "ckpt.tar"); }),
            "ckpt.tar: expected the key 'iters', got none. The dict is empty");
  EXPECT_EQ(error_of([&] { object.at("epoch", "ckpt.tar").at("x", "ckpt.tar: epoch"); }),
            "ckpt.tar: epoch: expected a dict with the key 'x', got a whole number");
  EXPECT_EQ(error_of([&] { number(0.5).integer("ckpt.tar: epoch"); }),
            "ckpt.tar: epoch: expected a whole number, got a number");
  EXPECT_EQ(error_of([&] { TorchObject{true}.number("ckpt.tar: lr"); }), "ckpt.tar: lr: expected a number, got a bool");
  EXPECT_EQ(error_of([&] { TorchObject{List{}}.state("ckpt.tar: model"); }),
            "ckpt.tar: model: expected a dict of tensors, got a list");
  EXPECT_EQ(error_of([&] { object.at("state", "c").state("ckpt.tar: model"); }),
            "ckpt.tar: model: expected a tensor under 'w', got a text");
}

TEST(TorchObject, WhatCannotBeWritten) {
  const TemporaryFolder folder;
  const TorchObject twice{Dict{{7, {List{}}}, {7, {List{}}}}};
  EXPECT_EQ(error_of([&] { write_torch(folder / "a", twice); }), "pytorch: expected each name once, got '7' twice");
  EXPECT_EQ(error_of([&] { write_torch(folder / "a", {List{{Tensor()}}}); }),
            "pytorch: expected a tensor, got an undefined one");
  EXPECT_EQ(folder.files(), 0u);
}

/// The error of reading this pickle as a whole file's.
std::string error_of_pickle(const TemporaryFolder& folder, const std::string& pickle) {
  test::write_zip(folder / "bad.pt", {{"a/data.pkl", pickle}, {"a/version", "3\n"}});
  return test::without_path(error_of([&] { read_torch(folder / "bad.pt"); }), folder / "bad.pt");
}

TEST(TorchObject, HarmfulPicklesAreRefused) {
  NEEDS_ZIP();
  const TemporaryFolder folder;
  EXPECT_THAT(error_of_pickle(folder, test::bytes({"\x80\2", "cos\nsystem\n", "X\2\0\0\0", "ls", "\x85R."})),
              testing::HasSubstr("the file names 'os.system', which weights do not need; nothing of it was run."));
  // A list that contains itself: ] q0 h0 a .
  EXPECT_EQ(error_of_pickle(folder, test::bytes({"\x80\2]q", std::string_view("\0h\0", 3), "a."})),
            "pickle: EMPTY_LIST at byte 2: expected values that end, got one that contains itself, at '0'");
  // Twelve lists, each with twelve references to the one before.
  std::string nested = "\x80\2](";
  for (char level = 0; level < 12; ++level) {
    nested += "](";
    for (int i = 0; level > 0 && i < 12; ++i) nested += std::string("h") + static_cast<char>(level - 1);
    nested += std::string("eq") + level;
  }
  EXPECT_EQ(error_of_pickle(folder, nested + "e."),
            "expected about as many values as the file describes, got far more by repetition");
  std::string deep = "\x80\2";
  for (int i = 0; i < 100; ++i) deep += "]";
  for (int i = 0; i < 99; ++i) deep += "a";
  EXPECT_EQ(error_of_pickle(folder, deep + "."), "expected values nested at most 64 deep, got more");
  EXPECT_EQ(error_of_pickle(folder, "\x80\2}NNs."), "expected keys that are strings or whole numbers, got None in ''");
  // A name of a class alone is text.
  EXPECT_EQ(error_of_pickle(folder, "\x80\2]ctorch\nFloatStorage\nactorch.storage\nUntypedStorage\na."), "(no error)");
}

// PyTorch reads our file as the same Python values, and we read its file as the same.
TEST(TorchObject, PyTorchReadsIt) {
  NEEDS_ZIP();
  NEEDS_TORCH();
  const TemporaryFolder folder;
  write_torch(folder / "a.pt", values());
  TorchObject without_floats = values();  // which the weights_only of PyTorch 1.13 refuses
  std::erase_if(std::get<Dict>(without_floats.is), [](const auto& item) {
    return item.key == std::variant<std::string, int64_t>("numbers") ||
           item.key == std::variant<std::string, int64_t>("tuples");
  });
  write_torch(folder / "d.pt", without_floats);
  test::write_file(folder / "again.py",
                   "import sys, torch\n"
                   "floats = int(torch.__version__.split('.')[0]) >= 2\n"
                   "value = torch.load(sys.argv[1], weights_only=floats)\n"
                   "print(value, end='')\n"
                   "torch.load(sys.argv[4], weights_only=True)\n"
                   "torch.save(value, sys.argv[2])\n"
                   "torch.save(value, sys.argv[3], _use_new_zipfile_serialization=False)\n");
  const auto run =
      tests::shell("/usr/bin/python3 " + (folder / "again.py").string() + " " + (folder / "a.pt").string() + " " +
                   (folder / "b.pt").string() + " " + (folder / "c.pt").string() + " " + (folder / "d.pt").string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  EXPECT_EQ(run.output,
            "{'none': None, 'flags': [True, False], 'integers': [0, -1, 2147483647, 2147483648, -2147483649], "
            "'extremes': [-9223372036854775808, 9223372036854775807], 'numbers': [0.5, -1.25e-30, 1e+300], 'texts': "
            "['', \"a 'quoted' text\", 'Grüße'], 'tuples': [(), (0.9,), ([],)], 0: {}, -7: {'': None}}");
  EXPECT_EQ(repr(read_torch(folder / "b.pt")), repr(values()));
  EXPECT_EQ(repr(read_torch(folder / "c.pt")), repr(values()));
}

// A checkpoint of a model, Adam and a schedule, as training scripts save it.
TEST(TorchObject, PyTorchsCheckpointsAreRead) {
  NEEDS_ZIP();
  NEEDS_TORCH();
  const TemporaryFolder folder;
  test::write_file(folder / "train.py", R"(
import sys, torch
torch.manual_seed(1)
model = torch.nn.Linear(3, 2)
adam = torch.optim.Adam(model.parameters(), lr=0.5)
cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, T_max=10)
model(torch.ones(1, 3)).sum().backward()
adam.step()
cosine.step()
torch.save({'iters': 1, 'epoch': 0, 'model_state': model.state_dict(), 'optimizer_state_dict': adam.state_dict(),
            'scheduler_state_dict': cosine.state_dict()}, sys.argv[1])
)");
  const auto run =
      tests::shell("/usr/bin/python3 " + (folder / "train.py").string() + " " + (folder / "ckpt.tar").string());
  ASSERT_EQ(run.exit_code, 0) << run.output;
  const TorchObject read = read_torch(folder / "ckpt.tar");
  EXPECT_EQ(read.at("iters", "c").integer("c"), 1);
  EXPECT_EQ(read.at("model_state", "c").state("c").tensor("weight").sizes(), (Shape{2, 3}));
  const TorchObject& adam = read.at("optimizer_state_dict", "c");
  const auto& state = std::get<Dict>(adam.at("state", "c").is);
  ASSERT_EQ(state.size(), 2u);
  EXPECT_EQ(std::get<int64_t>(state[1].key), 1);
  EXPECT_EQ(state[0].value.state("c").tensor("exp_avg").sizes(), (Shape{2, 3}));
  const TorchObject& group = std::get<List>(adam.at("param_groups", "c").is).at(0);
  EXPECT_EQ(group.at("initial_lr", "c").number("c"), 0.5);
  EXPECT_EQ(repr(group.at("betas", "c")), "(0.9, 0.999)");
  EXPECT_EQ(read.at("scheduler_state_dict", "c").at("T_max", "c").integer("c"), 10);
}

TEST(TorchObject, WithoutZip) {
  if (have_zip()) GTEST_SKIP() << "this build has no stub: WEFT_WITHOUT=all gives one";
  const TemporaryFolder folder;
  EXPECT_EQ(error_of([&] { write_torch(folder / "b.pt", values()); }),
            "pytorch: expected a build with libzip for " + folder.path().string() +
                ", got one without. Install libzip-dev, configure and build again, or use safetensors");
}

}  // namespace
}  // namespace weft
