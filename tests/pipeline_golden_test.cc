// Whole pipelines against diffusers (tools/golden/pipelines.py: CASES), at fp32.
#include <fstream>
#include <nlohmann/json.hpp>

#include "image/image_io.h"
#include "pipeline/pipeline.h"
#include "tests/golden.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;

Json read_cases() {
  std::ifstream in(golden_path("pipelines/cases.json"));
  return Json::parse(in);
}

Request request_of(const Json& r) {
  Request request;
  request.prompts = {r["prompt"].get<std::string>()};
  request.seed = r["seed"];
  request.steps = r["steps"].get<int>();
  request.guidance = r.value("guidance", 7.5f);
  request.size = Size{r.value("width", 64), r.value("height", 64)};
  request.images = r.value("images", 1);
  request.clip_skip = r.value("clip_skip", 1);
  request.guidance_rescale = r.value("guidance_rescale", 0.0f);
  request.strength = r.value("strength", 0.75f);
  if (r.contains("negative_prompt")) request.negative_prompt = r["negative_prompt"].get<std::string>();
  if (r.contains("sampler")) {
    const auto choice = sampling::parse_sampler(r["sampler"].get<std::string>());
    EXPECT_TRUE(choice);
    request.sampler = choice->sampler;
    request.schedule = choice->schedule;
  }
  const auto image = [](const Json& name) {
    auto read = read_image(golden_path("pipelines/" + name.get<std::string>()));
    EXPECT_TRUE(read);
    return std::make_shared<const Image>(std::move(*read));
  };
  if (r.contains("init")) request.init_image = image(r["init"]);
  if (r.contains("mask")) request.mask = image(r["mask"]);
  if (r.contains("original_size")) {
    request.original_size = Size{r["original_size"][0], r["original_size"][1]};
    request.target_size = Size{r["target_size"][0], r["target_size"][1]};
    request.crop_top = r["crop_top"];
    request.crop_left = r["crop_left"];
  }
  return request;
}

std::unique_ptr<Pipeline> load(const std::string& family) {
  auto pipeline = Pipeline::load({golden_path("pipelines/" + family), 0, Precision::kF32});
  EXPECT_TRUE(pipeline) << pipeline.error().message;
  return std::move(*pipeline);
}

class PipelineGolden : public testing::TestWithParam<Json> {};

TEST_P(PipelineGolden, EqualsDiffusers) {
  const auto pipeline = load(GetParam()["family"]);
  const auto golden = open_golden("pipelines/" + GetParam()["file"].get<std::string>());
  const auto pictures = pipeline->generate(request_of(GetParam()["request"]));
  ASSERT_TRUE(pictures) << pictures.error().message;
  const TensorView latents = *golden->find("latents"), image = *golden->find("image");
  ASSERT_EQ(static_cast<int64_t>(pictures->size()), latents.shape[0]);
  std::vector<float> got;
  for (const Picture& p : *pictures) got.insert(got.end(), p.latents.f32().begin(), p.latents.f32().end());
  EXPECT_LT(relative_error(got, latents.to_floats()), 2e-4);

  const auto* expected = static_cast<const uint8_t*>(image.data);
  size_t off = 0, total = 0;
  for (const Picture& p : *pictures)
    for (const uint8_t level : p.image.pixels) off += std::abs(level - *(expected + total++)) > 1;
  EXPECT_EQ(static_cast<int64_t>(total), image.shape.elements());
  EXPECT_LE(static_cast<double>(off), 0.001 * static_cast<double>(total));
}

INSTANTIATE_TEST_SUITE_P(Cases, PipelineGolden, testing::ValuesIn(read_cases().get<std::vector<Json>>()),
                         [](const auto& info) { return info.param["name"].template get<std::string>(); });

TEST(PipelineBits, APictureOfABatchIsTheSinglePicture) {
  const auto pipeline = load("sd1");
  Request request;
  request.prompts = {"a red apple"};
  request.size = Size{64, 64};
  request.steps = 3;
  request.seed = 100;
  request.images = 5;
  request.batch_size = 3;
  request.sampler = sampling::SamplerKind::kEulerAncestral;
  const auto batch = pipeline->generate(request);
  ASSERT_TRUE(batch) << batch.error().message;
  request.images = 1;
  for (uint32_t i = 0; i < 5; ++i) {
    request.seed = 100 + i;
    const auto single = pipeline->generate(request);
    ASSERT_TRUE(single);
    const auto a = (*batch)[i].latents.f32(), b = (*single)[0].latents.f32();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin())) << "picture " << i;
    EXPECT_EQ((*batch)[i].image.pixels, (*single)[0].image.pixels);
  }
}

