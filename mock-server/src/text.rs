//! Bytes to text at the edge where the protocol wants text.

/// The longest beginning of a text of at most so many bytes that ends with a whole character.
pub(crate) fn head(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The longest end of a text of at most so many bytes that begins with a whole character.
pub(crate) fn tail(text: &str, most: usize) -> &str {
    let mut from = text.len().saturating_sub(most);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    &text[from..]
}

/// Turns bytes that arrive in pieces into text, holding back a character until it is whole.
#[derive(Debug, Default)]
pub(crate) struct Decoder {
    held: Vec<u8>,
}

impl Decoder {
    /// The text that `bytes` complete; what can never become a character comes out as U+FFFD.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = if self.held.is_empty() {
            bytes
        } else {
            self.held.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.held);
            &joined[..]
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, broken) = rest.split_at(error.valid_up_to());
                    text.push_str(&String::from_utf8_lossy(valid));
                    match error.error_len() {
                        Some(length) => {
                            text.push(char::REPLACEMENT_CHARACTER);
                            rest = &broken[length..];
                        }
                        None => {
                            self.held = broken.to_vec();
                            return text;
                        }
                    }
                }
            }
        }
    }

    /// How many bytes are held back.
    pub(crate) fn held(&self) -> usize {
        self.held.len()
    }

    /// What is held back, now that nothing follows.
    pub(crate) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.held)).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_text_has_whole_characters() {
        assert_eq!((head("aé€", 9), head("aé€", 5), head("aé€", 2), head("é", 1)), ("aé€", "aé", "a", ""));
        assert_eq!((tail("€éa", 9), tail("€éa", 5), tail("€éa", 2), tail("é", 1)), ("€éa", "éa", "a", ""));
    }

    #[test]
    fn a_character_cut_anywhere_arrives_whole() {
        let whole = "a🦀é";
        for cut in 0..=whole.len() {
            let mut decoder = Decoder::default();
            let mut text = decoder.feed(&whole.as_bytes()[..cut]);
            text += &decoder.feed(&whole.as_bytes()[cut..]);
            assert_eq!((text.as_str(), decoder.held()), (whole, 0), "cut at {cut}");
        }
        let mut decoder = Decoder::default();
        let bytewise: String = whole.bytes().map(|byte| decoder.feed(&[byte])).collect();
        assert_eq!(bytewise, whole);
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        let mut decoder = Decoder::default();
        assert_eq!(decoder.feed(b"a\xff\xfeb\xf0\x9f"), "a\u{fffd}\u{fffd}b");
        assert_eq!(decoder.held(), 2);
        assert_eq!(decoder.feed(b"c"), "\u{fffd}c");
        assert_eq!(decoder.feed(b"\xe2\x82"), "");
        assert_eq!(decoder.finish(), "\u{fffd}");
        assert_eq!(decoder.finish(), "");
    }
}
