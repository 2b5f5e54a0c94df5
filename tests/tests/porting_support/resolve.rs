//! Finds the names that an expression uses in the public surface of a crate.
//!
//! `client.create(Create::new().name(..)).await?` is followed call by call: `client` is an `AsyncSandboxer`, `create` must be
//! a method of it and gives an `AsyncSandbox`, `name` must be a method of what `Create::new` gives.

use sandboxer_tests::surface::{Method, RENAMED, Shape, Surface, twin_name};
use syn::{Expr, GenericArgument, Member, PathArguments, Type};

/// What a lower-case name at the beginning of an expression stands for.
const RECEIVERS: &[(&str, &str)] = &[
    ("client", "AsyncSandboxer"),
    ("sandbox", "AsyncSandbox"),
    ("run", "AsyncPromptRun"),
    ("command", "AsyncCommand"),
    ("stream", "ExecStream"),
    ("output", "Output"),
    ("error", "Error"),
    ("verifier", "Verifier"),
];

/// Names of the standard library that need no looking up.
const STANDARD: &[&str] = &["Some", "None", "Ok", "Err", "Duration", "SystemTime", "Method"];

/// What holds an answer and is passed through.
const WRAPPERS: &[&str] = &["Result", "Option", "Arc", "Box"];

/// Verbs of the async SDK that the twin calls otherwise.
const OTHERWISE: &[(&str, &str, &str)] =
    &[("ByteBody", "collect", "read_all"), ("LogStream", "collect", "read_all")];

/// One face of the SDK.
#[derive(Clone, Copy)]
pub(crate) struct Face<'a> {
    sdk: &'a Surface,
    /// The twin, if it is the face.
    twin: Option<&'a Surface>,
}

/// What an expression gives: the name of a type, where it is known.
type Given = Option<String>;

impl<'a> Face<'a> {
    pub(crate) fn of_sdk(sdk: &'a Surface) -> Self {
        Self { sdk, twin: None }
    }

    /// The twin gives out types of the SDK too.
    pub(crate) fn of_twin(twin: &'a Surface, sdk: &'a Surface) -> Self {
        Self { sdk, twin: Some(twin) }
    }

    /// Looks up every name of a table's cell; says what is not there. A plain name is a member of the type that the cell
    /// named last.
    pub(crate) fn check(&self, cell: &[String]) -> Vec<String> {
        let mut scope = None;
        cell.iter().filter_map(|span| self.check_one(span, &mut scope).err()).collect()
    }

    /// Looks up every name of one text, and remembers the type that it speaks of.
    pub(crate) fn check_one(&self, span: &str, scope: &mut Option<String>) -> Result<(), String> {
        let expression: Expr =
            syn::parse_str(span).map_err(|error| format!("`{span}` cannot be read: {error}"))?;
        let mut resolver = Resolver { face: self, scope: scope.clone(), spoken_of: None };
        resolver.give(&expression, false).map_err(|problem| format!("`{span}`: {problem}"))?;
        if resolver.spoken_of.is_some() {
            *scope = resolver.spoken_of;
        }
        Ok(())
    }

    fn own_name(&self, name: &str) -> String {
        if self.twin.is_some() { twin_name(name, RENAMED) } else { name.to_owned() }
    }

