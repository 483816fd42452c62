"""Small pictures of every kind that PIL writes, and PIL's own resizing."""
from PIL import Image, PngImagePlugin

WIDTH, HEIGHT = 19, 13
TEXT = "a café\nSteps: 20, Sampler: Euler a, Seed: 7"
WIDE_TEXT = "赤いりんご 🍎\nNegative prompt: blurry\nSteps: 20, Sampler: Euler a, Seed: 7"


def pattern(width=WIDTH, height=HEIGHT):
    """The tests make the same picture from the same formula."""
    image = Image.new("RGB", (width, height))
    for y in range(height):
        for x in range(width):
            image.putpixel((x, y), ((x * 37 + y * 11) % 256, (x * 5 + y * 59) % 256, (x * x + y * 3) % 256))
    return image


def blocks():
    """Flat blocks of 8 x 8, which JPEG keeps; 16 wide, 24 high."""
    image = Image.new("RGB", (16, 24))
    for y in range(24):
        for x in range(16):
            image.putpixel((x, y), ((x // 8) * 200, (y // 8) * 100, 60))
    return image


def make(out_dir):
    rgb = pattern()
    gray = rgb.convert("L")
    alpha = Image.new("L", rgb.size, 128)
    rgba = rgb.copy()
    rgba.putalpha(alpha)
    text = PngImagePlugin.PngInfo()
    text.add_text("parameters", TEXT)
    rgb.save(out_dir / "rgb.png", pnginfo=text)
    wide = PngImagePlugin.PngInfo()
    wide.add_itxt("parameters", WIDE_TEXT)
    rgba.save(out_dir / "rgba.png", pnginfo=wide)
    gray.save(out_dir / "gray.png")
    Image.merge("LA", (gray, alpha)).save(out_dir / "gray_alpha.png")
    gray.convert("I").point(lambda v: v * 257).convert("I;16").save(out_dir / "gray16.png")
    gray.convert("P").save(out_dir / "palette.png")  # PIL gives grey values a palette of greys
    gray.point(lambda v: 255 * (v > 127)).convert("1").save(out_dir / "bilevel.png")
    rgb.crop((3, 2, 4, 3)).save(out_dir / "one.png")
    rgb.save(out_dir / "lossless.webp", lossless=True)
    rgba.save(out_dir / "lossless_alpha.webp", lossless=True, exact=True)
    rgb.save(out_dir / "animated.webp", save_all=True, append_images=[rgb.rotate(180)], lossless=True)
    gray.save(out_dir / "gray.jpg", quality=95)
    rgb.convert("CMYK").save(out_dir / "cmyk.jpg", quality=95)
    # What a camera held in each of the eight ways would store of blocks(): the inverse of what a viewer does.
    stored = {1: None, 2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180,
              4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE, 6: Image.Transpose.ROTATE_90,
              7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270}
    for orientation, change in stored.items():
        exif = Image.Exif()
        exif[0x0112] = orientation
        exif.get_ifd(0x8769)[0x9286] = b"UNICODE\0" + WIDE_TEXT.encode("utf-16-le" if exif.endian == "<" else "utf-16-be")
        image = blocks() if change is None else blocks().transpose(change)
        image.save(out_dir / f"orientation{orientation}.jpg", quality=95, subsampling=0, exif=exif)
    large = pattern(61, 47)
    for width, height in ((61, 20), (24, 47), (16, 16), (100, 90), (7, 131)):
        large.resize((width, height), Image.Resampling.LANCZOS).save(out_dir / f"lanczos_{width}x{height}.png")
