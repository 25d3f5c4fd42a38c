//! Quantiles with linear interpolation.

/// The quantile `q` of `values` with linear interpolation. Reorders `values`.
pub(crate) fn quantile(values: &mut [f64], q: f64) -> f64 {
    let place = q * (values.len() - 1) as f64;
    let (_, low, above) = values.select_nth_unstable_by(place as usize, f64::total_cmp);
    let next = above.iter().copied().min_by(f64::total_cmp);
    let high = next.unwrap_or(*low);
    *low + (high - *low) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_linearly() {
        let values = [4.0, 1.0, 3.0, 2.0];
        let of = |q| quantile(&mut values.clone(), q);
        assert_eq!(of(0.0), 1.0);
        assert_eq!(of(0.25), 1.75);
        assert_eq!(of(0.5), 2.5);
        assert_eq!(of(1.0), 4.0);
        assert_eq!(quantile(&mut [7.0], 0.3), 7.0);
        assert_eq!(quantile(&mut [5.0, 9.0, 6.0], 0.5), 6.0);
    }
}
