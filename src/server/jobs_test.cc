#include "server/jobs.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

namespace sfumato::server {
namespace {

JobSpec spec_of(double work = 1) {
  JobSpec spec;
  spec.work = work;
  return spec;
}

std::vector<JobPtr> just(const JobPtr& job) {
  return {job};
}

class JobQueueTest : public ::testing::Test {
 protected:
  boost::asio::io_context loop_;
  JobQueue queue_{loop_.get_executor(), {.queued = 3, .queued_bytes = 500, .kept = 2, .kept_bytes = 1000}};
};

TEST_F(JobQueueTest, FirstComeFirstServed) {
  const JobPtr a = queue_.submit(spec_of()), b = queue_.submit(spec_of()), c = queue_.submit(spec_of());
  EXPECT_TRUE(queue_.is_full());
  EXPECT_EQ(queue_.position(*a), 0u);
  EXPECT_EQ(queue_.position(*c), 2u);
  EXPECT_EQ(queue_.take(), just(a));
  EXPECT_EQ(a->state, JobState::kRunning);
  EXPECT_FALSE(queue_.is_full());
  EXPECT_EQ(queue_.position(*b), 1u);  // after the one that runs
  EXPECT_EQ(queue_.take(), just(b));
  EXPECT_EQ(queue_.take(), just(c));
  EXPECT_TRUE(queue_.take().empty());
  EXPECT_EQ(queue_.find(b->id), b);
  EXPECT_EQ(queue_.find("x"), nullptr);
  EXPECT_NE(a->id, b->id);
}

TEST_F(JobQueueTest, IsFullOfPictures) {
  JobSpec spec = spec_of();
  spec.init = std::string(300, 'x');
  queue_.submit(spec);
  EXPECT_FALSE(queue_.is_full());
  queue_.submit(spec);
  EXPECT_TRUE(queue_.is_full());
  queue_.take();
  EXPECT_FALSE(queue_.is_full());
}

TEST_F(JobQueueTest, AJobThatWasPutBackIsTheNext) {
  const JobPtr a = queue_.submit(spec_of()), b = queue_.submit(spec_of());
  ASSERT_EQ(queue_.take(), just(a));
  a->pictures.push_back({"half", 1, "", 8, 8});
  queue_.put_back(a);
  EXPECT_EQ(a->state, JobState::kQueued);
  EXPECT_TRUE(a->pictures.empty());
  EXPECT_EQ(queue_.take(), just(a));
  EXPECT_EQ(a->tries, 2);
  EXPECT_EQ(queue_.take(), just(b));
}

TEST_F(JobQueueTest, JobsOfOneKeyAreTakenTogether) {
  const auto submit = [&](const char* key, int pictures, const char* model = "m") {
    JobSpec spec = spec_of(2);
    spec.batch_key = key;
    spec.batch_size = 4;
    spec.pictures = pictures;
    spec.model = model;
    return queue_.submit(spec);
  };
  const JobPtr a = submit("x", 1), b = submit("y", 1), c = submit("x", 2), d = submit("x", 2), e = submit("x", 1),
               f = submit("x", 1, "other"), g = submit("", 1), h = submit("", 1);
  EXPECT_EQ(queue_.take(), (std::vector<JobPtr>{a, c, e}));  // d does not fit in
  EXPECT_EQ(a->batch_work, 6);
  EXPECT_EQ(queue_.running().size(), 3u);
  queue_.put_back(e);
  queue_.put_back(c);
  queue_.put_back(a);
  for (const JobPtr& job : {a, c, e, b, d, f, g, h}) EXPECT_EQ(queue_.take(), just(job));  // the lost ones alone
}

TEST_F(JobQueueTest, ForgetsTheOldestFinished) {
  std::vector<JobPtr> jobs;
  for (int i = 0; i < 3; ++i) {
    jobs.push_back(queue_.submit(spec_of()));
    queue_.finish(queue_.take().at(0), JobState::kDone);
  }
  EXPECT_EQ(queue_.find(jobs[0]->id), nullptr);
  EXPECT_EQ(queue_.find(jobs[2]->id), jobs[2]);
  const JobPtr large = queue_.submit(spec_of());
  queue_.take();
  large->pictures.push_back({std::string(2000, 'x'), 1, "", 8, 8});
  queue_.finish(large, JobState::kDone);
  EXPECT_EQ(queue_.find(jobs[2]->id), nullptr);
  EXPECT_EQ(queue_.find(large->id), large);  // the newest is kept whatever its size
}

TEST_F(JobQueueTest, AWaitingJobCanBeCancelledAndAFinishedOneStaysAsItIs) {
  const JobPtr a = queue_.submit(spec_of()), b = queue_.submit(spec_of());
  queue_.finish(a, JobState::kCancelled);
  EXPECT_EQ(queue_.take(), just(b));
  queue_.finish(b, JobState::kDone);
  queue_.finish(b, JobState::kFailed);
  EXPECT_EQ(b->state, JobState::kDone);
}

TEST_F(JobQueueTest, EstimatesGrowWithWhatIsBefore) {
  const JobPtr a = queue_.submit(spec_of(1));
  EXPECT_LT(queue_.eta(*a), 0);  // nothing was drawn yet
  queue_.take();
  a->started -= std::chrono::seconds(2);
  queue_.finish(a, JobState::kDone);
  const JobPtr b = queue_.submit(spec_of(2)), c = queue_.submit(spec_of(1));
  EXPECT_NEAR(queue_.eta(*b), 4, 0.1);
  EXPECT_NEAR(queue_.eta(*c), 6, 0.1);
  queue_.take();
  b->started -= std::chrono::seconds(3);
  b->step = 3;
  b->steps = 4;
  EXPECT_NEAR(queue_.eta(*b), 1, 0.1);
  EXPECT_NEAR(queue_.eta(*c), 3, 0.1);
  EXPECT_GE(queue_.retry_after(), 1);
}

TEST_F(JobQueueTest, EveryoneWhoWaitsIsWoken) {
  const JobPtr job = queue_.submit(spec_of());
  int woken = 0;
  for (int i = 0; i < 3; ++i)
    boost::asio::co_spawn(
        loop_,
        [&]() -> boost::asio::awaitable<void> {
          while (!job->is_over()) co_await job->changed(std::chrono::hours(1));
          ++woken;
        },
        boost::asio::detached);
  loop_.poll();
  EXPECT_EQ(woken, 0);
  queue_.take();
  queue_.finish(job, JobState::kDone);
  loop_.poll();
  EXPECT_EQ(woken, 3);
}

}  // namespace
}  // namespace sfumato::server
