//! What a crate shows, read from its source, and how two such surfaces differ.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use quote::ToTokens as _;
use syn::{
    Attribute, Expr, ExprLit, FnArg, ImplItem, Item, ItemImpl, Lit, Meta, Pat, ReceiverKind, ReturnType,
    Signature, Type, UseTree, Visibility, visit_mut::VisitMut,
};

/// What is allowed to differ. Each entry ends with its reason.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rules<'a> {
    pub(crate) renamed: &'a [(&'a str, &'a str, &'a str)],
    pub(crate) different: &'a [(&'a str, &'a str, &'a str)],
    pub(crate) extra: &'a [(&'a str, &'a str, &'a str)],
}

impl Rules<'_> {
    /// The name of an async type, or of anything else, in the twin.
    fn twin_name(&self, name: &str) -> String {
        match self.renamed.iter().find(|(from, ..)| *from == name) {
            Some((_, to, _)) => (*to).to_owned(),
            None => name.strip_prefix("Async").filter(|rest| !rest.is_empty()).unwrap_or(name).to_owned(),
        }
    }
}

/// A public method.
#[derive(Clone)]
struct Verb {
    parameters: Vec<Parameter>,
    answer: Option<Type>,
    is_async: bool,
    described: String,
}

#[derive(Clone)]
enum Parameter {
    Receiver(String),
    Named(String, Box<Type>),
}

/// Everything public of a crate.
#[derive(Default)]
pub(crate) struct Surface {
    /// By type, its public methods.
    verbs: BTreeMap<String, BTreeMap<String, Verb>>,
    /// By type, the item of its `Iterator`.
    items: BTreeMap<String, Type>,
    /// Names that the root, or a public module of its own that is right below it, gives out.
    exported: BTreeSet<String>,
    /// The modules among these, with the names they give out.
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl Surface {
    /// Of a crate's `src` folder.
    pub(crate) fn of_folder(folder: &Path) -> Self {
        let mut surface = Self::default();
        surface.read_folder(folder);
        let root = fs::read_to_string(folder.join("lib.rs")).unwrap();
        surface.read_exports(&syn::parse_file(&root).unwrap().items, Some(folder));
        surface
    }

    /// Of a crate in one file.
    pub(crate) fn of_text(text: &str) -> Self {
        let file = syn::parse_file(text).unwrap();
        let mut surface = Self::default();
        surface.read_items(&file.items);
        surface.read_exports(&file.items, None);
        surface
    }

    fn read_folder(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                self.read_folder(&path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let file =
                    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                self.read_items(&file.items);
            }
        }
    }

    fn read_items(&mut self, items: &[Item]) {
        for item in items {
            if let Item::Impl(block) = item {
                self.read_impl(block);
            }
        }
    }

    fn read_impl(&mut self, block: &ItemImpl) {
        let Some(name) = type_name(&block.self_ty) else { return };
        if let Some((path, _)) = &block.trait_ {
            if path.segments.last().is_some_and(|last| last.ident == "Iterator") {
                let item = block.items.iter().find_map(|item| match item {
                    ImplItem::Type(item) if item.ident == "Item" => Some(item.ty.clone()),
                    _ => None,
                });
                self.items.extend(item.map(|item| (name, item)));
            }
            return;
        }
        for item in &block.items {
            if let ImplItem::Fn(method) = item
                && matches!(method.vis, Visibility::Public(_))
                && !is_hidden(&method.attrs)
            {
                let verb = Verb::new(&method.sig, &method.attrs);
                self.verbs.entry(name.clone()).or_default().insert(method.sig.ident.to_string(), verb);
            }
        }
    }

    fn read_exports(&mut self, root: &[Item], folder: Option<&Path>) {
        for item in root {
            match item {
                Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => {
                    used(&item.tree, &mut self.exported)
                }
                Item::Mod(item) if matches!(item.vis, Visibility::Public(_)) => {
                    let name = item.ident.to_string();
                    let mut inside = BTreeSet::new();
                    let items = match (&item.content, folder) {
                        (Some((_, items)), _) => items.clone(),
                        (None, Some(folder)) => module_items(folder, &name),
                        (None, None) => Vec::new(),
                    };
                    for item in items {
                        if let Item::Use(item) = item
                            && matches!(item.vis, Visibility::Public(_))
                        {
                            used(&item.tree, &mut inside);
                        }
                    }
                    self.exported.extend(inside.iter().cloned());
                    self.exported.insert(name.clone());
                    self.modules.insert(name, inside);
                }
                _ => {}
            }
        }
    }

