#!/usr/bin/env python3
"""Drives the page of a running `sfumato serve` in headless Chromium: type, generate, see the picture, cancel, refill from a PNG.

    sfumato serve &
    python tools/test_page.py http://127.0.0.1:7860 [--shots FOLDER] [--chromium /usr/bin/chromium]

Needs `pip install playwright` and a Chromium. Screenshots (light, dark, a phone's width) go to FOLDER, to be looked at.
"""
import argparse
import pathlib
import re
import tempfile

from playwright.sync_api import expect, sync_playwright

SLOW = 60_000  # milliseconds for a picture


def generate(page, prompt, **fields):
    page.fill("#prompt", prompt)
    for name, value in fields.items():
        page.fill(f"#{name}", str(value))
    page.keyboard.press("Control+Enter")


def check_draws(page):
    generate(page, "a red apple", seed=5, steps=4)
    expect(page.locator("#gallery img")).to_have_count(1, timeout=SLOW)
    expect(page.locator("#status")).to_contain_text("seed 5")
    assert page.evaluate("document.querySelector('#gallery img').naturalWidth") > 0
    assert page.evaluate("document.querySelector('#preview').src").startswith("data:image/jpeg"), "no preview was shown"


def check_several(page):
    generate(page, "a blue whale", seed=10, batch_count=2)
    expect(page.locator("#gallery img")).to_have_count(3, timeout=SLOW)
    page.fill("#batch_count", "1")


def check_cancel(page):
    generate(page, "a slow one", steps=150)
    expect(page.locator("#cancel")).to_be_enabled()
    expect(page.locator("#steps-done")).to_have_text(re.compile(r"^Step \d+ of 150, about .+ left$"), timeout=SLOW)
    expect(page.locator("#preview")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#status")).to_have_text("Cancelled.", timeout=SLOW)
    expect(page.locator("#go")).to_be_enabled()


def check_reload(page):
    """What was typed is still there; a job that nobody waits for is cancelled."""
    generate(page, "a slow one", steps=150)
    expect(page.locator("#steps-done")).to_contain_text("Step", timeout=SLOW)
    page.reload()
    expect(page.locator("#prompt")).to_have_value("a slow one")
    assert page.input_value("#steps") == "150"
    assert page.evaluate(METRIC.format("jobs_running")) == "0", "the job goes on without its page"


METRIC = """fetch("/metrics").then((r) => r.text()).then((text) => text.match(/^sfumato_{} (.*)$/m)[1])"""


def check_theme(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.evaluate(ground)
    page.click("#theme")
    assert page.evaluate(ground) != before
    page.reload()
    assert page.evaluate(ground) != before, "the choice is forgotten"
    page.click("#theme")  # as the system says, again
    assert page.evaluate(ground) == before and not page.evaluate("localStorage.getItem('sfumato-theme')")


def check_lightbox(page, folder):
    page.locator("#gallery button").last.click()
    expect(page.locator("#details")).to_contain_text("Seed: 5")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#details")).to_contain_text("Seed: 10")
    page.keyboard.press("ArrowRight")
    with page.expect_download() as download:
        page.click("#save")
    saved = folder / "saved.png"
    download.value.save_as(saved)
    page.keyboard.press("Escape")
    expect(page.locator("#lightbox")).to_be_hidden()
    return saved


def drop(page, path):
    """As if the file were dropped on the page."""
    data = list(path.read_bytes())
    page.evaluate("""([bytes, name]) => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([new Uint8Array(bytes)], name, {type: "image/png"}));
      document.dispatchEvent(new DragEvent("drop", {dataTransfer: transfer, cancelable: true}));
    }""", [data, path.name])


def check_refill(page, saved):
    page.fill("#prompt", "something else")
    page.fill("#seed", "")
    drop(page, saved)
    expect(page.locator("#prompt")).to_have_value("a red apple")
    assert page.input_value("#seed") == "5" and page.input_value("#steps") == "4"


def check_init(page, saved):
    page.set_input_files("#init-file", str(saved))
    expect(page.locator("#init-canvas")).to_be_visible()
    page.check("#paint")
    box = page.locator("#init-canvas").bounding_box()
    page.mouse.move(box["x"] + 20, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 80, box["y"] + 80, steps=5)
    page.mouse.up()
    page.screenshot(path=saved.parent / "page-mask.png")
    before = page.locator("#gallery img").count()
    generate(page, "a green apple")
    expect(page.locator("#gallery img")).to_have_count(before + 1, timeout=SLOW)
    page.click("#init-remove")


def check_mistake(page):
    page.fill("#width", "100")
    page.keyboard.press("Control+Enter")
    expect(page.locator("#status.error")).to_contain_text("96 or 104")
    page.fill("#width", "")


def check_labels(page):
    unnamed = page.evaluate("""() => [...document.querySelectorAll("input, select, textarea, button, canvas, progress")]
      .filter((e) => !(e.labels?.length || e.ariaLabel || e.textContent.trim() || e.title)).map((e) => e.id)""")
    assert not unnamed, f"without a label: {unnamed}"


def screenshots(page, folder):
    for name, width, height, theme in [("light", 1200, 850, "light"), ("dark", 1200, 850, "dark"), ("phone", 390, 844, "light")]:
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
        page.wait_for_timeout(700)  # what fades in
        page.screenshot(path=folder / f"page-{name}.png", full_page=name == "phone")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, f"{name}: the page is wider than the window"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--shots", type=pathlib.Path, default=pathlib.Path(tempfile.mkdtemp()))
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    args = parser.parse_args()
    args.shots.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as p:
        browser = p.chromium.launch(executable_path=args.chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1200, "height": 850})
        faults, foreign = [], []
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: message.type == "error" and "400" not in message.text and faults.append(message.text))
        page.on("request", lambda r: r.url.startswith((args.url, "blob:", "data:")) or foreign.append(r.url))
        page.goto(args.url)
        expect(page.locator("#model option").first).to_be_attached()
        check_theme(page)
        check_draws(page)
        check_several(page)
        saved = check_lightbox(page, args.shots)
        check_cancel(page)
        check_refill(page, saved)
        check_init(page, saved)
        check_mistake(page)
        check_labels(page)
        generate(page, "a red apple", seed=6, steps=20)
        expect(page.locator("#status")).to_contain_text("seed 6", timeout=SLOW)
        screenshots(page, args.shots)
        check_reload(page)
        assert not faults, faults
        assert not foreign, f"requests to elsewhere: {foreign}"
        browser.close()
    print(f"the page works; look at {args.shots}")


if __name__ == "__main__":
    main()
