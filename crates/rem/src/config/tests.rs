//! Presets, overrides and validation.

use super::*;

mod presets;

#[test]
fn every_preset_round_trips_through_toml() {
    for (name, _) in PRESETS {
        let config = Config::load(name, &[]).unwrap();
        assert_eq!(
            Config::from_toml(&config.to_toml(), &[]).unwrap(),
            config,
            "{name}"
        );
    }
}

#[test]
fn loss_start_is_an_index_or_every_step() {
    let of = |set: &[&str]| {
        let set: Vec<String> = set
            .iter()
            .map(|v| format!("world_model.loss_start={v}"))
            .collect();
        Config::load("atari100k", &set).map(|c| c.world_model.loss_start)
    };
    let valid = |set: &[&str]| of(set).unwrap();
    assert_eq!(valid(&[]), LossStart::AfterContext);
    assert_eq!(valid(&["1"]), LossStart::Observation(1));
    assert_eq!(valid(&["every_step"]), LossStart::EveryStep);
    // A number after a name.
    assert_eq!(valid(&["every_step", "2"]), LossStart::Observation(2));
    for wrong in ["-1", "all", "1.5"] {
        let error = of(&[wrong]).unwrap_err().to_string();
        assert!(error.contains("`world_model.loss_start = "), "{error}");
        assert!(error.contains("or `every_step`"), "{error}");
    }
}

#[test]
fn overrides_change_values_of_any_depth() {
    let set = [
        "seed=7".into(),
        "tokenizer.optimizer.batch_size=3".into(),
        "env.game=crossing".into(),
    ];
    let c = Config::load("quick", &set).unwrap();
    assert_eq!(
        (
            c.seed,
            c.tokenizer.optimizer.batch_size,
            c.env.game.as_str()
        ),
        (7, 3, "crossing")
    );
}

#[test]
fn the_first_preset_extends_its_base_and_later_presets_override_it() {
    let none = Config::load("ablation-none", &[]).unwrap();
    assert_eq!(none, Config::load("quick", &[]).unwrap());
    let no_pop = Config::load("ablation-no-pop", &[]).unwrap();
    let set = ["world_model.architecture=retnet".to_string()];
    assert_eq!(no_pop, Config::load("ablation-none", &set).unwrap());
    // On another preset, an ablation changes only its own keys.
    let paper = Config::load("atari100k,ablation-no-pop", &[]).unwrap();
    assert_eq!(paper, Config::load("atari100k", &set).unwrap());
    let two = Config::load("quick,ablation-no-pop,ablation-separate-embeddings", &[]).unwrap();
    let set = [set[0].clone(), "world_model.embeddings=own".into()];
    assert_eq!(two, Config::load("quick", &set).unwrap());
    for preset in ["atari100k,ablation-4x4", "ablation-4x4", "iris"] {
        assert_eq!(Config::load(preset, &[]).unwrap().tokens_per_obs(), 16);
    }
    for preset in ["atari100k,ablation-8x8", "ablation-8x8"] {
        assert_eq!(Config::load(preset, &[]).unwrap().tokens_per_obs(), 64);
    }
}

/// `games.toml` has what is a property of a game, not of a recipe.
#[test]
fn game_settings_override_presets_and_yield_to_overrides() {
    let of = |preset: &str, set: &[&str]| {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Config::load(preset, &set).unwrap()
    };
    for preset in ["atari-laptop", "atari100k"] {
        // In any spelling.
        for game in ["freeway", "Freeway"] {
            let freeway = of(preset, &[&format!("env.game={game}")]);
            assert_eq!(freeway.collect.temperature, 0.01, "{preset}");
        }
    }
    let crossing = of("quick", &["env.game=crossing"]);
    assert_eq!(crossing.env.max_steps.test, 40);
    // Overrides win.
    let set = ["env.game=crossing", "env.max_steps.test=50"];
    assert_eq!(of("quick", &set).env.max_steps.test, 50);
}