    /// Whether a program that has only this crate can name it.
    fn gives_out(&self, name: &str, in_module: Option<&str>) -> bool {
        // A module that is re-exported as a whole has everything in it.
        let whole = in_module
            .is_some_and(|module| self.exported.contains(module) && !self.modules.contains_key(module));
        whole || self.exported.contains(name)
    }

    /// The exported types that cannot be shared with a blocking program.
    fn async_types(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        loop {
            let more: Vec<String> = self
                .verbs
                .iter()
                .filter(|(name, _)| !found.contains(*name))
                .filter(|(_, verbs)| {
                    verbs.values().any(|verb| {
                        verb.is_async || verb.answer.as_ref().is_some_and(|a| mentions(a, &found))
                    })
                })
                .map(|(name, _)| name.clone())
                .collect();
            if more.is_empty() {
                return found.into_iter().filter(|name| self.exported.contains(name)).collect();
            }
            found.extend(more);
        }
    }
}

impl Verb {
    fn new(signature: &Signature, attributes: &[Attribute]) -> Self {
        let parameters = signature.inputs.iter().map(|input| match input {
            // `mut self` is the method's own affair.
            FnArg::Receiver(receiver) => Parameter::Receiver(match receiver.kind {
                ReceiverKind::Value => "self".to_owned(),
                _ => receiver.to_token_stream().to_string(),
            }),
            FnArg::Typed(typed) => {
                let name = match &*typed.pat {
                    Pat::Ident(name) => name.ident.to_string(),
                    other => other.to_token_stream().to_string(),
                };
                Parameter::Named(name, typed.ty.clone())
            }
        });
        Self {
            parameters: parameters.collect(),
            answer: match &signature.output {
                ReturnType::Default => None,
                ReturnType::Type(_, answer) => Some((**answer).clone()),
            },
            is_async: signature.asyncness.is_some(),
            described: first_sentence(attributes),
        }
    }

    fn takes(&self, rules: &Rules<'_>) -> String {
        let shown = self.parameters.iter().map(|parameter| match parameter {
            Parameter::Receiver(receiver) => receiver.clone(),
            Parameter::Named(name, kind) => format!("{name}: {}", in_twin(kind, rules)),
        });
        format!("({})", shown.collect::<Vec<_>>().join(", "))
    }

    fn answers(&self, rules: &Rules<'_>) -> String {
        self.answer.as_ref().map_or_else(|| "()".to_owned(), |answer| in_twin(answer, rules))
    }

    fn described(&self, rules: &Rules<'_>) -> String {
        let mut text = self.described.clone();
        for (from, to, _) in rules.renamed {
            text = text.replace(from, to);
        }
        text.replace("Async", "")
    }
}

/// How many verbs were compared, and what differs.
pub(crate) fn compare(sdk: &Surface, twin: &Surface, rules: &Rules<'_>) -> (usize, Vec<String>) {
    let (mut compared, mut differences) = (0, Vec::new());
    let async_types = sdk.async_types();
    for name in &sdk.exported {
        let module =
            sdk.modules.iter().find(|(_, names)| names.contains(name)).map(|(module, _)| module.as_str());
        if !async_types.contains(name) && !twin.gives_out(name, module) {
            differences.push(format!("{name}: the twin does not re-export it"));
        }
    }
    for name in &async_types {
        let twin_name = rules.twin_name(name);
        if !twin.exported.contains(&twin_name) {
            differences.push(format!("{name}: the twin lacks `{twin_name}`"));
            continue;
        }
        let none = BTreeMap::new();
        let (verbs, twins) = (&sdk.verbs[name], twin.verbs.get(&twin_name).unwrap_or(&none));
        for (verb_name, verb) in verbs {
            let excepted = rules.different.iter().any(|(kind, verb, _)| kind == name && verb == verb_name);
            let found =
                differences_of(verb_name, verb, twins.get(verb_name), twin.items.get(&twin_name), rules);
            match (found.is_empty(), excepted) {
                (true, true) => differences
                    .push(format!("{name}::{verb_name}: listed as an exception, but it does not differ")),
                (false, false) => {
                    differences
                        .extend(found.into_iter().map(|found| format!("{name}::{verb_name}: {found}")));
                }
                _ => {}
            }
            compared += 1;
        }
        for verb_name in twins.keys().filter(|verb_name| !verbs.contains_key(*verb_name)) {
            if !rules.extra.iter().any(|(kind, verb, _)| *kind == twin_name && verb == verb_name) {
                differences.push(format!("{twin_name}::{verb_name}: the async SDK lacks it"));
            }
        }
    }
    for (kind, verb, _) in rules.extra {
        if !twin.verbs.get(*kind).is_some_and(|verbs| verbs.contains_key(*verb)) {
            differences.push(format!("{kind}::{verb}: listed as an extra, but the twin does not have it"));
        }
    }
    (compared, differences)
}

