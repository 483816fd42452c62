#include "pipeline/conditioning.h"

#include <algorithm>

#include "base/strings.h"
#include "text/tokenizer.h"

namespace sfumato {
namespace {

// [77,A] and [77,B] -> [77,A+B]
Tensor join_channels(const Tensor& a, const Tensor& b) {
  const int64_t rows = a.shape()[0], left = a.shape()[1], right = b.shape()[1];
  Tensor out(Shape{rows, left + right});
  for (int64_t r = 0; r < rows; ++r) {
    std::copy_n(a.f32().data() + r * left, left, out.f32().data() + r * (left + right));
    std::copy_n(b.f32().data() + r * right, right, out.f32().data() + r * (left + right) + left);
  }
  return out;
}

}  // namespace

Result<Conditioning> encode_prompt(const Model& model, Programs& programs, const std::string& prompt, int clip_skip,
                                   std::vector<std::string>& warnings) {
  Conditioning out;
  for (size_t i = 0; i < model.text_encoders.size(); ++i) {
    const text::TokenizedPrompt tokens =
        text::tokenize_prompt(text::Tokenizer::clip(), prompt, model.text_encoders[i].pad_id, kPromptTokens);
    if (!tokens.dropped.empty() && i == 0)
      warnings.push_back(str("the prompt is longer than 75 tokens; left out: \"", tokens.dropped, "\""));
    const int32_t end = tokens.end_index;
    const TensorView inputs[] = {{tokens.ids.data(), {1, kPromptTokens}, DType::kI32}, {&end, {1}, DType::kI32}};
    Executable* encoder = TRY(programs.text_encoder(static_cast<int>(i), clip_skip));
    std::vector<Tensor> outputs = TRY(encoder->run(inputs));
    Tensor hidden = std::move(outputs[0]).reshaped({kPromptTokens, outputs[0].shape()[2]});
    out.context = i == 0 ? std::move(hidden) : join_channels(out.context, hidden);
    if (outputs.size() > 1) out.pooled = std::move(outputs[1]).reshaped({outputs[1].shape()[1]});
  }
  return out;
}

Result<Conditioning> encode_negative(const Model& model, Programs& programs, const std::optional<std::string>& prompt,
                                     std::vector<std::string>& warnings) {
  Conditioning out = TRY(encode_prompt(model, programs, prompt.value_or(""), 1, warnings));
  if (!prompt && model.zero_absent_negative) {
    std::ranges::fill(out.context.f32(), 0.0f);
    if (!out.pooled.empty()) std::ranges::fill(out.pooled.f32(), 0.0f);
  }
  return out;
}

}  // namespace sfumato