/// The settings of a recipe do not depend on the game: only the length of an episode and Freeway's temperature do.
#[test]
fn recipes_are_the_same_for_every_game() {
    let games = [
        ("quick", ["catch", "paddle", "crossing"]),
        ("atari-laptop", ["breakout", "boxing", "freeway"]),
    ];
    for (preset, games) in games {
        let recipes = games.map(|game| {
            let mut config = Config::load(preset, &[format!("env.game={game}")]).unwrap();
            config.env.game = String::new();
            config.env.max_steps = TrainTest { train: 1, test: 1 };
            config.collect.temperature = 1.0;
            config
        });
        assert!(recipes.iter().all(|r| *r == recipes[0]), "{preset}");
    }
}

#[test]
fn settings_of_another_variant_are_unknown_keys() {
    let cases = [
        "world_model.architecture=retnet world_model.architecture.mode=one_call",
        "world_model.architecture=transformer world_model.architecture.mode=auto",
        "world_model.architecture=pop_attention world_model.architecture.mode=one_call",
        "world_model.architecture=transformer world_model.architecture.decay=powers_of_two",
        "world_model.architecture.type=transformer world_model.architecture.rope_theta=100",
        "world_model.architecture.decay=powers_of_two world_model.architecture.decay.timescales=[16,128]",
        "tokenizer.encoder=whitened_patches tokenizer.encoder.quantizer_convs=true",
        "actor_critic.inputs=codes actor_critic.inputs.burn_in_actions=true",
        "actor_critic.inputs=pixels actor_critic.inputs.burn_in_actions=false",
    ];
    for assignments in cases {
        let set: Vec<String> = assignments.split(' ').map(String::from).collect();
        let error = Config::load("quick", &set).unwrap_err();
        assert!(error.to_string().contains("unknown config key"), "{error}");
        assert!(Config::load("quick", &set[..1]).is_ok(), "{assignments}");
    }
}

#[test]
fn a_chosen_variant_keeps_the_keys_that_it_shares() {
    let of = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Config::load("debug", &set)
            .unwrap()
            .world_model
            .architecture
    };
    let theta = "world_model.architecture.rope_theta=100";
    for network in ["pop", "retnet"] {
        let network = format!("world_model.architecture={network}");
        assert_eq!(of(&[theta, &network]).retention().unwrap().1, 100.0);
    }
    // A key that another variant has is gone; chosen again, it has its default.
    let [pop, transformer] =
        ["pop", "transformer"].map(|n| format!("world_model.architecture={n}"));
    assert_eq!(of(&[theta, &transformer]), Architecture::Transformer {});
    assert_eq!(of(&[theta, &transformer, &pop]), of(&[]));
    let decays =
        ["powers_of_two", "log_spaced"].map(|d| format!("world_model.architecture.decay={d}"));
    let timescales = "world_model.architecture.decay.timescales=[16,128]";
    assert_eq!(of(&[timescales, &decays[0], &decays[1]]), of(&[]));
}

/// `rem train --preset BASE,ablation-…` for every base, and for every game with settings of its own.
#[test]
fn every_ablation_loads_on_every_base() {
    let names = PRESETS.iter().map(|(name, _)| *name);
    let (ablations, bases): (Vec<_>, Vec<_>) = names.partition(|n| n.starts_with("ablation-"));
    for base in bases {
        for game in ["catch", "boxing", "breakout", "pong", "freeway"] {
            for ablation in &ablations {
                let set = [format!("env.game={game}")];
                let error = Config::load(&format!("{base},{ablation}"), &set).err();
                let error = error.map(|error| error.to_string()).unwrap_or_default();
                let expected = match (base, *ablation) {
                    // The Transformer's window is a segment; the text's rollouts are longer.
                    ("paper-text", "ablation-iris") => "`actor_critic.rollout_length = horizon`",
                    // Only POP has prediction tokens.
                    ("simulus", "ablation-no-pop" | "ablation-iris") => {
                        "`world_model.reward_head_input = predicted_observation`"
                    }
                    _ => "",
                };
                assert!(
                    error.starts_with(expected) && error.is_empty() == expected.is_empty(),
                    "{base},{ablation} on {game}: {error}"
                );
            }
        }
    }
}

