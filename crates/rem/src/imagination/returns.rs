//! λ-returns (Appendix A.1.3).

/// The λ-return G of each step of one trajectory: `G_t = r_t + γ ((1 - λ) V_{t+1} + λ G_{t+1})`, at an end
/// `G_t = r_t + γ terminal_value` (the paper has 0), at the last step `G_t = V_t`. `values` has an
/// element for each observation, `rewards` and `ends` for each action between them.
pub fn lambda_returns(
    rewards: &[f32],
    ends: &[bool],
    values: &[f32],
    discount: f32,
    lambda: f32,
    terminal_value: f32,
) -> Vec<f32> {
    let mut returns = values.to_vec();
    for t in (0..values.len().saturating_sub(1)).rev() {
        let future = match ends[t] {
            true => terminal_value,
            false => (1.0 - lambda) * values[t + 1] + lambda * returns[t + 1],
        };
        returns[t] = rewards[t] + discount * future;
    }
    returns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_match_hand_computed_values() {
        // G2 = 3; G1 = 1 + 0.5 (0.5 * 3 + 0.5 * 3) = 2.5; G0 = 0 + 0.5 (0.5 * 2 + 0.5 * 2.5) = 1.125
        let g = lambda_returns(
            &[0.0, 1.0, 9.0],
            &[false; 3],
            &[1.0, 2.0, 3.0],
            0.5,
            0.5,
            0.0,
        );
        assert_eq!(g, [1.125, 2.5, 3.0]);
    }

    #[test]
    fn rewards_after_an_end_do_not_count() {
        let g = lambda_returns(
            &[1.0, 5.0, 0.0],
            &[true, false, false],
            &[0.0, 7.0, 7.0],
            0.9,
            0.9,
            0.0,
        );
        assert_eq!(g[0], 1.0);
    }

    #[test]
    fn terminal_value_is_discounted_and_added_at_an_end() {
        let g = |terminal_value| {
            lambda_returns(
                &[1.0, 0.0],
                &[true, false],
                &[0.0, 7.0],
                0.5,
                0.9,
                terminal_value,
            )
        };
        assert_eq!(g(-2.0)[0], 0.0);
        assert_eq!(g(0.0)[0], 1.0);
    }
}
