#pragma once
#include <span>
#include <string_view>

namespace sfumato::server {

struct Page {
  std::string_view name;  ///< "index.html"
  std::string_view content;
};
/// The files of web/ (cmake/pages.cmake makes the definition).
std::span<const Page> pages();

}  // namespace sfumato::server
