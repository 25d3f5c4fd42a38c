//! Values of presets against their sources.

use super::*;

#[test]
fn atari100k_matches_the_papers_tables() {
    let c = Config::load("atari100k", &[]).unwrap();
    assert_eq!(c.tokens_per_obs(), 64);
    assert_eq!(c.rollout_steps(), 9);
    assert_eq!(
        (c.train.epochs, c.collect.epochs, c.collect.steps_per_epoch),
        (600, 500, 200)
    );
    assert_eq!(
        (
            c.actor_critic.discount,
            c.actor_critic.lambda,
            c.actor_critic.entropy_weight
        ),
        (0.995, 0.95, 0.001)
    );
}

/// The text's value of everything that the text and the published program give differently.
#[test]
fn paper_text_has_the_texts_values() {
    let text = Config::load("paper-text", &[]).unwrap();
    let mut program = Config::load("atari100k", &[]).unwrap();
    let h = program.train.horizon;
    // Appendix A.3: η = 1 - 2^(-5-i), and GELU in the feed-forward network.
    program.world_model.architecture = Architecture::Pop {
        mode: PopMode::TwoCalls,
        decay: Decay::PowersOfTwo {},
        rope_theta: 10_000.0,
    };
    program.world_model.activation = Activation::Gelu;
    // Equation (8): the L1 norm. Table 4: no 1x1 convolutions.
    program.tokenizer.reconstruction = Reconstruction::L1;
    program.tokenizer.encoder = Encoder::Cnn {
        quantizer_convs: false,
    };
    // Algorithm 6: predictions of all steps from 1 to H enter the losses.
    program.world_model.loss_start = LossStart::EveryStep;
    // Algorithm 7: a context of H steps, seen by the policy too, and H imagined steps.
    program.world_model.context = h;
    program.actor_critic.burn_in = h - 1;
    program.actor_critic.rollout_length = RolloutLength::Horizon;
    // Algorithm 4: `env.reset()` at the start of each collection.
    program.collect.reset_per_epoch = true;
    // Table 2: "Terminate on live loss (train, test): (No, Yes)".
    program.env.end_on_life_loss = TrainTest {
        train: false,
        test: true,
    };
    assert_eq!(text, program);
    // t = 0 to H of the λ-returns in Appendix A.1.3.
    assert_eq!((text.rollout_steps(), text.trajectory_steps()), (11, 20));
    assert_eq!(text.world_model.first_observation(), 0);
    assert_eq!(text.world_model.first_outcome(), 0);
}

/// Values of the tables in the appendix of Micheli et al., "Transformers are Sample-Efficient World Models" (2023), and of
/// the configuration published with it.
#[test]
fn iris_has_the_values_of_its_paper() {
    let c = Config::load("iris", &[]).unwrap();
    // Autoencoder: 64x64 frames as 16 tokens of 512 codes, L1 reconstruction.
    assert_eq!((c.env.frame_size, c.tokens_per_obs()), (64, 16));
    assert_eq!(c.tokenizer.vocabulary, 512);
    assert_eq!(c.tokenizer.reconstruction, Reconstruction::L1);
    // Transformer: 20 timesteps, width 256, 10 layers, 4 heads, GELU, dropout 0.1 of embeddings, attention and residuals.
    let w = &c.world_model;
    assert_eq!(w.architecture, Architecture::Transformer {});
    assert_eq!(c.context_window_steps(), 20);
    assert_eq!((c.tokenizer.embedding, w.layers, w.heads), (256, 10, 4));
    assert_eq!((w.feed_forward, w.activation), (4 * 256, Activation::Gelu));
    assert_eq!((w.embeddings, w.dropout), (Embeddings::Own, 0.1));
    // A rollout starts from one observation; every step has a loss on reward and termination.
    assert_eq!((w.context, w.first_observation()), (1, 0));
    assert_eq!(w.first_outcome(), 0);
    assert_eq!(w.rewards, Rewards::Sign);
    // Training: epochs, collection and delays.
    assert_eq!((c.train.epochs, c.collect.epochs), (600, 500));
    assert_eq!((c.collect.steps_per_epoch, c.collect.epsilon), (200, 0.01));
    assert_eq!(c.evaluate.temperature, 0.5);
    // Adam with decay of the world model's linear layers only (see `DecayGroup`), clipping at 10.
    let optimizers = [
        &c.tokenizer.optimizer,
        &w.optimizer,
        &c.actor_critic.optimizer,
    ];
    assert_eq!(optimizers.map(|o| o.start_after), [5, 25, 50]);
    assert_eq!(optimizers.map(|o| o.steps_per_epoch), [200; 3]);
    assert_eq!(optimizers.map(|o| o.batch_size), [256, 64, 64]);
    assert_eq!(optimizers.map(|o| o.learning_rate), [1e-4; 3]);
    assert_eq!(optimizers.map(|o| o.final_lr_fraction), [1.0; 3]);
    assert_eq!(optimizers.map(|o| o.weight_decay), [0.0, 0.01, 0.0]);
    assert_eq!(optimizers.map(|o| o.max_grad_norm), [10.0; 3]);
    assert_eq!((c.train.beta_1, c.train.beta_2), (0.9, 0.999));
    // Actor-critic: an LSTM of 512 on frames, a burn-in of 20, an imagination horizon of 20 observations.
    let a = &c.actor_critic;
    assert_eq!(a.inputs, ControllerInputs::Pixels {});
    assert_eq!((a.lstm_dim, a.burn_in, c.rollout_steps()), (512, 20, 20));
    assert_eq!(
        (a.discount, a.lambda, a.entropy_weight),
        (0.995, 0.95, 0.001)
    );
}

