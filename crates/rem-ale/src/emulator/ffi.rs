//! Safe functions around `shim/shim.cpp`. The only code that calls C.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::ptr::NonNull;
use std::slice;

// Links zlib, which the emulator reads ROMs with.
use libz_sys as _;

use crate::action::Action;

/// The emulator, opaque to Rust.
#[repr(C)]
struct RawAle {
    _private: [u8; 0],
}

type List = unsafe extern "C" fn(*mut RawAle, *mut u32, usize) -> usize;

// SAFETY: the signatures match `shim/shim.cpp`.
unsafe extern "C" {
    fn rem_ale_open(
        rom: *const c_char,
        seed: i32,
        sticky: f32,
        error: *mut c_char,
        capacity: usize,
    ) -> *mut RawAle;
    fn rem_ale_close(emulator: *mut RawAle);
    fn rem_ale_error(emulator: *const RawAle) -> *const c_char;
    fn rem_ale_minimal_actions(emulator: *mut RawAle, out: *mut u32, capacity: usize) -> usize;
    fn rem_ale_legal_actions(emulator: *mut RawAle, out: *mut u32, capacity: usize) -> usize;
    fn rem_ale_modes(emulator: *mut RawAle, out: *mut u32, capacity: usize) -> usize;
    fn rem_ale_difficulties(emulator: *mut RawAle, out: *mut u32, capacity: usize) -> usize;
    fn rem_ale_set_mode(emulator: *mut RawAle, mode: u32) -> i32;
    fn rem_ale_set_difficulty(emulator: *mut RawAle, difficulty: u32) -> i32;
    fn rem_ale_reset(emulator: *mut RawAle) -> i32;
    fn rem_ale_act(emulator: *mut RawAle, action: u32, reward: *mut i32) -> i32;
    fn rem_ale_game_over(emulator: *mut RawAle, over: *mut bool) -> i32;
    fn rem_ale_lives(emulator: *mut RawAle, lives: *mut i32) -> i32;
    fn rem_ale_frame_number(emulator: *mut RawAle, frames: *mut i32) -> i32;
    fn rem_ale_screen(emulator: *const RawAle, height: *mut usize, width: *mut usize) -> *const u8;
    fn rem_ale_palette(emulator: *mut RawAle, out: *mut u32);
    fn rem_ale_save(emulator: *mut RawAle, bytes: *mut *const u8, size: *mut usize) -> i32;
    fn rem_ale_load(emulator: *mut RawAle, bytes: *const u8, size: usize) -> i32;
}

/// Owns an emulator with a loaded ROM.
#[derive(Debug)]
pub struct Handle {
    emulator: NonNull<RawAle>,
}

// SAFETY: an emulator has no thread-local state. What instances share (lookup tables, the log level) is written once
// under `std::call_once` and only read afterwards. `Handle` is not `Sync` and `emulator` is private to this file, so
// two threads never use one instance at the same time.
unsafe impl Send for Handle {}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: the pointer came from `rem_ale_open` and is not used after this.
        unsafe { rem_ale_close(self.emulator.as_ptr()) }
    }
}

impl Handle {
    /// Loads a ROM. The caller must have verified the file: ALE exits the process if it is missing or unknown.
    pub fn open(rom: &Path, seed: i32, sticky: f32) -> Result<Self, String> {
        let rom = CString::new(rom.as_os_str().as_encoded_bytes())
            .map_err(|_| "the path of the ROM contains a NUL byte".to_owned())?;
        let mut error = [0_u8; 256];
        // SAFETY: `rom` is NUL-terminated, `error` has `capacity` bytes, and both outlive the call.
        let emulator = unsafe {
            let capacity = error.len();
            rem_ale_open(
                rom.as_ptr(),
                seed,
                sticky,
                error.as_mut_ptr().cast(),
                capacity,
            )
        };
        match NonNull::new(emulator) {
            Some(emulator) => Ok(Self { emulator }),
            None => {
                let text = CStr::from_bytes_until_nul(&error).unwrap_or_default();
                Err(text.to_string_lossy().into_owned())
            }
        }
    }

    pub fn minimal_actions(&self) -> Vec<u32> {
        self.list(rem_ale_minimal_actions)
    }

    pub fn legal_actions(&self) -> Vec<u32> {
        self.list(rem_ale_legal_actions)
    }

    pub fn modes(&self) -> Vec<u32> {
        self.list(rem_ale_modes)
    }

    pub fn difficulties(&self) -> Vec<u32> {
        self.list(rem_ale_difficulties)
    }

    fn list(&self, list: List) -> Vec<u32> {
        let mut items = [0; 256];
        // SAFETY: `self.emulator` is valid, and functions of this type write at most `capacity` numbers.
        let count = unsafe { list(self.emulator.as_ptr(), items.as_mut_ptr(), items.len()) };
        items[..count].to_vec()
    }

