//! Text out of bytes that arrive in pieces, without breaking a character that lies across two of them.

/// Decodes UTF-8 that arrives in pieces.
///
/// A character cut by the end of one piece comes out whole with the next; bytes that are no UTF-8 come out as U+FFFD.
/// The pieces together give exactly what [`String::from_utf8_lossy`] gives for all the bytes at once.
///
/// ```
/// use sandboxer::stream::TextDecoder;
///
/// let mut decoder = TextDecoder::new();
/// let euro = "€".as_bytes();
/// assert_eq!(decoder.decode(&euro[..2]), "");
/// assert_eq!(decoder.decode(&euro[2..]), "€");
/// assert_eq!(decoder.finish(), "");
/// ```
#[derive(Clone, Debug, Default)]
pub struct TextDecoder {
    carry: Vec<u8>,
}

impl TextDecoder {
    /// A decoder at the start of a text.
    pub fn new() -> Self {
        Self::default()
    }

    /// The text that `bytes` complete.
    pub fn decode(&mut self, bytes: &[u8]) -> String {
        if self.carry.is_empty() {
            return self.decode_all(bytes);
        }
        let mut joined = std::mem::take(&mut self.carry);
        joined.extend_from_slice(bytes);
        self.decode_all(&joined)
    }

    /// Ends the text: U+FFFD if it ended inside a character, else nothing. The decoder can be used again.
    pub fn finish(&mut self) -> String {
        let rest = std::mem::take(&mut self.carry);
        String::from_utf8_lossy(&rest).into_owned()
    }

    fn decode_all(&mut self, mut bytes: &[u8]) -> String {
        let mut text = String::with_capacity(bytes.len());
        loop {
            let error = match std::str::from_utf8(bytes) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, rest) = bytes.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            match error.error_len() {
                Some(length) => {
                    text.push(char::REPLACEMENT_CHARACTER);
                    bytes = &rest[length..];
                }
                None => {
                    self.carry = rest.to_vec();
                    return text;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_split_gives_the_lossy_text_of_the_whole() {
        let samples: [&[u8]; 5] = [
            "aé€😀z".as_bytes(),
            b"\xff\xfe ok \xf0\x9f\x98",
            b"\xf0\x9f\x98a\xe2\x82",
            b"\xed\xa0\x80\xc0\x80",
            b"",
        ];
        for sample in samples {
            let whole = String::from_utf8_lossy(sample);
            for first in 0..=sample.len() {
                for second in first..=sample.len() {
                    let mut decoder = TextDecoder::new();
                    let mut text = decoder.decode(&sample[..first]);
                    text += &decoder.decode(&sample[first..second]);
                    text += &decoder.decode(&sample[second..]);
                    text += &decoder.finish();
                    assert_eq!(text, whole, "{sample:?} cut at {first} and {second}");
                }
            }
        }
    }
}
