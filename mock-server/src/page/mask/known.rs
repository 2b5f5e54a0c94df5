//! Secrets that the server knows word for word.

use std::{borrow::Cow, collections::HashMap, iter};

use super::HIDDEN;
use crate::space::HOME;

/// The shortest secret, in bytes, that is looked for: shorter ones are words of any text.
const SHORTEST: usize = 6;

/// Some secrets, by how they begin; the longest of each kind come first.
#[derive(Default)]
pub(super) struct Known(HashMap<[u8; SHORTEST], Vec<String>>);

impl Known {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut by_start: HashMap<_, Vec<String>> = HashMap::new();
        for secret in secrets {
            let whole = secret.trim();
            // What has several lines may be printed line by line.
            for part in iter::once(whole).chain(whole.lines().map(str::trim)) {
                // By its frame, a private key is known for one.
                let is_frame = part.starts_with("-----") && !part.contains('\n');
                if let Some(start) = part.as_bytes().first_chunk()
                    && !is_frame
                    && part != HOME
                {
                    by_start.entry(*start).or_default().push(part.to_owned());
                }
            }
        }
        for parts in by_start.values_mut() {
            parts.sort_unstable_by(|a, b| (b.len(), a).cmp(&(a.len(), b)));
            parts.dedup();
        }
        Self(by_start)
    }

    /// Text without them; one that is cut off by the end of the text is hidden, too.
    pub(super) fn hide<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(text);
        }
        let bytes = text.as_bytes();
        let (mut shown, mut from, mut at) = (String::new(), 0, 0);
        while let Some(start) = bytes[at..].first_chunk() {
            match self.0.get(start).and_then(|parts| length_at(parts, &bytes[at..])) {
                Some(length) => {
                    // Both ends of what is whole text lie between characters.
                    shown.push_str(&text[from..at]);
                    shown.push_str(HIDDEN);
                    at += length;
                    from = at;
                }
                None => at += 1,
            }
        }
        match from {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(shown + &text[from..]),
        }
    }

    /// How many of the first bytes belong to one whose beginning was cut off; only those are looked for that are more than
    /// a word, or a long one.
    pub(super) fn begun(&self, bytes: &[u8], long: usize) -> usize {
        let secrets = self.0.values().flatten().map(String::as_bytes);
        let lasting = secrets.filter(|it| it.len() > long || it.iter().any(u8::is_ascii_whitespace));
        let ends = lasting.filter_map(|secret| {
            let end = (1..secret.len()).map(|from| &secret[from..]).find(|end| bytes.starts_with(end));
            end.map(<[u8]>::len)
        });
        ends.max().unwrap_or(0)
    }
}

fn length_at(parts: &[String], rest: &[u8]) -> Option<usize> {
    let part = parts.iter().map(String::as_bytes).find(|it| rest.starts_with(it) || it.starts_with(rest));
    part.map(|part| part.len().min(rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(secrets: &[&str]) -> Known {
        Known::new(secrets.iter().copied())
    }

    #[test]
    fn they_are_hidden_wherever_they_stand() {
        let known = known(&["hunter2", "hunter2-longer", "short", HOME, "two words", "gehéim", " padded \n"]);
        for (given, shown) in [
            ("say hunter2, hunter2hunter2", "say ••••, ••••••••"),
            ("hunter2-longer", "••••"),
            ("éé two words éé", "éé •••• éé"),
            ("das gehéim war", "das •••• war"),
            ("x padded y", "x •••• y"),
            ("short /home/user/x Hunter2", "short /home/user/x Hunter2"),
            // Cut off.
            ("say hunter", "say ••••"),
            ("say hunte", "say hunte"),
            ("", ""),
        ] {
            assert_eq!(known.hide(given), shown);
        }
        assert_eq!(Known::default().hide("hunter2"), "hunter2");
    }

    #[test]
    fn lines_are_hidden_whole_and_alone() {
        let known = known(&["machine x\n  login me\nab\n", "-----BEGIN PRIVATE KEY-----\nabcdefgh\n"]);
        assert_eq!(known.hide("<machine x\n  login me\nab>"), "<••••>");
        assert_eq!(known.hide("grep: login me."), "grep: ••••.");
        let other = "-----BEGIN PRIVATE KEY-----\nof another";
        assert_eq!(known.hide(other), other);
        assert_eq!(known.hide("has abcdefgh"), "has ••••");
    }

    #[test]
    fn the_end_of_one_that_was_cut_is_found() {
        let known = known(&["correct horse battery", "longlonglong", "word77"]);
        for (given, length) in
            [("rse battery then", 11), (" battery", 8), ("glong x", 5), ("ord77 x", 0), ("then", 0)]
        {
            assert_eq!(known.begun(given.as_bytes(), 10), length, "{given}");
        }
    }
}
