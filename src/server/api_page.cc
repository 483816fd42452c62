// The page: the files of web/, put into the program when it is built.
#include "server/pages.h"
#include "server/router.h"

namespace sfumato::server {
namespace {

std::string type_of(std::string_view name) {
  constexpr std::pair<const char*, const char*> kTypes[] = {{".html", "text/html; charset=utf-8"},
                                                            {".css", "text/css; charset=utf-8"},
                                                            {".js", "text/javascript; charset=utf-8"},
                                                            {".svg", "image/svg+xml"},
                                                            {".png", "image/png"},
                                                            {".webmanifest", "application/manifest+json"}};
  for (const auto& [suffix, type] : kTypes)
    if (name.ends_with(suffix)) return type;
  return "application/octet-stream";
}

// Nothing from elsewhere, nothing inline; previews and dropped pictures are data: and blob:.
constexpr const char* kPolicy =
    "default-src 'self'; img-src 'self' data: blob:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

}  // namespace

void add_page_routes(Router& router) {
  for (const Page& page : pages()) {
    const std::string path = page.name == "index.html" ? "/" : "/" + std::string(page.name);
    router.add({"GET", path,
                [page](HttpRequest&, ClientWatch&) -> Awaitable<HttpResponse> {
                  HttpResponse response;
                  response.type = type_of(page.name);
                  response.body = page.content;
                  response.headers = {{"Content-Security-Policy", kPolicy},
                                      {"Referrer-Policy", "no-referrer"},
                                      {"Cache-Control", "no-cache"}};
                  co_return response;
                },
                true, ""});
  }
}

}  // namespace sfumato::server
