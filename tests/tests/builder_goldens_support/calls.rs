//! Which methods of which types a call's text uses.

use std::collections::BTreeMap;

use syn::{Expr, Stmt, visit::Visit};

use sandboxer_tests::surface::Listed as Method;

/// What the names in the lines stand for.
const NAMES: &[(&str, &str)] = &[
    ("client", "AsyncSandboxer"),
    ("boat", "AsyncSandboxer"),
    ("sandbox", "AsyncSandbox"),
    ("command", "AsyncCommand"),
    ("run", "AsyncPromptRun"),
    ("files", "AsyncFiles"),
    ("builder", "Builder"),
    ("verifier", "Verifier"),
    ("made", "Verifier"),
    ("endless", "Builder"),
    ("secure", "Builder"),
    ("silent", "Timeouts"),
    ("fresh", "AsyncPromptRun"),
    ("guard", "AsyncGuard"),
];

/// By type and method, what it answers with.
pub(crate) type Answers = BTreeMap<(String, String), String>;

pub(crate) fn answers(methods: &[Method]) -> Answers {
    let answer = |method: &Method| {
        let words = method.answer.split(|c: char| !c.is_alphanumeric() && c != '_');
        let inner = words
            .filter(|word| !word.is_empty())
            .find(|word| !["Result", "Option", "Arc", "Vec", "Pager", "super", "crate"].contains(word));
        match inner {
            // A list answers for itself.
            _ if method.answer.starts_with("Pager") => "Pager".to_owned(),
            Some("Self") => method.owner.clone(),
            Some(word) => word.to_owned(),
            None => String::new(),
        }
    };
    methods.iter().map(|method| ((method.owner.clone(), method.name.clone()), answer(method))).collect()
}

/// The methods that a call uses, each as `Type::method`.
pub(crate) fn used(call: &str, answers: &Answers) -> Result<Vec<String>, syn::Error> {
    let call = syn::parse_str::<Expr>(call)?;
    let mut visitor = Uses { answers, found: Vec::new() };
    visitor.visit_expr(&call);
    Ok(visitor.found)
}

struct Uses<'a> {
    answers: &'a Answers,
    found: Vec<String>,
}

impl Uses<'_> {
    /// The type of an expression, as far as the surface tells.
    fn kind(&self, expression: &Expr) -> Option<String> {
        match expression {
            Expr::Await(inner) => self.kind(&inner.base),
            Expr::Try(inner) => self.kind(&inner.expr),
            Expr::Paren(inner) => self.kind(&inner.expr),
            Expr::Reference(inner) => self.kind(&inner.expr),
            Expr::Async(inner) => match inner.block.stmts.last() {
                Some(Stmt::Expr(last, _)) => self.kind(last),
                _ => None,
            },
            Expr::Path(path) => {
                let name = path.path.get_ident()?.to_string();
                NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| (*kind).to_owned())
            }
            Expr::Call(call) => {
                let Expr::Path(path) = &*call.func else { return None };
                let names: Vec<String> =
                    path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                match &names[..] {
                    [.., kind, constructor] => self
                        .answers
                        .get(&(kind.clone(), constructor.clone()))
                        .cloned()
                        .or_else(|| Some(kind.clone())),
                    [function] => {
                        NAMES.iter().find(|(known, _)| known == function).map(|(_, kind)| (*kind).to_owned())
                    }
                    [] => None,
                }
            }
            Expr::MethodCall(call) => {
                let (owner, method) = (self.kind(&call.receiver)?, call.method.to_string());
                match method.as_str() {
                    "unwrap" | "clone" => Some(owner),
                    _ => self.answers.get(&(owner, method)).cloned(),
                }
            }
            _ => None,
        }
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        if let Some(owner) = self.kind(&call.receiver) {
            self.found.push(format!("{owner}::{}", call.method));
        }
        syn::visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        if let Expr::Path(path) = &*call.func
            && path.path.segments.len() > 1
        {
            let names = path.path.segments.iter().rev().take(2).map(|segment| segment.ident.to_string());
            let names: Vec<String> = names.collect();
            self.found.push(format!("{}::{}", names[1], names[0]));
        }
        syn::visit::visit_expr_call(self, call);
    }
}
