// SPDX-License-Identifier: Apache-2.0
// tex, tld4, suld, sust, txq, suq (PTX ISA 9.7.10, 9.7.11) by unified handles, which are 64-bit numbers.
#include <algorithm>
#include <array>

#include "emulator/machine/touched.h"
#include "emulator/ptx/instructions/lanes.h"
#include "emulator/ptx/instructions/texture.h"
#include "emulator/ptx/lower/lowering.h"

namespace emulator::ptx {

namespace {

enum class Geometry { d1, d2, d3, a1d, a2d, cube, acube };

struct GeometryName {
  std::string_view name;
  Geometry geometry;
  size_t coordinates;  ///< without the layer
  bool layered;
};
constexpr GeometryName kGeometries[] = {{"1d", Geometry::d1, 1, false},     {"2d", Geometry::d2, 2, false},
                                        {"3d", Geometry::d3, 3, false},     {"a1d", Geometry::a1d, 1, true},
                                        {"a2d", Geometry::a2d, 2, true},    {"cube", Geometry::cube, 3, false},
                                        {"acube", Geometry::acube, 3, true}};

const GeometryName* geometry_of(std::string_view mod) {
  const auto* const found = std::ranges::find(kGeometries, mod, &GeometryName::name);
  return found == std::end(kGeometries) ? nullptr : found;
}

/// An instruction's operands.
struct ImageForm {
  std::array<Ref, 4> values{kNoRef, kNoRef, kNoRef, kNoRef};  ///< read or written
  uint32_t count = 4;                                         ///< number of values
  uint32_t bytes = 4;                                         ///< per value, in memory
  std::array<Ref, 3> at{kNoRef, kNoRef, kNoRef};
  Ref layer = kNoRef, level = kNoRef;
  std::array<Ref, 3> dx{kNoRef, kNoRef, kNoRef}, dy{kNoRef, kNoRef, kNoRef};
  const GeometryName* geometry = nullptr;
  bool is_texel = false;  ///< integer coordinates
  int channel = -1;       ///< tld4's
  enum class Outside { trap, clamp, zero } outside = Outside::trap;
  std::string_view asked;  ///< a query's
};

const ImageForm& form_of(const Instruction* i) { return *static_cast<const ImageForm*>(i->more); }

/// The handle that was looked up last, which an instruction's lanes mostly share.
template <class T>
class Lookup {
 public:
  Lookup(Warp& w, const Instruction* i, const char* what) : w_(w), i_(i), what_(what) {}
  const T& at(int lane, uint64_t handle) {
    if (found_ != nullptr && handle == handle_) return *found_;
    found_ = find(handle);
    handle_ = handle;
    if (found_ == nullptr)
      w_.fail(i_, lane, FaultCode::illegal_address,
              cat(what_, " object ", handle, ": there is none, or it was destroyed"));
    const Image& image = image_of(*found_);
    if (!image.alive())
      w_.fail(i_, lane, FaultCode::illegal_address, cat("a ", what_, " object whose memory was freed"));
    if (w_.block->cluster->touched != nullptr) note(image);
    return *found_;
  }

 private:
  static const Image& image_of(const Texture& t) { return t.image; }
  static const Image& image_of(const Image& image) { return image; }
  static const T* find(uint64_t handle) {
    if constexpr (std::is_same_v<T, Texture>)
      return find_texture(handle);
    else
      return find_surface(handle);
  }
  /// Informs the checks that all of it may be read: once for a launch and an image.
  void note(const Image& image) const {
    static thread_local std::pair<uint64_t, const Image*> last;
    const std::pair now{w_.block->grid->launch->number, &image};
    if (std::exchange(last, now) == now) return;
    for (const Image::Level& level : image.levels)
      w_.block->cluster->touched->note(level.data, level.bytes(image.element()), Touch::read);
  }

