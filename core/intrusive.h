// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <atomic>
#include <utility>

namespace weft {

/// Base of objects that count their owners; deleted with the last Ref.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  int owners() const { return owners_.load(std::memory_order_relaxed); }

 protected:
  virtual ~RefCounted() = default;
  /// Called by the last owner; Node takes long chains apart here.
  virtual void destroy() { delete this; }

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<int> owners_{0};
};

/// A counting pointer with the count inside the object: a single allocation, a single word.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) { retain(); }
  Ref(const Ref& other) : object_(other.object_) { retain(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  bool operator==(const Ref& other) const { return object_ == other.object_; }

 private:
  void retain() {
    if (object_) object_->owners_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (object_ && object_->owners_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      static_cast<RefCounted*>(object_)->destroy();
  }
  T* object_ = nullptr;
};

/// A new T of these arguments, with its first owner.
template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  return Ref<T>(new T(std::forward<Args>(args)...));
}

}  // namespace weft
