#include "hidden_state.hpp"

#include <cstring>
#include <stdexcept>
#include <type_traits>

#include "ale/emucore/CartDPC.hxx"
#include "ale/emucore/CartE0.hxx"
#include "ale/emucore/Console.hxx"
#include "ale/emucore/System.hxx"
#include "ale/emucore/TIA.hxx"
#include "ale/games/supported/Atlantis2.hpp"
#include "ale/games/supported/ChopperCommand.hpp"
#include "ale/games/supported/DemonAttack.hpp"
#include "ale/games/supported/Hangman.hpp"
#include "ale/games/supported/MiniatureGolf.hpp"
#include "ale/games/supported/VideoCheckers.hpp"
#include "ale/games/supported/VideoCube.hpp"

namespace rem {

using ale::StellaEnvironment;
using ale::stella::CartridgeDPC;
using ale::stella::CartridgeE0;
using ale::stella::TIA;

// All of this state is private. An explicit template instantiation may name private members and expose them through a
// friend function: `object.*reach(Key{})`. If another version of ALE lacks a member, compilation fails.
template <class Key, typename Key::type member>
struct Open {
  friend typename Key::type reach(Key) { return member; }
};
#define REM_OPEN(Key, member, ...)  \
  struct Key {                      \
    using type = __VA_ARGS__;       \
    friend type reach(Key);         \
  };                                \
  template struct Open<Key, &member>

// The TIA draws with masks selected by register writes, on top of a partially drawn frame.
REM_OPEN(BallMask, TIA::myCurrentBLMask, const uint8_t* TIA::*);
REM_OPEN(Missile0Mask, TIA::myCurrentM0Mask, const uint8_t* TIA::*);
REM_OPEN(Missile1Mask, TIA::myCurrentM1Mask, const uint8_t* TIA::*);
REM_OPEN(Player0Mask, TIA::myCurrentP0Mask, const uint8_t* TIA::*);
REM_OPEN(Player1Mask, TIA::myCurrentP1Mask, const uint8_t* TIA::*);
REM_OPEN(PlayfieldMask, TIA::myCurrentPFMask, const uint32_t* TIA::*);
REM_OPEN(BallTable, TIA::ourBallMaskTable, uint8_t (*)[4][4][320]);
REM_OPEN(MissileTable, TIA::ourMissleMaskTable, uint8_t (*)[4][8][4][320]);
REM_OPEN(PlayerTable, TIA::ourPlayerMaskTable, uint8_t (*)[4][2][8][320]);
REM_OPEN(DisabledTable, TIA::ourDisabledMaskTable, const uint8_t (*)[640]);
REM_OPEN(PlayfieldTable, TIA::ourPlayfieldTable, uint32_t (*)[2][160]);
REM_OPEN(FramePointer, TIA::myFramePointer, uint8_t* TIA::*);
REM_OPEN(PartialFrame, TIA::myPartialFrameFlag, bool TIA::*);
REM_OPEN(GreyedFrame, TIA::myFrameGreyed, bool TIA::*);
// Sticky actions repeat the last action.
REM_OPEN(ActionA, StellaEnvironment::m_player_a_action, ale::Action StellaEnvironment::*);
REM_OPEN(ActionB, StellaEnvironment::m_player_b_action, ale::Action StellaEnvironment::*);
REM_OPEN(StrengthA, StellaEnvironment::m_paddle_a_strength, float StellaEnvironment::*);
REM_OPEN(StrengthB, StellaEnvironment::m_paddle_b_strength, float StellaEnvironment::*);
// Loading these cartridges does not remap the slices, and rounds the clock.
REM_OPEN(Slices, CartridgeE0::myCurrentSlice, uint16_t (CartridgeE0::*)[4]);
REM_OPEN(MapSegment0, CartridgeE0::segmentZero, void (CartridgeE0::*)(uint16_t));
REM_OPEN(MapSegment1, CartridgeE0::segmentOne, void (CartridgeE0::*)(uint16_t));
REM_OPEN(MapSegment2, CartridgeE0::segmentTwo, void (CartridgeE0::*)(uint16_t));
REM_OPEN(Clocks, CartridgeDPC::myFractionalClocks, double CartridgeDPC::*);
// State of some games' reward and termination rules that ALE does not save, or saves as booleans.
REM_OPEN(AtlantisLives, ale::Atlantis2Settings::m_lives, int ale::Atlantis2Settings::*);
REM_OPEN(ChopperStarted, ale::ChopperCommandSettings::m_is_started, bool ale::ChopperCommandSettings::*);
REM_OPEN(DemonLevel, ale::DemonAttackSettings::m_level_change, bool ale::DemonAttackSettings::*);
REM_OPEN(HangmanTimer, ale::HangmanSettings::m_timerArray, int (ale::HangmanSettings::*)[2]);
REM_OPEN(GolfLevel, ale::MiniatureGolfSettings::m_levelNumber, int ale::MiniatureGolfSettings::*);
REM_OPEN(GolfPar, ale::MiniatureGolfSettings::m_levelPar, int ale::MiniatureGolfSettings::*);
REM_OPEN(GolfHits, ale::MiniatureGolfSettings::m_hits, int ale::MiniatureGolfSettings::*);
REM_OPEN(GolfStatus, ale::MiniatureGolfSettings::m_leftStatus, int ale::MiniatureGolfSettings::*);
REM_OPEN(GolfFirstHits, ale::MiniatureGolfSettings::m_hitsAtStartOfLevel, int ale::MiniatureGolfSettings::*);
REM_OPEN(CheckersReversed, ale::VideoCheckersSettings::m_reverse_checkers, bool ale::VideoCheckersSettings::*);
REM_OPEN(CubeTimer, ale::VideoCubeSettings::m_timerArray, int (ale::VideoCubeSettings::*)[2]);

namespace {

// Size of each of the TIA's two frame buffers.
constexpr std::size_t frame_bytes = 160 * 300;
// A mask covers the 160 pixels of a line.
constexpr std::size_t line = 160;

class Writer {
 public:
  explicit Writer(std::vector<uint8_t>& out) : out_(out) {}

