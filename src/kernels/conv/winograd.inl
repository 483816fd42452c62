// The Winograd family over Vec; included by winograd_<level>.cc, which define kLevel and ROW.
//
// A block of tiles goes through three steps while it is near: each 6x6 window of the input becomes 36 values a channel;
// each of the 36 is a matrix product over the channels; and each 36 sums become 4x4 outputs.
#include "kernels/activations.h"
#include "kernels/conv/table.h"
#include "kernels/matmul/tile.h"

namespace sfumato::kernels {
namespace {

constexpr int kIn = 6, kOut = 4, kPositions = kIn * kIn;

/// d <- B^T d
SFUMATO_INLINE void transform_six(Vec& d0, Vec& d1, Vec& d2, Vec& d3, Vec& d4, Vec& d5) {
  const Vec two = splat(2.0f), four = splat(4.0f), five = splat(5.0f);
  const Vec even = fma(-four, d2, d4), odd = fma(-four, d1, d3);
  const Vec near = d4 - d2, far = two * (d3 - d1);
  d0 = fma(four, d0, fma(-five, d2, d4));
  d5 = fma(four, d1, fma(-five, d3, d5));
  d1 = even + odd, d2 = even - odd;
  d3 = near + far, d4 = near - far;
}

/// out = A^T m
SFUMATO_INLINE void gather_four(Vec m0, Vec m1, Vec m2, Vec m3, Vec m4, Vec m5, Vec (&out)[kOut]) {
  const Vec a = m1 + m2, b = m1 - m2, c = m3 + m4, d = m3 - m4;
  out[0] = m0 + a + c;
  out[1] = fma(splat(2.0f), d, b);
  out[2] = fma(splat(4.0f), c, a);
  out[3] = fma(splat(8.0f), d, b) + m5;
}

/// out = G g
SFUMATO_INLINE void spread_three(Vec g0, Vec g1, Vec g2, Vec (&out)[kIn]) {
  const Vec outer = (g0 + g2) * splat(-1.0f / 6), inner = g1 * splat(1.0f / 6);
  const Vec far = fma(splat(4.0f), g2, g0) * splat(1.0f / 24), middle = g1 * splat(1.0f / 12);
  out[0] = g0 * splat(0.25f);
  out[1] = outer - inner, out[2] = outer + inner;
  out[3] = far + middle, out[4] = far - middle;
  out[5] = g2;
}

void transform_weights(const float* w, int64_t count, int64_t channels, float* out, int64_t position_stride) {
  constexpr int64_t kChunk = 16;  // channels whose taps lie transposed at a time
  alignas(64) float taps[kChunk * 9 * kLanes];
  for (int64_t first = 0; first < channels; first += kChunk) {
    const int64_t chunk = channels - first < kChunk ? channels - first : kChunk;
    for (int64_t part = 0; part < kTileColumns; part += kLanes) {
      const int64_t source = part < count ? part : 0, rows = count - source < kLanes ? count - source : kLanes;
      load_transposed(w + (source * channels + first) * 9, channels * 9, rows, chunk * 9, 1.0f, taps, kLanes);
      for (int64_t c = 0; c < chunk; ++c) {
        const float* g = taps + c * 9 * kLanes;
        Vec columns[3][kIn], row[kIn];
        for (int q = 0; q < 3; ++q)
          spread_three(load(g + q * kLanes), load(g + (3 + q) * kLanes), load(g + (6 + q) * kLanes), columns[q]);
        for (int p = 0; p < kIn; ++p) {
          spread_three(columns[0][p], columns[1][p], columns[2][p], row);
          float* to = out + p * kIn * position_stride + (first + c) * kTileColumns + part;
          for (int q = 0; q < kIn; ++q) store(to + q * position_stride, row[q]);
        }
      }
    }
  }
}

/// Where a tile of 4x4 outputs is.
struct Place {
  int64_t image, y, x;

  Place(const WinogradArgs& a, int64_t tile) {
    const int64_t across = (a.out_width + kOut - 1) / kOut, down = (a.out_height + kOut - 1) / kOut;
    image = tile / (across * down), y = tile / across % down * kOut, x = tile % across * kOut;
  }
};

/// How a block's memory is laid out. Rows of tiles are evened out over the panels, so that none is nearly empty.
struct Block {
  int64_t tiles, channels, out_channels;
  int64_t panels, panel_tiles;     // of inputs
  int64_t of_panel, of_position;   // floats of transformed inputs
  int64_t sums_stride, sums_size;  // floats of a tile's sums at one position; of a position

