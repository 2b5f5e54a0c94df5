//! What secrets look like in running text.

use std::{borrow::Cow, sync::LazyLock};

use regex_lite::Regex;

/// How names end that stand in front of a secret; `%name%` below.
const NAMES: &str = "(?:(?:(?:api|access|secret|private|signing|encryption|master|auth)[_-]?|[_-])key|token|secret\
                     |password|passwd|passphrase|[_-]pass|[_-]pwd)(?:_?[0-9]+)?";

/// A value up to its closing quote, or to where a word ends; `%value%` below.
const VALUE: &str = r#"(?:(\\")(?:[^"\\]|\\[^"])*|(")(?:[^"\\]|\\[\s\S])*|(')[^']*|[^\s"'&;]+)"#;

/// What is left of a name and a value: of the value only the quote that opens it.
const NAME_AND_QUOTE: &str = "${1}${2}${3}${4}••••";

/// What secrets look like, and what is left of each.
struct Pattern {
    pattern: &'static str,
    rest: &'static str,
    /// Whether it may fit somewhere in a text of small letters. Most texts hold nothing of the kind, and this is much
    /// cheaper than to try the pattern everywhere.
    may_fit: fn(&str) -> bool,
}

const PATTERNS: [Pattern; 10] = [
    // API keys, of people and of machines; signing secrets; share codes.
    Pattern {
        pattern: r"\b(sbx_live_|whsec_|bsh_)[A-Za-z0-9_\-]+",
        rest: "${1}••••",
        may_fit: |text| has_one_of(text, &["sbx_live_", "whsec_", "bsh_"]),
    },
    // Keys of other services that say by their beginning what they are.
    Pattern {
        pattern: r"\b(sk-|[sr]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-)[A-Za-z0-9_\-]{16,}",
        rest: "${1}••••",
        may_fit: |text| {
            let begins = ["sk-", "k_live_", "k_test_", "github_pat_", "glpat-", "xox"];
            has_one_of(text, &begins) || has_one_of(text, &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"])
        },
    },
    // With a scheme that is known, the scheme is left.
    Pattern {
        pattern: r#"(?i)\b(authorization\\?["']?\s*[:=]\s*(?:\\?["'])?)(?:((?:basic|bearer|token)\s+)[^\s"']+|[^"'\r\n]+)"#,
        rest: "${1}${2}••••",
        may_fit: |text| text.contains("authorization"),
    },
    Pattern {
        pattern: r#"(?i)\b(bearer\s+)[^\s"']{6,}"#,
        rest: "${1}••••",
        may_fit: |text| text.contains("bearer"),
    },
    // Parameters of addresses.
    Pattern {
        pattern: r#"(?i)([?&;]_?[a-z0-9_.\-]*(?:token|signature|secret|key|password|passwd|code|sig)=)[^&\s"'<>#]+"#,
        rest: "${1}••••",
        may_fit: |text| {
            let names = ["token=", "signature=", "secret=", "key=", "password=", "passwd=", "code=", "sig="];
            has_one_of(text, &["?", "&", ";"]) && has_one_of(text, &names)
        },
    },
    // User and password in an address, and as a program is told them.
    Pattern {
        pattern: r"(://)[^/\s@:]*:[^/\s@]+@",
        rest: "${1}••••@",
        may_fit: |text| text.contains("://") && text.contains('@'),
    },
    Pattern {
        pattern: r#"((?:^|\s)(?:-u\s+|--user[\s=]+)["']?[^\s:"'/]+:)[^\s"']+"#,
        rest: "${1}••••",
        may_fit: |text| text.contains("-u") && text.contains(':'),
    },
    // Settings as people write them in front of a command, into a file or a header.
    Pattern {
        pattern: r#"(?i)\b([a-z0-9_.\-]*(?:%name%\\?["']?\s*(?:=>|[=:])|pass(?:\\?["']\s*[=:]|\s*=))\s*)%value%"#,
        rest: NAME_AND_QUOTE,
        may_fit: may_set,
    },
    Pattern {
        pattern: r"(?i)(--[a-z0-9_\-]*(?:%name%|pass)[ \t]+)%value%",
        rest: NAME_AND_QUOTE,
        may_fit: |text| text.contains("--") && has_one_of(text, &ENDS_OF_NAMES),
    },
    Pattern {
        pattern: r"(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(-----END [A-Z ]*PRIVATE KEY-----|\z)",
        rest: "${1}••••${2}",
        may_fit: |text| text.contains("-----begin "),
    },
];

/// What the names of [`NAMES`] end in, and `pass`, but for numbers.
const ENDS_OF_NAMES: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "passphrase", "pass", "pwd"];

