// SPDX-License-Identifier: Apache-2.0
// Usage: fuzz_seeds TESTS FOLDER
// Writes the seed corpora, FOLDER/TARGET/*, with Weft's own writers, so that they follow the formats by themselves;
// images and PyTorch's files are those of TESTS/golden and TESTS/weights.
#include <elf.h>

#include <cstring>
#include <iostream>

#include "data/cifar.h"
#include "data/image_writer.h"
#include "dist/rendezvous/message.h"
#include "io/checkpoint.h"
#include "io/checkpoint_index.h"
#include "io/file_reader.h"
#include "io/safetensors.h"
#include "io/torch/zip_archive.h"
#include "io/weights/weights_file.h"
#include "tests/data/python2_pickle.h"
#include "tests/fuzz/fuzz.h"
#include "train/record/metrics.h"
#include "train/record/protobuf.h"

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
  keep("npy", "columns", file("{'descr': '<i2', 'fortran_order': True, 'shape': (1, 2), }\n", Bytes(4, 63)));
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
    for (const char* suffix : {".webp", ".bmp", ".gif", ".tif", ".tiff", ".pnm"})
      if (name.ends_with(suffix)) keep("other_images", name, bytes);
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
  keep("yaml", "accelerate",
       bytes_of("compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_machines: 2\nnum_processes: 8\n"
                "machine_rank: 1\nmain_process_ip: gpu1\nmain_process_port: 29500\nmixed_precision: 'no'\n"));
  keep("yaml", "merges",
       bytes_of("a: &A {lr: 1}\nb: &B {lr: 2, model: ~}\ndefault:\n  <<: [*A, *B]\n  x: |\n    text\n"));
  const char* const texts[] = {"1e-3", "-12", "off", "1, 2,3", "cuda:1", "64x32x32x3", "lerning-rate"};
  for (uint8_t kind = 0; kind < 7; ++kind)
    keep("texts", str("kind", int{kind}), joined({{kind}, bytes_of(texts[kind])}));
}

/// A part of an input with its length before it.
Bytes part(std::string_view text) { return joined({word(text.size()), bytes_of(text)}); }

void vocabulary_seeds(const fs::path& golden) {
  keep("text_table", "sentences", bytes_of("sentence\tlabel\na fine film\t1\nno\t0\n"));
  keep("text_table", "pairs", bytes_of("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n1\t2\t3\ta\tb\r\n"));
  keep("text_table", "scores", bytes_of("index\tsentence1\tsentence2\tlabel\n0\ta\tb\t4.75\n1\tc\td\t0.5\n"));
  const std::string pieces = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nun\n##aff\n##able\n,\n";
  keep("vocabulary", "pieces", joined({{0}, part(pieces), bytes_of("Unaffable, [SEP] caf\xC3\xA9")}));
  const std::string pairs = R"({"a":0,"b":1,"ab":2,"<|endoftext|>":3,"\u0120":4,"\u0120a":5})";
  keep("vocabulary", "pairs", joined({{1}, part(pairs), part("#version: 0.2\na b\n\u0120 a\n"), bytes_of("ab a")}));
  const std::string roberta = R"({"<s>":0,"<pad>":1,"</s>":2,"<mask>":3,"a":4,"b":5,"ab":6})";
  keep("vocabulary", "roberta", joined({{2}, part(roberta), part("a b\n"), bytes_of("ab<mask>a</s>")}));
  // As many of GPT-2's merges as a short input holds: each needs its tokens.
  const std::vector<std::string> merges = read_lines(golden / "byte_pair/merges.txt");
  std::string first;
  for (size_t i = 0; i < merges.size() && i < 20; ++i) first += merges[i] + '\n';
  keep("vocabulary", "golden", joined({{1}, part(pairs), part(first), bytes_of("the theatre")}));
}

