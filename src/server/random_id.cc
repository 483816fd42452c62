#include "server/random_id.h"

#include <openssl/rand.h>

#include "base/check.h"

namespace sfumato::server {

std::string random_id() {
  unsigned char bytes[16];
  CHECK(RAND_bytes(bytes, sizeof bytes) == 1, "the system's random numbers");
  std::string id;
  for (const unsigned char byte : bytes) {
    id += "0123456789abcdef"[byte >> 4];
    id += "0123456789abcdef"[byte & 15];
  }
  return id;
}

}  // namespace sfumato::server
