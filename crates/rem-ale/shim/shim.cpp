// C interface of the emulator. No exception escapes, and `src/emulator/ffi.rs` is the only caller.
//
// Functions that can fail return 0 on success; after a failure, `rem_ale_error` returns the message. ALE exits the
// process on a missing or unknown ROM and on an unknown action, so the caller must check both first.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "ale/ale_interface.hpp"
#include "hidden_state.hpp"

struct RemAle {
  ale::ALEInterface ale;
  std::vector<uint8_t> snapshot;
  char error[256] = "";
};

namespace {

void describe(char* error, std::size_t capacity, const char* what) noexcept {
  if (capacity == 0) return;
  std::strncpy(error, what, capacity - 1);
  error[capacity - 1] = '\0';
}

template <class Work>
int32_t guarded(char* error, std::size_t capacity, Work&& work) noexcept {
  try {
    work();
    return 0;
  } catch (const std::exception& exception) {
    describe(error, capacity, exception.what());
  } catch (const char* what) {
    describe(error, capacity, what);
  } catch (...) {
    describe(error, capacity, "unknown exception");
  }
  return 1;
}

template <class Work>
int32_t guarded(RemAle* emulator, Work&& work) noexcept {
  return guarded(emulator->error, sizeof emulator->error, work);
}

// Copies as many items as fit and returns their total number.
template <class Item>
std::size_t list(const std::vector<Item>& items, uint32_t* out, std::size_t capacity) {
  std::transform(items.begin(), items.begin() + std::min(items.size(), capacity), out,
                 [](Item item) { return static_cast<uint32_t>(item); });
  return items.size();
}

// Layout: length of ALE's own state, ALE's own state, hidden state.
void save(ale::ALEInterface& ale, std::vector<uint8_t>& out) {
  const std::string own = ale.cloneSystemState().serialize();
  out.resize(sizeof(uint64_t));
  const uint64_t length = own.size();
  std::memcpy(out.data(), &length, sizeof length);
  out.insert(out.end(), own.begin(), own.end());
  rem::save_hidden_state(ale, out);
}

void load(ale::ALEInterface& ale, const uint8_t* bytes, std::size_t size) {
  uint64_t length = 0;
  if (size < sizeof length) throw std::runtime_error("the state is truncated");
  std::memcpy(&length, bytes, sizeof length);
  bytes += sizeof length;
  size -= sizeof length;
  if (length > size) throw std::runtime_error("the state is truncated");
  const std::string own(reinterpret_cast<const char*>(bytes), length);
  ale.restoreSystemState(ale::ALEState(own));
  rem::load_hidden_state(ale, bytes + length, size - length);
  // ALE stops loading silently at invalid data.
  if (ale.cloneSystemState().serialize() != own)
    throw std::runtime_error("the emulator rejected the state");
}

}  // namespace

extern "C" {

RemAle* rem_ale_open(const char* rom, int32_t seed, float sticky, char* error, std::size_t capacity) {
  static std::once_flag quiet;
  std::unique_ptr<RemAle> emulator;
  const int32_t failed = guarded(error, capacity, [&] {
    std::call_once(quiet, [] { ale::Logger::setMode(ale::Logger::Error); });
    emulator = std::make_unique<RemAle>();
    emulator->ale.setInt("random_seed", seed);
    emulator->ale.setFloat("repeat_action_probability", sticky);
    emulator->ale.setInt("frame_skip", 1);
    emulator->ale.loadROM(rom);
    rem::initialize(emulator->ale);
  });
  return failed ? nullptr : emulator.release();
}

void rem_ale_close(RemAle* emulator) { delete emulator; }

const char* rem_ale_error(const RemAle* emulator) { return emulator->error; }

std::size_t rem_ale_minimal_actions(RemAle* emulator, uint32_t* out, std::size_t capacity) {
  std::size_t count = 0;
  guarded(emulator, [&] { count = list(emulator->ale.getMinimalActionSet(), out, capacity); });
  return count;
}

std::size_t rem_ale_legal_actions(RemAle* emulator, uint32_t* out, std::size_t capacity) {
  std::size_t count = 0;
  guarded(emulator, [&] { count = list(emulator->ale.getLegalActionSet(), out, capacity); });
  return count;
}

std::size_t rem_ale_modes(RemAle* emulator, uint32_t* out, std::size_t capacity) {
  std::size_t count = 0;
  guarded(emulator, [&] { count = list(emulator->ale.getAvailableModes(), out, capacity); });
  return count;
}

std::size_t rem_ale_difficulties(RemAle* emulator, uint32_t* out, std::size_t capacity) {
  std::size_t count = 0;
  guarded(emulator, [&] { count = list(emulator->ale.getAvailableDifficulties(), out, capacity); });
  return count;
}

int32_t rem_ale_set_mode(RemAle* emulator, uint32_t mode) {
  return guarded(emulator, [&] { emulator->ale.setMode(mode); });
}

int32_t rem_ale_set_difficulty(RemAle* emulator, uint32_t difficulty) {
  return guarded(emulator, [&] { emulator->ale.setDifficulty(difficulty); });
}

int32_t rem_ale_reset(RemAle* emulator) {
  return guarded(emulator, [&] { emulator->ale.reset_game(); });
}

int32_t rem_ale_act(RemAle* emulator, uint32_t action, int32_t* reward) {
  return guarded(emulator, [&] { *reward = emulator->ale.act(static_cast<ale::Action>(action)); });
}

int32_t rem_ale_game_over(RemAle* emulator, bool* over) {
  return guarded(emulator, [&] { *over = emulator->ale.game_over(); });
}

int32_t rem_ale_lives(RemAle* emulator, int32_t* lives) {
  return guarded(emulator, [&] { *lives = emulator->ale.lives(); });
}

int32_t rem_ale_frame_number(RemAle* emulator, int32_t* frames) {
  return guarded(emulator, [&] { *frames = emulator->ale.getEpisodeFrameNumber(); });
}

// The buffer is valid for the lifetime of the emulator; act, reset and load modify it.
const uint8_t* rem_ale_screen(const RemAle* emulator, std::size_t* height, std::size_t* width) {
  const auto& screen = emulator->ale.getScreen();
  *height = screen.height();
  *width = screen.width();
  return screen.getArray();
}

// 256 colors, 0xRRGGBB.
void rem_ale_palette(RemAle* emulator, uint32_t* out) {
  const auto& palette = emulator->ale.theOSystem->colourPalette();
  for (int color = 0; color < 256; ++color) out[color] = palette.getRGB(color);
}

int32_t rem_ale_save(RemAle* emulator, const uint8_t** bytes, std::size_t* size) {
  return guarded(emulator, [&] {
    save(emulator->ale, emulator->snapshot);
    *bytes = emulator->snapshot.data();
    *size = emulator->snapshot.size();
  });
}

// On failure, the emulator is unchanged.
int32_t rem_ale_load(RemAle* emulator, const uint8_t* bytes, std::size_t size) {
  return guarded(emulator, [&] {
    std::vector<uint8_t> before;
    save(emulator->ale, before);
    try {
      load(emulator->ale, bytes, size);
    } catch (...) {
      load(emulator->ale, before.data(), before.size());
      throw;
    }
  });
}

}  // extern "C"
