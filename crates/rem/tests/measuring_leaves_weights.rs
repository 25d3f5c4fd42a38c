//! Measuring the training time draws random numbers of its own: an agent that is created afterwards has the same initial
//! weights. The only test of its file, because tests of a process share the device's generator.

use burn::tensor::Device;
use rem::config::Config;
use rem::seeds::Seeds;
use rem::train::TrainingTime;
use rem::{Agent, host};

#[test]
fn measuring_does_not_change_the_initial_weights() {
    let config = Config::load("debug", &["train.epochs=10000000".into()]).unwrap();
    let device = Device::flex().autodiff();
    let weights = || {
        let agent = Agent::new(&config, 3, &Seeds::new(config.seed), &device).valid();
        let state = agent.actor_critic.initial_state(1);
        let policy = agent.actor_critic.heads(&state).logits;
        let codes = agent.tokenizer.codes();
        let [count, width] = codes.dims();
        let codes = host::floats(codes.reshape([count * width]));
        (codes, host::floats(policy.reshape([3])))
    };
    let before = weights();
    assert_eq!(weights(), before);
    let time = TrainingTime::measure(&config, None).unwrap();
    assert!(time.is_some(), "a run of this length is measured");
    assert!(weights() == before, "other weights after measuring");
}
