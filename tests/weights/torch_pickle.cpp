// SPDX-License-Identifier: Apache-2.0
#include "io/torch/torch_pickle.h"

#include "tests/support/shell.h"
#include "tests/weights/fixture.h"

namespace weft {
namespace {

using test::pickle_error;
using test::with_pickle;
using namespace std::string_literals;

/// A storage of four floats, key 'k', then the rest.
const std::string kStorage = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\4tQ"s;

/// _rebuild_tensor_v2(storage, offset, sizes, strides, False, OrderedDict())
std::string tensor(const std::string& offset, const std::string& sizes, const std::string& strides,
                   const std::string& storage = kStorage) {
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + sizes + strides +
         "\x89"
         "ccollections\nOrderedDict\n)RtR";
}

TEST(TorchPickle, TensorsOfAStorage) {
  with_pickle(tensor("K\1", "K\1K\2\x86", "K\7K\2\x86") + ".", [](const TorchPickle& pickle) {
    const PickledTensor* read = pickle.root->as<PickledTensor>();
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->offset, 1u);
    EXPECT_EQ(read->sizes, (Shape{1, 2}));
    EXPECT_EQ(read->strides, (Shape{7, 2}));
    ASSERT_EQ(pickle.storages.size(), 1u);
    EXPECT_EQ(pickle.storages[0].key, "k");
    EXPECT_STREQ(pickle.storages[0].type->name, "FloatStorage");
    EXPECT_EQ(pickle.storages[0].numel, 4u);
  });
}

/// _rebuild_tensor_v2 with PyTorch's metadata as its last argument.
std::string with_metadata(const std::string& metadata) {
  const std::string plain = tensor("K\1", "K\2\x85", "K\1\x85");
  return plain.substr(0, plain.size() - 2) + metadata + "tR.";
}

// x.conj().imag has the sign in its metadata: left out, every value would have the wrong one.
TEST(TorchPickle, TheSignInTheMetadataCounts) {
  const auto is_negative = [](const std::string& metadata) {
    bool negative = false;
    with_pickle(with_metadata(metadata),
                [&](const TorchPickle& pickle) { negative = pickle.root->as<PickledTensor>()->negative; });
    return negative;
  };
  EXPECT_TRUE(is_negative("}X\3\0\0\0neg\x88s"s));
  EXPECT_FALSE(is_negative("}X\3\0\0\0neg\x89s"s));
  EXPECT_FALSE(is_negative("}"));
  EXPECT_FALSE(is_negative("N"));
  EXPECT_THAT(pickle_error(with_metadata("}X\4\0\0\0conj\x88s"s)),
              testing::EndsWith("expected a tensor's metadata 'neg' alone, got 'conj'"));
  EXPECT_THAT(pickle_error(with_metadata("K\1")),
              testing::EndsWith("expected a dict of a tensor's metadata, got a whole number"));
  EXPECT_THAT(pickle_error(with_metadata("}X\3\0\0\0negK\1s"s)),
              testing::EndsWith("expected names and bools as a tensor's metadata"));
}

TEST(TorchPickle, ValuesBesideTensors) {
  const auto error = [](const std::string& call) {
    const std::string text = pickle_error(call + ".");
    const size_t place = text.find(": ", 10);
    return place == std::string::npos ? text : text.substr(place + 2);
  };
  with_pickle("c_codecs\nencode\nX\3\0\0\0a\xc3\xbfX\6\0\0\0latin1\x86R."s,
              [](const TorchPickle& pickle) { EXPECT_EQ(*pickle.root->as<std::string>(), "a\xff"); });
  EXPECT_EQ(error("c_codecs\nencode\nX\3\0\0\0\xe2\x82\xacX\6\0\0\0latin1\x86R"s),
            "_codecs.encode: expected characters up to U+00FF");
  EXPECT_EQ(error("c_codecs\nencode\nX\1\0\0\0aX\4\0\0\0utf8\x86R"s), "_codecs.encode: expected a text and 'latin1'");
  EXPECT_EQ(error("ctorch\nSize\nK\1\x85R"), "torch.Size: expected a tuple");
  EXPECT_EQ(error("ctorch\ndevice\nK\1\x85R"), "torch.device: expected a text and a whole number");
  EXPECT_EQ(error("c__builtin__\nset\n)R"), "set: expected a list");
  EXPECT_EQ(error("ccollections\nCounter\n]\x85R"), "Counter: expected a dict");
  EXPECT_EQ(error("c__builtin__\ncomplex\nK\1\x85R"), "complex: expected two numbers");
  EXPECT_EQ(error("c__builtin__\nbytearray\nK\1\x85R"), "bytearray: expected bytes");
  EXPECT_EQ(error("ctorch.serialization\n_get_layout\nK\1\x85R"), "_get_layout: expected a text");
  EXPECT_EQ(error("ctorch._tensor\n_rebuild_from_type_v2\n)R"),
            "_rebuild_from_type_v2: expected a function, a type, arguments and a state");
  EXPECT_EQ(error("ctorch._utils\n_rebuild_qtensor\n)R"),
            "expected a dense tensor, got a quantised one. In PyTorch: save x.dequantize()");
  EXPECT_EQ(error("ctorch._utils\n_rebuild_sparse_tensor\n)R"),
            "expected a dense tensor, got a sparse one. In PyTorch: save x.to_dense()");
  const std::string untyped = "(X\7\0\0\0storagectorch.storage\nUntypedStorage\nX\1\0\0\0kX\3\0\0\0cpuK\5tQ"s;
  const std::string v3 = "ctorch._utils\n_rebuild_tensor_v3\n(" + untyped + "K\0K\2\x85K\1\x85\x89)"s;
  EXPECT_EQ(error(v3 + "ctorch\nuint16\ntR"), "expected a storage of whole elements of torch.uint16, got 5 bytes");
  EXPECT_EQ(error(v3 + "ctorch\nTensor\ntR"), "expected a dtype, got a name of PyTorch's");
}

// Many calls could copy one list of a megabyte: what they make may not be more than the file describes.
TEST(TorchPickle, ArgumentsAreNotMultiplied) {
  std::string calls = "(]("s;
  for (int i = 0; i < 1000; ++i) calls += "K\1";
  calls += "eq\0"s;
  for (int i = 0; i < 1000; ++i) calls += "c__builtin__\nset\nh\0\x85R"s;
  EXPECT_THAT(pickle_error(calls + "t."), testing::EndsWith("got far more by repetition"));
}

// PyTorch 0.3's views of storages, and Python 2's OrderedDict([[key, value]]).
TEST(TorchPickle, OldFiles) {
  const std::string view = "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\4X\1\0\0\0vK\1K\2\x87tQ"s;
  with_pickle(tensor("K\1", "K\1\x85", "K\1\x85", view) + ".",
              [](const TorchPickle& pickle) { EXPECT_EQ(pickle.root->as<PickledTensor>()->offset, 2u); });
  with_pickle("ccollections\nOrderedDict\n](](X\1\0\0\0aK\1ee\x85R."s, [](const TorchPickle& pickle) {
    const auto& items = pickle.root->as<PickleDict>()->items;
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(*items[0].first->as<std::string>(), "a");
  });
}

TEST(TorchPickle, WhatRunsCodeIsRefusedByName) {
  const auto refused = [](const std::string& name) {
    return "the file names '" + name +
           "', which weights do not need; nothing of it was run. If you trust the file, load it in PyTorch and save "
           "its "
           "state_dict() alone";
  };
  EXPECT_EQ(pickle_error("cos\nsystem\n(X\7\0\0\0touch /tR."s), "pickle: GLOBAL at byte 0: " + refused("os.system"));
  EXPECT_EQ(pickle_error("\x80\4\x8c\x05posix\x8c\6system\x93)R."s),
            "pickle: STACK_GLOBAL at byte 17: " + refused("posix.system"));
  EXPECT_EQ(pickle_error("cbuiltins\neval\n)R."), "pickle: GLOBAL at byte 0: " + refused("builtins.eval"));
  EXPECT_EQ(pickle_error("ctorch._utils\n_rebuild_tensor_v2.__globals__\n."),
            "pickle: GLOBAL at byte 0: " + refused("torch._utils._rebuild_tensor_v2.__globals__"));
  EXPECT_EQ(pickle_error("ctorch\nload\n."), "pickle: GLOBAL at byte 0: " + refused("torch.load"));
  EXPECT_EQ(pickle_error("cnumpy.core.multiarray\nfromfile\n."),
            "pickle: GLOBAL at byte 0: " + refused("numpy.core.multiarray.fromfile"));
  EXPECT_EQ(pickle_error("cos\nOrderedDict\n."), "pickle: GLOBAL at byte 0: " + refused("os.OrderedDict"));
  const std::string other = "weights do not need this opcode, and it is not run";
  EXPECT_EQ(pickle_error("(ios\nsystem\n."), "pickle: INST at byte 1: " + other);
  EXPECT_EQ(pickle_error("(N}o."), "pickle: OBJ at byte 3: " + other);
  EXPECT_EQ(pickle_error("N)\x81."), "pickle: NEWOBJ at byte 2: expected a function to call, got None");
  EXPECT_EQ(pickle_error("N)}\x92."), "pickle: NEWOBJ_EX at byte 3: " + other);
  EXPECT_EQ(pickle_error("\x82\1."), "pickle: EXT1 at byte 0: " + other);
  EXPECT_EQ(pickle_error("\x83\1\1."), "pickle: EXT2 at byte 0: " + other);
  EXPECT_EQ(pickle_error("\x84\1\1\1\1."), "pickle: EXT4 at byte 0: " + other);
  EXPECT_EQ(pickle_error("Pid\n."), "pickle: PERSID at byte 0: " + other);
  EXPECT_EQ(pickle_error("\xff."), "pickle: opcode 0xff at byte 0: " + other);
}

// Only the opcodes of the table are executed; all other bytes are refused at their position.
TEST(TorchPickle, EveryOtherByteIsRefused) {
  const std::string known =
      "(.N\x88\x89JKM\x8aGX\x8c\x8dTU)t\x85\x86\x87]ae}suqr\x94hjc\x93RbQ\x80\x95"
      "BC\x8e\x96\x81ILFSVldpg\x8f\x90\x91";
  int refused = 0;
  for (int byte = 0; byte < 256; ++byte) {
    if (known.find(static_cast<char>(byte)) != std::string::npos) continue;
    ++refused;
    EXPECT_THAT(pickle_error(std::string(1, static_cast<char>(byte)) + std::string(64, 'N')),
                testing::EndsWith("at byte 0: weights do not need this opcode, and it is not run"))
        << byte;
  }
  EXPECT_EQ(refused, 256 - 55);
}

TEST(TorchPickle, CallsThatMakeNoTensor) {
  const std::string rebuild = "ctorch._utils\n_rebuild_tensor_v2\n";
  EXPECT_EQ(pickle_error("K\1)R."), "pickle: REDUCE at byte 3: expected a function to call, got a whole number");
  EXPECT_EQ(pickle_error("ctorch\nFloatStorage\n)R."),
            "pickle: REDUCE at byte 21: expected a function to call, got a storage type");
  EXPECT_EQ(pickle_error("ccollections\nOrderedDict\n]R."),
            "pickle: REDUCE at byte 26: expected a tuple of arguments, got a list");
  EXPECT_EQ(pickle_error("ccollections\nOrderedDict\nK\1\x85R."),
            "pickle: REDUCE at byte 28: OrderedDict: expected a list, got a whole number");
  EXPECT_EQ(pickle_error("ccollections\nOrderedDict\n]K\1a\x85R."),
            "pickle: REDUCE at byte 30: OrderedDict: expected pairs of key and value");
  EXPECT_EQ(pickle_error("ccollections\nOrderedDict\nNN\x86R."),
            "pickle: REDUCE at byte 28: OrderedDict: expected one list, got 2 values");
  EXPECT_EQ(pickle_error(rebuild + ")R."),
            "pickle: REDUCE at byte 34: expected a storage, an offset, sizes and strides, got 0 values");
  EXPECT_EQ(pickle_error(rebuild + "(NNNNtR."), "pickle: REDUCE at byte 39: expected a storage, got None");
  EXPECT_EQ(pickle_error("ctorch._utils\n_rebuild_parameter\nN\x85R."),
            "pickle: REDUCE at byte 35: _rebuild_parameter: expected a tensor");
  EXPECT_EQ(pickle_error("NN"
                         "b."),
            "pickle: BUILD at byte 2: expected a dict to give attributes to, got None");
}

std::string tensor_error(const std::string& offset, const std::string& sizes, const std::string& strides) {
  const std::string text = pickle_error(tensor(offset, sizes, strides) + ".");
  const size_t place = text.find(": ", 10);
  return place == std::string::npos ? text : text.substr(place + 2);
}

TEST(TorchPickle, TensorsStayInsideOfTheirStorage) {
  EXPECT_EQ(tensor_error("K\0"s, "K\4\x85", "K\1\x85"), "(no error)");
  EXPECT_EQ(tensor_error("K\4", "K\0\x85"s, "K\1\x85"), "(no error)");
  EXPECT_EQ(tensor_error("K\5", "K\0\x85"s, "K\1\x85"),
            "tensor of sizes [0] and strides [1] from element 5 on: expected it inside its storage of 4 elements");
  EXPECT_EQ(tensor_error("K\1", "K\4\x85", "K\1\x85"),
            "tensor of sizes [4] and strides [1] from element 1 on: expected it inside its storage of 4 elements");
  EXPECT_EQ(
      tensor_error("K\0"s, "K\2\x85", "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f\x85"),
      "tensor of sizes [2] and strides [9223372036854775807] from element 0 on: expected it inside its storage of "
      "4 elements");
  EXPECT_EQ(
      tensor_error("K\0"s, "J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86", "K\0K\0\x86"s),
      "tensor of sizes [2147483647,2147483647] and strides [0,0] from element 0 on: expected it inside its storage "
      "of 4 elements");
  EXPECT_EQ(tensor_error("K\0"s, "K\1\x85", ")"), "expected as many strides as sizes, got [] for [1]");
  EXPECT_EQ(tensor_error("K\0"s, "J\xff\xff\xff\xff\x85", "K\1\x85"),
            "expected sizes that are whole numbers of at least 0");
  EXPECT_EQ(tensor_error("J\xff\xff\xff\xff", "K\1\x85", "K\1\x85"),
            "expected an offset of at least 0, got a whole number");
  EXPECT_EQ(tensor_error("K\0"s, "(K\1K\1K\1K\1K\1K\1K\1K\1K\1t", "K\1\x85"),
            "expected a tensor of at most 8 dimensions, got 9");
  EXPECT_EQ(tensor_error("K\0"s, "N", "K\1\x85"), "expected a tuple of sizes, got None");
}

TEST(TorchPickle, StoragesAreCheckedToo) {
  const auto error = [](const std::string& id) { return pickle_error(id + "Q."); };
  EXPECT_EQ(error("N"), "pickle: BINPERSID at byte 1: expected a persistent id ('storage', type, key, place, size)");
  EXPECT_EQ(error("(X\4\0\0\0fileNNNNt"s),
            "pickle: BINPERSID at byte 15: expected a persistent id of a storage, got another");
  EXPECT_EQ(error("(X\7\0\0\0storageNNNNt"s), "pickle: BINPERSID at byte 18: expected a storage type, got None");
  EXPECT_EQ(error("(X\7\0\0\0storagectorch\nByteStorage\nNNNt"s),
            "pickle: BINPERSID at byte 36: expected a storage's key, got None");
  EXPECT_EQ(error("(X\7\0\0\0storagectorch\nByteStorage\nX\1\0\0\0kNJ\xff\xff\xff\xfft"s),
            "pickle: BINPERSID at byte 45: expected a storage's size of at least 0, got a whole number");
  EXPECT_EQ(error("(X\7\0\0\0storagectorch\nByteStorage\nX\x2c\1\0\0"s + std::string(300, 'k') + "NK\1t"),
            "pickle: BINPERSID at byte 341: expected a storage's key of at most 256 bytes, got 300");
  EXPECT_EQ(
      error(kStorage + "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\5t"s),
      "pickle: BINPERSID at byte 101: storage 'k': expected FloatStorage of 4 elements as before, got FloatStorage of "
      "5");
  EXPECT_EQ(error("(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0kX\3\0\0\0cpuK\4X\1\0\0\0vK\3K\2\x87t"s),
            "pickle: BINPERSID at byte 61: storage 'k': expected a range within 4 elements, got 2 from 3 on");
}

/// A file of the legacy format around a pickle of an object without storages.
std::string legacy(const std::string& object) {
  return "\x80\2\x8a\nl\xfc\x9c"
         "F\xf9 j\xa8P\x19.\x80\2M\xe9\3.\x80\2}." +
         object + "].";
}

std::string walk_error(const std::string& object) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "a", legacy(object));
  return test::without_path(test::error_of([&] { open_torch(folder / "a"); }), folder / "a");
}

