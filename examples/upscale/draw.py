#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Draws pictures from a seed: text, line art, gradients and textures.

The upscale model is trained and judged on these pictures only; no outside
picture is read.  The same seed, fonts and Pillow give the same picture.
"""
import argparse
import math
import pathlib

import numpy as np
from PIL import Image, ImageDraw, ImageFont

KINDS = ("text", "lines", "gradients", "textures")

# Shapes are drawn this many times too large and then shrunk, which gives
# them smooth edges.
LARGE = 4

FONT_FOLDER = pathlib.Path("/usr/share/fonts")
FONT_NAMES = (
    "DejaVuSans", "DejaVuSans-Bold", "DejaVuSansMono", "DejaVuSerif",
    "DejaVuSerif-Bold", "LiberationSans-Regular", "LiberationSans-Bold",
    "LiberationSans-Italic", "LiberationSerif-Regular",
    "LiberationSerif-Italic", "LiberationMono-Regular",
)


def find_fonts():
    """Paths of the known fonts that are installed, in a fixed order."""
    found = {path.stem: path for path in FONT_FOLDER.rglob("*.ttf")}
    return [found[name] for name in FONT_NAMES if name in found]


FONTS = find_fonts()


def load_font(path, size):
    """A font by path; Pillow's own font when no path is given."""
    if path is None:
        return ImageFont.load_default(size)
    return ImageFont.truetype(str(path), size)


def random_font(rng, size):
    path = FONTS[rng.integers(len(FONTS))] if FONTS else None
    return load_font(path, size)


def color(rng):
    """A random colour; one in three is grey, as in print and screens."""
    if rng.random() < 0.33:
        return (int(rng.integers(256)),) * 3
    return tuple(int(v) for v in rng.integers(0, 256, 3))


def color_pair(rng):
    """Two colours far enough apart that an edge between them is seen."""
    while True:
        one, two = color(rng), color(rng)
        if sum(abs(a - b) for a, b in zip(one, two)) > 150:
            return one, two


def to_image(array):
    """An image from an array of heights, widths and 0..1 RGB values."""
    return Image.fromarray(np.uint8(np.clip(array, 0, 1) * 255 + 0.5))


def mix(amount, one, two):
    """Goes from colour one to colour two where amount goes from 0 to 1."""
    one, two = np.array(one) / 255.0, np.array(two) / 255.0
    return one + amount[..., None] * (two - one)


def grid(width, height):
    """The y and x position of each pixel."""
    return np.mgrid[0:height, 0:width].astype(np.float64)