  void bytes(void* data, std::size_t size) {
    const auto* first = static_cast<const uint8_t*>(data);
    out_.insert(out_.end(), first, first + size);
  }

  template <class T>
  void value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "plain data");
    bytes(&value, sizeof value);
  }

  // Writes 1 and the offset if `pointer` is in the table, else 0.
  template <class T>
  bool place(T*& pointer, const void* table, std::size_t size, std::size_t room) {
    const auto at = reinterpret_cast<std::uintptr_t>(pointer);
    const auto first = reinterpret_cast<std::uintptr_t>(table);
    uint8_t here = at >= first && at + room <= first + size;
    value(here);
    if (here) {
      uint32_t offset = static_cast<uint32_t>(at - first);
      value(offset);
    }
    return here;
  }

 private:
  std::vector<uint8_t>& out_;
};

class Reader {
 public:
  Reader(const uint8_t* bytes, std::size_t size) : at_(bytes), left_(size) {}

  void bytes(void* data, std::size_t size) {
    if (size > left_) throw std::runtime_error("the hidden state is truncated");
    std::memcpy(data, at_, size);
    at_ += size;
    left_ -= size;
  }

  template <class T>
  void value(T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "plain data");
    bytes(&value, sizeof value);
  }

  void value(bool& value) {
    uint8_t byte = 0;
    bytes(&byte, 1);
    if (byte > 1) throw std::runtime_error("the hidden state is damaged: invalid boolean");
    value = byte == 1;
  }

  template <class T>
  bool place(T*& pointer, const void* table, std::size_t size, std::size_t room) {
    bool here = false;
    value(here);
    if (here) {
      uint32_t offset = 0;
      value(offset);
      // Masks are read four bytes at a time.
      if (offset + room > size || (room > 0 && offset % 4 != 0))
        throw std::runtime_error("the hidden state is damaged: offset out of range");
      auto* first = static_cast<const uint8_t*>(table);
      pointer = reinterpret_cast<T*>(const_cast<uint8_t*>(first + offset));
    }
    return here;
  }

  bool finished() const { return left_ == 0; }

 private:
  const uint8_t* at_;
  std::size_t left_;
};

template <class Archive, class T>
void need_place(Archive& archive, T*& pointer, const void* table, std::size_t size, std::size_t room) {
  if (!archive.place(pointer, table, size, room))
    throw std::runtime_error("an emulator pointer is outside its table");
}

