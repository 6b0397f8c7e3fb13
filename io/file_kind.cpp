// SPDX-License-Identifier: Apache-2.0
#include "io/file_kind.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "io/seal.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kHead = 4096;        // bytes that tell the kind
constexpr uint64_t kKerasHead = 65536;  // in which libhdf5 keeps the names of a file's first groups and attributes

const char* const kConvert = "Load it in the program that wrote it and save its tensors as .safetensors";

std::string head_of(const FileReader& file, uint64_t bytes) {
  std::string head(std::min(file.size(), bytes), '\0');
  file.read(0, head.data(), head.size());
  return head;
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

/// The name of the first entry of a zip archive.
std::string first_entry(std::string_view head) {
  constexpr size_t kHeader = 30, kLengthAt = 26;
  if (head.size() < kHeader) return "";
  const size_t length = static_cast<unsigned char>(head[kLengthAt]) | static_cast<unsigned char>(head[kLengthAt + 1])
                                                                          << 8;
  return std::string(head.substr(kHeader, length));
}

FileKind zip_kind(std::string_view head) {
  const std::string entry = first_entry(head);
  if (entry.ends_with(".npy"))
    return {"NumPy's archive of arrays (.npz)",
            "In Python: safetensors.numpy.save_file(dict(numpy.load(FILE)), 'NEW.safetensors')"};
  if (has("metadata.json config.json model.weights.h5", entry) && !entry.empty())
    return {"a model of Keras (.keras)", kConvert};
  if (entry.ends_with("/data.pkl") || entry.ends_with("/version") || entry.ends_with("/byteorder") ||
      entry.ends_with("/constants.pkl") || has(entry, "/.data/") || has(entry, "/data/"))
    return {"a file of PyTorch", "--weights starts from its weights; weft-weights convert writes them as .safetensors"};
  if (entry == "[Content_Types].xml" || entry.starts_with("xl/") || entry.starts_with("_rels/"))
    return {"a document of an office program, such as Excel's .xlsx", "Save it there as CSV in UTF-8"};
  return {"a zip archive that begins with '" + entry.substr(0, 100) + "'", "Unpack it, and name the file inside"};
}

FileKind tar_kind(std::string_view head) {
  const std::string entry(head.substr(0, head.find('\0')));
  if (entry == "sys_info" || entry == "pickle" || entry == "tensors" || entry == "storages")
    return {"a file of PyTorch before version 0.2 (a tar archive)", "Load it in PyTorch and torch.save it again"};
  return {"a tar archive that begins with '" + entry.substr(0, 100) + "'",
          "Unpack it (tar -xf), and name the file inside"};
}

FileKind hdf5_kind(const FileReader& file) {
  const std::string head = head_of(file, kKerasHead);
  for (const char* sign : {"keras_version", "model_weights", "layer_names", "_layer_checkpoint_dependencies"})
    if (has(head, sign))
      return {"a file of Keras (HDF5)", "In Python: load it in Keras and save its arrays as .safetensors"};
  if (check_seal(file.path()) == SealState::missing) return {};
  return {"a checkpoint of Weft before its first release (HDF5)",
          "The Weft that wrote it converts it: weft-weights convert --checkpoint OLD.h5 NEW.safetensors"};
}

/// Decides by the first bytes, which are no sign of weights or data.
FileKind start_kind(std::string_view head) {
  const struct {
    std::string_view start;
    const char *name, *cure;
  } kinds[] = {
      {"GGUF", "a file of llama.cpp (GGUF)", "Weft reads the .safetensors that it was made from"},
      {"\x1f\x8b", "packed by gzip", "Unpack it: gunzip, or tar -xzf for .tar.gz"},
      {"\xfd"
       "7zXZ",
       "packed by xz", "Unpack it: unxz, or tar -xJf for .tar.xz"},
      {"BZh", "packed by bzip2", "Unpack it: bunzip2, or tar -xjf for .tar.bz2"},
      {"\x28\xb5\x2f\xfd", "packed by zstd", "Unpack it: unzstd"},
      {"7z\xbc\xaf", "a 7z archive", "Unpack it, and name the file inside"},
      {"Rar!", "a rar archive", "Unpack it, and name the file inside"},
      {"\x93NUMPY", "an array of NumPy (.npy)",
       "In Python: safetensors.numpy.save_file({NAME: numpy.load(FILE)}, 'NEW.safetensors')"},
  };
  for (const auto& kind : kinds)
    if (head.starts_with(kind.start)) return {kind.name, kind.cure};
  return {};
}

/// A protobuf of ONNX: ir_version (field 1), then the producer's name (field 2) or an opset.
bool is_onnx(std::string_view head) {
  return head.size() > 4 && head[0] == 8 && head[1] > 0 && head[1] < 32 && (head[2] == 0x12 || head[2] == 0x3a);
}

/// The last bytes of a table of LevelDB, which TensorFlow's .index files are.
bool is_table(const FileReader& file) {
  constexpr std::string_view kMagic("\x57\xfb\x80\x8b\x24\x75\x47\xdb");
  if (file.size() < kMagic.size()) return false;
  std::array<char, 8> tail{};
  file.read(file.size() - tail.size(), tail.data(), tail.size());
  return std::string_view(tail.data(), tail.size()) == kMagic;
}

const FileKind kTensorFlow{"a checkpoint of TensorFlow", kConvert};

}  // namespace

