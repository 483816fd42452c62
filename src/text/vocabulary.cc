#include "text/vocabulary.h"

#include <openssl/sha.h>
#include <zlib.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "base/check.h"

// SFUMATO_CLIP_MERGES is the path of bpe_simple_vocab_16e6.txt.gz, given by the build.
asm(".section .rodata\n"
    ".global sfumato_clip_merges_begin\n"
    ".global sfumato_clip_merges_end\n"
    "sfumato_clip_merges_begin:\n"
    ".incbin \"" SFUMATO_CLIP_MERGES
    "\"\n"
    "sfumato_clip_merges_end:\n"
    ".byte 0\n"
    ".section .text\n");
extern "C" const unsigned char sfumato_clip_merges_begin[], sfumato_clip_merges_end[];

namespace sfumato::text {
namespace {

// Of the 48,894 lines of CLIP's merges (a test makes it from the built-in ones): unpacking those at every start of the
// program would take longer than all else that a small model needs.
constexpr unsigned char kMergesDigest[SHA256_DIGEST_LENGTH] = {
    0xf6, 0x1f, 0x2a, 0xdf, 0x49, 0x7e, 0x6f, 0x53, 0x57, 0xc3, 0x47, 0xae, 0xb4, 0x64, 0x6f, 0xab,
    0xe8, 0x2f, 0x34, 0x1e, 0x94, 0x6d, 0xe5, 0xbd, 0xec, 0x5d, 0x28, 0x58, 0xe4, 0x1b, 0xef, 0x4a};

}  // namespace

std::string clip_merges() {
  z_stream stream = {};
  stream.next_in = const_cast<unsigned char*>(sfumato_clip_merges_begin);
  stream.avail_in = static_cast<unsigned>(sfumato_clip_merges_end - sfumato_clip_merges_begin);
  CHECK(inflateInit2(&stream, 16 + MAX_WBITS) == Z_OK);
  std::string text;
  char part[1 << 16];
  int state = Z_OK;
  while (state == Z_OK) {
    stream.next_out = reinterpret_cast<unsigned char*>(part);
    stream.avail_out = sizeof part;
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(part, sizeof part - stream.avail_out);
  }
  inflateEnd(&stream);
  CHECK(state == Z_STREAM_END, "the built-in vocabulary is damaged");
  return text;
}

bool is_clip_merges(std::string merges) {
  std::erase(merges, '\r');
  std::string_view lines = std::string_view(merges).substr(std::min(merges.find('\n'), merges.size() - 1) + 1);
  if (lines.ends_with('\n')) lines.remove_suffix(1);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(lines.data()), lines.size(), digest);
  return std::equal(std::begin(digest), std::end(digest), std::begin(kMergesDigest));
}

}  // namespace sfumato::text
