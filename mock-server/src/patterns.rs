//! Patterns as programs on Unix write them: globs on names, and extended regular expressions.

use std::{iter::Peekable, str::Chars};

use regex_lite::Regex;

/// How much memory a pattern may take once it is compiled; nested counts multiply, and a long line takes as much longer.
const COMPILED: usize = 512 << 10;

/// Reads a glob such as `*.p[yi]`; nothing if it cannot be read.
pub(crate) fn glob(pattern: &str) -> Option<Regex> {
    let mut chars = pattern.chars().peekable();
    let mut out = String::from("(?s)^");
    while let Some(next) = chars.next() {
        match next {
            '*' => out.push_str(".*"),
            '?' => out.push('.'),
            '[' => bracket(&mut chars, &mut out, Brackets::Glob)?,
            '\\' => literal(chars.next()?, &mut out),
            other => literal(other, &mut out),
        }
    }
    out.push('$');
    compile(&out)
}

/// Reads an extended regular expression of POSIX, with `\w`, `\s`, `\b` and their opposites as GNU has them besides;
/// nothing if it cannot be read. There are no back-references.
pub(crate) fn extended(pattern: &str) -> Option<Regex> {
    let mut chars = pattern.chars().peekable();
    let mut out = String::new();
    while let Some(next) = chars.next() {
        match next {
            '[' => bracket(&mut chars, &mut out, Brackets::Expression)?,
            '(' => out.push_str("(?:"),
            '{' => interval(&mut chars, &mut out),
            '\\' => match chars.next()? {
                known @ ('w' | 'W' | 's' | 'S' | 'b' | 'B') => out.extend(['\\', known]),
                other if other.is_ascii_alphanumeric() => return None,
                other => literal(other, &mut out),
            },
            special @ ('^' | '$' | '.' | '*' | '+' | '?' | '|' | ')') => out.push(special),
            other => literal(other, &mut out),
        }
    }
    compile(&out)
}

fn compile(pattern: &str) -> Option<Regex> {
    regex_lite::RegexBuilder::new(pattern).size_limit(COMPILED).build().ok()
}

fn literal(one: char, out: &mut String) {
    if one.is_ascii_punctuation() && !matches!(one, '<' | '>') {
        out.push('\\');
    }
    out.push(one);
}

/// `{2}`, `{2,}`, `{,3}` and `{2,3}`; anything else after the brace is what it is.
fn interval(chars: &mut Peekable<Chars<'_>>, out: &mut String) {
    let rest: String = chars.clone().take_while(|one| *one != '}').collect();
    let is_closed = chars.clone().nth(rest.chars().count()) == Some('}');
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (least, most) = match rest.split_once(',') {
        Some((least, most)) => (least, Some(most)),
        None => (rest.as_str(), None),
    };
    let is_interval = is_number(least)
        && most.is_none_or(is_number)
        && !(least.is_empty() && most.is_none_or(str::is_empty));
    if !is_closed || !is_interval {
        return out.push_str("\\{");
    }
    let least = if least.is_empty() { "0" } else { least };
    match most {
        Some(most) => out.push_str(&format!("{{{least},{most}}}")),
        None => out.push_str(&format!("{{{least}}}")),
    }
    chars.by_ref().take(rest.chars().count() + 1).for_each(drop);
}

#[derive(Clone, Copy, PartialEq)]
enum Brackets {
    /// `!` opens the opposite, too, and a backslash takes the next as it is.
    Glob,
    Expression,
}

/// What is between brackets; the opening one was read.
fn bracket(chars: &mut Peekable<Chars<'_>>, out: &mut String, kind: Brackets) -> Option<()> {
    out.push('[');
    if chars.next_if(|one| *one == '^' || (*one == '!' && kind == Brackets::Glob)).is_some() {
        out.push('^');
    }
    let mut is_first = true;
    loop {
        match chars.next()? {
            ']' if !is_first => break,
            '[' if chars.peek() == Some(&':') => {
                let class: String = chars.by_ref().take_while(|one| *one != ']').collect();
                // `regex_lite` says whether there is such a class; one that is not closed is not read so.
                if !class.ends_with(':') || class.len() < 2 {
                    return None;
                }
                out.push_str(&format!("[{class}]"));
            }
            // Collating symbols and classes of equal letters depend on the language.
            '[' if matches!(chars.peek(), Some('.' | '=')) => return None,
            '\\' if kind == Brackets::Glob => literal(chars.next()?, out),
            // A range, unless it stands first or last.
            '-' if !is_first && chars.peek() != Some(&']') => out.push('-'),
            other => literal(other, out),
        }
        is_first = false;
    }
    out.push(']');
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn fits(read: fn(&str) -> Option<Regex>, pattern: &str, yes: &[&str], no: &[&str]) {
        let compiled = read(pattern).unwrap_or_else(|| panic!("{pattern} is not read"));
        for text in yes {
            assert!(compiled.is_match(text), "{pattern} does not fit {text}");
        }
        for text in no {
            assert!(!compiled.is_match(text), "{pattern} fits {text}");
        }
    }

    #[test]
    fn globs_fit_whole_names() {
        fits(glob, "*.py", &["a.py", ".py", "a.b.py", "ä\n.py"], &["a.pyc", "apy", "a.PY"]);
        fits(glob, "?", &["a", "ü", "?"], &["", "ab"]);
        fits(glob, "a**b", &["ab", "axxb"], &["a"]);
        fits(glob, "[a-c]x", &["ax", "cx"], &["dx", "-x", "x"]);
        fits(glob, "[!a-c]x", &["dx", "!x"], &["ax"]);
        fits(glob, "[]x]", &["]", "x"], &["[]x]"]);
        fits(glob, "[a-]", &["a", "-"], &["b"]);
        fits(glob, r"[\]]", &["]"], &["\\"]);
        fits(glob, r"\*", &["*"], &["a", r"\*"]);
        fits(glob, "a+(b)|{c}^$.", &["a+(b)|{c}^$."], &["aab", "a"]);
        fits(glob, "[[:digit:]]*", &["1a"], &["a1"]);
        for bad in ["[", "[a", "a\\", "[]", "[[:nothing:]]", "[[:digit:", "[[.a.]]", "[z-a]"] {
            assert!(glob(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn expressions_are_those_of_posix() {
        fits(extended, "^a+b?$", &["aab", "a"], &["b", "abb"]);
        fits(extended, "(ab|c){2}", &["abc", "xabab"], &["ab"]);
        fits(extended, "a{,2}$", &["", "aa"], &[]);
        fits(extended, "^a{2,}$", &["aa", "aaaa"], &["a"]);
        fits(extended, "a{b", &["a{b"], &["ab"]);
        fits(extended, "a{}", &["a{}"], &["a"]);
        fits(extended, r"[\d]", &["d", "\\"], &["1"]);
        fits(extended, "[]^-]", &["]", "^", "-"], &["a"]);
        fits(extended, "[[:alpha:]_]+[[:space:]]", &["ab_ "], &["1 ", "ab"]);
        fits(extended, r"\w\.\(\<", &["a.(<"], &["a_(<"]);
        fits(extended, r"\bcat\b", &["a cat."], &["concat"]);
        fits(extended, "a~b&&c#-<>", &["a~b&&c#-<>"], &[]);
        for bad in
            ["(", ")", "a|(b", "[a", "*", "a\\", r"(a)\1", r"\d", "(?i)a", "[z-a]", "((a{900}){900}){900}"]
        {
            assert!(extended(bad).is_none(), "{bad}");
        }
    }
}