FileKind kind_of(const FileReader& file) {
  if (file.size() == 0) return {"an empty file", "Was it copied or downloaded in whole?"};
  const std::string head = head_of(file, kHead), name = lower_case(fs::path(file.path()).filename().string());
  const size_t first = head.find_first_not_of(" \t\r\n");
  const std::string text = first == std::string::npos ? "" : lower_case(head.substr(first, 64));
  if (text.starts_with("<!doctype html") || text.starts_with("<html") || text.starts_with("<head"))
    return {"a web page (HTML)",
            "Its server has answered with a page, such as a login or an error. Download the file again"};
  if (text.starts_with("<?xml")) return {"a text in XML", "Is it a server's refusal? Download the file again"};
  if (head.starts_with("PK\x03\x04")) return zip_kind(head);
  if (head.starts_with("\x89HDF")) return hdf5_kind(file);
  if (head.size() > 262 && head.substr(257, 5) == "ustar") return tar_kind(head);
  if (FileKind kind = start_kind(head); !kind.name.empty()) return kind;
  const auto called = [&](const char* part) { return has(name, part); };
  if (called(".onnx") || is_onnx(head)) return {"a model in ONNX", kConvert};
  if (is_table(file) || called(".ckpt.data-") || called(".ckpt.meta") || called("variables.data-")) return kTensorFlow;
  if (called(".msgpack")) return {"a file of Flax (msgpack)", kConvert};
  if (called(".pb")) return {"a graph of TensorFlow (protobuf)", kConvert};
  if (called(".tflite")) return {"a model of TensorFlow Lite", kConvert};
  if (called(".distcp"))
    return {"a part of a torch.distributed.checkpoint folder",
            "python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER NEW.pt"};
  const bool is_pickle = head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
  // At the start alone: a plain pickle may hold such files as bytes.
  if (is_pickle && has(head.substr(0, 64), "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8"))
    return {"a file of PyTorch", "--weights starts from its weights; weft-weights convert writes them as .safetensors"};
  if (is_pickle)
    return {"a pickle that torch.save did not write", "In PyTorch: torch.save(pickle.load(open(FILE, 'rb')), NEW)"};
  return {};
}

FileKind kind_of_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  const auto find = [&](auto&& wanted) -> std::string {
    const auto found = std::find_if(names.begin(), names.end(), wanted);
    return found == names.end() ? "" : *found;
  };
  const auto named = [&](std::string_view name) {
    return !find([&](const std::string& one) { return one == name; }).empty();
  };
  const auto ending = [&](std::string_view end) {
    return find([&](const std::string& one) { return one.ends_with(end); });
  };
  const auto is_shard = [](const std::string& one) {
    return one.starts_with("rank_") && one.ends_with(".safetensors");
  };
  if (!find(is_shard).empty()) return {};  // Weft's own, of a sharded checkpoint
  if (names.empty()) return {"an empty folder", "Was it copied or downloaded in whole?"};
  if (!ending(".distcp").empty())
    return {"a folder of torch.distributed.checkpoint",
            "python -m torch.distributed.checkpoint.format_utils dcp_to_torch " + folder.string() + " NEW.pt"};
  const std::string states = ending("model_states.pt");
  if (named("zero_to_fp32.py"))
    return {"a checkpoint of DeepSpeed", "Its zero_to_fp32.py writes one file: python zero_to_fp32.py . NEW"};
  if (!states.empty())
    return {"a checkpoint of DeepSpeed",
            "Name its file " + states + " (ZeRO stage 3: DeepSpeed's zero_to_fp32.py writes one)"};
  if (named("saved_model.pb") || !ending(".ckpt.index").empty() || !ending(".index").empty()) return kTensorFlow;
  if (named("_METADATA") || named("_CHECKPOINT_METADATA") || named("manifest.ocdbt"))
    return {"a checkpoint of Orbax (JAX)", kConvert};
  if (named("data.pkl") && named("data"))
    return {"a file of PyTorch that was unpacked",
            "Name the archive itself, or pack the folder again: zip -0 -r NEW.pt " + folder.filename().string()};
  if (named("adapter_config.json")) return {"an adapter (PEFT)", "Merge it into its model first: merge_and_unload()"};
  for (const char* other : {"tf_model.h5", "flax_model.msgpack"})
    if (named(other))
      return {std::string("a folder of Hugging Face with ") + other + " alone",
              "In Python: from_pretrained(…) and save_pretrained(…) write model.safetensors"};
  std::vector<std::string> files;
  for (const std::string& name : names)
    for (const char* end :
         {".safetensors", ".pt", ".pth", ".bin", ".th", ".ckpt", ".h5", ".gguf", ".onnx", ".npz", ".tar"})
      if (name.ends_with(end)) files.push_back((folder / name).string());
  if (files.empty()) return {};
  return {"a folder", "Name a file in it: " + joined(files, 6)};
}

void refuse_known(const FileReader& file, const std::string& expected) {
  const FileKind kind = kind_of(file);
  if (!kind.name.empty()) file.bad("it is ", kind.name, ", expected ", expected, ". ", kind.cure);
}

void refuse(const FileReader& file, const std::string& expected, const std::string& otherwise) {
  refuse_known(file, expected);
  file.bad("expected ", expected, ", got ", otherwise);
}

}  // namespace weft