def shrink(image, times):
    return image.resize((image.width // times, image.height // times),
                        Image.Resampling.BOX)


# --- gradients ------------------------------------------------------------

def linear_amount(rng, width, height):
    y, x = grid(width, height)
    angle = rng.uniform(0, 2 * math.pi)
    slope = math.cos(angle) * x + math.sin(angle) * y
    return (slope - slope.min()) / (slope.max() - slope.min())


def radial_amount(rng, width, height):
    y, x = grid(width, height)
    middle_x, middle_y = rng.uniform(0, width), rng.uniform(0, height)
    reach = rng.uniform(0.4, 1.2) * max(width, height)
    far = np.hypot(x - middle_x, y - middle_y) / reach
    return np.clip(far, 0, 1)


def gradient(rng, width, height):
    """One smooth passage between two colours."""
    make = linear_amount if rng.random() < 0.5 else radial_amount
    return to_image(mix(make(rng, width, height), *color_pair(rng)))


def shape_mask(rng, width, height):
    """A smooth-edged ellipse, box or polygon, white on black."""
    mask = Image.new("L", (width * LARGE, height * LARGE))
    pen = ImageDraw.Draw(mask)
    box = random_box(rng, mask.width, mask.height)
    shape = rng.integers(3)
    if shape == 0:
        pen.ellipse(box, fill=255)
    elif shape == 1:
        pen.rounded_rectangle(box, radius=int(rng.integers(60)), fill=255)
    else:
        pen.polygon(random_polygon(rng, mask.width, mask.height), fill=255)
    return shrink(mask, LARGE)


def draw_gradients(rng, width, height):
    """A gradient with a few gradient-filled shapes laid over it."""
    image = gradient(rng, width, height)
    for _ in range(rng.integers(1, 6)):
        image.paste(gradient(rng, width, height), (0, 0),
                    shape_mask(rng, width, height))
    return image


# --- line art -------------------------------------------------------------

def random_box(rng, width, height):
    left = rng.integers(-width // 8, width)
    top = rng.integers(-height // 8, height)
    across = rng.integers(width // 16, width // 2)
    down = across
    if rng.random() >= 0.5:
        down = rng.integers(height // 16, height // 2)
    return [int(v) for v in (left, top, left + across, top + down)]


def random_points(rng, count, width, height):
    return [(float(rng.uniform(0, width)), float(rng.uniform(0, height)))
            for _ in range(count)]


def random_polygon(rng, width, height):
    """A star-shaped polygon: corners sorted by angle around a middle."""
    middle = random_points(rng, 1, width, height)[0]
    angles = np.sort(rng.uniform(0, 2 * math.pi, rng.integers(3, 9)))
    reach = rng.uniform(0.05, 0.35, len(angles)) * max(width, height)
    return [(middle[0] + r * math.cos(a), middle[1] + r * math.sin(a))
            for a, r in zip(angles, reach)]


def curve(rng, width, height):
    """Points along a cubic Bezier curve."""
    ends = np.array(random_points(rng, 4, width, height))
    t = np.linspace(0, 1, 40)[:, None]
    weights = np.hstack([(1 - t) ** 3, 3 * t * (1 - t) ** 2,
                         3 * t ** 2 * (1 - t), t ** 3])
    return [tuple(point) for point in weights @ ends]


def draw_one_line(rng, pen, width, height):
    """One stroke or filled shape in a random colour."""
    ink, thick = color(rng), int(rng.integers(3, 6 * LARGE))
    shape = rng.integers(6)
    if shape == 0:
        pen.line(random_points(rng, 2, width, height), fill=ink, width=thick)
    elif shape == 1:
        pen.ellipse(random_box(rng, width, height), outline=ink, width=thick)
    elif shape == 2:
        pen.rectangle(random_box(rng, width, height), outline=ink, width=thick)
    elif shape == 3:
        pen.line(curve(rng, width, height), fill=ink, width=thick,
                 joint="curve")
    elif shape == 4:
        pen.polygon(random_polygon(rng, width, height), fill=ink)
    else:
        corners = random_polygon(rng, width, height)
        pen.line(corners + corners[:2], fill=ink, width=thick, joint="curve")


def draw_lines(rng, width, height):
    """Strokes and shapes on a plain ground."""
    image = Image.new("RGB", (width * LARGE, height * LARGE), color(rng))
    pen = ImageDraw.Draw(image)
    for _ in range(rng.integers(8, 30)):
        draw_one_line(rng, pen, image.width, image.height)
    return shrink(image, LARGE)


# --- text -----------------------------------------------------------------

LETTERS = "eeeeetttaaaooiinnsshhrrddlluuccmmffyywwggppbbvvkkxqjz"
MARKS = ".,:;!?-+=()/%&#@*"


def random_word(rng):
    """Letters in roughly their English frequency, or a number."""
    length = int(rng.integers(1, 10))
    if rng.random() < 0.15:
        return "".join(str(d) for d in rng.integers(0, 10, length))
    word = "".join(LETTERS[i] for i in rng.integers(0, len(LETTERS), length))
    style = rng.random()
    if style < 0.25:
        word = word.capitalize()
    elif style < 0.35:
        word = word.upper()
    if rng.random() < 0.2:
        word += MARKS[rng.integers(len(MARKS))]
    return word


def write_block(rng, pen, width, top, ink):
    """A few lines of one font; gives the y position below them."""
    size = int(rng.choice([9, 10, 11, 12, 13, 14, 16, 18, 22, 28, 40]))
    font = random_font(rng, size)
    left = int(rng.integers(-4, 10))
    for _ in range(rng.integers(1, 5)):
        words = [random_word(rng) for _ in range(3 + width // (4 * size))]
        pen.text((left, top), " ".join(words), font=font, fill=ink)
        top += round(size * 1.25)
    return top


def draw_text(rng, width, height):
    """Lines of text on a plain ground or, sometimes, on a gradient."""
    ground, ink = color_pair(rng)
    if rng.random() < 0.3:
        ground, ink = (255, 255, 255), (0, 0, 0)
    image = Image.new("RGB", (width, height), ground)
    if rng.random() < 0.25:
        image = gradient(rng, width, height)
    pen = ImageDraw.Draw(image)
    top = int(rng.integers(-6, 6))
    while top < height:
        top = write_block(rng, pen, width, top, ink)
        if rng.random() < 0.3:
            ink = color(rng)
    return image


# --- textures -------------------------------------------------------------

def noise(rng, width, height):
    """Smooth random values 0..1: each octave has half the cell size."""
    total = np.zeros((height, width))
    cell, strength = int(rng.choice([64, 32, 16])), 1.0
    fade = rng.uniform(0.4, 0.7)
    while cell >= 2:
        small = rng.uniform(-1, 1, (height // cell + 2, width // cell + 2))
        plane = Image.fromarray(small.astype(np.float32))
        plane = plane.resize((plane.width * cell, plane.height * cell),
                             Image.Resampling.BICUBIC)
        total += strength * np.asarray(plane)[:height, :width]
        cell, strength = cell // 2, strength * fade
    return (total - total.min()) / (total.max() - total.min())


def turned(rng, width, height):
    """Positions across and along a random direction."""
    y, x = grid(width, height)
    angle = rng.uniform(0, math.pi)
    return (x * math.cos(angle) + y * math.sin(angle),
            y * math.cos(angle) - x * math.sin(angle))


def stripes(rng, width, height):
    across, _ = turned(rng, width, height)
    wave = np.sin(across * 2 * math.pi / rng.uniform(4, 24) / LARGE)
    if rng.random() < 0.5:
        return (wave + 1) / 2
    return (wave > rng.uniform(-0.6, 0.6)).astype(float)


def checkers(rng, width, height):
    across, along = turned(rng, width, height)
    side = rng.uniform(3, 16) * LARGE
    return (np.floor(across / side) + np.floor(along / side)) % 2


def hatching(rng, width, height):
    """Two crossing sets of thin strokes."""
    light = np.ones((height, width))
    for _ in range(2):
        across, _ = turned(rng, width, height)
        gap, thick = rng.uniform(5, 16), rng.uniform(1, 2.5)
        light[across % (gap * LARGE) < thick * LARGE] = 0
    return light


def fill_pattern(rng, width, height):
    """A whole picture of one pattern in two colours."""
    one, two = color_pair(rng)
    make = (noise, stripes, checkers, hatching)[rng.integers(4)]
    if make is noise:
        return to_image(mix(noise(rng, width, height), one, two))
    amount = make(rng, width * LARGE, height * LARGE)
    return shrink(to_image(mix(amount, one, two)), LARGE)


def draw_textures(rng, width, height):
    """One pattern, and shapes cut out of up to two others over it."""
    image = fill_pattern(rng, width, height)
    for _ in range(rng.integers(0, 3)):
        image.paste(fill_pattern(rng, width, height), (0, 0),
                    shape_mask(rng, width, height))
    return image


# --- all kinds ------------------------------------------------------------

def picture(kind, seed, width=192, height=192):
    """The picture of this kind and seed, as an RGB image."""
    rng = np.random.default_rng([KINDS.index(kind), seed])
    draw = (draw_text, draw_lines, draw_gradients, draw_textures)
    return draw[KINDS.index(kind)](rng, width, height)


def half_size(image):
    """The low-resolution picture that the model is asked to double."""
    return image.resize((image.width // 2, image.height // 2),
                        Image.Resampling.BICUBIC)


# --- the sample -----------------------------------------------------------

def sample_scene(width, height):
    """Sky, sun, hills and a checkered field: gradient and texture."""
    y, x = grid(width, height)
    y, x = y / height, x / width
    scene = mix(np.clip(y / 0.75, 0, 1), (38, 70, 140), (250, 190, 140))
    sun = np.hypot((x - 0.72) * width, (y - 0.42) * height) / height
    glow = np.exp(-(sun / 0.22) ** 2)[..., None]
    scene = scene + 0.35 * glow * np.array([1.0, 0.8, 0.4])
    scene[sun < 0.1] = (1.0, 0.95, 0.75)
    hills = 0.62 + 0.06 * np.sin(x * 7) + 0.03 * np.sin(x * 17 + 1)
    scene = np.where((y > hills)[..., None],
                     mix((y - 0.5) * 2, (70, 90, 120), (30, 60, 70)), scene)
    field = 0.78 + 0.03 * np.sin(x * 5 + 2)
    depth = 1 / np.maximum(y - 0.68, 0.02)
    tiles = (np.floor((x - 0.5) * depth * 2) + np.floor(depth * 1.5)) % 2
    return np.where((y > field)[..., None],
                    mix(tiles, (40, 110, 80), (150, 200, 110)), scene)


def sample_drawing(pen, width):
    """A wheel and a kite in thin lines."""
    ink, unit = (250, 245, 235), width // 192
    # The half puts the level and upright spokes on whole pixels.
    middle = (46.5 * unit, 62.5 * unit)
    for turn in range(12):
        angle = turn * math.pi / 6
        end = (round(middle[0] + 22 * unit * math.cos(angle)),
               round(middle[1] + 22 * unit * math.sin(angle)))
        pen.line([middle, end], fill=ink, width=unit)
    for reach in (6, 14, 22):
        pen.ellipse([middle[0] - reach * unit, middle[1] - reach * unit,
                     middle[0] + reach * unit, middle[1] + reach * unit],
                    outline=ink, width=unit)
    kite = [(156, 34), (176, 42), (164, 58), (150, 50)]
    kite = [(px * unit, py * unit) for px, py in kite]
    pen.polygon(kite, fill=(200, 60, 70), outline=ink, width=unit)
    pen.line([kite[0], kite[2]], fill=ink, width=unit)
    pen.line([kite[1], kite[3]], fill=ink, width=unit)


def sample_words(pen):
    """The name and a line of small print, at the final size."""
    name = load_font(next((f for f in FONTS if f.stem == "DejaVuSerif-Bold"),
                          None), 24)
    small = load_font(next((f for f in FONTS if f.stem == "DejaVuSans"), None),
                      10)
    pen.text((8, 5), "Polyphase", font=name, fill=(255, 244, 214))
    pen.text((78, 101), "twice as large, still sharp", font=small,
             fill=(255, 255, 255), anchor="mm")


def sample(width=192, height=144):
    """A small scene with text, line art, a gradient and a texture."""
    image = to_image(sample_scene(width * LARGE, height * LARGE))
    sample_drawing(ImageDraw.Draw(image), image.width)
    image = shrink(image, LARGE)
    sample_words(ImageDraw.Draw(image))
    return image


def draw_set(folder, seed, count, size):
    """Writes pictures of every kind, to be looked at."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in KINDS:
        for number in range(seed, seed + count):
            path = folder / f"{kind}-{number}.png"
            picture(kind, number, size, size).save(path)
            print(f"wrote {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", metavar="FILE", type=pathlib.Path,
                        help="draw the sample picture into FILE")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path,
                        help="draw pictures of every kind into FOLDER")
    parser.add_argument("--seed", type=int, default=0,
                        help="seed of the first picture (default 0)")
    parser.add_argument("--count", type=int, default=4,
                        help="pictures of each kind (default 4)")
    parser.add_argument("--size", type=int, default=192,
                        help="width and height in pixels (default 192)")
    args = parser.parse_args()
    if not args.sample and not args.out:
        parser.error("give --sample FILE or --out FOLDER")
    if args.sample:
        sample().save(args.sample, optimize=True)
        print(f"wrote {args.sample}")
    if args.out:
        draw_set(args.out, args.seed, args.count, args.size)


if __name__ == "__main__":
    main()