fn has_one_of(text: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| text.contains(part))
}

/// Whether a name is followed by what sets it somewhere.
fn may_set(text: &str) -> bool {
    let is_set = |rest: &str| {
        let rest = rest.trim_start_matches(|one: char| one == '_' || one.is_ascii_digit());
        let rest = rest.strip_prefix('\\').unwrap_or(rest);
        rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start().starts_with(['=', ':'])
    };
    ENDS_OF_NAMES
        .iter()
        .any(|name| text.match_indices(name).any(|(at, name)| is_set(&text[at + name.len()..])))
}

fn compile(pattern: &str) -> Option<Regex> {
    Regex::new(&pattern.replace("%name%", NAMES).replace("%value%", VALUE)).ok()
}

static HIDING: LazyLock<Vec<(Regex, &Pattern)>> = LazyLock::new(|| {
    PATTERNS.iter().filter_map(|pattern| Some((compile(pattern.pattern)?, pattern))).collect()
});

static NAME: LazyLock<Option<Regex>> = LazyLock::new(|| compile("(?i)(?:%name%|pass|authorization)$"));

/// Text without what looks like a secret in it.
pub(super) fn hide(text: &str) -> String {
    // What takes the place of a secret has nothing in it that a pattern looks for.
    let small = text.to_ascii_lowercase();
    let mut shown = Cow::Borrowed(text);
    for (pattern, Pattern { rest, may_fit, .. }) in HIDING.iter() {
        if may_fit(&small)
            && let Cow::Owned(changed) = pattern.replace_all(&shown, *rest)
        {
            shown = Cow::Owned(changed);
        }
    }
    shown.into_owned()
}

