#pragma once
// CHECK is for bugs: it prints where and why, and aborts. What users can get wrong is a Result (base/result.h).
#include <string_view>

namespace sfumato {

[[noreturn]] void check_failed(const char* file, int line, const char* condition, std::string_view message);

/// CHECK(condition) or CHECK(condition, "message").
#define CHECK(condition, ...)                                                                   \
  do {                                                                                          \
    if (!(condition)) [[unlikely]]                                                              \
      ::sfumato::check_failed(__FILE__, __LINE__, #condition, ::std::string_view{__VA_ARGS__}); \
  } while (0)

}  // namespace sfumato