/// `ablation-iris` differs from REM in the world model's network only; the controller and all optimizers are REM's.
#[test]
fn ablation_iris_only_swaps_the_world_model() {
    let iris = Config::load("atari100k,ablation-iris", &[]).unwrap();
    let mut rem = Config::load("atari100k", &[]).unwrap();
    rem.world_model.architecture = Architecture::Transformer {};
    rem.world_model.embeddings = Embeddings::Own;
    rem.world_model.activation = Activation::Gelu;
    rem.world_model.reward_loss_start = RewardLossStart::FromContext;
    assert_eq!(iris, rem);
    // The first imagined step reads reward and termination at the context's last step.
    assert_eq!(
        iris.world_model.first_outcome() + 1,
        iris.world_model.context
    );
}

/// Values of the configuration published with Cohen et al., "Uncovering Untapped Potential in Sample-Efficient World Model
/// Agents" (2025), for Atari.
#[test]
fn simulus_has_the_values_of_its_configuration() {
    let c = Config::load("simulus", &[]).unwrap();
    // Frames as 8x8 tokens of 8 * 8 * 8 codes of dimension 256; 64 channels, doubled by each downsampling.
    assert_eq!((c.env.frame_size, c.tokens_per_obs()), (64, 64));
    assert_eq!((c.tokenizer.vocabulary, c.tokenizer.embedding), (512, 256));
    assert_eq!(c.tokenizer.channels, 64);
    let levels = Quantizer::FiniteScalar { levels: [8; 3] };
    assert_eq!(c.tokenizer.quantizer, levels);
    // Ten layers of four heads, ten steps, of which two are context; dropout 0.1; shared embeddings; four heads for
    // curiosity.
    let w = &c.world_model;
    assert!(matches!(w.architecture, Architecture::PopAttention { .. }));
    assert_eq!((w.layers, w.heads, w.feed_forward), (10, 4, 4 * 256));
    assert_eq!((c.train.horizon, w.context, w.dropout), (10, 2, 0.1));
    assert_eq!((w.embeddings, w.ensemble_heads), (Embeddings::Tokenizer, 4));
    // 0.7 of a batch is uniform.
    assert_eq!((w.rewards, w.prioritized_fraction), (Rewards::HlGauss, 0.3));
    // Ten imagined steps after the context; gamma, lambda, entropy weight.
    let a = &c.actor_critic;
    assert_eq!((c.rollout_steps(), a.burn_in, a.lstm_dim), (11, 20, 512));
    assert_eq!(
        (a.discount, a.lambda, a.entropy_weight),
        (0.99, 0.95, 0.001)
    );
    assert_eq!((a.values, a.curiosity_weight), (Values::HlGauss, 1.0));
    let scaling = ReturnScaling::QuantileRange {
        window: 500,
        floor: 1.0,
    };
    assert_eq!(a.return_scaling, scaling);
    // Schedule and optimizers.
    assert_eq!((c.train.epochs, c.collect.epochs), (600, 500));
    assert_eq!((c.collect.steps_per_epoch, c.collect.epsilon), (200, 0.01));
    let optimizers = [&c.tokenizer.optimizer, &w.optimizer, &a.optimizer];
    assert_eq!(optimizers.map(|o| o.start_after), [5, 25, 50]);
    assert_eq!(optimizers.map(|o| o.steps_per_epoch), [200, 200, 80]);
    assert_eq!(optimizers.map(|o| o.batch_size), [128, 32, 128]);
    assert_eq!(optimizers.map(|o| o.learning_rate), [1e-4, 2e-4, 2e-4]);
    assert_eq!(optimizers.map(|o| o.max_grad_norm), [10.0, 3.0, 3.0]);
    assert_eq!(w.optimizer.weight_decay, 0.05);
}