  Warp& w_;
  const Instruction* i_;
  const char* what_;
  const T* found_ = nullptr;
  uint64_t handle_ = 0;
};

template <class T>
T lane_value(const Warp& w, Ref r, int lane) {
  return r == kNoRef ? T{} : w.in<T>(r)[lane];
}

TextureCoordinates coordinates(const Warp& w, const ImageForm& form, int lane) {
  TextureCoordinates where;
  where.is_texel = form.is_texel;
  where.layer = lane_value<uint32_t>(w, form.layer, lane);
  where.level = lane_value<float>(w, form.level, lane);
  for (size_t k = 0; k < 3; ++k)
    if (form.is_texel)
      where.texel[k] = lane_value<int>(w, form.at[k], lane);
    else
      where.at[k] = lane_value<float>(w, form.at[k], lane);
  return where;
}

const Instruction* fetch(Warp& w, const Instruction* i) {
  const ImageForm& form = form_of(i);
  Lookup<Texture> lookup(w, i, "texture");
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const Texture& texture = lookup.at(l, w.in<uint64_t>(i->a)[l]);
    if (form.layer != kNoRef && !texture.image.layered)
      w.fail(i, l, FaultCode::illegal_instruction, "a layer of a texture that has none");
    TextureCoordinates where = coordinates(w, form, l);
    if (const int64_t at = where.texel[0], width = texture.image.levels[0].width; at >= width && uint64_t(at) < texture.image.described)
      w.fail(i, l, FaultCode::illegal_address,
             cat("texel ", at, " of a texture of ", texture.image.described, ", whose memory ends after ", width));
    if (form.dx[0] != kNoRef) {
      float dx[3], dy[3];
      for (size_t k = 0; k < 3; ++k)
        dx[k] = lane_value<float>(w, form.dx[k], l), dy[k] = lane_value<float>(w, form.dy[k], l);
      where.level = level_of(texture, dx, dy);
    }
    const Texel found = form.channel < 0 ? sample(texture, where) : gather(texture, where, form.channel);
    for (uint32_t n = 0; n < form.count; ++n)
      if (form.values[n] != kNoRef) w.out<uint32_t>(form.values[n])[l] = found.bits[n];
  }
  return i + 1;
}

/// The bytes that a surface instruction names; nullptr: it does nothing, or reads 0.
char* surface_bytes(Warp& w, const Instruction* i, int lane, const Image& image, const ImageForm& form) {
  const Image::Level& level = image.levels[0];
  const uint32_t bytes = form.count * form.bytes;
  const int64_t size[3] = {int64_t{level.width} * image.element(), level.height,
                           image.layered || image.cube ? 1 : level.depth};
  int64_t at[3];
  for (size_t k = 0; k < 3; ++k) {
    at[k] = lane_value<int>(w, form.at[k], lane);
    const int64_t most = size[k] - (k == 0 ? bytes : 1);
    if (at[k] >= 0 && at[k] <= most) continue;
    if (form.outside == ImageForm::Outside::zero) return nullptr;
    if (form.outside == ImageForm::Outside::trap)
      w.fail(i, lane, FaultCode::launch_failure,
             cat("surface coordinate ", "xyz"[k], " is ", at[k], k == 0 ? " bytes of " : " of ", size[k]));
    at[k] = std::clamp<int64_t>(at[k], 0, most);
  }
  const uint32_t slice =
      form.layer == kNoRef ? static_cast<uint32_t>(at[2]) : lane_value<uint32_t>(w, form.layer, lane);
  if (slice >= level.depth) {
    if (form.outside == ImageForm::Outside::zero) return nullptr;
    w.fail(i, lane, FaultCode::launch_failure, cat("surface layer ", slice, " of ", level.depth));
  }
  if (at[0] % form.bytes != 0)
    w.fail(i, lane, FaultCode::misaligned_address,
           cat("surface coordinate x is ", at[0], " for an access of ", form.bytes, " bytes"));
  return reinterpret_cast<char*>(level.data + slice * level.slice + static_cast<uint64_t>(at[1]) * level.pitch +
                                 static_cast<uint64_t>(at[0]));
}

const Instruction* load_surface(Warp& w, const Instruction* i) {
  const ImageForm& form = form_of(i);
  Lookup<Image> lookup(w, i, "surface");
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const char* const at = surface_bytes(w, i, l, lookup.at(l, w.in<uint64_t>(i->a)[l]), form);
    for (uint32_t n = 0; n < form.count; ++n) {
      uint64_t value = 0;
      if (at != nullptr) std::memcpy(&value, at + n * form.bytes, form.bytes);
      if (form.values[n] == kNoRef) continue;
      if (form.bytes == 8)
        w.out<uint64_t>(form.values[n])[l] = value;
      else
        w.out<uint32_t>(form.values[n])[l] = static_cast<uint32_t>(value);
    }
  }
  return i + 1;
}

