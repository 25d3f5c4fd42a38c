//! Joystick actions.

/// A joystick action, numbered as in ALE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Action {
    /// No input.
    Noop,
    /// The button.
    Fire,
    /// Joystick up.
    Up,
    /// Joystick right.
    Right,
    /// Joystick left.
    Left,
    /// Joystick down.
    Down,
    /// Joystick up and right.
    UpRight,
    /// Joystick up and left.
    UpLeft,
    /// Joystick down and right.
    DownRight,
    /// Joystick down and left.
    DownLeft,
    /// Joystick up, with the button.
    UpFire,
    /// Joystick right, with the button.
    RightFire,
    /// Joystick left, with the button.
    LeftFire,
    /// Joystick down, with the button.
    DownFire,
    /// Joystick up and right, with the button.
    UpRightFire,
    /// Joystick up and left, with the button.
    UpLeftFire,
    /// Joystick down and right, with the button.
    DownRightFire,
    /// Joystick down and left, with the button.
    DownLeftFire,
}

impl Action {
    /// All actions, in the order of their numbers.
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

    /// The names of [`ALL`](Self::ALL), in the same order.
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

    /// The name, such as `up-right-fire`.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_match_the_variants() {
        for (number, action) in Action::ALL.into_iter().enumerate() {
            assert_eq!(action as usize, number);
            let name = action.name().replace('-', "");
            assert_eq!(name, format!("{action:?}").to_lowercase());
        }
    }
}
