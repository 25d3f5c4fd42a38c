//! λ-returns (paper, section actor-critic-learning-details).

/// G of each step of one dream, backwards from the last value:
/// `G_t = r_t + γ ((1 - λ) V_{t+1} + λ G_{t+1})`, or `r_t + γ V_end` at an end (in the paper 0), and `G = V` at the last
/// step.
pub fn lambda_returns(
    rewards: &[f32],
    ends: &[bool],
    values: &[f32],
    discount: f32,
    lambda: f32,
    end_value: f32,
) -> Vec<f32> {
    let mut returns = values.to_vec();
    for t in (0..values.len().saturating_sub(1)).rev() {
        let future = match ends[t] {
            true => end_value,
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
    fn by_hand() {
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
    fn nothing_flows_over_an_end() {
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
    fn an_end_may_be_worth_something() {
        let g = |end_value| {
            lambda_returns(
                &[1.0, 0.0],
                &[true, false],
                &[0.0, 7.0],
                0.5,
                0.9,
                end_value,
            )
        };
        assert_eq!(g(-2.0)[0], 0.0);
        assert_eq!(g(0.0)[0], 1.0);
    }
}