  Block(int64_t tiles, int64_t channels, int64_t out_channels)
      : tiles(tiles), channels(channels), out_channels(out_channels) {
    panels = (tiles + kTileRows - 1) / kTileRows;
    panel_tiles = (tiles + panels - 1) / panels;
    of_panel = panel_floats(channels);
    of_position = panels * of_panel;
    sums_stride = (out_channels + kTileColumns - 1) / kTileColumns * kTileColumns;
    sums_size = tiles * sums_stride;
  }
  int rows(int64_t panel) const {
    const int64_t left = tiles - panel * panel_tiles;
    return static_cast<int>(left < panel_tiles ? left : panel_tiles);
  }
  int64_t zeros_floats() const { return (channels + 15) / 16 * 16; }
  static constexpr int64_t staged_floats() { return kPositions * kTileRows * kLanes; }
  int64_t floats() const {
    return zeros_floats() + staged_floats() + kPositions * (of_position + (sums_size + 15) / 16 * 16);
  }
};

int64_t work_floats(int64_t tiles, int64_t channels, int64_t out_channels) {
  return Block(tiles, channels, out_channels).floats();
}

/// The addresses of a tile's 6x6 input pixels.
inline void find_pixels(const WinogradArgs& a, const Place& at, const float* zeros,
                        const float* (&pixels)[kPositions]) {
  const int shift = a.doubled ? 1 : 0;
  for (int i = 0; i < kPositions; ++i) {
    const int64_t y = at.y + i / kIn - a.pad_top, x = at.x + i % kIn - a.pad_left;
    const bool inside = y >= 0 && x >= 0 && y < a.height << shift && x < a.width << shift;
    pixels[i] = inside ? a.x + ((at.image * a.height + (y >> shift)) * a.width + (x >> shift)) * a.channels : zeros;
  }
}

/// One vector of channels of one tile -> staged [36, kTileRows, kLanes], this tile's rows.
inline void transform_window(const float* const (&pixels)[kPositions], int64_t channel, int width, float* staged) {
  Vec d[kIn][kIn];
  for (int x = 0; x < kIn; ++x) {
    for (int y = 0; y < kIn; ++y) d[y][x] = load_n(pixels[y * kIn + x] + channel, width);
    transform_six(d[0][x], d[1][x], d[2][x], d[3][x], d[4][x], d[5][x]);
  }
  for (int y = 0; y < kIn; ++y) {
    transform_six(d[y][0], d[y][1], d[y][2], d[y][3], d[y][4], d[y][5]);
    for (int x = 0; x < kIn; ++x) store(staged + (y * kIn + x) * kTileRows * kLanes, d[y][x]);
  }
}

void transform_panel(const WinogradArgs& a, int64_t first, int rows, const float* zeros, float* staged, float* out,
                     int64_t of_position) {
  const float* pixels[kTileRows][kPositions];
  for (int t = 0; t < rows; ++t) find_pixels(a, Place(a, first + t), zeros, pixels[t]);
  for_lanes(a.channels, [&](int64_t channel, int width) {
    for (int t = 0; t < rows; ++t) transform_window(pixels[t], channel, width, staged + t * kLanes);
    for (int i = 0; i < kPositions; ++i)
      pack_panel(staged + i * kTileRows * kLanes, kLanes, rows, width, out + i * of_position + channel * kTileRows);
  });
}

void multiply(const WinogradArgs& a, const Block& block, const float* inputs, float* sums) {
  const int64_t of_weights = a.channels * kTileColumns;
  const float* weights = a.weights;
  for (int i = 0; i < kPositions; ++i, inputs += block.of_position, sums += block.sums_size)
    for (int64_t column = 0; column < block.sums_stride; column += kTileColumns, weights += of_weights)
      for (int64_t panel = 0; panel < block.panels; ++panel)
        tile_sums(block.rows(panel), inputs + panel * block.of_panel, weights, a.channels,
                  sums + panel * block.panel_tiles * block.sums_stride + column, block.sums_stride);
}

/// sums: one tile's at the first of 36 positions, which are position_stride floats apart.
void finish_tile(const WinogradArgs& a, const Place& at, const float* sums, int64_t position_stride) {
  const float* bias = a.bias ? a.bias + at.image * a.out_channels : nullptr;
  const int64_t to = ((at.image * a.out_height + at.y) * a.out_width + at.x) * a.out_channels;
  const int rows = a.out_height - at.y < kOut ? static_cast<int>(a.out_height - at.y) : kOut;
  const int columns = a.out_width - at.x < kOut ? static_cast<int>(a.out_width - at.x) : kOut;
  for_lanes(a.out_channels, [&](int64_t channel, int width) {
    Vec half[kIn][kOut];
    for (int x = 0; x < kIn; ++x) {
      const float* m = sums + x * position_stride + channel;
      const int64_t step = kIn * position_stride;
      gather_four(load(m), load(m + step), load(m + 2 * step), load(m + 3 * step), load(m + 4 * step),
                  load(m + 5 * step), half[x]);
    }
    const Vec shift = bias ? load_n(bias + channel, width) : Vec{};
    for (int y = 0; y < kOut; ++y) {
      if (y >= rows) break;
      Vec row[kOut];
      gather_four(half[0][y], half[1][y], half[2][y], half[3][y], half[4][y], half[5][y], row);
      for (int x = 0; x < kOut; ++x) {
        if (x >= columns) break;
        const int64_t offset = to + (y * a.out_width + x) * a.out_channels + channel;
        Vec v = row[x] + shift;
        if (a.has_activation) v = activate(a.activation, v);
        if (a.residual) v += load_n(a.residual + offset, width);
        store_n(a.out + offset, v, width);
      }
    }
  });
}

void run(const WinogradArgs& a, int64_t first, int64_t count, float* work) {
  const Block block(count, a.channels, a.out_channels);
  float* zeros = work;
  float* staged = zeros + block.zeros_floats();
  float* inputs = staged + Block::staged_floats();
  float* sums = inputs + kPositions * block.of_position;
  for (int64_t c = 0; c < a.channels; ++c) zeros[c] = 0;
  for (int64_t panel = 0; panel < block.panels; ++panel)
    transform_panel(a, first + panel * block.panel_tiles, block.rows(panel), zeros, staged,
                    inputs + panel * block.of_panel, block.of_position);
  multiply(a, block, inputs, sums);
  for (int64_t t = 0; t < count; ++t)
    finish_tile(a, Place(a, first + t), sums + t * block.sums_stride, block.sums_size);
}

}  // namespace

extern const WinogradRow ROW;
const WinogradRow ROW = {kLevel, kTileRows, kTileColumns, transform_weights, work_floats, run};

}  // namespace sfumato::kernels
