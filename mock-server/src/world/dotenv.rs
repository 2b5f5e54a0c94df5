//! `.env` text: variables as people write them into files, one `NAME=value` a line.
//!
//! The rules are those that the common readers agree on: blank lines and lines that begin with `#` are skipped; `export `
//! before a name is skipped; white space around the name and the value is not part of them. A value without quotes ends at
//! the end of the line or before a `#` that follows white space. One in single quotes is taken as it stands. In one in
//! double quotes `\n`, `\r`, `\t`, `\"`, `\\` and `\$` stand for the character; any other backslash is itself. Both may go
//! over several lines, and only white space and a comment may follow them. Nothing is expanded: `$` is a dollar. Of a name
//! that comes twice, the last counts.

use std::{collections::BTreeMap, fmt, ops::Range};

/// A variable, and the bytes of the text that it takes up, the end of its last line included.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    name: String,
    value: String,
    span: Range<usize>,
}

/// A line that is no variable; its content is not repeated, since it may be a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadLine {
    /// Counted from 1.
    pub(crate) line: usize,
    why: &'static str,
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "has a line {} that {}", self.line, self.why)
    }
}

/// The variables of a text.
pub(crate) fn parse(text: &str) -> Result<BTreeMap<String, String>, BadLine> {
    Ok(entries(text)?.into_iter().map(|entry| (entry.name, entry.value)).collect())
}

/// The text with one variable set: in the place where it was last, or at the end.
pub(crate) fn set(text: &str, name: &str, value: &str) -> Result<String, BadLine> {
    let mut found = entries(text)?;
    found.retain(|entry| entry.name == name);
    let line = format!("{name}={}\n", quoted(value));
    let Some(last) = found.pop() else {
        let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return Ok(format!("{text}{gap}{line}"));
    };
    let mut changed = text.to_owned();
    changed.replace_range(last.span, &line);
    for entry in found.into_iter().rev() {
        changed.replace_range(entry.span, "");
    }
    Ok(changed)
}

/// The text without a variable; `None` if it is not there.
pub(crate) fn unset(text: &str, name: &str) -> Result<Option<String>, BadLine> {
    let mut found = entries(text)?;
    found.retain(|entry| entry.name == name);
    if found.is_empty() {
        return Ok(None);
    }
    let mut changed = text.to_owned();
    for entry in found.into_iter().rev() {
        changed.replace_range(entry.span, "");
    }
    Ok(Some(changed))
}

/// A value as it is written, so that it is read as it was and by other readers alike.
fn quoted(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:@%+,=".contains(&byte);
    if value.bytes().all(is_plain) {
        return value.to_owned();
    }
    if !value.contains(['\'', '\n', '\r']) {
        return format!("'{value}'");
    }
    let mut text = String::from("\"");
    for character in value.chars() {
        match character {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            '"' | '\\' | '$' => text.extend(['\\', character]),
            other => text.push(other),
        }
    }
    text.push('"');
    text
}

fn entries(text: &str) -> Result<Vec<Entry>, BadLine> {
    let mut reader = Reader { text, at: 0 };
    let mut found = Vec::new();
    while reader.at < text.len() {
        found.extend(reader.entry()?);
    }
    Ok(found)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn bad(&self, at: usize, why: &'static str) -> BadLine {
        BadLine { line: self.text[..at].matches('\n').count() + 1, why }
    }

    /// White space that is no end of a line.
    fn skip_blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\u{feff}']).len();
    }

    /// What is left of the line, which is then behind.
    fn rest_of_line(&mut self) -> &'a str {
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at += (line.len() + 1).min(rest.len());
        line
    }

    /// Reads a line, or the lines of one variable.
    fn entry(&mut self) -> Result<Option<Entry>, BadLine> {
        let start = self.at;
        self.skip_blanks();
        if self.rest().is_empty() || self.rest().starts_with(['\n', '#']) {
            self.rest_of_line();
            return Ok(None);
        }
        if let Some(after) = self.rest().strip_prefix("export")
            && after.starts_with([' ', '\t'])
        {
            self.at += "export".len();
            self.skip_blanks();
        }
        let rest = self.rest();
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let length = rest.bytes().take_while(|byte| is_part(*byte)).count();
        let name = &rest[..length];
        if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
            return Err(self.bad(start, "does not begin with the name of a variable"));
        }
        self.at += length;
        self.skip_blanks();
        if !self.rest().starts_with('=') {
            return Err(self.bad(start, "has no = after the name"));
        }
        self.at += 1;
        self.skip_blanks();
        let value = match self.rest().chars().next() {
            Some(quote @ ('"' | '\'')) => self.in_quotes(quote, start)?,
            _ => bare(self.rest_of_line()).to_owned(),
        };
        Ok(Some(Entry { name: name.to_owned(), value, span: start..self.at }))
    }

    fn in_quotes(&mut self, quote: char, start: usize) -> Result<String, BadLine> {
        self.at += 1;
        let mut value = String::new();
        let mut characters = self.rest().char_indices().peekable();
        let mut end = None;
        while let Some((index, character)) = characters.next() {
            if character == quote {
                end = Some(index + 1);
                break;
            }
            let escaped = match (quote, character, characters.peek().map(|(_, next)| *next)) {
                ('"', '\\', Some('n')) => Some('\n'),
                ('"', '\\', Some('r')) => Some('\r'),
                ('"', '\\', Some('t')) => Some('\t'),
                ('"', '\\', Some(itself @ ('"' | '\\' | '$'))) => Some(itself),
                _ => None,
            };
            if escaped.is_some() {
                characters.next();
            }
            value.push(escaped.unwrap_or(character));
        }
        let Some(end) = end else { return Err(self.bad(start, "opens a quote that nothing closes")) };
        self.at += end;
        let behind = self.at;
        let after = self.rest_of_line().trim();
        match after.is_empty() || after.starts_with('#') {
            true => Ok(value),
            false => Err(self.bad(behind, "goes on after a closing quote")),
        }
    }
}

