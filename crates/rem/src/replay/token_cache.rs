//! Tokens of frames, kept exactly as long as the weights of the tokenizer that made them.

pub(super) struct TokenCache {
    tokens_per_obs: usize,
    /// The tokenizer weights that all cached tokens come from.
    generation: u64,
    present: Vec<bool>,
    /// `tokens_per_obs` for each place of `present`.
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

    pub(super) fn get(&self, generation: u64, place: usize) -> Option<&[u16]> {
        let present =
            generation == self.generation && self.present.get(place).copied().unwrap_or(false);
        present.then(|| &self.tokens[place * self.tokens_per_obs..][..self.tokens_per_obs])
    }

    pub(super) fn put(&mut self, generation: u64, place: usize, tokens: &[u16]) {
        assert_eq!(
            tokens.len(),
            self.tokens_per_obs,
            "another number of tokens than the replay's"
        );
        assert!(
            generation >= self.generation,
            "tokens of generation {generation} come after {}",
            self.generation
        );
        if generation > self.generation {
            self.generation = generation;
            // The allocations stay: the new generation will fill them again.
            self.present.clear();
            self.tokens.clear();
        }
        if place >= self.present.len() {
            self.present.resize(place + 1, false);
            self.tokens.resize((place + 1) * self.tokens_per_obs, 0);
        }
        self.present[place] = true;
        self.tokens[place * self.tokens_per_obs..][..self.tokens_per_obs].copy_from_slice(tokens);
    }

    pub(super) fn resident_bytes(&self) -> usize {
        self.present.capacity() + self.tokens.capacity() * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_kept_place_by_place() {
        let mut cache = TokenCache::new(2);
        cache.put(0, 3, &[1, 2]);
        cache.put(0, 1, &[3, 4]);
        assert_eq!(cache.get(0, 3), Some(&[1, 2][..]));
        assert_eq!(cache.get(0, 1), Some(&[3, 4][..]));
        assert!(
            [0, 2, 4, 1000]
                .iter()
                .all(|&place| cache.get(0, place).is_none())
        );
    }

    #[test]
    fn tokens_die_with_their_generation_and_only_then() {
        let mut cache = TokenCache::new(1);
        cache.put(5, 0, &[1]);
        cache.put(5, 2, &[2]);
        // Asking for another generation finds nothing and drops nothing.
        assert!(cache.get(4, 0).is_none() && cache.get(6, 0).is_none());
        assert_eq!(cache.get(5, 0), Some(&[1][..]));
        cache.put(5, 900, &[3]);
        assert_eq!(cache.get(5, 2), Some(&[2][..]));

        cache.put(6, 1, &[4]);
        assert_eq!(cache.get(6, 1), Some(&[4][..]));
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&place| cache.get(6, place).is_none())
        );
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&place| cache.get(5, place).is_none())
        );
        // Growing over a place of the old generation does not revive it.
        cache.put(6, 901, &[5]);
        assert!(
            [0, 2, 900]
                .iter()
                .all(|&place| cache.get(6, place).is_none())
        );
    }

    #[test]
    #[should_panic(expected = "generation 1 come after 2")]
    fn tokens_of_a_past_generation_are_refused() {
        let mut cache = TokenCache::new(1);
        cache.put(2, 0, &[1]);
        cache.put(1, 1, &[1]);
    }
}
