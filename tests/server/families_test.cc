// What OpenAI's and A1111's clients send, right and wrong.
#include "base/strings.h"
#include "image/image_io.h"
#include "server/base64.h"
#include "tests/server/serve_fixture.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;

std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

Image decoded(const std::string& base64) {
  const std::string bytes = bytes_of_base64(base64);
  auto image = decode_image(as_bytes(bytes));
  EXPECT_TRUE(image) << image.error().message;
  return image ? *image : Image();
}

/// A picture of 64x64 in one colour, as a file.
std::string plain(int channels, std::vector<uint8_t> left, std::vector<uint8_t> right) {
  Image image(64, 64, channels);
  for (int y = 0; y < 64; ++y)
    for (int x = 0; x < 64; ++x)
      for (int c = 0; c < channels; ++c) image.at(x, y)[c] = (x < 32 ? left : right)[static_cast<size_t>(c)];
  return encode_image(image, ImageFormat::kPng, "").value();
}

class ServeFamilies : public ServeTest {
 protected:
  void SetUp() override {
    ServeTest::SetUp();
    serve();
  }
  Answer generate(const Json& more) const {
    Json body = {{"prompt", "a red apple"}, {"size", "64x64"}, {"steps", 3}, {"seed", 7}};
    body.update(more);
    return post(port_, "/v1/images/generations", body);
  }
  Answer txt2img(const Json& more) const { return post(port_, "/sdapi/v1/txt2img", job(more)); }
};

