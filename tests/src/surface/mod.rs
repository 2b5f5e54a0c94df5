//! What a crate shows, read from its source: types with their methods, fields and variants, free functions, exports.
//!
//! Nothing is compiled, so a crate's private parts can be read about too; [`Surface::is_public`] tells them apart.

mod docs;
mod exports;
mod listed;
mod macros;
mod method;
mod twin;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use macros::Macros;
use syn::{Attribute, Fields, ImplItem, Item, ItemImpl, TraitItem, Type, Visibility};

pub use docs::{doc_text, first_sentence};
pub use listed::Listed;
pub use method::{Method, Parameter};
pub use twin::{RENAMED, twin_name};

/// A type or trait and what of it is public.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    /// Declared `pub`. A type that is only seen in an `impl`, a foreign one, is not.
    pub declared: bool,
    /// What kind of thing it is; `None` where no declaration was seen.
    pub kind: Option<Kind>,
    /// Its public methods and associated functions, by name; all of a trait's.
    pub methods: BTreeMap<String, Method>,
    /// The types of its public fields, by name; of a tuple, by number.
    pub fields: BTreeMap<String, Type>,
    /// The variants of an enum.
    pub variants: BTreeSet<String>,
    /// Its public associated constants.
    pub constants: BTreeSet<String>,
    /// What it gives out as an `Iterator`.
    pub item: Option<Type>,
    /// What it derives and what is implemented for it, by the last segment of the trait's path.
    pub traits: BTreeSet<String>,
    /// Its documentation.
    pub docs: String,
    /// The file names and folders on the way to its declaration, without `.rs`.
    modules: BTreeSet<String>,
}

/// The kind of a [`Shape`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A struct.
    Struct,
    /// An enum.
    Enum,
    /// A trait.
    Trait,
    /// A type alias.
    Alias,
}

/// What a crate shows. Names are plain: the last segment of a path.
#[derive(Debug, Default)]
pub struct Surface {
    /// All types that were seen, public or not, by name.
    shapes: BTreeMap<String, Shape>,
    /// Free functions that are declared `pub`, with the modules on the way to each.
    functions: BTreeMap<String, (Method, BTreeSet<String>)>,
    /// Names that the root, or a public module of its own that is right below it, gives out.
    exported: BTreeSet<String>,
    /// The modules among these, with the names that they give out.
    modules: BTreeMap<String, BTreeSet<String>>,
}

impl Surface {
    /// Of a crate's `src` folder.
    ///
    /// # Panics
    ///
    /// If a file cannot be read or is not Rust, or the root re-exports everything of a module.
    pub fn of_folder(folder: &Path) -> Self {
        let mut surface = Self::default();
        let (mut files, mut macros) = (Vec::new(), Macros::default());
        read_folder(folder, &BTreeSet::new(), &mut files);
        files.iter().for_each(|(_, items)| macros.collect(items));
        files.iter().for_each(|(modules, items)| surface.read_items(items, modules, &macros));
        let root = fs::read_to_string(folder.join("lib.rs")).unwrap();
        surface.read_exports(&syn::parse_file(&root).unwrap().items, Some(folder));
        surface
    }

    /// Of a crate in one file.
    ///
    /// # Panics
    ///
    /// If the text is not Rust, or re-exports everything of a module.
    pub fn of_text(text: &str) -> Self {
        let file = syn::parse_file(text).unwrap();
        let (mut surface, mut macros) = (Self::default(), Macros::default());
        macros.collect(&file.items);
        surface.read_items(&file.items, &BTreeSet::new(), &macros);
        surface.read_exports(&file.items, None);
        surface
    }

