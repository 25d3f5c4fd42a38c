//! Games: names, ROM checksums and the reference scores of the Atari 100K benchmark.

use crate::AleError;

/// A game that the emulator supports.
#[derive(Debug, PartialEq)]
pub struct Game {
    /// The name in ALE and of the ROM file, such as `ms_pacman`.
    pub name: &'static str,
    /// The name in papers and score tables, such as `MsPacman`.
    pub title: &'static str,
    /// MD5 of the only ROM that ALE's reward and termination rules support.
    pub rom_md5: &'static str,
    /// Reference scores; only for the 26 games of Atari 100K.
    pub reference: Option<Reference>,
}

/// Reference scores for human-normalized scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Score of a random player.
    pub random: f64,
    /// Score of a human player.
    pub human: f64,
}

impl Game {
    /// Looks up a game by name or title, ignoring case and punctuation.
    ///
    /// # Errors
    /// [`AleError::UnknownGame`], with similar names.
    pub fn named(name: &str) -> Result<&'static Self, AleError> {
        let search_key = search_key(name);
        let found = GAMES
            .iter()
            .find(|game| self::search_key(game.name) == search_key);
        found.ok_or_else(|| AleError::UnknownGame {
            name: name.to_owned(),
            closest: closest(&search_key),
        })
    }

    /// The 26 games of the Atari 100K benchmark.
    pub fn benchmark() -> impl Iterator<Item = &'static Self> {
        GAMES.iter().filter(|game| game.reference.is_some())
    }
}

fn search_key(name: &str) -> String {
    let letters = name.chars().filter(|letter| letter.is_alphanumeric());
    letters.flat_map(char::to_lowercase).collect()
}

/// Up to three similar names, most similar first.
fn closest(search_key: &str) -> Vec<&'static str> {
    let mut games: Vec<(usize, &'static str)> = GAMES
        .iter()
        .filter_map(|game| {
            let other = self::search_key(game.name);
            let contained = search_key.len() >= 4 && other.contains(search_key);
            let edits = strsim::damerau_levenshtein(search_key, &other);
            let likely = contained || edits <= 1 + search_key.len() / 4;
            likely.then_some((if contained { 1 } else { edits }, game.name))
        })
        .collect();
    games.sort();
    games.into_iter().take(3).map(|(_, name)| name).collect()
}

const fn scored(
    name: &'static str,
    title: &'static str,
    rom_md5: &'static str,
    random: f64,
    human: f64,
) -> Game {
    Game {
        name,
        title,
        rom_md5,
        reference: Some(Reference { random, human }),
    }
}

const fn other(name: &'static str, title: &'static str, rom_md5: &'static str) -> Game {
    Game {
        name,
        title,
        rom_md5,
        reference: None,
    }
}