    /// The shapes that a type of that name may have: that of the face's own type, then that of one it gives out.
    fn shapes(&self, name: &str) -> Vec<&'a Shape> {
        let own = self.own_name(name);
        let given_out = match self.twin {
            None => self.sdk.is_public(name),
            Some(twin) => {
                let modules = self.sdk.exported().iter().filter(|module| twin.gives_out(module, None));
                let mut listed = self.sdk.modules().iter().filter(|(_, names)| names.contains(name));
                twin.exported().contains(name)
                    || listed.any(|(module, _)| twin.gives_out(name, Some(module)))
                    || self.sdk.declared_below(name, modules)
            }
        };
        let own = self.twin.filter(|twin| twin.is_public(&own)).and_then(|twin| twin.shape(&own));
        own.into_iter().chain(self.sdk.shape(name).filter(|_| given_out)).collect()
    }

    fn function(&self, name: &str) -> Option<&'a Method> {
        let own = self.twin.and_then(|twin| twin.function(name));
        own.or_else(|| self.sdk.function(name).filter(|_| self.twin.is_none_or(|t| t.gives_out(name, None))))
    }

    /// A method, or what the twin has in its place. `Some(None)` for what an iterator does.
    fn method(&self, of: &str, name: &str) -> Option<Option<&'a Method>> {
        let otherwise = OTHERWISE
            .iter()
            .find(|(kind, verb, _)| self.own_name(kind) == self.own_name(of) && *verb == name);
        let name = match (self.twin, otherwise) {
            (Some(_), Some((_, _, other))) => other,
            _ => name,
        };
        let shapes = self.shapes(of);
        if let Some(method) = shapes.iter().find_map(|shape| shape.methods.get(name)) {
            return Some(Some(method));
        }
        let iterates = self.twin.is_some() && shapes.iter().any(|shape| shape.item.is_some());
        (iterates && ["next", "collect"].contains(&name)).then_some(None)
    }

    fn has_other_member(&self, of: &str, name: &str) -> bool {
        self.shapes(of).iter().any(|shape| shape.variants.contains(name) || shape.constants.contains(name))
    }

    fn field(&self, of: &str, name: &str) -> Option<&'a Type> {
        self.shapes(of).into_iter().find_map(|shape| shape.fields.get(name))
    }
}

struct Resolver<'f, 'a> {
    face: &'f Face<'a>,
    /// The type that plain names are members of.
    scope: Option<String>,
    /// The type that this text speaks of.
    spoken_of: Option<String>,
}

impl Resolver<'_, '_> {
    /// What the expression gives. In an argument a plain name stands for a value and is not looked up.
    fn give(&mut self, expression: &Expr, argument: bool) -> Result<Given, String> {
        match expression {
            Expr::Lit(_) => Ok(None),
            Expr::Array(array) => self.all(array.elems.iter()),
            Expr::Tuple(tuple) => self.all(tuple.elems.iter()),
            Expr::Range(range) => {
                self.all([&range.start, &range.end].into_iter().flatten().map(|end| &**end))
            }
            Expr::Await(inner) => self.give(&inner.base, argument),
            Expr::Try(inner) => self.give(&inner.expr, argument),
            Expr::Reference(inner) => self.give(&inner.expr, argument),
            Expr::Paren(inner) => self.give(&inner.expr, argument),
            Expr::Index(index) => {
                self.give(&index.expr, argument)?;
                self.give(&index.index, true).map(|_| None)
            }
            Expr::Path(path) => self.path(&segments(&path.path), argument),
            Expr::Call(call) => {
                self.all(call.args.iter())?;
                match &*call.func {
                    Expr::Path(path) => self.path(&segments(&path.path), false),
                    _ => Err("what is called is not a name".to_owned()),
                }
            }
            Expr::MethodCall(call) => {
                let receiver = self.receiver(&call.receiver)?;
                let given = self.member(&receiver, &call.method.to_string())?;
                self.all(call.args.iter())?;
                self.spoken_of = Some(receiver);
                Ok(given)
            }
            Expr::Field(field) => {
                let receiver = self.receiver(&field.base)?;
                let Member::Named(name) = &field.member else { return Err("a number is no name".to_owned()) };
                let given = self.member(&receiver, &name.to_string())?;
                self.spoken_of = Some(receiver);
                Ok(given)
            }
            _ => Err("this kind of expression is not understood".to_owned()),
        }
    }

