// Jobs: drawn as the command line draws them, followed, cancelled, lost and found.
#include <cstring>
#include <thread>

#include "base/strings.h"
#include "image/image_io.h"
#include "tests/server/serve_fixture.h"

namespace sfumato {
namespace {

using Json = nlohmann::json;

class ServeJobs : public ServeTest {};

TEST_F(ServeJobs, DrawWhatTheCommandLineDraws) {
  serve();
  const Json done = finished(submit(job({{"batch_count", 2}})));
  EXPECT_EQ(done["status"], "done");
  EXPECT_TRUE(done["error"].is_null());
  ASSERT_EQ(done["images"].size(), 2u);
  EXPECT_EQ(done["images"][1]["seed"], 8);
  EXPECT_EQ(done["images"][0]["width"], 64);
  EXPECT_THAT(done["images"][0]["parameters"].get<std::string>(), ::testing::HasSubstr("Steps: 3"));
  EXPECT_EQ(picture(done["id"], 0), alone());
  EXPECT_EQ(picture(done["id"], 1), alone({"-s", "8"}));
  EXPECT_EQ(ask(port_, "GET", str("/api/jobs/", done["id"].get<std::string>(), "/images/2")).status, 404);
  EXPECT_EQ(ask(port_, "GET", "/api/jobs/none").status, 404);
}

TEST_F(ServeJobs, AreFollowedByEvents) {
  serve();
  const std::string id = submit(job({{"preview", true}}));
  Connection events(port_);
  events.send(http_text("GET", "/api/jobs/" + id + "/events"));
  const Answer head = events.receive_head();
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.headers.at("content-type"), "text/event-stream");
  std::vector<std::string> names;
  Json last;
  for (auto [name, data] = events.next_event(); !name.empty(); std::tie(name, data) = events.next_event()) {
    names.push_back(name);
    last = data;
    if (name == "progress" && data["stage"] == "sample" && !data["preview"].is_null()) {
      EXPECT_THAT(data["preview"].get<std::string>(), ::testing::StartsWith("data:image/jpeg;base64,/9j/"));
    }
  }
  ASSERT_GE(names.size(), 2u);
  EXPECT_EQ(names[names.size() - 2], "picture");
  EXPECT_EQ(names.back(), "done");
  EXPECT_EQ(last["images"].size(), 1u);
}

TEST_F(ServeJobs, PreviewsOfATinyAutoencoderAreOfFullSize) {
  serve({"--taesd", SFUMATO_SOURCE_DIR "/tests/golden/taesd/model"});
  const std::string id = submit(job({{"preview", true}}));
  Connection events(port_);
  events.send(http_text("GET", "/api/jobs/" + id + "/events"));
  events.receive_head();
  int previews = 0;
  for (auto [name, data] = events.next_event(); !name.empty(); std::tie(name, data) = events.next_event()) {
    if (name != "progress" || data["preview"].is_null()) continue;
    ++previews;
    const std::string jpeg =
        bytes_of_base64(data["preview"].get<std::string>().substr(strlen("data:image/jpeg;base64,")));
    const auto picture = decode_image(bytes_of(jpeg));
    ASSERT_TRUE(picture) << picture.error().message;
    EXPECT_EQ(picture->width, 64);
    EXPECT_EQ(picture->height, 64);
  }
  EXPECT_GT(previews, 0);
}

TEST_F(ServeJobs, AreCancelledWithinAStep) {
  serve();
  const std::string running = submit(long_job()), queued = submit(job());
  ASSERT_TRUE(eventually([&] { return state(running).value("step", 0) > 0; }));
  const std::string waiting = submit(job());
  EXPECT_GE(state(waiting)["position"].get<int>(), 1);
  EXPECT_EQ(ask(port_, "DELETE", "/api/jobs/" + waiting).json()["status"], "cancelled");
  const Json cancelled = ask(port_, "DELETE", "/api/jobs/" + running).json();
  EXPECT_EQ(cancelled["status"], "cancelled");
  EXPECT_LT(cancelled["step"].get<int>(), 990);
  EXPECT_EQ(finished(queued)["status"], "done");
  EXPECT_EQ(picture(queued), alone());
}

TEST_F(ServeJobs, EndWithTheirClient) {  // case I9
  serve();
  {
    Connection client(port_);
    client.send(http_text("POST", "/v1/images/generations",
                          Json({{"prompt", "x"}, {"size", "128x128"}, {"steps", 1000}}).dump()));
    ASSERT_TRUE(eventually([&] { return metric("sfumato_jobs_running") == 1; }));
  }
  EXPECT_TRUE(eventually([&] { return metric("sfumato_jobs_running") == 0; }));
  EXPECT_EQ(metric("sfumato_pictures_total"), 0);
  EXPECT_EQ(finished(submit(job()))["status"], "done");
}

TEST_F(ServeJobs, OutliveAWorker) {
  serve();
  const std::string running = submit(job({{"steps", 300}, {"width", 128}, {"height", 128}})), queued = submit(job());
  ASSERT_TRUE(eventually([&] { return state(running).value("step", 0) > 0; }));
  kill(worker(), SIGKILL);
  EXPECT_EQ(finished(running)["status"], "done");
  EXPECT_EQ(finished(queued)["status"], "done");
  EXPECT_EQ(picture(queued), alone());
  EXPECT_EQ(picture(running), alone({"--steps", "300", "-W", "128", "-H", "128"}));
  EXPECT_EQ(metric("sfumato_worker_restarts_total"), 1);
  EXPECT_EQ(metric("sfumato_pictures_total"), 2);  // none is counted twice
}

TEST_F(ServeJobs, ThatKillTwoWorkersFailAndTheServerLives) {
  serve();
  const std::string id = submit(long_job());
  for (int kills = 0; kills < 2; ++kills) {
    ASSERT_TRUE(eventually([&] { return state(id)["status"] == "running" && state(id).value("step", 0) > 0; }));
    const pid_t victim = worker();
    kill(victim, SIGKILL);
    ASSERT_TRUE(eventually([&] { return worker() != victim; }));
  }
  const Json failed = finished(id);
  EXPECT_EQ(failed["status"], "failed");
  EXPECT_THAT(failed["error"]["message"].get<std::string>(), ::testing::HasSubstr("died 2 times"));
  EXPECT_EQ(finished(submit(job()))["status"], "done");
}

TEST_F(ServeJobs, WaitOnlyWhereThereIsPlace) {  // case I7
  serve({"--queue", "1"});
  const std::string running = submit(long_job());
  ASSERT_TRUE(eventually([&] { return state(running)["status"] == "running"; }));
  const std::string waiting = submit(job());
  for (const char* path : {"/api/jobs", "/v1/images/generations", "/sdapi/v1/txt2img"}) {
    const Answer refused = post(port_, path, Json({{"prompt", "x"}}));
    EXPECT_EQ(refused.status, 429) << refused.body;
    EXPECT_GE(std::stoi(refused.headers.at("retry-after")), 1);
  }
  ask(port_, "DELETE", "/api/jobs/" + running);
  EXPECT_EQ(finished(waiting)["status"], "done");
}

TEST_F(ServeJobs, OfEqualShapeShareBatchesAndKeepTheirPictures) {
  serve();
  const std::string first = submit(job({{"steps", 100}, {"width", 128}, {"height", 128}}));
  const std::string other = submit(job({{"steps", 4}}));
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i)
    ids.push_back(submit(job({{"seed", 7 + i}, {"prompt", i % 2 ? "a boat" : "a red apple"}, {"cfg_scale", 2 + i}})));
  for (int i = 0; i < 6; ++i) {
    ASSERT_EQ(finished(ids[static_cast<size_t>(i)])["status"], "done");
    EXPECT_EQ(picture(ids[static_cast<size_t>(i)]),
              alone({"-s", str(7 + i), "--cfg-scale", str(2 + i)}, i % 2 ? "a boat" : "a red apple"));
  }
  EXPECT_EQ(finished(first)["status"], "done");
  EXPECT_EQ(picture((finished(other), other)), alone({"--steps", "4"}));
}

