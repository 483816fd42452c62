#pragma once
// What goes to the terminal, piece by piece.
#include <nlohmann/json.hpp>
#include <string>

namespace sfumato {

/// "[######........]"
std::string bar(size_t done, size_t total);
/// "1:05", "2:00:09"
std::string clock_text(double seconds);

/// One JSON object on a line of standard output, at once.
void print_event(const nlohmann::ordered_json& event);

}  // namespace sfumato