    /// Arguments and elements.
    fn all<'e>(&mut self, expressions: impl Iterator<Item = &'e Expr>) -> Result<Given, String> {
        for expression in expressions {
            self.give(expression, true)?;
        }
        Ok(None)
    }

    fn receiver(&mut self, expression: &Expr) -> Result<String, String> {
        if let Expr::Path(path) = expression
            && let Some(name) = path.path.get_ident()
        {
            let name = name.to_string();
            let found = RECEIVERS.iter().find(|(receiver, _)| *receiver == name);
            return found.map(|(_, kind)| (*kind).to_owned()).ok_or_else(|| format!("what is `{name}`?"));
        }
        self.give(expression, false)?.ok_or_else(|| "of what type is what comes before a dot?".to_owned())
    }

    /// A type, one of its members, a function, or a plain name.
    fn path(&mut self, segments: &[String], argument: bool) -> Result<Given, String> {
        match segments {
            [name] if STANDARD.contains(&name.as_str()) => Ok(None),
            [name] if is_type(name) => match &self.scope {
                Some(scope) if self.face.shapes(name).is_empty() => self.member(&scope.clone(), name),
                _ => self.kind(name),
            },
            [_] if argument => Ok(None),
            [name] => match &self.scope {
                Some(scope) => self.member(&scope.clone(), name),
                None => self.receiver_or_function(name),
            },
            [kind, _] if STANDARD.contains(&kind.as_str()) => Ok(None),
            [kind, member] if is_type(kind) => {
                self.kind(kind)?;
                self.member(kind, member)
            }
            [module, rest @ ..] if module == "sandboxer" || self.is_module(module) => self.path(rest, false),
            _ => Err("it begins with a module that is not public".to_owned()),
        }
    }

    fn is_module(&self, name: &str) -> bool {
        match self.face.twin {
            None => self.face.sdk.exported().contains(name),
            Some(twin) => twin.gives_out(name, None),
        }
    }

    fn kind(&mut self, name: &str) -> Result<Given, String> {
        if self.face.shapes(name).is_empty() {
            return Err(format!("there is no public type `{name}`"));
        }
        self.spoken_of = Some(name.to_owned());
        Ok(Some(name.to_owned()))
    }

    fn receiver_or_function(&self, name: &str) -> Result<Given, String> {
        if let Some((_, kind)) = RECEIVERS.iter().find(|(receiver, _)| *receiver == name) {
            return Ok(Some((*kind).to_owned()));
        }
        let function = self.face.function(name).ok_or_else(|| format!("there is no function `{name}`"))?;
        Ok(given(function.answer.as_ref(), name))
    }

    fn member(&self, of: &str, name: &str) -> Result<Given, String> {
        if let Some(method) = self.face.method(of, name) {
            return Ok(method.and_then(|method| given(method.answer.as_ref(), of)));
        }
        if let Some(field) = self.face.field(of, name) {
            return Ok(type_in(field, of));
        }
        if self.face.has_other_member(of, name) {
            return Ok(Some(of.to_owned()));
        }
        Err(format!("`{}` has no public `{name}`", self.face.own_name(of)))
    }
}

/// The type of an answer, under the async SDK's name where the twin has one of its own.
fn given(answer: Option<&Type>, of: &str) -> Given {
    answer.and_then(|answer| type_in(answer, of))
}

fn type_in(kind: &Type, of: &str) -> Given {
    match kind {
        Type::Reference(reference) => type_in(&reference.elem, of),
        Type::Path(path) => {
            let last = path.path.segments.last()?;
            let name = last.ident.to_string();
            if name == "Self" {
                return Some(of.to_owned());
            }
            if !WRAPPERS.contains(&name.as_str()) {
                return Some(name);
            }
            let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
            arguments.args.iter().find_map(|argument| match argument {
                GenericArgument::Type(inner) => type_in(inner, of),
                _ => None,
            })
        }
        _ => None,
    }
}

fn segments(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn is_type(name: &str) -> bool {
    name.starts_with(char::is_uppercase)
}
