// Stands in for plugin/ where the PJRT header is not at hand.
#include "backend/backend.h"
#include "backend/pjrt/ahead_of_time.h"

namespace sfumato {
namespace {

const Error kAbsent =
    usage_error("[backend.pjrt] this build has no PJRT backend; run tools/install_pjrt.py, configure and build again");

}  // namespace

Result<std::unique_ptr<Backend>> make_pjrt_backend(const PjrtOptions&) {
  return kAbsent;
}

namespace pjrt {

Result<std::unique_ptr<AheadOfTime>> AheadOfTime::open(const std::string&, const std::string&) {
  return kAbsent;
}

}  // namespace pjrt
}  // namespace sfumato