const Instruction* store_surface(Warp& w, const Instruction* i) {
  const ImageForm& form = form_of(i);
  Lookup<Image> lookup(w, i, "surface");
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    char* const at = surface_bytes(w, i, l, lookup.at(l, w.in<uint64_t>(i->a)[l]), form);
    if (at == nullptr) continue;
    for (uint32_t n = 0; n < form.count; ++n) {
      const uint64_t value = form.bytes == 8 ? w.in<uint64_t>(form.values[n])[l] : w.in<uint32_t>(form.values[n])[l];
      std::memcpy(at + n * form.bytes, &value, form.bytes);
    }
    if (Touched* const touched = w.block->cluster->touched)
      touched->note(reinterpret_cast<uintptr_t>(at), form.count * form.bytes, Touch::write);
  }
  return i + 1;
}

uint32_t answer(const Image& image, std::string_view asked) {
  const Image::Level& level = image.levels[0];
  if (asked == "width") return level.width;
  if (asked == "height") return level.height;
  if (asked == "depth") return image.layered || image.cube ? 0 : level.depth;
  if (asked == "array_size") return image.layered ? image.layers() : 0;
  return static_cast<uint32_t>(image.levels.size());
}

template <class T>
const Instruction* query(Warp& w, const Instruction* i) {
  Lookup<T> lookup(w, i, std::is_same_v<T, Texture> ? "texture" : "surface");
  for (uint32_t left = w.lanes(i); left != 0; left &= left - 1) {
    const int l = std::countr_zero(left);
    const T& found = lookup.at(l, w.in<uint64_t>(i->a)[l]);
    if constexpr (std::is_same_v<T, Texture>)
      w.out<uint32_t>(i->d)[l] = answer(found.image, form_of(i).asked);
    else
      w.out<uint32_t>(i->d)[l] = answer(found, form_of(i).asked);
  }
  return i + 1;
}

Ref handle(Lowering& l, const Operand& o, size_t parts) {
  if (o.kind != Operand::Kind::address || o.parts.size() != parts || o.value != 0 || l.register_bytes(o.parts[0]) != 8)
    l.unknown("a texture or surface that is no 64-bit handle in a register");
  return l.source(o.parts[0], Type::b64);
}

template <size_t N>
void read_vector(Lowering& l, const Operand& o, size_t count, std::array<Ref, N>& out, Type type) {
  if (o.kind != Operand::Kind::vector) {
    if (count != 1) l.unknown("coordinates");
    out[0] = l.source(o, type);
    return;
  }
  if (o.parts.size() < count) l.unknown("coordinates");
  for (size_t k = 0; k < count; ++k) out[k] = l.source(o.parts[k], type);
}

/// [ handle, { layer, x, y, z } ]
Ref read_place(Lowering& l, const Operand& o, ImageForm& form, Type type) {
  const Ref found = handle(l, o, 2);
  Operand coordinates = o.parts[1];
  if (form.geometry->layered) {
    if (coordinates.kind != Operand::Kind::vector || coordinates.parts.empty()) l.unknown("coordinates");
    form.layer = l.source(coordinates.parts[0], Type::b32);
    coordinates.parts.erase(coordinates.parts.begin());
  }
  read_vector(l, coordinates, form.geometry->coordinates, form.at, type);
  return found;
}

void write_values(Lowering& l, const Operand& o, ImageForm& form) {
  if (o.kind != Operand::Kind::vector || o.parts.size() != form.count)
    l.unknown("the destination is no vector of this length");
  for (size_t n = 0; n < form.count; ++n) form.values[n] = l.destination(o.parts[n]);
}

void lower_tex(Lowering& l) {
  ImageForm form;
  bool levels = false, gradients = false;
  for (const std::string_view mod : l.mods()) {
    if (mod == "level")
      levels = true;
    else if (mod == "grad")
      gradients = true;
    else if (const GeometryName* const geometry = geometry_of(mod))
      form.geometry = geometry;
    else if (mod != "v4" && mod != "base" && type_of(mod) == Type::none)
      l.unknown(cat("modifier .", mod));
  }
  const Type to = l.type(0), at = l.type(1);
  if (form.geometry == nullptr || !l.has("v4") || bytes_of(to) != 4 || (at != Type::s32 && at != Type::f32) ||
      l.operands() != (gradients ? 4u
                       : levels  ? 3u
                                 : 2u))
    l.unknown("this form of a fetch");
  form.is_texel = at == Type::s32;
  write_values(l, l.operand(0), form);
  const Ref texture = read_place(l, l.operand(1), form, at);
  if (levels) form.level = l.source(l.operand(2), at);
  if (levels && form.is_texel) l.unknown("a level in texels");
  if (gradients) {
    read_vector(l, l.operand(2), form.geometry->coordinates, form.dx, Type::f32);
    read_vector(l, l.operand(3), form.geometry->coordinates, form.dy, Type::f32);
  }
  l.emit(fetch, kNoRef, texture).more = l.keep(form);
}

