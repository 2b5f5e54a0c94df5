//! Methods and impls that a crate's own `macro_rules!` write.

use std::collections::BTreeMap;

use proc_macro2::{Group, TokenStream, TokenTree};
use syn::{Item, Macro};

/// The crate's macros, by name.
#[derive(Debug, Default)]
pub(super) struct Macros(BTreeMap<String, Rule>);

/// The only rule of a macro.
#[derive(Debug)]
struct Rule {
    /// The names before any repetition, in order.
    names: Vec<String>,
    body: TokenStream,
}

impl Macros {
    /// Takes in the macros among these items.
    pub(super) fn collect(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Macro(item) = item
                && item.mac.path.is_ident("macro_rules")
                && let Some(name) = &item.ident
                && let Some(rule) = Rule::of(item.mac.tokens.clone())
            {
                self.0.insert(name.to_string(), rule);
            }
        }
    }

    /// What a use of a macro becomes, without what it repeats: enough for declarations, not for what is inside
    /// functions. `None` for a macro from elsewhere.
    pub(super) fn expand(&self, used: &Macro) -> Option<TokenStream> {
        let rule = self.0.get(&used.path.segments.last()?.ident.to_string())?;
        let values = split(used.tokens.clone());
        let values = rule.names.iter().map(String::as_str).zip(values).collect();
        Some(fill(rule.body.clone(), &values))
    }
}

impl Rule {
    /// Of `(matcher) => { body };`; `None` if there are more rules.
    fn of(tokens: TokenStream) -> Option<Self> {
        let trees: Vec<TokenTree> = tokens.into_iter().collect();
        let groups: Vec<&Group> = trees.iter().filter_map(group).collect();
        let [matcher, body] = groups[..] else { return None };
        let (mut names, mut dollar) = (Vec::new(), false);
        for tree in matcher.stream() {
            match &tree {
                TokenTree::Ident(name) if dollar => names.push(name.to_string()),
                TokenTree::Group(_) if dollar => break,
                _ => {}
            }
            dollar = is_dollar(&tree);
        }
        Some(Self { names, body: body.stream() })
    }
}

/// Puts values in the place of names, and leaves out repetitions.
fn fill(body: TokenStream, values: &BTreeMap<&str, TokenStream>) -> TokenStream {
    let mut trees = body.into_iter().peekable();
    let mut filled = TokenStream::new();
    while let Some(tree) = trees.next() {
        match tree {
            tree if is_dollar(&tree) => match trees.next() {
                Some(TokenTree::Ident(name)) => match values.get(name.to_string().as_str()) {
                    Some(value) => filled.extend(value.clone()),
                    // `$crate`, or something in a repetition that is left out.
                    None => filled.extend([TokenTree::Ident(name)]),
                },
                // A repetition ends with `*`, `+` or `?`; a separator may come before it.
                Some(TokenTree::Group(_)) => {
                    trees
                        .by_ref()
                        .find(|tree| matches!(tree, TokenTree::Punct(p) if "*+?".contains(p.as_char())));
                }
                _ => {}
            },
            TokenTree::Group(group) => {
                let inside = fill(group.stream(), values);
                filled.extend([TokenTree::Group(Group::new(group.delimiter(), inside))]);
            }
            tree => filled.extend([tree]),
        }
    }
    filled
}

/// The arguments between commas.
fn split(tokens: TokenStream) -> Vec<TokenStream> {
    let mut parts = vec![TokenStream::new()];
    for tree in tokens {
        match &tree {
            TokenTree::Punct(punct) if punct.as_char() == ',' => parts.push(TokenStream::new()),
            _ => parts.last_mut().into_iter().for_each(|part| part.extend([tree.clone()])),
        }
    }
    parts
}

fn group(tree: &TokenTree) -> Option<&Group> {
    match tree {
        TokenTree::Group(group) => Some(group),
        _ => None,
    }
}

fn is_dollar(tree: &TokenTree) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == '$')
}
