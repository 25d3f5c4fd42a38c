// The part of the emulator's state that its own serialisation leaves out.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ale/ale_interface.hpp"

namespace rem {

// Gives a value to what the emulator would leave uninitialised until the first action.
void settle(ale::ALEInterface& ale);

void save_hidden_state(ale::ALEInterface& ale, std::vector<uint8_t>& out);

// To be called right after the emulator's own state was restored. Throws if the bytes cannot be what
// `save_hidden_state` wrote for the same game; the emulator is then in no good state.
void load_hidden_state(ale::ALEInterface& ale, const uint8_t* bytes, std::size_t size);

}  // namespace rem