TEST(TorchPickle, ValuesThatHoldThemselves) {
  EXPECT_EQ(walk_error("]q\0h\0a."s),
            "pickle: EMPTY_LIST at byte 25: expected values that end, got one that contains itself, at '0'");
  EXPECT_EQ(walk_error("}q\0X\1\0\0\0ah\0s."s),
            "pickle: EMPTY_DICT at byte 25: expected values that end, got one that contains itself, at 'a'");
  EXPECT_EQ(walk_error(std::string(100, '(') + std::string(100, 't') + "."),
            "expected values nested at most 64 deep, got more");
  // Thirty lists, each holding the one before ten times.
  std::string laughs = "]q\0"s;
  for (char i = 0; i < 30; ++i) {
    laughs += "](";
    for (int j = 0; j < 10; ++j) laughs += {'h', i};
    laughs += {'e', 'q', static_cast<char>(i + 1)};
  }
  EXPECT_EQ(walk_error("(" + laughs + "t."),
            "expected about as many values as the file describes, got far more by repetition");
  EXPECT_EQ(walk_error("}NNs."), "expected keys that are strings or numbers, got None in ''");
  EXPECT_EQ(walk_error("K\1."), "expected tensors, got a whole number");
  EXPECT_EQ(walk_error("}."), "(no error)");
}