void hugging_face_seeds() {
  keep("hugging_face", "bert",
       joined({{0},
               bytes_of(R"({"model_type":"bert","hidden_size":128,"num_hidden_layers":2,"num_attention_heads":2,)"
                        R"("intermediate_size":512,"hidden_act":"gelu","max_position_embeddings":512,)"
                        R"("type_vocab_size":2,"layer_norm_eps":1e-12,"hidden_dropout_prob":0.1,)"
                        R"("attention_probs_dropout_prob":0.1,"classifier_dropout":null,"pad_token_id":0})")}));
  keep("hugging_face", "distilbert",
       joined({{0},
               bytes_of(R"({"model_type":"distilbert","dim":128,"n_layers":2,"n_heads":2,"hidden_dim":512,)"
                        R"("activation":"gelu","sinusoidal_pos_embds":false,"seq_classif_dropout":0.2})")}));
  keep("hugging_face", "gpt2",
       joined({{1},
               bytes_of(R"({"model_type":"gpt2","activation_function":"gelu_new","vocab_size":50257,)"
                        R"("n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"n_inner":null,)"
                        R"("layer_norm_epsilon":1e-05,"tie_word_embeddings":true})")}));
  keep("hugging_face", "trainer",
       joined({{2},
               bytes_of(R"({"epoch":1.5,"global_step":30,"max_steps":60,"log_history":[{"epoch":1.0,"loss":0.5,)"
                        R"("step":20},{"eval_loss":0.4,"step":20}],"stateful_callbacks":{"TrainerControl":{}}})")}));
  keep("hugging_face", "weft",
       joined({{2},
               bytes_of(R"({"epoch":1,"global_step":3,"max_steps":6,"log_history":[],"stateful_callbacks":{"weft":)"
                        R"({"args":{},"attributes":{"texts_per_step":8,"logged_step":2,"run_loss":1.5,)"
                        R"("losses":[0.25],"crc32c":{"model.safetensors":7}}}}})")}));
  // As deep as overflows the stack where such a value is copied or printed.
  const std::string open(200'000, '['), close(200'000, ']');
  for (uint8_t kind = 0; kind < 3; ++kind)
    keep("hugging_face", str("deep", int{kind}),
         joined({{kind},
                 bytes_of(R"({"model_type":"gpt2","epoch":1,"global_step":1,"max_steps":2,"n_embd":8,"log_history":[)" +
                          open + close + R"(],"activation_function":)" + open + close + '}')}));
  keep("imagenet_labels", "two", bytes_of(R"({"a.JPEG":"n01440764","b.JPEG":"n02123045"})"));
}

void run_folder_seeds() {
  const std::string row = train::to_json({.time = 1, .epoch = 1, .step = 3});
  const std::string lines =
      row +
      "\n{\"step\":4,\"loss\":0.5,\"val/acc\":null}\n{\"split\":\"val\",\"loss\":2,\"epoch\":1}\nno json\n{\"a\":1";
  using train::Message;
  const auto value = [](const char* tag, float number) {
    return Message().message(5, Message().message(1, Message().bytes(1, tag).fixed32(2, number)));
  };
  const std::string scalar =
      Message().fixed64(1, 1.5).varint(2, 7).bytes(5, value("loss/train", 0.5f).text().substr(2)).text();
  const std::string started = Message().varint(2, 5).message(7, Message().varint(1, 1)).text();
  const Bytes events = joined({part(scalar), part(value("a<b>", 2).text()), part(started)});
  keep("curves", "yaml", joined({part(lines), {1}, part("lr:\n  value: 0.1\nname:\n  value: 'a b'\n"), events}));
  keep("curves", "toml", joined({part(lines), {4 | 16}, part("epochs = 3\n# no\nout = \"a\"\n"), events}));
  keep("curves", "log", joined({part(lines), {8 | 32}, part(""), events}));
}