    pub fn set_mode(&mut self, mode: u32) {
        // SAFETY: `self.emulator` is valid.
        let status = unsafe { rem_ale_set_mode(self.emulator.as_ptr(), mode) };
        self.expect(status);
    }

    pub fn set_difficulty(&mut self, difficulty: u32) {
        // SAFETY: `self.emulator` is valid.
        let status = unsafe { rem_ale_set_difficulty(self.emulator.as_ptr(), difficulty) };
        self.expect(status);
    }

    pub fn reset(&mut self) {
        // SAFETY: `self.emulator` is valid, and `&mut` guarantees that the screen is not borrowed.
        let status = unsafe { rem_ale_reset(self.emulator.as_ptr()) };
        self.expect(status);
    }

    pub fn act(&mut self, action: Action) -> i32 {
        let mut reward = 0;
        // SAFETY: as for `reset`; every `Action` is a valid action number; `reward` outlives the call.
        let status = unsafe { rem_ale_act(self.emulator.as_ptr(), action as u32, &mut reward) };
        self.expect(status);
        reward
    }

    pub fn game_over(&self) -> bool {
        let mut over = false;
        // SAFETY: `self.emulator` is valid, `over` outlives the call.
        let status = unsafe { rem_ale_game_over(self.emulator.as_ptr(), &mut over) };
        self.expect(status);
        over
    }

    pub fn lives(&self) -> i32 {
        let mut lives = 0;
        // SAFETY: `self.emulator` is valid, `lives` outlives the call.
        let status = unsafe { rem_ale_lives(self.emulator.as_ptr(), &mut lives) };
        self.expect(status);
        lives
    }

    pub fn episode_frames(&self) -> i32 {
        let mut frames = 0;
        // SAFETY: `self.emulator` is valid, `frames` outlives the call.
        let status = unsafe { rem_ale_frame_number(self.emulator.as_ptr(), &mut frames) };
        self.expect(status);
        frames
    }

    /// Height and width.
    pub fn screen_size(&self) -> (usize, usize) {
        let (mut height, mut width) = (0, 0);
        // SAFETY: `self.emulator` is valid, the numbers outlive the call.
        unsafe { rem_ale_screen(self.emulator.as_ptr(), &mut height, &mut width) };
        (height, width)
    }

    pub fn screen(&self) -> &[u8] {
        let (mut height, mut width) = (0, 0);
        // SAFETY: the pixels are `height * width` bytes that live as long as the emulator. Only functions that take
        // `&mut self` modify them, and these cannot be called while the slice borrows `&self`.
        unsafe {
            let pixels = rem_ale_screen(self.emulator.as_ptr(), &mut height, &mut width);
            slice::from_raw_parts(pixels, height * width)
        }
    }

    /// Colors as `0xRRGGBB`.
    pub fn palette(&self) -> [u32; 256] {
        let mut colors = [0; 256];
        // SAFETY: `self.emulator` is valid, and the palette has 256 colors.
        unsafe { rem_ale_palette(self.emulator.as_ptr(), colors.as_mut_ptr()) };
        colors
    }

    /// The complete state.
    pub fn save(&self) -> Vec<u8> {
        let (mut bytes, mut size) = (std::ptr::null(), 0);
        // SAFETY: `self.emulator` is valid, and the results outlive the call. Saving modifies only a buffer that is
        // used nowhere else, not the screen.
        let status = unsafe { rem_ale_save(self.emulator.as_ptr(), &mut bytes, &mut size) };
        self.expect(status);
        // SAFETY: after success, `bytes` points to `size` bytes that do not change until the next `save`.
        unsafe { slice::from_raw_parts(bytes, size) }.to_vec()
    }

    /// Restores a state that [`save`](Self::save) returned for the same ROM.
    pub fn load(&mut self, state: &[u8]) -> Result<(), String> {
        // SAFETY: as for `reset`; `state` outlives the call, and the caller has verified its checksum.
        let status = unsafe { rem_ale_load(self.emulator.as_ptr(), state.as_ptr(), state.len()) };
        if status == 0 {
            Ok(())
        } else {
            Err(self.error())
        }
    }

    fn error(&self) -> String {
        // SAFETY: `self.emulator` is valid; its message is always NUL-terminated and is copied here.
        let error = unsafe { CStr::from_ptr(rem_ale_error(self.emulator.as_ptr())) };
        error.to_string_lossy().into_owned()
    }

    /// With a verified ROM and a valid action, only memory allocation can fail; anything else is a bug.
    fn expect(&self, status: i32) {
        assert!(status == 0, "the emulator failed: {}", self.error());
    }
}