TEST_F(ServeJobs, EightAtOnceOnAColdServer) {  // case I5
  serve();
  std::vector<std::string> drawn(8);
  std::vector<std::thread> clients;
  for (size_t i = 0; i < drawn.size(); ++i)
    clients.emplace_back([&, i] {
      const Answer answer = post(port_, "/v1/images/generations",
                                 {{"prompt", "a red apple"}, {"size", "64x64"}, {"steps", 3}, {"seed", 7 + i}});
      EXPECT_EQ(answer.status, 200) << answer.body;
      if (answer.status == 200) drawn[i] = bytes_of_base64(answer.json()["data"][0]["b64_json"]);
    });
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < drawn.size(); i += 7) EXPECT_EQ(drawn[i], alone({"-s", str(7 + i)}));
}

TEST_F(ServeJobs, AreTakenUntilABalancerKnowsThatTheServerEnds) {
  serve({"--drain-delay", "1"});
  program_->send(SIGTERM);
  ASSERT_TRUE(eventually([&] { return ask(port_, "GET", "/health/ready").status == 503; }));
  const Answer taken =
      post(port_, "/v1/images/generations", {{"prompt", "a red apple"}, {"size", "64x64"}, {"steps", 2}});
  EXPECT_EQ(taken.status, 200) << taken.body;
  EXPECT_EQ(program_->wait().code, 0);
  program_.reset();
}

TEST_F(ServeJobs, AreFinishedBeforeTheServerStops) {
  serve();
  Answer answer;
  std::thread client([&] {
    answer = post(port_, "/v1/images/generations",
                  {{"prompt", "a red apple"}, {"size", "128x128"}, {"steps", 300}, {"seed", 7}});
  });
  ASSERT_TRUE(eventually([&] { return metric("sfumato_jobs_running") == 1; }));
  program_->send(SIGTERM);
  ASSERT_TRUE(eventually([&] { return ask(port_, "GET", "/health/ready").status == 503; }));
  EXPECT_EQ(ask(port_, "GET", "/health/live").status, 200);
  const Answer refused = post(port_, "/api/jobs", job());
  EXPECT_EQ(refused.status, 503) << refused.body;
  EXPECT_TRUE(refused.headers.contains("retry-after"));
  client.join();
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(program_->wait().code, 0);
  program_.reset();
}

}  // namespace
}  // namespace sfumato
