//! Storage of frames in blocks that are never reallocated. A growing `Vec` of one gigabyte could take up two, and
//! would copy its content.

pub(super) const FRAMES_PER_BLOCK: usize = 256;

pub(super) struct Frames {
    frame_bytes: usize,
    /// Blocks of [`FRAMES_PER_BLOCK`] frames, all full but the last, each allocated once at its full size.
    blocks: Vec<Vec<u8>>,
}

impl Frames {
    pub(super) fn new(frame_bytes: usize) -> Self {
        assert!(frame_bytes > 0, "a frame has at least one byte");
        Self {
            frame_bytes,
            blocks: Vec::new(),
        }
    }

    pub(super) fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    pub(super) fn push(&mut self, frame: &[u8]) {
        assert_eq!(
            frame.len(),
            self.frame_bytes,
            "the frame does not have the size of the replay's frames"
        );
        let block_bytes = FRAMES_PER_BLOCK * self.frame_bytes;
        match self
            .blocks
            .last_mut()
            .filter(|block| block.len() < block_bytes)
        {
            Some(block) => block.extend_from_slice(frame),
            None => {
                let mut block = Vec::with_capacity(block_bytes);
                block.extend_from_slice(frame);
                self.blocks.push(block);
            }
        }
    }

    pub(super) fn get(&self, position: usize) -> &[u8] {
        let start = position % FRAMES_PER_BLOCK * self.frame_bytes;
        &self.blocks[position / FRAMES_PER_BLOCK][start..start + self.frame_bytes]
    }

    #[cfg(test)]
    pub(super) fn allocated_bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(Vec::capacity).sum();
        blocks + self.blocks.capacity() * size_of::<Vec<u8>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_stored_across_block_boundaries() {
        let mut frames = Frames::new(2);
        let count = 2 * FRAMES_PER_BLOCK + 1;
        for position in 0..count {
            frames.push(&(position as u16).to_le_bytes());
        }
        assert!((0..count).all(|position| frames.get(position) == (position as u16).to_le_bytes()));
    }

    #[test]
    fn blocks_are_allocated_at_full_size() {
        let mut frames = Frames::new(12);
        for _ in 0..=FRAMES_PER_BLOCK {
            frames.push(&[0; 12]);
        }
        let blocks: Vec<_> = frames.blocks.iter().map(Vec::capacity).collect();
        assert_eq!(blocks, [12 * FRAMES_PER_BLOCK; 2]);
    }

    #[test]
    #[should_panic(expected = "does not have the size")]
    fn a_frame_of_another_size_panics() {
        Frames::new(12).push(&[0; 11]);
    }
}