/// All supported games, sorted by name.
#[rustfmt::skip]
pub const GAMES: &[Game] = &[
    other("adventure", "Adventure", "4b27f5397c442d25f0c418ccdacf1926"),
    other("air_raid", "AirRaid", "35be55426c1fec32dfb503b4f0651572"),
    scored("alien", "Alien", "f1a0a23e6464d954e3a9579c4ccd01c8", 227.8, 7127.7),
    scored("amidar", "Amidar", "acb7750b4d0c4bd34969802a7deb2990", 5.8, 1719.5),
    scored("assault", "Assault", "de78b3a064d374390ac0710f95edde92", 222.4, 742.0),
    scored("asterix", "Asterix", "89a68746eff7f266bbf08de2483abe55", 210.0, 8503.3),
    other("asteroids", "Asteroids", "ccbd36746ed4525821a8083b0d6d2c2c"),
    other("atlantis", "Atlantis", "9ad36e699ef6f45d9eb6c4cf90475c9f"),
    other("atlantis2", "Atlantis2", "826481f6fc53ea47c9f272f7050eedf7"),
    other("backgammon", "Backgammon", "8556b42aa05f94bc29ff39c39b11bff4"),
    scored("bank_heist", "BankHeist", "00ce0bdd43aed84a983bef38fe7f5ee3", 14.2, 753.1),
    other("basic_math", "BasicMath", "819aeeb9a2e11deb54e6de334f843894"),
    scored("battle_zone", "BattleZone", "41f252a66c6301f1e8ab3612c19bc5d4", 2360.0, 37187.5),
    other("beam_rider", "BeamRider", "79ab4123a83dc11d468fb2108ea09e2e"),
    other("berzerk", "Berzerk", "136f75c4dd02c29283752b7e5799f978"),
    other("blackjack", "Blackjack", "0a981c03204ac2b278ba392674682560"),
    other("bowling", "Bowling", "c9b7afad3bfd922e006a6bfc1d4f3fe7"),
    scored("boxing", "Boxing", "c3ef5c4653212088eda54dc91d787870", 0.1, 12.1),
    scored("breakout", "Breakout", "f34f08e5eb96e500e851a80be3277a56", 1.7, 30.5),
    other("carnival", "Carnival", "028024fb8e5e5f18ea586652f9799c96"),
    other("casino", "Casino", "b816296311019ab69a21cb9e9e235d12"),
    other("centipede", "Centipede", "91c2098e88a6b13f977af8c003e0bca5"),
    scored("chopper_command", "ChopperCommand", "c1cb228470a87beb5f36e90ac745da26", 811.0, 7387.8),
    scored("crazy_climber", "CrazyClimber", "55ef7b65066428367844342ed59f956c", 10780.5, 35829.4),
    other("crossbow", "Crossbow", "8cd26dcf249456fe4aeb8db42d49df74"),
    other("darkchambers", "Darkchambers", "106855474c69d08c8ffa308d47337269"),
    other("defender", "Defender", "0f643c34e40e3f1daafd9c524d3ffe64"),
    scored("demon_attack", "DemonAttack", "f0e0addc07971561ab80d9abe1b8d333", 152.1, 1971.0),
    other("donkey_kong", "DonkeyKong", "36b20c427975760cb9cf4a47e41369e4"),
    other("double_dunk", "DoubleDunk", "368d88a6c071caba60b4f778615aae94"),
    other("earthworld", "Earthworld", "5aea9974b975a6a844e6df10d2b861c4"),
    other("elevator_action", "ElevatorAction", "71f8bacfbdca019113f3f0801849057e"),
    other("enduro", "Enduro", "94b92a882f6dbaa6993a46e2dcc58402"),
    other("entombed", "Entombed", "6b683be69f92958abe0e2a9945157ad5"),
    other("et", "Et", "615a3bf251a38eb6638cdc7ffbde5480"),
    other("fishing_derby", "FishingDerby", "b8865f05676e64f3bec72b9defdacfa7"),
    other("flag_capture", "FlagCapture", "30512e0e83903fc05541d2f6a6a62654"),
    scored("freeway", "Freeway", "8e0ab801b1705a740b476b7f588c6d16", 0.0, 29.6),
    other("frogger", "Frogger", "081e2c114c9c20b61acf25fc95c71bf4"),
    scored("frostbite", "Frostbite", "4ca73eb959299471788f0b685c3ba0b5", 65.2, 4334.7),
    other("galaxian", "Galaxian", "211774f4c5739042618be8ff67351177"),
    scored("gopher", "Gopher", "c16c79aad6272baffb8aae9a7fff0864", 257.6, 2412.5),
    other("gravitar", "Gravitar", "8ac18076d01a6b63acf6e2cab4968940"),
    other("hangman", "Hangman", "f16c709df0a6c52f47ff52b9d95b7d8d"),
    other("haunted_house", "HauntedHouse", "f0a6e99f5875891246c3dbecbf2d2cea"),
    scored("hero", "Hero", "fca4a5be1251927027f2c24774a02160", 1027.0, 30826.4),
    other("human_cannonball", "HumanCannonball", "7972e5101fa548b952d852db24ad6060"),
    other("ice_hockey", "IceHockey", "a4c08c4994eb9d24fb78be1793e82e26"),
    scored("jamesbond", "Jamesbond", "e51030251e440cffaab1ac63438b44ae", 29.0, 302.8),
    other("journey_escape", "JourneyEscape", "718ae62c70af4e5fd8e932fee216948a"),
    other("kaboom", "Kaboom", "5428cdfada281c569c74c7308c7f2c26"),
    scored("kangaroo", "Kangaroo", "4326edb70ff20d0ee5ba58fa5cb09d60", 52.0, 3035.0),
    other("keystone_kapers", "KeystoneKapers", "6c1f3f2e359dbf55df462ccbcdd2f6bf"),
    other("king_kong", "KingKong", "0dd4c69b5f9a7ae96a7a08329496779a"),
    other("klax", "Klax", "eed9eaf1a0b6a2b9bc4c8032cb43e3fb"),
    other("koolaid", "Koolaid", "534e23210dd1993c828d944c6ac4d9fb"),
    scored("krull", "Krull", "4baada22435320d185c95b7dd2bcdb24", 1598.0, 2665.5),
    scored("kung_fu_master", "KungFuMaster", "5b92a93b23523ff16e2789b820e2a4c5", 258.5, 22736.3),
    other("laser_gates", "LaserGates", "8e4cd60d93fcde8065c1a2b972a26377"),
    other("lost_luggage", "LostLuggage", "2d76c5d1aad506442b9e9fb67765e051"),
    other("mario_bros", "MarioBros", "e908611d99890733be31733a979c62d8"),
    other("miniature_golf", "MiniatureGolf", "df62a658496ac98a3aa4a6ee5719c251"),
    other("montezuma_revenge", "MontezumaRevenge", "3347a6dd59049b15a38394aa2dafa585"),
    other("mr_do", "MrDo", "aa7bb54d2c189a31bb1fa20099e42859"),
    scored("ms_pacman", "MsPacman", "87e79cd41ce136fd4f72cc6e2c161bee", 307.3, 6951.6),
    other("name_this_game", "NameThisGame", "36306070f0c90a72461551a7a4f3a209"),
    other("othello", "Othello", "113cd09c9771ac278544b7e90efe7df2"),
    other("pacman", "Pacman", "fc2233fc116faef0d3c31541717ca2db"),
    other("phoenix", "Phoenix", "7e52a95074a66640fcfde124fffd491a"),
    other("pitfall", "Pitfall", "3e90cf23106f2e08b2781e41299de556"),
    other("pitfall2", "Pitfall2", "6d842c96d5a01967be9680080dd5be54"),
    scored("pong", "Pong", "60e0ea3cbe0913d39803477945e9e5ec", -20.7, 14.6),
    other("pooyan", "Pooyan", "4799a40b6e889370b7ee55c17ba65141"),
    scored("private_eye", "PrivateEye", "ef3a4f64b6494ba770862768caf04b86", 24.9, 69571.3),
    scored("qbert", "Qbert", "484b0076816a104875e00467d431c2d2", 163.9, 13455.0),
    other("riverraid", "Riverraid", "393948436d1f4cc3192410bb918f9724"),
    scored("road_runner", "RoadRunner", "ce5cc62608be2cd3ed8abd844efb8919", 11.5, 7845.0),
    other("robotank", "Robotank", "4f618c2429138e0280969193ed6c107e"),
    scored("seaquest", "Seaquest", "240bfbac5163af4df5ae713985386f92", 68.4, 42054.7),
    other("sir_lancelot", "SirLancelot", "dd0cbe5351551a538414fb9e37fc56e8"),
    other("skiing", "Skiing", "b76fbadc8ffb1f83e2ca08b6fb4d6c9f"),
    other("solaris", "Solaris", "e72eb8d4410152bdcb69e7fba327b420"),
    other("space_invaders", "SpaceInvaders", "72ffbef6504b75e69ee1045af9075f66"),
    other("space_war", "SpaceWar", "b702641d698c60bcdc922dbd8c9dd49c"),
    other("star_gunner", "StarGunner", "a3c1c70024d7aabb41381adbfb6d3b25"),
    other("superman", "Superman", "a9531c763077464307086ec9a1fd057d"),
    other("surround", "Surround", "4d7517ae69f95cfbc053be01312b7dba"),
    other("tennis", "Tennis", "42cdd6a9e42a3639e190722b8ea3fc51"),
    other("tetris", "Tetris", "b0e1ee07fbc73493eac5651a52f90f00"),
    other("tic_tac_toe_3d", "TicTacToe3d", "0db4f4150fecf77e4ce72ca4d04c052f"),
    other("time_pilot", "TimePilot", "fc2104dd2dadf9a6176c1c1c8f87ced9"),
    other("trondead", "Trondead", "fb27afe896e7c928089307b32e5642ee"),
    other("turmoil", "Turmoil", "7a5463545dfb2dcfdafa6074b2f2c15e"),
    other("tutankham", "Tutankham", "085322bae40d904f53bdcc56df0593fc"),
    scored("up_n_down", "UpNDown", "a499d720e7ee35c62424de882a3351b6", 533.4, 11693.2),
    other("venture", "Venture", "3e899eba0ca8cd2972da1ae5479b4f0d"),
    other("video_checkers", "VideoCheckers", "539d26b6e9df0da8e7465f0f5ad863b7"),
    other("video_chess", "VideoChess", "f0b7db930ca0e548c41a97160b9f6275"),
    other("video_cube", "VideoCube", "3f540a30fdee0b20aed7288e4a5ea528"),
    other("video_pinball", "VideoPinball", "107cc025334211e6d29da0b6be46aec7"),
    other("wizard_of_wor", "WizardOfWor", "7e8aa18bc9502eb57daaf5e7c1e94da7"),
    other("word_zapper", "WordZapper", "ec3beb6d8b5689e867bafb5d5f507491"),
    other("yars_revenge", "YarsRevenge", "c5930d0e8cdae3e037349bfa08e871be"),
    other("zaxxon", "Zaxxon", "eea0da9b987d661264cce69a7c13c3bd"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn benchmark_has_26_games_with_reference_scores() {
        let games: Vec<_> = Game::benchmark().collect();
        assert_eq!(games.len(), 26);
        for game in games {
            let Reference { random, human } = game.reference.unwrap();
            assert!(human > random, "{}", game.name);
        }
    }

    #[test]
    fn names_are_sorted_and_checksums_are_unique() {
        assert!(GAMES.windows(2).all(|pair| pair[0].name < pair[1].name));
        let mut checksums: Vec<_> = GAMES.iter().map(|game| game.rom_md5).collect();
        assert!(checksums.iter().all(|md5| md5.len() == 32));
        checksums.sort();
        checksums.dedup();
        assert_eq!(checksums.len(), GAMES.len());
    }

    #[test]
    fn titles_are_names_without_underscores() {
        for game in GAMES {
            assert_eq!(game.title.to_lowercase(), search_key(game.name));
        }
    }

    #[test]
    fn games_are_found_by_name_and_title() {
        for spelling in [
            "ms_pacman",
            "MsPacman",
            "MS_PACMAN",
            "ms-pacman",
            "Ms Pacman",
        ] {
            assert_eq!(Game::named(spelling).unwrap().name, "ms_pacman");
        }
        assert_eq!(Game::named("pong").unwrap().reference.unwrap().human, 14.6);
    }

    #[test]
    fn unknown_games_get_suggestions() {
        let hint = |name| Game::named(name).unwrap_err().hint();
        assert_eq!(hint("brekout"), "did you mean `breakout`?");
        assert_eq!(hint("pogn"), "did you mean `pong`?");
        assert_eq!(hint("invaders"), "did you mean `space_invaders`?");
        assert!(hint("Asteriks").starts_with("did you mean `asterix`"));
        assert!(hint("doom").starts_with("the benchmark games are alien, amidar"));
        assert!(hint("").starts_with("the benchmark games are"));
        let error = Game::named("brekout").unwrap_err().to_string();
        assert_eq!(error, "unknown Atari game `brekout`");
    }
}