/// No POP replaces the network and nothing else, whatever the preset says about retention.
#[test]
fn ablation_no_pop_only_swaps_the_network() {
    for preset in ["atari100k", "paper-text", "quick", "atari-laptop"] {
        let set = ["env.game=breakout".to_string()];
        let rem = Config::load(preset, &set).unwrap();
        let mut no_pop = Config::load(&format!("{preset},ablation-no-pop"), &set).unwrap();
        let (ours, theirs) = (&rem.world_model, &mut no_pop.world_model);
        assert_eq!(
            ours.architecture.retention(),
            theirs.architecture.retention()
        );
        assert!(matches!(theirs.architecture, Architecture::Retnet { .. }));
        theirs.architecture = ours.architecture;
        assert_eq!(rem, no_pop, "{preset}");
    }
}

#[test]
fn the_overlay_knows_every_variant() {
    fn names<T: schemars::JsonSchema>() -> Vec<String> {
        let schema = serde_json::to_value(schemars::schema_for!(T)).unwrap();
        let variants = schema["oneOf"].as_array().unwrap();
        let name =
            |v: &serde_json::Value| v["properties"]["type"]["const"].as_str().map(str::to_owned);
        variants.iter().map(|v| name(v).unwrap()).collect()
    }
    assert_eq!(names::<Encoder>(), overlay::ENCODERS);
    assert_eq!(names::<Architecture>(), overlay::ARCHITECTURES);
    assert_eq!(names::<Decay>(), overlay::DECAYS);
    assert_eq!(names::<Quantizer>(), overlay::QUANTIZERS);
    assert_eq!(names::<SlowCritic>(), overlay::SLOW_CRITICS);
    assert_eq!(names::<ReturnScaling>(), overlay::RETURN_SCALINGS);
    assert_eq!(names::<ControllerInputs>(), overlay::INPUTS);
}

#[test]
fn invalid_settings_are_errors_that_name_the_key() {
    let cases = [
        (
            "tokenizer.vocabulry=3",
            "unknown config key `tokenizer.vocabulry`",
        ),
        ("tokenizer.vocabulary=many", "`tokenizer.vocabulary = many`"),
        ("world_model.heads=5", "world_model.heads = 5"),
        (
            "world_model.architecture.rope_theta=1",
            "world_model.architecture.rope_theta = 1",
        ),
        (
            "world_model.architecture.decay.timescales=[16,1]",
            "world_model.architecture.decay.timescales = [16.0, 1.0]",
        ),
        ("world_model.context=0", "world_model.context = 0"),
        ("world_model.loss_start=3", "world_model.loss_start = 3"),
        ("world_model.context=5", "world_model.context = 5"),
        (
            "world_model.weight_averaging=1.5",
            "world_model.weight_averaging = 1.5",
        ),
        ("env.frame_size=40", "env.frame_size = 40"),
        (
            "actor_critic.terminal_value=1e300",
            "actor_critic.terminal_value = ",
        ),
        (
            "world_model.prioritized_fraction=1.1",
            "world_model.prioritized_fraction = 1.1",
        ),
        (
            "actor_critic.return_scaling=std",
            "`actor_critic.return_scaling.type = std`",
        ),
        (
            "tokenizer.optimizer.final_lr_fraction=0",
            "tokenizer.optimizer.final_lr_fraction = 0",
        ),
        ("tokenizer=3", "`tokenizer` is a section"),
        ("seed", "is not of the form key=value"),
        (
            "world_model.architecture=lstm",
            "`world_model.architecture.type = lstm`",
        ),
    ];
    for (assignment, part) in cases {
        let error = Config::load("debug", &[assignment.to_string()]).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(!error.hint().is_empty());
        assert!(!error.to_string().contains('\n'));
    }
    assert!(
        Config::load("quik", &[])
            .unwrap_err()
            .hint()
            .contains("quick")
    );
}

