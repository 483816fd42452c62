#pragma once
// The process that draws. The server starts it, tells it what to draw, and survives it.
namespace sfumato::server {

/// Serves frames on `fd` until the other end is closed; returns the exit code.
///
/// To the worker:
///     setup     {models: {name: path}, preload: name, threads, precision}      first, once
///     generate  {model, jobs: [{id, fields, format, quality, preview, init_bytes, mask_bytes, mask_is_alpha}]}
///               + their init images and masks, encoded; several jobs have one batch_key
///     cancel    {id}
/// From it:
///     ready     {}                                                            the preloaded model is there
///     broken    {message, kind}                                               it is not, and never will be
///     progress  {id, stage, step, steps} + a JPEG, if `preview` and there is one
///     picture   {id, index, seed, parameters, width, height} + the encoded picture
///     done      {id, seconds, warnings}
///     failed    {id, kind, message}                                           cancelled too
int run_worker(int fd);

}  // namespace sfumato::server