    /// All types and traits that were seen, public or not, by name.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &Shape)> {
        self.shapes.iter().map(|(name, shape)| (name.as_str(), shape))
    }

    /// One type or trait, public or not.
    pub fn shape(&self, name: &str) -> Option<&Shape> {
        self.shapes.get(name)
    }

    /// A public method or associated function of a type, or a method of a trait.
    pub fn method(&self, of: &str, name: &str) -> Option<&Method> {
        self.shapes.get(of)?.methods.get(name)
    }

    /// A free function that a program can call.
    pub fn function(&self, name: &str) -> Option<&Method> {
        let (function, modules) = self.functions.get(name)?;
        (self.exported.contains(name) || self.has_public_module(modules)).then_some(function)
    }

    /// The names that the root, or a public module right below it, gives out; modules among them.
    pub fn exported(&self) -> &BTreeSet<String> {
        &self.exported
    }

    /// The public modules written in the root, with the names that each re-exports.
    pub fn modules(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.modules
    }

    /// Whether a program can name this type or trait: it is exported, or declared in a module that is.
    pub fn is_public(&self, name: &str) -> bool {
        self.exported.contains(name)
            || self
                .shapes
                .get(name)
                .is_some_and(|shape| shape.declared && self.has_public_module(&shape.modules))
    }

    /// Whether a type is declared `pub` somewhere below one of these modules.
    pub fn declared_below<'a>(&self, name: &str, mut modules: impl Iterator<Item = &'a String>) -> bool {
        let declared = self.shapes.get(name).filter(|shape| shape.declared);
        declared.is_some_and(|shape| modules.any(|module| shape.modules.contains(module)))
    }

    fn has_public_module(&self, modules: &BTreeSet<String>) -> bool {
        modules.iter().any(|module| self.exported.contains(module))
    }

    fn read_items(&mut self, items: &[Item], modules: &BTreeSet<String>, macros: &Macros) {
        for item in items {
            match item {
                Item::Impl(block) => self.read_impl(block, macros),
                Item::Struct(item) => {
                    let shape = self.declare(&item.ident, Kind::Struct, &item.vis, &item.attrs, modules);
                    read_fields(&item.fields, &mut shape.fields);
                }
                Item::Enum(item) => {
                    let shape = self.declare(&item.ident, Kind::Enum, &item.vis, &item.attrs, modules);
                    shape.variants.extend(item.variants.iter().map(|variant| variant.ident.to_string()));
                }
                Item::Trait(item) => {
                    let shape = self.declare(&item.ident, Kind::Trait, &item.vis, &item.attrs, modules);
                    for item in &item.items {
                        if let TraitItem::Fn(item) = item {
                            let method = Method::new(&item.sig, &item.attrs);
                            shape.methods.insert(item.sig.ident.to_string(), method);
                        }
                    }
                }
                Item::Type(item) => {
                    self.declare(&item.ident, Kind::Alias, &item.vis, &item.attrs, modules);
                }
                Item::Fn(item) if is_pub(&item.vis) && !docs::is_hidden(&item.attrs) => {
                    let function = Method::new(&item.sig, &item.attrs);
                    self.functions.insert(item.sig.ident.to_string(), (function, modules.clone()));
                }
                Item::Mod(item) if !is_test(&item.attrs) => {
                    if let Some((_, items)) = &item.content {
                        let mut inner = modules.clone();
                        inner.insert(item.ident.to_string());
                        self.read_items(items, &inner, macros);
                    }
                }
                // Only for what it implements: what a macro declares is not read.
                Item::Macro(item) => {
                    let written =
                        macros.expand(&item.mac).and_then(|tokens| syn::parse2::<syn::File>(tokens).ok());
                    let items = written.map(|file| file.items).unwrap_or_default();
                    for item in &items {
                        if let Item::Impl(block) = item {
                            self.read_impl(block, macros);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn declare(
        &mut self,
        name: &syn::Ident,
        kind: Kind,
        visibility: &Visibility,
        attributes: &[Attribute],
        modules: &BTreeSet<String>,
    ) -> &mut Shape {
        let public = is_pub(visibility) && !docs::is_hidden(attributes);
        // A private namesake does not hide the public one.
        let hides = !public && self.shapes.get(&name.to_string()).is_some_and(|shape| shape.declared);
        let key = if hides { format!("private {name}") } else { name.to_string() };
        let shape = self.shapes.entry(key).or_default();
        if !shape.declared {
            shape.declared = public;
            shape.kind = Some(kind);
            shape.docs = doc_text(attributes);
            shape.fields.clear();
            shape.variants.clear();
            shape.modules.clear();
        }
        shape.modules.extend(modules.iter().cloned());
        shape.traits.extend(docs::derived(attributes));
        shape
    }

    fn read_impl(&mut self, block: &ItemImpl, macros: &Macros) {
        let Some(name) = type_name(&block.self_ty) else { return };
        let shape = self.shapes.entry(name).or_default();
        if let Some((path, _)) = &block.trait_ {
            let Some(implemented) = path.segments.last() else { return };
            shape.traits.insert(implemented.ident.to_string());
            if implemented.ident == "Iterator" {
                let item = block.items.iter().find_map(|item| match item {
                    ImplItem::Type(item) if item.ident == "Item" => Some(item.ty.clone()),
                    _ => None,
                });
                shape.item = item.or_else(|| shape.item.take());
            }
            return;
        }
        shape.read_impl_items(&block.items, macros);
    }
}

impl Shape {
    fn read_impl_items(&mut self, items: &[ImplItem], macros: &Macros) {
        for item in items {
            match item {
                ImplItem::Fn(method) if is_pub(&method.vis) && !docs::is_hidden(&method.attrs) => {
                    let name = method.sig.ident.to_string();
                    self.methods.insert(name, Method::new(&method.sig, &method.attrs));
                }
                ImplItem::Const(constant) if is_pub(&constant.vis) => {
                    self.constants.insert(constant.ident.to_string());
                }
                ImplItem::Macro(used) => {
                    if let Some(tokens) = macros.expand(&used.mac) {
                        let block = quote::quote! { impl Written { #tokens } };
                        let block: ItemImpl = syn::parse2(block).unwrap();
                        self.read_impl_items(&block.items, macros);
                    }
                }
                _ => {}
            }
        }
    }
}

/// The items of every file in a folder, with the modules on the way to it.
fn read_folder(folder: &Path, modules: &BTreeSet<String>, files: &mut Vec<(BTreeSet<String>, Vec<Item>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mut inner = modules.clone();
        inner.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        if path.is_dir() {
            read_folder(&path, &inner, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            files.push((inner, file.items));
        }
    }
}

fn read_fields(fields: &Fields, into: &mut BTreeMap<String, Type>) {
    for (number, field) in fields.iter().enumerate() {
        if is_pub(&field.vis) && !docs::is_hidden(&field.attrs) {
            let name = field.ident.as_ref().map_or_else(|| number.to_string(), ToString::to_string);
            into.insert(name, field.ty.clone());
        }
    }
}

fn is_pub(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident("cfg") && list.tokens.to_string() == "test",
        _ => false,
    })
}

/// The last segment of a type's path; `None` for what is not a path.
pub fn type_name(kind: &Type) -> Option<String> {
    match kind {
        Type::Path(path) => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    }
}
