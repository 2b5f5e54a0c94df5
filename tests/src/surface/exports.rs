//! What the root of a crate gives out.

use std::{collections::BTreeSet, fs, path::Path};

use syn::{Item, UseTree};

use super::{Surface, is_pub};

impl Surface {
    /// Whether a program that has only this crate can name what another crate's root, or its public module of that name,
    /// gives out.
    pub fn gives_out(&self, name: &str, in_module: Option<&str>) -> bool {
        // A module that is re-exported as a whole has everything in it.
        let whole = in_module
            .is_some_and(|module| self.exported.contains(module) && !self.modules.contains_key(module));
        whole || self.exported.contains(name)
    }

    pub(super) fn read_exports(&mut self, root: &[Item], folder: Option<&Path>) {
        for item in root {
            match item {
                Item::Use(item) if is_pub(&item.vis) => used(&item.tree, &mut self.exported),
                Item::Mod(item) if is_pub(&item.vis) => {
                    let name = item.ident.to_string();
                    let mut inside = BTreeSet::new();
                    let items = match (&item.content, folder) {
                        (Some((_, items)), _) => items.clone(),
                        (None, Some(folder)) => module_items(folder, &name),
                        (None, None) => Vec::new(),
                    };
                    for item in items {
                        if let Item::Use(item) = item
                            && is_pub(&item.vis)
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
}

/// The names that a `use` brings.
fn used(tree: &UseTree, names: &mut BTreeSet<String>) {
    match tree {
        UseTree::Path(path) => used(&path.tree, names),
        UseTree::Group(group) => group.items.iter().for_each(|tree| used(tree, names)),
        UseTree::Name(name) => drop(names.insert(name.ident.to_string())),
        UseTree::Rename(rename) => drop(names.insert(rename.rename.to_string())),
        _ => panic!("what a crate exports cannot be read if it exports everything of a module"),
    }
}

fn module_items(folder: &Path, name: &str) -> Vec<Item> {
    let files = [folder.join(name).join("mod.rs"), folder.join(format!("{name}.rs"))];
    let text = files.iter().find_map(|file| fs::read_to_string(file).ok()).unwrap_or_default();
    syn::parse_file(&text).unwrap().items
}
