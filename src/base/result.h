#pragma once
// Errors as values. Result<T> is for what the world can get wrong: files, flags, requests, plugins.
// For bugs there is CHECK (base/check.h). Nothing in the library throws, prints or exits.
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/check.h"

namespace sfumato {

/// What went wrong, seen by the person in front. The program's exit code is the value.
enum class ErrorKind {
  kRuntime = 1,      ///< failed while running
  kUsage = 2,        ///< a flag, field or combination that makes no sense
  kBadInput = 3,     ///< a model or input file that is missing, broken or unsupported
  kOutOfMemory = 4,  ///< an allocation failed, or would
  kCancelled = 130,  ///< interrupted
};

/// Message form: "[module.op] expected X, got Y", and what to do about it. One line.
struct Error {
  ErrorKind kind = ErrorKind::kRuntime;
  std::string message;
};

inline Error usage_error(std::string message) {
  return {ErrorKind::kUsage, std::move(message)};
}
inline Error input_error(std::string message) {
  return {ErrorKind::kBadInput, std::move(message)};
}
inline Error runtime_error(std::string message) {
  return {ErrorKind::kRuntime, std::move(message)};
}

/// A T or an Error. `TRY(expr)` unwraps or returns the error to the caller.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT: implicit by design
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT

  explicit operator bool() const { return state_.index() == 0; }
  T& value() & { return check_ok(), std::get<0>(state_); }
  const T& value() const& { return check_ok(), std::get<0>(state_); }
  T&& value() && { return check_ok(), std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  void check_ok() const {
    if (state_.index() != 0) check_failed(__FILE__, __LINE__, "Result holds a value", std::get<1>(state_).message);
  }
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT: implicit by design

  explicit operator bool() const { return !error_; }
  void value() const {
    if (error_) check_failed(__FILE__, __LINE__, "Result is ok", error_->message);
  }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

/// `auto x = TRY(f());`: the value of f(), or return its error from the enclosing function.
#define TRY(...)                                             \
  ({                                                         \
    auto try_result_ = (__VA_ARGS__);                        \
    if (!try_result_) return std::move(try_result_).error(); \
    std::move(try_result_).value();                          \
  })

}  // namespace sfumato