void sweep_seeds() {
  keep("sweep", "yaml",
       joined(
           {{0},
            bytes_of("method: random\nmetric: {name: val_loss, goal: minimize}\nrun_cap: 20\nearly_terminate: {type: "
                     "hyperband, min_iter: 3, eta: 3}\nparameters:\n  lr: {distribution: log_uniform_values, min: "
                     "1.0e-5, max: 1.0e-1}\n  batch: {values: [16, 32]}\n  depth: {min: 1, max: 4}\n  epochs: {value: "
                     "10}\n")}));
  keep("sweep", "grid", joined({{0}, bytes_of("parameters: {lr: {values: [1, 2]}, b: {values: [a, b, c]}}\n")}));
  keep("sweep", "json",
       joined(
           {{1},
            bytes_of(
                R"({"command":["train_image","--lr={lr}"],"metric":"loss/val","goal":"min","by":"last",)"
                R"("points":[{"lr":"0.1"},{"lr":"../x"}],"bayes":{"parameters":[{"name":"lr","kind":"uniform",)"
                R"("values":[],"low":0.0,"high":1.0}],"trials":20,"seed":3},"early_stop":{"min_iter":1,"eta":3}})")}));
  keep("sweep", "point", joined({{2}, bytes_of(R"({"state":"failed","exit_code":3,"seconds":1.5,"values":{}})")}));
  keep("sweep", "flag", joined({{3}, bytes_of("lr=log:1e-5..1e-1")}));
  keep("sweep", "list", joined({{3}, bytes_of("model=a,b")}));
}

void index_seeds() {
  CheckpointIndex index;
  index.id = "0123";
  index.files = {{.bytes = 96, .crc32c = 7, .pieces = {{"model", "w", 0, 6}}}};
  CheckpointIndex::Part model;
  model.tensors.push_back({"w", DType::f32, Shape{2, 3}, false});
  model.scalars.push_back({"step", 0.5});
  index.parts = {{"model", model}};
  index.integers["step"] = 7;
  index.numbers["best"] = 1.0 / 3;
  index.texts["model"] = "resnet8";
  index.texts["bytes"] = "\xff";
  keep("checkpoint_index", "index", joined({{0}, bytes_of(index_text(index, 1))}));
  keep("checkpoint_index", "note", joined({{1}, bytes_of(note_text({index.files[0], {}, "disk full"}))}));
}

void hdf5_seeds() {
  keep("hdf5_data", "fields", {0, 4, 4, 1, 4, 1, 2, 3, 1, 0, 0});   // f32 in one piece
  keep("hdf5_data", "chunked", {0, 4, 4, 2, 4, 1, 2, 3, 1, 3, 0});  // f64
  keep("hdf5_data", "targets", {1, 3, 5, 1, 3, 4, 0, 1, 2, 0, 0});  // other labels
  keep("hdf5_data", "sequences", {1, 2, 5, 1, 2, 7, 2, 0, 3, 4, 0, 5, 1, 0, 5, 0});
  keep("hdf5_data", "links", {0, 0, 5, 0, 0, 6, 1, 0, 1, 6, 0, 2, 3, 6, 2});
}

void state_seeds() {
  for (uint8_t kind = 0; kind < 3; ++kind) {
    keep("torch_state", str("integer", int{kind}), joined({{kind}, word(3), {2, 0}, word(9), {3, 2}}));
    keep("torch_state", str("tensor", int{kind}), joined({{kind}, word(5), {5, 1, 2, 2, 3, 1}, word(1), {8, 0}}));
  }
  const auto tensor = [](uint8_t rank, std::string_view name) {
    return joined({{rank}, Bytes(rank, 3), {static_cast<uint8_t>(name.size())}, bytes_of(name)});
  };
  for (uint8_t map = 0; map < 20; ++map)
    keep("name_map", str("map", int{map}),
         joined({{map},
                 tensor(2, "encoder.layer.0.attention.attention.query.weight"),
                 tensor(2, "encoder.layer.0.attention.attention.key.weight"),
                 tensor(2, "encoder.layer.0.attention.attention.value.weight"),
                 tensor(2, "blocks.0.3.attn.qkv.weight"),
                 tensor(1, "bert.encoder.layer.0.attention.self.qkv.bias"),
                 tensor(2, "transformer.h.0.attn.c_attn.weight"),
                 tensor(1, "module.bert.embeddings.LayerNorm.gamma")}));
}

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.file 1 "a.cu"
.global .align 4 .b8 table[16] = {1, 2, 0xFF(table), 4};
.const .align 8 .u64 where[1] = {generic(table)+4};
.extern .shared .align 16 .b8 dynamic[];
.func (.param .b32 r) twice(.param .b32 x) { .reg .b32 %r<3>; ld.param.u32 %r1, [x]; shl.b32 %r2, %r1, 1;
 st.param.b32 [r+0], %r2; ret; }
