#!/usr/bin/env python3
"""Runs the field's own clients, unchanged, against a running `sfumato serve` and says what works.

    pip install openai webuiapi pillow
    build/apps/sfumato serve --port 7861 &
    python tools/try_server_clients.py --port 7861

A line a call: what was asked, "ok" or what went wrong. Exit status 1 if anything went wrong.
"""
import argparse
import base64
import io
import sys
import threading
import time
import traceback

import openai
import webuiapi
from PIL import Image, ImageDraw

SIZE = 128
results = []


def check(name, action):
    begin = time.time()
    try:
        action()
        outcome = "ok"
    except Exception as error:  # whatever a client throws is the finding
        outcome = f"{type(error).__name__}: {error}"
        if isinstance(error, AssertionError):
            outcome = "assertion at line %d" % traceback.extract_tb(error.__traceback__)[-1].lineno
    results.append((name, outcome))
    print(f"{name:44} {time.time() - begin:6.2f} s  {outcome[:300]}", flush=True)


def raises(kind, action):
    try:
        action()
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}")


def picture(text):
    image = Image.open(io.BytesIO(base64.b64decode(text)))
    image.load()
    return image


def start_picture(mode="RGB"):
    image = Image.new(mode, (SIZE, SIZE), "white")
    ImageDraw.Draw(image).ellipse((20, 20, 108, 108), fill="red" if mode == "RGB" else 0)
    return image


def named_file(image, name):
    file = io.BytesIO()
    image.save(file, format="PNG")
    file.seek(0)
    file.name = name
    return file


