"""png.py - PNG files of every kind, made here byte by byte, and their pixels as Pillow converts them, for test_png.c.

Run it with a Python that has Pillow: python3 tests/data/png.py > tests/data/png.txt
A line: the name, channels of the picture without alpha, height, width, then in hexadecimal the file and the planes of 1,
3 and 4 channels. The pixels are computed from the samples by the standard's rules; Pillow has to agree, but for what it
does in another way on purpose (see agrees).
"""
import io
import random
import struct
import zlib

from PIL import Image

SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def pack(samples, depth):
    """A row's samples as bytes."""
    if depth == 16:
        return b"".join(struct.pack(">H", s) for s in samples)
    bits = "".join(format(s, "0%db" % depth) for s in samples)
    bits += "0" * (-len(bits) % 8)
    return bytes(int(bits[i:i + 8], 2) for i in range(0, len(bits), 8))


def paeth(a, b, c):
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def filtered(row, before, width, kind):
    out = bytearray([kind])
    for i, v in enumerate(row):
        a = row[i - width] if i >= width else 0
        b = before[i]
        c = before[i - width] if i >= width else 0
        out.append((v - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) % 256)
    return bytes(out)


def rows_of(pixels, depth, colour, draw):
    """Filtered rows of a picture, or of a pass."""
    out, width = b"", max(1, SAMPLES[colour] * depth // 8)
    before = None
    for row in pixels:
        packed = pack([s for p in row for s in p], depth)
        out += filtered(packed, before or bytes(len(packed)), width, draw.randrange(5))
        before = packed
    return out


def make(name, height, width, colour, depth, interlaced, transparent, draw):
    top = (1 << depth) - 1
    palette = [tuple(draw.randrange(256) for _ in range(3)) for _ in range(min(top + 1, 11))]
    most = len(palette) - 1 if colour == 3 else top
    pixels = [[tuple(draw.choice((0, most, draw.randint(0, most))) for _ in range(SAMPLES[colour]))
               for _ in range(width)] for _ in range(height)]
    clear = pixels[height // 2][width // 2]
    alphas = [draw.randrange(256) for _ in range(max(1, len(palette) - 2))]
    data = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced))
    data += chunk(b"gAMA", struct.pack(">I", 45455)) + chunk(b"tEXt", b"Comment\0of no use")
    if colour == 3:
        data += chunk(b"PLTE", bytes(v for p in palette for v in p))
    if transparent:
        data += chunk(b"tRNS", bytes(alphas) if colour == 3 else b"".join(struct.pack(">H", s) for s in clear))
    if interlaced:
        raw = b""
        for x, y, dx, dy in ADAM7:
            part = [row[x::dx] for row in pixels[y::dy]]
            raw += rows_of([row for row in part if row], depth, colour, draw)
    else:
        raw = rows_of(pixels, depth, colour, draw)
    packed = zlib.compress(raw)
    cut = draw.randrange(len(packed))
    data += chunk(b"IDAT", packed[:cut]) + chunk(b"IDAT", packed[cut:]) + chunk(b"IEND", b"")
    data = b"\x89PNG\r\n\x1a\n" + data

    def rgba(p):
        if colour == 3:
            return palette[p[0]] + ((alphas[p[0]] if transparent and p[0] < len(alphas) else 255),)
        eight = [s >> 8 if depth == 16 else s * 255 // top for s in p]
        alpha = eight[-1] if colour in (4, 6) else 0 if transparent and p == clear else 255
        return tuple(eight[:3] if colour in (2, 6) else eight[:1] * 3) + (alpha,)

    def grey(r, g, b):
        return (r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16

    flat = [rgba(p) for row in pixels for p in row]
    planes = {1: [grey(*p[:3]) for p in flat], 3: [p[i] for i in range(3) for p in flat],
              4: [p[i] for i in range(4) for p in flat]}
    check(name, data, planes)
    print(name, 3 if colour & 2 else 1, height, width, data.hex(), *(bytes(planes[n]).hex() for n in (1, 3, 4)))


def agrees(name, channels):
    """Pillow keeps 16 bits of grey, and cuts them at 255 when it converts; the one transparent colour of grey below 8 bits
    and of 16 bits it compares with other numbers than the samples."""
    if name.startswith("grey16"):
        return False
    other = name.startswith(("grey1", "grey2", "grey4", "rgb16")) and name.endswith("clear")
    return channels < 4 or not other


def check(name, data, planes):
    for channels, mode in ((1, "L"), (3, "RGB"), (4, "RGBA")):
        if not agrees(name, channels):
            continue
        image = Image.open(io.BytesIO(data)).convert(mode)
        size = image.width * image.height
        pixels = image.tobytes()
        got = [pixels[i * channels + k] for k in range(channels) for i in range(size)]
        assert got == planes[channels], (name, mode, got, planes[channels])


def main():
    draw = random.Random(1)
    names = {0: "grey", 2: "rgb", 3: "palette", 4: "grey_alpha", 6: "rgba"}
    for colour, depths in DEPTHS.items():
        for depth in depths:
            for interlaced in (0, 1):
                for transparent in (0, 1) if colour in (0, 2, 3) else (0,):
                    name = "%s%d%s%s" % (names[colour], depth, "_interlaced" if interlaced else "",
                                         "_clear" if transparent else "")
                    make(name, 5, 7, colour, depth, interlaced, transparent, draw)
    for height, width in ((1, 1), (1, 5), (5, 1), (2, 2), (3, 3), (9, 17)):
        for interlaced in (0, 1):
            make("sides_%d_%d_%d" % (height, width, interlaced), height, width, 0, 1, interlaced, 0, draw)


main()