/// Settings of variants that are not in the preset `quick`.
#[test]
fn invalid_settings_of_chosen_variants_are_errors_that_name_the_key() {
    let cases = [
        "actor_critic.return_scaling=quantile_range actor_critic.return_scaling.window=0",
        "actor_critic.return_scaling=quantile_range actor_critic.return_scaling.floor=0",
        "actor_critic.slow_critic=target actor_critic.slow_critic.decay=1",
        "actor_critic.slow_critic=regularizer actor_critic.slow_critic.weight=0",
        "actor_critic.uniform_mix=1",
        "world_model.ensemble_heads=1 actor_critic.curiosity_weight=1",
        "world_model.ensemble_heads=4 actor_critic.curiosity_weight=-1",
        "world_model.architecture=transformer world_model.ensemble_heads=4",
        "tokenizer.random_shift=32",
        "world_model.random_shift=32",
        "tokenizer.vocabulary=512 tokenizer.quantizer=finite_scalar tokenizer.codebook_init=data",
        "tokenizer.vocabulary=512 tokenizer.quantizer=finite_scalar tokenizer.dead_code_reset_after=1",
        "tokenizer.vocabulary=512 tokenizer.quantizer=finite_scalar tokenizer.vocabulary=64",
        "world_model.architecture=retnet world_model.reward_head_input=predicted_observation",
        "world_model.context=1 train.horizon=2 world_model.reward_loss_start=after_context world_model.reward_head_input=predicted_observation",
    ];
    for assignments in cases {
        let set: Vec<String> = assignments.split(' ').map(String::from).collect();
        assert!(
            Config::load("debug", &set[..set.len() - 1]).is_ok(),
            "{assignments}"
        );
        let error = Config::load("debug", &set).unwrap_err().to_string();
        let named = format!("`{}`", set[set.len() - 1].replace('=', " = "));
        assert!(error.contains(&named), "{error}");
    }
}

/// Configs of runs from before a setting existed have the value that changes nothing.
#[test]
fn later_settings_may_be_missing_from_a_runs_config() {
    let config = Config::load("quick", &[]).unwrap();
    let mut table: Table = config.to_toml().parse().unwrap();
    for key in [
        "tokenizer.quantizer",
        "tokenizer.random_shift",
        "world_model.ensemble_heads",
        "actor_critic.curiosity_weight",
        "world_model.random_shift",
        "world_model.reward_head_input",
        "world_model.prioritized_fraction",
        "actor_critic.values",
        "actor_critic.slow_critic",
        "actor_critic.uniform_mix",
        "actor_critic.return_scaling",
    ] {
        let (section, key) = key.split_once('.').unwrap();
        let section = table[section].as_table_mut().unwrap();
        assert!(section.remove(key).is_some());
    }
    let text = toml::to_string(&table).unwrap();
    assert_eq!(Config::from_toml(&text, &[]).unwrap(), config);
}

/// `horizon` allows a context of a whole segment, if the segment keeps a loss, and needs a network without a window.
#[test]
fn rollouts_of_horizon_steps_are_validated() {
    let error = |set: &[&str]| {
        let set: Vec<String> = set.iter().map(|s| s.to_string()).collect();
        Config::load("debug", &set).err().map(|e| e.to_string())
    };
    let horizon = "actor_critic.rollout_length=horizon";
    let whole = "world_model.context=5";
    assert_eq!(
        error(&[horizon, whole, "world_model.loss_start=every_step"]),
        None
    );
    assert_eq!(error(&[horizon, whole, "world_model.loss_start=1"]), None);
    assert!(
        error(&[horizon, whole])
            .unwrap()
            .contains("`world_model.loss_start = 0`")
    );
    assert!(
        error(&[horizon, "world_model.context=6"])
            .unwrap()
            .contains("`world_model.context = 6`")
    );
    let transformer = "world_model.architecture=transformer";
    let message = error(&[horizon, transformer]).unwrap();
    assert!(
        message.contains("`actor_critic.rollout_length = horizon`"),
        "{message}"
    );
}

#[test]
fn learning_rates_are_constant_or_decay_linearly() {
    let mut settings = Config::load("atari100k", &[])
        .unwrap()
        .world_model
        .optimizer;
    (settings.start_after, settings.learning_rate) = (4, 0.5);
    assert_eq!(
        [5, 9, 30].map(|epoch| settings.learning_rate_in(epoch, 30)),
        [0.5; 3]
    );

    settings.final_lr_fraction = 0.2;
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    close(settings.learning_rate_in(5, 25), 0.5);
    close(settings.learning_rate_in(15, 25), 0.3);
    close(settings.learning_rate_in(25, 25), 0.1);
    // The decay ends at `stop_after`.
    settings.stop_after = 15;
    close(settings.learning_rate_in(10, 25), 0.3);
    close(settings.learning_rate_in(15, 25), 0.1);
    // A single epoch has no decay.
    close(settings.learning_rate_in(5, 5), 0.5);
}
