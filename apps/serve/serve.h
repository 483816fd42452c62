#pragma once
#include "apps/command_line.h"

namespace sfumato {

/// `sfumato serve`: an HTTP server with a page (docs/server.md).
Result<void> serve(const Words& words);

/// What the server starts its workers with; not for people.
inline constexpr std::string_view kWorkerWord = "serve-worker";
Result<void> worker();

}  // namespace sfumato