/// A value without quotes: up to a comment, without the white space around it.
fn bare(line: &str) -> &str {
    if line.starts_with('#') {
        return "";
    }
    let comment = line.match_indices('#').find(|(at, _)| line[..*at].ends_with([' ', '\t']));
    line[..comment.map_or(line.len(), |(at, _)| at)].trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<(String, String)> {
        parse(text).unwrap().into_iter().collect()
    }

    #[test]
    fn variables_are_read_as_people_write_them() {
        let cases = [
            ("A=1", "1"),
            ("A = 1 ", "1"),
            ("export A=1\r\n", "1"),
            ("  A=one two # three", "one two"),
            ("A=a#b", "a#b"),
            ("A=", ""),
            ("A= # nothing", ""),
            ("A=#nothing", ""),
            ("A='$B # \"x\\n'  # said", "$B # \"x\\n"),
            ("A=\"x\\ny\\t\\\"\\$\\\\ \\d $B\"", "x\ny\t\"$\\ \\d $B"),
            ("A=\"over\nlines\"", "over\nlines"),
            ("A='over\nlines'", "over\nlines"),
            ("A=it's", "it's"),
            ("A=1\nA=2", "2"),
            ("\u{feff}A=1", "1"),
            ("A=pässe", "pässe"),
        ];
        for (text, value) in cases {
            assert_eq!(read(text), [("A".to_owned(), value.to_owned())], "{text:?}");
        }
        assert!(read("\n# all\n  \n#A=1\n").is_empty());
    }

    #[test]
    fn what_is_no_variable_is_refused_by_its_line_alone() {
        for (text, line) in [
            ("A=1\nhush", 2),
            ("A=1\n\n=hush", 3),
            ("9A=hush", 1),
            ("A-B=hush", 1),
            ("A='hush", 1),
            ("B=1\nA=\"hush\n\n", 2),
            ("A=\"a\nb\" hush", 2),
        ] {
            let refused = parse(text).unwrap_err();
            assert_eq!(refused.line, line, "{text:?}");
            assert!(!refused.to_string().contains("hush"), "{refused}");
        }
    }

    #[test]
    fn setting_and_unsetting_leave_the_rest_as_it_is() {
        let text = "# kept\nA=1\nB=\"two\nlines\" # gone with it\nA=3\nC=4";
        assert_eq!(set(text, "A", "5").unwrap(), "# kept\nB=\"two\nlines\" # gone with it\nA=5\nC=4");
        assert_eq!(set(text, "B", "x y").unwrap(), "# kept\nA=1\nB='x y'\nA=3\nC=4");
        assert_eq!(set(text, "D", "").unwrap(), format!("{text}\nD=\n"));
        assert_eq!(set("", "D", "1").unwrap(), "D=1\n");
        assert_eq!(unset(text, "A").unwrap().unwrap(), "# kept\nB=\"two\nlines\" # gone with it\nC=4");
        assert_eq!(unset(text, "B").unwrap().unwrap(), "# kept\nA=1\nA=3\nC=4");
        assert_eq!(unset(text, "Z").unwrap(), None);
    }

    #[test]
    fn every_value_is_read_as_it_was_set() {
        for value in [
            "",
            "plain",
            "a b",
            "a'b",
            "a\"b",
            "a\nb",
            "\\",
            "\\n",
            "$A",
            "`x`",
            "#",
            " # ",
            "é\u{1f600}\t",
            "\r\n'\"$",
        ] {
            let text = set("X=1\n", "A", value).unwrap();
            assert_eq!(parse(&text).unwrap()["A"], value, "{text:?}");
        }
    }
}