/// Whether what a field of this name holds is a secret.
pub(super) fn is_name(name: &str) -> bool {
    NAME.as_ref().is_none_or(|pattern| pattern.is_match(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert_eq!(HIDING.len(), PATTERNS.len());
        assert!(NAME.is_some());
    }

    #[test]
    fn no_pattern_is_passed_over_where_it_fits() {
        for text in [
            "sbx_live_a",
            "whsec_a",
            "bsh_a",
            "sk-0123456789abcdef",
            "rk_test_0123456789abcdef",
            "sk_live_0123456789abcdef",
            "ghp_0123456789abcdef gho_0123456789abcdef",
            "ghu_0123456789abcdef",
            "ghs_0123456789abcdef",
            "ghr_0123456789abcdef",
            "github_pat_0123456789abcdef",
            "glpat-0123456789abcdef",
            "xoxb-0123456789abcdef",
            "AUTHORIZATION= x",
            "BEARER\tabcdef",
            "a&X-Amz-Signature=x",
            "?Code=1",
            ";passwd=1",
            "redis://:pw@host",
            "--user=me:pw",
            "x\n-u\tme:pw",
            "Api_Key_2\\\" => x",
            "DB_PASS\n= x",
            "'PASSPHRASE' : 'x'",
            "my-pwd12:x",
            "--DB-PASS x",
            "--ssh-key\tx",
            "-----BEGIN RSA PRIVATE KEY-----x",
        ] {
            let small = text.to_ascii_lowercase();
            let fitting: Vec<_> = HIDING.iter().filter(|(pattern, _)| pattern.is_match(text)).collect();
            assert!(!fitting.is_empty(), "{text}");
            for (_, pattern) in fitting {
                assert!((pattern.may_fit)(&small), "{} is passed over in {text}", pattern.pattern);
            }
        }
        let plain = "fn main() { println!(\"keys and tokens: {}\", 1); } // passed, 100 %\n".repeat(9);
        let tried: Vec<_> = PATTERNS.iter().filter(|pattern| (pattern.may_fit)(&plain)).collect();
        assert!(tried.is_empty(), "{:?}", tried.iter().map(|it| it.pattern).collect::<Vec<_>>());
    }

    #[test]
    fn secrets_are_hidden_in_running_text() {
        for (given, shown) in [
            ("key sbx_live_abc123 end", "key sbx_live_•••• end"),
            ("curl -H 'Authorization: Bearer abc.def' x", "curl -H 'Authorization: Bearer ••••' x"),
            ("curl -H 'Authorization: s3cret words' x", "curl -H 'Authorization: ••••' x"),
            (r#"{"authorization":"Basic abc="}"#, r#"{"authorization":"Basic ••••"}"#),
            ("GET /x?_token=abc&y=1", "GET /x?_token=••••&y=1"),
            ("https://me:pass@host/x", "https://••••@host/x"),
            ("curl -u me:pass host", "curl -u me:•••• host"),
            ("SECRET_TOKEN=abcdef run", "SECRET_TOKEN=•••• run"),
            ("\"password\": \"hunter2\"}", "\"password\": \"••••\"}"),
            ("bsh_0123 sent", "bsh_•••• sent"),
            ("whsec_0123456789", "whsec_••••"),
            ("is sk_live_0123456789abcdef now", "is sk_live_•••• now"),
        ] {
            assert_eq!(hide(given), shown);
        }
        let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----";
        assert!(!hide(key).contains("abc"));
        assert!(!hide(&key[..40]).contains("abc"));
    }

    #[test]
    fn a_value_ends_with_its_quote() {
        for (given, shown) in [
            ("PASSWORD='two words here' run", "PASSWORD='••••' run"),
            (r#"PASSWORD="two \"quoted\" words" run"#, r#"PASSWORD="••••" run"#),
            (r#"{"token":"a b c","page":2}"#, r#"{"token":"••••","page":2}"#),
            (r#"-d "{\"token\":\"a b c\"}" x"#, r#"-d "{\"token\":\"••••\"}" x"#),
            ("'secret' => 'a b', 'x' => 'y'", "'secret' => '••••', 'x' => 'y'"),
            // The rest was cut off.
            ("TOKEN='two wor", "TOKEN='••••"),
            ("TOKEN=\"two wor", "TOKEN=\"••••"),
        ] {
            assert_eq!(hide(given), shown);
        }
    }

    #[test]
    fn names_say_what_is_secret() {
        for (given, shown) in [
            ("-H 'X-Api-Key: s3cret'", "-H 'X-Api-Key: ••••'"),
            ("DB_PASS=hunter2 run", "DB_PASS=•••• run"),
            ("PGPASS=hunter2", "PGPASS=••••"),
            (r#"{"pass": "hunter2"}"#, r#"{"pass": "••••"}"#),
            ("MYSQL_PWD=hunter2", "MYSQL_PWD=••••"),
            ("OPENAI_KEY=sk-abcdef", "OPENAI_KEY=••••"),
            ("STRIPE_SECRET_KEY=sk_live_abc", "STRIPE_SECRET_KEY=••••"),
            ("JWT_SIGNING_KEY=abc", "JWT_SIGNING_KEY=••••"),
            ("API_KEY_2=abc", "API_KEY_2=••••"),
            ("secretKey: abc", "secretKey: ••••"),
            ("login --password hunter2 --verbose", "login --password •••• --verbose"),
            ("login --db-pass 'two words'", "login --db-pass '••••'"),
            ("login --access-token=abc", "login --access-token=••••"),
        ] {
            assert_eq!(hide(given), shown);
        }
        for plain in [
            "basic usage and a token in prose",
            "nothing to hide = here: at all",
            "PASS: test_one",
            "PWD=/home/user OLDPWD=/tmp",
            "{\"inputTokens\":5,\"monkey\":1}",
            "cat key.txt --keyboard 5",
            "task-0123456789abcdef0123",
        ] {
            assert_eq!(hide(plain), plain);
        }
    }
}
