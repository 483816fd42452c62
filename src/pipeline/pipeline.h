#pragma once
// The library's door: load a model, then generate pictures.
#include <filesystem>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "pipeline/conditioning.h"
#include "pipeline/model.h"
#include "pipeline/plan.h"
#include "pipeline/programs.h"
#include "pipeline/request.h"

namespace sfumato {

struct PipelineOptions {
  std::filesystem::path model;  ///< a folder in diffusers layout; empty: the embedded model
  int threads = 0;              ///< 0: default_threads()
  Precision precision = Precision::kAuto;
  std::filesystem::path taesd = {};  ///< an AutoencoderTiny's folder, for preview(); empty: a linear map does
  std::string synthetic = {};        ///< instead of a model: random weights, as Model::open_synthetic
  bool pjrt = false;                 ///< the devices of a PJRT plugin instead of the CPU
  PjrtOptions accelerator = {};
};

/// The model that the options name.
Result<Model> open_model(const PipelineOptions& options);

/// Not for two threads at once.
class Pipeline {
 public:
  /// Opens the model and checks every tensor it needs, without computing anything.
  static Result<std::unique_ptr<Pipeline>> load(const PipelineOptions& options);

  /// The pictures of `request`: for each prompt, `request.images` of them; picture i overall has seed + i, and is the
  /// same bit for bit whatever the batch, on the CPU backend.
  Result<std::vector<Picture>> generate(const Request& request);

  /// Several requests at once, their pictures in shared batches; all must have the same batch_key (plan.h), and each
  /// gets what generate() would give it, bit for bit. One that is stopped or fails does not touch the others.
  std::vector<Result<std::vector<Picture>>> generate_together(std::span<const Request> requests);

  /// Is every value of `request` one that generate() takes? Computes nothing.
  Result<void> check(const Request& request) const;

  /// A latent [C,h,w] of a progress report as a picture: full size with a taesd, else h x w pixels by a linear map,
  /// rough and free. Errors: a NaN or infinity, out of memory.
  Result<Image> preview(std::span<const float> latent, const LatentSize& size);

  const Model& model() const { return model_; }
  const ModelInfo& info() const { return model_.info; }
  Precision precision() const { return precision_; }
  const Backend& backend() const { return *backend_; }
  /// Remarks of the last call on one of its requests, for whoever asked: dropped prompt text, fallbacks. One line each.
  const std::vector<std::string>& warnings(size_t request = 0) const { return warnings_.at(request); }

 private:
  Pipeline(Model model, std::unique_ptr<Backend> backend, Precision precision)
      : model_(std::move(model)),
        backend_(std::move(backend)),
        precision_(precision),
        vae_precision_(precision),
        programs_(model_, *backend_, precision) {}

  struct Task;
  struct Slot;
  struct Encodings;
  /// All pictures of all tasks; an error is one of every task that is not over.
  Result<void> draw(std::span<Task> tasks);
  Result<void> encode(Task& task, Encodings& encodings);
  Result<void> draw_batch(std::span<const Slot> batch);
  /// The final latents of a batch, [C,h,w] back to back. Cancelled: all its tasks are over.
  Result<std::vector<float>> sample_batch(std::span<const Slot> batch);
  /// Decodes latents [C,h,w], at most one a device; at fp32 if the chosen precision gives a NaN or infinity: `remark`
  /// says so.
  Result<std::vector<Image>> decode(const std::vector<std::span<const float>>& latents, const Plan& plan,
                                    std::string& remark);
  /// Picture `index` of the task.
  Picture finish(const Task& task, int index, std::span<const float> latents, Image image) const;

  Model model_;
  std::unique_ptr<Backend> backend_;
  Precision precision_, vae_precision_;  // the autoencoder's falls to fp32 once it overflowed
  Programs programs_;
  std::vector<std::vector<std::string>> warnings_ = {{}};  // of each request
};

}  // namespace sfumato