def openai_family(base):
    client = openai.OpenAI(base_url=base + "/v1", api_key="none", max_retries=0)
    extra = {"steps": 4, "seed": 37}

    def generate(**words):
        body = dict(extra, **words.pop("extra_body", {}))
        return client.images.generate(prompt="a red apple", size=f"{SIZE}x{SIZE}", extra_body=body, **words)

    def models():
        listed = client.models.list().data
        assert listed and client.models.retrieve(listed[0].id).id == listed[0].id
    check("openai models.list, retrieve", models)

    def b64():
        answer = generate(n=2, response_format="b64_json")
        assert len(answer.data) == 2 and answer.created > 0
        assert all(d.b64_json and not d.url for d in answer.data)
        assert picture(answer.data[0].b64_json).size == (SIZE, SIZE)
        assert answer.data[0].b64_json != answer.data[1].b64_json
        again = generate(n=1, response_format="b64_json", extra_body={"seed": 38})
        assert again.data[0].b64_json and picture(again.data[0].b64_json).tobytes() == picture(
            answer.data[1].b64_json).tobytes()  # picture i has seed + i
    check("openai images.generate b64_json, n=2, seeds", b64)

    def url():
        import urllib.request
        answer = generate(response_format="url")
        assert answer.data[0].url and not answer.data[0].b64_json
        with urllib.request.urlopen(answer.data[0].url) as reply:
            assert Image.open(io.BytesIO(reply.read())).size == (SIZE, SIZE)
    check("openai images.generate url", url)

    def formats():
        for name, kind in (("jpeg", "JPEG"), ("webp", "WEBP"), ("png", "PNG")):
            answer = generate(output_format=name, output_compression=80)
            image = picture(answer.data[0].b64_json)
            assert image.format == kind, image.format
    check("openai images.generate jpeg, webp, png", formats)

    def stream():
        events = list(generate(stream=True, partial_images=2))
        kinds = [e.type for e in events]
        assert kinds[-1] == "image_generation.completed" and kinds.count("image_generation.completed") == 1, kinds
        assert 1 <= kinds.count("image_generation.partial_image") <= 2, kinds
        assert picture(events[-1].b64_json).size == (SIZE, SIZE)
        picture(events[0].b64_json)
    check("openai images.generate stream", stream)

    def edit():
        answer = client.images.edit(image=named_file(start_picture(), "a.png"), prompt="a red apple", n=1,
                                    size=f"{SIZE}x{SIZE}", response_format="b64_json", extra_body=dict(extra, strength=0.6))
        assert picture(answer.data[0].b64_json).size == (SIZE, SIZE)
    check("openai images.edit", edit)

    def edit_list():
        answer = client.images.edit(image=[named_file(start_picture(), "a.png")], prompt="a red apple",
                                    extra_body=extra)
        picture(answer.data[0].b64_json or "")
    check("openai images.edit image[]", edit_list)

    def edit_mask():
        mask = Image.new("RGBA", (SIZE, SIZE), (0, 0, 0, 255))
        mask.paste((0, 0, 0, 0), (0, 0, SIZE // 2, SIZE))  # transparent: to be repainted
        start = start_picture()
        answer = client.images.edit(image=named_file(start, "a.png"), mask=named_file(mask, "m.png"),
                                    prompt="a green leaf", size=f"{SIZE}x{SIZE}", response_format="b64_json",
                                    extra_body=dict(extra, strength=1.0))
        drawn = picture(answer.data[0].b64_json).convert("RGB")
        def change(box):
            pairs = zip(drawn.crop(box).tobytes(), start.crop(box).tobytes())
            return sum(abs(a - b) for a, b in pairs) / (3 * (box[2] - box[0]) * (box[3] - box[1]))
        left, right = change((0, 0, SIZE // 2 - 8, SIZE)), change((SIZE // 2 + 8, 0, SIZE, SIZE))
        assert left > 2 * right, (left, right)  # the opaque half is kept
    check("openai images.edit mask (transparent: edit)", edit_mask)

    def faults():
        error = raises(openai.BadRequestError, lambda: generate(extra_body={"steps": "many"}))
        assert error.body["type"] == "invalid_request_error" and error.body["param"] == "steps", error.body
        error = raises(openai.BadRequestError, lambda: client.images.generate(prompt="x", size="65x64"))
        assert "multiple" in error.message
        raises(openai.BadRequestError, lambda: generate(response_format="xml"))
        raises((openai.BadRequestError, openai.NotFoundError), lambda: generate(model="nothing"))
        assert error.request_id
    check("openai errors", faults)

    def eight():
        seeds, threads = {}, []
        def one(i):
            seeds[i] = generate(response_format="b64_json", extra_body={"seed": i}).data[0].b64_json
        for i in range(8):
            threads.append(threading.Thread(target=one, args=(i,)))
        for t in threads: t.start()
        for t in threads: t.join()
        assert len(set(seeds.values())) == 8
    check("openai 8 at a time", eight)


def a1111_family(port):
    api = webuiapi.WebUIApi(host="127.0.0.1", port=port, steps=4)
    size = {"width": SIZE, "height": SIZE}
    first = {}

    def txt2img():
        result = first["txt2img"] = api.txt2img(prompt="a red apple", negative_prompt="blue", seed=37, cfg_scale=3, **size)
        assert result.image.size == (SIZE, SIZE)
        assert result.info["all_seeds"] == [37] and "Seed: 37" in result.info["infotexts"][0]
        assert "a red apple" in result.image.info["parameters"] and result.parameters["prompt"] == "a red apple"
    check("webuiapi txt2img", txt2img)

    def many():
        result = api.txt2img(prompt="a red apple", seed=5, batch_size=2, n_iter=2, **size)
        assert len(result.images) == 4 and result.info["all_seeds"] == [5, 6, 7, 8]
    check("webuiapi txt2img batch_size 2, n_iter 2", many)

    def names():
        for sampler, schedule in (("DPM++ 2M Karras", None), ("Euler a", "Karras"), ("DDIM", None), ("DPM++ 2M", "Automatic")):
            result = api.txt2img(prompt="x", sampler_name=sampler, scheduler=schedule, **size)
            assert result.image.size == (SIZE, SIZE)
    check("webuiapi txt2img sampler names", names)

    def img2img():
        result = api.img2img(images=[start_picture()], prompt="a red apple", seed=5, denoising_strength=0.5, **size)
        assert result.image.size == (SIZE, SIZE) and result.info["seed"] == 5
    check("webuiapi img2img", img2img)

    def inpaint():
        mask = Image.new("L", (SIZE, SIZE), 0)
        mask.paste(255, (0, 0, SIZE // 2, SIZE))
        result = api.img2img(images=[start_picture()], mask_image=mask, inpainting_fill=1, mask_blur=0,
                             inpaint_full_res=False, prompt="a leaf", denoising_strength=0.9, **size)
        assert result.image.size == (SIZE, SIZE)
    check("webuiapi img2img mask", inpaint)

    def png_info():
        result = api.png_info(first["txt2img"].image)
        assert "Steps: 4" in result.info and result.parameters["Seed"] in (37, "37")
    check("webuiapi png_info", png_info)

    def lists():
        assert "Euler a" in api.util_get_sampler_names() and len(api.get_schedulers()) >= 3
        models = api.get_sd_models()
        assert {"title", "model_name", "hash", "sha256", "filename", "config"} <= set(models[0])
        for call in (api.get_sd_vae, api.get_upscalers, api.get_loras, api.get_prompt_styles):
            assert isinstance(call(), list)
        assert "loaded" in api.get_embeddings() and "ram" in api.get_memory() and api.get_cmd_flags() is not None
    check("webuiapi lists", lists)

    def options():
        title = api.util_get_model_names()[0]
        api.util_set_model(title)
        assert api.util_get_current_model() in (title, title.split(" [")[0])
    check("webuiapi options, util_set_model", options)

    def progress_interrupt():
        done = {}
        def long():
            done["result"] = api2.txt2img(prompt="x", steps=150, batch_size=4, **size)
        api2 = webuiapi.WebUIApi(host="127.0.0.1", port=port)
        thread = threading.Thread(target=long)
        thread.start()
        seen = []
        for _ in range(200):
            state = api.get_progress()
            seen.append(state["progress"])
            if 0 < state["progress"] < 1:
                assert state["state"]["sampling_steps"] == 150 and state["state"]["sampling_step"] > 0
                break
            time.sleep(0.05)
        begin = time.time()
        api.interrupt()
        thread.join(timeout=60)
        assert not thread.is_alive() and 0 < seen[-1] < 1, seen[-1]
        assert time.time() - begin < 10
        api.util_wait_for_ready(check_interval=0.2)
    check("webuiapi get_progress, interrupt", progress_interrupt)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=7860)
    port = parser.parse_args().port
    print(f"openai {openai.__version__}; webuiapi")
    openai_family(f"http://127.0.0.1:{port}")
    a1111_family(port)
    bad = [name for name, outcome in results if outcome != "ok"]
    print(f"{len(results) - len(bad)} of {len(results)} ok")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
