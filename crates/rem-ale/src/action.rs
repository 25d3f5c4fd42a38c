//! What a player can do with a joystick and its button.

/// An action; its number is the emulator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    Noop,
    Fire,
    Up,
    Right,
    Left,
    Down,
    UpRight,
    UpLeft,
    DownRight,
    DownLeft,
    UpFire,
    RightFire,
    LeftFire,
    DownFire,
    UpRightFire,
    UpLeftFire,
    DownRightFire,
    DownLeftFire,
}

impl Action {
    /// All actions, each at its number.
    pub const ALL: [Self; 18] = [
        Self::Noop,
        Self::Fire,
        Self::Up,
        Self::Right,
        Self::Left,
        Self::Down,
        Self::UpRight,
        Self::UpLeft,
        Self::DownRight,
        Self::DownLeft,
        Self::UpFire,
        Self::RightFire,
        Self::LeftFire,
        Self::DownFire,
        Self::UpRightFire,
        Self::UpLeftFire,
        Self::DownRightFire,
        Self::DownLeftFire,
    ];

    /// The names of [`ALL`](Self::ALL).
    pub const NAMES: [&'static str; 18] = [
        "noop",
        "fire",
        "up",
        "right",
        "left",
        "down",
        "up-right",
        "up-left",
        "down-right",
        "down-left",
        "up-fire",
        "right-fire",
        "left-fire",
        "down-fire",
        "up-right-fire",
        "up-left-fire",
        "down-right-fire",
        "down-left-fire",
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_stands_at_its_number_and_under_its_name() {
        for (number, action) in Action::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, number);
            let name = action.name().replace('-', "");
            assert_eq!(name, format!("{action:?}").to_lowercase());
        }
    }
}
