// base64, multipart and frames: what is read, and what is refused.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "base/strings.h"
#include "server/base64.h"
#include "server/frame.h"
#include "server/multipart.h"

namespace sfumato::server {
namespace {

using ::testing::HasSubstr;

TEST(Base64, Rfc4648Vectors) {
  const std::pair<const char*, const char*> vectors[] = {{"f", "Zg=="},         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},       {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
  EXPECT_EQ(to_base64(""), "");
  for (const auto& [bytes, text] : vectors) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64("x", text).value(), bytes);
    EXPECT_EQ(from_base64("x", str("data:image/png;base64,", text)).value(), bytes);
  }
  EXPECT_EQ(from_base64("x", "Zm9v\r\nYmFy\n").value(), "foobar");
}

TEST(Base64, EveryByteBothWays) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += static_cast<char>(i * 37);
  for (size_t size = 1; size < bytes.size(); size += 7)
    EXPECT_EQ(from_base64("x", to_base64(bytes.substr(0, size))).value(), bytes.substr(0, size));
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* text : {"", "=", "====", "A", "AA=A", "A===", "Zm9v=", "Zm9v Yg==", "Zm9v\tYg==", "%%%%", "Zm9_",
                           "data:", "data:,x", "data:image/png;base64", "data:image/png;base64,", "data:image/png,Zm9v",
                           "http://127.0.0.1/x.png", "https://127.0.0.1/x.png", "file:///etc/passwd"}) {
    const auto result = from_base64("mask", text);
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(result.error().message, HasSubstr("mask"));
  }
  EXPECT_FALSE(from_base64("x", std::string("Zm9v\0Yg==", 9)));
}

constexpr const char* kType = "multipart/form-data; boundary=edge";

TEST(Multipart, Parts) {
  const std::string body =
      "--edge\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\na red\r\napple\r\n"
      "--edge\r\ncontent-disposition: form-data; filename=\"a \\\"b\\\".png\"; name=image\r\nContent-Type: "
      "image/png\r\n\r\n\r\n--edg\r\n--edge\r\nContent-Disposition: form-data; name=\"n\"\r\n\r\n\r\n--edge--\r\n";
  const auto parts = parse_form(kType, body);
  ASSERT_TRUE(parts) << parts.error().message;
  ASSERT_EQ(parts->size(), 3u);
  EXPECT_EQ((*parts)[0].name, "prompt");
  EXPECT_EQ((*parts)[0].body, "a red\r\napple");
  EXPECT_EQ((*parts)[1].name, "image");
  EXPECT_EQ((*parts)[1].filename, "a \"b\".png");
  EXPECT_EQ((*parts)[1].body, "\r\n--edg");
  EXPECT_EQ((*parts)[2].body, "");
  EXPECT_TRUE(parse_form("Multipart/Form-Data; charset=utf-8; boundary=\"edge\"", body));
}

TEST(Multipart, RefusesWhatIsNone) {
  const std::string part = "--edge\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n";
  for (const auto& [type, body] : std::vector<std::pair<std::string, std::string>>{
           {"", part + "--edge--"},
           {"application/json", part + "--edge--"},
           {"multipart/form-data", part + "--edge--"},
           {"multipart/form-data; boundary=", part + "--edge--"},
           {"multipart/form-data; boundary=other", part + "--edge--"},
           {kType, ""},
           {kType, "--edge"},
           {kType, part},
           {kType, part + "--edge"},
           {kType, part + "--edgeX\r\n"},
           {kType, "--edge\r\nContent-Disposition: form-data; name=\"a\"\r\nx\r\n--edge--"},
           {kType, "--edge\r\n\r\nx\r\n--edge--"},
           {kType, "--edge\r\nContent-Disposition: form-data; name=\"\"\r\n\r\nx\r\n--edge--"},
       }) {
    const auto parts = parse_form(type, body);
    ASSERT_FALSE(parts) << type << "\n" << body;
    EXPECT_EQ(parts.error().kind, ErrorKind::kUsage);
  }
  std::string many;
  for (int i = 0; i < 65; ++i) many += part;
  EXPECT_FALSE(parse_form(kType, many + "--edge--"));
}

TEST(Multipart, AnyCutOrChangedByteIsHandled) {
  const std::string body =
      "--edge\r\nContent-Disposition: form-data; name=\"prompt\"; filename=\"x\\\"y\"\r\n\r\nabc\r\n--edge--\r\n";
  for (size_t cut = 0; cut < body.size() - 4; ++cut) EXPECT_FALSE(parse_form(kType, body.substr(0, cut))) << cut;
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string changed = body;
    for (int n = 0; n < 3; ++n) changed[random() % changed.size()] = static_cast<char>(random() % 256);
    if (const auto parts = parse_form(kType, changed)) {
      for (const FormPart& part : *parts) EXPECT_LE(part.body.size(), body.size());
    }
  }
}

TEST(Frame, CrossASocketInOrder) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  ASSERT_TRUE(write_frame(ends[0], {{{"type", "a"}, {"n", 1}}, std::string("\0\xff", 2)}));
  ASSERT_TRUE(write_frame(ends[0], {{{"type", "b"}}}));
  Frame frame;
  ASSERT_TRUE(read_frame(ends[1], frame));
  EXPECT_EQ(frame.header["n"], 1);
  EXPECT_EQ(frame.blob, std::string("\0\xff", 2));
  ASSERT_TRUE(read_frame(ends[1], frame));
  EXPECT_EQ(frame.header["type"], "b");
  EXPECT_EQ(frame.blob, "");
  close(ends[0]);
  EXPECT_FALSE(read_frame(ends[1], frame));
  EXPECT_FALSE(write_frame(ends[1], {{{"type", "c"}}}));
  close(ends[1]);
}

TEST(Frame, RefusesWhatNobodySends) {
  const std::string good = encode_frame({{{"type", "a"}}, "xyz"});
  EXPECT_TRUE(FramePrefix::decode(good.data()));
  const uint64_t sizes[] = {1, uint64_t{1} << 40};
  EXPECT_FALSE(FramePrefix::decode(reinterpret_cast<const char*>(sizes)));
  for (const std::string& text : {good.substr(0, 7), good.substr(0, good.size() - 1), std::string(16, '\xff')}) {
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    ASSERT_EQ(write(ends[0], text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(ends[0]);
    Frame frame;
    EXPECT_FALSE(read_frame(ends[1], frame));
    close(ends[1]);
  }
}

}  // namespace
}  // namespace sfumato::server