TEST_F(ServeFamilies, OpenAiGenerates) {
  const Answer answer = generate({{"n", 2}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = answer.json();
  ASSERT_EQ(body["data"].size(), 2u);
  EXPECT_EQ(bytes_of_base64(body["data"][0]["b64_json"]), alone());
  EXPECT_EQ(bytes_of_base64(body["data"][1]["b64_json"]), alone({"-s", "8"}));
  EXPECT_EQ(body["data"][1]["seed"], 8);
  EXPECT_EQ(body["size"], "64x64");
  EXPECT_TRUE(answer.headers.contains("x-request-id"));
}

TEST_F(ServeFamilies, OpenAiResponseFormats) {  // cases I1, I21
  for (const char* format : {"url", "b64_json"}) {
    const Answer answer = generate({{"response_format", format}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    const Json picture = answer.json()["data"][0];
    EXPECT_EQ(picture.contains("url"), format == std::string("url"));
    EXPECT_EQ(picture.contains("b64_json"), format == std::string("b64_json"));
    if (!picture.contains("url")) continue;
    const std::string url = picture["url"];
    EXPECT_EQ(ask(port_, "GET", url.substr(url.find("/api"))).body, alone());
  }
  for (const Json& wrong : {Json("xml"), Json::object(), Json(5), Json(true), Json({"url"})}) {
    const Answer answer = generate({{"response_format", wrong}});
    EXPECT_EQ(answer.status, 400) << wrong;
    EXPECT_EQ(answer.json()["error"]["param"], "response_format") << answer.body;
  }
}

TEST_F(ServeFamilies, OpenAiStreams) {
  Connection client(port_);
  client.send(http_text("POST", "/v1/images/generations",
                        Json({{"prompt", "a red apple"},
                              {"size", "64x64"},
                              {"steps", 30},
                              {"seed", 7},
                              {"stream", true},
                              {"partial_images", 2}})
                            .dump()));
  ASSERT_EQ(client.receive_head().status, 200);
  std::vector<std::string> names;
  Json last;
  for (auto [name, data] = client.next_event(); !name.empty(); std::tie(name, data) = client.next_event()) {
    EXPECT_EQ(data["type"], name);
    names.push_back(name);
    last = data;
  }
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.back(), "image_generation.completed");
  EXPECT_LE(names.size(), 3u);
  EXPECT_EQ(bytes_of_base64(last["b64_json"]), alone({"--steps", "30"}));
}

TEST_F(ServeFamilies, OpenAiEditsWhereTheMaskIsTransparent) {
  const std::string picture = plain(3, {200, 30, 30}, {30, 200, 30});
  const auto part = [](const std::string& name, const std::string& value, bool is_file = false) {
    return str("--edge\r\nContent-Disposition: form-data; name=\"", name, "\"",
               is_file ? "; filename=\"a.png\"\r\nContent-Type: image/png" : "", "\r\n\r\n", value, "\r\n");
  };
  const auto edit = [&](const std::string& more) {
    return ask(port_, "POST", "/v1/images/edits",
               part("prompt", "a boat") + part("size", "64x64") + part("steps", "4") + part("seed", "7") +
                   part("strength", "1") + part("image", picture, true) + more + "--edge--\r\n",
               {"Content-Type: multipart/form-data; boundary=edge"});
  };
  const auto drawn = [&](const std::string& mask) {
    const Answer answer = edit(mask.empty() ? "" : part("mask", mask, true));
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? decoded(answer.json()["data"][0]["b64_json"]) : Image(64, 64, 3);
  };
  const Image whole = drawn(""), all = drawn(plain(4, {0, 0, 0, 0}, {0, 0, 0, 0})),
              left = drawn(plain(4, {0, 0, 0, 0}, {0, 0, 0, 255})), grey = drawn(plain(1, {255}, {0}));
  EXPECT_EQ(whole.pixels, all.pixels);
  EXPECT_NE(whole.pixels, left.pixels);
  EXPECT_EQ(left.pixels, grey.pixels);  // without alpha, white is what is repainted
  EXPECT_EQ(edit(part("mask", "no picture", true)).status, 400);
  EXPECT_EQ(edit(part("image", picture, true)).status, 400);
}

TEST_F(ServeFamilies, ModelsByName) {
  EXPECT_EQ(ask(port_, "GET", "/v1/models").json()["data"][0]["id"], "tiny");
  EXPECT_EQ(ask(port_, "GET", "/v1/models/tiny").json()["id"], "tiny");
  EXPECT_EQ(ask(port_, "GET", "/v1/models/large").status, 404);
  EXPECT_EQ(generate({{"model", "tiny"}}).status, 200);
  const Answer unknown = generate({{"model", "large"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.json()["error"]["param"], "model");
}

TEST_F(ServeFamilies, PromptsOfA1111AreTexts) {
  for (const char* field : {"prompt", "negative_prompt"})
    for (const Json& value : {Json{"a"}, Json(5), Json::object()})
      EXPECT_EQ(txt2img({{field, value}}).status, 400) << field << " " << value;
}

TEST_F(ServeFamilies, A1111Draws) {
  const Answer answer = txt2img({{"n_iter", 2}, {"negative_prompt", "blue"}, {"sampler_name", "Euler a"}});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Json body = answer.json(), info = Json::parse(body["info"].get<std::string>());
  ASSERT_EQ(body["images"].size(), 2u);
  EXPECT_EQ(info["all_seeds"], Json({7, 8}));
  EXPECT_EQ(info["all_prompts"], Json({"a red apple", "a red apple"}));
  EXPECT_THAT(info["infotexts"][1].get<std::string>(), HasSubstr("Seed: 8"));
  EXPECT_EQ(bytes_of_base64(body["images"][1]), alone({"-s", "8", "-n", "blue", "--sampler", "Euler a"}));

  const Json read = post(port_, "/sdapi/v1/png-info", {{"image", body["images"][0]}}).json();
  EXPECT_EQ(read["info"], info["infotexts"][0]);
  EXPECT_EQ(read["parameters"]["Negative prompt"], "blue");
}

TEST_F(ServeFamilies, A1111DrawsFromAPicture) {
  const std::string picture = server::to_base64(plain(3, {200, 30, 30}, {30, 200, 30}));
  Json body = job({{"init_images", {"data:image/png;base64," + picture}}, {"denoising_strength", 0.7}});
  body.update(Json({{"resize_mode", 0}, {"mask_blur", 4}, {"inpainting_fill", 0}, {"inpaint_full_res", true}}));
  EXPECT_EQ(post(port_, "/sdapi/v1/img2img", body).status, 200);  // without a mask its settings mean nothing
  body["mask"] = server::to_base64(plain(1, {255}, {0}));
  const Answer refused = post(port_, "/sdapi/v1/img2img", body);
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.json()["error"]["param"], "inpaint_full_res");
  body["inpaint_full_res"] = false;
  EXPECT_EQ(post(port_, "/sdapi/v1/img2img", body).status, 200);
  body["init_images"] = Json::array();
  EXPECT_EQ(post(port_, "/sdapi/v1/img2img", body).status, 400);
}

TEST_F(ServeFamilies, A1111ProgressAndInterrupt) {
  constexpr int kSteps = 1000;
  Connection client(port_);
  client.send(http_text("POST", "/sdapi/v1/txt2img", long_job(kSteps).dump()));
  ASSERT_TRUE(eventually([&] {
    const Json progress = ask(port_, "GET", "/sdapi/v1/progress").json();
    return progress["progress"] > 0.0 && progress["state"]["sampling_steps"] >= kSteps;
  }));
  EXPECT_EQ(ask(port_, "POST", "/sdapi/v1/interrupt").status, 200);
  EXPECT_EQ(client.receive().status, 200);
  EXPECT_EQ(ask(port_, "GET", "/sdapi/v1/progress").json()["progress"], 0.0);
}

TEST_F(ServeFamilies, A1111Lists) {
  for (const char* list : {"samplers", "schedulers", "sd-models", "sd-vae", "loras", "upscalers", "prompt-styles"})
    EXPECT_TRUE(ask(port_, "GET", str("/sdapi/v1/", list)).json().is_array()) << list;
  for (const char* object : {"options", "cmd-flags", "memory", "embeddings", "progress"})
    EXPECT_TRUE(ask(port_, "GET", str("/sdapi/v1/", object)).json().is_object()) << object;
}

TEST_F(ServeFamilies, EveryFieldIsHonouredOrNamed) {  // cases I3, I17
  for (const char* path : {"/api/jobs", "/v1/images/generations", "/sdapi/v1/txt2img"}) {
    Json body = {{"prompt", "x"}, {"promt", "y"}};
    const Answer unknown = post(port_, path, body);
    EXPECT_EQ(unknown.status, 400) << path;
    EXPECT_THAT(unknown.error(), HasSubstr("promt"));
    for (const Json& steps : {Json(0), Json(-1), Json("many"), Json(1.5), Json(1e12), Json::array()}) {
      const Answer wrong = post(port_, path, Json({{"prompt", "x"}, {"steps", steps}}));
      EXPECT_EQ(wrong.status, 400) << path << " " << steps << wrong.body;
      EXPECT_EQ(wrong.json()["error"]["param"], "steps") << path << " " << steps;
    }
    EXPECT_EQ(ask(port_, "POST", path, "{\"prompt\": \"x\", \"steps\": 2, \"steps\": 3}").status, 400);
    for (const char* text : {"", "null", "[]", "5", "{", "\"x\"", "{\"prompt\": \"\xff\"}"})
      EXPECT_EQ(ask(port_, "POST", path, text).status, 400) << path << " " << text;
  }
  const Json parameters = Json::parse(txt2img({{"steps", 1}}).json()["info"].get<std::string>());
  EXPECT_THAT(parameters["infotexts"][0].get<std::string>(), HasSubstr("Steps: 1,"));
}

TEST_F(ServeFamilies, SizesAreRefusedBeforeAnyWork) {  // case I11
  for (const char* path : {"/api/jobs", "/sdapi/v1/txt2img"})
    for (const char* side : {"width", "height"})
      for (const Json& value : {Json(0), Json(-8), Json(64.5), Json("64"), Json(int64_t{1'000'000'000'000}), Json(65)})
        EXPECT_EQ(post(port_, path, job({{side, value}})).status, 400) << path << " " << side << " " << value;
  for (const char* size : {"0x64", "64", "64x", "x", "-64x64", "65x64", "1e3x64", "99999999999x64", ""})
    EXPECT_EQ(generate({{"size", size}}).status, 400) << size;
  EXPECT_EQ(generate({{"size", "4096x4096"}}).status, 422);
  EXPECT_EQ(metric("sfumato_jobs_total{state=\"submitted\"}"), -1);
}

TEST_F(ServeFamilies, SeedsAreKeptExactlyOrRefused) {  // case G5
  for (const uint32_t seed : {0u, 65536u, 2147483648u, 4294967295u}) {
    const Answer answer = generate({{"seed", seed}, {"steps", 1}});
    ASSERT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(answer.json()["data"][0]["seed"], seed);
  }
  for (const char* seed :
       {"4294967296", "9007199254740993", "9223372036854775807", "18446744073709551615", "-2", "1.5"})
    EXPECT_EQ(ask(port_, "POST", "/v1/images/generations", str("{\"prompt\": \"x\", \"seed\": ", seed, "}")).status,
              400)
        << seed;
  const Json random = generate({{"seed", -1}, {"steps", 1}}).json()["data"][0]["seed"];
  EXPECT_NE(random, generate({{"seed", -1}, {"steps", 1}}).json()["data"][0]["seed"]);
}

TEST_F(ServeFamilies, PicturesAreMeasuredBeforeTheyAreDecoded) {  // case I13
  // A PNG head that promises 20000x20000 pixels, and little after it.
  std::string huge = plain(1, {0}, {0});
  for (const size_t at : {size_t{16}, size_t{20}}) huge.replace(at, 4, std::string("\0\0\x4e\x20", 4));
  const std::string small = server::to_base64(plain(1, {0}, {0}));
  for (const char* field : {"init_image", "mask"}) {
    Json body = job({{"init_image", small}});
    body[field] = server::to_base64(huge);
    const Answer answer = post(port_, "/api/jobs", body);
    EXPECT_EQ(answer.status, 400) << answer.body;
  }
  for (const char* text : {"%%%", "data:image/png;base64", "http://127.0.0.1:1/x.png", "file:///etc/passwd", "AAAA"})
    EXPECT_EQ(post(port_, "/api/jobs", job({{"init_image", text}})).status, 400) << text;
}

}  // namespace
}  // namespace sfumato
