#include "text/vocabulary.h"

#include <zlib.h>

#include <algorithm>

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

bool is_clip_merges(std::string_view merges) {
  const auto next_line = [](std::string_view& text) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  };
  const std::string own = clip_merges();
  std::string_view ours = own;
  next_line(ours);  // each has a line of its own first
  next_line(merges);
  constexpr int kMerges = 48894;  // CLIP's; the file goes on
  for (int i = 0; i < kMerges; ++i)
    if (next_line(ours) != next_line(merges)) return false;
  return merges.empty();
}

}  // namespace sfumato::text