template <class Archive>
void visit_picture(Archive& archive, TIA& tia) {
  auto& ball = *reach(BallTable{});
  auto& missiles = *reach(MissileTable{});
  auto& players = *reach(PlayerTable{});
  auto& disabled = *reach(DisabledTable{});
  auto& playfield = *reach(PlayfieldTable{});
  need_place(archive, tia.*reach(BallMask{}), ball, sizeof ball, line);
  for (auto mask : {reach(Missile0Mask{}), reach(Missile1Mask{})})
    if (!archive.place(tia.*mask, disabled, sizeof disabled, line))
      need_place(archive, tia.*mask, missiles, sizeof missiles, line);
  need_place(archive, tia.*reach(Player0Mask{}), players, sizeof players, line);
  need_place(archive, tia.*reach(Player1Mask{}), players, sizeof players, line);
  need_place(archive, tia.*reach(PlayfieldMask{}), playfield, sizeof playfield, line * sizeof(uint32_t));
  need_place(archive, tia.*reach(FramePointer{}), tia.currentFrameBuffer(), frame_bytes, 0);
  archive.value(tia.*reach(PartialFrame{}));
  archive.value(tia.*reach(GreyedFrame{}));
  archive.bytes(tia.currentFrameBuffer(), frame_bytes);
  archive.bytes(tia.previousFrameBuffer(), frame_bytes);
}

template <class Archive>
void visit_actions(Archive& archive, StellaEnvironment& environment) {
  for (auto action : {reach(ActionA{}), reach(ActionB{})}) {
    int32_t number = environment.*action;
    archive.value(number);
    if (number < 0 || number >= PLAYER_B_MAX)
      throw std::runtime_error("the hidden state is damaged: unknown action");
    environment.*action = static_cast<ale::Action>(number);
  }
  archive.value(environment.*reach(StrengthA{}));
  archive.value(environment.*reach(StrengthB{}));
}

template <class Archive>
void visit_rules(Archive& archive, ale::RomSettings* rules) {
  if (auto* atlantis = dynamic_cast<ale::Atlantis2Settings*>(rules)) {
    archive.value(atlantis->*reach(AtlantisLives{}));
  } else if (auto* chopper = dynamic_cast<ale::ChopperCommandSettings*>(rules)) {
    archive.value(chopper->*reach(ChopperStarted{}));
  } else if (auto* demon = dynamic_cast<ale::DemonAttackSettings*>(rules)) {
    archive.value(demon->*reach(DemonLevel{}));
  } else if (auto* hangman = dynamic_cast<ale::HangmanSettings*>(rules)) {
    archive.value(hangman->*reach(HangmanTimer{}));
  } else if (auto* golf = dynamic_cast<ale::MiniatureGolfSettings*>(rules)) {
    for (auto number : {reach(GolfLevel{}), reach(GolfPar{}), reach(GolfHits{}), reach(GolfStatus{}),
                        reach(GolfFirstHits{})})
      archive.value(golf->*number);
  } else if (auto* checkers = dynamic_cast<ale::VideoCheckersSettings*>(rules)) {
    archive.value(checkers->*reach(CheckersReversed{}));
  } else if (auto* cube = dynamic_cast<ale::VideoCubeSettings*>(rules)) {
    archive.value(cube->*reach(CubeTimer{}));
  }
}

// The cartridge is mapped to the upper half of the address space.
ale::stella::Device* cartridge(ale::stella::System& system) {
  return system.getPageAccess(0x1fff >> system.pageShift()).device;
}

template <class Archive>
void visit(Archive& archive, ale::ALEInterface& ale) {
  auto& system = ale.theOSystem->console().system();
  visit_picture(archive, system.tia());
  visit_actions(archive, *ale.environment);
  if (auto* dpc = dynamic_cast<CartridgeDPC*>(cartridge(system))) archive.value(dpc->*reach(Clocks{}));
  visit_rules(archive, ale.romSettings.get());
}

}  // namespace

void initialize(ale::ALEInterface& ale) {
  auto& environment = *ale.environment;
  environment.*reach(StrengthA{}) = 1.0f;
  environment.*reach(StrengthB{}) = 0.0f;
}

void save_hidden_state(ale::ALEInterface& ale, std::vector<uint8_t>& out) {
  Writer writer(out);
  visit(writer, ale);
}

void load_hidden_state(ale::ALEInterface& ale, const uint8_t* bytes, std::size_t size) {
  Reader reader(bytes, size);
  visit(reader, ale);
  if (!reader.finished()) throw std::runtime_error("the hidden state is too long");
  auto& system = ale.theOSystem->console().system();
  if (auto* sliced = dynamic_cast<CartridgeE0*>(cartridge(system))) {
    auto& slices = sliced->*reach(Slices{});
    (sliced->*reach(MapSegment0{}))(slices[0]);
    (sliced->*reach(MapSegment1{}))(slices[1]);
    (sliced->*reach(MapSegment2{}))(slices[2]);
  }
  // The visible screen is a copy of the last frame.
  auto& screen = ale.getScreen();
  std::memcpy(screen.getArray(), system.tia().currentFrameBuffer(), screen.arraySize());
}

}  // namespace rem
