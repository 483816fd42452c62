#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/utf8.h"
#include "text/clean.h"
#include "text/vocabulary.h"

namespace sfumato::text {
namespace {

using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

struct Row {
  const char* prompt;
  Ids ids;
};

class Clip : public testing::TestWithParam<Row> {};
TEST_P(Clip, Ids) {
  EXPECT_EQ(Tokenizer::clip().encode(GetParam().prompt), GetParam().ids) << GetParam().prompt;
}

// OpenAI's published merges and splitting pattern give these; recomputed independently of this code.
INSTANTIATE_TEST_SUITE_P(
    Known, Clip,
    testing::Values(
        Row{"a photo of a fox", {320, 1125, 539, 320, 3240}},
        Row{"an astronaut riding a horse on Mars", {550, 18376, 6765, 320, 4558, 525, 7496}},
        Row{"You should've done this", {592, 1535, 1200, 1700, 589}}, Row{"test tokenization", {1628, 32634, 10847}},
        Row{"r\u00e9sum\u00e9", {29106, 7054, 4166}}, Row{"re\u0301sume\u0301", {29106, 7054, 4166}},
        Row{"Un petit chaton tr\u00e8s mignon", {2271, 21276, 5355, 525, 635, 41210, 714, 20561}},
        Row{"Dal\u00ed", {2476, 23928}}, Row{"1233", {272, 273, 274, 274}}, Row{"12 33", {272, 273, 274, 274}},
        Row{"DON'T", {847, 713}}, Row{"don't", {847, 713}}, Row{"we'll", {649, 1342}}, Row{"WE'LL", {649, 1342}},
        Row{"Covid-19's long-term impact?", {622, 9284, 268, 272, 280, 568, 1538, 268, 4780, 3844, 286}},
        Row{"a\n\ncat", {320, 2368}}, Row{"a\tcat", {320, 2368}}, Row{"a  cat", {320, 2368}},
        Row{"a\u00a0cat", {320, 2368}}, Row{"\u3000cat\u3000", {2368}}, Row{"\U0001f60e", {4345}},
        Row{"cat\U0001f60e", {2368, 4345}}, Row{"\U0001f44d", {4201}}, Row{"\U0001f1ef\U0001f1f5", {26527}},
        Row{"\U0001f468\u200d\U0001f469\u200d\U0001f467", {25023, 26304, 964, 356}},
        Row{"\u65e5\u672c\u8a9e", {39121, 44353, 34002, 508}},
        Row{"\u043f\u0440\u0438\u0432\u0435\u0442", {26302, 16370, 29503, 110, 22176, 141, 480}},
        Row{"\u4eba", {21078, 374}}, Row{"&amp;", {261}}, Row{"&amp;amp;", {261}}, Row{"AT&T", {536, 261, 339}},
        Row{"&eacute;", {4166}}, Row{"&#233;", {4166}}, Row{"&#xe9;", {4166}}, Row{"&copy", {5811}},
        Row{"&lt;lora:x:1&gt;", {283, 2179, 320, 281, 343, 281, 272, 285}}, Row{"cat,dog", {2368, 267, 1929}},
        Row{"cat , dog", {2368, 267, 1929}}, Row{"100%", {272, 271, 271, 260}}, Row{"3.14", {274, 269, 272, 275}},
        Row{"hello world!!!", {3306, 1002, 995}}, Row{"!", {256}}, Row{"!!!", {995}}, Row{"...", {678}},
        Row{"cat<|endoftext|>dog", {2368, 49407, 1929}}, Row{"", {}}, Row{"   ", {}}));

TEST(ClipProperty, EveryWholeWordEncodesToItself) {
  const Tokenizer& clip = Tokenizer::clip();
  ASSERT_EQ(clip.words().size(), 49408u);
  int tried = 0;
  for (int32_t id = 0; id < 49406; ++id) {
    if (!clip.words()[static_cast<size_t>(id)].ends_with("</w>")) continue;
    const std::string text = clip.decode({id});
    if (to_utf8(to_code_points(text)) != text || text.find("\ufffd") != std::string::npos)
      continue;  // part of a character
    if (clean_prompt(text) != text) continue;
    ++tried;
    EXPECT_THAT(clip.encode(text), ElementsAre(id)) << text;
  }
  EXPECT_GT(tried, 34000);
}

TEST(Prompt, LongOnesAreCutAndTheRestIsNamed) {
  std::string numbers;
  for (int i = 1; i <= 120; ++i) numbers += std::to_string(i) + " ";
  EXPECT_EQ(Tokenizer::clip().encode(numbers).size(), 252u);
  const TokenizedPrompt prompt = tokenize_prompt(Tokenizer::clip(), numbers, kEndToken);
  EXPECT_EQ(prompt.ids.size(), 77u);
  EXPECT_EQ(prompt.ids.back(), kEndToken);
  EXPECT_EQ(prompt.end_index, 76);
  EXPECT_TRUE(prompt.dropped.ends_with("1 2 0")) << prompt.dropped;
}

TEST(Prompt, PaddingAndTheEndToken) {
  const auto cats = [](int n, int32_t pad) {
    std::string text;
    for (int i = 0; i < n; ++i) text += "cat ";
    return tokenize_prompt(Tokenizer::clip(), text, pad);
  };
  for (const int n : {74, 75, 76, 200}) {
    const TokenizedPrompt prompt = cats(n, 0);
    EXPECT_EQ(prompt.ids.size(), 77u);
    EXPECT_EQ(prompt.ids[0], kStartToken);
    EXPECT_EQ(prompt.end_index, std::min(n, 75) + 1);
    EXPECT_EQ(prompt.ids[static_cast<size_t>(prompt.end_index)], kEndToken);
    EXPECT_EQ(prompt.dropped.empty(), n <= 75);
  }
  EXPECT_EQ(cats(1, 0).ids.back(), 0);
  EXPECT_EQ(cats(1, kEndToken).ids.back(), kEndToken);
  EXPECT_EQ(tokenize_prompt(Tokenizer::clip(), "", 0).end_index, 1);
}

TEST(Vocabulary, KnowsItsOwnMergesFromOthers) {
  const std::string own = clip_merges();
  std::string merges = "#version: 0.2\n";  // then CLIP's lines, without the first and those that CLIP leaves out
  size_t end = own.find('\n') + 1;
  const size_t begin = end;
  for (int i = 0; i < 48894; ++i) end = own.find('\n', end) + 1;
  merges += own.substr(begin, end - begin);
  EXPECT_TRUE(is_clip_merges(merges));
  EXPECT_TRUE(is_clip_merges(merges.substr(0, merges.size() - 1)));
  std::string windows;
  for (const char c : merges) windows += c == '\n' ? "\r\n" : std::string(1, c);
  EXPECT_TRUE(is_clip_merges(windows));
  EXPECT_FALSE(is_clip_merges(merges + own.substr(end, own.find('\n', end) + 1 - end)));      // one more
  EXPECT_FALSE(is_clip_merges(merges.substr(0, merges.rfind('\n', merges.size() - 2) + 1)));  // one fewer
  merges[merges.size() / 2] ^= 1;
  EXPECT_FALSE(is_clip_merges(merges));
  for (const char* none : {"", "\n", "#version: 0.2", "#version: 0.2\n"}) EXPECT_FALSE(is_clip_merges(none));
}

TEST(Clean, FixesWhatFtfyFixes) {
  EXPECT_EQ(clean_prompt("\u2018It\u2019s\u201d"), "'it's\"");
  EXPECT_EQ(clean_prompt("\ufb01sh"), "fish");
  EXPECT_EQ(clean_prompt("\uff21\uff22\uff23\uff01"), "abc!");
  EXPECT_EQ(clean_prompt("\ufeffcat\x01\x7f"), "cat");
  EXPECT_EQ(clean_prompt("\u0130\u03a3\u0391\u03a3"), "i\u0307\u03c3\u03b1\u03c2");
}

TEST(Clean, EntitiesAreResolvedBeforeTheFixes) {
  EXPECT_EQ(clean_prompt("it&rsquo;s"), "it's");
  EXPECT_EQ(clean_prompt("e&#769;"), "\u00e9");
  EXPECT_EQ(clean_prompt("&amp;amp;amp;"), "&");
  EXPECT_EQ(clean_prompt("&lt;b&gt; &amp;"), "<b> &");
}

TEST(Clean, BrokenUtf8BecomesReplacementCharacters) {
  EXPECT_EQ(clean_prompt("a\xc3"), "a\ufffd");
  EXPECT_EQ(clean_prompt("\xc0\xaf"), "\ufffd\ufffd");
  EXPECT_EQ(clean_prompt("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(clean_prompt(std::string_view("a\0b", 3)), "ab");
  for (const char* broken : {"\xc3", "\xf0\x9f", "\xff\xfe", "\x80"}) Tokenizer::clip().encode(broken);
}

TEST(Html, UnescapesAsPythonDoes) {
  EXPECT_EQ(html_unescape("&notit; &notin; &amp &#0; &#x80; &#x110000; &bogus; &"),
            "\u00acit; \u2209 & \ufffd \u20ac \ufffd &bogus; &");
  EXPECT_EQ(html_unescape("&#; &#x; &#65"), "&#; &#x; A");
}

}  // namespace
}  // namespace sfumato::text
