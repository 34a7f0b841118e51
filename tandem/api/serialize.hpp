// tandem/api/serialize.hpp: converts values of the user's types to bytes, and back on another rank.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tandem/runtime/data/object.hpp"

namespace tandem {

/// Thrown when a message does not have the form that the reader of a type expects.
class MalformedMessage : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ByteWriter;
class ByteReader;

/// How values of type T travel between ranks: the user's to specialise.
///
///   template <>
///   struct tandem::Serialize<Mesh> {
///     static void write(const Mesh& mesh, ByteWriter& out) { out.write(mesh.name), out.write(mesh.points); }
///     static Mesh read(ByteReader& in);  // the same in the same order, by in.read<std::string>() and so on
///   };
///
/// Both are called on any thread, for several values at a time. Either may throw: then the tasks that want the value
/// are cancelled, as if a kernel had thrown. Built in: trivially copyable types, which travel as their bytes;
/// std::vector, std::basic_string, std::array, std::pair, std::tuple, std::optional, and containers with `insert(end,
/// value)` (list, deque, map, set, ...), of types with a Serialize. All ranks have the same byte order and layouts.
template <class T>
struct Serialize;

/// Bytes that a value is written to.
class ByteWriter {
 public:
  /// Appends to `bytes`, which outlives this.
  explicit ByteWriter(std::vector<std::byte>& bytes) noexcept : bytes_(bytes) {}

  /// Appends a value by its `Serialize`.
  template <class T>
  void write(const T& value) {
    Serialize<T>::write(value, *this);
  }
  /// Appends `count` bytes as they are.
  void write_bytes(const void* from, std::size_t count) {
    const auto* first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + count);
  }
  /// Appends a number of elements, for `ByteReader::read_size`.
  void write_size(std::size_t size) {
    const auto count = static_cast<std::uint64_t>(size);
    write_bytes(&count, sizeof count);
  }

 private:
  std::vector<std::byte>& bytes_;
};