void lower_gather(Lowering& l) {
  ImageForm form;
  for (const std::string_view mod : l.mods()) {
    if (const size_t channel = std::string_view("rgba").find(mod); mod.size() == 1 && channel != std::string_view::npos)
      form.channel = static_cast<int>(channel);
    else if (const GeometryName* const geometry = geometry_of(mod))
      form.geometry = geometry;
    else if (mod != "v4" && type_of(mod) == Type::none)
      l.unknown(cat("modifier .", mod));
  }
  if (form.channel < 0 || form.geometry == nullptr || form.geometry->coordinates != 2 || bytes_of(l.type(0)) != 4 ||
      l.type(1) != Type::f32 || l.operands() != 2)
    l.unknown("this form of a gather");
  write_values(l, l.operand(0), form);
  const Ref texture = read_place(l, l.operand(1), form, Type::f32);
  l.emit(fetch, kNoRef, texture).more = l.keep(form);
}

ImageForm surface_form(Lowering& l) {
  ImageForm form;
  form.count = 1;
  for (const std::string_view mod : l.mods()) {
    if (const GeometryName* const geometry = geometry_of(mod))
      form.geometry = geometry;
    else if (mod == "v2" || mod == "v4")
      form.count = mod == "v2" ? 2 : 4;
    else if (mod == "trap" || mod == "clamp" || mod == "zero")
      form.outside = mod == "trap"    ? ImageForm::Outside::trap
                     : mod == "clamp" ? ImageForm::Outside::clamp
                                      : ImageForm::Outside::zero;
    else if (mod != "b" && type_of(mod) == Type::none && mod != "ca" && mod != "cg" && mod != "cs" && mod != "cv" &&
             mod != "wb" && mod != "wt")
      l.unknown(cat("modifier .", mod));
  }
  form.bytes = static_cast<uint32_t>(bytes_of(l.type()));
  if (form.geometry == nullptr || !l.has("b") || form.bytes == 0 || form.bytes > 8 || l.operands() != 2)
    l.unknown("this form of a surface access");
  return form;
}

void lower_load(Lowering& l) {
  ImageForm form = surface_form(l);
  if (form.count == 1 && l.operand(0).kind != Operand::Kind::vector)
    form.values[0] = l.destination(l.operand(0));
  else
    write_values(l, l.operand(0), form);
  const Ref surface = read_place(l, l.operand(1), form, Type::b32);
  l.emit(load_surface, kNoRef, surface).more = l.keep(form);
}

void lower_store(Lowering& l) {
  ImageForm form = surface_form(l);
  const Ref surface = read_place(l, l.operand(0), form, Type::b32);
  read_vector(l, l.operand(1), form.count, form.values, form.bytes == 8 ? Type::b64 : Type::b32);
  l.emit(store_surface, kNoRef, surface).more = l.keep(form);
}

void lower_query(Lowering& l) {
  ImageForm form;
  const bool is_texture = l.op() == "txq";
  constexpr std::string_view kAsked[] = {"width", "height", "depth", "array_size", "num_mipmap_levels"};
  if (l.mods().empty() || std::ranges::find(kAsked, l.mods()[0]) == std::end(kAsked) || bytes_of(l.type()) != 4)
    l.unknown("this query");
  form.asked = l.mods()[0];
  const Ref image = handle(l, l.operand(1), 1);
  l.emit(is_texture ? query<Texture> : query<Image>, l.destination(l.operand(0)), image).more = l.keep(form);
}

constexpr Opcode kOpcodes[] = {
    {"tex", lower_tex},   {"tld4", lower_gather}, {"suld", lower_load}, {"sust", lower_store, Roles::all_read},
    {"txq", lower_query}, {"suq", lower_query},
};

}  // namespace

Family texture_family() { return {kOpcodes, std::size(kOpcodes)}; }

}  // namespace emulator::ptx
