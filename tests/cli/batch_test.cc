// `sfumato batch` with a tiny model of random weights.
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/strings.h"
#include "image/image_io.h"
#include "tests/cli/cli_fixture.h"

namespace sfumato {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

class BatchTest : public CliTest {
 protected:
  void write_manifest(const std::string& text) const { std::ofstream(path("m.jsonl")) << text; }
  std::vector<std::string> words(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"batch",       path("m.jsonl"), "-o", path("out"), "-m",
                                    tiny_model(),  "--steps",       "1",  "-t",        "1",
                                    "--precision", "fp32"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  Outcome batch(std::vector<std::string> more = {}, const Environment& environment = {}) const {
    return run(words(std::move(more)), environment);
  }
  std::vector<std::string> files(const std::string& folder = "out") const {
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(path(folder)))
      if (entry.is_regular_file()) found.push_back(fs::relative(entry.path(), path(folder)).string());
    std::sort(found.begin(), found.end());
    return found;
  }
  std::string parameters(const std::string& name) const { return read_parameters(path(name)).value(); }
};

constexpr const char* kThree =
    "{\"prompt\": \"a cat\", \"batch_count\": 2}\n"
    "\n"
    "{\"prompt\": \"a dog\", \"seed\": 70, \"steps\": 2, \"negative_prompt\": \"blur\", \"id\": \"rex\"}\n";

TEST_F(BatchTest, DrawsEveryPictureWithItsOwnSeed) {
  write_manifest(kThree);
  const Outcome outcome = batch({"--seed", "100"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(files(), ::testing::ElementsAre("00000/000000000.png", "00000/000000001.png", "00000/000000002.png",
                                              "metadata-00000-of-00001.jsonl"));
  EXPECT_THAT(parameters("out/00000/000000001.png"), HasSubstr("a cat\nSteps: 1"));
  EXPECT_THAT(parameters("out/00000/000000001.png"), HasSubstr("Seed: 101,"));
  EXPECT_THAT(parameters("out/00000/000000002.png"), HasSubstr("a dog\nNegative prompt: blur\nSteps: 2"));
  const std::vector<std::string> lines = split(read_file(path("out/metadata-00000-of-00001.jsonl")), '\n');
  EXPECT_EQ(lines[2],
            R"({"index":2,"file":"00000/000000002.png","prompt":"a dog","steps":2,"negative_prompt":"blur","id":"rex",)"
            R"("seed":70})");
}

TEST_F(BatchTest, APictureIsTheOneThatGenerateDraws) {
  write_manifest(kThree);
  ASSERT_EQ(batch().code, 0);
  ASSERT_EQ(run({"a dog", "-n", "blur", "-s", "70", "-m", tiny_model(), "--steps", "2", "-t", "1", "--precision",
                 "fp32", "-o", path("one.png")})
                .code,
            0);
  EXPECT_EQ(read_file(path("one.png")), read_file(path("out/00000/000000002.png")));
}

TEST_F(BatchTest, DoesOnlyWhatIsMissing) {
  write_manifest(kThree);
  ASSERT_EQ(batch().code, 0);
  fs::remove(path("out/00000/000000001.png"));
  std::ofstream(path("out/00000/000000001.png.4711.part")) << "half";
  const Outcome outcome = batch({"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("\"missing\":1"));
  EXPECT_THAT(outcome.out, HasSubstr("\"drawn\":1,\"there_before\":2,\"failed\":0"));
  EXPECT_EQ(files().size(), 4u);  // the half is gone
}

TEST_F(BatchTest, SharesTheWorkAsTheLauncherSays) {
  write_manifest(kThree);
  const Environment launchers[] = {
      {{"SLURM_ARRAY_TASK_ID", "8"}, {"SLURM_ARRAY_TASK_COUNT", "3"}, {"SLURM_ARRAY_TASK_MIN", "7"}, {"RANK", "0"}},
      {{"JOB_COMPLETION_INDEX", "1"}, {"JOB_COMPLETION_COUNT", "3"}},
      {{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "3"}},
      {{"PMI_RANK", "1"}, {"PMI_SIZE", "3"}},
      {{"SLURM_PROCID", "1"}, {"SLURM_NTASKS", "3"}},
      {{"RANK", "1"}, {"WORLD_SIZE", "3"}},
  };
  for (const Environment& environment : launchers) {
    const Outcome outcome = batch({}, environment);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(files(), ::testing::ElementsAre("00000/000000001.png", "metadata-00001-of-00003.jsonl"));
    EXPECT_THAT(outcome.err, HasSubstr("shard 1 of 3"));
    fs::remove_all(path("out"));
  }
  ASSERT_EQ(batch({"--shard-index", "2", "--shard-count", "3"}, {{"RANK", "1"}, {"WORLD_SIZE", "3"}}).code, 0);
  EXPECT_THAT(files(), ::testing::Contains("00000/000000002.png"));
}

TEST_F(BatchTest, HalfAStatementAboutShardsIsRefused) {
  write_manifest(kThree);
  expect_failure(batch({}, {{"JOB_COMPLETION_INDEX", "1"}}), 2, "JOB_COMPLETION_COUNT is not: set it");
  expect_failure(batch({}, {{"RANK", "3"}, {"WORLD_SIZE", "3"}}), 2, "got 3 of 3 from torchrun");
  expect_failure(batch({}, {{"RANK", "x"}, {"WORLD_SIZE", "3"}}), 2, "RANK expected a number");
  expect_failure(batch({"--shard-index", "0"}), 2, "together");
  EXPECT_FALSE(exists("out"));
}

TEST_F(BatchTest, TarsHoldPicturesAndRecords) {
  write_manifest(kThree);
  for (const char* shard : {"0", "1"})
    ASSERT_EQ(batch({"--format", "webdataset", "--tar-size", "2", "--shard-index", shard, "--shard-count", "2"}).code,
              0);
  EXPECT_THAT(files(), ::testing::ElementsAre("000000.tar", "000001.tar"));
  const std::string tar = read_file(path("out/000001.tar"));
  EXPECT_THAT(tar, ::testing::StartsWith("000000002.png"));
  EXPECT_THAT(tar, HasSubstr("000000002.json"));
  EXPECT_THAT(tar, HasSubstr("\"id\":\"rex\""));
  const Outcome again = batch({"--format", "webdataset", "--tar-size", "2", "--json"});
  EXPECT_THAT(again.out, HasSubstr("\"missing\":0"));
  EXPECT_EQ(read_file(path("out/000001.tar")), tar);
}

TEST_F(BatchTest, AManifestErrorNamesItsLineBeforeAnythingIsDrawn) {
  const std::pair<const char*, const char*> bad[] = {
      {"{\"prompt\": \"x\", \"stepz\": 1}", "line 2: the field \"stepz\""},
      {"{\"prompt\": \"x\", \"steps\": 0}", "line 2: [options] --steps expected"},
      {"{\"prompt\": \"x\", \"steps\": \"3\"}", "line 2: [options] steps expected a number"},
      {"{\"prompt\": \"x\", \"width\": 65}", "line 2: [pipeline.size] width"},
      {"{\"prompt\": \"x\", \"model\": \"m\"}", "line 2: the field \"model\""},
      {"{\"prompt\": \"x\", \"output\": \"/etc\"}", "line 2: the field \"output\""},
      {"{\"prompt\": \"x\", \"init_img\": \"none.png\"}", "line 2: there is no file"},
      {"{\"prompt\": \"x\", \"seed\": 4294967295, \"batch_count\": 2}", "line 2: expected seeds up to"},
      {"{\"prompt\": [\"x\", \"y\"]}", "line 2: expected one \"prompt\", got 2"},
      {"{\"steps\": 1}", "line 2: expected one \"prompt\", got 0"},
      {"{\"prompt\": \"x\", \"prompt\": \"y\"}", "line 2: [json] the field \"prompt\" is there twice"},
      {"{\"prompt\": ", "line 2: [json]"},
      {"[1]", "line 2: expected an object"},
      {"{\"prompt\": \"x\", \"id\": {}}", "line 2: id expected"},
  };
  for (const auto& [line, message] : bad) {
    write_manifest(str("{\"prompt\": \"good\"}\n", line, "\n"));
    const Outcome outcome = batch();
    EXPECT_TRUE(outcome.code == 2 || outcome.code == 3) << line << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << line;
    EXPECT_FALSE(exists("out")) << line;
  }
  write_manifest("\n\n");
  expect_failure(batch(), 3, "no line");
}

TEST_F(BatchTest, ABrokenInitImageCostsItsOwnPictureOnly) {
  std::ofstream(path("broken.png")) << "no picture";
  write_manifest("{\"prompt\": \"x\", \"init_img\": \"broken.png\"}\n{\"prompt\": \"y\"}\n");
  const Outcome outcome = batch();
  EXPECT_EQ(outcome.code, 3);
  EXPECT_THAT(outcome.err, HasSubstr("picture 0: [batch.manifest] line 1: [image"));
  EXPECT_THAT(outcome.err, HasSubstr("1 drawn, 0 were there, 1 failed"));
  EXPECT_THAT(files(), ::testing::ElementsAre("00000/000000001.png", "metadata-00000-of-00001.jsonl"));
}

TEST_F(BatchTest, TerminationDrains) {
  write_manifest("{\"prompt\": \"x\", \"batch_count\": 500}\n");
  RunningProgram program(folder_, words({"--json"}));
  program.wait_for_output("\"picture\"");
  program.send(SIGTERM);
  const Outcome outcome = program.wait();
  EXPECT_EQ(outcome.code, 130) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("goes on from here"));
  EXPECT_THAT(outcome.out, HasSubstr("\"event\":\"end\""));
  const size_t drawn = files().size() - 1;
  EXPECT_GE(drawn, 1u);
  EXPECT_LT(drawn, 500u);
  const std::string records = read_file(path("out/metadata-00000-of-00001.jsonl"));
  EXPECT_EQ(static_cast<size_t>(std::count(records.begin(), records.end(), '\n')), drawn);
}

}  // namespace
}  // namespace sfumato