/// Bytes that a value is read from. A read beyond the end throws MalformedMessage.
class ByteReader {
 public:
  /// Reads from `bytes`, which outlive this.
  explicit ByteReader(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {}

  /// Reads the next value by its `Serialize`.
  template <class T>
  T read() {
    return Serialize<T>::read(*this);
  }
  /// Reads the next `count` bytes; they stay in place while the reader is used.
  std::span<const std::byte> read_bytes(std::size_t count) {
    if (count > bytes_.size())
      throw MalformedMessage("the message ends " + std::to_string(count - bytes_.size()) + " bytes too early");
    const std::span<const std::byte> taken = bytes_.first(count);
    bytes_ = bytes_.subspan(count);
    return taken;
  }
  /// Reads a number of elements that take `element_bytes` each; at most as many as the rest can hold.
  std::size_t read_size(std::size_t element_bytes = 0) {
    std::uint64_t count = 0;
    std::memcpy(&count, read_bytes(sizeof count).data(), sizeof count);
    if (element_bytes != 0 && count > bytes_.size() / element_bytes)
      throw MalformedMessage("the message announces " + std::to_string(count) + " elements, and has " +
                             std::to_string(bytes_.size()) + " bytes left");
    return static_cast<std::size_t>(count);
  }
  std::size_t left() const noexcept { return bytes_.size(); }  ///< number of bytes that are not read yet

 private:
  std::span<const std::byte> bytes_;
};

namespace internal {

template <class T>
inline constexpr bool is_view = std::ranges::enable_borrowed_range<std::remove_cv_t<T>>;

/// Whether the value of a type is its bytes, as far as the compiler can see.
template <class T>
concept Flat = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> && !std::is_member_pointer_v<T> && !is_view<T>;

/// Whether a type is a sequence of elements that can be inserted at the end.
template <class C>
concept Container =
    !std::is_trivially_copyable_v<C> && requires(const C& container, C& target, typename C::value_type element) {
  container.begin();
  container.end();
  { container.size() } -> std::convertible_to<std::size_t>;
  target.insert(target.end(), std::move(element));
};

template <class T>
struct IsString : std::false_type {};
template <class Character, class Traits, class Allocator>
struct IsString<std::basic_string<Character, Traits, Allocator>> : std::true_type {};
template <class T>
struct IsVector : std::false_type {};
template <class T, class Allocator>
struct IsVector<std::vector<T, Allocator>> : std::true_type {};

/// Whether elements are contiguous and are their bytes: vectors except `std::vector<bool>`, and strings.
template <class C>
inline constexpr bool is_block = false;
template <class C>
  requires(IsString<C>::value || IsVector<C>::value)
inline constexpr bool is_block<C> = Flat<typename C::value_type> && !std::is_same_v<C, std::vector<bool>>;

}  // namespace internal

template <class T>
struct Serialize {
  static_assert(
      internal::Flat<T>,
      "values of this type cannot travel between ranks as their bytes: specialise tandem::Serialize for it, with "
      "write(const T&, ByteWriter&) and read(ByteReader&)");
  /// Appends the value to a message.
  static void write(const T& value, ByteWriter& out) { out.write_bytes(std::addressof(value), sizeof value); }
  /// Takes the value from a message. Throws MalformedMessage.
  static T read(ByteReader& in) {
    std::array<std::byte, sizeof(T)> bytes;
    std::memcpy(bytes.data(), in.read_bytes(sizeof(T)).data(), sizeof(T));
    if constexpr (std::is_same_v<T, bool>) return bytes[0] != std::byte{0};  // whatever a malformed message says
    else return std::bit_cast<T>(bytes);
  }
};

/// Containers travel as the number of elements, and the elements.
template <internal::Container C>
struct Serialize<C> {
  using Element = typename C::value_type;  ///< has a Serialize
  /// Appends the value to a message.
  static void write(const C& container, ByteWriter& out) {
    out.write_size(container.size());
    if constexpr (internal::is_block<C>) {
      out.write_bytes(container.data(), container.size() * sizeof(Element));
    } else {
      for (const auto& element : container) out.write(static_cast<const Element&>(element));
    }
  }
  /// Takes the value from a message. Throws MalformedMessage.
  static C read(ByteReader& in) {
    C container;
    if constexpr (internal::is_block<C>) {
      const std::size_t count = in.read_size(sizeof(Element));
      container.resize(count);
      if (count > 0)
        std::memcpy(container.data(), in.read_bytes(count * sizeof(Element)).data(), count * sizeof(Element));
    } else {
      const std::size_t count = in.read_size();
      if constexpr (requires { container.reserve(count); }) container.reserve(std::min(count, in.left()));
      for (std::size_t i = 0; i < count; ++i) container.insert(container.end(), in.read<Element>());
    }
    return container;
  }
};

/// A constant type travels as the type without `const`.
template <class T>
struct Serialize<const T> : Serialize<T> {};

/// A pair travels as both parts, one after the other.
template <class First, class Second>
struct Serialize<std::pair<First, Second>> {
  /// Appends the value to a message.
  static void write(const std::pair<First, Second>& pair, ByteWriter& out) {
    out.write(pair.first), out.write(pair.second);
  }
  /// Takes the value from a message. Throws MalformedMessage.
  static std::pair<First, Second> read(ByteReader& in) {
    // The braces keep the order of the reads.
    return {in.read<std::remove_cv_t<First>>(), in.read<std::remove_cv_t<Second>>()};
  }
};

/// A tuple travels as all parts, one after the other.
template <class... Parts>
struct Serialize<std::tuple<Parts...>> {
  /// Appends the value to a message.
  static void write(const std::tuple<Parts...>& tuple, ByteWriter& out) {
    std::apply([&out](const Parts&... parts) { (out.write(parts), ...); }, tuple);
  }
  /// Takes the value from a message. Throws MalformedMessage.
  static std::tuple<Parts...> read([[maybe_unused]] ByteReader& in) {
    return std::tuple<Parts...>{in.read<std::remove_cv_t<Parts>>()...};
  }
};

/// An optional travels as whether there is a value, and the value.
template <class T>
struct Serialize<std::optional<T>> {
  /// Appends the value to a message.
  static void write(const std::optional<T>& value, ByteWriter& out) {
    out.write(value.has_value());
    if (value) out.write(*value);
  }
  /// Takes the value from a message. Throws MalformedMessage.
  static std::optional<T> read(ByteReader& in) {
    if (!in.read<bool>()) return std::nullopt;
    return in.read<T>();
  }
};

/// An array travels as all elements, one after the other.
template <class T, std::size_t count>
  requires(!internal::Flat<std::array<T, count>>)
struct Serialize<std::array<T, count>> {
  /// Appends the value to a message.
  static void write(const std::array<T, count>& array, ByteWriter& out) {
    for (const T& element : array) out.write(element);
  }
  /// Takes the value from a message. Throws MalformedMessage.
  static std::array<T, count> read(ByteReader& in) {
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::array<T, count>{((void)i, in.read<T>())...};
    }(std::make_index_sequence<count>());
  }
};

namespace internal {

template <class T>
struct ObjectType {
  static_assert(
      std::is_default_constructible_v<T> && std::is_move_assignable_v<T>,
      "an object begins as an empty value on ranks that do not have it, and is replaced by what arrives: its type "
      "needs a default constructor and an assignment that moves");
  static_assert(alignof(T) <= 64, "objects are aligned to a cache line at most");

  static void construct(void* memory) { new (memory) T(); }
  static void destroy(void* object) noexcept { static_cast<T*>(object)->~T(); }
  static void write(const void* object, std::vector<std::byte>& bytes) {
    ByteWriter out(bytes);
    out.write(*static_cast<const T*>(object));
  }
  static void read(void* object, std::span<const std::byte> bytes) {
    ByteReader in(bytes);
    T value = in.read<T>();
    if (in.left() != 0) throw MalformedMessage(std::to_string(in.left()) + " bytes of the message are left over");
    *static_cast<T*>(object) = std::move(value);
  }
  static constexpr runtime::ObjectOps ops{.construct = &construct, .destroy = &destroy, .write = &write, .read = &read};
};

}  // namespace internal

}  // namespace tandem