// A string of a megabyte under a hundred keys: alone, and next to the dict of tensors.
TEST(TorchPickle, TextsAreNotMultiplied) {
  const std::string text = "K\x7fX\0\0\x10\0"s + std::string(1 << 20, 'x') + "q\0"s;
  std::string keys;
  for (char i = 0; i < 100; ++i) keys += "K"s + i + "h\0"s;
  const std::string refusal = "expected about as many values as the file describes, got far more by repetition";
  EXPECT_EQ(walk_error("}(" + text + keys + "u."), refusal);
  EXPECT_EQ(walk_error("}(" + text + "u."), "(no error)");

  const std::string model = "X\5\0\0\0model}K\1"s + tensor("K\0"s, "K\4\x85", "K\1\x85") + "s";
  const std::string storages = "]X\1\0\0\0ka."s + "\4\0\0\0\0\0\0\0"s + std::string(16, '\0');
  const auto error = [&](const std::string& items) {
    std::string file = legacy("}(" + model + items + "u.");
    file.replace(file.size() - 2, 2, storages);
    const test::TemporaryFolder folder;
    test::write_file(folder / "a", file);
    return test::without_path(test::error_of([&] { open_torch(folder / "a"); }), folder / "a");
  };
  EXPECT_EQ(error(text + keys), refusal);
  EXPECT_EQ(error(text), "(no error)");
}

// Python's pickle that would run a command: the file that it would create does not exist afterwards.
TEST(TorchPickle, NothingRuns) {
  const test::TemporaryFolder folder;
  const std::string sign = (folder / "sign").string();
  const std::string evil =
      "cos\nsystem\n(X" + std::string(1, static_cast<char>(sign.size() + 6)) + "\0\0\0touch "s + sign + "tR.";
  test::write_file(folder / "a", legacy(evil));
  EXPECT_THROW(open_torch(folder / "a"), Error);
  EXPECT_FALSE(std::filesystem::exists(sign));
  if (tests::shell("python3 -c 'import pickle'").exit_code != 0) GTEST_SKIP() << "no python3 to show that it would run";
  test::write_file(folder / "pickle", evil);
  tests::shell("python3 -c 'import pickle, sys; pickle.load(open(sys.argv[1], \"rb\"))' " +
               (folder / "pickle").string());
  EXPECT_TRUE(std::filesystem::exists(sign)) << "the pickle of this test does not run in Python either";
}

}  // namespace
}  // namespace weft