/// Alike for one batch, and different in everything that may differ; three pictures, one and two.
std::vector<Request> requests_alike() {
  std::vector<Request> requests(3);
  for (Request& request : requests) {
    request.size = Size{64, 64};
    request.steps = 3;
    request.sampler = sampling::SamplerKind::kEulerAncestral;
  }
  requests[0].prompts = {"a red apple"};
  requests[0].images = 3;
  requests[0].seed = 7;
  requests[1].prompts = {"a green leaf"};
  requests[1].negative_prompt = "blue";
  requests[1].guidance = 3.0f;
  requests[1].guidance_rescale = 0.7f;
  requests[2].prompts = {"a red apple", "a boat"};
  requests[2].clip_skip = 2;
  requests[2].seed = 4294967294u;
  return requests;
}

class PipelineTogether : public testing::TestWithParam<const char*> {};

TEST_P(PipelineTogether, EachRequestGetsWhatItGetsAlone) {
  const auto pipeline = load(GetParam());
  std::vector<Request> requests = requests_alike();
  if (pipeline->model().has_size_conditioning()) {
    requests[1].original_size = Size{512, 256};
    requests[1].crop_left = 16;
  }
  for (const bool is_guided : {true, false}) {
    if (!is_guided)
      for (Request& request : requests) request.guidance = 1.0f;
    auto together = pipeline->generate_together(requests);
    ASSERT_EQ(together.size(), requests.size());
    for (size_t r = 0; r < requests.size(); ++r) {
      const auto alone = pipeline->generate(requests[r]);
      ASSERT_TRUE(alone && together[r]);
      ASSERT_EQ(together[r]->size(), alone->size());
      for (size_t i = 0; i < alone->size(); ++i) {
        const Picture &a = (*together[r])[i], &b = (*alone)[i];
        EXPECT_TRUE(std::ranges::equal(a.latents.f32(), b.latents.f32())) << "request " << r << " picture " << i;
        EXPECT_EQ(a.image.pixels, b.image.pixels);
        EXPECT_EQ(a.parameters, b.parameters);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, PipelineTogether, testing::Values("sd1", "sdxl"));

TEST(PipelineShared, StoppingAndFailingOnesLeaveTheOthersAlone) {
  const auto pipeline = load("sd1");
  std::vector<Request> requests = requests_alike();
  const auto alone = pipeline->generate(requests[1]);
  int told = 0;
  requests[0].on_progress = [&](const Progress& p) { return p.stage != Progress::Stage::kSample || ++told < 2; };
  requests[2].on_picture = [](size_t, const Picture&) -> Result<void> { return runtime_error("no place"); };
  auto together = pipeline->generate_together(requests);
  ASSERT_FALSE(together[0]);
  EXPECT_EQ(together[0].error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(told, 2);
  ASSERT_TRUE(together[1]);
  EXPECT_EQ((*together[1])[0].image.pixels, (*alone)[0].image.pixels);
  ASSERT_FALSE(together[2]);
  EXPECT_EQ(together[2].error().message, "no place");

  int steps = 0;
  for (Request& request : requests)
    request.on_progress = [&](const Progress& p) { return p.stage != Progress::Stage::kSample || ++steps < 0; };
  for (const auto& result : pipeline->generate_together(requests))
    EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(steps, 3);  // one batch of four pictures, of two requests, and one of the third's
}

TEST(PipelineShared, WarningsQuoteARequestsOwnPrompts) {
  const auto pipeline = load("sd1");
  std::vector<Request> requests = requests_alike();
  std::string longer = "secret";
  for (int i = 0; i < 80; ++i) longer += " cat";
  requests[0].prompts = {longer};  // three pictures, one warning
  requests[2].prompts = {longer, "a boat"};
  requests[2].clip_skip = requests[0].clip_skip;  // encoded once for both
  const auto together = pipeline->generate_together(requests);
  ASSERT_TRUE(together[0] && together[1] && together[2]);
  const auto of_length = [&](size_t r) {
    return std::ranges::count_if(pipeline->warnings(r),
                                 [](const std::string& w) { return w.find("75 tokens") != w.npos; });
  };
  EXPECT_EQ(of_length(0), 1);
  EXPECT_EQ(of_length(1), 0);
  EXPECT_EQ(of_length(2), 1);
}

TEST(PipelineShared, ProgressCountsARequestsOwnBatches) {
  const auto pipeline = load("sd1");
  std::vector<Request> requests = requests_alike();
  std::vector<std::pair<int, int>> batches(3);
  std::vector<size_t> latents(3);
  for (size_t r = 0; r < 3; ++r)
    requests[r].on_progress = [&, r](const Progress& p) {
      batches[r] = {p.batch + 1, p.batches};
      if (p.stage == Progress::Stage::kSample) latents[r] = p.denoised.size() / p.latent.elements();
      return true;
    };
  pipeline->generate_together(requests);
  EXPECT_EQ(batches, (std::vector<std::pair<int, int>>{{1, 1}, {1, 1}, {1, 1}}));
  EXPECT_EQ(latents, (std::vector<size_t>{3, 1, 2}));
}

TEST(BatchKey, DiffersWithWhatCannotBeShared) {
  const auto pipeline = load("sd1");
  const auto key = [&](auto change) {
    Request request;
    request.size = Size{64, 64};
    change(request);
    const auto plan = make_plan(pipeline->model(), request);
    EXPECT_TRUE(plan) << plan.error().message;
    return plan ? batch_key(*plan, request) : "";
  };
  const std::string plain = key([](Request&) {});
  EXPECT_EQ(plain, key([](Request& r) { r.seed = 5; }));
  EXPECT_EQ(plain, key([](Request& r) { r.guidance = 2.0f; }));
  EXPECT_NE(plain, key([](Request& r) { r.guidance = 1.0f; }));
  EXPECT_NE(plain, key([](Request& r) { r.size = Size{64, 72}; }));
  EXPECT_NE(plain, key([](Request& r) { r.steps = 3; }));
  EXPECT_NE(plain, key([](Request& r) { r.rng = sampling::RngKind::kPhilox; }));
  EXPECT_NE(plain, key([](Request& r) { r.sampler = sampling::SamplerKind::kEulerAncestral; }));
  EXPECT_NE(plain, key([](Request& r) { r.schedule = sampling::ScheduleKind::kKarras; }));
  EXPECT_EQ("", key([](Request& r) { r.init_image = std::make_shared<const Image>(Image(64, 64, 3)); }));
}

TEST(PipelineBits, ThreadsAndHistoryChangeNothing) {
  Request request;
  request.prompts = {"a red apple", "a much longer prompt, with a house"};
  request.size = Size{64, 48};
  request.steps = 3;
  std::vector<std::vector<uint8_t>> seen;
  for (const int threads : {1, 2, 3}) {
    auto pipeline = Pipeline::load({golden_path("pipelines/sdxl"), threads, Precision::kF32});
    ASSERT_TRUE(pipeline);
    for (int run = 0; run < 2; ++run) {
      const auto pictures = (*pipeline)->generate(request);
      ASSERT_TRUE(pictures) << pictures.error().message;
      seen.push_back((*pictures)[1].image.pixels);
    }
  }
  for (const auto& pixels : seen) EXPECT_EQ(pixels, seen[0]);
}

TEST(PipelineErrors, AreUsageErrorsBeforeAnyWork) {
  const auto pipeline = load("sd1");
  const auto message_of = [&](auto change) {
    Request request;
    request.size = Size{64, 64};
    request.steps = 2;
    bool worked = false;
    request.on_progress = [&](const Progress&) { return worked = true; };
    change(request);
    const auto result = pipeline->generate(request);
    EXPECT_FALSE(result);
    EXPECT_FALSE(worked);
    return result ? std::string() : result.error().message;
  };
  EXPECT_EQ(message_of([](Request& r) {
              r.size = Size{990, 316};
            }),
            "[pipeline.size] width expected a multiple of 8 from 8 to 4096, got 990; try 984 or 992");
  EXPECT_NE(message_of([](Request& r) { r.steps = 0; }).find("steps expected 1 to 1000, got 0"), std::string::npos);
  EXPECT_NE(message_of([](Request& r) {
              r.seed = 4294967295;
              r.images = 2;
            }).find("start lower"),
            std::string::npos);
  EXPECT_NE(message_of([](Request& r) { r.mask = std::make_shared<const Image>(8, 8, 1); }).find("init image"),
            std::string::npos);
  EXPECT_NE(message_of([](Request& r) { r.crop_top = 3; }).find("SDXL"), std::string::npos);
  EXPECT_NE(message_of([](Request& r) {
              r.init_image = std::make_shared<const Image>(64, 64, 3);
              r.strength = 0.2f;
            }).find("strength"),
            std::string::npos);
}

TEST(PipelineCancel, StopsWithinOneStep) {
  const auto pipeline = load("sd1");
  Request request;
  request.size = Size{64, 64};
  request.steps = 50;
  int steps = 0;
  request.on_progress = [&](const Progress& p) { return p.stage != Progress::Stage::kSample || ++steps < 2; };
  const auto result = pipeline->generate(request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind, ErrorKind::kCancelled);
  EXPECT_EQ(steps, 2);
  request.on_progress = nullptr;
  request.steps = 2;
  EXPECT_TRUE(pipeline->generate(request));
}

}  // namespace
}  // namespace sfumato
