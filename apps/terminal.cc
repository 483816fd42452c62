#include "apps/terminal.h"

#include <algorithm>
#include <cstdio>

namespace sfumato {

std::string bar(size_t done, size_t total) {
  constexpr size_t kWidth = 30;
  const size_t filled = std::min(kWidth, kWidth * done / std::max<size_t>(1, total));
  return "[" + std::string(filled, '#') + std::string(kWidth - filled, '.') + "]";
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  char text[64];
  if (whole >= 3600)
    std::snprintf(text, sizeof text, "%ld:%02ld:%02ld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof text, "%ld:%02ld", whole / 60, whole % 60);
  return text;
}

void print_event(const nlohmann::ordered_json& event) {
  std::printf("%s\n", event.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  std::fflush(stdout);
}

}  // namespace sfumato
