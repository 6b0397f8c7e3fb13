// SPDX-License-Identifier: Apache-2.0
// Usage: fuzz_seeds TESTS FOLDER
// Writes the seed corpora, FOLDER/TARGET/*, with Weft's own writers, so that they follow the formats by themselves;
// images and PyTorch's files are those of TESTS/golden and TESTS/weights.
#include <iostream>

#include "data/cifar.h"
#include "data/image_writer.h"
#include "dist/rendezvous/message.h"
#include "io/checkpoint.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "tests/data/python2_pickle.h"
#include "tests/fuzz/fuzz.h"
#include "train/metrics.h"

namespace {

namespace fs = std::filesystem;
using namespace weft;
using Bytes = std::vector<uint8_t>;

fs::path folder;

void keep(const std::string& target, const std::string& name, const Bytes& bytes) {
  fs::create_directories(folder / target);
  write_file(folder / target / name, bytes);
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// A length as Input::word() reads it.
Bytes word(size_t value) { return {static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8)}; }

uint32_t crc32(const Bytes& bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0u);
  }
  return ~crc;
}

/// gzip (RFC 1952) with one stored block (RFC 1951, 3.2.4): it needs no zlib.
Bytes gzip(const Bytes& bytes) {
  const uint32_t crc = crc32(bytes);
  const size_t size = bytes.size();
  return joined({{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1},
                 word(size),
                 word(~size),
                 bytes,
                 word(crc),
                 word(crc >> 16),
                 word(size),
                 word(size >> 16)});
}

