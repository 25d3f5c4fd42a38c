//! Cached tokens of frames. They are valid as long as the weights of the tokenizer that encoded them.

/// The tokens of steps, by position, of one generation of tokenizer weights.
pub(super) struct TokenCache {
    tokens_per_obs: usize,
    /// The version of the tokenizer weights that encoded all cached tokens.
    generation: u64,
    /// Whether the tokens of a position are cached.
    present: Vec<bool>,
    /// `tokens_per_obs` tokens per position.
    tokens: Vec<u16>,
}

impl TokenCache {
    pub(super) fn new(tokens_per_obs: usize) -> Self {
        assert!(tokens_per_obs > 0, "an observation has at least one token");
        Self {
            tokens_per_obs,
            generation: 0,
            present: Vec::new(),
            tokens: Vec::new(),
        }
    }

    pub(super) fn get(&self, generation: u64, position: usize) -> Option<&[u16]> {
        let present =
            generation == self.generation && self.present.get(position).copied().unwrap_or(false);
        present.then(|| &self.tokens[position * self.tokens_per_obs..][..self.tokens_per_obs])
    }

    pub(super) fn put(&mut self, generation: u64, position: usize, tokens: &[u16]) {
        assert_eq!(
            tokens.len(),
            self.tokens_per_obs,
            "an observation has tokens_per_obs tokens"
        );
        assert!(
            generation >= self.generation,
            "generation {generation} is older than {}",
            self.generation
        );
        if generation > self.generation {
            self.generation = generation;
            // Keeps the allocations, which the new generation fills again.
            self.present.clear();
            self.tokens.clear();
        }
        if position >= self.present.len() {
            self.present.resize(position + 1, false);
            self.tokens.resize((position + 1) * self.tokens_per_obs, 0);
        }
        self.present[position] = true;
        self.tokens[position * self.tokens_per_obs..][..self.tokens_per_obs]
            .copy_from_slice(tokens);
    }

    #[cfg(test)]
    pub(super) fn allocated_bytes(&self) -> usize {
        self.present.capacity() + self.tokens.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_cached_by_position() {
        let mut cache = TokenCache::new(2);
        cache.put(0, 3, &[1, 2]);
        cache.put(0, 1, &[3, 4]);
        assert_eq!(cache.get(0, 3), Some(&[1, 2][..]));
        assert_eq!(cache.get(0, 1), Some(&[3, 4][..]));
        assert!(
            [0, 2, 4, 1000]
                .iter()
                .all(|&position| cache.get(0, position).is_none())
        );
    }

    #[test]
    fn only_a_new_generation_clears_the_cache() {
        let mut cache = TokenCache::new(1);
        cache.put(5, 0, &[1]);
        cache.put(5, 2, &[2]);
        // A lookup of another generation finds nothing and clears nothing.
        assert!(cache.get(4, 0).is_none() && cache.get(6, 0).is_none());
        assert_eq!(cache.get(5, 0), Some(&[1][..]));
        cache.put(5, 900, &[3]);
        assert_eq!(cache.get(5, 2), Some(&[2][..]));

        cache.put(6, 1, &[4]);
        assert_eq!(cache.get(6, 1), Some(&[4][..]));
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&position| cache.get(6, position).is_none())
        );
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&position| cache.get(5, position).is_none())
        );
        // Growing over a position of the old generation does not restore it.
        cache.put(6, 901, &[5]);
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&position| cache.get(6, position).is_none())
        );
    }

    #[test]
    #[should_panic(expected = "generation 1 is older than 2")]
    fn tokens_of_an_older_generation_panic() {
        let mut cache = TokenCache::new(1);
        cache.put(2, 0, &[1]);
        cache.put(1, 1, &[1]);
    }
}
