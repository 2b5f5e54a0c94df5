//! The methods of a surface one by one.

use std::{collections::BTreeSet, fs, path::Path};

use quote::ToTokens as _;

use super::{Macros, Surface, read_folder};

/// A public method of a type that the root of a crate exports.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The type it is a method of.
    pub owner: String,
    /// Its name.
    pub name: String,
    /// Whether it takes its value whole.
    pub takes_self: bool,
    /// Whether it needs a value at all.
    pub has_receiver: bool,
    /// How many arguments there are besides.
    pub arguments: usize,
    /// The type it answers with, as written; empty for nothing.
    pub answer: String,
}

impl Surface {
    /// Of a crate's `src` folder, without what is generated.
    ///
    /// # Panics
    ///
    /// As [`of_folder`](Self::of_folder).
    pub fn hand_written(folder: &Path) -> Self {
        let (mut surface, mut macros, mut files) = (Self::default(), Macros::default(), Vec::new());
        read_folder(folder, &BTreeSet::new(), &mut files);
        files.iter().for_each(|(_, items)| macros.collect(items));
        for (modules, items) in files.iter().filter(|(modules, _)| !modules.contains("generated")) {
            surface.read_items(items, modules, &macros);
        }
        let root = fs::read_to_string(folder.join("lib.rs")).unwrap();
        surface.read_exports(&syn::parse_file(&root).unwrap().items, Some(folder));
        surface
    }

    /// All public methods of what the root exports.
    pub fn methods(&self) -> Vec<Listed> {
        let exported = self.shapes.iter().filter(|(owner, _)| self.exported.contains(*owner));
        let all = exported.flat_map(|(owner, shape)| shape.methods.iter().map(move |method| (owner, method)));
        all.map(|(owner, (name, method))| Listed {
            owner: owner.clone(),
            name: name.clone(),
            takes_self: method.receiver() == Some("self"),
            has_receiver: method.receiver().is_some(),
            arguments: method.arguments().count(),
            answer: method.answer.as_ref().map(|kind| kind.to_token_stream().to_string()).unwrap_or_default(),
        })
        .collect()
    }
}