void cifar_seeds() {
  Bytes pixels(3072, 77);
  const int64_t label = 3;
  const Bytes record = data::cifar10_records(pixels.data(), &label, 1);
  keep("cifar", "cifar10", joined({{0}, word(0), record}));
  keep("cifar", "cifar10_names", joined({{0}, word(20), bytes_of("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n"), record}));
  keep("cifar", "cifar100", joined({{1}, word(0), {1}, record}));
  keep("cifar", "cifar100_coarse", joined({{2}, word(0), {1}, record}));
  using data::testing::Python2Pickle;
  using data::testing::python_cifar;
  keep("cifar", "cifar10_python", joined({{3}, word(0), python_cifar(pixels, {{"labels", {3}}})}));
  Python2Pickle meta;
  meta.op("}").put().op("(").text("label_names").texts({"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}).op("u.");
  keep("cifar", "cifar10_python_names",
       joined({{3}, word(meta.bytes.size()), meta.bytes, python_cifar(pixels, {{"labels", {3}}})}));
  keep("cifar", "cifar100_python",
       joined({{4}, word(0), python_cifar(pixels, {{"fine_labels", {3}}, {"coarse_labels", {1}}})}));
}

void npy_seeds() {
  const std::string magic = "\x93NUMPY";
  const auto file = [&](const std::string& header, const Bytes& data) {
    return joined({bytes_of(magic), {1, 0}, word(header.size()), bytes_of(header), data});
  };
  keep("npy", "floats", file("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 1, 1), }\n", Bytes(8, 63)));
  keep("npy", "bytes", file("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", Bytes(3, 7)));
}

void idx_seeds() {
  const Bytes labels{0, 0, 8, 1, 0, 0, 0, 2, 3, 9};
  const Bytes images{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Bytes colour{0, 0, 8, 4, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  keep("idx", "plain", joined({{0}, word(labels.size()), labels, images}));
  keep("idx", "colour", joined({{0}, word(labels.size()), labels, colour}));
  const Bytes packed = gzip(labels);
  keep("idx", "gzip", joined({{3}, word(packed.size()), packed, gzip(images)}));
  keep("gzip", "one", gzip(images));
  keep("gzip", "two", joined({gzip(labels), gzip(images), {0, 0, 0}}));
}

void image_seeds(const fs::path& golden) {
  for (const fs::directory_entry& entry : fs::directory_iterator(golden)) {
    const std::string name = entry.path().filename().string();
    const Bytes bytes = read_file(entry.path());
    if (name.ends_with(".png")) keep("png", name, bytes);
    if (name.ends_with(".jpg") || name.ends_with(".JPEG")) keep("jpeg", name, joined({{0}, bytes}));
    if (name == "baseline.jpg") keep("jpeg", "small", joined({{5}, bytes}));
  }
  const Bytes tag{0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0}, big_tag{1, 0x12, 0, 3, 0, 0, 0, 1, 0, 8, 0, 0};
  keep("exif", "little", joined({bytes_of("II"), {42, 0, 8, 0, 0, 0, 1, 0}, tag}));
  keep("exif", "big", joined({bytes_of("MM"), {0, 42, 0, 0, 0, 8, 0, 1}, big_tag}));
}

/// A packed file, as it is and with checksums that the target renews; a heap of HDF5 with two objects, and references
/// to them.
void image_file_seeds(const fs::path& golden) {
  const fuzz::Folder work;
  const auto writer = data::packed_writer(work.path() / "file", {"ants", "bees"});
  writer->begin_part("train", 2);
  writer->add(read_file(golden / "grey.jpg"), 1);
  writer->add(read_file(golden / "rgb.png"), 0);
  writer->begin_part("val", 1);
  writer->add(Bytes{1, 2, 3}, 0);
  writer->commit();
  const Bytes packed = read_file(work.path() / "file");
  keep("packed", "as_written", joined({{0}, packed}));
  keep("packed", "renewed", joined({{1}, packed}));
  const Bytes heap = joined({bytes_of("GCOL"),
                             {1, 0, 0, 0, 96, 0, 0, 0, 0, 0, 0, 0},
                             {7, 0, 1, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 0},
                             {9, 0, 1, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 0, 0, 0},
                             {0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0},
                             Bytes(16)});
  keep("hdf5_heap", "first", joined({{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0}, heap}));
  keep("hdf5_heap", "second", joined({{5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0}, heap}));
}

StateDict state() {
  StateDict result;
  result.tensors = {{"conv1.weight", Tensor::ones({2, 3})},
                    {"step", Tensor::zeros({}, DType::i64)},
                    {"mask", Tensor::zeros({3, 0}, DType::boolean)},
                    {"half", Tensor::zeros({3}, DType::bf16)}};
  return result;
}

void tensor_seeds(const fs::path& golden) {
  const fuzz::Folder work;
  const fs::path file = work.path() / "file";
  write_safetensors(file, state(), {{"format", "pt"}});
  keep("safetensors", "small", read_file(file));
  write_safetensors(file, {}, {});
  keep("safetensors", "empty", read_file(file));
  Checkpoint checkpoint;
  checkpoint.parts = {{"model", state()}, {"optimizer", {}}};
  checkpoint.integers["step"] = 7;
  checkpoint.numbers["best"] = 0.5;
  checkpoint.texts["model"] = "resnet8";
  save_checkpoint(file, checkpoint);
  keep("checkpoint", "small", read_file(file));
  keep("checkpoint", "hdf5", read_file(golden / "hdf5/checkpoint.h5"));
  keep("checkpoint_tree", "dataset", {1, 16, 4, 1, 2, 3, 4, 0, 3, 6, 9, 1, 2, 0, 0, 0, 0, 0, 0, 0, 1, 0});
  keep("checkpoint_tree", "attribute", {0, 6, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 8, 1, 6, 0, 65, 66, 67, 68, 69, 70});
  keep("checkpoint_tree", "links", {0, 0, 5, 0, 0, 6, 2, 1, 2, 6, 0, 2, 16, 6, 1, 0, 3, 3});
}

/// Files of torch.save, and the pickles in them.
void weights_seeds(const fs::path& golden) {
  for (const fs::directory_entry& entry : fs::directory_iterator(golden)) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".pt") continue;
    keep("torch_file", name, read_file(entry.path()));
    if (!have_zip() || name.find("_legacy") != std::string::npos) continue;
    const ZipArchive zip(entry.path());
    for (size_t i = 0; i < zip.entries().size(); ++i) {
      if (!zip.entries()[i].name.ends_with("/data.pkl") || !zip.entries()[i].is_stored) continue;
      Bytes pickle(zip.entries()[i].size);
      zip.read(i, pickle.data());
      keep("pickle", name, pickle);
    }
  }
  keep("pickle", "values", bytes_of("](K\xffJ\xff\xff\xff\xff\x8a\1\xffU\2ab\x88\x89)K\1\x85\x8c\1xq\2h\2]}e."));
  keep("weights_index", "two",
       bytes_of(R"({"metadata":{"total_size":20},"weight_map":{"a1":"a.safetensors","a2":"a.safetensors",)"
                R"("b1":"b.safetensors","b2":"b.safetensors"}})"));
  keep("weights_index", "one", bytes_of(R"({"weight_map":{"a1":"a.safetensors","a2":"a.safetensors"}})"));
}

void text_seeds() {
  const std::string row = train::to_json({.time = 1, .epoch = 1, .step = 3});
  keep("metrics", "rows",
       joined({word(3), bytes_of(row + "\n" + row + "\n{\"step\": 9}\nnot json\n" + row.substr(0, 9))}));
  const std::string words(
      "--lr\0"
      "0.5\0--quick=false\0--mean=1,2,3",
      32);
  const std::string toml = "epochs = 3\nlr = 0.1\nout = \"runs/\\u00e4\"\nquick = true\nmean = [0.5, 1, 2e-3]\n";
  keep("flags", "both", joined({{static_cast<uint8_t>(words.size())}, bytes_of(words), bytes_of(toml)}));
  keep("flags", "toml", joined({{0}, bytes_of("optimizer = 'adamw'\nmean = []\n[table]\na = 1979-05-27T07:32:00Z\n")}));
  keep(
      "yaml", "sections",
      bytes_of("default: &DEFAULT\n  lr: !!float 1E-3\n  batch_size: 32\n  log_to_screen: !!bool True\n  model: 'cnn'\n"
               "test:\n  <<: *DEFAULT\n  sizes: [16, 32]\n  betas: [0.9, 0.999]\n  names: [a, None]\n"));
  keep("yaml", "merges",
       bytes_of("a: &A {lr: 1}\nb: &B {lr: 2, model: ~}\ndefault:\n  <<: [*A, *B]\n  x: |\n    text\n"));
  const char* const texts[] = {"1e-3", "-12", "off", "1, 2,3", "cuda:1", "64x32x32x3", "lerning-rate"};
  for (uint8_t kind = 0; kind < 7; ++kind)
    keep("texts", str("kind", int{kind}), joined({{kind}, bytes_of(texts[kind])}));
}

/// A piece of the target `store`: bytes that arrive on a connection.
Bytes piece(uint8_t connection, const dist::MessageWriter& message) {
  const std::string bytes = message.frame();
  return joined({{connection}, word(bytes.size()), bytes_of(bytes)});
}

void store_seeds() {
  using Kind = dist::MessageKind;
  using Writer = dist::MessageWriter;
  keep("store", "keys",
       joined({{0},
               piece(0, Writer(Kind::get).number(1).text("late").number(20)),
               piece(1, Writer(Kind::set).number(1).text("late").text("value")),
               piece(1, Writer(Kind::add).number(2).text("count").number(7)),
               piece(2, Writer(Kind::add).number(1).text("late").number(1)),
               piece(2, Writer(Kind::has).number(2).text("count")),
               piece(2, Writer(Kind::remove).number(3).text("count")),
               {251}}));
  Bytes members{0};
  for (uint8_t rank = 0; rank < 4; ++rank)
    members = joined({members, piece(rank, Writer(Kind::join).number(rank).text("gpu1").number(4711 + rank))});
  keep("store", "members",
       joined({members,
               piece(1, Writer(Kind::heartbeat).text("world").number(4).number(3).text("all_reduce fc.bias f32[10]")),
               piece(1, Writer(Kind::states).number(1)),
               piece(2, Writer(Kind::leave)),
               piece(3, Writer(Kind::announce).text("the loss is not finite")),
               {250}}));
  keep("store", "nodes", joined({{1}, bytes_of("jwb[0021-0024,0030],login1,r[1-2]n[08-11]")}));
  keep("store", "address", joined({{2}, bytes_of("[fe80::1]:29401")}));
  keep("store", "slurm",
       joined(
           {{3},
            bytes_of("SLURM_STEP_ID=3\nSLURM_PROCID=3\nSLURM_STEP_NUM_TASKS=4\nSLURM_NODEID=1\nSLURM_STEP_NUM_NODES=2\n"
                     "SLURM_STEP_TASKS_PER_NODE=2(x2)\nSLURM_STEP_NODELIST=a[1-2]\nPMIX_RANK=3\n")}));
  keep("store", "torchrun",
       joined({{3},
               bytes_of(
                   "RANK=3\nWORLD_SIZE=4\nLOCAL_RANK=1\nLOCAL_WORLD_SIZE=2\nMASTER_ADDR=gpu1:29401\nMASTER_PORT=29500\n"
                   "OMPI_COMM_WORLD_RANK=1\nOMPI_COMM_WORLD_SIZE=2\n")}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: fuzz_seeds TESTS FOLDER\n";
    return 2;
  }
  folder = argv[2];
  cifar_seeds();
  idx_seeds();
  npy_seeds();
  image_seeds(fs::path(argv[1]) / "golden/images");
  image_file_seeds(fs::path(argv[1]) / "golden/images");
  weights_seeds(fs::path(argv[1]) / "weights/golden");
  tensor_seeds(fs::path(argv[1]) / "golden");
  text_seeds();
  store_seeds();
  return 0;
}