fn differences_of(
    name: &str,
    verb: &Verb,
    twin: Option<&Verb>,
    item: Option<&Type>,
    rules: &Rules<'_>,
) -> Vec<String> {
    let Some(twin) = twin else {
        // A stream's `next` is what its twin does as an iterator.
        return match item {
            Some(item) if name == "next" => {
                let (async_answer, answer) =
                    (verb.answers(rules), format!("Option < {} >", in_twin(item, rules)));
                let same = async_answer == answer;
                if same { vec![] } else { vec![format!("answers `{async_answer}`, its twin `{answer}`")] }
            }
            _ => vec!["the twin lacks it".to_owned()],
        };
    };
    let pairs = [
        ("takes", verb.takes(rules), twin.takes(rules)),
        ("answers", verb.answers(rules), twin.answers(rules)),
        ("is described as", verb.described(rules), twin.described(rules)),
    ];
    pairs
        .into_iter()
        .filter(|(_, a, b)| a != b)
        .map(|(what, a, b)| format!("{what} `{a}`, its twin `{b}`"))
        .collect()
}

/// The type as the twin writes it: the last segment of each path, under the twin's name.
fn in_twin(kind: &Type, rules: &Rules<'_>) -> String {
    struct Normalise<'a>(&'a Rules<'a>);
    impl VisitMut for Normalise<'_> {
        fn visit_path_mut(&mut self, path: &mut syn::Path) {
            if let Some(mut last) = path.segments.pop() {
                last.ident = syn::Ident::new(&self.0.twin_name(&last.ident.to_string()), last.ident.span());
                path.leading_colon = None;
                path.segments.clear();
                path.segments.push(last);
            }
            syn::visit_mut::visit_path_mut(self, path);
        }
    }
    let mut kind = kind.clone();
    Normalise(rules).visit_type_mut(&mut kind);
    kind.to_token_stream().to_string()
}

/// The names that a `use` brings.
fn used(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, names)),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(names.insert(rename.rename.to_string())),
        _ => panic!("a crate that exports everything of a module cannot be compared"),
    }
}

fn module_items(folder: &Path, name: &str) -> Vec<Item> {
    let files = [folder.join(name).join("mod.rs"), folder.join(format!("{name}.rs"))];
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    syn::parse_file(&text).unwrap().items
}

fn mentions(kind: &Type, names: &BTreeSet<String>) -> bool {
    let text = kind.to_token_stream().to_string();
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| names.contains(word))
}

fn type_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}

/// The first sentence of the documentation.
fn first_sentence(attributes: &[Attribute]) -> String {
    let lines = doc_lines(attributes).map(|line| line.trim().to_owned());
    let paragraph: Vec<String> =
        lines.skip_while(String::is_empty).take_while(|line| !line.is_empty()).collect();
    let paragraph = paragraph.join(" ");
    paragraph.split_inclusive(". ").next().unwrap_or_default().trim_end().to_owned()
}

fn doc_lines(attributes: &[Attribute]) -> impl Iterator<Item = String> {
    attributes.iter().filter_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value()),
            _ => None,
        },
        _ => None,
    })
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) => list.path.is_ident("doc") && list.tokens.to_string() == "hidden",
        _ => false,
    })
}