.visible .entry kernel(.param .u64 .ptr .global .align 4 to, .param .u32 count) .maxntid 128, 1, 1 .minnctapersm 2
{
 .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .f32 %f<4>; .shared .align 4 .b8 tile[512];
 .loc 1 7 3
 ld.param.u64 %rd1, [to]; ld.param.u32 %r1, [count];
 mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, 128, %r2;
 setp.ge.u32 %p1, %r4, %r1; @%p1 bra DONE;
 cvta.to.global.u64 %rd2, %rd1; mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd2, %rd3;
 { .param .b32 p0; st.param.b32 [p0+0], %r4; .param .b32 q0; call.uni (q0), twice, (p0); ld.param.b32 %r5, [q0+0]; }
 cvt.rn.f32.u32 %f1, %r5; fma.rn.f32 %f2, %f1, 0f3F800000, %f1; st.global.f32 [%rd4+0], %f2;
 shfl.sync.down.b32 %r6|%p2, %r5, 1, 31, -1; bar.sync 0; atom.shared.add.u32 %r7, [tile], 1;
LOOP: add.s32 %r8, %r6, -1; setp.ne.s32 %p2, %r8, 0; @!%p2 bra LOOP;
DONE: ret;
}
)";

void emulator_seeds() {
  keep("ptx", "kernel", bytes_of(kPtx));
  keep("ptx", "tensor_cores",
       bytes_of(
           ".version 8.0\n.target sm_90a\n.address_size 64\n.entry k(){.reg .b32 %r<9>;.reg .f32 %f<9>;.reg .b64 "
           "%d<3>;.reg .pred p;\nmma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4},{%r1,%r2,%r3,"
           "%r4},{%r5,%r6},{%f1,%f2,%f3,%f4};\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n8k16.f32."
           "bf16.bf16 {%f1,%f2,%f3,%f4}, %d1, %d2, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n"
           "mbarrier.try_wait.parity.shared::cta.b64 p,[%r1],%r2;\ncp.async.bulk.tensor.2d.shared::cluster.global."
           "mbarrier::complete_tx::bytes [%r1],[%d1,{%r2,%r3}],[%r4];\nldmatrix.sync.aligned.m8n8.x4.shared.b16 "
           "{%r1,%r2,%r3,%r4},[%r5];\nret;}\n"));
  const auto number = [](uint64_t value, int bytes) {
    Bytes out;
    for (int i = 0; i < bytes; ++i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
    return out;
  };
  const auto entry = [&](uint16_t kind, const Bytes& payload, uint64_t flags, size_t raw) {
    return joined({number(kind, 2),
                   {1, 1},
                   number(64, 4),
                   number(payload.size(), 8),
                   number(payload.size(), 4),
                   number(0, 8),
                   number(80, 4),
                   number(0, 8),
                   number(flags, 8),
                   number(0, 8),
                   number(raw, 8),
                   payload});
  };
  const auto container = [&](const Bytes& entries) {
    return joined({{0}, number(0xba55ed50, 4), {1, 0, 16, 0}, number(entries.size(), 8), entries});
  };
  const Bytes text = bytes_of(".version 8.0\n.target sm_80\n.entry k(){ret;}\n");
  // A frame of zstd with one stored block (RFC 8878).
  const Bytes zstd = joined(
      {{0x28, 0xb5, 0x2f, 0xfd, 0x20, static_cast<uint8_t>(text.size())}, number(text.size() << 3 | 1, 3), text});
  keep("fatbin", "plain", container(entry(1, text, 0, 0)));
  keep("fatbin", "zstd", container(entry(1, zstd, 0x8000, text.size())));
  keep("fatbin", "text", joined({{0}, text}));

  // A cubin: two string tables, a symbol, and .nv.info with its registers.
  const std::string names("\0.nv.info\0.strtab\0.symtab\0kernel\0", 34);
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shnum = 4;
  header.e_shstrndx = 1;
  Elf64_Shdr sections[4]{};
  const uint64_t data = sizeof header + sizeof sections, symbols = data + names.size(),
                 info = symbols + 2 * sizeof(Elf64_Sym);
  const auto describe = [&](int section, uint32_t name, uint32_t type, uint64_t at, uint64_t bytes) {
    sections[section].sh_name = name;
    sections[section].sh_type = type;
    sections[section].sh_offset = at;
    sections[section].sh_size = bytes;
  };
  describe(1, 10, SHT_STRTAB, data, names.size());
  describe(2, 18, SHT_SYMTAB, symbols, 2 * sizeof(Elf64_Sym));
  sections[2].sh_link = 1;
  describe(3, 1, 0x70000000, info, 12);
  Elf64_Sym symbol[2]{};
  symbol[1].st_name = 26;
  const auto raw = [](const auto& value) {
    const auto* const begin = reinterpret_cast<const uint8_t*>(&value);
    return Bytes(begin, begin + sizeof value);
  };
  keep("fatbin", "cubin",
       joined(
           {{1}, raw(header), raw(sections), bytes_of(names), raw(symbol), {4, 0x2f, 8, 0, 1, 0, 0, 0, 40, 0, 0, 0}}));

  std::string line = "kernel=matmul\tgpu=h100";
  for (const char* field : {"blocks",
                            "counted_blocks",
                            "warps_per_block",
                            "cluster_blocks",
                            "resident_blocks",
                            "issued",
                            "fp32",
                            "integer",
                            "half",
                            "fp64",
                            "mufu",
                            "lsu",
                            "tensor_wgmma",
                            "tensor_mma",
                            "tensor_f64",
                            "wavefronts",
                            "l2_bytes",
                            "dram_bytes",
                            "dram_written",
                            "atomics",
                            "path"})
    line += str('\t', field, "=12");
  keep("time_table", "line", bytes_of(line));
  keep("tune_cache", "bad",
       joined({{2},
               bytes_of("sm"),
               {6},
               bytes_of("matmul"),
               {4},
               bytes_of("128x"),
               bytes_of("weft-tune-1\ta\tb\tc\td\t00000000\n")}));
  keep("tune_cache", "torn",
       joined({{1}, bytes_of("a"), {1}, bytes_of("b"), {1}, bytes_of("\t"), bytes_of("weft-tune-1\ta")}));
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
               piece(3, Writer(Kind::find_run).number(1).text("run").number(20).number(0)),
               piece(1, Writer(Kind::set_all).number(3).text("run").number(0).text(dist::packed({"a", "", "c"}))),
               {251}}));
  Bytes members{0};
  for (uint8_t rank = 0; rank < 4; ++rank)
    members = joined({members, piece(rank, Writer(Kind::join).number(rank).text("gpu1").number(4711 + rank))});
  keep("store", "members",
       joined({members,
               piece(1, Writer(Kind::heartbeat).text("world").number(4).number(3).text("all_reduce fc.bias f32[10]")),
               piece(1, Writer(Kind::states).number(1).number(3000)),
               piece(2, Writer(Kind::claim).number(1).number(60'000).text("stall 412 of world")),
               piece(3, Writer(Kind::absent).number(1)),
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
  const std::string greeting = "weft store 5\n" + std::string(32, 'n') + "a wish";
  keep("store", "handshake",
       joined({{4, 1}, word(greeting.size()), bytes_of(greeting), word(32), Bytes(32, 7), word(0), Bytes(40)}));
  keep("store", "file", joined({{5}, bytes_of("9223372036854775806")}));
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
  vocabulary_seeds(fs::path(argv[1]) / "golden");
  hugging_face_seeds();
  run_folder_seeds();
  sweep_seeds();
  index_seeds();
  hdf5_seeds();
  state_seeds();
  emulator_seeds();
  store_seeds();
  return 0;
}
